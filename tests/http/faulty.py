"""A server whose system calls fail when a test says so, while it runs (tests/faults)."""

import errno
import mmap
import struct

from recorded_calls import FAULTS
from server_process import ServerProcess

KINDS = ["write", "sync", "link", "rename", "copy", "truncate", "open", "duplicate", "mkdir", "unlink", "discard", "walk"]
FULL = [errno.ENOSPC, errno.EDQUOT]  # one call after the other
# The first error is tried on every call; it shows of what kind the call is, and so which others it may have.
FIRST = errno.EIO
OTHERS = {
    "write": [*FULL, errno.EINTR],
    "sync": [*FULL, errno.EINTR],
    "link": [*FULL, errno.EINTR],
    "rename": [*FULL, errno.EINTR],
    "copy": [*FULL, errno.EINTR],
    "truncate": [errno.EINTR],
    "open": [errno.EMFILE, errno.EINTR, errno.ENOSPC],
    "duplicate": [errno.EMFILE],
    "mkdir": FULL,
    "unlink": [],
    "discard": [],
}
# In place of an error: the program is killed before the call (tests/faults/fault.c).
KILLS = 0xFFFF
# What comes after one of these may have been done, or not, when the process ends.
CHANGES = {"sync", "link", "rename", "unlink"}


def others_of(kind, number, few):
    """The other errors of a call of this kind; few: one of them."""
    wanted = [error for error in OTHERS[kind] if error not in FULL or error == FULL[number % len(FULL)]]
    return wanted[number % len(wanted) :][:1] if few and wanted else wanted


class Control:
    """Which call of a request fails: struct fault_control in tests/faults/fault.c."""

    def __init__(self, path):
        path.write_bytes(bytes(mmap.PAGESIZE))
        self.path = path
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def _put(self, *numbers):
        struct.pack_into(f"<{len(numbers)}Q", self.memory, 0, *numbers)

    def fail(self, number, error):
        self._put(0, error, 0, 0)
        self._put(number)

    def set_clock_ahead(self, seconds):
        struct.pack_into("<Q", self.memory, 32, seconds)

    def rest(self):
        """Ends it. Returns the kind of the call that failed; None: there were fewer calls."""
        self._put(0)
        (met,) = struct.unpack_from("<Q", self.memory, 24)
        return KINDS[met - 1] if met else None


def start(root, control, *arguments):
    environment = {
        "LD_PRELOAD": str(FAULTS),
        "ZT_FAULT_CONTROL": str(control.path),
        "ZTSERVE_UPLOAD_RESERVE_BYTES": "0",
        "ZTSERVE_STATE_DIR": str(root.parent / "state"),
    }
    return ServerProcess(root, "--writable", "--threads", "1", *arguments, environment=environment)
