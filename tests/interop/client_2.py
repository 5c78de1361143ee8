"""Writes and reads zTensor 2 files with the package ztensor 2.1.2."""

import sys

import arrays
import client
import numpy as np
import ztensor

DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
}  # fmt: skip


def type_of(array):
    """dtype and logical type; booleans are bytes with the logical type bool."""
    return ("u8", "bool") if array.dtype == np.bool_ else (DTYPES[array.dtype.name], None)


def write_file(path, tensors, canonical=False, encoding=None):
    expectation = arrays.Expectation(path)
    names = sorted(tensors, key=lambda name: name.encode()) if canonical else tensors
    with ztensor.Writer(str(path), canonical=canonical) as writer:
        for name in names:
            array = tensors[name]
            dtype, logical = type_of(array)
            writer.add(name, array.tobytes(), list(array.shape), dtype, logical=logical, encoding=encoding)
            expectation.dense(name, array)
    expectation.save()


def write_objects(path):
    """Several parts, a layout, attributes of file and object."""
    expectation = arrays.Expectation(path)
    values, indices, indptr, shape = arrays.csr_matrix()
    parts = {"values": (values, "f32"), "indices": (indices, "u64"), "indptr": (indptr, "u64")}
    with ztensor.Writer(str(path)) as writer:
        writer.set_attributes({"framework": "none", "layers": 2})
        writer.add_object(
            "rows",
            list(shape),
            {name: {"data": data.tobytes(), "dtype": dtype} for name, (data, dtype) in parts.items()},
            layout="zt.sparse_csr/1",
            attributes={"origin": "test"},
        )
    expectation.add("rows", shape, {name: data for name, (data, _) in parts.items()})
    expectation.save()


def write(folder):
    write_file(folder / "v2-plain.zt", arrays.dense_arrays())
    write_file(folder / "v2-canonical.zt", arrays.dense_arrays(), canonical=True)
    write_file(folder / "v2-seekable.zt", arrays.compressible_arrays(), encoding="zt.zstd-seekable/1")
    write_objects(folder / "v2-sparse.zt")


def read(path):
    with ztensor.open(str(path)) as source:
        return {name: source[name].tobytes() for name in source if source[name].parts == ["data"]}


sys.exit(client.main(write, read))
