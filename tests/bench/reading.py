"""Reads from the page cache beside nginx: small answers, large ones, and small ones beside large ones."""

import json
import statistics
from dataclasses import dataclass

from context import Target
from figures import Figure, Limit
from workload import workload

LARGE_BYTES = 1 << 30
DATA = "/v1/models/large/objects/weight/data"
SMALL_CONNECTIONS = (1, 16, 64, 256)
LARGE_CONNECTIONS, DISCARDED_CONNECTIONS = (1, 4, 16), (1, 4)
# Throughput says something about servers only if both are this busy; else the client, or a single connection, is the limit.
BUSY_LEAST = 0.9
BOTH_LEAST = DISCARDED_LEAST = 1.3


@dataclass
class Sides:
    """The three that answer the same request in turn: ztserve, nginx, and another nginx as a check."""

    ztserve: Target
    nginx: Target
    check: Target

    def all(self):
        return self.ztserve, self.nginx, self.check


def make_root(context):
    root = context.sub_folder("root")
    context.model(root / "small.zt", 1024)
    context.warm(context.model(root / "large.zt", LARGE_BYTES))
    return root


def servers(context):
    """ztserve, nginx and nginx, over a small and a large model; nginx has the manifest as a file."""

    def make():
        root = context.once("root", lambda: make_root(context))
        ztserve = context.ztserve(root)
        (root / "small.json").write_bytes(context.fetch(ztserve, "/v1/models/small"))
        context.fetch(ztserve, DATA, headers={"Range": "bytes=0-0"})
        ztserve.settle()
        return ztserve, context.nginx(root), context.nginx(root)

    return context.once("servers", make)


def data_offset(context, ztserve):
    manifest = json.loads(context.fetch(ztserve, "/v1/models/large"))
    return manifest["objects"]["weight"]["components"]["data"]["offset"]


def range_sides(context, length, running=None):
    """The first bytes of the large component, and the same bytes of the file."""
    ztserve, *both = running or servers(context)
    offset = data_offset(context, servers(context)[0])
    theirs = (f"Range: bytes={offset}-{offset + length - 1}",)
    return Sides(
        Target(ztserve, DATA, (f"Range: bytes=0-{length - 1}",)), *(Target(nginx, "/large.zt", theirs) for nginx in both)
    )


def manifest_sides(context):
    ztserve, *both = servers(context)
    return Sides(Target(ztserve, "/v1/models/small"), *(Target(nginx, "/small.json") for nginx in both))


def rates(results, count):
    """Requests (or bytes) a second, and a second of the server's processor time."""
    return (
        [result[count] / result["seconds"] for result in results],
        [result[count] / max(result["server_seconds"], 1e-9) for result in results],
    )


def shares(results):
    """Processor time of the server per second, for ztserve and for nginx."""
    return tuple(
        statistics.median(result["server_seconds"] / result["seconds"] for result in side) for side in results[:2]
    )


def compare(context, name, row, sides, connections, count, limits, **options):
    """Figures of throughput and of processor time; count is "requests" or "bytes"."""
    with context.watch() as others:
        actions = [lambda side=side: context.load(side, connections, **options) for side in sides.all()]
        results = context.alternate(actions)
    units = ("/s", "/cpu s") if count == "requests" else ("B/s", "B/cpu s")
    by_side = [rates(side, count) for side in results]
    for i, metric in enumerate(("throughput", "per processor second")):
        ours, theirs, check = (side[i] for side in by_side)
        yield Figure(
            name, row, metric, units[i], ours, theirs, check, limits[i], others=others[0], processor=shares(results)
        )


def compare_two(context, name, row, ours, theirs, limits, beside):
    """Figures of bytes a second; the yardstick is another server."""
    with context.watch() as others:
        results = context.alternate([lambda side=side: context.load(side) for side in (ours, theirs)])
    by_side = [rates(side, "bytes") for side in results]
    for i, metric in enumerate(("throughput", "per processor second")):
        first, second = (side[i] for side in by_side)
        yield Figure(
            name, row, metric, ("B/s", "B/cpu s")[i], first, second, [], limits[i], beside,
            others=others[0], processor=shares(results),
        )  # fmt: skip


def named(what, connections):
    return f"{what}, {connections} connection{'s' * (connections > 1)}"


