"""Statistics of components beside NumPy and ml_dtypes: equal counts and edges for every type, whatever it is stored as."""

import io
import json
import math
import struct
import subprocess
from fractions import Fraction

import ml_dtypes
import numpy
import pytest

from clients import Client, write_tokens
from containers import Component, Object, dense, dense_encoded, seekable, zstd_frame, zt1, zt2
from server_process import PROGRAM
from wire import Connection, ask, assert_problem, component_path, get, head

# Type in the file: storage type, and NumPy's type.
TYPES = {
    "f64": ("f64", numpy.float64), "f32": ("f32", numpy.float32), "f16": ("f16", numpy.float16),
    "bf16": ("bf16", ml_dtypes.bfloat16), "i64": ("i64", numpy.int64), "i32": ("i32", numpy.int32),
    "i16": ("i16", numpy.int16), "i8": ("i8", numpy.int8), "u64": ("u64", numpy.uint64), "u32": ("u32", numpy.uint32),
    "u16": ("u16", numpy.uint16), "u8": ("u8", numpy.uint8), "bool": ("bool", numpy.bool_),
    "f8_e4m3fn": ("u8", ml_dtypes.float8_e4m3fn), "f8_e5m2": ("u8", ml_dtypes.float8_e5m2),
    "f8_e4m3fnuz": ("u8", ml_dtypes.float8_e4m3fnuz), "f8_e5m2fnuz": ("u8", ml_dtypes.float8_e5m2fnuz),
}  # fmt: skip
EXACT = {"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"}
SHAPE = [3, 50, 211]
RELATIVE = 1e-12

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")


def array_of(name, shape=SHAPE):
    """Random bits: of floats many are huge, tiny, or not numbers at all."""
    dtype = numpy.dtype(TYPES[name][1])
    random = numpy.random.default_rng(len(name) * 31 + sum(shape))
    bits = random.bytes(dtype.itemsize * int(numpy.prod(shape)))
    if name == "bool":
        bits = bytes(byte & 1 for byte in bits)
    # The squares of most random doubles overflow.
    array = numpy.frombuffer(bits, dtype) if name != "f64" else random.standard_cauchy(int(numpy.prod(shape)))
    return array.reshape(shape).astype(dtype)


def stored(name, array):
    return Object(list(array.shape), {"data": Component(array.tobytes(), TYPES[name][0], name if name != TYPES[name][0] else None)})


def floats(values, dtype=numpy.float32):
    return numpy.array(values, dtype)


NAN, INF = math.nan, math.inf
SPECIAL = {
    "empty": floats([]),
    "empty table": numpy.zeros((0, 3), numpy.float32),
    "one": floats([2.5]),
    "scalar": floats(-0.125),
    "equal": floats([7.0] * 3000),
    "nothing finite": floats([NAN, INF, INF, -INF]),
    "one finite": floats([NAN, INF, 3.0, -INF]),
    "zeros": floats([0.0, -0.0, 1.0, -1.0]),
    "on edges": numpy.tile(numpy.arange(65, dtype=numpy.float32), 40),
    "large": numpy.random.default_rng(5).normal(3, 2, (1300, 1000)).astype(numpy.float32),
    "far from zero": floats(1e6 + numpy.random.default_rng(6).random(5000), numpy.float64),
    "tiny": floats(numpy.random.default_rng(7).random(3000) * 1e-310, numpy.float64),
    "overflow": floats([-1.7e308, 1.7e308], numpy.float64),
    "rare": numpy.where(numpy.arange(100000) % 3001 == 17, NAN, numpy.arange(100000.0) % 77).astype(numpy.float32),
    "i64 ends": numpy.array([-(1 << 63), (1 << 63) - 1, (1 << 53) + 1, 0], numpy.int64),
    "i64 close": numpy.array([(1 << 60) + 1, (1 << 60) + 3], numpy.int64),
    "u64 ends": numpy.array([(1 << 64) - 1, (1 << 63) + 1], numpy.uint64),
}
NAMES = {"float64": "f64", "float32": "f32", "int64": "i64", "uint64": "u64"}
ARRAYS = {name: (name, array_of(name)) for name in TYPES} | {key: (NAMES[array.dtype.name], array) for key, array in SPECIAL.items()}


