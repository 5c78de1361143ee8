"""Reads what callgrind writes: the instructions of each function, and how often some functions were called."""

import collections
import re
from pathlib import Path

COMPRESSED = re.compile(r"\((\d+)\)(?: (.*))?")
COST = re.compile(r"[+\-*\d]\S* (\d+)")


class Counts:
    """`instructions` by (object, function), without those of functions called; `calls` by function."""

    def __init__(self, text):
        self.instructions = collections.Counter()
        self.calls = collections.Counter()
        self._names = {}
        self._read(text)

    def _name(self, kind, value):
        """A name is written once, with a number, and is the number from then on."""
        number, name = COMPRESSED.fullmatch(value).groups()
        if name is not None:
            self._names[kind, number] = name
        return self._names.get((kind, number), number)

    def _read(self, text):
        place = {"ob": "???", "fn": "???"}
        called = None
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals and key in ("ob", "fn", "cob", "cfn"):
                name = self._name(key[-2:], value)
                if key == "cfn":
                    called = name
                elif key in place:
                    place[key] = name
            elif equals and key == "calls":
                self.calls[called] += int(value.split()[0])
            elif (cost := COST.match(line)) and called is None:
                self.instructions[Path(place["ob"]).name, place["fn"]] += int(cost[1])
            elif cost:
                # The line behind "calls" is the cost of what was called, which is counted where it arose.
                called = None

    def less(self, other):
        """What these are more than others."""
        self.instructions.subtract(other.instructions)
        self.calls.subtract(other.calls)
        return self
