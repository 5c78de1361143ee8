#!/usr/bin/env python3
"""Counts what a request costs the server on its five hottest paths: instructions (callgrind), allocations and system calls
(strace). Counts, unlike times, are the same on a busy machine, so that tests can compare them with hot_paths.json.

  tests/costs/hot_paths.py                 prints them beside the figures in hot_paths.json
  tests/costs/hot_paths.py --functions     and the functions that most instructions belong to
  tests/costs/hot_paths.py --update        writes them into hot_paths.json, for this compiler and libmicrohttpd

ZTSERVE names the program (default: build/ztserve), which must be an optimised build. A count of instructions is the
difference between a long and a short run of requests on one kept connection, divided by the number of requests, so that
nothing else is in it.
"""

import argparse
import collections
import json
import os
import platform
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from callgrind_file import Counts  # noqa: E402
from server_process import PROGRAM, ServerProcess  # noqa: E402

FIGURES = HERE / "hot_paths.json"
WARMING = 50  # requests before counting: what is done once is done by then
SHORT = 100
LONG = 600
ANSWER_S = 60
ALLOCATIONS = re.compile(r"(mi_|je_)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign)(@.*)?")
# One loop, one worker. Outside the sandbox, which valgrind cannot start in.
SETTINGS = {"ZTSERVE_SANDBOX": "false", "ZTSERVE_WORKERS": "1", "ZTSERVE_THREADS": "1", "ZTSERVE_LOG_LEVEL": "warn"}
# libc has several versions of memset, strlen and the like, and takes the best for the processor: here always the one for
# any x86-64, without repeated instructions, of which one would count as thousands.
NO_REPEAT = 1 << 30  # bytes
ANY_PROCESSOR = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-ERMS,-AVX_Fast_Unaligned_Load,-SSE4_2,-BMI2"
    f":glibc.cpu.x86_rep_movsb_threshold={NO_REPEAT}:glibc.cpu.x86_rep_stosb_threshold={NO_REPEAT}"
}
MARK = "/healthz"  # separates runs in what strace writes


TENSORS = {"small": 1 << 10, "large": 1 << 19}  # bytes
OBJECTS = "/v1/models/m/objects"
# Name: target, field, status, bytes of body (None: not checked). All are answered by one thread alone: where several take
# turns, counts would depend on which is first.
PATHS = {
    "manifest": ("/v1/models/m", None, 200, None),
    "manifest, 304": ("/v1/models/m", "If-None-Match: {tag}", 304, 0),
    "range of 4 KiB": (f"{OBJECTS}/large/data", "Range: bytes=4096-8191", 206, 4096),
    "component of 1 KiB": (f"{OBJECTS}/small/data", None, 200, 1024),
    "range of 64 KiB": (f"{OBJECTS}/large/data", "Range: bytes=65536-131071", 206, 65536),
}