def two_bits(name, array):
    """f4_e2m1, two in a byte."""
    codes = array.reshape(-1).view(numpy.uint8)
    return Object(list(array.shape), {"data": Component((codes[::2] | codes[1::2] << 4).tobytes(), "u8", name)})


F4 = (numpy.random.default_rng(8).integers(0, 16, (6, 40)).astype(numpy.uint8)).view(ml_dtypes.float4_e2m1fn)
E8 = numpy.arange(100, 150, dtype=numpy.uint8).view(ml_dtypes.float8_e8m0fnu)
Q4_BLOCKS = 40


def q4_0():
    """Blocks of a scale (f16) and 32 numbers of four bits."""
    random = numpy.random.default_rng(9)
    scales = random.normal(0, 1, Q4_BLOCKS).astype(numpy.float16)
    codes = random.integers(0, 256, (Q4_BLOCKS, 16)).astype(numpy.uint8)
    numbers = numpy.concatenate([codes & 15, codes >> 4], 1).astype(numpy.float32) - 8
    data = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, codes, strict=True))
    return data, (numbers * scales[:, None].astype(numpy.float32)).reshape(8, -1)


def model_objects():
    objects = {key: stored(name, array) for key, (name, array) in ARRAYS.items()}
    objects["f4"] = two_bits("f4_e2m1", F4)
    objects["e8"] = Object([50], {"data": Component(E8.tobytes(), "u8", "f8_e8m0")})
    objects["complex"] = Object([4], {"data": Component(bytes(32), "f32", "complex64")})
    objects["future"] = Object([4], {"data": Component(b"1234", "u8", "x.future")})
    objects["unknown"] = dense_encoded(b"12345678", b"????", "lz4")
    sparse = {"values": Component(bytes(8), "f32"), "indices": Component(bytes(16), "u64"), "indptr": Component(bytes(24), "u64")}
    objects["csr"] = Object([2, 3], sparse, "sparse_csr")
    return objects


def in_frames():
    made = {}
    for key in ("large", "i16", "bf16"):
        plain = stored(*ARRAYS[key]).components["data"]
        frames = Component(seekable(plain.stored, 1 << 12), plain.dtype, plain.type, "zt.zstd-seekable/1", plain.stored, "xxh3")
        made[key] = Object(list(ARRAYS[key][1].shape), {"data": frames})
    return made


def packed(key):
    plain = stored(*ARRAYS[key]).components["data"]
    component = Component(zstd_frame(plain.stored), plain.dtype, plain.type, "zstd", plain.stored, "sha256")
    return Object(list(ARRAYS[key][1].shape), {"data": component})


INTEGERS = {
    "int64 close": [(1 << 60) + 1, (1 << 60) + 3],
    "int64 equal": [(1 << 60)] * 2,
    "uint64 far": [(1 << 63) + 1, (1 << 63) + 4096],
    "int32 equal": [7, 7, 7],
    "int64 apart": [-(1 << 62), (1 << 62) - 1],
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "types.zt").write_bytes(zt1(model_objects()))
    (folder / "zstd.zt").write_bytes(zt1({key: packed(key) for key in ("large", "i16", "bf16", "f32")}))
    (folder / "frames.zt").write_bytes(zt2(in_frames()))
    (folder / "blocks.gguf").write_bytes(gguf_blocks())
    convert = [PROGRAM, "convert", "--to", "zt2", "--zstd", folder / "blocks.gguf", folder / "packed.zt"]
    subprocess.run(convert, check=True, capture_output=True)
    fortran = io.BytesIO()
    numpy.savez_compressed(fortran, large=numpy.asfortranarray(ARRAYS["large"][1]))
    (folder / "fortran.npz").write_bytes(fortran.getvalue())
    for name, lists, dtype in (("ends", NEAR_THE_ENDS, "f8"), ("narrow", NARROW, "f8"), ("integers", INTEGERS, None)):
        arrays = {key: numpy.array(values, dtype or key.split()[0]) for key, values in lists.items()}
        (folder / f"{name}.zt").write_bytes(zt1({
            key: dense(array.tobytes(), array.dtype.name.replace("uint", "u").replace("int", "i").replace("float", "f"), [array.size])
            for key, array in arrays.items()
        }))
    damaged = zt1({"w": dense(bytes(range(64)), "f32", [16], digest="sha256")})
    (folder / "damaged.zt").write_bytes(damaged.flipped("w", at=5))
    return share_server(folder)


