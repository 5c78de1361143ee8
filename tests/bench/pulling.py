"""`ztserve pull` beside a client that asks for the same bytes as one range and checks nothing."""

import os
import shutil
import subprocess
import time

from context import Skipped
from figures import Figure, Limit
from workload import workload

BYTES = 1 << 30
OBJECTS = 16


def with_digests(context, root):
    """A model that states a SHA-256 for each component."""
    plain = context.model(root / "plain.zt", BYTES // OBJECTS, str(OBJECTS))
    path = root / "served" / "weights.zt"
    path.parent.mkdir()
    subprocess.run([context.build / "ztserve", "convert", plain, path], check=True, stdout=subprocess.DEVNULL)
    plain.unlink()
    return path


@workload("pull", "ztserve pull of 1 GiB, checked while it comes, beside one range with curl")
def pull(context):
    if shutil.which("curl") is None:
        raise Skipped("needs curl")
    root = context.memory_folder("pulled", 3 * BYTES)
    path = with_digests(context, root)
    size = path.stat().st_size
    context.warm(path)
    server = context.ztserve(path.parent, processors=",".join(map(str, sorted(os.sched_getaffinity(0)))))
    address = f"http://{server.address}:{server.port}"
    made = root / "made.zt"

    def brought_by(*command):
        def bring():
            made.unlink(missing_ok=True)
            begun = time.monotonic()
            subprocess.run(command, check=True)
            seconds = time.monotonic() - begun
            if made.stat().st_size != size:
                raise RuntimeError(f"{command[0]} brought {made.stat().st_size} of {size} bytes")
            return size / seconds

        return bring

    by_ztserve = brought_by(context.build / "ztserve", "pull", f"{address}/v1/models/weights", "-o", made, "--quiet")
    by_curl = brought_by("curl", "--fail", "--silent", "--range", f"0-{size - 1}", "--output", made, f"{address}/files/weights.zt")
    by_ztserve(), by_curl()  # the server has verified what it sends
    with context.watch() as others:
        speeds = context.alternate([by_ztserve, by_curl])
    context.stop(server)
    made.unlink()
    yield Figure("pull", "pull of 1 GiB, checked", "throughput", "B/s", *speeds, limit=Limit(least=0.9), beside="curl, one range", others=others[0])