class Client:
    """A kept connection; the server must not end it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.turn = 0

    def _receive(self):
        received = self.socket.recv(1 << 20)
        if not received:
            raise RuntimeError("the server ended a connection that should be kept")
        return received

    def ask(self, target, field=None):
        """(status, header, body)"""
        # No two requests are the same: how often an answer is given again depends on the time, which a count must not.
        self.turn += 1
        lines = [f"GET {target} HTTP/1.1", "Host: costs", f"X-Turn: {self.turn:08}", *([field] if field else []), "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        header, body = received.split(b"\r\n\r\n", 1)
        status = int(header.split()[1])
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", header)
        while status != 304 and len(body) < int(length[1]):
            body += self._receive()
        return status, header, body

    def repeat(self, name, count):
        target, field, status, body_bytes = PATHS[name]
        if field:
            field = field.format(tag=re.search(rb'(?i)\r\netag: (\S+)', self.ask("/v1/models/m")[1])[1].decode())
        for _ in range(count):
            got, _, body = self.ask(target, field)
            if got != status or (body_bytes is not None and len(body) != body_bytes):
                raise RuntimeError(f"{name}: answered {got} with {len(body)} bytes")


def write_model(folder):
    """A zTensor file with digests of its components."""
    head, data = {}, b""
    for name, length in TENSORS.items():
        head[name] = {"dtype": "U8", "shape": [length], "data_offsets": [len(data), len(data) + length]}
        data += bytes(range(256)) * (length // 256)
    head = json.dumps(head).encode()
    source = folder / "source.safetensors"
    source.write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "root").mkdir()
    command = [PROGRAM, "convert", source, folder / "root" / "m.zt"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return folder / "root"


# --- instructions and allocations ---


class Callgrind:
    def __init__(self, root, folder, settings):
        self.folder = folder
        self.prefix = f"--vgdb-prefix={folder}/vgdb"
        launcher = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", f"--log-file={folder}/log"]
        environment = {**settings, **ANY_PROCESSOR}
        self.server = ServerProcess(root, environment=environment, launcher=[*launcher, self.prefix])

    def take(self):
        """Counts since the last time."""
        command = ["vgdb", self.prefix, f"--pid={self.server.process.pid}", "dump"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"vgdb: {done.stderr}")
        newest = max(self.folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))
        return Counts(newest.read_text())

    def count(self, client, name):
        client.repeat(name, WARMING)
        self.take()
        client.repeat(name, SHORT)
        short = self.take()
        client.repeat(name, LONG)
        return self.take().less(short)


def by_object(counts):
    """Instructions a request of each program or library that takes part."""
    sums = collections.Counter()
    for (place, _), count in counts.instructions.items():
        sums[place.split(".so")[0]] += count / (LONG - SHORT)
    return {place: round(count) for place, count in sorted(sums.items()) if count >= 100}


def allocations(counts):
    made = sum(count for name, count in counts.calls.items() if ALLOCATIONS.fullmatch(name))
    return round(made / (LONG - SHORT), 2)


def count_instructions(root, folder, names=tuple(PATHS), settings=SETTINGS):
    """Counts of each path."""
    callgrind = Callgrind(root, folder, settings)
    try:
        client = Client(callgrind.server.port)
        counts = {name: callgrind.count(client, name) for name in names}
        if callgrind.server.stop() != 0:
            raise RuntimeError(f"the server failed under valgrind:\n{callgrind.server.log}")
    finally:
        if callgrind.server.process.poll() is None:
            callgrind.server.kill()
    return counts


# --- system calls ---


def traced_process(tracer):
    (process,) = Path(f"/proc/{tracer}/task/{tracer}/children").read_text().split()
    return int(process)


def read_trace(path):
    """For each run between two marks a counter for each request, of system calls of the thread that answers."""
    runs, answering = [], None
    for line in path.read_text(errors="replace").splitlines():
        if f'"GET {MARK} ' in line:
            answering = line.split()[0]
            runs.append([])
        elif runs and (call := re.match(r"(\d+) +(\w+)\(", line)) and call[1] == answering:
            if call[2] == "recvfrom":
                runs[-1].append(collections.Counter())
            if runs[-1]:
                runs[-1][-1][call[2]] += 1
    return runs


def usual(requests):
    """The mean of each system call without the tenth of requests with most and the tenth with fewest: what is done every so
    many seconds is more for each request the slower the machine is."""
    cut = len(requests) // 10
    means = {}
    for call in sorted(set().union(*requests)):
        counts = sorted(request[call] for request in requests)[cut:-cut]
        means[call] = sum(counts) / len(counts)
    return means


def count_system_calls(root, folder, names=tuple(PATHS), settings=SETTINGS):
    trace = folder / "trace"
    server = ServerProcess(root, environment=settings, launcher=["strace", "-f", "-o", trace])
    # strace ignores the signal that would stop the server.
    process = traced_process(server.process.pid)
    try:
        client = Client(server.port)
        for name in names:
            client.repeat(name, WARMING)
            for count in (SHORT, LONG):
                client.ask(MARK)
                client.repeat(name, count)
            client.ask(MARK)
        os.kill(process, signal.SIGTERM)
        if server.wait() != 0:
            raise RuntimeError(f"the server failed under strace:\n{server.log}")
    finally:
        if server.process.poll() is None:
            os.kill(process, signal.SIGKILL)
            server.wait()
    runs = read_trace(trace)
    # Each path has three marks; the third run is the warming of the next one.
    counts = {name: usual(runs[3 * i + 1]) for i, name in enumerate(names)}
    return {name: {call: round(n, 2) for call, n in calls.items() if n >= 0.05} for name, calls in counts.items()}


# --- figures ---


def build_name():
    """What the figures depend on, besides the server itself."""
    program = PROGRAM.read_bytes()
    found = re.search(rb"(clang) version (\d+)", program) or re.search(rb"(GCC): \([^)]*\) (\d+)", program)
    compiler = f"{found[1].decode().lower()} {found[2].decode()}" if found else "unknown compiler"
    command = ["pkg-config", "--modversion", "libmicrohttpd"]
    library = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"{compiler}, libmicrohttpd {library}, {platform.machine()}"


def figures_of(counts, calls):
    return {
        name: {"instructions": by_object(counts[name]), "allocations": allocations(counts[name]), "system calls": calls[name]}
        for name in counts
    }


def measure_bucket(bucket, names):
    """The figures of paths to the same model in a bucket, whose bytes are in the cache."""
    with tempfile.TemporaryDirectory(prefix="costs.") as scratch:
        folder = Path(scratch)
        bucket.put("m.zt", (write_model(folder) / "m.zt").read_bytes())
        # Nobody looks at the bucket meanwhile.
        settings = {**SETTINGS, **bucket.engine.environment, "ZTSERVE_S3_POLL_S": "3600"}
        settings |= {"ZTSERVE_CACHE_DIR": str(folder / "cache"), "ZTSERVE_STATE_DIR": str(folder / "state")}
        wait_for_model(bucket.root, settings)
        counts = count_instructions(bucket.root, folder, names, settings)
        return figures_of(counts, count_system_calls(bucket.root, folder, names, settings))


def wait_for_model(root, settings):
    """Starts a server until it has the model, and brings all of it: later ones know it from the start."""
    server = ServerProcess(root, environment=settings)
    try:
        end = time.monotonic() + ANSWER_S
        while Client(server.port).ask(f"{OBJECTS}/large/data")[0] != 200:
            if time.monotonic() > end:
                raise RuntimeError("the model of the bucket was not served")
            time.sleep(0.1)
    finally:
        server.stop()


def measure():
    """(figures of each path, Counts of each path)"""
    with tempfile.TemporaryDirectory(prefix="costs.") as scratch:
        folder = Path(scratch)
        root = write_model(folder)
        counts = count_instructions(root, folder)
        calls = count_system_calls(root, folder)
    figures = figures_of(counts, calls)
    return figures, counts


def recorded():
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def print_functions(counts, most=15):
    for (place, function), count in counts.instructions.most_common(most):
        print(f"  {count / (LONG - SHORT):8.0f}  {function} ({place})")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--update", action="store_true")
    options.add_argument("--functions", action="store_true")
    chosen = options.parse_args()
    figures, counts = measure()
    known, build = recorded(), build_name()
    print(build)
    for name, figure in figures.items():
        print(f"{name}\n  now    {json.dumps(figure)}\n  figure {json.dumps(known.get(build, {}).get(name))}")
        if chosen.functions:
            print_functions(counts[name])
    if chosen.update:
        FIGURES.write_text(json.dumps({**known, build: figures}, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