def gguf_blocks():
    """One tensor of 8 rows in blocks q4_0 (type 2)."""
    data, numbers = q4_0()
    name = b"q4"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<I2QIQ", 2, numbers.shape[1], numbers.shape[0], 2, 0)
    return head + bytes(-len(head) % 32) + data


def statistics(server, model, key, query=""):
    answer = get(server, component_path(model, key) + "/statistics" + query)
    assert answer.status == 200, answer
    return answer.json()


def assert_close(actual, expected, scale):
    assert actual == pytest.approx(expected, rel=RELATIVE, abs=RELATIVE * scale)


def assert_counts(made, array):
    wide = array.astype(numpy.float64)
    assert made["count"] == array.size
    assert made["finite"] == int(numpy.isfinite(wide).sum())
    assert made["nan"] == int(numpy.isnan(wide).sum())
    assert made["positive_inf"] == int(numpy.isposinf(wide).sum())
    assert made["negative_inf"] == int(numpy.isneginf(wide).sum())
    assert made["zero"] == int((wide == 0).sum())


def assert_equal_to_numpy(made, array, bins=64, exact=False):
    assert made["shape"] == list(array.shape)
    assert_counts(made, array)
    wide = array.astype(numpy.float64).reshape(-1)
    finite = wide[numpy.isfinite(wide)]
    if finite.size == 0:
        assert [made[key] for key in ("min", "max", "mean", "std", "abs_max", "histogram")] == [None] * 6
        return
    if exact:
        low, high = int(array.min()), int(array.max())
        assert all(isinstance(made[key], int) for key in ("min", "max", "abs_max"))
        assert made["abs_max"] == max(abs(low), abs(high))
    else:
        low, high = finite.min(), finite.max()
        assert made["abs_max"] == numpy.abs(finite).max()
    assert (made["min"], made["max"]) == (low, high)
    std = numpy.std(finite.astype(numpy.longdouble))
    assert_close(made["mean"], float(numpy.mean(finite.astype(numpy.longdouble))), float(std))
    assert_close(made["std"], float(std), 0)
    assert made["histogram"] == histogram(finite, bins)


def histogram(finite, bins):
    """None where NumPy makes none: bins would be narrower than the spacing of doubles there."""
    try:
        counts, edges = numpy.histogram(finite, bins)
    except ValueError:
        return None
    return {"edges": edges.tolist(), "counts": counts.tolist()}


@pytest.mark.parametrize("key", [key for key in ARRAYS if key not in ("overflow", "i64 close")])
def test_every_type_and_case_is_as_numpy_has_it(server, key):
    name, array = ARRAYS[key]
    made = statistics(server, "types", key)
    assert (made["dtype"], made["type"]) == (TYPES[name][0], name)
    assert_equal_to_numpy(made, array, exact=name in EXACT and array.size > 0)


@pytest.mark.parametrize("bins", [1, 7, 1024])
@pytest.mark.parametrize("key", ["f32", "on edges", "far from zero", "u64"])
def test_any_number_of_bins(server, key, bins):
    name, array = ARRAYS[key]
    assert_equal_to_numpy(statistics(server, "types", key, f"?bins={bins}"), array, bins, name in EXACT)


