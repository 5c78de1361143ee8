"""What a cost curve is: how a cost grows with one size. A file curves*.py beside this one defines some and lists them:

    CURVES = [Curve("objects", "Objects in a model", "objects", series, points)]

bench.py finds the file, runs each curve after the workloads (or alone: `make bench WORKLOAD=objects-curve`), and draws it."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Series:
    """One line of a curve. `name` is how points name their values; a plot is drawn for each unit."""

    name: str
    unit: str


@dataclass(frozen=True)
class Curve:
    """`points(context)` yields pairs: x, and a dict of values by the names of the series (some may be missing).

    It gets what workloads get (context.Context: folder, servers, load client) and cleans up files and servers that the
    next curve does not need; it may raise context.Skipped. `seconds` is about how long it takes."""

    name: str
    title: str
    x: str
    series: tuple
    points: Callable
    seconds: float = 20
    note: str = ""


@dataclass
class Measured:
    curve: Curve
    points: list
    others: float = 0.0
    skipped: str = ""
