"""Views of PyTorch's storages: whatever their strides, the bytes are those of the tensor, row-major and little-endian,
whole, in ranges, in slices and in parts, and exported."""

import io
import json
import subprocess
import zlib

import numpy
import pytest

from pytorch import Storage, Tensor, pt
from server_process import PROGRAM
from wire import component_path, get

VALUES = numpy.arange(1200, dtype="<f4")
COMPLEX = (numpy.arange(60) + 1j * numpy.arange(100, 160)).astype("<c8")
SHARED = Storage(VALUES.tobytes())
DEFLATED = Storage(VALUES.tobytes(), deflated=True)
TURNED = Storage(COMPLEX.tobytes(), "complex64")


def strided(values, shape, stride, offset=0):
    width = values.itemsize
    return numpy.lib.stride_tricks.as_strided(values[offset:], shape, [step * width for step in stride])


# name: (storage, shape, stride, offset)
PLACES = {
    "whole": ([30, 40], [40, 1], 0),
    "transposed": ([40, 30], [1, 40], 0),
    "columns": ([30, 7], [40, 1], 3),
    "every second": ([15, 20], [80, 2], 41),
    "row repeated": ([5, 40], [0, 1], 80),
    "elements repeated": ([40, 5], [1, 0], 80),
    "windows": ([100, 8], [3, 1], 0),
    "permuted": ([4, 5, 6], [1, 120, 8], 2),
    "scalar": ([], [], 17),
    "empty": ([0, 3], [3, 1], 0),
}
TENSORS = {}
EXPECTED = {}
for label, (shape, stride, offset) in PLACES.items():
    for prefix, storage in (("", SHARED), ("deflated ", DEFLATED)):
        TENSORS[prefix + label] = Tensor(storage, shape, stride, offset)
        EXPECTED[prefix + label] = strided(VALUES, shape, stride, offset)
TENSORS["conj"] = Tensor(TURNED, [6, 10], metadata={"conj": True})
EXPECTED["conj"] = COMPLEX.reshape(6, 10).conj()
TENSORS["neg"] = Tensor(TURNED, [10, 6], [1, 10], metadata={"neg": True})
EXPECTED["neg"] = -COMPLEX.reshape(6, 10).T
BIG = {name: Tensor(Storage(VALUES.astype(">f4").tobytes()), *place) for name, place in PLACES.items()}


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "views.pt").write_bytes(pt(TENSORS))
    (folder / "big.pt").write_bytes(pt(BIG, byteorder="big"))
    return share_server(folder)


def path(name, query="", model="views"):
    return component_path(model, name) + query


@pytest.mark.parametrize("name", TENSORS)
def test_a_view_is_served_as_the_tensor(server, name):
    answer = get(server, path(name))
    assert answer.status == 200
    assert answer.body == EXPECTED[name].tobytes()


@pytest.mark.parametrize("name", PLACES)
def test_big_endian_views_are_swapped(server, name):
    assert get(server, path(name, model="big")).body == EXPECTED[name].tobytes()


@pytest.mark.parametrize("name", [name for name in TENSORS if EXPECTED[name].size > 30])
def test_ranges_of_a_view_are_ranges_of_the_tensor(server, name):
    data = EXPECTED[name].tobytes()
    for first, last in ((0, 0), (1, 30), (37, 101), (len(data) - 9, len(data) - 1)):
        answer = get(server, path(name), Range=f"bytes={first}-{last}")
        assert answer.status == 206
        assert answer.body == data[first : last + 1]


@pytest.mark.parametrize("name", [name for name in TENSORS if EXPECTED[name].ndim == 2 and EXPECTED[name].size])
def test_slices_and_parts_of_a_view_are_those_of_the_tensor(server, name):
    tensor = EXPECTED[name]
    cuts = {":,2": tensor[:, 2], "1:4,2:4": tensor[1:4, 2:4], "...": tensor}
    for text, cut in cuts.items():
        answer = get(server, path(name, f"?slice={text}"))
        assert (answer.status, answer.body) == (200, cut.tobytes()), text
        array = numpy.load(io.BytesIO(get(server, path(name, f"?slice={text}&format=npy")).body))
        assert array.shape == cut.shape
        assert array.tobytes() == cut.tobytes()
    for axis in (0, 1):
        if tensor.shape[axis] % 5 == 0:
            part = numpy.split(tensor, 5, axis)[3]
            assert get(server, path(name, f"?shard=3/5&axis={axis}")).body == part.tobytes()


def test_a_view_of_a_whole_storage_states_the_digest_of_its_entry(folder):
    listed = subprocess.run([PROGRAM, "ls", "--json", folder / "views.pt"], capture_output=True, check=True).stdout
    stated = {name: made["components"]["data"].get("digest") for name, made in json.loads(listed)["objects"].items()}
    crc = f"crc32:{zlib.crc32(VALUES.tobytes()):08x}"
    assert stated["whole"] == stated["deflated whole"] == stated["transposed"] == crc
    assert {stated[name] for name in ("columns", "windows", "deflated columns", "scalar")} == {None}


@pytest.mark.parametrize("form", ["safetensors", "npz"])
def test_views_are_exported_and_converted(server, folder, tmp_path, form):
    out = tmp_path / f"out.{form}"
    subprocess.run([PROGRAM, "convert", folder / "views.pt", out], check=True)
    exported = get(server, f"/v1/models/views/export?format={form}")
    assert exported.status == 200
    assert exported.body == out.read_bytes()
    if form == "npz":
        archive = numpy.load(out)
        for name, expected in EXPECTED.items():
            assert archive[name].tobytes() == expected.tobytes()


def test_shared_storages_stay_shared_in_zt2(folder, tmp_path):
    source = tmp_path / "tied.pt"
    tied = Storage(bytes(range(256)) * 4096)
    source.write_bytes(pt({
        "embed": Tensor(tied, [512, 512]), "head": Tensor(tied, [512, 512]),
        "turned": Tensor(tied, [512, 512], [1, 512]), "turned again": Tensor(tied, [512, 512], [1, 512]),
    }))  # fmt: skip
    out = tmp_path / "tied.zt"
    result = subprocess.run([PROGRAM, "convert", "--to", "zt2", source, out], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith(f"{out}: 4 objects, {4 << 20} bytes, ")
    assert out.stat().st_size < (2 << 20) + (1 << 18)


def test_verify_reads_whole_storages(folder, tmp_path):
    result = subprocess.run([PROGRAM, "verify", folder / "views.pt"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    damaged = bytearray((folder / "views.pt").read_bytes())
    damaged[damaged.index(VALUES.tobytes()) + 5] ^= 1
    (tmp_path / "damaged.pt").write_bytes(damaged)
    result = subprocess.run([PROGRAM, "verify", tmp_path / "damaged.pt"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "crc32" in result.stdout + result.stderr
