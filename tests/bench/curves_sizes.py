"""How throughput changes with the length of what is asked for."""

import statistics

import reading
from curve import Curve, Series

LENGTHS = tuple(1024 << shift for shift in range(0, 21, 2))  # 1 KiB to 1 GiB
CONNECTIONS = 4
ROUNDS = 3
SECONDS = 0.15


def measure(context, sides, length):
    rates = ([], [])
    for number in range(ROUNDS):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            result = context.load(sides[which], CONNECTIONS, seconds=SECONDS)
            rates[which].append(result["bytes"] / 1e6 / result["seconds"])
    return {name: statistics.median(rate) for name, rate in zip(("ztserve", "nginx"), rates)}


def points(context):
    for length in LENGTHS:
        yield length, measure(context, reading.range_sides(context, length).all()[:2], length)


CURVES = [
    Curve(
        "sizes",
        "Ranges of 1 KiB to 1 GiB from the page cache, 4 connections",
        "bytes",
        (Series("ztserve", "MB/s"), Series("nginx", "MB/s")),
        points,
        seconds=20,
    )
]
