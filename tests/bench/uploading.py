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
COMPONENT_BYTES = 64 << 20
SEND_BYTES = 1 << 20
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
    """This thread on one processor meanwhile."""

    def __init__(self, processor):
        self.processor = processor

    def __enter__(self):
        self.before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.processor})

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


# --- a whole file ---


def put_seconds(context, server, target, source, remove):
    """Seconds until the answer, and the server's processor seconds. What earlier runs wrote is on the disk before."""
    os.sync()
    before = server.processor_seconds()
    with pinned_here(context.processor):
        taken = timed(lambda: put_file(server, target, source))
    used = server.processor_seconds() - before
    remove()
    return taken, used


@workload("upload", "PUT of 1 GiB beside nginx's dav module, everything on one processor")
def upload(context):
    folder = context.memory_folder("uploads", 2 * WHOLE_BYTES)
    source = context.model(folder / "source.zt", WHOLE_BYTES)
    models, files = folder / "models", folder / "dav"
    models.mkdir()
    files.mkdir()
    context.warm(source)
    ztserve = context.ztserve(models, "--writable")
    plain = context.nginx(files, location=DAV)
    tuned, second = (context.nginx(files, location=DAV + "client_body_buffer_size 1m; ") for _ in range(2))
    bare = context.start(lambda: Yardstick(context.processor, context.build / "bench-receive", files / "whole.zt"))
    remove = (files / "whole.zt").unlink
    actions = [
        lambda: put_seconds(
            context, ztserve, "/v1/models/whole", source, lambda: ask(ztserve, "DELETE", "/v1/models/whole")
        ),
        *(
            lambda server=server: put_seconds(context, server, "/whole.zt", source, remove)
            for server in (plain, tuned, second, bare)
        ),
    ]
    with context.watch() as others:
        results = context.alternate(actions)
    context.stop(ztserve, plain, tuned, second, bare)
    shutil.rmtree(folder)
    speeds = [[WHOLE_BYTES / taken for taken, _ in side] for side in results]
    costs = [[used / WHOLE_BYTES * 1e9 for _, used in side] for side in results]
    row = "PUT of 1 GiB, hashed and validated"
    for which, name, least, check in ((1, "nginx as installed", 1.1, []), (2, "nginx, 1 MiB buffer", 0.65, speeds[3])):
        yield Figure(
            "upload", row, "throughput", "B/s", speeds[0], speeds[which], check, Limit(least=least), name, others=others[0]
        )
        yield Figure("upload", row, "processor seconds a GB", "s/GB", costs[0], costs[which], beside=name, others=others[0])
    # What nobody can do better who hashes what comes in: these rows say how far a threshold is within reach.
    name, least = "a loop that receives, hashes and writes", "the same by such a loop"
    yield Figure("upload", row, "throughput", "B/s", speeds[0], speeds[4], beside=name, others=others[0])
    yield Figure("upload", least, "throughput", "B/s", speeds[4], speeds[1], beside="nginx as installed", others=others[0])


# --- components ---


def hashing_speed(processors):
    """SHA-256 in bytes per second by openssl, one process for each of these processors."""
    command = ["openssl", "speed", "-multi", str(len(processors)), "-seconds", "1", "-bytes", "262144", "-evp", "sha256"]
    listed = ",".join(map(str, processors))
    result = subprocess.run([*pinned(listed), *command], capture_output=True, text=True, check=True)
    return float(result.stdout.split()[-1].rstrip("k")) * 1000


class Pattern:
    """A component's bytes, generated while they are sent; no piece occurs twice."""

    block = bytearray(os.urandom(SEND_BYTES))

    def __init__(self, component, length):
        self.component, self.length = component, length

    def send(self, connection):
        piece = bytearray(Pattern.block)
        for at in range(0, self.length, SEND_BYTES):
            piece[:16] = self.component.to_bytes(8, "little") + at.to_bytes(8, "little")
            connection.sendall(memoryview(piece)[: self.length - at])


def put_component(server, place, number, failures):
    target = f"{place}/objects/weight{number}/data?dtype=u8&shape={COMPONENT_BYTES}"
    try:
        ask(server, "PUT", target, send_body=Pattern(number, COMPONENT_BYTES).send, length=COMPONENT_BYTES)
    except (OSError, RuntimeError) as failure:
        failures.append(failure)


def put_components(server, at_once):
    """Seconds for all components, with an upload of their own that is then thrown away; the processor seconds of server
    and client together, since they share the processors."""
    os.sync()
    answer = ask(server, "POST", "/v1/models/streamed/uploads", b"{}")
    place, failures = "/v1/uploads/" + json.loads(answer)["id"], []
    used, begun = server.processor_seconds() + time.process_time(), time.monotonic()
    threads = [
        threading.Thread(target=put_component, args=(server, place, number, failures)) for number in range(COMPONENTS)
    ]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - begun
    used = server.processor_seconds() + time.process_time() - used
    ask(server, "DELETE", place)
    if failures:
        raise failures[0]
    return taken, used


@workload("components", "8 components of 64 MiB uploaded in parallel, all processors")
def components(context):
    everywhere = sorted(os.sched_getaffinity(0))
    models = context.memory_folder("streamed", COMPONENTS * COMPONENT_BYTES)
    server = context.ztserve(models, "--writable", processors=",".join(map(str, everywhere)))
    with context.watch() as others:
        serial, parallel, speed = context.alternate(
            [
                lambda: put_components(server, False),
                lambda: put_components(server, True),
                lambda: hashing_speed(everywhere),
            ]
        )
    context.stop(server)
    shutil.rmtree(models)
    total = COMPONENTS * COMPONENT_BYTES
    ours, alone = ([total / taken for taken, _ in side] for side in (parallel, serial))
    # Receiving, hashing and writing one component overlap, so that one upload alone keeps more than a processor busy. At once
    # there is only to be gained what rests then: judged is what share of it is reached.
    bound = [total / (used / len(everywhere)) for _, used in serial]
    row, options = "8 components of 64 MiB at once", {"others": others[0]}
    yield Figure("components", row, "throughput", "B/s", ours, alone, beside="one after another", **options)
    yield Figure(
        "components", row, "throughput", "B/s", ours, bound, limit=Limit(least=0.8),
        beside="one after another, had no processor rested", **options,
    )  # fmt: skip
    yield Figure("components", row, "throughput", "B/s", ours, speed, beside="openssl speed -multi", **options)
