"""What every workload and curve gets: a folder, processors, servers that are stopped at the end, and the load client."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from machine import others_between, softirq_threads, take_sample
from servers import Nginx, Ztserve, pinned

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent


class Skipped(Exception):
    """What cannot be measured on this machine, and why."""


def available_memory():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


@dataclass(frozen=True)
class Target:
    """What to ask one server for."""

    server: object
    path: str
    headers: tuple = ()
    tls: str = ""  # the cipher suite, if the server speaks TLS


class Context:
    """One run. `folder` is removed at the end; `processor` and `client_processor` are where servers and client run."""

    def __init__(self, folder, build, processors, rounds=5, seconds=0.5):
        self.folder, self.build = Path(folder), Path(build)
        self.processor, self.client_processor = processors
        self.rounds, self.seconds, self.warm_seconds = rounds, seconds, 0.1
        self.kernel = softirq_threads(processors)
        self.stack = contextlib.ExitStack()
        self.made = {}

    # --- progress and noise ---

    def progress(self, text):
        print(text, flush=True)

    @contextlib.contextmanager
    def watch(self):
        """Gives a list whose only value, afterwards, is how many cores others took."""
        seen, first = [], take_sample()
        yield seen
        seen.append(others_between(first, take_sample()))

    # --- files ---

    def room(self, needed_bytes, folder=None):
        free = shutil.disk_usage(folder or self.folder).free
        if free < needed_bytes + (256 << 20):
            raise Skipped(f"needs {needed_bytes >> 20} MiB of disk, {free >> 20} MiB are free")

    def once(self, name, make):
        """What make() returned the first time, for files and servers that several workloads use."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def model(self, path, length, *arguments):
        """A zTensor file: see bench-model."""
        self.room(length * int(arguments[0] if arguments else 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([self.build / "bench-model", path, *map(str, (length, *arguments))], check=True)
        return path

    def sub_folder(self, name):
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def memory_folder(self, name, needed_bytes):
        """A folder in memory if there is room for so much, so that a disk does not decide what is measured; else on disk."""
        memory = Path("/dev/shm")
        if memory.is_dir() and min(shutil.disk_usage(memory).free, available_memory()) > needed_bytes + (512 << 20):
            path = Path(tempfile.mkdtemp(prefix=f"bench-{name}.", dir=memory))
            self.stack.callback(shutil.rmtree, path, ignore_errors=True)
            path.chmod(0o755)
            return path
        self.room(needed_bytes)
        return self.sub_folder(name)

    def touch_memory(self, length):
        """Allocates so much and frees it. What a virtual machine has not used for two seconds goes back to its host, and getting
        it again takes several times as long as using what was just freed: after this, all begin alike, whoever ran before."""
        path = self.once("touched", lambda: self.memory_folder("touched", length)) / "memory"
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, length)
        path.unlink()

    @staticmethod
    def warm(path):
        """Reads a file, so that it is in the page cache."""
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 22):
                pass

    # --- servers ---

    def start(self, make):
        """A server that is stopped at the end of the run, or by context.stop."""
        server = make()
        self.stack.callback(server.stop)
        return server

    def ztserve(self, root, *arguments, processors=None, **options):
        processors = self.processor if processors is None else processors
        return self.start(lambda: Ztserve(root, processors, *arguments, **options))

    def nginx(self, root, processors=None, **options):
        processors = self.processor if processors is None else processors
        return self.start(lambda: Nginx(root, processors, **options))

    @staticmethod
    def stop(*servers):
        for server in servers:
            server.stop()

    # --- requests ---

    @staticmethod
    def fetch(server, path, method="GET", body=None, headers=None):
        url = f"http://{server.address}:{server.port}{path}"
        request = urllib.request.Request(url, body, headers or {}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()

    def load(self, target, connections=1, **options):
        """Results of bench-load (see its usage) against a target; options as of load_command."""
        process = self.start_load(target, connections, **options)
        try:
            return load_results(process, target)
        finally:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def beside(self, target, connections):
        """Keeps other clients busy with this target meanwhile; a program of their own. Gives their results afterwards."""
        process = self.start_load(target, connections, seconds=1e6, warm=0)
        results = {}
        try:
            yield results
            process.terminate()
            results.update(load_results(process, target))
        finally:
            process.kill()
            process.wait()

    def start_load(self, target, connections, seconds=None, requests=None, launcher=(), warm=None, discard=False, vary=False):
        """With requests, it ends after so many answers and does not warm up. With discard, the client does not copy bodies.
        With vary, no two requests are the same."""
        command = [*launcher, *pinned(self.client_processor), str(self.build / "bench-load")]
        command += ["--address", target.server.address, "--port", str(target.server.port)]
        for pid in target.server.pids():
            command += ["--pid", str(pid)]
        for pid in self.kernel:
            command += ["--kernel", str(pid)]
        if target.tls:
            command += ["--tls", target.tls]
        if discard:
            command += ["--discard", "1"]
        if vary:
            command += ["--vary", "1"]
        if requests is None:
            command += ["--seconds", str(seconds or self.seconds)]
            command += ["--warm", str(self.warm_seconds if warm is None else warm)]
        else:
            command += ["--requests", str(requests)]
        command += ["--get", target.path, "--connections", str(connections)]
        for header in target.headers:
            command += ["--header", header]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def alternate(self, actions, times=1):
        """Runs the actions in turn, once a round, each round beginning with the next one. A list of results for each. With
        times, so many times as many rounds, for what varies much."""
        results = [[] for _ in actions]
        for number in range(self.rounds * times):
            for at in range(len(actions)):
                which = (number + at) % len(actions)
                results[which].append(actions[which]())
        return results

    def close(self):
        self.stack.close()


def load_results(process, target):
    output, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{target.path}: {errors.strip()}")
    values = json.loads(output)
    if values["errors"]:
        raise RuntimeError(f"{target.path}: {values['errors']} connections were closed")
    return values


def timed(action):
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def note(text):
    print(text, file=sys.stderr, flush=True)
