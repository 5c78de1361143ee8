"""Tensors whose name is empty or contains U+0000 are read like any other."""

import io
import json
import struct
import zipfile

import numpy
import pytest
from containers import Component, Object, dense, zt01, zt1
from wire import assert_problem, get

VALUES = struct.pack("<3f", 1, 2, 3)
NAMES = ["", "a\0b", "plain"]


def safetensors():
    header = {name: {"dtype": "F32", "shape": [3], "data_offsets": [12 * i, 12 * i + 12]} for i, name in enumerate(NAMES)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + VALUES * len(NAMES)


def npz():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member in (".npy", "a%00b.npy", "plain.npy"):
            array = io.BytesIO()
            numpy.save(array, numpy.frombuffer(VALUES, "<f4"))
            archive.writestr(member, array.getvalue())
    return file.getvalue()


def gguf():
    """GGUF allows no empty names."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 0)
    for i, name in enumerate((b"a\0b", b"plain")):
        head += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 3, 0, 32 * i)
    return head + bytes(-len(head) % 32) + VALUES + bytes(20) + VALUES


MODELS = {
    "a.safetensors": safetensors(),
    "b.npz": npz(),
    "c.zt": zt1({name: dense(VALUES, "f32", [3]) for name in NAMES}),
    "d.zt": zt01({name: dense(VALUES, "f32", [3]) for name in NAMES}),
    "e.gguf": gguf(),
    "parts.zt": zt1({name: Object([3], {part: Component(VALUES, "f32") for part in NAMES}, "own.layout/1") for name in NAMES}),
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name, data in MODELS.items():
        (folder / name).write_bytes(data)
    return share_server(folder)


@pytest.mark.parametrize("name", MODELS)
def test_every_href_of_a_manifest_gives_the_bytes(server, name):
    manifest = get(server, f"/v1/models/{name.split('.')[0]}").json()
    assert set(manifest["objects"]) >= {"a\0b", "plain"}
    for made in manifest["objects"].values():
        for component in made["components"].values():
            assert get(server, component["href"]).body == VALUES


def test_the_object_without_a_name_has_a_document_and_numbers(server):
    assert get(server, "/v1/models/a/objects/").json()["shape"] == [3]
    assert get(server, "/v1/models/a/objects//data/statistics").json()["max"] == 3
    assert get(server, "/v1/models/a/objects//data?slice=1:2").body == VALUES[4:8]
    assert get(server, "/v1/models/a/objects/a%00b").json()["shape"] == [3]
    assert numpy.array_equal(numpy.load(io.BytesIO(get(server, "/v1/models/a/objects//data?format=npy").body)), [1, 2, 3])


@pytest.mark.parametrize(
    "path, status, code",
    [
        ("/v1/models/c/objects/plain/", 404, "not-found"),
        ("/v1/models/e/objects//data", 400, "invalid-name"),
        ("/v1/models/e/objects/x%00", 400, "invalid-name"),
        ("/v1/models/a%00/objects/plain", 400, "invalid-name"),
        ("/v1/models/a//objects/plain", 400, "invalid-name"),
    ],
)
def test_names_that_no_tensor_has_are_refused_as_before(server, path, status, code):
    assert_problem(get(server, path), status, code)
