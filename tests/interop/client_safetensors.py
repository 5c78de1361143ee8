"""Writes and reads safetensors files with the package of that name."""

import sys

import arrays
import client
import ml_dtypes
import numpy as np
from safetensors import TensorSpec, deserialize, serialize_file
from safetensors.numpy import save_file

METADATA = {"framework": 'none "of"\nthem', "é": "ü"}


def write_plain(folder):
    tensors = {name: array for name, array in arrays.dense_arrays().items() if array.dtype != ml_dtypes.bfloat16}
    write_file(folder / "plain.safetensors", tensors, METADATA)


def write_file(path, tensors, metadata):
    expectation = arrays.Expectation(path)
    for name, array in tensors.items():
        expectation.typed(name, array)
    save_file(tensors, path, metadata=metadata)
    expectation.attributes(metadata or {})
    expectation.save()


def every_type():
    """All real types of numpy and ml_dtypes, with random bytes: values mean nothing to a container."""
    random = np.random.default_rng(21)
    kinds = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
    kinds += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]
    kinds += [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz]
    kinds += [ml_dtypes.float8_e8m0fnu]
    tensors = {}
    for kind in map(np.dtype, kinds):
        tensors[f"types.{kind.name}"] = np.frombuffer(random.bytes(15 * kind.itemsize), kind).reshape(5, 3)
    tensors["types.bool"] = random.integers(0, 2, (3, 5)).astype(np.bool_)
    return tensors


def shapes():
    return {
        "none": np.zeros((0,), dtype=np.float32),
        "none.of.many": np.zeros((4, 0, 2), dtype=ml_dtypes.bfloat16),
        "scalar": np.array(2.5, dtype=np.float64),
        "eight.dimensions": np.arange(256, dtype=np.uint8).reshape([2] * 8),
        "big.endian": np.arange(6, dtype=">i4").reshape(2, 3),
        "重み/日本語 🙂": np.arange(5, dtype=np.float16),
        'quoted "name" \\ and\nline': np.arange(2, dtype=np.int8),
    }


def write_packed(path):
    """Four bits per element, for which numpy has no type: two in a byte; the shape counts elements."""
    packed = np.arange(24, dtype=np.uint8).reshape(3, 8)
    spec = TensorSpec(dtype="float4_e2m1fn_x2", shape=packed.shape, data_ptr=packed.ctypes.data, data_len=packed.nbytes)
    serialize_file({"packed": spec}, path)
    expectation = arrays.Expectation(path)
    expectation.stored("packed", (3, 16), packed.tobytes(), ("u8", "f4_e2m1"))
    expectation.attributes({})
    expectation.save()


def write(folder):
    write_plain(folder)
    write_file(folder / "types.safetensors", every_type(), None)
    write_file(folder / "shapes.safetensors", shapes(), {"key": ""})
    write_file(folder / "nameless.safetensors", {"": np.arange(3, dtype=np.int16)}, {"": "no key"})
    write_file(folder / "nothing.safetensors", {}, {"format": "np"})
    write_file(folder / "complex.safetensors", {"complex": np.array([[1.5 + 2j, -0.25j]], dtype=np.complex64)}, None)
    write_packed(folder / "packed.safetensors")


def read(path):
    return {name: bytes(view["data"]) for name, view in deserialize(path.read_bytes())}


sys.exit(client.main(write, read))
