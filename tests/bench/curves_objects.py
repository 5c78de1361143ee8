"""How the cost of a model grows with its number of objects."""

import subprocess

from context import timed
from curve import Curve, Series
from servers import memory_mib

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
MODEL = "/v1/models/m"
DATA_BYTES = 4  # of each object, of which a file has 64
MANIFEST_BYTES = 200  # of each object, roughly


def opening(context, path):
    """Milliseconds of opening, by the library alone."""
    done = subprocess.run([context.build / "bench-open", path, "3"], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def answer_ms(context, server, headers=None):
    """Milliseconds of an answer with the whole manifest."""
    return timed(lambda: context.fetch(server, MODEL, headers=headers)) * 1000


def serving(context, root):
    server = context.ztserve(root)
    try:
        values = {"JSON, first answer": answer_ms(context, server)}
        values["JSON, second answer"] = min(answer_ms(context, server) for _ in range(3))
        values["memory of the server"] = memory_mib(server)
    finally:
        context.stop(server)
    return values


def points(context):
    root = context.sub_folder("objects")
    for count in COUNTS:
        context.room(count * (64 + MANIFEST_BYTES))
        path = context.model(root / "m.zt", DATA_BYTES, count)
        context.warm(path)
        try:
            yield count, {"opening": opening(context, path), **serving(context, root)}
        finally:
            path.unlink()


CURVES = [
    Curve(
        "objects",
        "A model with many objects",
        "objects",
        (
            Series("opening", "ms"),
            Series("JSON, first answer", "ms"),
            Series("JSON, second answer", "ms"),
            Series("memory of the server", "MiB"),
        ),
        points,
        seconds=8,
        note="Response times include a client in Python that reads the whole response.",
    )
]
