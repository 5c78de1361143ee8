"""The list of workloads. A module adds one with @workload; bench.py runs them in the order of the modules."""

from dataclasses import dataclass
from typing import Callable

WORKLOADS = []


@dataclass(frozen=True)
class Workload:
    """`run(context)` yields figures; it may raise context.Skipped."""

    name: str
    title: str
    run: Callable


def workload(name, title):
    def add(function):
        WORKLOADS.append(Workload(name, title, function))
        return function

    return add
