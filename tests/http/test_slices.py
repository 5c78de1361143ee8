"""slice, shard and format=npy: every answer compared with NumPy, for every way of storing the array."""

import io
import json
import random
import struct

import numpy
import pytest

from containers import Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zstd_frame, zt01, zt1, zt2
from wire import assert_problem, component_path, get, sha256_field

# Type in the file, storage type, and NumPy's name.
TYPES = {
    "f64": ("f64", "<f8"), "f32": ("f32", "<f4"), "f16": ("f16", "<f2"), "bf16": ("bf16", "<u2"),
    "i64": ("i64", "<i8"), "i32": ("i32", "<i4"), "i16": ("i16", "<i2"), "i8": ("i8", "|i1"),
    "u64": ("u64", "<u8"), "u32": ("u32", "<u4"), "u16": ("u16", "<u2"), "u8": ("u8", "|u1"), "bool": ("bool", "|b1"),
    "f8_e4m3fn": ("u8", "|u1"), "f8_e5m2": ("u8", "|u1"), "complex64": ("f32", "<c8"), "complex128": ("f64", "<c16"),
}  # fmt: skip
SAFETENSORS = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8",
               "<u8": "U64", "<u4": "U32", "<u2": "U16", "|u1": "U8", "|b1": "BOOL"}  # fmt: skip
SHAPES = [[], [0], [7], [2, 3], [6, 4, 8], [3, 0, 2], [1, 2, 1, 3, 2], [8, 200]]
# Larger than what is sent from memory, or decoded in one frame.
NOT_OF_NUMPY = ("bf16", "f8_e4m3fn", "f8_e5m2")
LARGE = [512, 96, 5]
RAW, NPY = "application/octet-stream", "application/x-npy"


def array_of(name, shape):
    storage, code = TYPES[name]
    dtype = numpy.dtype(code)
    data = pattern(dtype.itemsize * int(numpy.prod(shape, dtype=int)), seed=len(name) * 7 + len(shape))
    if code == "|b1":
        data = bytes(byte & 1 for byte in data)
    return numpy.frombuffer(data, dtype).reshape(shape)


def logical(name):
    return None if name == TYPES[name][0] else name


def arrays():
    made = {f"{name} {shape}": (name, array_of(name, shape)) for name in TYPES for shape in ([4, 6],)}
    for index, shape in enumerate(SHAPES):
        name = list(TYPES)[index * 5 % len(TYPES)]
        made[f"{name} {shape}"] = (name, array_of(name, shape))
    made["large"] = ("f32", array_of("f32", LARGE))
    return made


ARRAYS = arrays()


def raw_object(name, array):
    return Object(list(array.shape), {"data": Component(array.tobytes(), TYPES[name][0], logical(name))})


def zstd_object(name, array):
    data = array.tobytes()
    return Object(list(array.shape), {"data": Component(zstd_frame(data), TYPES[name][0], logical(name), "zstd", data)})


