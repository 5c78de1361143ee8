"""Writes and reads zTensor 1.0 files with ztensor 1.0.1, and 1.1 files with ztensor 1.1.1, whose interfaces are alike."""

import sys
from importlib.metadata import version

import arrays
import client
import ztensor

PREFIX = "v" + "".join(version("ztensor").split(".")[:2])


def write_dense(path, tensors, compress):
    expectation = arrays.Expectation(path)
    with ztensor.Writer(str(path)) as writer:
        for name, array in tensors.items():
            writer.add_tensor(name, array, compress=compress)
            expectation.dense_contiguous(name, array)
    expectation.save()


def write_sparse(path):
    expectation = arrays.Expectation(path)
    with ztensor.Writer(str(path)) as writer:
        values, indices, indptr, shape = arrays.csr_matrix()
        writer.add_sparse_csr("rows", values, indices, indptr, shape)
        expectation.add("rows", shape, {"values": values, "indices": indices, "indptr": indptr})
        values, coords, shape = arrays.coo_matrix()
        writer.add_sparse_coo("coordinates", values, coords, shape)
        expectation.add("coordinates", shape, {"values": values, "coords": coords})
    expectation.save()


def write(folder):
    write_dense(folder / f"{PREFIX}-dense.zt", arrays.dense_arrays(), False)
    write_dense(folder / f"{PREFIX}-zstd.zt", arrays.compressible_arrays(), True)
    write_sparse(folder / f"{PREFIX}-sparse.zt")


def read(path):
    with ztensor.Reader(str(path)) as reader:
        dense = [metadata.name for metadata in reader.tensors if metadata.layout == "dense"]
        return {name: reader.read_tensor(name).tobytes() for name in dense}


sys.exit(client.main(write, read))
