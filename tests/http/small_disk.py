"""A file system of a few megabytes for one test, watched for the least that was ever free on it."""

import contextlib
import os
import subprocess
import threading
import time

import pytest


class SmallDisk:
    def __init__(self, path):
        self.path = path
        self.least = self.free()

    def free(self):
        facts = os.statvfs(self.path)
        return facts.f_bavail * facts.f_frsize

    def fill_to(self, free, name="ballast"):
        """Leaves so many bytes free."""
        ballast = self.path / name
        with open(ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.free() - free)
        return ballast

    @contextlib.contextmanager
    def watched(self):
        """Within, `least` is kept: the least that was free at any look."""
        self.least, done = self.free(), threading.Event()

        def look():
            while not done.is_set():
                self.least = min(self.least, self.free())
                time.sleep(0.0005)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.least = min(self.least, self.free())


@contextlib.contextmanager
def small_disk(path, size):
    """Skips the test where file systems may not be mounted."""
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", path], check=True)