def test_floats_of_less_than_a_byte_and_scales(server):
    assert_equal_to_numpy(statistics(server, "types", "f4"), F4)
    assert_equal_to_numpy(statistics(server, "types", "f4", "?slice=1:3,1:38"), F4[1:3, 1:38])
    assert_equal_to_numpy(statistics(server, "types", "e8"), E8)


def test_quantized_blocks_are_those_numbers_that_they_stand_for(server):
    numbers = q4_0()[1]
    assert_equal_to_numpy(statistics(server, "blocks", "q4"), numbers)
    assert_equal_to_numpy(statistics(server, "blocks", "q4", "?slice=2:5,3:77"), numbers[2:5, 3:77])


def test_compressed_blocks_are_decoded_first(server):
    assert get(server, component_path("packed", "q4"))["ZT-Encoding"] != "raw"
    assert_equal_to_numpy(statistics(server, "packed", "q4"), q4_0()[1])


def test_what_does_not_fit_in_a_double(server):
    """The range of a histogram, and edges between integers beyond 2^53, which NumPy refuses."""
    made = statistics(server, "types", "overflow")
    assert (made["min"], made["max"], made["histogram"]) == (-1.7e308, 1.7e308, None)
    assert (made["mean"], made["std"]) == (0, 1.7e308)
    made = statistics(server, "types", "i64 close")
    assert (made["min"], made["max"], made["histogram"]) == ((1 << 60) + 1, (1 << 60) + 3, None)


MAX = float(numpy.finfo(numpy.float64).max)
LEAST = 5e-324
NEAR_THE_ENDS = {
    "three": [-1e308, 1e308, 0.0],
    "equal": [1e308] * 5,
    "greatest": [MAX] * 4000,
    "greatest and zero": [MAX, 0.0, -MAX, 0.0, MAX],
    "sum overflows": [1.7e308, 1.6e308, 1.5e308] * 700,
    "one large among many": [*numpy.arange(5000.0), 1e300],
    "at the limit of scaling": [2.0**400, 2.0**401, -(2.0**400)] * 900,
    "some chunks large": [1.0] * 1500 + [3e200] * 1500 + [-2.0] * 1500,
    "some chunks tiny": [1.0] * 1500 + [3e-250] * 1500,
    "zeros, then tiny": [0.0] * 1500 + [1e-200, -1e-200] * 800,
    "squares underflow": [1e-170, 2e-170, 5e-170],
    "least": [LEAST, 0.0, 3 * LEAST],
    "with others": [1e308, NAN, -1e308, INF, -INF, 1e308],
}


def exact_moments(values):
    """Mean and standard deviation, rounded once."""
    finite = [Fraction(value) for value in values if math.isfinite(value)]
    mean = sum(finite) / len(finite)
    square = sum((value - mean) ** 2 for value in finite) / len(finite)
    # A root of a fraction with more digits than a double has.
    shift = 2400
    root = Fraction(math.isqrt(int(square * 4**shift)), 2**shift)
    return float(mean), float(root)


@pytest.mark.parametrize("key", NEAR_THE_ENDS)
def test_moments_near_the_ends_of_the_range_of_doubles(server, key):
    values = NEAR_THE_ENDS[key]
    made = statistics(server, "ends", key)
    mean, std = exact_moments(values)
    spread = max(abs(value) for value in values if math.isfinite(value))
    assert made["std"] == pytest.approx(std, rel=1e-12, abs=LEAST)
    assert made["mean"] == pytest.approx(mean, rel=1e-12, abs=max(1e-12 * std, 1e-15 * spread, LEAST))
    assert made["min"] <= made["mean"] <= made["max"]


NARROW = {
    "next": [1.0, 1.0 + 2.0**-52, 1.0],
    "no half": [2.0**54] * 3,
    "far": [1e300, 1e300],
    "least": [0.0, LEAST],
    "one step": [-LEAST, LEAST],
    "large": [1e16, 1e16 + 128],
}


