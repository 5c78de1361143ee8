"""Fixtures and models of the tests of convert."""

import json
import os
import re
import struct

import pytest

from containers import Component, Object, dense, pattern

WEIGHTS = struct.pack("<6f", *range(6))
SUMMARY = r"[0-9]+ objects?, [0-9]+ bytes?, [0-9]+\.[0-9]{3} seconds(, replaced)?"
TARGETS = ["zt", "zt2", "mag", "safetensors", "npz"]
EXTENSIONS = {"zt": ".zt", "zt2": ".zt", "mag": ".mag", "safetensors": ".safetensors", "npz": ".npz", "npy": ".npy"}
# Held by every target.
PLAIN = {
    "layer.weight": dense(WEIGHTS, "f32", [2, 3]),
    "same": dense(WEIGHTS, "f32", [6]),
    "column": dense(pattern(40), "i32", [10, 1]),
    "half": dense(b"\x00\x3c" * 5, "f16", [5]),
    "flags": dense(b"\x00\x01\x01", "bool", [3]),
}
SPARSE = Object(
    [2, 3],
    {
        "values": Component(struct.pack("<3f", 1, 2, 3), "f32"),
        "indices": Component(struct.pack("<3Q", 0, 2, 1), "u64"),
        "indptr": Component(struct.pack("<3Q", 0, 2, 3), "u64"),
    },
    format="sparse_csr",
)


@pytest.fixture
def convert(ztserve, tmp_path):
    """Converts into a file of that name and checks it; gives its path."""

    def run(source, name, *arguments):
        out = tmp_path / name
        result = ztserve("convert", source, out, *arguments)
        assert result.status == 0, result.errors
        *lost, summary = result.error_lines
        assert all(" lost, because " in line for line in lost), result.errors
        assert re.fullmatch(SUMMARY, summary.removeprefix(f"{out}: ")), result.errors
        canonical = ["--canonical"] if "zt2" in arguments and not any("zstd" in text for text in arguments) else []
        verified = ztserve("verify", *canonical, out)
        assert verified.status == 0, verified.errors
        return out

    return run


@pytest.fixture
def fails(ztserve, tmp_path):
    """Converts, which must fail in one line and leave no file; gives the line."""

    def run(source, *arguments, name="out", status=1):
        before = set(os.listdir(tmp_path))
        result = ztserve("convert", source, tmp_path / name, *arguments)
        assert result.status == status, result.errors
        assert result.output == ""
        assert len(result.error_lines) == 1, result.errors
        assert result.errors.startswith("ztserve: ")
        assert set(os.listdir(tmp_path)) == before
        return result.errors

    return run


@pytest.fixture
def manifest(ztserve):
    def read(path):
        return json.loads(ztserve("ls", "--json", path).output)["objects"]

    return read


def read_safetensors(data):
    (length,) = struct.unpack_from("<Q", data)
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    begin = 8 + length
    return metadata, {
        name: (
            entry["dtype"],
            entry["shape"],
            data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }
