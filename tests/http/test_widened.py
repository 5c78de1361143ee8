"""dtype=f32: small floats and GGUF's blocks as f32, whole and in part, on their own and in exports; each answer compared
with NumPy. tests/interop compares every type of blocks with the package gguf."""

import base64
import hashlib
import io
import json
import struct

import numpy
import pytest

from containers import Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zt1, zt2
from wire import ask, assert_problem, component_path, get, head, model_path

HALVES = numpy.frombuffer(pattern(2 * 24 * 40, seed=41), "<u2").reshape(24, 40) & 0xBFFF  # finite
ROWS, COLUMNS = 16, 512
BLOCKS = numpy.frombuffer(pattern(ROWS * COLUMNS // 32 * 18, seed=42), numpy.uint8).reshape(-1, 18).copy()
BLOCKS[:, 1] &= 0xBF  # scales are finite
BYTES = bytes(range(256))


def q4_0():
    """As ggml dequantizes them."""
    scale = BLOCKS[:, :2].copy().view("<f2").astype(numpy.float32)
    codes = numpy.concatenate([BLOCKS[:, 2:] & 15, BLOCKS[:, 2:] >> 4], axis=1).astype(numpy.float32) - 8
    return (scale * codes).reshape(ROWS, COLUMNS)


def e5m2():
    return (numpy.frombuffer(BYTES, numpy.uint8).astype("<u2") << 8).view("<f2").astype("<f4")


VALUES = {
    "f16": HALVES.view("<f2").astype("<f4"),
    "bf16": (HALVES.astype("<u4") << 16).view("<f4"),
    "e5m2": e5m2(),
    "f4": numpy.array([0, 0.5, 1, 1.5, -6], "<f4"),
    "f32": numpy.arange(6, dtype="<f4"),
    "q4_0": q4_0(),
}
UNCHANGED = {"i16": numpy.arange(10, dtype="<i2"), "f64": numpy.arange(4, dtype="<f8")}
QUANTIZED = {"block_bytes": 18, "elems_per_block": 32}


def blocks(stored=None, encoding=None, digest="xxh3"):
    data = BLOCKS.tobytes()
    component = Component(stored or data, "u8", None, encoding, data if stored else None, digest)
    return Object([ROWS, COLUMNS], {"data": component}, "gguf.q4_0/1", QUANTIZED)


def objects():
    return {
        "f16": dense(HALVES.tobytes(), "f16", [24, 40], digest="xxh3"),
        "bf16": dense(HALVES.tobytes(), "bf16", [24, 40], digest="xxh3"),
        "e5m2": Object([256], {"data": Component(BYTES, "u8", "f8_e5m2", digest="xxh3")}),
        "f4": Object([5], {"data": Component(b"\x10\x32\x0f", "u8", "f4_e2m1", digest="xxh3")}),
        "f32": dense(VALUES["f32"].tobytes(), "f32", [6], digest="xxh3"),
        "q4_0": blocks(),
    } | {name: dense(array.tobytes(), name, list(array.shape), digest="xxh3") for name, array in UNCHANGED.items()}


@pytest.fixture(scope="module")
def server(folder, share_server):
    halves = HALVES.tobytes()
    corrupt = zt2({"q4_0": blocks(digest="xxh3:0123456789abcdef")})
    packed = {
        "q4_0": blocks(seekable(BLOCKS.tobytes(), 1000), "zt.zstd-seekable/1"),
        "f16": dense_encoded(halves, seekable(halves, 100), "zt.zstd-seekable/1", "f16", [24, 40], digest="xxh3"),
    }
    (folder / "w.zt").write_bytes(zt2(objects()))
    (folder / "packed.zt").write_bytes(zt2(packed))
    (folder / "zstd.zt").write_bytes(zt1({"f16": zstd_dense(halves, "f16", [24, 40], states_length=False)}))
    (folder / "older.zt").write_bytes(zt1({"q4_0": blocks(digest="sha256")}))
    (folder / "corrupt.zt").write_bytes(corrupt)
    (folder / "turned.npz").write_bytes(turned())
    return share_server(folder)


def turned():
    file = io.BytesIO()
    numpy.savez(file, f16=numpy.asfortranarray(HALVES.view("<f2")), big=HALVES.view("<f2").astype(">f2"))
    return file.getvalue()


def widened(name, model="w", **query):
    rest = "".join(f"&{key}={value}" for key, value in query.items())
    return f"{component_path(model, name)}?dtype=f32{rest}"


@pytest.mark.parametrize("name", VALUES)
def test_elements_become_f32(server, name):
    answer = get(server, widened(name))
    assert answer.status == 200 and answer.body == VALUES[name].tobytes()
    assert answer.fields["zt-dtype"] == answer.fields["zt-type"] == "f32" and answer.fields["zt-format"] == "dense"
    assert answer.fields["zt-shape"] == ",".join(map(str, VALUES[name].shape))
    told = head(server, widened(name))
    assert told.fields["content-length"] == str(VALUES[name].nbytes) and told.fields["etag"] == answer.fields["etag"]


@pytest.mark.parametrize(("model", "name"), [("older", "q4_0"), ("packed", "q4_0"), ("packed", "f16"), ("zstd", "f16"), ("turned", "f16"), ("turned", "big")])
def test_encoded_elements_are_decoded_first(server, model, name):
    expected = VALUES["q4_0" if name == "q4_0" else "f16"]
    assert get(server, widened(name, model)).body == expected.tobytes()
    assert get(server, widened(name, model, slice="3:7,1:30")).body == expected[3:7, 1:30].tobytes()


def test_slices_and_shards_address_elements(server):
    values = VALUES["q4_0"]
    assert get(server, widened("q4_0", slice="2:5,7:300")).body == values[2:5, 7:300].tobytes()
    assert get(server, widened("q4_0", slice="-1,3")).body == values[-1, 3].tobytes()
    assert get(server, widened("q4_0", shard="1/4", axis=1)).body == values[:, 128:256].tobytes()
    assert get(server, widened("f4", slice="1:4")).body == VALUES["f4"][1:4].tobytes()
    assert_problem(get(server, widened("q4_0", slice="16")), 422, "slice-out-of-range")
    assert_problem(get(server, widened("q4_0", shard="0/5")), 422, "shape-not-divisible")


def test_npy_holds_what_numpy_has_no_type_for(server):
    for name, part in (("bf16", "0:3"), ("q4_0", "1:2,5:9"), ("f4", "0:2")):
        answer = get(server, widened(name, slice=part, format="npy"))
        ends = tuple(slice(*map(int, item.split(":"))) for item in part.split(","))
        loaded = numpy.load(io.BytesIO(answer.body))
        assert loaded.dtype == numpy.float32 and numpy.array_equal(loaded, VALUES[name][ends])


def test_it_is_a_representation_of_its_own(server):
    plain = get(server, component_path("w", "q4_0"))
    whole = get(server, widened("q4_0"), Want_Repr_Digest="sha-256=10")
    digest = base64.b64encode(hashlib.sha256(whole.body).digest()).decode()
    assert plain.body == BLOCKS.tobytes() and plain.fields["etag"] != whole.fields["etag"]
    assert whole.fields.get("repr-digest") in (None, f"sha-256=:{digest}:")
    part = get(server, widened("q4_0"), Range="bytes=1001-20002", If_Range=whole.fields["etag"])
    assert part.status == 206 and part.body == whole.body[1001:20003]
    assert get(server, widened("q4_0"), If_None_Match=whole.fields["etag"]).status == 304
    assert get(server, widened("q4_0"), If_None_Match=plain.fields["etag"]).status == 200


def test_what_cannot_be_widened_is_refused(server):
    for name in UNCHANGED:
        assert_problem(get(server, widened(name)), 422, "not-representable")
    assert_problem(get(server, f"{component_path('w', 'f16')}?dtype=f64"), 400, "invalid-request")
    assert_problem(get(server, f"{component_path('w', 'f16')}?dtype="), 400, "invalid-request")
    assert_problem(get(server, widened("f16", dtype="f32")), 400, "invalid-request")
    assert_problem(get(server, widened("f16", representation="stored")), 400, "invalid-request")
    assert_problem(get(server, widened("q4_0", "corrupt")), 500, "corrupt-component")


# --- exports ---


def read_safetensors(file):
    """Type, shape and bytes of each tensor."""
    (length,) = struct.unpack_from("<Q", file)
    header = json.loads(file[8 : 8 + length])
    data = file[8 + length :]
    return {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def export(server, extra="", model="w"):
    return get(server, f"{model_path(model)}/export?format=safetensors&dtype=f32{extra}")


@pytest.mark.parametrize("query", ["slice=0:1", "format=npy"])
def test_refusals_of_what_could_be_widened_say_so(server, query):
    problem = assert_problem(get(server, f"{component_path('w', 'q4_0')}?{query}"), 422, "not-representable")
    assert "dtype=f32 gives the dequantized values" in problem["detail"]


@pytest.mark.parametrize("model", ["w", "packed"])
def test_an_export_widens_what_it_can(server, model):
    answer = export(server, model=model)
    assert answer.status == 200 and answer.fields["content-length"] == str(len(answer.body))
    tensors = read_safetensors(answer.body)
    for name, (dtype, shape, data) in tensors.items():
        expected = VALUES.get(name, UNCHANGED.get(name))
        assert (shape, data) == (list(expected.shape), expected.tobytes()), name
        assert dtype == {"i16": "I16", "f64": "F64"}.get(name, "F32")
    part = ask(server, "GET", f"{model_path(model)}/export?format=safetensors&dtype=f32",
               {"Range": "bytes=777-9999", "If-Range": answer.fields["etag"]})  # fmt: skip
    assert part.status == 206 and part.body == answer.body[777:10000]


@pytest.mark.parametrize("model", ["w", "packed"])
def test_a_shard_is_cut_from_what_was_widened(server, model):
    answer = export(server, "&match=q4_0&match=f16&shard=1/2&axis=1", model)
    tensors = read_safetensors(answer.body)
    assert set(tensors) == {"q4_0", "f16"}
    for name, (dtype, shape, data) in tensors.items():
        expected = numpy.split(VALUES[name], 2, axis=1)[1]
        assert (dtype, shape, data) == ("F32", list(expected.shape), expected.tobytes())


def test_exports_with_and_without_have_tags_of_their_own(server):
    plain = get(server, f"{model_path('w')}/export?format=safetensors&match=f16")
    wide = export(server, "&match=f16")
    assert plain.fields["etag"] != wide.fields["etag"] and len(wide.body) > len(plain.body)
    assert_problem(get(server, f"{model_path('w')}/export?format=zt&dtype=f16"), 400, "invalid-request")
    assert_problem(get(server, f"{model_path('w')}/export?format=safetensors&match=q4_0"), 422, "not-representable")
