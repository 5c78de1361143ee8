"""A bucket beside the object store itself, beside a folder, and beside nginx with slices and a cache.

Needs a program that starts an object store for a test: the variable ZT_S3_ENGINE, called as `up DIR PORT --bucket NAME`,
which prints lines of KEY=VALUE (S3_ENDPOINT, S3_REGION, S3_ACCESS_KEY, S3_SECRET_KEY), and as `down DIR --wipe`."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from context import Skipped, Target, timed
from figures import Figure, Limit
from reading import compare_two, shares
from servers import free_port, memory_mib
from workload import workload

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))
from s3_client import Bucket  # noqa: E402

ENGINE = "ZT_S3_ENGINE"
NO_STORE = f"needs a program that starts an object store ({ENGINE})"
BUCKET = "models"
LARGE_BYTES = 1 << 30
RANGES = 8
COLD_ROW = "1 GiB from a bucket, cold"
HALF_ROW, HALF_BYTES = "512 MiB from a bucket, cold", 512 << 20
COLD_LEAST = 0.9
# Of what curl takes for the same bytes: both must allocate the same pages, in a page cache that may have to get them back
# from the host. Writing in pieces that are too large took up to 2.5 times as much.
COLD_COST_MOST = 1.25
CURL, S5CMD = "curl with 8 ranges into files", "s5cmd into a file"
JUDGED = (CURL, S5CMD)  # the others leave out what a server has to do
COLD_MIB = 192  # 128 MiB of blocks on their way, and the program
MODELS, MODEL_BYTES = 1000, 4096
DATA = "/v1/models/large/objects/weight/data"
EVERYWHERE = ",".join(map(str, sorted(os.sched_getaffinity(0))))
LOAD_WITHIN_S = 120
# As people set it up: slices, so that a range can be answered and kept before the whole file has come.
SLICES = """location / {{ slice 8m; proxy_cache store; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range;
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_cache_valid 200 206 1h; proxy_pass ENDPOINT; }}"""
CACHE = "proxy_cache_path {folder}/cache keys_zone=store:10m max_size=8g; proxy_buffers 16 64k;"


# --- the store ---


@contextlib.contextmanager
def running_store(folder):
    """A new store in this folder, as its bucket; both are removed afterwards."""
    program = os.environ.get(ENGINE)
    if not program:
        raise Skipped(NO_STORE)
    command = [program, "up", str(folder), str(free_port()), "--bucket", BUCKET]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Skipped(f"{program} started no object store")
    try:
        told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        told = {name: value.strip("'\"") for name, value in told.items()}
        engine = SimpleNamespace(
            endpoint=told["S3_ENDPOINT"], region=told["S3_REGION"], access_key=told["S3_ACCESS_KEY"], secret_key=told["S3_SECRET_KEY"]
        )
        yield Bucket(engine, BUCKET)
    finally:
        subprocess.run([program, "down", str(folder), "--wipe"], stdout=subprocess.DEVNULL)


def start_store(context):
    """One that all workloads share."""
    return context.stack.enter_context(running_store(context.sub_folder("store")))


def large_bucket(context):
    """The bucket and the same file in a folder; everybody may read it, since curl and nginx do not sign."""

    def make():
        bucket = context.once("store", lambda: start_store(context)).below("large")
        root = context.sub_folder("bucket-root")
        path = context.model(root / "large.zt", LARGE_BYTES)
        bucket.put("large.zt", path.read_bytes(), x_amz_acl="public-read")
        context.warm(path)
        return bucket, root

    return context.once("large-bucket", make)


def environment_of(bucket, cache):
    return {
        "ZTSERVE_S3_ENDPOINT": bucket.engine.endpoint,
        "ZTSERVE_S3_REGION": bucket.engine.region,
        "AWS_ACCESS_KEY_ID": bucket.engine.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.engine.secret_key,
        "ZTSERVE_CACHE_DIR": str(cache / "cache"),
        "ZTSERVE_STATE_DIR": str(cache / "state"),
    }


def over_bucket(context, bucket, cache, processors=None):
    cache.mkdir(exist_ok=True)
    server = context.ztserve(bucket.root, processors=processors, environment=environment_of(bucket, cache))
    end = time.monotonic() + LOAD_WITHIN_S
    while not is_loaded(context, server):
        if time.monotonic() > end:
            raise RuntimeError("the models of the bucket were not read")
        time.sleep(0.02)
    return server


def is_loaded(context, server):
    try:
        return context.fetch(server, "/readyz") is not None
    except OSError:
        return False


def empty(context, name):
    """A folder that is removed with the run; each call gives another."""
    at = context.made[name] = context.made.get(name, 0) + 1
    return context.sub_folder(f"{name}-{at}")


# --- cold ---


def address_of(bucket):
    return f"{bucket.engine.endpoint}/{bucket.name}/{bucket.prefix}large.zt"


def curl_command(bucket, outputs, length=LARGE_BYTES):
    """The store's own parallel ranged GET: one range for each output."""
    piece = length // len(outputs)
    command = ["curl", "--silent", "--no-progress-meter", "--fail", "--parallel", "--parallel-immediate"]
    command += ["--parallel-max", str(len(outputs))]
    for i, output in enumerate(outputs):
        command += ["--next"] * (i > 0) + ["--output", str(output)]
        command += ["--range", f"{i * piece}-{(i + 1) * piece - 1}", address_of(bucket)]
    return command


