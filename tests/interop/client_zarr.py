"""Reads a model by its references (export?format=reference) with zarr and with xarray, through fsspec.

Prints one line of JSON: for each array its type, shape and the SHA-256 of its elements (row-major, little-endian), as
both packages read them; the attributes of the root; the groups.
"""

import hashlib
import json
import sys

import numpy as np
import xarray
import zarr


def digest(array):
    array = np.asarray(array)
    return hashlib.sha256(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()).hexdigest()


def describe(array, values):
    return [str(array.dtype), list(array.shape), digest(values)]


def walk(group):
    """Every node below a group. members() looks at all of them: one that cannot be read would be an error here."""
    return dict(group.members(max_depth=None))


def main(url):
    options = {"fo": url, "remote_protocol": "http", "remote_options": {"asynchronous": True}}
    root = zarr.open_group("reference://", mode="r", storage_options=options)
    nodes = walk(root)
    arrays = {name: node for name, node in nodes.items() if isinstance(node, zarr.Array)}
    dataset = xarray.open_zarr("reference://", storage_options=options)
    tree = xarray.open_datatree("reference://", engine="zarr", storage_options=options)
    print(json.dumps({
        "zarr": {name: describe(array, array[...]) for name, array in arrays.items()},
        "first": {name: np.asarray(array[:1]).tolist() for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "iu"},
        "groups": sorted(name for name, node in nodes.items() if isinstance(node, zarr.Group)),
        "attributes": dict(root.attrs),
        "own": {name: dict(array.attrs) for name, array in arrays.items() if dict(array.attrs)},
        "xarray": {name: describe(variable, variable.values) for name, variable in dataset.data_vars.items()},
        "tree": sorted(f"{node.path}/{name}".lstrip("/") for node in tree.subtree for name in node.data_vars),
    }))  # fmt: skip


main(sys.argv[1])
