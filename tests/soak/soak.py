#!/usr/bin/env python3
"""Keeps a server under mixed traffic for a long time and checks every answer.

Readers, writers, a file system that changes, clients that break off and an operator who reloads work side by side. Each
body must be exactly one version of its model, and one that could be met at that time; what was acknowledged must be
there, also after a restart; memory, threads and descriptors must stay flat; the end must be in order (exit status 0,
which sanitizers change if they found anything).

    soak.py --program build/ztserve --seconds 3600 [--folder DIR] [--seed N]
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "http")]

import server_process  # noqa: E402
from disturbers import Disturber, Operator  # noqa: E402
from readers import Reader  # noqa: E402
from versions import History, is_file_model  # noqa: E402
from watch import MIB, Watch  # noqa: E402
from writers_of_models import FileWriter, Writer, has_version  # noqa: E402

SAMPLE_S = 1
REPORT_S = 30
READERS = 6
# Memory that may come and go without a leak. A sanitizer keeps what was freed for a while.
SLACK = {False: 16 * MIB, True: 96 * MIB}
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "quarantine_size_mb=32:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
CONFIGURATION = {
    "writable": True,
    "log": {"level": "warn"},
    "limits": {"decoded_cache_bytes": 16 * MIB},
    "upload": {"expire_s": 5, "sessions_per_client": 0, "reserve_bytes": 0},
}


class Soak:
    """What the actors share: the server, the histories of the models, counts and failures."""

    def __init__(self, folder):
        self.root = folder / "models"
        self.root.mkdir()
        self.config_path = folder / "ztserve.json"
        self.configuration = CONFIGURATION
        self.server = None
        self.histories = [History(name) for name in ("zt-a", "zt-b", "zt-c", "deep/zt-d", "s-file", "n-file")]
        self.failures = []
        self.ended = threading.Event()
        self._counts = collections.Counter()
        self._lock = threading.Lock()

    def count(self, what):
        with self._lock:
            self._counts[what] += 1

    @property
    def counts(self):
        with self._lock:
            return dict(self._counts)

    def start(self):
        self.config_path.write_text(json.dumps(self.configuration))
        self.server = server_process.ServerProcess(
            self.root, "--config", self.config_path, environment=SANITIZER_OPTIONS
        )

    def act(self, actor):
        """Lets an actor work until the end or the first failure."""
        while not self.ended.is_set():
            try:
                actor.step()
            except Exception:
                if not self.ended.is_set():
                    self.failures.append(traceback.format_exc())
                    self.ended.set()
        actor.close()


def actors_of(soak):
    over_http = [history for history in soak.histories if not is_file_model(history.model)]
    in_folder = [history for history in soak.histories if is_file_model(history.model)]
    return [
        *(Reader(soak) for _ in range(READERS)),
        *(Writer(soak, over_http) for _ in range(2)),
        FileWriter(soak, in_folder),
        Disturber(soak),
        Operator(soak),
    ]


def run_actors(soak, seconds):
    """Returns the watch over the process; failures are in soak.failures."""
    threads = [threading.Thread(target=soak.act, args=(actor,), daemon=True) for actor in actors_of(soak)]
    watch = Watch(soak.server.process.pid)
    begun = time.monotonic()
    reported = begun
    for thread in threads:
        thread.start()
    while time.monotonic() - begun < seconds and not soak.ended.wait(SAMPLE_S):
        if soak.server.process.poll() is not None:
            soak.failures.append(f"the server ended with {soak.server.process.returncode}")
            break
        sample = watch.sample()
        if time.monotonic() - reported >= REPORT_S:
            reported = time.monotonic()
            print(f"{reported - begun:6.0f} s  {sample['memory'] / MIB:.1f} MiB  {soak.counts}", flush=True)
    soak.ended.set()
    for thread in threads:
        thread.join(60)
    return watch


def check_after_restart(soak):
    """Everything that was acknowledged is there, whole, and nothing else is."""
    soak.start()
    for history in soak.histories:
        if not has_version(soak.server, history.model, history.current):
            soak.failures.append(f"after a restart {history.model} is not version {history.current}")
    if soak.server.stop() != 0:
        soak.failures.append("the second end was not in order")
    files = sorted(path for path in soak.root.rglob("*.*") if path.is_file() and ".ztserve" not in str(path))
    checked = subprocess.run([server_process.PROGRAM, "verify", *files], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        soak.failures.append(checked.stdout + checked.stderr)


def soak_in(folder, arguments):
    soak = Soak(folder)
    soak.start()
    watch = run_actors(soak, arguments.seconds)
    if soak.server.process.poll() is None and soak.server.stop() != 0:
        soak.failures.append("the server did not end in order:\n" + soak.server.log[-8000:])
    if not soak.failures:
        soak.failures += watch.growths(SLACK[arguments.sanitized])
        check_after_restart(soak)
    print(f"{arguments.program}: {soak.counts}; {watch.summary() if watch.samples else 'ended at once'}")
    for failure in soak.failures:
        print(f"FAILED: {failure}")
    if soak.failures:
        print(soak.server.log[-4000:])
    return not soak.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=server_process.PROGRAM, type=Path)
    parser.add_argument("--seconds", default=60, type=float)
    parser.add_argument("--folder", help="where the models go (default: a temporary folder)")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--sanitized", action="store_true", help="the program is built with sanitizers")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    server_process.PROGRAM = arguments.program.resolve()
    with tempfile.TemporaryDirectory(prefix="soak-", dir=arguments.folder) as folder:
        done = soak_in(Path(folder), arguments)
    print("soak: passed" if done else "soak: failed")
    return 0 if done else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
