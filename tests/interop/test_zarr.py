"""zarr and xarray read models by their references, through fsspec, and find the values that NumPy finds."""

import hashlib
import io
import json

import ml_dtypes
import numpy as np
import pytest

from arrays import compressible_arrays
from environments import run_client

from containers import dense, dense_encoded, dense_in_shard, pattern, seekable, shard_entry
from containers import zstd_dense, zstd_frame, zt1, zt2, zt2_data_shard
from parts import safetensors_model

random = np.random.default_rng(6)
GRID = random.standard_normal((5, 7, 3)).astype("<f4")
ODD = ["a b", "50%", "%41", "ü", "semi;colon", "#hash", "what?", "a*b", "[0]", "{x}", "{{x}}", "c:d", "'", '"', "a&b=c", "~",
       ".hidden", "c", "a.b.c", "-", "日本"]  # fmt: skip


def native(array):
    return array.astype(array.dtype.newbyteorder("<"))


def expected(arrays):
    return {name: [str(native(array).dtype), list(array.shape), hashlib.sha256(native(array).tobytes("C")).hexdigest()]
            for name, array in arrays.items()}  # fmt: skip


def save(path, arrays, **options):
    file = io.BytesIO()
    (np.savez_compressed if options.get("compressed") else np.savez)(file, **arrays)
    path.write_bytes(file.getvalue())


def every_type():
    arrays = {name: random.integers(0, 100, (3, 4)).astype(name) for name in
              ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}  # fmt: skip
    arrays |= {name: random.standard_normal((2, 5)).astype(name) for name in ("float16", "float32", "float64")}
    arrays |= {name: (random.standard_normal(6) + 1j).astype(name) for name in ("complex64", "complex128")}
    return arrays | {"bool": np.array([[True, False, True]]), "scalar": np.array(2.5), "none": np.zeros((0, 4), "f4"),
                     "nan": np.array([np.nan, 0, -0.0, np.inf], "f4"), "one": np.array([7], "i8")}  # fmt: skip


def read(server, query="", model="m"):
    return json.loads(run_client("zarr", f"{server.url}/v1/models/{model}/export?format=reference{query}"))


def assert_reads(found, arrays):
    assert found["zarr"] == expected(arrays)
    flat = {name: array for name, array in arrays.items() if "/" not in name}
    assert found["xarray"] == expected(flat)
    assert found["tree"] == sorted(arrays)


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
def test_every_type_of_numpy(tmp_path, start_server, compressed):
    arrays = every_type()
    save(tmp_path / "m.npz", arrays, compressed=compressed)
    assert_reads(read(start_server(tmp_path)), arrays)


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
def test_other_orders_of_bytes_and_elements(tmp_path, start_server, compressed):
    arrays = {"plain": GRID, "big": GRID.astype(">f4"), "fortran": np.asfortranarray(GRID),
              "both": np.asfortranarray(GRID.astype(">f8")), "big_complex": GRID[0, 0].astype(">c8"),
              "vector": np.asfortranarray(GRID[0, 0]), "bytes": np.asfortranarray(random.integers(0, 9, (3, 4), "u1"))}  # fmt: skip
    save(tmp_path / "m.npz", arrays, compressed=compressed)
    assert_reads(read(start_server(tmp_path)), arrays)


def test_compressed_components(tmp_path, start_server):
    arrays = compressible_arrays()
    zeros, steps = arrays["zeros.f32"].tobytes(), arrays["steps.i64"].tobytes()
    objects = {"zeros.f32": zstd_dense(zeros, "f32", [300, 70]),
               "steps.i64": dense_encoded(steps, zstd_frame(steps, content_size=True), "zstd", "i64", [10_000])}  # fmt: skip
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    found = start_server(tmp_path)
    assert_reads(read(found), arrays)
    (tmp_path / "s.zt").write_bytes(
        zt2({"zeros.f32": dense_encoded(zeros, seekable(zeros, 5000), "zt.zstd-seekable/1", "f32", [300, 70])})
    )
    assert_reads(read(found, model="s"), {"zeros.f32": arrays["zeros.f32"]})


def test_components_in_other_files(tmp_path, start_server):
    held = pattern(3000)
    shard = zt2_data_shard(b"in front", held)
    (tmp_path / "m-w.zt").write_bytes(shard)
    objects = {"in": dense_in_shard("w", shard.offsets[1], held, digest="xxh3"), "own": dense(pattern(50))}
    (tmp_path / "m.zt").write_bytes(zt2(objects, fields={"shards": {"w": shard_entry(shard)}}))
    arrays = {"in": np.frombuffer(held, "u1"), "own": np.frombuffer(pattern(50), "u1")}
    assert_reads(read(start_server(tmp_path)), arrays)


def test_a_model_in_parts(tmp_path, start_server):
    parts = [[("a", pattern(100)), ("c", pattern(40, 2))], [("b", pattern(70, 3))]]
    (tmp_path / "sub dir").mkdir()
    for name, content in safetensors_model("m", parts).items():
        (tmp_path / "sub dir" / name).write_bytes(content)
    arrays = {name: np.frombuffer(data, "u1") for part in parts for name, data in part}
    found = read(start_server(tmp_path), model="sub%20dir%2Fm")
    assert {name: [shape, digest] for name, (_, shape, digest) in found["zarr"].items()} == {
        name: [shape, digest] for name, (_, shape, digest) in expected(arrays).items()
    }


def test_names_attributes_and_groups(tmp_path, start_server):
    names = [*ODD, "layers/0/weight", "layers/0/bias", "layers/1/weight", "layers-x"]
    objects = {name: dense(bytes([index]) * 4, attributes={"index": index}) for index, name in enumerate(names)}
    (tmp_path / "m.zt").write_bytes(zt1(objects, attributes={"framework": "none", "size": [1, None, {"x": 2.5}]}))
    found = read(start_server(tmp_path))
    assert_reads(found, {name: np.full(4, index, "u1") for index, name in enumerate(names)})
    assert found["first"] == {name: [index] for index, name in enumerate(names)}
    assert found["groups"] == ["layers", "layers/0", "layers/1"]
    assert found["attributes"] == {"framework": "none", "size": [1, None, {"x": 2.5}]}
    assert found["own"] == {name: {"index": index} for index, name in enumerate(names)}


def test_small_floats_widened(tmp_path, start_server):
    values = random.standard_normal((4, 6)).astype("f4")
    small = values.astype(ml_dtypes.bfloat16)
    objects = {"b": dense(small.tobytes(), "bf16", [4, 6]), "f": dense(values.tobytes(), "f32", [4, 6]), "i": dense(b"12")}
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    arrays = {"b": small.astype("f4"), "f": values, "i": np.frombuffer(b"12", "u1")}
    assert_reads(read(start_server(tmp_path), "&dtype=f32"), arrays)


def test_below_a_path(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(pattern(20)), "z": zstd_dense(pattern(9000))}))
    server = start_server(tmp_path, environment={"ZTSERVE_BASE_PATH": "/models"})
    found = json.loads(run_client("zarr", f"{server.url}/models/v1/models/m/export?format=reference"))
    assert_reads(found, {"w": np.frombuffer(pattern(20), "u1"), "z": np.frombuffer(pattern(9000), "u1")})
