"""Readers: each reads in one way, and finds that what it got is exactly one version that it may have met."""

import io
import json
import random
import struct
import time

import numpy

from versions import COLUMNS, ROWS, arrays, file_extension, file_of, is_file_model, version_marked
from wire import Connection, component_path, model_path

# Answers that are no content and no fault: refused for lack of room, or the server is just being reloaded.
BUSY = (429, 503)


class Mismatch(Exception):
    """A body that is no version, or one that could not be met."""


def require(condition, *what):
    if not condition:
        raise Mismatch(*what)


def first_version(body):
    return version_marked(struct.unpack_from("<Q", body)[0])


def check_manifest(history, body, _):
    objects = json.loads(body)["objects"]
    names = [name for name in objects if name not in ("w", "z")]
    require(len(names) == 1 and names[0][0] == "v", "objects", sorted(objects))
    version = int(names[0][1:])
    for name, array in arrays(history.model, version).items():
        require(objects[name]["shape"] == list(array.shape), "shape", name, objects[name]["shape"])
    return version


def check_elements(choose):
    """The body is choose(w) of one version, `w` being its uncompressed array."""

    def check(history, body, _):
        version = first_version(body)
        require(choose(arrays(history.model, version)["w"]).tobytes() == body, "elements of", version)
        return version

    return check


def check_compressed(history, body, _):
    version = first_version(body)
    require(arrays(history.model, version)["z"].tobytes() == body, "decoded elements of", version)
    return version


def check_npy(history, body, _):
    found = numpy.load(io.BytesIO(body))
    version = version_marked(int(found.flat[0]))
    require(numpy.array_equal(found, arrays(history.model, version)["w"]), "array of", version)
    return version


def check_arrays(history, found):
    version = version_marked(int(found["w"].flat[0]))
    expected = arrays(history.model, version)
    require(set(found) == set(expected), "objects of", version, sorted(found))
    for name, array in expected.items():
        require(numpy.array_equal(found[name], array), name, "of", version)
    return version


def check_safetensors(history, body, _):
    length = struct.unpack_from("<Q", body)[0]
    header = json.loads(body[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = body[8 + length + begin : 8 + length + end]
        found[name] = numpy.frombuffer(data, "<u8").reshape(entry["shape"])
    return check_arrays(history, found)


def check_npz(history, body, _):
    with numpy.load(io.BytesIO(body)) as found:
        return check_arrays(history, dict(found))


def check_file(history, body, _):
    kind = file_extension(history.model)
    version = next((v for v in history.known() if file_of(history.model, v, kind) == body), None)
    require(version is not None, "the file of", history.model, "is no version")
    return version


def check_parts(history, body, answer):
    """Two ranges of `w`, in a multipart body."""
    boundary = answer["Content-Type"].split("boundary=")[1].strip('"').encode()
    parts = [part.split(b"\r\n\r\n", 1)[1][:-2] for part in body.split(b"--" + boundary)[1:-1]]
    version = first_version(parts[0])
    whole = arrays(history.model, version)["w"].tobytes()
    require(parts == [whole[0:64], whole[4096:8192]], "parts of", version)
    return version


def plain(path, check, **fields):
    return lambda history: (path(history.model), {name.replace("_", "-"): value for name, value in fields.items()}, check)


def of_w(query=""):
    return lambda model: component_path(model, "w") + query


def of_z(query=""):
    return lambda model: component_path(model, "z") + query


def export(query):
    return lambda model: f"{model_path(model)}/export?format={query}"


def random_slice(history):
    begin = random.randrange(ROWS)
    end = random.randrange(begin, ROWS) + 1
    left = random.randrange(COLUMNS)
    right = random.randrange(left, COLUMNS) + 1
    path = of_w(f"?slice={begin}:{end},{left}:{right}")(history.model)
    return path, {}, check_elements(lambda w: w[begin:end, left:right])


def random_shard(history):
    rank = random.randrange(8)
    size = COLUMNS // 8
    path = of_w(f"?shard={rank}/8&axis=1")(history.model)
    return path, {}, check_elements(lambda w: w[:, rank * size : (rank + 1) * size])


def random_range(history):
    begin = random.randrange(ROWS * COLUMNS - 1) * 8
    end = random.randrange(begin + 8, ROWS * COLUMNS * 8 + 1, 8)
    fields = {"Range": f"bytes={begin}-{end - 1}"}
    return of_w()(history.model), fields, check_elements(lambda w: numpy.frombuffer(w.tobytes()[begin:end], "u1"))


def stored_file(history):
    """The file itself, of models whose files are renamed into the folder; others have no known bytes."""
    if not is_file_model(history.model):
        return random_range(history)
    return f"/files/{history.model}.{file_extension(history.model)}", {}, check_file


WAYS = [
    plain(model_path, check_manifest),
    plain(of_w(), check_elements(lambda w: w)),
    plain(of_z(), check_compressed),
    plain(of_w("?format=npy"), check_npy),
    plain(of_w(), check_parts, Range="bytes=0-63,4096-8191"),
    plain(of_w("?timing"), check_elements(lambda w: w), Want_Repr_Digest="sha-256=10"),
    plain(of_z(), check_compressed, Want_Content_Digest="sha-256=10"),
    plain(export("safetensors"), check_safetensors),
    plain(export("npz"), check_npz),
    stored_file,
    random_slice,
    random_shard,
    random_range,
]


class Reader:
    """Reads random models in random ways, over a connection that it keeps for a while."""

    def __init__(self, soak):
        self.soak = soak
        self.connection = None

    def step(self):
        if self.connection is None or random.random() < 0.02:
            self.close()
            self.connection = Connection(self.soak.server)
        history = random.choice(self.soak.histories)
        path, fields, check = random.choice(WAYS)(history)
        begun = time.monotonic()
        try:
            answer = self.connection.ask("GET", path, fields)
        except Exception:
            self.close()
            raise
        self.judge(history, path, check, answer, begun)

    def judge(self, history, path, check, answer, begun):
        possible = history.possible(begun, time.monotonic())
        if answer.status in BUSY:
            self.soak.count("busy")
            return
        if answer.status == 404:
            require(None in possible, path, "is absent; possible:", possible)
            self.soak.count("absent")
            return
        require(answer.status in (200, 206), path, answer)
        version = check(history, answer.body, answer)
        require(version in possible, path, "is version", version, "possible:", possible)
        self.soak.count("read")

    def close(self):
        if self.connection is not None:
            self.connection.__exit__()
        self.connection = None
