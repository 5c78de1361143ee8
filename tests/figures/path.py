#!/usr/bin/env python3
"""Lists the .c files that a warm GET of a component, a GET of a manifest, and a PUT of 1 MiB pass through.

Builds with --coverage in a temporary folder, runs the server once with a few requests of a kind and once with 200 more,
and compares gcov's line counters: a file counts when one of its lines ran at least 200 times more. Needs gcc, gcov, cmake.

  tests/figures/path.py [--build DIR] [--files]     DIR is kept and built again next time; --files lists the files
"""

import argparse
import gzip
import http.client
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
WARMING = 20  # requests in the shorter run: what is done once is done by then
MORE = 200  # requests more in the longer run
DATA_BYTES = 1 << 20
ANSWER_S = 60


def build(folder):
    environment = os.environ | ({"CMAKE_GENERATOR": "Ninja"} if shutil.which("ninja") else {})
    environment.pop("CMAKE_C_COMPILER_LAUNCHER", None)  # objects out of a cache name their counters after another folder
    configure = ["cmake", "-S", TOP, "-B", folder, "-DZT_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_COMPILER=gcc"]
    configure.append("-DCMAKE_C_FLAGS=--coverage -fprofile-update=atomic")
    make = ["cmake", "--build", folder, "--parallel", "2", "--target", "ztserve"]
    for command in (configure, make):
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def write_model(program, folder):
    """A zTensor 1.2 file of one component of 1 MiB, with its digest."""
    source, model = folder / "model.safetensors", folder / "model.zt"
    head = json.dumps({"w": {"dtype": "U8", "shape": [DATA_BYTES], "data_offsets": [0, DATA_BYTES]}}).encode()
    source.write_bytes(struct.pack("<Q", len(head)) + head + bytes(range(256)) * (DATA_BYTES // 256))
    environment = os.environ | {"GCOV_PREFIX": str(folder)}
    subprocess.run([program, "convert", source, model], env=environment, stdout=subprocess.DEVNULL, check=True)
    return model.read_bytes()


def get_component(connection, number, model):
    connection.request("GET", "/v1/models/m/objects/w/data")


def get_manifest(connection, number, model):
    connection.request("GET", "/v1/models/m")


def put_model(connection, number, model):
    connection.request("PUT", f"/v1/models/new-{number}", model)


KINDS = {
    "GET of a component": get_component,
    "GET of a manifest": get_manifest,
    "PUT of 1 MiB": put_model,
}


def run_requests(program, ask, count, model, scratch):
    """Runs a server for so many requests; gives the folder with the counters that it left."""
    root, counters = scratch / "root", scratch / "counters"
    root.mkdir()
    (root / "m.zt").write_bytes(model)
    command = [program, "serve", "--root", root, "--listen", "127.0.0.1:0", "--writable"]
    environment = os.environ | {"GCOV_PREFIX": str(counters), "ZTSERVE_UPLOAD_RESERVE_BYTES": "0"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        for number in range(count):
            ask(connection, number, model)
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (200, 201):
                raise RuntimeError(f"answered {answer.status}")
        connection.close()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(ANSWER_S)
    return counters


def count_lines(counters, build_folder):
    """How often each line ran: (file, line) → count."""
    counts = {}
    for data in counters.rglob("*.gcda"):
        notes = build_folder / data.relative_to(counters / str(build_folder).lstrip("/")).with_suffix(".gcno")
        shutil.copy(notes, data.with_suffix(".gcno"))
        subprocess.run(["gcov", "--json-format", data], cwd=data.parent, stdout=subprocess.DEVNULL, check=True)
    for report in counters.rglob("*.gcov.json.gz"):
        for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
            for line in file["lines"]:
                place = (file["file"], line["line_number"])
                counts[place] = counts.get(place, 0) + line["count"]
    return counts


def files_passed(program, ask, model, build_folder):
    counts = []
    for count in (WARMING, WARMING + MORE):
        with tempfile.TemporaryDirectory() as scratch:
            counters = run_requests(program, ask, count, model, pathlib.Path(scratch))
            counts.append(count_lines(counters, build_folder))
    grown = {file for (file, line), count in counts[1].items() if count >= counts[0].get((file, line), 0) + MORE}
    paths = (pathlib.Path(file) for file in grown if file.endswith(".c"))
    return sorted(str(path.relative_to(TOP) if path.is_absolute() else path) for path in paths)


def measure(folder, show_files):
    build(folder)
    program = folder / "ztserve"
    with tempfile.TemporaryDirectory() as scratch:
        model = write_model(program, pathlib.Path(scratch))
    for kind, ask in KINDS.items():
        files = files_passed(program, ask, model, folder)
        print(f"{kind}: {len(files)} files", flush=True)
        if show_files:
            print("".join(f"  {file}\n" for file in files), end="")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path)
    options.add_argument("--files", action="store_true")
    chosen = options.parse_args()
    if chosen.build:
        measure(chosen.build.resolve(), chosen.files)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(pathlib.Path(folder).resolve(), chosen.files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
