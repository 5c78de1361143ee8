"""The whole suite over a bucket: with $ZT_S3 (moto or ceph), a server that a test starts on a folder serves a bucket instead.

The bucket begins with the folder's files. Before each request, what the test has changed in the folder is changed in the
bucket; after each request that may write, what the server changed in the bucket is changed in the folder. So tests write
and read files as they always do. Those that are about folders themselves have the marker `folder`, with the reason.
"""

import itertools
import os
import threading
from pathlib import Path

import s3_engines
import server_process
from buckets import POLL_S

ENGINES = {"moto": s3_engines.moto, "ceph": s3_engines.ceph}
STATE = ".ztserve"

wanted = os.environ.get("ZT_S3")
mirrors = {}
prefixes = itertools.count(1)
running = []


def session_bucket():
    """One bucket for the whole run, made when it is first needed."""
    if not running:
        engine = ENGINES[wanted]()
        running.extend([engine, next(engine).bucket()])
    return running[1]


def end():
    """Ends the store."""
    if running:
        running[0].close()
        running.clear()


def stamp_of(status):
    """What tells that a file has changed."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def remove_empty(path):
    """A folder of which the bucket has no key any more."""
    if path.is_dir():
        for inner in sorted(path.rglob("*"), reverse=True):
            inner.rmdir()
        path.rmdir()


class Mirror:
    """A folder and what is below a prefix of a bucket, kept equal."""

    def __init__(self, folder):
        self.folder = folder
        self.bucket = session_bucket().below(f"root-{next(prefixes)}")
        self.lock = threading.Lock()
        self.stamps, self.etags = {}, {}
        self.processes = []

    def files(self):
        """{path: stamp} of the regular files that belong to the test."""
        found = {}
        for top, folders, names in os.walk(self.folder):
            if Path(top) == self.folder and STATE in folders:
                folders.remove(STATE)
            for name in names:
                path = Path(top) / name
                try:
                    status = path.lstat()
                except FileNotFoundError:
                    continue
                if path.is_file() and not path.is_symlink():
                    found[str(path.relative_to(self.folder))] = stamp_of(status)
        return found

    def push(self):
        """What the test did to the folder is done to the bucket."""
        with self.lock:
            found = self.files()
            for key in self.stamps.keys() - found.keys():
                self.bucket.delete(key)
                self.etags.pop(key, None)
            for key in sorted(found):
                if self.stamps.get(key) != found[key]:
                    self.etags[key] = self.bucket.put(key, (self.folder / key).read_bytes())
            self.stamps = found

    def pull(self):
        """What the server did to the bucket is done to the folder."""
        with self.lock:
            listed = {key: etag for key, etag in self.bucket.listed().items() if not key.startswith(f"{STATE}/")}
            for key in self.etags.keys() - listed.keys():
                (self.folder / key).unlink(missing_ok=True)
                self.stamps.pop(key, None)
            for key, etag in listed.items():
                if self.etags.get(key) != etag:
                    path = self.folder / key
                    path.parent.mkdir(parents=True, exist_ok=True)
                    remove_empty(path)
                    path.write_bytes(self.bucket.get(key) or b"")
                    self.stamps[key] = stamp_of(path.lstat())
            self.etags = listed

    def environment(self):
        """State and cache of a server are its own: one that runs beside another has a second place."""
        beside = sum(process.poll() is None for process in self.processes)
        state = self.folder / STATE / f"beside-{beside}" if beside else self.folder / STATE
        state.mkdir(parents=True, exist_ok=True)
        return {
            **self.bucket.engine.environment,
            "ZTSERVE_S3_POLL_S": str(POLL_S),
            "ZTSERVE_STATE_DIR": str(state),
        }


def of(folder):
    """The folder's mirror, if there is one."""
    return mirrors.get(os.path.realpath(folder))


def instead_of(root):
    """A root and an environment in place of a folder."""
    if str(root).startswith("s3://") or not os.path.isdir(root):
        return root, {}, None
    path = os.path.realpath(root)
    if path not in mirrors:
        mirrors[path] = Mirror(Path(path))
    mirrors[path].push()
    return mirrors[path].bucket.root, mirrors[path].environment(), mirrors[path]


if wanted:
    server_process.instead_of = instead_of
