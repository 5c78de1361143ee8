"""Previews of components beside NumPy, in their three forms."""

import io
import math
import struct
import zlib

import numpy
import pytest

from containers import Component, Object, dense, zstd_dense, zt1
from wire import assert_problem, component_path, get, head

RANDOM = numpy.random.default_rng(3)
MATRIX = RANDOM.normal(0, 1, (300, 210)).astype(numpy.float32)
HOLES = MATRIX[:40, :60].copy()
HOLES[::3, ::2] = math.nan
HOLES[5, :] = math.inf
HOLES[8:12, 20:30] = math.nan
ARRAYS = {
    "matrix": MATRIX,
    "holes": HOLES,
    "deep": RANDOM.normal(0, 1, (3, 4, 20, 30)),
    "vector": numpy.arange(1000, dtype=numpy.float32),
    "short": numpy.arange(5, dtype=numpy.int64),
    "scalar": numpy.array(2.5, numpy.float32),
    "empty": numpy.zeros((0, 4), numpy.float32),
    "flags": RANDOM.integers(0, 2, (10, 10)).astype(bool),
    "nothing": numpy.full((4, 4), math.nan, numpy.float32),
    "far": numpy.array([[-1.7e308, 0.1], [1.7e308, math.nan]]),
    "large": numpy.array([[(1 << 24) + 1, (1 << 40) + 1, -((1 << 53) - 1)]]),
    # The least doubles beside sums that overflow, of either sign, and of some elements that are not finite.
    "sums": numpy.array([[1e308, 1e308, 2e-310, 4e-310, 1.5e308, -1.7e308], [1e308, math.nan, 2e-310, 4e-310, 1.5e308, math.inf]]),
    "greatest": numpy.full(3, numpy.finfo(numpy.float64).max),
    "same": numpy.full((4, 4), 3, numpy.float32),
}
NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "bool": "bool"}
PNG_TYPE, NPY_TYPE = "image/png", "application/x-npy"


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {key: dense(array.tobytes(), NAMES[array.dtype.name], list(array.shape)) for key, array in ARRAYS.items()}
    objects["packed"] = zstd_dense(MATRIX.tobytes(), "f32", list(MATRIX.shape))
    objects["complex"] = Object([4], {"data": Component(bytes(32), "f32", "complex64")})
    (folder / "m.zt").write_bytes(zt1(objects))
    return share_server(folder)


def ask(server, key, query="", **fields):
    return get(server, component_path("m", key) + "/preview" + query, **fields)


def values(server, key, query=""):
    answer = ask(server, key, query)
    assert answer.status == 200, answer
    made = answer.json()
    cells = numpy.array([[math.nan if cell is None else cell for cell in row] for row in made["values"]], numpy.float32)
    assert cells.reshape(made["rows"], made["cols"]).shape == (made["rows"], made["cols"])
    finite = cells[numpy.isfinite(cells)]
    assert (made["low"], made["high"]) == ((None, None) if finite.size == 0 else (pytest.approx(finite.min()), pytest.approx(finite.max())))
    return made, cells


def reduced(array, rows, cols, reduce="mean"):
    """By the contract's words."""
    wide = array.astype(numpy.float64)
    high, wide_cols = (math.ceil(extent / most) for extent, most in zip(array.shape, (rows, cols), strict=True))
    made = []
    for top in range(0, array.shape[0], high):
        made.append([])
        for left in range(0, array.shape[1], wide_cols):
            block = wide[top : top + high, left : left + wide_cols].reshape(-1)
            block = block[numpy.isfinite(block)]
            cell = {"mean": numpy.mean, "absmax": lambda some: numpy.abs(some).max(), "sample": lambda some: some[0]}[reduce]
            made[-1].append(cell(block) if block.size else math.nan)
    return numpy.array(made, numpy.float32), [high, wide_cols]


