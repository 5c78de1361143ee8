"""The servers that are measured: each on given processors and a free port, optionally in a network namespace."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from machine import NGINX, process_seconds  # noqa: E402
import server_process  # noqa: E402

START_TIMEOUT_S = 10
SETTLED_WITHIN_S = 15
# Tuned as an engineer would who wants static files fast: descriptors are kept (without that, an answer of 1 KiB costs
# nginx half as much again), no access log, and no connection ends after a number of requests.
NGINX_CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{ worker_connections 20000; }}
http {{
    access_log off; sendfile on; tcp_nopush on; open_file_cache max=1000 inactive=60s; keepalive_requests 100000000;
    default_type application/octet-stream; client_max_body_size 0;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {outside}
    server {{ listen {address}:{port} {listen} reuseport backlog=4096; root {root}; {location} }}
}}
"""


def use_program(default):
    """The ztserve to measure: of the variable ZTSERVE, else this one."""
    server_process.PROGRAM = Path(os.environ.get("ZTSERVE", default)).resolve()
    return program()


def program():
    return server_process.PROGRAM


def free_port(address="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def pinned(processors):
    """The start of a command that keeps a program on these processors (0 or 0,1)."""
    return ["taskset", "-c", str(processors)]


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Yardstick:
    """A program of the benchmarks that serves on a port of its own, which it prints."""

    def __init__(self, processors, *command):
        self.process = subprocess.Popen([*pinned(processors), *command], stdout=subprocess.PIPE, text=True)
        self.address, self.port = "127.0.0.1", int(self.process.stdout.readline())

    def pids(self):
        return [self.process.pid]

    def processor_seconds(self):
        return process_seconds(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def memory_mib(server):
    """What a server's processes hold themselves, without pages of files."""
    total = 0
    for pid in server.pids():
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
    return total / 1024


class Nginx:
    """One worker on one processor. The folder of its own holds temporary files; place it beside the root for PUT."""

    def __init__(self, root, processors, address="127.0.0.1", launcher=(), location="", outside="", folder=None, listen=""):
        self.folder = Path(tempfile.mkdtemp(prefix="nginx.", dir=folder or Path(root).parent))
        self.address = address
        for _ in range(5):
            # In another namespace the port may be taken although it is free here: then the next one.
            self.port = free_port()
            if self._start(root, processors, launcher, (location, outside, listen)):
                return
        log = self.folder / "error.log"
        reason = log.read_text() if log.exists() else "no message"
        shutil.rmtree(self.folder)
        raise RuntimeError(f"nginx did not start: {reason}")

    def _start(self, root, processors, launcher, lines):
        configuration = self.folder / "nginx.conf"
        location, outside, listen = (text.format(folder=self.folder) for text in lines)
        text = NGINX_CONFIGURATION.format(
            folder=self.folder, port=self.port, root=root, location=location, outside=outside,
            address=self.address, listen=listen,
        )
        configuration.write_text(text)
        command = [*launcher, *pinned(processors), NGINX, "-c", str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_TIMEOUT_S
        # The pid file appears once it listens; the worker a moment later.
        while self.process.poll() is None and time.monotonic() < end:
            if (self.folder / "nginx.pid").exists() and self.worker_pids():
                return True
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        return False

    def worker_pids(self):
        return children_of(self.process.pid)

    def pids(self):
        return [self.process.pid, *self.worker_pids()]

    def processor_seconds(self):
        return sum(process_seconds(pid) for pid in self.pids())

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Ztserve:
    """On one processor it starts one event loop."""

    def __init__(self, root, processors, *arguments, launcher=(), listen="127.0.0.1:0", environment=None):
        self.server = server_process.ServerProcess(
            root, "--log-level", "warn", *arguments,
            launcher=[*launcher, *pinned(processors)], listen=listen, environment=environment,
        )  # fmt: skip
        self.address, self.port = self.server.host, self.server.port

    def pids(self):
        return [self.server.process.pid]

    def processor_seconds(self):
        return process_seconds(self.server.process.pid)

    def settle(self):
        """Waits until nothing is done in the background: after the first request a component's digests are computed."""
        end = time.monotonic() + SETTLED_WITHIN_S
        before = -1.0
        while time.monotonic() < end and (now := self.processor_seconds()) != before:
            before = now
            time.sleep(0.25)

    def stop(self):
        """As an operator would, so that it keeps what it has verified."""
        if self.server.process.poll() is None:
            try:
                self.server.stop()
            finally:
                self.server.kill()
