"""Writes GGUF files whose blocks are any bytes at all, with the values that the package gguf dequantizes them to."""

import json
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, quants

ROWS = 12
BLOCKS_IN_ROW = 8
# The package has no dequantizer for these.
WITHOUT = {"Q1_0", "Q8_K", "Q8_1"}


def dequantized(blocks, kind):
    with np.errstate(all="ignore"):
        return quants.dequantize(blocks, kind)


def covered():
    """The types with a dequantizer."""
    for kind in GGMLQuantizationType:
        if GGML_QUANT_SIZES[kind][0] == 1 or kind.name in WITHOUT:
            continue
        try:
            dequantized(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)
        except NotImplementedError:
            continue
        yield kind


def blocks_of(kind):
    """Random blocks, among them each byte repeated: infinite scales, NaNs, zeros and all ones."""
    size = GGML_QUANT_SIZES[kind][1]
    random = np.frombuffer(np.random.default_rng(kind.value).bytes(ROWS * BLOCKS_IN_ROW * size), np.uint8)
    blocks = random.reshape(ROWS * BLOCKS_IN_ROW, size).copy()
    for i, byte in enumerate([0x00, 0xFF, 0x80, 0x7F, 0x7C, 0xFC, 0x01, 0x04]):
        blocks[i] = byte
    # All of the scale's bits, the rest as it is: f16 comes first in most types, last in others.
    for i, half in enumerate([0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]):
        pair = np.frombuffer(np.uint16(half).tobytes(), np.uint8)
        blocks[8 + i, :2] = pair
        blocks[18 + i, -2:] = pair
    return blocks.reshape(ROWS, BLOCKS_IN_ROW * size)


def write(folder):
    writer = GGUFWriter(folder / "blocks.gguf", "test")
    shapes = {}
    for kind in covered():
        blocks = blocks_of(kind)
        name = kind.name.lower()
        values = dequantized(blocks, kind)
        assert values.dtype == np.float32
        writer.add_tensor(name, blocks, raw_dtype=kind)
        np.ascontiguousarray(values).tofile(folder / f"{name}.f32")
        shapes[name] = values.shape
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (folder / "shapes.json").write_text(json.dumps(shapes))


write(Path(sys.argv[1]))
