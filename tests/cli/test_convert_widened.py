"""convert --dtype f32: what can be widened is f32, all else is as it was, and damage is still found."""

import json
import struct

import numpy
import pytest

from containers import Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zt1, zt2
from conversions import read_safetensors

HALVES = (numpy.frombuffer(pattern(6000, seed=5), "<u2") & 0xBFFF).reshape(30, 100)
WIDE = HALVES.view("<f2").astype("<f4")
ROW = struct.pack("<e", 0.5) + bytes(index % 256 for index in range(32))
INTEGERS = struct.pack("<4h", -1, 0, 1, 2)


def q8_0(rows, **options):
    return Object([rows, 32], {"data": Component(ROW * rows, digest="xxh3", **options)}, "gguf.q8_0/1",
                  {"block_bytes": 34, "elems_per_block": 32, "made": "by hand"})  # fmt: skip


def gguf_q8_0(rows):
    """A file with one tensor of that type (8)."""
    head = b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 1) + b"w" + struct.pack("<IQQIQ", 2, 32, len(rows) // 34, 8, 0)
    return head + bytes(-len(head) % 32) + rows


MODEL = {
    "half": dense(HALVES.tobytes(), "f16", [30, 100], digest="xxh3"),
    "frames": dense_encoded(HALVES.tobytes(), seekable(HALVES.tobytes(), 999), "zt.zstd-seekable/1", "f16", [30, 100],
                            digest="xxh3"),
    "blocks": q8_0(3),
    "odd": Object([3], {"data": Component(b"\x21\x03", "u8", "f4_e2m1", digest="xxh3")}),
    "ints": dense(INTEGERS, "i16", [4], digest="xxh3"),
}  # fmt: skip
EXPECTED = {
    "half": ("F32", [30, 100], WIDE.tobytes()),
    "frames": ("F32", [30, 100], WIDE.tobytes()),
    "blocks": ("F32", [3, 32], struct.pack("<32f", *(index * 0.5 for index in range(32))) * 3),
    "odd": ("F32", [3], struct.pack("<3f", 0.5, 1, 1.5)),
    "ints": ("I16", [4], INTEGERS),
}


def read(path):
    return read_safetensors(path.read_bytes())[1]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.zt"
    path.write_bytes(zt2(MODEL))
    return path


def test_what_can_be_widened_is_f32(ztserve, tmp_path, model):
    result = ztserve("convert", "--dtype", "f32", model, tmp_path / "out.safetensors")
    assert result.status == 0, result.errors
    assert read(tmp_path / "out.safetensors") == EXPECTED


@pytest.mark.parametrize("options", [["--to", "zt"], ["--to", "zt2"], ["--to", "zt2", "--zstd"]])
def test_a_dense_tensor_has_no_block_sizes(ztserve, tmp_path, model, options):
    assert ztserve("convert", "--dtype=f32", model, tmp_path / "out.zt", *options).status == 0
    shown = json.loads(ztserve("ls", "--json", tmp_path / "out.zt").output)["objects"]
    assert shown["blocks"]["format"] == "dense" and shown["blocks"]["attributes"] == {"made": "by hand"}
    assert shown["ints"]["components"]["data"]["dtype"] == "i16"
    assert ztserve("verify", tmp_path / "out.zt").status == 0
    assert ztserve("convert", tmp_path / "out.zt", tmp_path / "again.safetensors").status == 0
    assert read(tmp_path / "again.safetensors") == EXPECTED


@pytest.mark.parametrize("options", [["--to", "zt"], ["--to", "zt", "--zstd"]])
def test_blocks_from_gguf_stay_convertible_in_every_version_of_zt(ztserve, tmp_path, options):
    (tmp_path / "model.gguf").write_bytes(gguf_q8_0(ROW * 5))
    assert ztserve("convert", "--dtype", "f32", tmp_path / "model.gguf", tmp_path / "direct.safetensors").status == 0
    assert ztserve("convert", *options, tmp_path / "model.gguf", tmp_path / "stored.zt").status == 0
    result = ztserve("convert", "--dtype", "f32", tmp_path / "stored.zt", tmp_path / "late.safetensors")
    assert result.status == 0, result.errors
    expected = struct.pack("<32f", *(index * 0.5 for index in range(32))) * 5
    assert read(tmp_path / "late.safetensors") == {"w": ("F32", [5, 32], expected)}
    assert read(tmp_path / "direct.safetensors") == read(tmp_path / "late.safetensors")
    assert "-" not in ztserve("stats", tmp_path / "stored.zt").lines[-1].split()


@pytest.mark.parametrize("attributes", [None, {"block_bytes": 33, "elems_per_block": 32}, {"block_bytes": 34}])
def test_other_data_under_the_name_of_blocks_is_only_bytes(ztserve, tmp_path, attributes):
    objects = {"blocks": Object([3, 32], {"data": Component(ROW * 3)}, "gguf.q8_0/1", attributes)}
    (tmp_path / "model.zt").write_bytes(zt1(objects))
    assert ztserve("verify", tmp_path / "model.zt").status == 0
    assert ztserve("convert", "--dtype", "f32", tmp_path / "model.zt", tmp_path / "out.zt").status == 0
    shown = json.loads(ztserve("ls", "--json", tmp_path / "out.zt").output)["objects"]["blocks"]
    assert shown["format"] == "gguf.q8_0/1" and shown["components"]["data"]["dtype"] == "u8"


def test_parts_are_filled_by_what_tensors_become(ztserve, tmp_path, model):
    result = ztserve("convert", "--dtype", "f32", "--max-shard", "13KB", model, tmp_path / "out.safetensors")
    assert result.status == 0, result.errors
    parts = [read(path) for path in sorted(tmp_path.glob("out-*.safetensors"))]
    assert len(parts) > 1 and {name: made for part in parts for name, made in part.items()} == EXPECTED


def test_damage_leaves_no_file(ztserve, tmp_path):
    damaged = zt2({"blocks": q8_0(3)}).replace(ROW, ROW[:-1] + b"\x00", 1)
    short = zt1({"half": zstd_dense(HALVES.tobytes(), "f16", [30, 101], states_length=False)})
    for number, data in enumerate((damaged, short)):
        path = tmp_path / f"bad{number}.zt"
        path.write_bytes(data)
        assert ztserve("convert", "--dtype", "f32", path, tmp_path / "out.safetensors").status == 1
        assert not (tmp_path / "out.safetensors").exists()


def test_no_other_type_is_known(ztserve, tmp_path, model):
    result = ztserve("convert", "--dtype", "f16", model, tmp_path / "out.zt")
    assert result.status == 2 and "f32" in result.errors


@pytest.mark.parametrize("options", [["--dtype", "f32"], []])
def test_blocks_without_dequantized_values_are_named(ztserve, tmp_path, options):
    blocks = Object([256], {"data": Component(bytes(292))}, "gguf.q8_k/1", {"block_bytes": 292, "elems_per_block": 256})
    (tmp_path / "model.zt").write_bytes(zt2({"blocks": blocks}))
    result = ztserve("convert", *options, tmp_path / "model.zt", tmp_path / "out.safetensors")
    assert result.status == 1 and 'format "gguf.q8_k/1"' in result.errors
    assert "blocks of this type have no dequantized values" in result.errors
