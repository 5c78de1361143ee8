#!/usr/bin/env python3
"""Counts the .c files, functions and lines that each kind of request, and each command, passes through.

Builds with --coverage in a temporary folder, runs the server once with a few requests of a kind and once with more, and
compares gcov's counters: a line counts when it ran at least once for each request more. A command runs once; all that
it enters counts. Fails if a kind enters nothing, or more than its bounds in paths.json. Needs gcc, gcov and cmake.

  tests/figures/path.py [--build DIR] [--kind KIND] [--files] [--functions]
      DIR is kept and built again next time; --files and --functions list what is entered
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import style
import trips

TOP = pathlib.Path(__file__).resolve().parents[2]
BOUNDS = json.loads((pathlib.Path(__file__).parent / "paths.json").read_text())
COUNTED = ("files", "functions", "lines")
STOP_S = 60


def build(folder):
    environment = os.environ | ({"CMAKE_GENERATOR": "Ninja"} if shutil.which("ninja") else {})
    environment.pop("CMAKE_C_COMPILER_LAUNCHER", None)  # objects out of a cache name their counters after another folder
    configure = ["cmake", "-S", TOP, "-B", folder, "-DZT_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_COMPILER=gcc"]
    configure.append("-DCMAKE_C_FLAGS=--coverage -fprofile-update=atomic")
    make = ["cmake", "--build", folder, "--parallel", "2", "--target", "ztserve"]
    for command in (configure, make):
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


class Program:
    """The instrumented program, whose processes leave their counters in a folder of their own."""

    def __init__(self, path, scratch):
        self.path = path
        self.scratch = scratch
        self.counters = scratch / "counters"
        # The sandbox keeps the server from writing its counters.
        self.environment = os.environ | {"GCOV_PREFIX": str(self.counters), "ZTSERVE_SANDBOX": "false"}

    def run(self, *arguments):
        subprocess.run([self.path, *arguments], env=self.environment, stdout=subprocess.DEVNULL, check=True)

    def serve(self, *arguments, **settings):
        command = [self.path, "serve", "--listen", "127.0.0.1:0", *arguments]
        environment = self.environment | {"ZTSERVE_UPLOAD_RESERVE_BYTES": "0"} | settings
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        return server, port


def end(server):
    server.send_signal(signal.SIGTERM)
    server.wait(STOP_S)


def count_runs(counters, build_folder):
    """How often each line and each function ran: (kind, file, line or name) → count."""
    counts = {}
    found = list(counters.rglob("*.gcda"))
    for data in found:
        notes = build_folder / data.relative_to(counters / str(build_folder).lstrip("/")).with_suffix(".gcno")
        data.with_suffix(".gcno").symlink_to(notes)
    reports = subprocess.run(["gcov", "--json-format", "--stdout", *found], stdout=subprocess.PIPE, check=True).stdout if found else b""
    for report in reports.splitlines():
        for file in json.loads(report)["files"]:
            places = [("lines", line["line_number"], line["count"]) for line in file["lines"]]
            places += [("functions", one["name"], one["execution_count"]) for one in file["functions"]]
            for kind, name, count in places:
                place = (kind, file["file"], name)
                counts[place] = counts.get(place, 0) + count
    return counts


def counts_of(trip, requests, path, build_folder):
    with tempfile.TemporaryDirectory() as scratch:
        program = Program(path, pathlib.Path(scratch))
        trip(program, requests, end)
        return count_runs(program.counters, build_folder)


def asserting(file):
    """The lines of a file that only assert. Whoever follows a trip does not read them as steps."""
    text = (TOP / file).read_text()
    places = [(text.count("\n", 0, found.start()) + 1, found.group().count("\n")) for found in style.ASSERTING.finditer(text)]
    return {line for first, count in places for line in range(first, first + count)}


def entered(kind, path, build_folder):
    """The places that a kind enters, as sets by what is counted."""
    trip, fewer, more = trips.KINDS[kind]
    before = counts_of(trip, fewer, path, build_folder) if fewer else {}
    after = counts_of(trip, more, path, build_folder)
    grown = {place for place, count in after.items() if count >= before.get(place, 0) + more - fewer and place[1].endswith(".c")}
    relative = {file: str(pathlib.Path(file).relative_to(TOP)) if pathlib.Path(file).is_absolute() else file for _, file, _ in grown}
    skipped = {file: asserting(relative[file]) for file in relative if (TOP / relative[file]).is_file()}
    return {
        "files": {relative[file] for _, file, _ in grown},
        "functions": {f"{relative[file]}: {name}" for what, file, name in grown if what == "functions"},
        "lines": {(relative[file], name) for what, file, name in grown if what == "lines" and name not in skipped.get(file, ())},
    }


def over_bounds(kind, found):
    return [what for what in COUNTED if not 0 < len(found[what]) <= BOUNDS[kind][what]]


def entered_always(kind, path, build_folder):
    """What is entered; if that is beyond the bounds, what is entered each of three times. On a busy machine a request may take
    a turn that it need not take: it waits for a worker, or a timer runs beside it."""
    found = entered(kind, path, build_folder)
    for _ in range(2):
        if over_bounds(kind, found):
            again = entered(kind, path, build_folder)
            found = {what: found[what] & again[what] for what in COUNTED}
    return found


def measure(folder, chosen):
    build(folder)
    failed = False
    for kind in [chosen.kind] if chosen.kind else trips.KINDS:
        found = entered_always(kind, folder / "ztserve", folder)
        figures = {what: len(found[what]) for what in COUNTED}
        bounds = BOUNDS[kind]
        over = over_bounds(kind, found)
        failed = failed or bool(over)
        shown = ", ".join(f"{figures[what]:,} {what} (at most {bounds[what]:,})" for what in COUNTED)
        print(f"{kind}: {shown}{'  FAILED: ' + ', '.join(over) if over else ''}", flush=True)
        for what in ("files", "functions"):
            if getattr(chosen, what):
                print("".join(f"  {place}\n" for place in sorted(found[what])), end="")
    return 1 if failed else 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path)
    options.add_argument("--kind", choices=trips.KINDS)
    options.add_argument("--files", action="store_true")
    options.add_argument("--functions", action="store_true")
    chosen = options.parse_args()
    if chosen.build:
        return measure(chosen.build.resolve(), chosen)
    with tempfile.TemporaryDirectory() as folder:
        return measure(pathlib.Path(folder).resolve(), chosen)


if __name__ == "__main__":
    sys.exit(main())
