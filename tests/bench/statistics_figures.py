"""Statistics and previews, beside NumPy on the same processors."""

import os
import subprocess
import sys
import time

from context import Skipped
from figures import Figure, Limit
from workload import workload

BYTES = 1 << 30
COLUMNS = 16384
# What NumPy takes for the same figures of the same bytes, already in memory.
BY_NUMPY = """
import sys, time
import numpy
data = numpy.memmap(sys.argv[1], numpy.float32, "r", offset=64, shape=(int(sys.argv[2]) // 4,))
begun = time.monotonic()
data.min(), data.max(), data.mean(), data.std(), numpy.histogram(data, 64)
print(time.monotonic() - begun)
"""


def normal_model(context):
    """A matrix of 1 GiB of f32 whose values are spread like weights."""

    def make():
        try:
            import numpy
        except ImportError as missing:
            raise Skipped("needs numpy (tests/requirements.txt)") from missing
        root = context.memory_folder("numbers", BYTES)
        path = context.model(root / "weights.zt", BYTES, "1", str(COLUMNS))
        random = numpy.random.default_rng(1)
        data = numpy.memmap(path, numpy.float32, "r+", offset=64, shape=(BYTES // 4,))
        for at in range(0, data.size, 1 << 24):
            data[at : at + (1 << 24)] = random.standard_normal(1 << 24, numpy.float32)
        del data
        return path

    return context.once("numbers", make)


@workload("statistics", "min, max, mean, deviation and histogram of 1 GiB of f32 beside numpy")
def statistics(context):
    path = normal_model(context)
    context.warm(path)

    def by_ztserve():
        begun = time.monotonic()
        subprocess.run([context.build / "ztserve", "stats", path], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun

    def by_numpy():
        command = [sys.executable, "-c", BY_NUMPY, path, str(BYTES)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    with context.watch() as others:
        times = context.alternate([by_ztserve, by_numpy])
    speeds = [[BYTES / seconds for seconds in side] for side in times]
    row = "statistics of 1 GiB, f32"
    yield Figure("statistics", row, "all processors", "B/s", *speeds, limit=Limit(least=5.0), beside="numpy", others=others[0])


@workload("preview", "picture of a matrix of 1 GiB of f32, in the page cache")
def preview(context):
    path = normal_model(context)
    context.warm(path)
    server = context.ztserve(path.parent, processors=",".join(map(str, sorted(os.sched_getaffinity(0)))))
    rows = iter(range(1, COLUMNS))

    def draw():
        # Another picture each time, or it would be kept.
        begun = time.monotonic()
        context.fetch(server, f"/v1/models/weights/objects/weight/data/preview?format=png&slice={next(rows)}:")
        return time.monotonic() - begun

    draw()  # verified
    with context.watch() as others:
        times = [draw() for _ in range(context.rounds)]
    context.stop(server)
    yield Figure("preview", "picture of 1 GiB, f32", "time", "s", times, limit=Limit(most=1.0, of="value"), others=others[0])