@pytest.mark.parametrize("bins", [1, 4, 10, 64])
@pytest.mark.parametrize("key", NARROW)
def test_bins_narrower_than_the_spacing_of_doubles_give_no_histogram(server, key, bins):
    made = statistics(server, "narrow", key, f"?bins={bins}")
    assert made["histogram"] == histogram(numpy.array(NARROW[key]), bins)
    assert made["count"] == len(NARROW[key]) and made["std"] is not None


@pytest.mark.parametrize("query, index", [
    ("?slice=1", (1,)), ("?slice=:,3:9,:100", (slice(None), slice(3, 9), slice(0, 100))), ("?slice=...,7", (Ellipsis, 7)),
    ("?slice=2:2", (slice(2, 2),)), ("?shard=1/3", (slice(1, 2),)), ("?shard=1/2&axis=1", (slice(None), slice(25, 50))),
])  # fmt: skip
@pytest.mark.parametrize("name", ["f32", "i64"])
def test_slices_and_shards(server, name, query, index):
    part = ARRAYS[name][1][index]
    assert_equal_to_numpy(statistics(server, "types", name, query), part, exact=name in EXACT and part.size > 0)


@pytest.mark.parametrize("model, keys", [("zstd", ["large", "i16", "bf16"]), ("frames", ["large", "i16", "bf16"]), ("fortran", ["large"])])
def test_encoded_components_are_decoded_first(server, model, keys):
    for key in keys:
        name, array = ARRAYS[key]
        assert_equal_to_numpy(statistics(server, model, key), array, exact=name in EXACT)
        part = array[1:, 5:40]
        assert_equal_to_numpy(statistics(server, model, key, "?slice=1:,5:40"), part, exact=name in EXACT)


def test_an_answer_is_kept_and_tagged(server):
    target = component_path("types", "large") + "/statistics"
    with Connection(server) as connection:
        first = connection.ask("GET", target)
        assert first["Content-Type"] == "application/json" and first["Cache-Control"] == "no-cache"
        assert connection.ask("GET", target).body == first.body
        unchanged = connection.ask("GET", target, {"If-None-Match": first["ETag"]})
        assert (unchanged.status, unchanged["ETag"]) == (304, first["ETag"])
        tags = {connection.ask("GET", target + query)["ETag"] for query in ("", "?bins=63", "?slice=0", "?slice=1")}
        assert len(tags) == 4
        assert connection.ask("GET", component_path("types", "large") + "?slice=0")["ETag"] not in tags
    assert head(server, target)["Content-Length"] == str(len(first.body))


def test_unverified_bytes_are_not_looked_at(server):
    assert_problem(get(server, component_path("damaged", "w") + "/statistics"), 500, "corrupt-component")


@pytest.mark.parametrize("key, query, status, code", [
    ("complex", "", 422, "not-representable"), ("future", "", 422, "not-representable"),
    ("unknown", "", 422, "unsupported-encoding"), ("f32", "?bins=0", 400, "invalid-request"),
    ("f32", "?bins=1025", 400, "invalid-request"), ("f32", "?bins=x", 400, "invalid-request"),
    ("f32", "?slice=9", 422, "slice-out-of-range"), ("f32", "?shard=0/7", 422, "shape-not-divisible"),
])  # fmt: skip
def test_refusals(server, key, query, status, code):
    assert_problem(get(server, component_path("types", key) + "/statistics" + query), status, code)


def test_other_layouts_and_unknown_components(server):
    assert_problem(get(server, component_path("types", "csr", "values") + "/statistics"), 422, "not-representable")
    assert_problem(get(server, component_path("types", "f32", "nothing") + "/statistics"), 404, "component-not-found")
    assert ask(server, "PUT", component_path("types", "f32") + "/statistics").status == 405


