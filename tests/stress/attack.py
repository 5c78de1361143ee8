#!/usr/bin/env python3
"""Many clients that mean no good, beside one that does: measures what the latter notices, and what the server needs.

    tests/stress/attack.py [idle|readers|mixed|slowhttptest]…     all of them without arguments

  idle          10,000 connections that made one request and then stay open
  readers       500 clients that take 64 MiB at a few KB a second
  mixed         100,000 requests of several kinds over kept connections
  slowhttptest  the four attacks of the Debian package of that name, with 1,000 connections each

Exits with 1 if a bound does not hold. Needs the Python packages of tests/requirements.txt and as many descriptors.
"""

import re
import resource
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "http")]

from containers import dense, pattern, zstd_dense, zt1  # noqa: E402
from server_process import ServerProcess  # noqa: E402

MIB = 1 << 20
IDLE = 10_000
IDLE_RSS_MB = 200
READERS = 500
READERS_P99_MS = 100
MIXED = 100_000
MIXED_GROWTH_MIB = 8
ATTACKERS = 1000
ATTACK_S = 20

ATTACKS = {
    "slow headers": ["-H", "-i", "5"],
    "slow bodies": ["-B", "-i", "5", "-s", "8192", "-t", "PUT"],
    "ranges": ["-R", "-a", "5", "-b", "3000"],
    "slow readers": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "1"],
}


def request(target, *fields):
    return "\r\n".join((f"GET {target} HTTP/1.1", "Host: localhost", *fields, "", "")).encode()


class Client:
    """One kept connection."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, server.port), timeout=60)
        self.begun = b""

    def ask(self, data):
        """Status and body of the answer."""
        self.socket.sendall(data)
        while b"\r\n\r\n" not in self.begun:
            self.begun += self.receive()
        head, body = self.begun.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        missing = int(length[1]) if length else 0
        while len(body) < missing:
            body += self.receive()
        self.begun = body[missing:]
        return int(head[9:12]), body[:missing]

    def receive(self):
        piece = self.socket.recv(MIB)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        return piece


def memory_mib(server, *parts):
    """Resident memory that is the server's own: the models that it has mapped are the page cache's."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return sum(int(re.search(rf"{part}:\s+(\d+)", status)[1]) for part in parts or ("RssAnon", "RssShmem")) / 1024


def threads_and_descriptors(server):
    folder = Path(f"/proc/{server.process.pid}")
    return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))


def latencies_ms(server, count=2000, target="/v1/models/m"):
    client = Client(server)
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        status, _ = client.ask(request(target))
        taken.append((time.perf_counter() - began) * 1000)
        assert status == 200, status
    return taken


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def report(name, text, holds):
    print(f"{name}: {text}: {'ok' if holds else 'TOO MUCH'}", flush=True)
    return holds


def idle(server):
    before = memory_mib(server, "VmRSS")
    clients = []
    # The limit of connections is as high, and the other client needs one.
    while len(clients) < IDLE - 1:
        clients.append(Client(server))
        assert clients[-1].ask(request("/v1/models/m"))[0] == 200
    taken = latencies_ms(server)
    # This part of the test reads nothing of the models.
    rss = memory_mib(server, "VmRSS")
    text = f"{len(clients)} connections: {before:.0f} MiB before, {rss:.0f} MiB now; p99 of another {p99(taken):.2f} ms"
    are_open = all(one.ask(request("/healthz"))[0] == 200 for one in clients[::100])
    holds = report("idle", text, rss * MIB < IDLE_RSS_MB * 1_000_000 and are_open)
    for client in clients:
        client.socket.close()
    return holds


def trickle(server, count, stop):
    """Connections that take about 4 KB a second each, of which the answer would be 64 MiB."""
    selector = selectors.DefaultSelector()
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((server.host, server.port))
        one.sendall(request("/v1/models/m/objects/big/data"))
        selector.register(one, selectors.EVENT_READ)
    while not stop.wait(0.25):
        for key, _ in selector.select(0):
            key.fileobj.recv(1024)
    for key in list(selector.get_map().values()):
        key.fileobj.close()


