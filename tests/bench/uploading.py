"""Uploads: a whole file beside nginx's dav module, everything on one processor; components in parallel."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time

from context import timed
from figures import Figure, Limit
from servers import Yardstick, pinned
from workload import workload

WHOLE_BYTES = 1 << 30
COMPONENTS = 8
LOOPS = "8 loops that receive, hash and write"
COMPONENT_BYTES = 64 << 20
DAV = "dav_methods PUT; "


# --- a client ---


def exchange(server, method, target, send_body, length):
    """One request on a connection of its own; the answer's status and body."""
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection((server.address, server.port)) as connection:
        connection.sendall(head.encode())
        send_body(connection)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def ask(server, method, target, body=b"", send_body=None, length=None):
    send_body = send_body or (lambda connection: connection.sendall(body))
    status, answer = exchange(server, method, target, send_body, len(body) if length is None else length)
    if status not in (200, 201, 204):
        raise RuntimeError(f"{method} {target}: {status} {answer.decode(errors='replace')}")
    return answer


def put_file(server, target, path):
    """Sent from the page cache, so that the client takes little processor time."""

    def send_body(connection):
        with open(path, "rb") as file:
            connection.sendfile(file)

    ask(server, "PUT", target, send_body=send_body, length=path.stat().st_size)


class pinned_here:
    """This thread on these processors meanwhile."""

    def __init__(self, processors):
        self.processors = processors

    def __enter__(self):
        self.before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.processors)

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


# --- a whole file ---

ROW = "PUT of 1 GiB, hashed and validated"
INSTALLED, TUNED, LOOP = "nginx as installed", "nginx, 1 MiB buffer", "a loop that receives, hashes and writes"