def s5cmd_command(bucket, output):
    command = ["s5cmd", "--log", "error", "--endpoint-url", bucket.engine.endpoint, "cp", "--concurrency", str(RANGES)]
    return [*command, "--part-size", "8", f"s3://{bucket.name}/{bucket.prefix}large.zt", str(output)]


def loop_command(context, bucket, output):
    port = bucket.engine.endpoint.rpartition(":")[2]
    path = address_of(bucket).removeprefix(bucket.engine.endpoint)
    return [str(context.build / "bench-fetch"), port, path, str(LARGE_BYTES), str(RANGES), str(output)]


def run_measured(command, bucket, length=LARGE_BYTES):
    """What bench-load says of a server, of a program that is the client itself."""
    keys = {"AWS_ACCESS_KEY_ID": bucket.engine.access_key, "AWS_SECRET_ACCESS_KEY": bucket.engine.secret_key}
    environment = {**os.environ, **keys, "AWS_REGION": bucket.engine.region}
    used = processor_seconds_of_children()
    taken = timed(lambda: subprocess.run(command, check=True, env=environment))
    return {"seconds": taken, "bytes": length, "server_seconds": processor_seconds_of_children() - used}


def processor_seconds_of_children():
    times = os.times()
    return times.children_user + times.children_system


def curl_into_files(context, bucket, length=LARGE_BYTES):
    folder = empty(context, "curl")
    result = run_measured(curl_command(bucket, [folder / str(i) for i in range(RANGES)], length), bucket, length)
    shutil.rmtree(folder)
    return result


def yardsticks_of(context, bucket):
    """Name of each client of the store, and what runs it. Thrown away: nothing is allocated, so no server that keeps the bytes
    can be as quick on the processors that the store shares with it. Into files: the same bytes, to the same place."""

    def into(name, command_of):
        folder = empty(context, name)
        result = run_measured(command_of(folder), bucket)
        shutil.rmtree(folder)
        return result

    found = {
        CURL: lambda: curl_into_files(context, bucket),
        "a loop that receives into a sparse file": lambda: into(
            "loop", lambda folder: loop_command(context, bucket, folder / "large.zt")
        ),
        "curl with 8 ranges, thrown away": lambda: run_measured(curl_command(bucket, ["/dev/null"] * RANGES), bucket),
    }
    if shutil.which("s5cmd"):
        found[S5CMD] = lambda: into("s5cmd", lambda folder: s5cmd_command(bucket, folder / "large.zt"))
    return found


def alike(context, actions):
    """The results of each action, all of which find the same memory."""

    def run(action):
        context.touch_memory(2 * LARGE_BYTES)
        return action()

    return context.alternate([lambda action=action: run(action) for action in actions])


def cold_download(context, server, target, cache, fields=()):
    result = context.load(Target(server, target, fields), requests=1)
    result["memory"] = memory_mib(server)
    context.stop(server)
    shutil.rmtree(cache, ignore_errors=True)
    return result


@workload("bucket-cold", "component of 1 GiB from a bucket, nothing cached")
def bucket_cold(context):
    bucket, _ = large_bucket(context)
    location = SLICES.replace("ENDPOINT", bucket.engine.endpoint)
    stored = f"/{bucket.name}/{bucket.prefix}large.zt"

    def ours():
        cache = empty(context, "cold")
        return cold_download(context, over_bucket(context, bucket, cache, EVERYWHERE), DATA, cache)

    def nginx():
        server = context.nginx(empty(context, "slices"), processors=EVERYWHERE, location=location, outside=CACHE)
        return cold_download(context, server, stored, server.folder)

    clients = yardsticks_of(context, bucket)
    actions = [ours, *clients.values(), nginx]
    with context.watch() as others:
        mine, *theirs = alike(context, actions)
    for name, results in zip([*clients, "nginx, slices and cache"], theirs):
        yield from compare_cold(COLD_ROW, mine, results, name, others[0])
    if S5CMD not in clients:
        yield Figure("bucket-cold", f"{COLD_ROW}, against s5cmd", "", "", skipped="s5cmd is not installed")
    memory = [result["memory"] for result in mine]
    yield Figure("bucket-cold", COLD_ROW, "memory of its own", "MiB", memory, limit=Limit(most=COLD_MIB, of="value"), others=others[0])


