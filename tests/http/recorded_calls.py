"""The order in which the server wrote, synced, named and answered, as the library in tests/faults recorded it."""

import os
from pathlib import Path, PurePosixPath

from server_process import PROGRAM

FAULTS = Path(os.environ.get("ZT_BUILD_DIR", PROGRAM.parent)) / "libzt_faults.so"
CHANGES = ("write", "copy", "truncate")


def environment_to_record(path):
    return {"LD_PRELOAD": str(FAULTS), "ZT_RECORD": str(path)}


class Call:
    """`call` is write, copy, truncate, sync, link, rename, mkdir, unlink or answer; `file` identifies the inode."""

    def __init__(self, line):
        self.call, self.file, path = line.split("\t")
        self.path = PurePosixPath(path)

    def __repr__(self):
        return f"{self.call} {self.file if self.call == 'answer' else self.path}"


def read_calls(path):
    return [Call(line) for line in path.read_text().splitlines()]


def position(calls, call, path):
    """The index of the last such call, or -1. A path may be just a file's name."""
    found = [index for index, made in enumerate(calls) if made.call == call and path in (made.path, made.path.name)]
    return found[-1] if found else -1


class Disk:
    """Follows the calls below a root, and knows what a power cut would lose at each moment.

    `faults` says which promises were made too early: a file that became visible before its bytes were synced, and a
    successful answer while bytes or names were not.
    """

    def __init__(self, root):
        self.root = root
        self.unsynced_files = {}  # file → path
        self.unsynced_names = {}  # folder → path of a name in it
        self.seen = set()
        self.faults = []

    def follow(self, calls):
        for made in calls:
            if made.call == "answer":
                self._answer(made)
            elif self.root in made.path.parents or made.path == self.root:
                getattr(self, f"_{'change' if made.call in CHANGES else made.call}")(made)
        return self.faults

    def _is_visible(self, path):
        return not any(part.startswith(".") for part in path.relative_to(self.root).parts)

    def _change(self, made):
        # Files without a name are scratch until they get one.
        if not made.path.name.endswith(" (deleted)") and made.file not in self.seen:
            self.unsynced_names[made.path.parent] = made.path
        self.seen.add(made.file)
        self.unsynced_files[made.file] = made.path

    def _sync(self, made):
        self.unsynced_files.pop(made.file, None)
        self.unsynced_names.pop(made.path, None)

    def _rename(self, made):
        if made.file in self.unsynced_files and self._is_visible(made.path):
            self.faults.append(f"{made.path} is visible before its bytes are synced")
        self.unsynced_names[made.path.parent] = made.path

    _link = _rename

    def _mkdir(self, made):
        self.unsynced_names[made.path.parent] = made.path

    def _unlink(self, made):
        # A hidden file that comes back after a power cut is swept at the next start.
        if self._is_visible(made.path):
            self.unsynced_names[made.path.parent] = made.path
        self.unsynced_files = {file: path for file, path in self.unsynced_files.items() if path != made.path}

    def _answer(self, made):
        if not made.file.startswith("2"):
            return
        for path in self.unsynced_files.values():
            if not path.name.endswith(" (deleted)"):
                self.faults.append(f"answered {made.file} before {path} was synced")
        for path in self.unsynced_names.values():
            self.faults.append(f"answered {made.file} before the name {path} was synced")