def readers(server):
    alone = latencies_ms(server)
    stop = threading.Event()
    thread = threading.Thread(target=trickle, args=(server, READERS, stop))
    thread.start()
    time.sleep(5)
    beside = latencies_ms(server)
    text = f"p50 {statistics.median(beside):.2f} ms, p99 {p99(beside):.2f} ms beside {READERS}"
    text += f" (alone {statistics.median(alone):.2f} and {p99(alone):.2f} ms); {memory_mib(server):.0f} MiB"
    stop.set()
    thread.join()
    return report("readers", text, p99(beside) < READERS_P99_MS)


KINDS = [
    request("/v1/models"),
    request("/v1/models/m"),
    request("/v1/models/m?match=w&fields=shape"),
    request("/v1/models/m/objects/w/data"),
    request("/v1/models/m/objects/w/data", "Range: bytes=0-9,100-109"),
    request("/v1/models/m/objects/w/data?slice=5:500"),
    request("/v1/models/m/objects/z/data"),
    request("/v1/models/m/export?format=npz&match=w"),
    request("/v1/models/none"),
    request("/nowhere"),
    request("/healthz", "Accept-Encoding: zstd"),
]


def send_mixed(server, count):
    def run(first):
        client = Client(server)
        for index in range(count // 8):
            if index % 100 == 99:
                client.socket.close()
                client = Client(server)
            client.ask(KINDS[(first + index) % len(KINDS)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))


def mixed(server):
    send_mixed(server, MIXED // 5)
    first = memory_mib(server), threads_and_descriptors(server)
    send_mixed(server, MIXED - MIXED // 5)
    last = memory_mib(server), threads_and_descriptors(server)
    text = f"{first[0]:.1f} MiB after {MIXED // 5} requests, {last[0]:.1f} MiB after {MIXED}"
    text += f"; threads and descriptors {first[1]} and {last[1]}"
    return report("mixed", text, last[0] - first[0] < MIXED_GROWTH_MIB and last[1][0] == first[1][0])


def run_slowhttptest(server, options):
    target = server.url + ("/v1/models/slow" if "PUT" in options else "/v1/models/m/objects/big/data")
    command = ["slowhttptest", "-c", str(ATTACKERS), "-r", "200", "-l", str(ATTACK_S), "-p", "5", "-u", target]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


def slowhttptest(server):
    if shutil.which("slowhttptest") is None:
        print("slowhttptest: not installed: skipped")
        return True
    holds = True
    for name, options in ATTACKS.items():
        with ThreadPoolExecutor(1) as pool:
            attack = pool.submit(run_slowhttptest, server, options)
            taken = []
            while not attack.done():
                taken += latencies_ms(server, 200)
            output = re.sub(r"\x1b\[[0-9;]*m", "", attack.result().stdout + attack.result().stderr)
        available = re.findall(r"service available:\s+(\w+)", output)
        text = f"{name}: {len(taken)} answers meanwhile, p99 {p99(taken):.2f} ms, {memory_mib(server):.0f} MiB"
        holds = report("slowhttptest", text, available != [] and set(available) == {"YES"}) and holds
    return holds


def main():
    wanted = sys.argv[1:] or ["idle", "readers", "mixed", "slowhttptest"]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    holds = True
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            objects = {"w": dense(pattern(1000)), "big": dense(pattern(64 * MIB)), "z": zstd_dense(pattern(100_000))}
            (Path(folder) / "m.zt").write_bytes(zt1(objects))
            server = ServerProcess(folder, "--writable", "--log-level", "warn")
            try:
                holds = globals()[name](server) and holds
            finally:
                status = server.stop()
            holds = report(name, f"exit status {status}", status == 0) and holds
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
