"""How start, list and memory change with the number of models in the folder."""

import json
import subprocess

from context import Context, timed
from curve import Curve, Series
from servers import memory_mib

COUNTS = (100, 1_000, 10_000, 100_000)
FOLDER_MODELS = 100  # in each of the nested folders
FILE_BYTES = 4096  # a file takes so much on most file systems
PAGE = 1000  # the most models that a page of the list has


def add_models(root, content, first, end):
    """org/family/name.zt"""
    for number in range(first, end):
        folder = root / f"org-{number // FOLDER_MODELS // 10}" / f"family-{number // FOLDER_MODELS % 10}"
        if number % FOLDER_MODELS == 0:
            folder.mkdir(parents=True)
        (folder / f"model-{number}.zt").write_bytes(content)


def list_all(server):
    """The number of models, over all pages."""
    cursor, count = "", 0
    while cursor is not None:
        page = json.loads(Context.fetch(server, f"/v1/models?limit={PAGE}{cursor}"))
        count += len(page["models"])
        cursor = f"&cursor={page['next']}" if page.get("next") else None
    return count


def measure(context, root, count):
    started = []
    values = {"start": timed(lambda: started.append(context.ztserve(root)))}
    server = started[0]
    try:
        for name in ("first list", "second list"):
            listed = []
            values[name] = timed(lambda: listed.append(list_all(server)))
            if listed != [count]:
                raise RuntimeError(f"{listed[0]} of {count} models are listed")
        values["memory"] = memory_mib(server)
    finally:
        context.stop(server)
    return values


def points(context):
    context.room(COUNTS[-1] * FILE_BYTES)
    content = context.model(context.folder / "one.zt", 64).read_bytes()
    root = context.sub_folder("models")
    made = 0
    try:
        for count in COUNTS:
            add_models(root, content, made, count)
            made = count
            yield count, measure(context, root, count)
    finally:
        subprocess.run(["rm", "-rf", root], check=True)


CURVES = [
    Curve(
        "models",
        "Models in nested folders",
        "models",
        (Series("start", "s"), Series("first list", "s"), Series("second list", "s"), Series("memory", "MiB")),
        points,
        seconds=12,
        note="The list is read in pages of 1000 by a client in Python. Every file has just been written, and is in the page cache.",
    )
]
