"""Integers of less than a byte, packed as ONNX packs them: statistics and previews beside NumPy."""

import io
import json
import subprocess

import numpy
import pytest

from containers import Component, Object, zt1
from onnx_messages import field, onnx, raw, tensor, varint
from server_process import PROGRAM
from wire import assert_problem, component_path, get

# ONNX's type, bits, and what is taken from codes above the greatest number.
TYPES = {"u4": (21, 4, 0), "i4": (22, 4, 16), "u2": (25, 2, 0), "i2": (26, 2, 4)}
SIX_BITS = {"f6_e2m3": 27, "f6_e3m2": 28}
SHAPE = [4, 5, 33]


def pack(codes, bits):
    """The first element is in the low bits of its byte."""
    each = 8 // bits
    codes = numpy.append(codes, numpy.zeros(-len(codes) % each, numpy.uint8)).reshape(-1, each)
    return sum(codes[:, place] << (bits * place) for place in range(each)).astype(numpy.uint8).tobytes()


def codes_of(name):
    """Every code, then any."""
    count = 1 << TYPES[name][1]
    rest = numpy.random.default_rng(count).integers(0, count, int(numpy.prod(SHAPE)) - count)
    return numpy.append(numpy.arange(count), rest).astype(numpy.uint8)


def numbers_of(name):
    _, bits, taken = TYPES[name]
    codes = codes_of(name).astype(numpy.int64)
    return numpy.where(codes >= 1 << (bits - 1), codes - taken, codes).reshape(SHAPE)


def every_type():
    tensors = []
    for name, (kind, bits, _) in TYPES.items():
        data = pack(codes_of(name), bits)
        tensors.append(tensor(name, kind, SHAPE, raw(data)))
        tensors.append(tensor(f"{name} typed", kind, SHAPE, field(5, b"".join(map(varint, data)))))
    tensors += [tensor(name, kind, [4], raw(bytes(3))) for name, kind in SIX_BITS.items()]
    return onnx(*tensors)


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.onnx").write_bytes(every_type())
    objects = {
        # As long as if each element had a byte.
        "long": Object([4], {"data": Component(bytes(4), "u8", "i4")}),
        "signed": Object([4], {"data": Component(bytes(2), "i8", "i4")}),
    }
    (folder / "other.zt").write_bytes(zt1(objects))
    return share_server(folder)


def statistics(server, key, query="", model="m"):
    answer = get(server, component_path(model, key) + "/statistics" + query)
    assert answer.status == 200, answer
    return answer.json()


def assert_equal_to_numpy(made, array):
    counts, edges = numpy.histogram(array.astype(numpy.float64), 64)
    assert made["shape"] == list(array.shape)
    assert (made["count"], made["finite"], made["zero"]) == (array.size, array.size, int((array == 0).sum()))
    assert (made["min"], made["max"], made["abs_max"]) == (array.min(), array.max(), numpy.abs(array).max())
    assert all(isinstance(made[key], int) for key in ("min", "max", "abs_max"))
    assert made["mean"] == pytest.approx(array.mean(), rel=1e-12) and made["std"] == pytest.approx(array.std(), rel=1e-12)
    assert made["histogram"] == {"edges": edges.tolist(), "counts": counts.tolist()}


@pytest.mark.parametrize("key", [name + form for name in TYPES for form in ("", " typed")])
def test_statistics_are_those_of_the_integers(server, key):
    name = key.split()[0]
    made = statistics(server, key)
    assert (made["dtype"], made["type"]) == ("u8", name)
    assert_equal_to_numpy(made, numbers_of(name))


@pytest.mark.parametrize("query, index", [
    ("?slice=:,1:3,5:30", (slice(None), slice(1, 3), slice(5, 30))), ("?shard=1/3&axis=-1", (Ellipsis, slice(11, 22))),
])  # fmt: skip
@pytest.mark.parametrize("name", TYPES)
def test_slices_and_shards_address_elements(server, name, query, index):
    assert_equal_to_numpy(statistics(server, name, query), numbers_of(name)[index])


@pytest.mark.parametrize("name", TYPES)
def test_previews_have_every_element(server, name):
    expected = numbers_of(name)
    target = component_path("m", name) + "/preview"
    for at in range(SHAPE[0]):
        made = get(server, target + f"?index={at}").json()
        assert made["values"] == expected[at].tolist()
        assert (made["low"], made["high"]) == (expected[at].min(), expected[at].max())
    whole = numpy.load(io.BytesIO(get(server, target + "?slice=2,1:4,3:20&format=npy").body))
    assert whole.dtype == numpy.float32 and whole.tolist() == expected[2, 1:4, 3:20].tolist()
    cell = get(server, target + "?rows=1&cols=1&index=3").json()["values"][0][0]
    assert cell == pytest.approx(expected[3].mean(), rel=1e-6)
    assert get(server, target + "?format=png").body[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_program_shows_what_the_server_sends(server, folder):
    shown = json.loads(subprocess.run([PROGRAM, "stats", "--json", folder / "m.onnx"], capture_output=True, check=True).stdout)
    for name in TYPES:
        assert shown[name] == statistics(server, name)
    assert all(shown[name] is None for name in SIX_BITS)


def test_other_lengths_and_storage_are_something_else(server):
    for key in ("long", "signed"):
        assert_problem(get(server, component_path("other", key) + "/statistics"), 422, "not-representable")


@pytest.mark.parametrize("form", ["/statistics", "/preview", "?dtype=f32"])
@pytest.mark.parametrize("name", SIX_BITS)
def test_refusals_name_floats_of_six_bits(server, name, form):
    problem = assert_problem(get(server, component_path("m", name) + form), 422, "not-representable")
    assert "six-bit" in problem["detail"]
