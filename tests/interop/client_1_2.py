"""Writes and reads zTensor 1.2 files with the package ztensor 1.2.3."""

import sys

import arrays
import client
import ml_dtypes
import numpy as np
import ztensor


def dense_for_client():
    """numpy arrays for this client, which does not know ml_dtypes and so gets no bfloat16."""
    return {name: array for name, array in arrays.dense_arrays().items() if array.dtype != ml_dtypes.bfloat16}


def write_file(path, tensors, **options):
    expectation = arrays.Expectation(path)
    with ztensor.Writer(str(path)) as writer:
        for name, array in tensors.items():
            writer.write_numpy(name, array, **options)
            expectation.dense_contiguous(name, array)
    expectation.save()


def write_appended(path):
    """A file whose first manifest was replaced by a second."""
    expectation = arrays.Expectation(path)
    tensors = dense_for_client()
    names = list(tensors)
    with ztensor.Writer(str(path)) as writer:
        for name in names[:5]:
            writer.write_numpy(name, tensors[name])
    with ztensor.Writer.append(str(path)) as writer:
        for name in names[5:]:
            writer.write_numpy(name, tensors[name], checksum="crc32c")
    for name in names:
        expectation.dense_contiguous(name, tensors[name])
    expectation.save()


def write(folder):
    write_file(folder / "v12-dense.zt", dense_for_client())
    write_file(folder / "v12-sha256.zt", dense_for_client(), checksum="sha256")
    write_file(folder / "v12-crc32c.zt", dense_for_client(), checksum="crc32c")
    write_file(folder / "v12-zstd.zt", arrays.compressible_arrays(), compress=True, checksum="sha256")
    write_appended(folder / "v12-appended.zt")


def read(path):
    reader = ztensor.Reader(str(path))
    return {name: np.ascontiguousarray(reader[name]).tobytes() for name in reader.keys()}


sys.exit(client.main(write, read))
