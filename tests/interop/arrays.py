"""The tensors that every client writes, and the answers that the server must give for them.

Runs in the virtual environments of the clients: numpy (and ml_dtypes for bfloat16) and nothing else.
"""

import hashlib
import json

import ml_dtypes
import numpy as np


def dense_arrays():
    """One array for each type that numpy and the clients share, and the shapes that are most error-prone."""
    random = np.random.default_rng(20)
    arrays = {
        "weights.f64": random.standard_normal((5, 7)),
        "weights.f32": random.standard_normal((33, 17)).astype(np.float32),
        "weights.f16": random.standard_normal((4, 3, 2)).astype(np.float16),
        "weights.bf16": random.standard_normal((6, 11)).astype(ml_dtypes.bfloat16),
        "mask.bool": random.integers(0, 2, (3, 9)).astype(np.bool_),
        "shape.scalar": np.array(3.25, dtype=np.float32),
        "shape.one": np.array([7], dtype=np.int64),
        "name/with slash": np.arange(10, dtype=np.int32),
        "näme.ünïcode": np.arange(4, dtype=np.uint16),
        "large.f32": random.standard_normal((256, 1024)).astype(np.float32),
    }
    for kind in ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"):
        information = np.iinfo(kind)
        arrays[f"numbers.{kind}"] = random.integers(information.min, information.max, (13,), dtype=kind, endpoint=True)
    return arrays


def compressible_arrays():
    """Arrays that zstd makes much smaller, so that stored and decoded bytes cannot be confused."""
    return {
        "zeros.f32": np.zeros((300, 70), dtype=np.float32),
        "steps.i64": np.repeat(np.arange(50, dtype=np.int64), 200),
    }


def csr_matrix():
    """A 4 x 6 matrix in compressed sparse rows: values, indices, indptr, shape."""
    values = np.array([1.5, -2.0, 3.0, 4.25, 5.0], dtype=np.float32)
    indices = np.array([0, 3, 1, 2, 5], dtype=np.uint64)
    indptr = np.array([0, 2, 2, 3, 5], dtype=np.uint64)
    return values, indices, indptr, (4, 6)


def coo_matrix():
    """A 3 x 5 matrix by coordinates: values, all row numbers and then all column numbers, shape."""
    values = np.array([9.0, 8.0, 7.0], dtype=np.float64)
    coords = np.array([0, 1, 2, 4, 0, 3], dtype=np.uint64)
    return values, coords, (3, 5)


# dtype and type in the manifest, for numpy dtypes whose name is not both.
TYPES = {
    "bool": ("bool", "bool"),
    "complex64": ("f32", "complex64"),
    "complex128": ("f64", "complex128"),
    "bfloat16": ("bf16", "bf16"),
    "float8_e4m3fn": ("u8", "f8_e4m3fn"),
    "float8_e5m2": ("u8", "f8_e5m2"),
    "float8_e4m3fnuz": ("u8", "f8_e4m3fnuz"),
    "float8_e5m2fnuz": ("u8", "f8_e5m2fnuz"),
    "float8_e8m0fnu": ("u8", "f8_e8m0"),
}


def types_of(array):
    """dtype and type as the manifest shows them."""
    kind = f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    return TYPES.get(array.dtype.name, (kind, kind))


def little_endian(array):
    """The bytes that a server must return: row-major and little-endian, however the array is in memory."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Expectation:
    """Collects what was written to one file, and saves it beside the file."""

    def __init__(self, path):
        self.path = str(path)
        self.objects = {}

    def dense(self, name, array, shape=None):
        self.add(name, array.shape if shape is None else shape, {"data": array})

    def dense_contiguous(self, name, array):
        """As the clients before 2 write it: numpy makes the array contiguous, which turns a scalar into shape [1]."""
        self.dense(name, array, np.ascontiguousarray(array).shape)

    def typed(self, name, array):
        """A dense tensor whose types the manifest must show; its bytes are those of the little-endian array."""
        self.add(name, array.shape, {"data": np.frombuffer(little_endian(array), np.uint8)})
        self.objects[name]["types"] = {"data": types_of(array)}
        self.objects[name]["format"] = "dense"

    def stored(self, name, shape, data, types, form="dense", attributes=None):
        """A tensor of bytes that numpy has no type for."""
        self.add(name, shape, {"data": np.frombuffer(data, np.uint8)})
        self.objects[name].update(types={"data": types}, format=form, attributes=attributes or {})

    def attributes(self, attributes):
        """What the manifest shows for the whole file."""
        with open(self.path + ".attributes.json", "w", encoding="utf-8") as file:
            json.dump(attributes, file)

    def add(self, name, shape, components):
        self.objects[name] = {
            "shape": [int(extent) for extent in shape],
            "components": {role: sha256(np.ascontiguousarray(data).tobytes()) for role, data in components.items()},
        }

    def save(self):
        with open(self.path + ".expected.json", "w", encoding="utf-8") as file:
            json.dump(self.objects, file)
