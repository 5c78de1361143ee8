"""A file that ends too early is called so, whatever its format."""

import json

import pytest
from containers import dense, pattern, zt01, zt1, zt2, zt10
from neighbours import gguf, mag, npy, npz, safetensors
from onnx_messages import onnx, raw, tensor
from pytorch import Storage, Tensor, pt

DATA = pattern(400)
OBJECTS = {"w": dense(DATA, "f32", [100])}
# Where it is cut off, it ends in what might be the length of a manifest.
COUNTS = {"w": dense((5).to_bytes(8, "little") * 50, "i64", [50])}
# The least bytes by which a format is known, if a file of one byte does not tell.
LEAST = {"mag": len(mag(DATA)) - len(DATA)}  # before, its two layouts are told apart
# What may be missing behind ONNX's graph: the version of the operators.
ONNX_END = 4
FILES = {
    "zt01": zt01(OBJECTS),
    "zt01-counts": zt01(COUNTS),
    "zt10": zt10(OBJECTS),
    "zt10-counts": zt10(COUNTS),
    "zt1": zt1(OBJECTS),
    "zt1-counts": zt1(COUNTS),
    "zt2": zt2(OBJECTS),
    "safetensors": safetensors(DATA),
    "gguf": gguf(DATA),
    "mag": mag(DATA),
    "npy": npy(DATA),
    "npz": npz(DATA),
    "pt": pt({"w": Tensor(Storage(DATA), [100])}),
    "onnx": onnx(tensor("w", 1, [100], raw(DATA))),
}


def assert_cut_off(ztserve, paths):
    result = ztserve("verify", *paths)
    assert result.status == 1
    for path, line in zip(paths, result.error_lines, strict=True):
        assert line.startswith(f"{path}: bad: the file is cut off"), line


@pytest.mark.parametrize("name", FILES)
def test_every_beginning_of_a_file_is_called_cut_off(ztserve, tmp_path, name):
    data, least = FILES[name], LEAST.get(name, 1)
    some = {*range(1, 40), *range(40, len(data), 1 + len(data) // 40), *range(len(data) - 24, len(data))}
    if name == "onnx":
        some.remove(len(data) - ONNX_END)
    paths = [tmp_path / f"{length:06}.cut" for length in sorted(some) if least <= length < len(data)]
    for path in paths:
        path.write_bytes(data[: int(path.stem)])
    assert_cut_off(ztserve, paths)


@pytest.mark.parametrize("protocol", [4, 5])
def test_the_beginning_of_a_framed_pickle_is_called_cut_off(ztserve, tmp_path, protocol):
    head = b"\x80" + bytes([protocol]) + b"\x95\x0e" + bytes(7) + bytes.fromhex("8a0a6cfc9c46f9206aa85019") + b"."
    paths = [tmp_path / f"{length:02}.pt" for length in range(1, len(head))]
    for path in paths:
        path.write_bytes(head[: int(path.stem)])
    assert_cut_off(ztserve, paths)


def test_every_beginning_of_an_index_is_called_cut_off(ztserve, tmp_path):
    data = json.dumps({"metadata": {"total_size": 8.0}, "weight_map": {"w": "m.safetensors", "é": "n.safetensors"}}).encode()
    paths = [tmp_path / f"{length:03}.safetensors.index.json" for length in range(1, len(data))]
    for path in paths:
        path.write_bytes(data[: int(path.name[:3])])
    assert_cut_off(ztserve, paths)
    paths[0].write_bytes(b"")
    assert ": bad: the file is empty" in ztserve("verify", paths[0]).errors


def test_bytes_behind_an_archive_are_not_called_so(ztserve, tmp_path):
    (tmp_path / "m.npz").write_bytes(npz(DATA) + b"more")
    assert "bytes follow the end record" in ztserve("verify", tmp_path / "m.npz").errors