def small(context, name, what, sides, processor_limits):
    for connections, least in zip(SMALL_CONNECTIONS, processor_limits):
        row = named(what, connections)
        limits = (Limit(least=1.0 if connections == 1 else 1.1), Limit(least=least))
        yield from compare(context, name, row, sides, connections, "requests", limits)


@workload("manifest", "manifest of 1 KiB as JSON")
def manifest(context):
    yield from small(context, "manifest", "manifest of 1 KiB", manifest_sides(context), (1.0, 1.3, 1.3, 1.2))


@workload("range", "range of 4 KiB")
def small_range(context):
    yield from small(context, "range", "range of 4 KiB", range_sides(context, 4096), (1.0, 1.3, 1.3, 1.2))


@workload("distinct", "small requests of which no two are the same")
def distinct(context):
    """Not judged: how much the other rows owe to answers that are kept for the same request."""
    for what, sides in (("manifest of 1 KiB", manifest_sides(context)), ("range of 4 KiB", range_sides(context, 4096))):
        for connections in SMALL_CONNECTIONS[1:]:
            row = named(what, connections) + ", no two requests the same"
            yield from compare(context, "distinct", row, sides, connections, "requests", (None, None), vary=True)


def per_both(results):
    """Bytes a second of processor time of server, client, and the kernel's threads that work for both."""
    sides = ("server_seconds", "kernel_seconds", "client_seconds")
    return [result["bytes"] / sum(result[side] for side in sides) for result in results]


def large(context, name, what, length, least):
    """Judged are bytes a processor second of both sides, since on loopback chance decides which side pays for the kernel's
    work; throughput where both servers are busy, which takes a client that does not copy what it gets."""
    sides = range_sides(context, length)
    for connections in LARGE_CONNECTIONS:
        # With more connections, the client sends for nginx even if it copies nothing.
        for discard in (False, True)[: 1 + (connections in DISCARDED_CONNECTIONS)]:
            row = named(what, connections) + discard * ", discarded by the client"
            with context.watch() as others:
                actions = [lambda side=side: context.load(side, connections, discard=discard) for side in sides.all()]
                results = context.alternate(actions)
            options = {"others": others[0], "processor": shares(results)}
            both = [per_both(side) for side in results]
            limit = None if discard else Limit(least=BOTH_LEAST)
            yield Figure(name, row, "per processor second of both sides", "B/cpu s", *both, limit, **options)
            speeds = [rates(side, "bytes")[0] for side in results]
            limit = Limit(least=DISCARDED_LEAST if discard else least)
            yield Figure(name, row, "throughput", "B/s", *speeds, limit, busy_least=BUSY_LEAST, **options)


@workload("bulk", "range of 64 MiB, from the page cache")
def bulk(context):
    yield from large(context, "bulk", "64 MiB", 64 << 20, 1.8)


@workload("whole", "component of 1 GiB, from the page cache")
def whole(context):
    yield from large(context, "whole", "1 GiB", LARGE_BYTES, 1.5)


def beside_downloads(context, one, other):
    """One client that asks for 4 KiB again and again, beside another program that downloads on four connections."""
    with context.beside(other, 4) as downloads:
        result = context.load(one, 1, seconds=0.8, warm=0.3)
    return {**result, "beside": downloads["bytes"] / downloads["seconds"]}


@workload("beside", "range of 4 KiB during four downloads of 1 GiB")
def beside(context):
    small_sides, large_sides = range_sides(context, 4096), range_sides(context, LARGE_BYTES)
    with context.watch() as others:
        actions = [
            lambda one=one, other=other: beside_downloads(context, one, other)
            for one, other in zip(small_sides.all(), large_sides.all())
        ]
        results = context.alternate(actions)
    row = "range of 4 KiB during four downloads"
    for key, metric, least in (("p50_us", "p50", 0.8), ("p99_us", "p99", 1.0)):
        ours, theirs, check = ([result[key] for result in side] for side in results)
        limit = Limit(least=least)
        yield Figure(
            "beside", row, metric, "µs", ours, theirs, check, limit,
            ratio="theirs/ours", others=others[0], processor=shares(results),
        )  # fmt: skip
    ours, theirs, check = ([result["beside"] for result in side] for side in results)
    yield Figure("beside", row, "the downloads", "B/s", ours, theirs, check, others=others[0], processor=shares(results))