@workload("bucket-cold-half", "512 MiB of it, nothing cached")
def bucket_cold_half(context):
    bucket, _ = large_bucket(context)
    fields = (f"Range: bytes=0-{HALF_BYTES - 1}",)

    def ours():
        cache = empty(context, "cold")
        return cold_download(context, over_bucket(context, bucket, cache, EVERYWHERE), DATA, cache, fields)

    actions = [ours, lambda: curl_into_files(context, bucket, HALF_BYTES)]
    with context.watch() as others:
        mine, theirs = alike(context, actions)
    yield from compare_cold(HALF_ROW, mine, theirs, CURL, others[0])


def compare_cold(row, mine, theirs, name, others):
    """Figures of bytes a second, and of processor time: that of the store itself is not in it."""
    limit = Limit(least=COLD_LEAST) if name in JUDGED else None
    speeds, costs = ([[measure(result) for result in side] for side in (mine, theirs)] for measure in (speed, cost))
    yield Figure(
        "bucket-cold", row, "throughput", "B/s", *speeds, [], limit, name, others=others, processor=shares([mine, theirs])
    )
    cost_limit = Limit(most=COLD_COST_MOST) if name == CURL else None
    yield Figure(
        "bucket-cold", row, "processor seconds a GB", "s/GB", *costs, limit=cost_limit, beside=name, others=others
    )


def speed(result):
    return result["bytes"] / result["seconds"]


def cost(result):
    return result["server_seconds"] / result["bytes"] * 1e9


# --- warm ---


@workload("bucket-warm", "the same from the cache, beside a folder and beside nginx's cache")
def bucket_warm(context):
    bucket, root = large_bucket(context)
    cached = over_bucket(context, bucket, empty(context, "warm"))
    folder = context.ztserve(root)
    location = SLICES.replace("ENDPOINT", bucket.engine.endpoint)
    nginx = context.nginx(empty(context, "slices"), location=location, outside=CACHE)
    stored = f"/{bucket.name}/{bucket.prefix}large.zt"
    for server, target in ((cached, DATA), (folder, DATA), (nginx, stored)):
        context.load(Target(server, target), requests=2)
    for server in (cached, folder):
        server.settle()
    offset = json.loads(context.fetch(folder, "/v1/models/large"))["objects"]["weight"]["components"]["data"]["offset"]
    both = Limit(least=0.95)
    for what, length in (("4 KiB", 4096), ("64 MiB", 64 << 20), ("1 GiB", LARGE_BYTES)):
        ours = (f"Range: bytes=0-{length - 1}",)
        theirs = (f"Range: bytes={offset}-{offset + length - 1}",)
        row = f"{what} from a bucket, cached"
        mine = Target(cached, DATA, ours)
        yield from compare_two(context, "bucket-warm", row, mine, Target(folder, DATA, ours), (both, None), "a folder")
        beside = "nginx, slices and cache"
        yield from compare_two(context, "bucket-warm", row, mine, Target(nginx, stored, theirs), (None, None), beside)
    context.stop(cached, folder, nginx)


# --- opening ---


def samples(context, server):
    lines = context.fetch(server, "/metrics").decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


@workload("bucket-open", "opening 1,000 models of a bucket, nothing cached")
def bucket_open(context):
    bucket = context.once("store", lambda: start_store(context)).below("many")
    data = context.model(context.folder / "one.zt", MODEL_BYTES).read_bytes()
    for i in range(MODELS):
        bucket.put(f"group-{i % 10}/model-{i:04}.zt", data)
    taken, requests, fetched = [], [], []
    with context.watch() as others:
        for _ in range(context.rounds):
            begun = time.monotonic()
            server = over_bucket(context, bucket, empty(context, "open"), EVERYWHERE)
            taken.append(time.monotonic() - begun)
            counted = samples(context, server)
            requests.append(sum(n for name, n in counted.items() if name.startswith("ztserve_store_requests_total")))
            fetched.append(counted["ztserve_cache_fetched_bytes_total"])
            context.stop(server)
    row = "1,000 models of 4 KiB from a bucket"
    yield Figure("bucket-open", row, "time", "s", taken, others=others[0])
    yield Figure("bucket-open", row, "requests", "requests", requests, others=others[0])
    yield Figure("bucket-open", row, "bytes fetched", "bytes", fetched, others=others[0])
