"""The S3 API: downloads beside /files of the same server, uploads of `aws s3 cp` beside other stores, and parts in parallel
beside hashing.

`aws` is the program that ZT_AWS names, or the one beside Python or in PATH; moto_server the one beside Python or in .venv."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

from buckets import BUCKET, EVERYWHERE, NO_STORE, running_store
from context import TOP, Skipped, Target, timed
from figures import Figure, Limit
from reading import LARGE_BYTES, make_root, named, rates, shares
from s3_client import Bucket, texts
from s3_sign import UNSIGNED, Key, write_keys
from servers import free_port
from uploading import COMPONENT_BYTES, COMPONENTS, LOOPS, Sender, ask, hashing_speed, put_to_loops, send_all, start_loops
from workload import workload

PLAIN, OBJECT = "/files/large.zt", f"/s3/{BUCKET}/large.zt"
# Length, connections, and what is counted.
READS = (("64 MiB", 64 << 20, 4, "bytes"), ("4 KiB", 4096, 16, "requests"), ("4 KiB", 4096, 1, "requests"))
SIGNED_READS = READS[:2]
FILES = "/files of the same server"
HOST = "bench"  # what bench-load sends, so what is signed
VARIABLE = "ZT_AWS"
COPY = "copied.zt"
CP_BYTES, CP_ROW = 1 << 30, "aws s3 cp of 1 GiB to the server"
CEPH, MOTO = "Ceph's gateway", "moto"
MOTO_WITHIN_S = 60
OPENSSL = "openssl speed -multi"
PARTS_ROW = "8 parts of 64 MiB at once"


# --- downloads ---


def ready(context, *arguments, **options):
    """A server that has read and verified the large file."""
    server = context.ztserve(context.once("root", lambda: make_root(context)), *arguments, **options)
    context.load(Target(server, PLAIN), requests=2)
    server.settle()
    return server


def signed_fields(key):
    """Good for 15 minutes, for any range of the large file."""
    signer = key.signer()
    fields = {"host": HOST, "x-amz-date": signer.date, "x-amz-content-sha256": UNSIGNED}
    fields["authorization"] = signer.authorization("GET", OBJECT, fields, UNSIGNED)
    return tuple(f"{name}: {value}" for name, value in fields.items() if name != "host")


def compare_with_files(context, server, what, reads, limit=None, fields=lambda: ()):
    for size, length, connections, count in reads:
        wanted = (f"Range: bytes=0-{length - 1}",)
        ours, theirs = Target(server, OBJECT, wanted + fields()), Target(server, PLAIN, wanted)
        with context.watch() as others:
            results = context.alternate([lambda side=side: context.load(side, connections) for side in (ours, theirs, theirs)])
        units = ("/s", "/cpu s") if count == "requests" else ("B/s", "B/cpu s")
        by_side = [rates(side, count) for side in results]
        for i, metric in enumerate(("throughput", "per processor second")):
            yield Figure(
                "s3-get", named(f"{what} of {size}", connections), metric, units[i], *(side[i] for side in by_side), limit, FILES,
                others=others[0], processor=shares(results),
            )  # fmt: skip


@workload("s3-get", "range of 64 MiB and of 4 KiB through the S3 API beside /files")
def s3_get(context):
    server = ready(context)
    yield from compare_with_files(context, server, "S3 GET", READS, Limit(least=0.95))
    context.stop(server)
    key = Key("reader")
    keys = write_keys(context.folder / "s3-keys", key)
    server = ready(context, environment={"ZTSERVE_S3_KEYS": str(keys)})
    yield from compare_with_files(context, server, "signed S3 GET", SIGNED_READS, fields=lambda: signed_fields(key))
    context.stop(server)


# --- aws s3 cp ---


def find_program(name, *folders):
    """Beside Python or in these folders."""
    return shutil.which(name, path=os.pathsep.join([os.path.dirname(sys.executable), *map(str, folders)]))


def find_aws():
    wanted = os.environ.get(VARIABLE)
    program = shutil.which(wanted) if wanted else find_program("aws", os.environ["PATH"])
    if not program or subprocess.run([program, "--version"], capture_output=True).returncode != 0:
        raise Skipped(f"aws is not installed ({VARIABLE} names another place)")
    return program


def copy_seconds(context, aws, source, bucket, remove=None):
    """Seconds of one `aws s3 cp` to this bucket, which is empty afterwards; remove(): deletes the copy."""
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": bucket.engine.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.engine.secret_key,
        "AWS_DEFAULT_REGION": bucket.engine.region,
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    os.sync()
    context.touch_memory(CP_BYTES * 3 // 2)
    command = [aws, "--endpoint-url", bucket.engine.endpoint, "s3", "cp", "--only-show-errors"]
    command += [source, f"s3://{bucket.name}/{COPY}"]
    taken = timed(lambda: subprocess.run(command, check=True, env=environment))
    (remove or (lambda: bucket.delete(COPY)))()
    return taken


def engine_at(endpoint):
    return SimpleNamespace(endpoint=endpoint, region="us-east-1", access_key="bench", secret_key="bench-secret")


@contextlib.contextmanager
def running_moto(program):
    port = free_port()
    process = subprocess.Popen(
        [program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + MOTO_WITHIN_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None or time.monotonic() > end:
                raise Skipped(f"{program} did not start")
            time.sleep(0.05)
        yield Bucket(engine_at(f"http://127.0.0.1:{port}"), BUCKET).make()
    finally:
        process.kill()
        process.wait()


def other_stores(context, copy):
    """Name of each other store, and what copies to it; or why it cannot be measured. A Ceph is new each time: it frees the
    memory of deleted objects minutes later."""

    def to_ceph():
        with running_store(context.sub_folder("copy-store")) as bucket:
            return copy(bucket)

    found, missing = {}, {}
    if os.environ.get("ZT_S3_ENGINE"):
        found[CEPH] = to_ceph
    else:
        missing[CEPH] = NO_STORE
    moto = find_program("moto_server", TOP / ".venv/bin")
    if moto:
        bucket = context.stack.enter_context(running_moto(moto))
        found[MOTO] = lambda: copy(bucket)
    else:
        missing[MOTO] = "moto_server is not installed"
    return found, missing


@workload("s3-copy", "aws s3 cp of 1 GiB beside the same to other stores, all processors")
def s3_copy(context):
    aws = find_aws()
    folder = context.memory_folder("copied", 3 * CP_BYTES)
    source, models = context.model(folder / "source.zt", CP_BYTES), folder / "models"
    models.mkdir()
    server = context.ztserve(models, "--writable", processors=EVERYWHERE)
    ours = Bucket(engine_at(f"http://{server.address}:{server.port}/s3"), BUCKET)

    def copy(bucket, *remove):
        return copy_seconds(context, aws, source, bucket, *remove)

    def copy_here():
        return copy(ours, lambda: ask(server, "DELETE", f"/s3/{BUCKET}/{COPY}"))

    found, missing = other_stores(context, copy)
    with context.watch() as others:
        mine, *theirs = context.alternate([copy_here, *found.values()])
    context.stop(server)
    shutil.rmtree(folder)
    speeds = [[CP_BYTES / taken for taken in side] for side in (mine, *theirs)]
    for name, speed in zip(found, speeds[1:]):
        yield Figure(
            "s3-copy", CP_ROW, "throughput", "B/s", speeds[0], speed, limit=Limit(least=0.9), beside=name, others=others[0]
        )
    for name, reason in missing.items():
        yield Figure("s3-copy", f"{CP_ROW}, against {name}", "", "", skipped=reason)


# --- parts ---


def put_parts(server, sender):
    """Seconds until all parts are acknowledged, and until the file is visible."""
    os.sync()
    sender.context.touch_memory(COMPONENTS * COMPONENT_BYTES)
    target = f"/s3/{BUCKET}/parts.zt"
    begun = time.monotonic()
    upload = f"uploadId={texts(ask(server, 'POST', target + '?uploads'), 'UploadId')[0]}"
    received, _ = send_all(
        lambda number: sender.send(server, "PUT", f"{target}?partNumber={number + 1}&{upload}", number), True
    )
    # The end of the model, after its components.
    with sender.path.open("rb") as file:
        file.seek(COMPONENTS * COMPONENT_BYTES)
        ask(server, "PUT", f"{target}?partNumber={COMPONENTS + 1}&{upload}", file.read())
    listed = ask(server, "GET", f"{target}?{upload}")
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        for number, tag in zip(texts(listed, "PartNumber"), texts(listed, "ETag"))
    )
    ask(server, "POST", f"{target}?{upload}", f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode())
    visible = time.monotonic() - begun
    ask(server, "DELETE", target)
    return received, visible


@workload("s3-parts", "8 parts of 64 MiB uploaded in parallel to the S3 API, all processors")
def s3_parts(context):
    everywhere, total = sorted(os.sched_getaffinity(0)), COMPONENTS * COMPONENT_BYTES
    folder = context.memory_folder("parts", 3 * total)
    models, sender = folder / "models", Sender(context, folder)
    models.mkdir()
    server = context.ztserve(models, "--writable", processors=EVERYWHERE)
    loops = start_loops(context, folder)
    with context.watch() as others:
        taken, by_loops, together, alone = context.alternate(
            [
                lambda: put_parts(server, sender),
                lambda: put_to_loops(loops, sender, folder),
                lambda: hashing_speed(everywhere),
                lambda: hashing_speed(everywhere[:1]),
            ]
        )
    context.stop(server, *loops)
    shutil.rmtree(folder)
    received, visible = ([total / seconds for seconds in side] for side in zip(*taken))
    looped = [total / seconds for seconds in by_loops]
    for row, ours, theirs, beside, limit in (
        (PARTS_ROW, received, together, OPENSSL, Limit(least=0.85)),
        (PARTS_ROW, received, looped, LOOPS, None),
        (f"the same by {LOOPS}", looped, together, OPENSSL, None),
        # The SHA-256 of a file is computed from its first byte to its last, so a second processor does not help.
        (f"{PARTS_ROW}, completed", visible, together, OPENSSL, None),
        (f"{PARTS_ROW}, completed", visible, alone, "openssl speed of one processor", None),
    ):
        yield Figure("s3-parts", row, "throughput", "B/s", ours, theirs, limit=limit, beside=beside, others=others[0])
