"""Writes and reads safetensors files with the package of that name."""

import sys

import arrays
import client
import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file


def write(folder):
    tensors = {name: array for name, array in arrays.dense_arrays().items() if array.dtype != ml_dtypes.bfloat16}
    expectation = arrays.Expectation(folder / "plain.safetensors")
    for name, array in tensors.items():
        expectation.dense(name, array)
    save_file(tensors, folder / "plain.safetensors", metadata={"framework": 'none "of"\nthem', "é": "ü"})
    expectation.save()


def read(path):
    return {name: np.ascontiguousarray(array).tobytes() for name, array in load_file(path).items()}


sys.exit(client.main(write, read))
