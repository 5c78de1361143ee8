"""Writes and reads GGUF files with the package gguf."""

import sys

import arrays
import client
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

# q8_1 is left out: the package states 40 bytes per block, ggml itself 36.
TYPES = [kind for kind in GGMLQuantizationType if kind.name != "Q8_1"]
PLAIN = ("F32", "F16", "I8", "I16", "I32", "I64", "F64", "BF16")


def plain_arrays():
    random = np.random.default_rng(23)
    kinds = (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64)
    tensors = {
        f"plain.{np.dtype(kind).name}": np.frombuffer(random.bytes(21 * np.dtype(kind).itemsize), kind).reshape(3, 7)
        for kind in kinds
    }
    tensors["four.dimensions"] = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)
    tensors["one"] = np.array([3.5], dtype=np.float32)
    tensors["blk.0.größe.weight"] = np.arange(9, dtype=np.int16)
    return tensors


def quantized(kind):
    """Blocks from the package's quantizer; any bytes where it has none, since blocks are not inspected."""
    elements, size = GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(24)
    try:
        return quants.quantize(random.standard_normal((3, 2 * elements)).astype(np.float32), kind)
    except NotImplementedError:
        return np.frombuffer(random.bytes(3 * 2 * size), np.uint8).reshape(3, 2 * size)


def write_plain(path, alignment):
    writer = GGUFWriter(path, "test")
    expectation = arrays.Expectation(path)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for name, array in plain_arrays().items():
        writer.add_tensor(name, array)
        expectation.typed(name, array)
    finish(writer)
    shown = {"general.architecture": "test"} | ({"general.alignment": alignment} if alignment is not None else {})
    expectation.attributes(shown)
    expectation.save()


def write_types(path):
    """One tensor of every type except the plain ones that numpy writes itself."""
    writer = GGUFWriter(path, "test")
    expectation = arrays.Expectation(path)
    for kind in TYPES:
        if kind.name in PLAIN and kind.name != "BF16":
            continue
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = quantized(kind)
        name = f"{kind.name.lower()}.weight"
        writer.add_tensor(name, blocks, raw_dtype=kind)
        if kind.name == "BF16":
            expectation.stored(name, (3, 2), blocks.tobytes(), ("bf16", "bf16"))
            continue
        attributes = {"elems_per_block": elements, "block_bytes": size}
        form = f"gguf.{kind.name.lower()}/1"
        expectation.stored(name, (3, 2 * elements), blocks.tobytes(), ("u8", "u8"), form, attributes)
    finish(writer)
    expectation.attributes({"general.architecture": "test"})
    expectation.save()


def write_values(path):
    """Keys of every type, and arrays of every type, nested ones too."""
    writer = GGUFWriter(path, "values")
    shown = {"general.architecture": "values"}
    scalars = {
        "uint8": 255, "int8": -128, "uint16": 65535, "int16": -32768, "uint32": 2**32 - 1, "int32": -(2**31),
        "uint64": 2**64 - 1, "int64": -(2**63), "float32": 0.5, "float64": 0.1, "bool": True, "string": "té\n\"xt\"",
    }  # fmt: skip
    for kind, value in scalars.items():
        getattr(writer, f"add_{kind}")(f"scalar.{kind}", value)
        shown[f"scalar.{kind}"] = value
        writer.add_key_value(f"array.{kind}", [value] * 3, GGUFValueType.ARRAY, GGUFValueType[kind.upper()])
        shown[f"array.{kind}"] = [value] * 3
    writer.add_array("tokens", ["<s>", "</s>", "▁the", "x" * 300])
    shown["tokens"] = ["<s>", "</s>", "▁the", "x" * 300]
    writer.add_array("nested", [[1, 2], [3]])
    shown["nested"] = [[1, 2], [3]]
    writer.add_tensor("w", np.arange(4, dtype=np.float32))
    finish(writer)
    expectation = arrays.Expectation(path)
    expectation.typed("w", np.arange(4, dtype=np.float32))
    expectation.attributes(shown)
    expectation.save()


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(folder):
    write_plain(folder / "plain.gguf", None)
    write_plain(folder / "aligned.gguf", 4096)
    write_types(folder / "types.gguf")
    write_values(folder / "values.gguf")


def read(path):
    return {tensor.name: np.ascontiguousarray(tensor.data).tobytes() for tensor in GGUFReader(path).tensors}


sys.exit(client.main(write, read))