@pytest.mark.folder("its file is almost all hole")
@pytest.mark.parametrize("form", ["statistics", "preview"])
def test_clients_without_a_token_have_a_limit_of_their_own(tmp_path, start_server, form):
    rows = (1 << 32) + 1  # 64 GiB and one row
    header = json.dumps({"w": {"dtype": "U8", "shape": [rows, 16], "data_offsets": [0, rows * 16]}}).encode()
    root = tmp_path / "root"
    root.mkdir()
    with open(root / "m.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + rows * 16)
    reader = Client("reader", "read")
    tokens = write_tokens(tmp_path / "tokens", reader)
    target = f"{component_path('m', 'w')}/{form}"
    # The limit is looked at first, and nothing is computed for the tag that a client has.
    unchanged = {"If-None-Match": "*"}
    gib = 1 << 26
    for options, token, at_most in (([], {}, 4 * gib), (["--tokens", tokens], reader.fields, 64 * gib)):
        server = start_server(root, *options, environment={"ZTSERVE_VERIFY": "off"})
        assert ask(server, "GET", f"{target}?slice=:{at_most}", token | unchanged).status == 304
        assert_problem(ask(server, "GET", f"{target}?slice=:{at_most + 1}", token | unchanged), 413, "too-large")
        server.stop()
    limited = start_server(root, environment={"ZTSERVE_LIMITS_STATISTICS_BYTES": str(8 << 30)})
    assert ask(limited, "GET", f"{target}?slice=:{8 * gib}", unchanged).status == 304
    assert_problem(ask(limited, "GET", f"{target}?slice=:{8 * gib + 1}", unchanged), 413, "too-large")


@pytest.mark.folder("its file is almost all hole")
def test_elements_that_are_widened_count_too_for_clients_without_a_token(tmp_path, start_server):
    rows, block = (1 << 27) + 1, 18  # a row of 16 values of one byte, of q4_0 of 32 in 18
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [rows, 16], "data_offsets": [0, rows * 16]}}).encode()
    with open(tmp_path / "f8.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + rows * 16)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"w" + struct.pack("<I2QIQ", 2, 32, rows // 2 + 1, 2, 0)
    with open(tmp_path / "q4.gguf", "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        file.truncate(file.tell() + (rows // 2 + 1) * block)
    server = start_server(tmp_path, environment={"ZTSERVE_VERIFY": "off"})
    for model, most in (("f8", 1 << 27), ("q4", 1 << 26)):
        target = f"{component_path(model, 'w')}/statistics?slice="
        assert ask(server, "GET", f"{target}:{most}", {"If-None-Match": "*"}).status == 304
        assert_problem(ask(server, "GET", f"{target}:{most + 1}", {"If-None-Match": "*"}), 413, "too-large")


@pytest.mark.parametrize("model, key, query, stored", [
    ("types", "f8_e5m2", "?slice=1", 50 * 211), ("types", "f4", "", 120), ("blocks", "q4", "", Q4_BLOCKS * 18),
    # Five rows of one block each.
    ("blocks", "q4", "?slice=:5,:8", 5 * 18),
])  # fmt: skip
@pytest.mark.parametrize("form", ["/statistics", "/preview"])
def test_the_limit_counts_bytes_as_they_are_before_widening(start_server, folder, server, model, key, query, stored, form):
    for limit, status in ((stored, 200), (stored - 1, 413)):
        limited = start_server(folder, environment={"ZTSERVE_LIMITS_STATISTICS_BYTES": str(limit)})
        assert get(limited, component_path(model, key) + form + query).status == status


def test_the_document_is_small_and_plain(server):
    text = get(server, component_path("types", "zeros") + "/statistics?bins=2").body
    assert json.loads(text) == {
        "dtype": "f32", "type": "f32", "shape": [4], "count": 4, "finite": 4, "nan": 0, "positive_inf": 0, "negative_inf": 0,
        "zero": 2, "min": -1, "max": 1, "mean": 0, "std": pytest.approx(math.sqrt(0.5)), "abs_max": 1,
        "histogram": {"edges": [-1, 0, 1], "counts": [1, 3]},
    }  # fmt: skip
