"""Reads that begin on the disk, and whole files: cold, and exported."""

import os
import subprocess

from computing import HASHED_BYTES, HASHED_OBJECTS, hashed_model, verify
from context import Skipped, Target, timed
from figures import Figure, Limit
from reading import compare_two, shares
from uploading import joined
from workload import workload

COLD_BYTES = 512 << 20
# Places in the file to look at. A few pages that were sent stay with the kernel for a while.
PLACES, PLACES_CACHED = 32, 2


def is_cached(path, offset):
    """Whether this byte of a file is in the page cache."""
    with open(path, "rb", buffering=0) as file:
        try:
            return os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            return False


def evict(path):
    """Removes a file from the page cache: it must be on the disk, and nobody may have it mapped."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    size = path.stat().st_size
    try:
        cached = sum(is_cached(path, size * place // PLACES) for place in range(PLACES))
    except OSError as failure:
        raise Skipped(f"cannot see what is in the page cache: {failure.strerror}") from failure
    if cached > PLACES_CACHED:
        raise Skipped("this file system keeps files in memory (set TMPDIR to a folder on a disk)")


@workload("cold", "component of 512 MiB that is not in the page cache")
def cold(context):
    root = context.sub_folder("cold")
    path = context.model(root / "cold.zt", COLD_BYTES)
    evict(path)
    nginx, second = (context.nginx(root) for _ in range(2))
    header = (f"Range: bytes=64-{COLD_BYTES + 63}",)

    def from_nginx(server):
        evict(path)
        return context.load(Target(server, "/cold.zt", header), requests=1)

    def from_ztserve():
        # A server of its own each time: what it has mapped cannot be evicted.
        evict(path)
        server = context.ztserve(root)
        result = context.load(Target(server, "/v1/models/cold/objects/weight/data"), requests=1)
        context.stop(server)
        return result

    with context.watch() as others:
        results = context.alternate([from_ztserve, lambda: from_nginx(nginx), lambda: from_nginx(second)])
    context.stop(nginx, second)
    path.unlink()
    speeds = [[result["bytes"] / result["seconds"] for result in side] for side in results]
    yield Figure(
        "cold", "512 MiB, cold", "throughput", "B/s", *speeds, Limit(least=1.0), others=others[0], processor=shares(results)
    )


@workload("verification-cold", "verification of 16 components that are not in the page cache")
def verification_cold(context):
    root = hashed_model(context)
    path, everywhere = root / "model.zt", joined(sorted(os.sched_getaffinity(0)))

    def by_ztserve():
        evict(path)
        server = context.ztserve(root, processors=everywhere)
        taken, _ = verify(server)
        context.stop(server)
        return taken

    def by_reading():
        evict(path)
        command = ["dd", f"if={path}", "of=/dev/null", "bs=1M"]
        return timed(lambda: subprocess.run(command, check=True, stderr=subprocess.DEVNULL))

    with context.watch() as others:
        results = context.alternate([by_ztserve, by_reading, by_reading], times=2)
    context.warm(path)
    speeds = [[path.stat().st_size / taken for taken in side] for side in results]
    row, beside = "verification of 16 components, cold", "one sequential read"
    yield Figure("verification-cold", row, "throughput", "B/s", *speeds, Limit(least=1.0), beside, others=others[0])


@workload("export", "export of 1 GiB as safetensors beside /files of the same server")
def export(context):
    root = hashed_model(context)
    server = context.ztserve(root)
    exported = Target(server, "/v1/models/model/export?format=safetensors")
    stored = Target(server, "/files/model.zt")
    # Verified, and in the page cache.
    if context.load(exported, requests=1)["bytes"] < HASHED_OBJECTS * HASHED_BYTES:
        raise RuntimeError("export: not the whole model")
    row = "export as safetensors"
    yield from compare_two(context, "export", row, exported, stored, (Limit(least=0.8), None), "/files")
    context.stop(server)
