"""How throughput and memory change with the number of connections that ask at the same time."""

import resource
import statistics
import time

import reading
from context import Skipped, load_results
from curve import Curve, Series
from servers import memory_mib

CONNECTIONS = (1, 4, 16, 64, 256, 1_000, 4_000, 10_000)
RANGE_BYTES = 4096
ROUNDS = 3
SECONDS = 0.4
# Opened and answered once; much less than either server manages.
CONNECTIONS_PER_SECOND = 5_000


def measure(context, side, connections):
    """Requests a second, and the memory that the server holds meanwhile."""
    warm = context.warm_seconds + connections / CONNECTIONS_PER_SECOND
    process = context.start_load(side, connections, seconds=SECONDS, warm=warm)
    # By then all connections are open, and each has had an answer.
    time.sleep(warm + SECONDS / 2)
    memory = memory_mib(side.server)
    result = load_results(process, side)
    return result["requests"] / result["seconds"], memory


def points(context):
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if allowed != resource.RLIM_INFINITY and allowed < CONNECTIONS[-1] + 100:
        raise Skipped(f"needs {CONNECTIONS[-1] + 100} descriptors, and {allowed} are allowed")
    root = context.once("root", lambda: reading.make_root(context))
    running = context.ztserve(root), context.nginx(root), context.nginx(root)
    sides = reading.range_sides(context, RANGE_BYTES, running).all()[:2]
    try:
        for connections in CONNECTIONS:
            values = {}
            for name, side in zip(("ztserve", "nginx"), sides):
                rounds = [measure(context, side, connections) for _ in range(ROUNDS if connections < 1000 else 1)]
                values[name] = statistics.median(rate for rate, _ in rounds)
                values[f"{name}, memory"] = rounds[-1][1]
            yield connections, values
    finally:
        context.stop(*running)


CURVES = [
    Curve(
        "connections",
        "Connections that ask for 4 KiB again and again",
        "connections",
        (
            Series("ztserve", "/s"),
            Series("nginx", "/s"),
            Series("ztserve, memory", "MiB"),
            Series("nginx, memory", "MiB"),
        ),
        points,
        seconds=25,
    )
]
