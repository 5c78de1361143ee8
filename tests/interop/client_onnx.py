"""Initializers as the package onnx writes them, in each of its ways to hold data: `write FOLDER`, or `read FILE` (prints
SHA-256 by tensor as JSON)."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import arrays
import client

# Kinds whose data fields hold varints, floats or doubles, one number each.
TYPED = {
    "weights.f64": TensorProto.DOUBLE,
    "weights.f32": TensorProto.FLOAT,
    "mask.bool": TensorProto.BOOL,
    "numbers.int64": TensorProto.INT64,
    "numbers.int32": TensorProto.INT32,
    "numbers.int16": TensorProto.INT16,
    "numbers.int8": TensorProto.INT8,
    "numbers.uint64": TensorProto.UINT64,
    "numbers.uint32": TensorProto.UINT32,
    "numbers.uint16": TensorProto.UINT16,
    "numbers.uint8": TensorProto.UINT8,
    "weights.f16": TensorProto.FLOAT16,
    "weights.bf16": TensorProto.BFLOAT16,
}


def made():
    every = arrays.dense_arrays()
    every["complex"] = (np.arange(6) - 2j * np.arange(6)).astype(np.complex64).reshape(2, 3)
    return every


def save(path, tensors, **options):
    graph = helper.make_graph([], "test", [], [], initializer=tensors)
    onnx.save(helper.make_model(graph), str(path), **options)


def expect(path, tensors):
    """By what onnx itself makes of each tensor."""
    expectation = arrays.Expectation(path)
    for tensor in tensors:
        expectation.typed(tensor.name, numpy_helper.to_array(tensor))
    expectation.save()


def write(folder):
    raw = [numpy_helper.from_array(array, name) for name, array in made().items()]
    typed = [helper.make_tensor(name, kind, made()[name].shape, made()[name].flatten()) for name, kind in TYPED.items()]
    for stem, tensors in (("raw", raw), ("typed", typed)):
        expect(folder / f"{stem}.onnx", tensors)
        save(folder / f"{stem}.onnx", tensors)
    # One file for all, and one for each tensor, called as the tensor is.
    for stem, location in (("external", "external.onnx.data"), ("apart", None)):
        names = {name if location else f"{stem}.{name}".replace("/", "."): array for name, array in made().items()}
        tensors = [numpy_helper.from_array(array, name) for name, array in names.items()]
        expect(folder / f"{stem}.onnx", tensors)
        options = {"all_tensors_to_one_file": location is not None, "location": location, "size_threshold": 64}
        save(folder / f"{stem}.onnx", tensors, save_as_external_data=True, **options)


def read(path):
    model = onnx.load(str(path))
    return {tensor.name: arrays.little_endian(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}


sys.exit(client.main(write, read))
