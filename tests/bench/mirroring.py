"""A mirror beside its upstream: the same download straight from there, and the same files in a plain folder.

Upstream, mirror and client share the processors here, as they never do in practice. So the cold download is also measured
over a line of 400 MB/s (two network namespaces, a token bucket), where the line is the limit and not the processors."""

import os
import shutil
import time
import urllib.request

from context import Target
from figures import Figure, Limit
from hub import CURRENT, FILE, FILE_BYTES, REPO, Downloads, install_clients, look_at_hub, make_file
from network import CLIENT, SERVER, At, Network
from reading import compare_two
from workload import workload

EVERYWHERE = ",".join(map(str, sorted(os.sched_getaffinity(0))))
LINE_BYTES_S = 400_000_000
COLD_LEAST, WARM_LEAST = 0.9, 0.95
FIRST_BYTE_MOST_MS = 50
FIRST_FILES, FIRST_BYTES = 20, 4 << 20
ROW = f"hf download of {FILE_BYTES >> 30} GiB through a mirror"


class Places:
    """Where upstream, mirrors and clients run: all on this machine, or the upstream at the other end of a line."""

    def __init__(self, context, line_bytes_s=None):
        self.context, self.between = context, None
        if line_bytes_s is not None:
            self.between = context.start(Network)
            self.between.limit(line_bytes_s)

    def inside(self, side):
        return self.between.launcher(side) if self.between else ()

    def upstream(self, root):
        if not self.between:
            return self.context.ztserve(root, processors=EVERYWHERE)
        return At(self.context.ztserve(root, processors=EVERYWHERE, listen=f"{SERVER}:0", launcher=self.inside(0)), SERVER)

    def mirror(self, root, upstream, processors=EVERYWHERE):
        """Over a new folder, with nothing in it."""
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        listen = f"{CLIENT if self.between else '127.0.0.1'}:0"
        url = f"http://{upstream.address}:{upstream.port}"
        return self.context.ztserve(root, "--upstream", url, processors=processors, listen=listen, launcher=self.inside(1))


def upstream_root(context):
    def make():
        root = context.memory_folder("upstream", FILE_BYTES)
        make_file(context, root / REPO / FILE)
        return root

    return context.once("upstream-root", make)


def compare_cold(context, row, line_bytes_s=None):
    install_clients()
    places = Places(context, line_bytes_s)
    upstream = places.upstream(upstream_root(context))
    folder = context.memory_folder("mirror", 2 * FILE_BYTES)
    straight = Downloads(context, folder / "home", "main", EVERYWHERE, places.inside(1))

    def through_mirror():
        server = places.mirror(folder / "mirror", upstream)
        context.touch_memory(2 * FILE_BYTES)
        seconds = straight.by_client(CURRENT, server)
        context.stop(server)
        shutil.rmtree(folder / "mirror")
        return seconds

    def directly():
        context.touch_memory(2 * FILE_BYTES)
        return straight.by_client(CURRENT, upstream)

    directly()
    (upstream.server if line_bytes_s else upstream).settle()
    with context.watch() as others:
        results = context.alternate([through_mirror, directly])
    ours, theirs = ([FILE_BYTES / seconds for seconds in side] for side in results)
    limit = Limit(least=COLD_LEAST)
    yield Figure("mirror-cold", row, "throughput", "B/s", ours, theirs, [], limit, "the upstream itself", others=others[0])


@workload("mirror-cold", "hf download of 1 GiB through a mirror that has nothing, beside the same from its upstream")
def mirror_cold(context):
    yield from compare_cold(context, f"{ROW}, cold")


@workload("mirror-cold-line", "the same over a line of 400 MB/s")
def mirror_cold_line(context):
    yield from compare_cold(context, f"{ROW}, cold, upstream behind {LINE_BYTES_S / 1e6:.0f} MB/s", LINE_BYTES_S)


@workload("mirror-warm", "the same from a mirror that has it, beside a folder")
def mirror_warm(context):
    root = upstream_root(context)
    folder = context.ztserve(root)
    commit, _ = look_at_hub(context, folder)
    mirror = Places(context).mirror(context.memory_folder("mirror", FILE_BYTES) / "mirror", folder, context.processor)
    target = f"/{REPO}/resolve/{commit}/{FILE}"
    for server in (mirror, folder):
        context.load(Target(server, target), requests=2)
        server.settle()
    for what, length in (("4 KiB", 4096), ("64 MiB", 64 << 20), ("1 GiB", FILE_BYTES)):
        fields = (f"Range: bytes=0-{length - 1}",)
        ours, theirs = (Target(server, target, fields) for server in (mirror, folder))
        row, limits = f"{what} from a mirror that has it", (Limit(least=WARM_LEAST), None)
        yield from compare_two(context, "mirror-warm", row, ours, theirs, limits, "a folder")
    context.stop(mirror, folder)


def first_byte_ms(server, path):
    """From the request to the first byte of the body, over a new connection."""
    begun = time.monotonic()
    with urllib.request.urlopen(f"http://{server.address}:{server.port}{path}", timeout=120) as answer:
        answer.read(1)
        return (time.monotonic() - begun) * 1000


@workload("mirror-first-byte", "first byte of files that a mirror does not have yet, later than from its upstream")
def mirror_first_byte(context):
    root = context.memory_folder("first", 2 * FIRST_FILES * FIRST_BYTES)
    repos = [REPO, *(f"{REPO}-{number}" for number in range(FIRST_FILES))]
    for repo in repos:
        (root / "upstream" / repo).mkdir(parents=True)
    for number in range(FIRST_FILES):
        for repo in (REPO, f"{REPO}-{number}"):
            (root / "upstream" / repo / f"{number}.bin").write_bytes(os.urandom(FIRST_BYTES))
    upstream = context.ztserve(root / "upstream")
    for repo in repos:
        context.fetch(upstream, f"/api/models/{repo}/tree/main")
    upstream.settle()
    mirror = Places(context).mirror(root / "mirror", upstream, context.client_processor)
    context.fetch(mirror, f"/api/models/{REPO}")
    limit = Limit(most=FIRST_BYTE_MOST_MS, of="value")
    for row, name in (("of a repository that it knows", REPO), ("of a new repository", f"{REPO}-{{}}")):
        later = []
        for number in range(FIRST_FILES):
            path = f"/{name.format(number)}/resolve/main/{number}.bin"
            theirs = first_byte_ms(upstream, path)
            later.append(first_byte_ms(mirror, path) - theirs)
        row = f"first byte of a file {row}"
        yield Figure("mirror-first-byte", row, "later than from upstream", "ms", later, limit=limit)
    context.stop(mirror, upstream)
