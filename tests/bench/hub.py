"""A file as the Hub's clients download it from ztserve: beside curl, and beside the same client at nginx.

The current client takes more processor time for a GiB than curl and every server together, so what it reaches beside curl is
shown, not judged; an older one is judged, and both are beside nginx."""

import json
import os
import shutil
import subprocess
import sys

from context import TOP, Skipped, timed
from figures import Figure, Limit
from servers import pinned
from workload import workload

sys.path.append(str(TOP / "tests/interop"))
import environments  # noqa: E402

CURRENT, OLDER = "hub-2.4.0", "hub-0.36.2"
FILE_BYTES = 1 << 30
REPO, FILE = "bench/model", "large.bin"
# Enough of a Hub for a file of a commit: what ztserve says of it.
AS_HUB = """
location /{repo}/resolve/{commit}/ {{{{
    alias {root}/{repo}/; etag off; add_header ETag '{etag}'; add_header X-Repo-Commit {commit};
}}}}
"""


class Downloads:
    """One file of one commit, each time into a fresh cache, by a client on a processor of its own, if none are given."""

    def __init__(self, context, home, commit, processors=None, launcher=()):
        self.context, self.home, self.commit = context, home, commit
        self.launcher = [*launcher, *pinned(context.client_processor if processors is None else processors)]

    def _seconds(self, command, server):
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        url = f"http://{server.address}:{server.port}"
        variables = {"HF_HOME": str(self.home), "HF_ENDPOINT": url, "HF_HUB_DISABLE_UPDATE_CHECK": "1"}
        command = [*self.launcher, *map(str, command)]
        return timed(lambda: subprocess.run(command, check=True, env={**os.environ, **variables}, capture_output=True))

    def by_client(self, release, server):
        hf = environments.python_of(release).parent / "hf"
        return self._seconds([hf, "download", REPO, FILE, "--revision", self.commit], server)

    def by_curl(self, server):
        target = f"http://{server.address}:{server.port}/{REPO}/resolve/{self.commit}/{FILE}"
        return self._seconds(["curl", "-sf", "-o", self.home / FILE, target], server)


def make_file(context, path):
    context.room(FILE_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))


def install_clients():
    try:
        for release in (CURRENT, OLDER):
            environments.python_of(release)
    except (subprocess.SubprocessError, OSError) as failure:
        raise Skipped(f"huggingface_hub cannot be installed here: {failure}") from failure


def look_at_hub(context, ztserve):
    """The commit and the file's ETag, once all hashes are known."""
    context.fetch(ztserve, f"/api/models/{REPO}")
    ztserve.settle()
    commit = json.loads(context.fetch(ztserve, f"/api/models/{REPO}"))["sha"]
    (file,) = json.loads(context.fetch(ztserve, f"/api/models/{REPO}/tree/{commit}"))
    return commit, f'"{file["lfs"]["oid"]}"'


@workload("hub-download", "hf download of 1 GiB beside curl, and beside the same at nginx")
def hub_download(context):
    install_clients()
    root = context.sub_folder("hub")
    path = root / REPO / FILE
    make_file(context, path)
    ztserve = context.ztserve(root)
    commit, etag = look_at_hub(context, ztserve)
    nginx = context.nginx(root, location=AS_HUB.format(repo=REPO, commit=commit, etag=etag, root=root))
    downloads = Downloads(context, context.memory_folder("hub", FILE_BYTES) / "home", commit)
    actions = [lambda: downloads.by_curl(ztserve)]
    for release in (CURRENT, OLDER):
        actions += [lambda server=server, release=release: downloads.by_client(release, server) for server in (ztserve, nginx)]
    with context.watch() as others:
        results = context.alternate(actions)
    context.stop(ztserve, nginx)
    path.unlink()
    curl, *clients = ([FILE_BYTES / value for value in side] for side in results)
    for release, ours, theirs, least in ((CURRENT, *clients[:2], None), (OLDER, *clients[2:], Limit(least=0.9))):
        row = f"hf download of {FILE_BYTES >> 30} GiB, {release.replace('hub-', 'huggingface_hub ')}"
        for yardstick, beside, limit in ((curl, "curl", least), (theirs, "nginx", Limit(least=0.9))):
            yield Figure("hub-download", row, "throughput", "B/s", ours, yardstick, [], limit, beside, others=others[0])