def safetensors(chosen):
    header, data = {}, b""
    for key, (name, array) in chosen.items():
        code = "BF16" if name == "bf16" else SAFETENSORS[TYPES[name][1]]
        header[key] = {"dtype": code, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def big_endian(array):
    swapped = array.astype(array.dtype.newbyteorder(">")).tobytes()
    return dense(swapped, "f32", list(array.shape), digest="crc32c", fields={"data_endianness": "big"})


def npz(save, chosen, order):
    file = io.BytesIO()
    save(file, **{key: numpy.array(array, order=order) for key, (name, array) in chosen.items()})
    return file.getvalue()


PLAIN = {key: pair for key, pair in ARRAYS.items() if logical(pair[0]) is None and pair[0] != "bf16"}
HALF = {key: pair for key, pair in ARRAYS.items() if logical(pair[0]) is None}
FLOATS = {key: pair for key, pair in ARRAYS.items() if pair[0] == "f32"}
MODELS = {
    "v12": ARRAYS, "zstd": ARRAYS, "v2": ARRAYS, "seekable": ARRAYS, "v01": FLOATS, "tensors": HALF, "arrays": PLAIN,
    "deflated": PLAIN, "fortran": PLAIN,
}  # fmt: skip


def write_models(folder):
    (folder / "v12.zt").write_bytes(zt1({key: raw_object(*pair) for key, pair in ARRAYS.items()}))
    (folder / "zstd.zt").write_bytes(zt1({key: zstd_object(*pair) for key, pair in ARRAYS.items()}))
    two = {key: raw_object(*pair) for key, pair in ARRAYS.items()}
    for made in two.values():
        component = made.components["data"]
        # Version 2 has no storage type of that name.
        if component.dtype == "bool":
            component.dtype, component.type = "u8", "bool"
        component.digest = "xxh3"
    (folder / "v2.zt").write_bytes(zt2(two))
    frames = {}
    for key, made in two.items():
        raw = made.components["data"]
        component = Component(seekable(raw.stored, 1 << 12), raw.dtype, raw.type, "zt.zstd-seekable/1", raw.stored, "xxh3")
        frames[key] = Object(made.shape, {"data": component})
    (folder / "seekable.zt").write_bytes(zt2(frames))
    (folder / "v01.zt").write_bytes(zt01({key: big_endian(array) for key, (name, array) in FLOATS.items()}))
    (folder / "tensors.safetensors").write_bytes(safetensors(HALF))
    (folder / "arrays.npz").write_bytes(npz(numpy.savez, PLAIN, "C"))
    (folder / "deflated.npz").write_bytes(npz(numpy.savez_compressed, PLAIN, "C"))
    (folder / "fortran.npz").write_bytes(npz(numpy.savez_compressed, PLAIN, "F"))


def special():
    f4 = Component(b"\x21\x43\x65\x87\xa9\x0b", "u8", type="f4_e2m1")
    sparse = {
        "values": Component(pattern(8), "f32"),
        "indices": Component(struct.pack("<2Q", 0, 2), "u64"),
        "indptr": Component(struct.pack("<3Q", 0, 1, 2), "u64"),
    }
    return {
        "a": dense(pattern(96), "f32", [2, 3, 4]),
        "f4": Object([11], {"data": f4}),
        "f4 table": Object([3, 4], {"data": Component(b"\x10\x32\x54\x76\x98\xba", "u8", type="f4_e2m1")}),
        "future": Object([4], {"data": Component(b"1234", "u8", type="x.future")}),
        "csr": Object([2, 3], sparse, "sparse_csr"),
        "unknown": dense_encoded(b"12345678", b"????", "lz4"),
        "scalar": dense(struct.pack("<f", 2.5), "f32", []),
        "name/ü\"x": dense(pattern(8), "u8", [8]),
        "zstd": zstd_dense(pattern(4000), "u16", [20, 100]),
    }


@pytest.fixture(scope="module")
def server(folder, share_server):
    write_models(folder)
    built = zt1(special())
    (folder / "special.zt").write_bytes(built)
    (folder / "damaged.zt").write_bytes(built.flipped("a", at=95))
    return share_server(folder)


def ask(server, model, key, query="", **fields):
    return get(server, component_path(model, key) + query, **fields)


# --- beside NumPy ---


def random_item(random_, extent):
    """The text of an index, and the same index in NumPy."""
    kind = random_.randrange(4)
    if kind == 0 and extent > 0:
        at = random_.randrange(-extent, extent)
        return str(at), at
    if kind == 1:
        return ":", slice(None)
    ends = [random_.choice([None, random_.randrange(-extent - 2, extent + 3)]) for _ in range(2)]
    return ":".join("" if end is None else str(end) for end in ends), slice(*ends)


def random_slice(random_, shape):
    items = [random_item(random_, extent) for extent in shape]
    if random_.random() < 0.4 and items:
        first = random_.randrange(len(items))
        items[first : random_.randrange(first, len(items)) + 1] = [("...", Ellipsis)]
    elif random_.random() < 0.4:
        items = items[: random_.randrange(len(items) + 1)]
    if not items:
        items = [("...", Ellipsis)]
    return ",".join(text for text, _ in items), tuple(index for _, index in items)


def assert_slice(server, model, key, text, expected):
    answer = ask(server, model, key, f"?slice={text}")
    assert answer.status == 200, (model, key, text, answer)
    assert answer.body == expected.tobytes(), (model, key, text)
    assert answer.fields.get("ZT-Shape") == (",".join(map(str, expected.shape)) or None), (model, key, text)
    return answer


@pytest.mark.parametrize("model", list(MODELS))
def test_random_slices_equal_those_of_numpy(server, model):
    random_ = random.Random(f"slices of {model}")
    for key, (name, array) in MODELS[model].items():
        for _ in range(2):
            text, index = random_slice(random_, array.shape)
            expected = array[index]
            answer = assert_slice(server, model, key, text, expected)
            if expected.nbytes == 0:
                continue
            first = random_.randrange(expected.nbytes)
            last = random_.randrange(first, expected.nbytes)
            part = ask(server, model, key, f"?slice={text}", Range=f"bytes={first}-{last}")
            assert (part.status, part.body) == (206, expected.tobytes()[first : last + 1]), (key, text, first, last)
            assert part["Content-Range"] == f"bytes {first}-{last}/{expected.nbytes}"
            assert part["ETag"] == answer["ETag"]


@pytest.mark.parametrize("model", ["v12", "zstd", "deflated"])
def test_shards_put_together_are_the_tensor(server, model):
    for key, (name, array) in MODELS[model].items():
        for axis, extent in enumerate(array.shape):
            for parts in {parts for parts in (1, 2, 3, extent) if parts and extent % parts == 0}:
                spelled = axis if (axis + parts) % 2 else axis - array.ndim
                answers = [ask(server, model, key, f"?shard={part}/{parts}&axis={spelled}") for part in range(min(parts, 8))]
                pieces = numpy.split(array, parts, axis)
                for answer, piece in zip(answers, pieces):
                    assert answer.body == piece.tobytes(), (model, key, axis, parts)
                    assert answer["ZT-Shape"] == ",".join(map(str, piece.shape))


@pytest.mark.parametrize("model", list(MODELS))
def test_npy_answers_are_read_by_numpy(server, model):
    random_ = random.Random(f"npy of {model}")
    for key, (name, array) in MODELS[model].items():
        text, index = random_slice(random_, array.shape)
        for query, expected in (("?format=npy", array), (f"?slice={text}&format=npy", array[index])):
            answer = ask(server, model, key, query)
            if name == "bf16" or (name in NOT_OF_NUMPY and answer.status != 200):
                assert "dtype=f32" in assert_problem(answer, 422, "not-representable")["detail"]
                continue
            assert (answer.status, answer["Content-Type"]) == (200, NPY), (model, key, query)
            loaded = numpy.load(io.BytesIO(answer.body))
            assert loaded.dtype == numpy.dtype(TYPES[name][1]) and loaded.shape == expected.shape, (key, query)
            assert loaded.tobytes() == expected.tobytes(), (key, query)


# --- what is refused ---

@pytest.mark.parametrize("text", ["", "1:2:3", "0x1", "...,..."])
def test_malformed_slices_are_refused(server, text):
    assert_problem(ask(server, "special", "a", f"?slice={text}"), 400, "invalid-slice")


@pytest.mark.parametrize("text", ["2", "-3", ":,:,:,:", "99999999999999999999"])
def test_slices_outside_are_refused(server, text):
    problem = assert_problem(ask(server, "special", "a", f"?slice={text}"), 422, "slice-out-of-range")
    assert problem["object"] == "a" and problem["component"] == "data"


@pytest.mark.parametrize(
    "query",
    ["shard=0", "shard=2/2", "shard=0/2/3", "shard=0/2&axis=x", "axis=0", "slice=:&shard=0/2", "slice=:&axis=0", "format=NPY",
     "representation=stored&slice=:", "representation=stored&shard=0/2", "representation=stored&format=npy",
     "representation=stored&axis=0", "slice=:&slice=0", "shard=0/2&shard=1/2", "format=npy&format=npy"],
)  # fmt: skip
def test_senseless_queries_are_refused(server, query):
    assert_problem(ask(server, "special", "a", f"?{query}"), 400, "invalid-request")


@pytest.mark.parametrize("query, code", [
    ("shard=0/5&axis=1", "shape-not-divisible"), ("shard=0/2&axis=-4", "slice-out-of-range"),
    ("shard=0/99999999999999999999", "shape-not-divisible"),
])  # fmt: skip
def test_shards_that_are_not_there_are_refused(server, query, code):
    assert_problem(ask(server, "special", "a", f"?{query}"), 422, code)


@pytest.mark.parametrize("key, role", [("csr", "values"), ("future", "data")])
@pytest.mark.parametrize("query", ["slice=0", "shard=0/2", "format=npy"])
def test_a_component_that_is_not_an_array_has_no_slices(server, key, role, query):
    answer = get(server, component_path("special", key, role) + f"?{query}")
    assert_problem(answer, 422, "not-representable")


@pytest.mark.parametrize("query", ["slice=0:2", "shard=0/2", "format=npy"])
def test_slices_of_an_unknown_encoding_are_refused(server, query):
    assert_problem(ask(server, "special", "unknown", f"?{query}"), 422, "unsupported-encoding")


def test_scalars_have_one_slice_and_no_shards(server):
    assert ask(server, "special", "scalar", "?slice=...").body == struct.pack("<f", 2.5)
    assert "ZT-Shape" not in ask(server, "special", "scalar", "?slice=...").fields
    assert_problem(ask(server, "special", "scalar", "?slice=0"), 422, "slice-out-of-range")
    assert_problem(ask(server, "special", "scalar", "?shard=0/1"), 422, "slice-out-of-range")
    assert numpy.load(io.BytesIO(ask(server, "special", "scalar", "?format=npy").body)) == 2.5


def test_damage_is_never_served_by_slice(server):
    for query in ("?slice=0", "?shard=0/2", "?format=npy", "?slice=0,0,0"):
        assert_problem(ask(server, "damaged", "a", query), 500, "corrupt-component")
        assert_problem(ask(server, "damaged", "a", query, Range="bytes=0-0"), 500, "corrupt-component")


# --- sub-byte types ---


@pytest.mark.parametrize("key, text, body", [
    ("f4", "0:2", b"\x21"), ("f4", "4:", b"\x65\x87\xa9\x0b"), ("f4", "10", b"\x0b"), ("f4 table", ":,2:4", b"\x32\x76\xba"),
])  # fmt: skip
def test_sub_byte_slices_on_byte_borders(server, key, text, body):
    answer = ask(server, "special", key, f"?slice={text}")
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize("key, text", [("f4", "1:3"), ("f4 table", ":,0")])
def test_sub_byte_slices_inside_bytes_are_refused(server, key, text):
    assert_problem(ask(server, "special", key, f"?slice={text}"), 422, "slice-not-byte-aligned")


def test_sub_byte_types_are_no_npy(server):
    assert_problem(ask(server, "special", "f4", "?format=npy"), 422, "not-representable")
    assert_problem(ask(server, "special", "f4", Accept=NPY), 422, "not-representable")
    assert ask(server, "special", "f4", Accept=f"{NPY}, */*").body == b"\x21\x43\x65\x87\xa9\x0b"


# --- Accept ---


@pytest.mark.parametrize("accept, npy", [
    (NPY, True), (f"{NPY}, {RAW};q=0.5", True), ("*/*", False), (f"{NPY}, {RAW}", False), (f"text/html, {NPY.upper()};q=0.2", True),
])
def test_accept_chooses_npy(server, accept, npy):
    for query in ("", "?slice=0", "?shard=0/2"):
        answer = ask(server, "special", "a", query, Accept=accept)
        assert answer.status == 200
        assert answer["Content-Type"] == (NPY if npy else RAW)
        assert answer.body.startswith(b"\x93NUMPY") == npy
        assert "Accept" in answer["Vary"].split(", ")


@pytest.mark.parametrize("key, role", [("f4", "data"), ("csr", "values"), ("future", "data"), ("zstd", "data")])
def test_answers_that_depend_on_accept_vary_by_it(server, key, role):
    """If NPY is impossible, a client that accepts nothing else is refused."""
    path = component_path("special", key, role)
    for fields in ({}, {"Accept": RAW}, {"Accept": "*/*"}):
        answer = get(server, path, **fields)
        assert answer.status == 200
        assert "Accept" in answer["Vary"].split(", "), fields
    refused = get(server, path, Accept=NPY)
    assert refused.status == (200 if key == "zstd" else 422)
    assert "Accept" in refused["Vary"].split(", ")
    assert "Accept" not in get(server, path + "?representation=stored").fields.get("Vary", "").split(", ")


def test_format_is_not_left_to_accept(server):
    answer = ask(server, "special", "a", "?format=npy", Accept=RAW)
    assert answer["Content-Type"] == NPY
    assert "Vary" not in answer.fields
    stored = ask(server, "special", "a", "?representation=stored", Accept=NPY)
    assert (stored["Content-Type"], stored.body) == (RAW, pattern(96))
    both = ask(server, "special", "zstd", Accept=NPY, Accept_Encoding="zstd")
    assert (both["Content-Type"], both.fields.get("Content-Encoding")) == (NPY, None)


def test_npy_has_the_name_of_a_file(server):
    assert ask(server, "special", "a", "?format=npy")["Content-Disposition"] == 'attachment; filename="a.npy"'
    odd = ask(server, "special", 'name/ü"x', "?format=npy")["Content-Disposition"]
    assert odd == "attachment; filename=\"name____x.npy\"; filename*=UTF-8''name_%C3%BC%22x.npy"
    assert "Content-Disposition" not in ask(server, "special", "a").fields


# --- representations of their own ---


def test_tags_of_different_bytes_differ(server):
    queries = ["", "?slice=0", "?slice=1", "?slice=0:1", "?slice=:,0", "?slice=:,:,0", "?slice=:,:,1", "?shard=0/2",
               "?shard=0/3&axis=1", "?shard=1/3&axis=1", "?format=npy", "?slice=0&format=npy", "?slice=0:1&format=npy",
               "?representation=stored"]  # fmt: skip
    by_tag = {}
    for query in queries:
        answer = ask(server, "special", "a", query)
        assert answer["ETag"].startswith('"')
        by_tag.setdefault(answer["ETag"], set()).add(answer.body)
    assert all(len(bodies) == 1 for bodies in by_tag.values())
    assert len(by_tag) >= len(queries) - 2
    assert ask(server, "special", "a", "?slice=0")["ETag"] == ask(server, "special", "a", "?slice=-2,...")["ETag"]


def test_conditionals_and_if_range_of_a_slice(server):
    path = component_path("special", "a") + "?slice=:,1"
    whole = get(server, path)
    assert get(server, path, If_None_Match=whole["ETag"]).status == 304
    assert get(server, path, If_Match='"other"').status == 412
    assert get(server, path, Range="bytes=4-7", If_Range=whole["ETag"]).body == whole.body[4:8]
    other = ask(server, "special", "a")["ETag"]
    assert get(server, path, Range="bytes=4-7", If_Range=other).body == whole.body
    assert get(server, path, If_None_Match=other).status == 200
    assert_problem(get(server, path, Range="bytes=32-"), 416, "range-not-satisfiable")


@pytest.mark.parametrize("model", ["zstd", "fortran"])
def test_digests_of_slices_cover_the_slice(server, model):
    for query in ("?slice=:,3:17,1:4", "?shard=1/2", "?format=npy"):
        answer = ask(server, model, "large", query, Want_Repr_Digest="sha-256=10")
        assert answer["Repr-Digest"] == sha256_field(answer.body)
        plain = ask(server, model, "large", query)
        assert plain.fields.get("Repr-Digest") in (None, sha256_field(plain.body))


@pytest.mark.folder("sparse files larger than the memory of the tests")
def test_verified_seekable_components_are_read_by_frames(folder, share_server, server):
    """The same before and after verification, and without verification."""
    array = ARRAYS["large"][1]
    unverified = share_server(folder, "--verify", "off")
    for other in (unverified, server):
        for first, last in ((0, 0), (4095, 4096), (100_000, 300_000), (array.nbytes - 5, array.nbytes - 1)):
            part = ask(other, "seekable", "large", Range=f"bytes={first}-{last}")
            assert (part.status, part.body) == (206, array.tobytes()[first : last + 1])
        assert ask(other, "seekable", "large").body == array.tobytes()
        assert_slice(other, "seekable", "large", ":,7,2:", array[:, 7, 2:])
