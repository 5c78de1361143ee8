"""What a model holds in each of its versions, and which versions a reader may meet.

Every 64-bit word of a version says to which model and version it belongs and where it stands. So a body that mixes two
versions, or is cut out at the wrong place, cannot be mistaken for another.
"""

import io
import json
import struct
import threading
import time
from functools import lru_cache

import numpy

from containers import Object, Component, dense, seekable, zstd_frame, zt1, zt2

ROWS, COLUMNS = 96, 256
# What is compressed is larger than what a connection's memory or one window of reading ahead holds.
LONG_ROWS = 2048


def marks(model, version, rows, columns=COLUMNS):
    """The u64 array of a version; the mark is the upper half of each word."""
    mark = (sum(model.encode()) % 251) << 24 | version
    return (numpy.arange(rows * columns, dtype="<u8") + (numpy.uint64(mark) << numpy.uint64(32))).reshape(rows, columns)


def version_marked(word):
    return (word >> 32) & 0xFFFFFF


@lru_cache(maxsize=64)
def arrays(model, version):
    """The objects of a version: `w` is stored as it is, `z` compressed where the format can, `vN` names the version."""
    return {
        "w": marks(model, version, ROWS),
        "z": marks(model, version, LONG_ROWS + version % 7),
        f"v{version}": marks(model, version, 1, 2),
    }


def zt_objects(model, version, compress, encoding, digest):
    objects = {}
    for name, array in arrays(model, version).items():
        data = array.tobytes()
        if name == "z":
            part = Component(compress(data), "u64", encoding=encoding, decoded=data, digest=digest)
            objects[name] = Object(list(array.shape), {"data": part})
        else:
            objects[name] = dense(data, "u64", list(array.shape), digest=digest)
    return objects


def safetensors(model, version):
    header, data = {}, b""
    for name, array in sorted(arrays(model, version).items()):
        header[name] = {
            "dtype": "U64", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes],
        }  # fmt: skip
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def npz(model, version):
    file = io.BytesIO()
    numpy.savez(file, **arrays(model, version))
    return file.getvalue()


@lru_cache(maxsize=64)
def file_of(model, version, kind):
    """A whole file of a version: kind is zt1, zt2, safetensors or npz."""
    if kind == "zt1":
        return bytes(zt1(zt_objects(model, version, zstd_frame, "zstd", "sha256")))
    if kind == "zt2":
        return bytes(zt2(zt_objects(model, version, seekable, "zt.zstd-seekable/1", "xxh3")))
    return safetensors(model, version) if kind == "safetensors" else npz(model, version)


def is_file_model(model):
    """Whether its files are renamed into the folder; the others are published over HTTP."""
    return model.endswith("file")


def file_extension(model):
    return "npz" if model[0] == "n" else "safetensors"


class History:
    """The versions of one model in the order of their publication; None stands for no model.

    Only the holder of `writing` publishes. A version may be met from the moment at which its publication began until
    the next one was acknowledged.
    """

    def __init__(self, model):
        self.model = model
        self.writing = threading.Lock()
        self._lock = threading.Lock()
        self._events = [[None, 0.0, 0.0]]  # version, begun, acknowledged (None: not yet)
        self._next = 1

    def next_version(self):
        self._next += 1
        return self._next

    def begin(self, version):
        with self._lock:
            self._events.append([version, time.monotonic(), None])

    def acknowledge(self):
        with self._lock:
            self._events[-1][2] = time.monotonic()
            del self._events[:-200]

    def withdraw(self):
        """The publication that began was refused: it did not happen."""
        with self._lock:
            self._events.pop()

    @property
    def current(self):
        """The last acknowledged version."""
        with self._lock:
            return next(version for version, _, acknowledged in reversed(self._events) if acknowledged is not None)

    def known(self):
        """The last versions, the newest first."""
        with self._lock:
            return [version for version, _, _ in reversed(self._events[-20:]) if version is not None]

    def possible(self, begun, ended):
        """The versions that a request between these times may have met."""
        with self._lock:
            versions, over = set(), False
            for version, event_begun, acknowledged in reversed(self._events):
                if event_begun <= ended and not over:
                    versions.add(version)
                over = over or (acknowledged is not None and acknowledged < begun)
            return versions
