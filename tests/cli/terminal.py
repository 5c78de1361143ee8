"""A terminal with a program in it, as a person sees it: rows of characters, each state with its moment; and a slow line to a server."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from contextlib import suppress

from relay import Relay

TOKEN = re.compile(r"\x1b\[K|\x1b\[[0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]")


class Screen:
    """What is on it: enough of a terminal for programs that overwrite a line. `frames` are all states: (seconds, rows)."""

    def __init__(self, columns):
        self.columns, self.rows, self.column = columns, [""], 0
        self.frames, self.begun = [], time.monotonic()

    def write(self, text):
        for token in TOKEN.findall(text):
            if token == "\r":
                self.column = 0
            elif token == "\n":
                self.rows.append("")
            elif token == "\x1b[K":
                self.rows[-1] = self.rows[-1][: self.column]
            elif token.startswith("\x1b"):
                raise ValueError(f"a command that no program here has a use for: {token!r}")
            else:
                self.put(token)
        self.frames.append((time.monotonic() - self.begun, tuple(self.rows)))

    def put(self, character):
        if self.column == self.columns:
            self.rows.append("")
            self.column = 0
        row = self.rows[-1].ljust(self.column)
        self.rows[-1] = row[: self.column] + character + row[self.column + 1 :]
        self.column += 1


def run_in_terminal(screen, arguments, folder, environment=None, interrupt_when=None):
    """Runs a program to its end and returns its exit status, negative for a signal. interrupt_when: a pattern of the last row at which a
    person types control-C."""
    child, leader = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(arguments[0], [str(one) for one in arguments], {**os.environ, **(environment or {})})
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, screen.columns, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with suppress(OSError):  # the end of the program is an error of reading
        while select.select([leader], [], [], 60)[0]:
            screen.write(decoder.decode(os.read(leader, 4096)))
            if interrupt_when and re.search(interrupt_when, screen.rows[-1]):
                os.write(leader, b"\x03")
                interrupt_when = None
    with suppress(ProcessLookupError):
        if not select.select([leader], [], [], 0)[0]:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(leader)
    return os.waitstatus_to_exitcode(status)


class SlowLine(Relay):
    """A way to a server on which its answers come at so many bytes a second together."""

    def __init__(self, port, bytes_s):
        self.bytes_s, self.free_at, self.lock = bytes_s, time.monotonic(), threading.Lock()
        super().__init__("127.0.0.1", port)

    def passing(self, data, is_request, connection):
        if not is_request:
            with self.lock:
                self.free_at = max(self.free_at, time.monotonic()) + len(data) / self.bytes_s
                until = self.free_at
            while (pause := until - time.monotonic()) > 0:
                time.sleep(min(pause, 0.1))
        return True
