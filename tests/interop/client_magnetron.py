"""Writes and reads .mag files with the package magnetron, whose releases each have a layout and an interface of their
own: 0.1.2, 0.1.5 to 0.1.6, 0.1.7 to 0.1.9, and 0.2.2."""

import ctypes
import sys
from importlib.metadata import version

import arrays
import client
import ml_dtypes
import numpy as np

RELEASE = version("magnetron")
SNAPSHOTS = ("0.1.6", "0.1.7", "0.1.9")


def tensors():
    """The types and shapes of all releases; 0.1.2 has four types."""
    random = np.random.default_rng(25)
    made = {
        "weights.f32": random.standard_normal((33, 17)).astype(np.float32),
        "weights.f16": random.standard_normal((4, 3, 2)).astype(np.float16),
        "mask.bool": random.integers(0, 2, (3, 9)).astype(np.bool_),
        "numbers.int32": random.integers(-(2**31), 2**31, (13,), dtype=np.int32),
        "six.dimensions": np.arange(64, dtype=np.float32).reshape([2] * 6),
        "one": np.array([7], dtype=np.int32),
        "näme/with slash": np.arange(5, dtype=np.float32),
    }
    if RELEASE != "0.1.2":
        made["weights.bf16"] = random.standard_normal((6, 11)).astype(ml_dtypes.bfloat16)
        for kind in ("int64", "int16", "int8", "uint64", "uint32", "uint16", "uint8"):
            limits = np.iinfo(kind)
            made[f"more.{kind}"] = random.integers(limits.min, limits.max, (3, 5), dtype=kind, endpoint=True)
    if RELEASE in ("0.1.7", "0.1.9", "0.2.2"):
        made["weights.f8"] = random.standard_normal((5, 3)).astype(ml_dtypes.float8_e4m3fn)
    if RELEASE == "0.2.2":
        made["none"] = np.zeros((2, 0, 3), dtype=np.float32)
        made["scalar"] = np.array(2.5, dtype=np.float32)
    return made


def own_dtype(array):
    import magnetron

    # In 0.1.2 they are in the package itself.
    names = getattr(magnetron, "dtype", magnetron)
    return getattr(names, "boolean" if array.dtype == np.bool_ else array.dtype.name)


def own_tensor(array):
    """A tensor of the package with these bytes; no release accepts an array."""
    from magnetron import Tensor

    tensor = Tensor.empty(*array.shape, dtype=own_dtype(array))
    data = array.tobytes()
    ctypes.memmove(tensor.data_ptr if RELEASE == "0.1.2" else tensor.data_ptr_mut, data, len(data))
    return tensor


def write_archive(path, made):
    from magnetron.io import StorageArchive

    metadata = {"layers": 12, "negative": -(2**63), "rate": 0.125}
    with StorageArchive(path, "w") as archive:
        for name, array in made.items():
            archive[name] = own_tensor(array)
        for name, value in metadata.items():
            archive[name] = value
    return metadata


def write_snapshot(path, made):
    from magnetron import Snapshot

    with Snapshot.write(str(path)) as snapshot:
        for name, array in made.items():
            snapshot.put_tensor(name, own_tensor(array))
    return {}


def write_stream(path, made):
    from magnetron.snapshot import SnapshotWriter

    metadata = {"framework": "none", "layers": 2, "nested": {"list": [1, None, True, 0.5, "é"]}}
    with SnapshotWriter(path, metadata) as writer:
        for name, array in made.items():
            writer.declare(name, array.shape, own_dtype(array))
        for name, array in made.items():
            writer.write(name, array.tobytes())
    return metadata


WRITERS = {"0.1.2": write_archive, **dict.fromkeys(SNAPSHOTS, write_snapshot), "0.2.2": write_stream}


def write(folder):
    path = folder / "tensors.mag"
    made = tensors()
    expectation = arrays.Expectation(path)
    expectation.attributes(WRITERS[RELEASE](path, made))
    for name, array in made.items():
        expectation.typed(name, array)
    expectation.save()


def bytes_of(tensor):
    return ctypes.string_at(tensor.data_ptr, tensor.numbytes)


def read(path):
    """0.1.2 writes tensors and never reads them."""
    if RELEASE == "0.1.2":
        return {}
    if RELEASE in SNAPSHOTS:
        from magnetron import Snapshot

        with Snapshot.read(str(path)) as snapshot:
            return {name: bytes_of(snapshot.get_tensor(name)) for name in snapshot.tensor_keys()}
    from magnetron.snapshot import deserialize

    return {name: tensor.tobytes() for name, tensor in deserialize(path, mmap=False)[0].items()}


sys.exit(client.main(write, read))
