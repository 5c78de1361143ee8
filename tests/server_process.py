"""A ztserve for one test: started on a free port, used from outside, stopped with its exit status returned."""

import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from certificates import common_authority, common_certificate

TOP = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("ZTSERVE", TOP / "build" / "ztserve"))
# Generous, since sanitized builds on shared machines are slow; normally nothing waits this long.
START_TIMEOUT_S = 180
STOP_TIMEOUT_S = 180
LOG_TIMEOUT_S = 180

# Set to use TLS in every test that does not bring a certificate of its own: most must hold there too.
ALWAYS_TLS = bool(os.environ.get("ZT_ALWAYS_TLS"))


def is_sanitized():
    """True if the program is built with a sanitizer: its memory says nothing, and no library can be preloaded."""
    program = PROGRAM.read_bytes() if PROGRAM.exists() else b""
    return b"__asan_" in program or b"__tsan_" in program


# Set where servers are to serve something else in place of a folder: gives a root, variables and a mirror (http/mirror.py).
instead_of = None


def held_port(port):
    """A socket that keeps others from a port, but not a server that is started on it."""
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", port))
    return place


SERVING = re.compile(r"^ztserve: serving .* on (https?)://(.+):(\d+)$")


class ServerProcess:
    """Runs `ztserve serve --root ROOT …`; `url` is its address once it has reported it.

    With tls, which makes contexts (certificates.Authority), what talks to it does so with TLS."""

    def __init__(self, root, *arguments, environment=None, launcher=(), pass_fds=(), tls=None, listen="127.0.0.1:0"):
        if tls is None and ALWAYS_TLS:
            tls = common_authority()
            arguments = [*arguments, *common_certificate().arguments]
        self.context = tls.context() if tls is not None else None
        root, elsewhere, self.mirror = instead_of(root) if instead_of else (root, {}, None)
        address = ["--listen", listen] if listen else []
        command = [*launcher, str(PROGRAM), "serve", "--root", str(root), *address, *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=pass_fds,
            env={**os.environ, **elsewhere, **(environment or {})},
        )
        if self.mirror:
            self.mirror.processes.append(self.process)
        self._begin_log()
        self.host, self.port = self._read_address()
        self.url = f"{self.scheme}://{self.host}:{self.port}"

    def _begin_log(self):
        self._lines, self._rest, self._has_log_ended, self._log_lock = [], b"", False, threading.Lock()
        threading.Thread(target=self._empty_log, daemon=True).start()

    def _take_log(self):
        """Takes what the server has written."""
        written = select.poll()
        written.register(self.process.stderr, select.POLLIN)
        with self._log_lock:
            while not self._has_log_ended and written.poll(0):
                taken = os.read(self.process.stderr.fileno(), 1 << 16)
                self._has_log_ended = taken == b""
                *lines, self._rest = (self._rest + taken).split(b"\n")
                if self._has_log_ended and self._rest:
                    lines, self._rest = [*lines, self._rest], b""
                self._lines += [line.decode(errors="replace") for line in lines]

    def _empty_log(self):
        """So that the server never waits for a reader."""
        written = select.poll()
        written.register(self.process.stderr, select.POLLIN)
        while not self._has_log_ended:
            written.poll()
            self._take_log()

    @property
    def log_lines(self):
        """All that the server has written by now."""
        self._take_log()
        return self._lines

    def _read_address(self):
        killer = threading.Timer(START_TIMEOUT_S, self.process.kill)
        killer.start()
        line = self.process.stdout.readline().rstrip("\n")
        killer.cancel()
        match = SERVING.match(line)
        if not match:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"ztserve did not start: {line!r}\n" + "\n".join(self.log_lines))
        self.scheme = match.group(1)
        return match.group(2), int(match.group(3))

    def wait_for_line(self, words):
        """The first line of the log with these words."""
        end = time.monotonic() + LOG_TIMEOUT_S
        while not (found := [line for line in self.log_lines if words in line]):
            assert time.monotonic() < end, f"no line says {words!r}:\n{self.log}"
            time.sleep(0.02)
        return found[0]

    def signal(self, number):
        self.look_at_folder()
        self.process.send_signal(number)

    def look_at_folder(self):
        """Before a request: what the test changed in the folder is there."""
        if self.mirror:
            self.mirror.push()

    def look_at_bucket(self):
        """After a request that may have written."""
        if self.mirror:
            self.mirror.pull()

    def wait(self):
        return self.process.wait(STOP_TIMEOUT_S)

    def stop(self):
        """Ends it as an operator would; a status other than 0 is a failure (sanitizers report through it too)."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        status = self.wait()
        self.process.stdout.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def log(self):
        return "\n".join(self.log_lines)
