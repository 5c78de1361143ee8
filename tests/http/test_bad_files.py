"""Corrupt, truncated and hostile files: listed with their error, 422 with rule and offset, and the server goes on.

Each must be reported within moments and in little memory, whatever it declares.
"""

import time

import pytest
import zstandard

import cbor
from containers import MAGIC_1, Component, Object, dense, dense_encoded, pattern, zt1, zt1_of_manifest, zt2, zt2_of_manifest
from wire import assert_problem, component_path, get, manifest, memory_kib, model_path

# What a sanitized build on a busy machine may take for what should take milliseconds; hanging takes longer.
MOMENT_S = 60
# Far below what any of these files asks for, above what an allocator keeps.
GROWTH_KIB = 96 << 10
TWO_GIB = 1 << 31


def nested(depth):
    return cbor.Raw(b"\x81" * depth + b"\x00")


def with_attributes(value, build=zt1):
    return build({}, attributes={"a": value})


def overlapping(build, step):
    made = build({"a": dense(bytes(2 * step)), "b": dense(bytes(step))})
    first = made.offsets["a", "data"]
    key = "blob" if build is zt2 else "offset"
    value = [first + step, step] if build is zt2 else first + step
    second = Component(bytes(step), fields={key: value})
    return build({"a": dense(bytes(2 * step)), "b": Object([step], {"data": second})})


HOSTILE = {
    "empty": lambda: b"",
    "magic-1": lambda: MAGIC_1,
    "manifest-of-2-gib-v1": lambda: zt1_of_manifest(b"\xa0", stated_length=TWO_GIB),
    "manifest-of-2-gib-v2": lambda: zt2_of_manifest(b"\xa0", stated_length=TWO_GIB),
    "manifest-past-u64": lambda: zt1_of_manifest(b"\xa0", stated_length=(1 << 64) - 9),
    "array-2-28-v1": lambda: zt1_of_manifest(b"\x9a\x10\x00\x00\x00" + bytes(4)),
    "text-2-60": lambda: zt2_of_manifest(b"\x7b\x10" + bytes(7)),
    "attribute-array-2-28": lambda: with_attributes(cbor.Raw(b"\x9a\x10\x00\x00\x00")),
    "nested-100000-v1": lambda: with_attributes(nested(100_000)),
    "nested-tags": lambda: with_attributes(cbor.Raw(b"\xc1" * 100_000 + b"\x00")),
    "shape-overflow-v2": lambda: zt2({"w": dense(b"1234", shape=[(1 << 64) - 1, 2])}),
    "offset-past-u64": lambda: zt1({"w": Object([2], {"data": Component(b"12", fields={"offset": (1 << 64) - 64})})}),
    "overlap-v1": lambda: overlapping(zt1, 64),
    "cut": lambda: zt1({"w": dense(pattern(1000))})[:-20],
    "hash-wrong": lambda: zt2({"w": dense(b"1")}).with_bit_flipped(2 * 4096 + 3),
}


def bomb():
    """A few KiB that decode to 256 MiB."""
    compressor = zstandard.ZstdCompressor().compressobj()
    chunk = bytes(1 << 24)
    return b"".join(compressor.compress(chunk) for _ in range(16)) + compressor.flush()


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name, make in HOSTILE.items():
        (folder / f"{name}.zt").write_bytes(make())
    (folder / "good.zt").write_bytes(zt1({"w": dense(pattern(1000))}))
    frame = bomb()
    bombs = {
        "short": dense_encoded(bytes(1000), frame, "zstd"),
        "huge": Object([1 << 44], {"data": Component(frame, encoding="zstd", decoded=None, fields={"uncompressed_length": 1 << 44})}),
        "unstated": Object([1000], {"data": Component(frame, encoding="zstd", states_length=False)}),
    }
    (folder / "bomb.zt").write_bytes(zt1(bombs))
    return share_server(folder)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_listed_with_rule_and_offset(server, name):
    began = time.monotonic()
    problem = assert_problem(get(server, model_path(name)), 422, "invalid-model")
    assert time.monotonic() - began < MOMENT_S
    assert problem["rule"] and isinstance(problem["rule"], str)
    assert isinstance(problem["offset"], int) and problem["offset"] >= 0
    assert get(server, component_path(name, "w")).status == 422


def test_all_hostile_files_are_listed_with_their_errors(server):
    models = {model["name"]: model for model in get(server, "/v1/models?limit=1000").json()["models"]}
    assert set(models) == {*HOSTILE, "good", "bomb"}
    for name in HOSTILE:
        assert models[name]["error"]["code"] == "invalid-model", name
        assert models[name]["error"]["detail"]
    assert "error" not in models["good"]


def test_memory_does_not_grow(server):
    before = memory_kib(server)
    for name in HOSTILE:
        get(server, model_path(name))
    assert memory_kib(server) - before < GROWTH_KIB
    assert memory_kib(server, "VmHWM") - before < GROWTH_KIB


@pytest.mark.parametrize("name", ["short", "huge", "unstated"])
def test_zstd_bomb_is_refused_without_memory(server, name):
    began, before = time.monotonic(), memory_kib(server)
    answer = get(server, component_path("bomb", name))
    assert answer.status in (422, 500, 507), answer
    assert answer.json()["code"]
    assert get(server, component_path("bomb", name), Range="bytes=0-0").status == answer.status
    assert time.monotonic() - began < MOMENT_S
    assert memory_kib(server, "VmHWM") - before < GROWTH_KIB


def test_object_and_component_of_a_broken_rule_are_named(start_server, tmp_path):
    objects = {"fine": dense(b"1"), "broken": Object([99], {"data": Component(b"12")})}
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    problem = assert_problem(get(start_server(tmp_path), model_path("m")), 422, "invalid-model")
    assert problem["object"] == "broken"
    assert problem["component"] == "data"


def test_many_thousand_objects_open(start_server, tmp_path):
    entry = {"shape": [0], "format": "dense", "components": {"data": {"dtype": "u8", "offset": 64, "length": 0}}}
    encoded = cbor.Raw(cbor.encode(entry))
    data = cbor.encode({"version": "1.2.0", "objects": {f"object.{index}": encoded for index in range(20_000)}})
    (tmp_path / "m.zt").write_bytes(MAGIC_1 + bytes(56) + data + len(data).to_bytes(8, "little") + MAGIC_1)
    assert len(manifest(start_server(tmp_path), "m")["objects"]) == 20_000
