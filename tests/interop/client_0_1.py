"""Writes and reads zTensor 0.1 files with the package ztensor 0.1.4."""

import sys

import arrays
import client
import ztensor


def write(folder):
    path = folder / "v01-dense.zt"
    expectation = arrays.Expectation(path)
    with ztensor.Writer(str(path)) as writer:
        for name, array in arrays.dense_arrays().items():
            writer.add_tensor(name, array)
            expectation.dense_contiguous(name, array)
    expectation.save()


def read(path):
    with ztensor.Reader(str(path)) as reader:
        return {name: reader.read_tensor(name).tobytes() for name in reader.get_tensor_names()}


sys.exit(client.main(write, read))
