#!/usr/bin/env python3
"""Checks that no test sleeps for longer than 200 ms: tests wait for conditions. In unit tests only pause_ms and AWAIT wait
(tests/support/support.h); sleeps of computed lengths are noticed while tests run (tests/conftest.py). Benchmarks and the
like are left out, since they measure over a time."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = {"bench", "soak", "stress", "fuzz", "faults"}
MAX_S = 0.2
PAUSES = {
    ".py": [(r"time\.sleep\((\d[\d.]*)\)", 1), (r"setTimeout\(\w+, (\d+)\)", 1000), (r"\bsleep (\d[\d.]*)", 1)],
    ".sh": [(r"\bsleep (\d[\d.]*)", 1)],
    ".c": [(r"\busleep\((\d+)\)", 1000000), (r"\bpause_ms\((\d+)\)", 1000), (r"\bsleep (\d[\d.]*)", 1)],
}
PAUSES[".h"] = PAUSES[".c"]
OTHER_WAY = re.compile(r"\b(nanosleep|sleep)\(")


def complaints_of(path, line):
    for pattern, unit in PAUSES[path.suffix]:
        for found in re.findall(pattern, line):
            if float(found) / unit > MAX_S:
                yield f"a pause of {float(found) / unit:g} s: wait for a condition"
    if path.suffix in (".c", ".h") and path.name != "support.c" and OTHER_WAY.search(line):
        yield "use pause_ms or AWAIT"


def main():
    found = 0
    for path in sorted((TOP / "tests").rglob("*")):
        if path.suffix not in PAUSES or path.relative_to(TOP / "tests").parts[0] in LEFT_OUT:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for complaint in complaints_of(path, line):
                print(f"{path.relative_to(TOP)}:{number}: {complaint}", file=sys.stderr)
                found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