def put_seconds(context, processors, server, target, source, remove):
    """Seconds until the answer, and the server's processor seconds. What earlier runs wrote is on the disk before."""
    os.sync()
    context.touch_memory(WHOLE_BYTES * 3 // 2)
    before = server.processor_seconds()
    with pinned_here(processors):
        taken = timed(lambda: put_file(server, target, source))
    used = server.processor_seconds() - before
    remove()
    return taken, used


def speeds_and_costs(results):
    """Of each side: bytes a second, and the server's processor seconds a GB."""
    speeds = [[WHOLE_BYTES / taken for taken, _ in side] for side in results]
    return speeds, [[used / WHOLE_BYTES * 1e9 for _, used in side] for side in results]


class Uploads:
    """A file to upload, and folders in memory for servers on the same processors as the client."""

    def __init__(self, context):
        self.context = context
        self.folder = context.memory_folder("uploads", 3 * WHOLE_BYTES)
        self.source = context.model(self.folder / "source.zt", WHOLE_BYTES)
        self.files = self.folder / "dav"
        self.files.mkdir()

    def to_ztserve(self, processors):
        models = self.folder / f"models-{len(processors)}"
        models.mkdir()
        server = self.context.ztserve(models, "--writable", processors=joined(processors))
        target = "/v1/models/whole"
        return lambda: put_seconds(self.context, processors, server, target, self.source, lambda: ask(server, "DELETE", target))

    def to_file(self, processors, server):
        remove = (self.files / "whole.zt").unlink
        return lambda: put_seconds(self.context, processors, server, "/whole.zt", self.source, remove)

    def to_nginx(self, processors, options=""):
        return self.to_file(processors, self.context.nginx(self.files, processors=joined(processors), location=DAV + options))

    def to_loop(self, processor):
        command = self.context.build / "bench-receive", self.files / "whole.zt"
        return self.to_file([processor], self.context.start(lambda: Yardstick(processor, *command)))


def joined(processors):
    return ",".join(map(str, processors))


@workload("upload", "PUT of 1 GiB beside nginx's dav module, server and client on one processor, then on two")
def upload(context):
    uploads, tuned = Uploads(context), "client_body_buffer_size 1m; "
    one, both = [context.processor], [context.processor, context.client_processor]
    alone = [uploads.to_ztserve(one), *(uploads.to_nginx(one, options) for options in ("", tuned, tuned)), uploads.to_loop(one[0])]
    together = [uploads.to_ztserve(both), *(uploads.to_nginx(both, options) for options in (tuned, tuned))]
    with context.watch() as others:
        results = context.alternate(alone)
    yield from on_one_processor(results, others[0])
    with context.watch() as others:
        results = context.alternate(together)
    (ours, theirs, check), costs = speeds_and_costs(results)
    row, options = f"{ROW}, two processors", {"beside": TUNED, "others": others[0]}
    yield Figure("upload", row, "throughput", "B/s", ours, theirs, check, Limit(least=1.0), **options)
    yield Figure("upload", row, "processor seconds a GB", "s/GB", costs[0], costs[1], **options)
    shutil.rmtree(uploads.folder)


def on_one_processor(results, others):
    (ours, installed, tuned, check, loop), costs = speeds_and_costs(results)
    row = f"{ROW}, one processor"
    for theirs, cost, name, least, checked in (
        (installed, costs[1], INSTALLED, 1.1, []),
        (tuned, costs[2], TUNED, 0.75, check),
    ):
        yield Figure("upload", row, "throughput", "B/s", ours, theirs, checked, Limit(least=least), name, others=others)
        yield Figure("upload", row, "processor seconds a GB", "s/GB", costs[0], cost, beside=name, others=others)
    # What nobody can do better who hashes with OpenSSL what comes in: how far a threshold is within reach.
    yield Figure("upload", row, "throughput", "B/s", ours, loop, beside=LOOP, others=others)
    yield Figure("upload", "the same by such a loop", "throughput", "B/s", loop, tuned, beside=TUNED, others=others)


# --- components ---


def hashing_speed(processors):
    """SHA-256 in bytes per second by openssl, one process for each of these processors."""
    command = ["openssl", "speed", "-seconds", "1", "-bytes", "262144", "-evp", "sha256"]
    if len(processors) > 1:
        command[2:2] = ["-multi", str(len(processors))]
    result = subprocess.run([*pinned(joined(processors)), *command], capture_output=True, text=True, check=True)
    return float(result.stdout.split()[-1].rstrip("k")) * 1000


class Sender:
    """Sends every component from a file of all of them in the page cache."""

    def __init__(self, context, folder):
        self.context = context
        self.path = context.model(folder / "components", COMPONENT_BYTES, COMPONENTS)

    def send(self, server, method, target, number):
        def send_body(connection):
            with self.path.open("rb") as file:
                connection.sendfile(file, number * COMPONENT_BYTES, COMPONENT_BYTES)

        ask(server, method, target, send_body=send_body, length=COMPONENT_BYTES)


def send_all(send_one, at_once):
    """Sends each component on a connection of its own; send_one(number). Seconds, and the client's processor seconds."""
    failures = []

    def send(number):
        try:
            send_one(number)
        except (OSError, RuntimeError) as failure:
            failures.append(failure)

    used, begun = time.process_time(), time.monotonic()
    threads = [threading.Thread(target=send, args=(number,)) for number in range(COMPONENTS)]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - begun, time.process_time() - used


def put_components(server, sender, at_once):
    """Seconds for all components, with an upload of their own that is then thrown away; the processor seconds of server
    and client together, since they share the processors."""
    os.sync()
    sender.context.touch_memory(COMPONENTS * COMPONENT_BYTES)
    place = "/v1/uploads/" + json.loads(ask(server, "POST", "/v1/models/streamed/uploads", b"{}"))["id"]
    before = server.processor_seconds()
    form = f"dtype=u8&shape={COMPONENT_BYTES}"
    taken, used = send_all(
        lambda number: sender.send(server, "PUT", f"{place}/objects/weight{number}/data?{form}", number), at_once
    )
    used += server.processor_seconds() - before
    ask(server, "DELETE", place)
    return taken, used


def start_loops(context, folder):
    """For each component a program that receives, hashes and writes, anywhere."""
    everywhere, program = joined(sorted(os.sched_getaffinity(0))), context.build / "bench-receive"
    return [
        context.start(lambda number=number: Yardstick(everywhere, program, folder / f"loop-{number}"))
        for number in range(COMPONENTS)
    ]


def put_to_loops(loops, sender, folder):
    sender.context.touch_memory(COMPONENTS * COMPONENT_BYTES)
    taken, _ = send_all(lambda number: sender.send(loops[number], "PUT", "/", number), True)
    for number in range(COMPONENTS):
        (folder / f"loop-{number}").unlink()
    return taken


@workload("components", "8 components of 64 MiB uploaded in parallel, all processors")
def components(context):
    everywhere = sorted(os.sched_getaffinity(0))
    total = COMPONENTS * COMPONENT_BYTES
    folder = context.memory_folder("streamed", 3 * total)
    models, sender = folder / "models", Sender(context, folder)
    models.mkdir()
    server = context.ztserve(models, "--writable", processors=joined(everywhere))
    loops = start_loops(context, folder)
    with context.watch() as others:
        serial, parallel, by_loops, speed = context.alternate(
            [
                lambda: put_components(server, sender, False),
                lambda: put_components(server, sender, True),
                lambda: put_to_loops(loops, sender, folder),
                lambda: hashing_speed(everywhere),
            ]
        )
    context.stop(server, *loops)
    shutil.rmtree(folder)
    ours, alone = ([total / taken for taken, _ in side] for side in (parallel, serial))
    # Receiving, hashing and writing one component overlap, so that one upload alone keeps more than a processor busy. At once
    # there is only to be gained what rests then: judged is what share of it is reached.
    bound = [total / (used / len(everywhere)) for _, used in serial]
    row, options = "8 components of 64 MiB at once", {"others": others[0]}
    # OpenSSL's rate, not that of our own hashing of two messages at once: a yardstick that others can run.
    yield Figure(
        "components", row, "throughput", "B/s", ours, speed, limit=Limit(least=0.9), beside="openssl speed -multi", **options
    )
    yield Figure("components", row, "throughput", "B/s", ours, alone, beside="one after another", **options)
    yield Figure(
        "components", row, "throughput", "B/s", ours, bound, limit=Limit(least=0.8),
        beside="one after another, had no processor rested", **options,
    )  # fmt: skip
    received = [total / taken for taken in by_loops]
    yield Figure("components", row, "throughput", "B/s", ours, received, beside=LOOPS, **options)
