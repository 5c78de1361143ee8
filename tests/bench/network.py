"""Bulk to a peer that is not on loopback: two network namespaces and a veth pair.

Which of the two processors does the kernel's work of sending is decided anew with each connection, by acknowledgements,
the timers of pacing and who is ahead, and may change the server's own share by a factor of four. So each round consists of
several short measurements with new connections, and beside the server's own time that of both sides is judged."""

import os
import shutil
import subprocess
from dataclasses import dataclass

from context import Skipped, Target
from figures import Figure, Limit
from reading import range_sides, servers, shares
from workload import workload

# The network that RFC 2544 sets aside for benchmarks.
SERVER, CLIENT = "198.18.0.1", "198.18.0.2"
CONNECTIONS = 16
LENGTH = 64 << 20
# Here the threads of the kernel send and receive for the server whenever there is too much of it for the time of others.
OWN = ("server_seconds", "kernel_seconds")
BOTH = (*OWN, "client_seconds")
# Measurements with new connections in a round.
REPEATS = 5


class Network:
    """Two namespaces joined by a veth pair; removed by stop()."""

    def __init__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise Skipped("network namespaces need root and the program ip")
        self.names = [f"bench-{os.getpid()}-{side}" for side in ("server", "client")]
        try:
            self._make()
        except Skipped:
            self.stop()
            raise

    def _make(self):
        for name, address in zip(self.names, (SERVER, CLIENT)):
            self._ip("netns", "add", name)
            self._ip("-n", name, "link", "set", "lo", "up")
        server, client = self.names
        self._ip("-n", server, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", client)
        for name, address in zip(self.names, (SERVER, CLIENT)):
            self._ip("-n", name, "address", "add", f"{address}/30", "dev", "v0")
            self._ip("-n", name, "link", "set", "v0", "up")

    def limit(self, bytes_s):
        """What the server sends is let through at this rate."""
        bucket = ["rate", f"{bytes_s * 8}", "burst", "1mb", "latency", "50ms"]
        self._run("tc", "-n", self.names[0], "qdisc", "add", "dev", "v0", "root", "tbf", *bucket)

    @staticmethod
    def _run(*command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Skipped(f"no network namespaces here: {' '.join(command)}: {result.stderr.strip()}")

    def _ip(self, *arguments):
        self._run("ip", *arguments)

    def launcher(self, side):
        return ["ip", "netns", "exec", self.names[side]]

    def stop(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@dataclass(frozen=True)
class At:
    """A server as it is reached at one of its addresses."""

    server: object
    address: str

    @property
    def port(self):
        return self.server.port

    def pids(self):
        return self.server.pids()


def total(results):
    """Of several measurements one."""
    return {key: sum(result[key] for result in results) for key in ("seconds", "bytes", "server_seconds", "kernel_seconds", "client_seconds")}


def cost(results, *sides):
    return [sum(result[side] for side in sides) / result["bytes"] * 1e9 for result in results]


@workload("network", "64 MiB to a peer that is not on loopback: processor time")
def network(context):
    root = servers(context)[0] and context.made["root"]
    between = context.start(Network)
    inside = {"launcher": between.launcher(0)}
    ztserve = At(context.ztserve(root, listen=f"{SERVER}:0", **inside), SERVER)
    nginx, second = (context.nginx(root, address="0.0.0.0", **inside) for _ in range(2))
    sides = range_sides(context, LENGTH, (ztserve, At(nginx, SERVER), At(second, SERVER)))
    loopback = Target(At(nginx, "127.0.0.1"), sides.nginx.path, sides.nginx.headers)

    def load(side, where):
        seconds = context.seconds / 2
        return total([
            context.load(side, CONNECTIONS, launcher=between.launcher(where), seconds=seconds) for _ in range(REPEATS)
        ])  # fmt: skip

    load(sides.ztserve, 1)
    ztserve.server.settle()
    with context.watch() as others:
        actions = [lambda side=side: load(side, 1) for side in sides.all()]
        results = context.alternate([*actions, lambda: load(loopback, 0)])
    context.stop(ztserve.server, nginx, second, between)
    row, options = f"64 MiB over veth, {CONNECTIONS} connections", {"others": others[0], "processor": shares(results)}
    for metric, counted in (("of both sides", BOTH), ("the server's own", OWN)):
        ours, theirs, check, _ = (cost(side, *counted) for side in results)
        metric = f"processor seconds a GB, {metric}"
        yield Figure("network", row, metric, "s/GB", ours, theirs, check, Limit(most=1.15), **options)
    local = cost(results[3], *OWN)
    yield Figure("network", row, metric, "s/GB", ours, local, [], None, "nginx on loopback", others=others[0])
    speeds = [[result["bytes"] / result["seconds"] for result in side] for side in results[:3]]
    yield Figure("network", row, "throughput", "B/s", *speeds, **options)
