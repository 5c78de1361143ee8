"""`parameters` of a manifest: the number of elements of all tensors, by their dense shape."""

import numpy
import pytest

from containers import Component, Object, dense, pattern, zstd_dense, zt1, zt2
from joined import files_of_split, files_with_index
from wire import get, manifest, model_path

CONTENTS = [bytes(3), bytes(40), bytes(500)]
HUGE = 2**63


def empty_sparse(rows):
    """A sparse tensor of rows x 1 without any values, in a few bytes."""
    components = {
        "values": Component(b"", "f32", digest=None),
        "coords": Component(b"", "u64", digest=None),
    }
    return Object([rows, 1], components, "sparse_coo")


def quantized():
    """Blocks of 32 elements in 18 bytes."""
    attributes = {"block_bytes": 18, "elems_per_block": 32}
    return Object([4, 64], {"data": Component(bytes(18 * 8), "u8")}, "gguf.q4_0/1", attributes)


MODELS = {
    "empty": (zt1({}), 0),
    "dense": (zt1({"a": dense(pattern(24), "f32", [2, 3]), "scalar": dense(b"1", "u8", [])}), 7),
    "none": (zt1({"a": dense(b"", "u8", [5, 0, 7])}), 0),
    "compressed": (zt1({"a": zstd_dense(bytes(4000), "f32", [10, 100])}), 1000),
    "sparse": (zt1({"a": empty_sparse(1000)}), 1000),
    "packed": (zt2({"a": quantized(), "b": Object([5], {"data": Component(b"123", "u8", "f4_e2m1", digest="xxh3")})}), 261),
    "huge": (zt1({"a": empty_sparse(HUGE), "b": empty_sparse(HUGE - 1)}), 2**64 - 1),
    "too-huge": (zt1({"a": empty_sparse(HUGE), "b": empty_sparse(HUGE)}), None),
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name, (file, _) in MODELS.items():
        (folder / f"{name}.zt").write_bytes(file)
    (folder / "broken.zt").write_bytes(b"ZTEN1000" + bytes(100))
    for name, file in {**files_with_index("indexed", CONTENTS), **files_of_split("split", CONTENTS)}.items():
        (folder / name).write_bytes(file)
    numpy.savez(folder / "arrays.npz", a=numpy.zeros((3, 4), "<f2"), b=numpy.zeros(5, "<i8"))
    return share_server(folder)


@pytest.mark.parametrize("model", MODELS)
def test_elements_are_counted_by_dense_shape(server, model):
    assert manifest(server, model)["parameters"] == MODELS[model][1]


def test_arrays_are_counted(server):
    assert manifest(server, "arrays")["parameters"] == 17


@pytest.mark.parametrize("model", ["indexed", "split"])
def test_the_parts_of_a_model_are_counted_together(server, model):
    assert manifest(server, model)["parameters"] == sum(map(len, CONTENTS))


def test_a_part_is_counted_alone(server):
    assert manifest(server, "indexed-00002-of-00003")["parameters"] == len(CONTENTS[1])


@pytest.mark.parametrize("query", ["match=scalar", "prefix=scalar", "fields=shape", "attributes=false", "match=missing"])
def test_a_selection_states_the_parameters_of_the_whole_model(server, query):
    assert get(server, f"{model_path('dense')}?{query}").json()["parameters"] == 7


def test_the_list_states_the_same(server):
    listed = {model["name"]: model["parameters"] for model in get(server, "/v1/models?limit=1000").json()["models"]}
    assert {name: listed[name] for name in MODELS} == {name: count for name, (_, count) in MODELS.items()}
    assert listed["indexed"] == listed["split"] == sum(map(len, CONTENTS))


def test_the_list_states_none_for_a_model_that_cannot_be_read(server):
    assert [model["parameters"] for model in get(server, "/v1/models?prefix=broken").json()["models"]] == [None]