@pytest.mark.parametrize("reduce", ["mean", "absmax", "sample"])
@pytest.mark.parametrize("key, rows, cols", [
    ("matrix", 1, 1), ("holes", 1024, 1024), ("matrix", 33, 700), ("holes", 7, 11), ("flags", 3, 4), ("nothing", 2, 2),
    ("packed", 10, 10),
])  # fmt: skip
def test_cells_are_those_of_the_blocks(server, key, rows, cols, reduce):
    array = MATRIX if key == "packed" else ARRAYS[key]
    made, cells = values(server, key, f"?rows={rows}&cols={cols}&reduce={reduce}")
    expected, block = reduced(array, rows, cols, reduce)
    assert made["block"] == block
    numpy.testing.assert_allclose(cells, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("query, index", [("", (0, 0)), ("index=2", (2, 0)), ("index=1,3", (1, 3)), ("index=-1,-4", (2, 0))])
def test_the_last_two_axes_at_an_index(server, query, index):
    _, cells = values(server, "deep", f"?rows=8&cols=8&{query}")
    numpy.testing.assert_allclose(cells, reduced(ARRAYS["deep"][index], 8, 8)[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("query, array", [
    ("slice=1:3,2&index=1", ARRAYS["deep"][2, 2]), ("shard=1/2&axis=1&index=0,1", ARRAYS["deep"][0, 3]),
    ("slice=...,5,:", ARRAYS["deep"][0, :, 5]),
])  # fmt: skip
def test_of_slices_and_shards(server, query, array):
    _, cells = values(server, "deep", f"?rows=9&cols=9&{query}")
    numpy.testing.assert_allclose(cells, reduced(array, 9, 9)[0], rtol=1e-6, atol=1e-7)


def test_a_vector_is_folded_and_a_scalar_is_one_cell(server):
    made, cells = values(server, "vector", "?rows=8&cols=10")
    assert (made["rows"], made["cols"], made["block"]) == (8, 10, [1, 13])
    means = [ARRAYS["vector"][at : at + 13].mean() for at in range(0, 1000, 13)]
    numpy.testing.assert_allclose(cells.reshape(-1)[: len(means)], means, rtol=1e-6)
    assert numpy.isnan(cells.reshape(-1)[len(means) :]).all()
    assert values(server, "short")[1].tolist() == [[0, 1, 2, 3, 4]]
    made, cells = values(server, "scalar")
    assert (made["block"], cells.tolist()) == ([1, 1], [[2.5]])


def test_an_empty_tensor(server):
    made = ask(server, "empty").json()
    assert (made["rows"], made["cols"], made["values"], made["low"]) == (0, 0, [], None)
    assert numpy.load(io.BytesIO(ask(server, "empty", "?format=npy").body)).shape == (0, 0)
    assert_problem(ask(server, "empty", "?format=png"), 422, "not-representable")


def test_npy_has_the_same_cells(server):
    answer = ask(server, "holes", "?rows=9&cols=9&format=npy")
    assert answer["Content-Type"] == NPY_TYPE
    made = numpy.load(io.BytesIO(answer.body))
    assert made.dtype == numpy.float32
    numpy.testing.assert_allclose(made, values(server, "holes", "?rows=9&cols=9")[1], rtol=1e-6)


def test_what_a_float_cannot_hold(server):
    made = ask(server, "far").json()
    assert made["values"] == [[-1.7e308, 0.1], [1.7e308, None]] and (made["low"], made["high"]) == (-1.7e308, 1.7e308)
    assert ask(server, "large").json()["values"] == ARRAYS["large"].tolist()
    with numpy.errstate(over="ignore"):
        numpy.testing.assert_array_equal(numpy.load(io.BytesIO(ask(server, "far", "?format=npy").body)), ARRAYS["far"].astype(numpy.float32))
    drawn = pixels(ask(server, "far", "?format=png&map=gray"))
    assert drawn.tolist() == [[[0, 0, 0, 255], [128, 128, 128, 255]], [[255, 255, 255, 255], drawn[1, 1].tolist()]]
    assert drawn[1, 1, 3] == 0


def test_a_mean_is_finite_where_the_sum_overflows(server):
    assert ask(server, "sums", "?slice=0,:2&rows=1&cols=1").json()["values"] == [[1e308]]
    (cells,) = ask(server, "sums", "?rows=1&cols=3").json()["values"]
    assert cells == pytest.approx([1e308, 3e-310, 0.5e308 + (0.5e308 - 1.7e308 / 3)], rel=1e-12)
    greatest = numpy.finfo(numpy.float64).max
    assert ask(server, "greatest", "?rows=1&cols=1").json()["values"] == [[greatest]]


def pixels(answer):
    """Rows of (red, green, blue, opacity) of an image with a palette; every checksum is checked."""
    assert answer.status == 200 and answer["Content-Type"] == PNG_TYPE, answer
    data, chunks = answer.body, {}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(name + content)
        chunks[name] = content
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">2I5B", chunks[b"IHDR"])
    assert form == [8, 3, 0, 0, 0]
    lines = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    palette = numpy.frombuffer(chunks[b"PLTE"], numpy.uint8).reshape(-1, 3)
    return numpy.concatenate([palette, numpy.frombuffer(chunks[b"tRNS"], numpy.uint8)[:, None]], 1)[lines[:, 1:]]


def test_png_has_a_colour_for_each_cell(server):
    drawn = pixels(ask(server, "matrix", "?rows=50&cols=70&format=png&map=gray"))
    cells = values(server, "matrix", "?rows=50&cols=70")[1]
    place = (cells - cells.min()) / (cells.max() - cells.min())
    assert drawn.shape == (50, 70, 4)
    assert numpy.abs(drawn[..., 0] - place * 255).max() <= 1.5
    assert (drawn[..., 3] == 255).all()


def test_png_by_its_name_and_by_accept(server):
    named = ask(server, "matrix", "?format=png")
    accepted = ask(server, "matrix", Accept="image/png,*/*;q=0.1")
    assert accepted.body == named.body and accepted["Vary"] == "Accept" and "Vary" not in named.fields
    assert ask(server, "matrix", Accept="*/*")["Content-Type"] == "application/json"
    assert ask(server, "matrix", Accept="application/json, image/png;q=0.5")["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept, kind", [
    ("image/avif,image/webp,image/apng,image/*,*/*;q=0.8", PNG_TYPE), ("image/png;q=0", "application/json"),
    ("text/html,application/xml;q=0.9,image/avif,*/*;q=0.8", "application/json"), ("image/*, application/json", "application/json"),
])  # fmt: skip
def test_what_browsers_accept(server, accept, kind):
    assert ask(server, "short", Accept=accept)["Content-Type"] == kind


def test_what_is_not_a_number_is_transparent(server):
    drawn = pixels(ask(server, "holes", "?format=png"))
    assert ((drawn[..., 3] == 0) == ~numpy.isfinite(HOLES)).all()
    assert (pixels(ask(server, "nothing", "?format=png"))[..., 3] == 0).all()


def test_colours_from_low_to_high(server):
    first, last = [0x44, 0x01, 0x54], [0xFD, 0xE7, 0x25]
    drawn = pixels(ask(server, "vector", "?rows=1&cols=1000&format=png&low=100&high=200"))[0]
    assert drawn[0, :3].tolist() == drawn[100, :3].tolist() == first
    assert drawn[200, :3].tolist() == drawn[999, :3].tolist() == last
    assert drawn[150, :3].tolist() not in (first, last)


def test_one_bound_beyond_all_elements(server):
    """The other one is that of the elements, which lie on one side of both."""
    first, last = [0x44, 0x01, 0x54], [0xFD, 0xE7, 0x25]
    assert pixels(ask(server, "short", "?format=png&low=9"))[0, :, :3].tolist() == [first] * 5
    assert pixels(ask(server, "short", "?format=png&high=-9"))[0, :, :3].tolist() == [last] * 5


def test_diverging_colours_are_as_far_below_zero_as_above(server):
    drawn = pixels(ask(server, "short", "?format=png&map=diverging&high=4"))[0]
    red, green, blue = drawn[0, :3].tolist()
    assert red == green == blue == 0xF7
    red, _, blue = drawn[4, :3].tolist()
    assert red > blue
    assert len(numpy.unique(pixels(ask(server, "same", "?format=png")).reshape(-1, 4), axis=0)) == 1


def test_tags(server):
    first = ask(server, "matrix")
    assert ask(server, "matrix", If_None_Match=first["ETag"]).status == 304
    queries = ["", "?format=npy", "?format=png", "?format=png&map=gray", "?format=png&low=0", "?rows=9", "?reduce=sample", "?slice=1:"]
    assert len({ask(server, "matrix", query)["ETag"] for query in queries}) == len(queries)
    assert head(server, component_path("m", "matrix") + "/preview")["Content-Length"] == str(len(first.body))


@pytest.mark.parametrize("key, query, status, code", [
    ("deep", "?index=3", 422, "slice-out-of-range"), ("deep", "?index=0,0,0", 422, "slice-out-of-range"),
    ("deep", "?index=99999999999999999999", 422, "slice-out-of-range"), ("deep", "?index=1&index=2", 400, "invalid-request"),
    ("deep", "?index=1,", 400, "invalid-request"), ("deep", "?index=1:2", 400, "invalid-request"),
    ("matrix", "?rows=0", 400, "invalid-request"), ("matrix", "?cols=1025", 400, "invalid-request"),
    ("matrix", "?reduce=max", 400, "invalid-request"), ("matrix", "?format=jpeg", 400, "invalid-request"),
    ("matrix", "?format=png&map=jet", 400, "invalid-request"), ("matrix", "?format=png&low=2&high=1", 400, "invalid-request"),
    ("matrix", "?low=0x10", 400, "invalid-request"), ("matrix", "?high=inf", 400, "invalid-request"),
    ("matrix", "?high=1e999", 400, "invalid-request"), ("complex", "", 422, "not-representable"),
])  # fmt: skip
def test_refusals(server, key, query, status, code):
    assert_problem(ask(server, key, query), status, code)
