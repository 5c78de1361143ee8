"""Writes and reads .npy and .npz files with numpy."""

import sys

import arrays
import client
import numpy as np

KINDS = ("f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u2", "c8", "c16")


def all_arrays():
    """Every type that numpy shares with tensors, in both byte orders and both element orders, and unusual shapes."""
    random = np.random.default_rng(22)
    made = {}
    for kind in KINDS:
        for order, sign in (("little", "<"), ("big", ">")):
            dtype = np.dtype(sign + kind)
            array = np.frombuffer(random.bytes(5 * 7 * 3 * dtype.itemsize), dtype).reshape(5, 7, 3)
            made[f"{kind}.{order}"] = array
            made[f"{kind}.{order}.fortran"] = np.asfortranarray(array)
    for kind in ("i1", "u1"):
        made[kind] = np.frombuffer(random.bytes(35), kind).reshape(5, 7)
        made[f"{kind}.fortran"] = np.asfortranarray(made[kind])
    made["bool"] = random.integers(0, 2, (6, 4)).astype(np.bool_)
    made["bool.fortran"] = np.asfortranarray(made["bool"])
    made["scalar"] = np.array(1.5)
    made["scalar.big"] = np.array(-7, dtype=">i4")
    made["none"] = np.zeros((0,), dtype=np.float32)
    made["none.big.fortran"] = np.asfortranarray(np.zeros((3, 0, 2), dtype=">f8"))
    made["zeros"] = np.zeros((100, 70), dtype=np.float32)
    made["large.fortran"] = np.asfortranarray(random.standard_normal((700, 300)))
    made["name/with slash"] = np.arange(10)
    made["näme 🙂"] = np.arange(4, dtype=np.uint16)
    return made


def expect(path, tensors):
    expectation = arrays.Expectation(path)
    for name, array in tensors.items():
        expectation.typed(name, array)
    expectation.attributes({})
    expectation.save()


def write(folder):
    made = all_arrays()
    for name in ("f4.little", "f8.big", "i2.little.fortran", "c16.big.fortran", "bool", "scalar", "none", "u1"):
        path = folder / f"one.{name}.npy"
        np.save(path, made[name])
        expect(path, {"data": made[name]})
    for path, save in ((folder / "stored.npz", np.savez), (folder / "deflated.npz", np.savez_compressed)):
        save(path, **made)
        expect(path, made)


def read(path):
    if path.suffix == ".npy":
        return {"data": arrays.little_endian(np.load(path))}
    with np.load(path) as archive:
        return {name: arrays.little_endian(archive[name]) for name in archive.files}


sys.exit(client.main(write, read))
