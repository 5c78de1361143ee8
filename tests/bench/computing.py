"""What a processor is needed for: hashing beside openssl, slices beside a copy loop, decoding beside zstd, opening."""

import contextlib
import http.client
import json
import os
import subprocess
import time
import urllib.request

from context import Target, timed
from figures import Figure, Limit
from reading import compare_two
from servers import pinned, program
from uploading import hashing_speed, joined
from workload import workload

HASHED_OBJECTS, HASHED_BYTES = 16, 64 << 20
LOOK_S = 0.003
TENSOR_BYTES = 256 << 20
PARTS = 8
DECODED_BYTES = 128 << 20
OBJECTS = 100_000


def convert(source, target, *arguments):
    command = [program(), "convert", source, target, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    source.unlink()
    return target


# --- hashing ---


def hashed_model(context):
    """16 components with digests, in a root of its own."""

    def make():
        root = context.sub_folder("hashed")
        plain = context.model(context.folder / "plain.zt", HASHED_BYTES, HASHED_OBJECTS)
        context.warm(convert(plain, root / "model.zt"))
        return root

    return context.once("hashed", make)


def verify(server, pause_s=0):
    """Seconds until every component was hashed again, and the server's processor seconds. Whoever looks for the end takes
    time from a processor that hashes, and openssl has no such client: so it asks over one connection, after a pause."""
    target = "/v1/models/model/verification"
    with contextlib.closing(http.client.HTTPConnection(server.address, server.port, timeout=60)) as client:
        client.connect()
        before, begun = server.processor_seconds(), time.monotonic()
        state = answer_of(client, "POST", target)
        time.sleep(pause_s)
        while state["state"] == "running":
            time.sleep(LOOK_S)
            state = answer_of(client, "GET", target)
        taken = time.monotonic() - begun
    if state["state"] != "verified" or state["components"]["verified"] != HASHED_OBJECTS:
        raise RuntimeError(f"verification: {state}")
    return taken, server.processor_seconds() - before


def answer_of(client, method, target):
    client.request(method, target)
    return json.loads(client.getresponse().read())


@workload("verification", "verification of 16 components on all processors beside openssl")
def verification(context):
    root = hashed_model(context)
    everywhere = sorted(os.sched_getaffinity(0))
    server = context.ztserve(root, processors=",".join(map(str, everywhere)))
    verify(server)
    server.settle()
    pause_s = 0.75 * min(verify(server)[0] for _ in range(3))
    with context.watch() as others:
        ours, theirs, single = context.alternate(
            [lambda: verify(server, pause_s), lambda: hashing_speed(everywhere), lambda: hashing_speed(everywhere[:1])]
        )
    context.stop(server)
    total = HASHED_OBJECTS * HASHED_BYTES
    row = "verification of 16 components"
    for metric, unit, speeds, yardstick, least, beside in (
        ("all processors", "B/s", [total / taken for taken, _ in ours], theirs, 1.2, "openssl speed -multi"),
        ("per processor second", "B/cpu s", [total / used for _, used in ours], single, 1.3, "openssl speed"),
    ):
        limit = Limit(least=least)
        yield Figure("verification", row, metric, unit, speeds, yardstick, limit=limit, beside=beside, others=others[0])


# --- slices ---


class CopyLoop:
    """bench-copy, as a server."""

    address = "127.0.0.1"

    def __init__(self, context, *arguments):
        command = [*pinned(context.processor), str(context.build / "bench-copy"), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@workload("slice", "strided slice beside a loop that copies and sends, each on one processor")
def strided(context):
    for run in (1024, 4096):
        root = context.sub_folder(f"strided-{run}")
        path = context.model(root / "model.zt", TENSOR_BYTES, 1, PARTS * run // 4)
        context.warm(path)
        ztserve = context.ztserve(root)
        manifest = json.loads(context.fetch(ztserve, "/v1/models/model"))
        offset = manifest["objects"]["weight"]["components"]["data"]["offset"]
        part, rows = 3, TENSOR_BYTES // PARTS // run
        arguments = path, offset + part * run, PARTS * run, run, rows
        loop = context.start(lambda arguments=arguments: CopyLoop(context, *arguments))
        target = f"/v1/models/model/objects/weight/data?shard={part}/{PARTS}&axis=1"
        same = [context.fetch(server, target) for server in (ztserve, loop)]
        if same[0] != same[1]:
            raise RuntimeError("the slice and the loop send different bytes")
        yield from compare_two(
            context, "slice", f"slice, runs of {run >> 10} KiB", Target(ztserve, target), Target(loop, target),
            (None, Limit(least=0.8)), "copy loop",
        )  # fmt: skip
        context.stop(ztserve, loop)
        path.unlink()


# --- decoding ---


def write_array(path, length):
    """An NPY file of bytes with four bits of information each: zstd halves it."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({length},), }}"
    header = header.ljust(117) + "\n"
    alphabet = bytes(range(16)) * 16
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for _ in range(length >> 20):
            file.write(os.urandom(1 << 20).translate(alphabet))


@workload("zstd", "zstd component, first answer, beside zstd -d on one processor")
def zstd(context):
    context.room(4 * DECODED_BYTES)
    root, plain = context.sub_folder("encoded"), context.folder / "array.npy"
    for name, arguments in (("model", ("--zstd",)), ("frames", ("--to", "zt2", "--zstd"))):
        write_array(plain, DECODED_BYTES)
        context.warm(convert(plain, root / f"{name}.zt", *arguments))
    target, in_frames = (f"/v1/models/{name}/objects/data/data" for name in ("model", "frames"))
    stored = context.folder / "stored.zst"
    again = []

    def first_answer():
        """A server that has not decoded anything; what it verified it remembers."""
        server = context.ztserve(root)
        result = context.load(Target(server, target), requests=1)
        again.append(context.load(Target(server, target), requests=1)["seconds"])
        context.stop(server)
        return result["seconds"]

    def first_answer_everywhere(path):
        server = context.ztserve(root, processors=joined(os.sched_getaffinity(0)))
        result = context.load(Target(server, path), requests=1)
        context.stop(server)
        return result["seconds"]

    def decode():
        command = [*pinned(context.processor), "zstd", "-d", "-q", "-c", stored]
        return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))

    server = context.ztserve(root)
    stored.write_bytes(context.fetch(server, target + "?representation=stored"))
    if any(len(context.fetch(server, path)) != DECODED_BYTES for path in (target, in_frames)):
        raise RuntimeError("zstd: not the whole component")
    context.stop(server)
    decode()
    with context.watch() as others:
        actions = [lambda path=path: first_answer_everywhere(path) for path in (target, in_frames)]
        results = context.alternate([first_answer, decode, *actions])
    ours, theirs, wider, frames = ([DECODED_BYTES / taken for taken in side] for side in results)
    options, limit = {"beside": "zstd -d", "others": others[0]}, Limit(least=1.0)
    for row, figures, judged in (
        ("zstd component, first answer", ours, limit),
        ("zstd component, first answer, all processors", wider, None),
        ("zstd component in frames, first answer, all processors", frames, limit),
    ):
        yield Figure("zstd", row, "throughput", "B/s", figures, theirs, limit=judged, **options)
    later = [DECODED_BYTES / taken for taken in again]
    yield Figure("zstd", "zstd component, second answer", "throughput", "B/s", later, theirs, **options)


# --- many objects ---


@workload("objects", "100,000 objects: opening, memory, JSON")
def objects(context):
    root = context.sub_folder("many")
    path = context.model(root / "many.zt", 64, OBJECTS)
    context.warm(path)
    command = [*pinned(context.processor), context.build / "bench-open", path, "3"]
    with context.watch() as others:
        outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
        server = context.ztserve(root)
        context.fetch(server, "/v1/models/many")
        again = [timed(lambda: context.fetch(server, "/v1/models/many")) * 1000 for _ in range(context.rounds)]
        unchanged = [result_of_condition(context, server) for _ in range(context.rounds)]
    context.stop(server)
    row = "100,000 objects"
    for metric, unit, values, most in (
        ("opening", "ms", [float(output[0]) for output in outputs], 150),
        ("memory of an open object", "B", [float(output[3]) for output in outputs], 200),
        ("second answer as JSON", "ms", again, 50),
        ("304", "ms", unchanged, 2),
    ):
        yield Figure("objects", row, metric, unit, values, limit=Limit(most=most, of="value"), beside="", others=others[0])


def result_of_condition(context, server):
    url = f"http://{server.address}:{server.port}/v1/models/many"
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        tag = answer.headers["ETag"]
    target = Target(server, "/v1/models/many", (f"If-None-Match: {tag}",))
    return context.load(target, requests=1)["seconds"] * 1000
