"""ONNX: initializers as a server shows them, and external data that comes, changes and goes beside the model."""

import io
import json
import os
import subprocess

import numpy
import pytest

from containers import pattern, zt2_data_shard
from onnx_messages import external, field, onnx, raw, tensor, varint
from server_process import PROGRAM
from uploads import put
from wire import ask, assert_problem, component_path, eventually, get, manifest, model_path, verify

VALUES = numpy.arange(1200, dtype="<f4").reshape(30, 40)
LONGS = numpy.array([0, 1, -1, 300, -(2**63), 2**63 - 1], "<i8")
SHORTS = numpy.array([[-1, 2], [-32768, 32767]], "<i2")
DATA = pattern(4000, seed=5)


def external_model(location, count=1000, **numbers):
    return onnx(tensor("w", 1, [count], external(location, **numbers)))


WHOLE = onnx(
    tensor("raw", 1, VALUES.shape, raw(VALUES.tobytes())),
    tensor("floats", 1, VALUES.shape, field(4, VALUES.tobytes())),
    tensor("longs", 7, LONGS.shape, field(7, b"".join(varint(int(value)) for value in LONGS))),
    tensor("shorts", 5, SHORTS.shape, field(5, b"".join(varint(int(value)) for value in SHORTS.flat))),
)
EXPECTED = {"raw": VALUES, "floats": VALUES, "longs": LONGS, "shorts": SHORTS}


def publish(path, data):
    """Replaces a file atomically, as writers should."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(data)
    os.replace(temporary, path)


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "whole.onnx").write_bytes(WHOLE)
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A folder for models with external data: a bucket does not serve them."""
    return tmp_path_factory.mktemp("beside")


@pytest.fixture(scope="module")
def local(beside, share_server):
    return share_server(beside, "--writable")


# --- one file ---


def test_the_model_is_listed_and_its_manifest_says_how_it_is_stored(server):
    listed = {model["name"]: model for model in get(server, "/v1/models").json()["models"]}
    assert listed["whole"]["format"] == "onnx"
    components = {name: shown["components"]["data"] for name, shown in manifest(server, "whole")["objects"].items()}
    assert {name: one["encoding"] for name, one in components.items()} == {
        "raw": "raw",
        "floats": "raw",
        "longs": "varint",
        "shorts": "varint",
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_components_are_the_tensors(server, name):
    wanted = EXPECTED[name]
    answer = get(server, component_path("whole", name))
    assert (answer.status, answer.body) == (200, wanted.tobytes())
    part = get(server, component_path("whole", name), Range="bytes=3-14")
    assert (part.status, part.body) == (206, wanted.tobytes()[3:15])
    loaded = numpy.load(io.BytesIO(get(server, component_path("whole", name) + "?format=npy").body))
    assert loaded.dtype == wanted.dtype and numpy.array_equal(loaded, wanted)
    row = get(server, component_path("whole", name) + "?slice=1:2")
    assert row.body == wanted[1:2].tobytes()


def test_the_stored_bytes_of_integers_are_those_of_the_file(server):
    answer = get(server, component_path("whole", "longs") + "?representation=stored")
    assert answer.body == b"".join(varint(int(value)) for value in LONGS)


def test_the_model_is_exported_to_safetensors(server):
    exported = get(server, "/v1/models/whole/export?format=safetensors").body
    length = int.from_bytes(exported[:8], "little")
    header = json.loads(exported[8 : 8 + length])
    for name, wanted in EXPECTED.items():
        begin, end = header[name]["data_offsets"]
        assert exported[8 + length + begin : 8 + length + end] == wanted.tobytes()


def test_verification_ends(server):
    assert verify(server, "whole")["state"] == "verified"


def test_one_file_is_uploaded_replaced_and_removed(server, name):
    assert put(server, name, WHOLE).status == 201
    assert get(server, component_path(name, "longs")).body == LONGS.tobytes()
    assert put(server, name, onnx(tensor("other", 2, [3], raw(b"abc")))).status in (200, 204)
    assert get(server, component_path(name, "other")).body == b"abc"
    assert get(server, f"/files/{name}.onnx").status == 200
    assert ask(server, "DELETE", model_path(name)).status == 204
    assert get(server, f"/files/{name}.onnx").status == 404


def test_a_model_with_external_data_is_not_uploaded(server, name):
    problem = assert_problem(put(server, name, external_model("any.bin")), 422, "invalid-model")
    assert "any.bin" in problem["detail"] and "external data" in problem["detail"]
    assert get(server, model_path(name)).status == 404


def test_a_broken_message_reports_rule_and_offset(server, name):
    broken = onnx(tensor("w", 1, [3], raw(b"12345")))
    problem = assert_problem(put(server, name, broken), 422, "invalid-model")
    assert problem["rule"] == "onnx §Tensor DataLength"
    assert problem["offset"] == broken.index(b"12345")


# --- external data ---

# Not found in a bucket.
beside_the_model = pytest.mark.folder("external data of ONNX is found in folders only")


def bytes_of(server, name):
    answer = get(server, component_path(name, "w"))
    return answer.body if answer.status == 200 else None


@beside_the_model
@pytest.mark.parametrize("extension", ["data", "bin"])
def test_external_data_that_comes_later_makes_the_model_whole(local, beside, name, extension):
    """The store lists files of a model's extension, and no others."""
    data = beside / f"{name}.{extension}"
    (beside / f"{name}-model.onnx").write_bytes(external_model(data.name))
    assert data.name in eventually(lambda: problem_of(local, f"{name}-model", 422))["detail"]
    publish(data, DATA)
    assert eventually(lambda: bytes_of(local, f"{name}-model")) == DATA
    assert verify(local, f"{name}-model")["state"] == "verified"


def problem_of(server, name, status):
    answer = get(server, model_path(name))
    return answer.json() if answer.status == status else None


@beside_the_model
def test_external_data_that_is_replaced_makes_a_new_version(local, beside, name):
    publish(beside / f"{name}.data", DATA)
    publish(beside / f"{name}.onnx", external_model(f"{name}.data"))
    assert eventually(lambda: bytes_of(local, name)) == DATA
    tag = get(local, component_path(name, "w"))["ETag"]
    publish(beside / f"{name}.data", DATA[::-1])
    assert eventually(lambda: bytes_of(local, name) == DATA[::-1])
    assert get(local, component_path(name, "w"))["ETag"] != tag


@beside_the_model
def test_external_data_that_goes_or_shrinks_is_an_error(local, beside, name):
    data = beside / f"{name}.data"
    publish(data, DATA)
    publish(beside / f"{name}.onnx", external_model(data.name))
    assert eventually(lambda: bytes_of(local, name)) == DATA
    data.unlink()
    assert "missing" in eventually(lambda: problem_of(local, name, 422))["detail"]
    publish(data, DATA[:-1])
    assert eventually(lambda: (problem_of(local, name, 422) or {}).get("rule")) == "onnx §External Size"
    publish(data, DATA)
    assert eventually(lambda: bytes_of(local, name)) == DATA


@beside_the_model
def test_external_data_that_is_cut_in_place_gives_no_wrong_byte(local, beside, name):
    data = beside / f"{name}.data"
    publish(data, DATA)
    publish(beside / f"{name}.onnx", external_model(data.name))
    assert eventually(lambda: bytes_of(local, name)) == DATA
    os.truncate(data, 1000)
    seen = {bytes_of(local, name) for _ in range(50)}
    assert seen <= {None, DATA}
    assert eventually(lambda: problem_of(local, name, 422))


@beside_the_model
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", ".hidden", "sub/data", "..", ""])
def test_data_that_is_not_beside_the_model_is_refused(local, beside, name, location):
    (beside / "sub").mkdir(exist_ok=True)
    for path in (".hidden", "sub/data"):
        (beside / path).write_bytes(DATA)
    publish(beside / f"{name}.onnx", external_model(location))
    assert eventually(lambda: problem_of(local, name, 422))["rule"] == "onnx §External Location"


@beside_the_model
def test_a_folder_or_a_link_out_of_the_root_is_no_data(local, beside, tmp_path, name):
    (tmp_path / "secret").write_bytes(DATA)
    (beside / f"{name}.link").symlink_to(tmp_path / "secret")
    (beside / f"{name}.folder").mkdir()
    for kind in ("link", "folder"):
        publish(beside / f"{name}-{kind}.onnx", external_model(f"{name}.{kind}"))
        eventually(lambda kind=kind: get(local, model_path(f"{name}-{kind}")).status not in (200, 404))
        assert bytes_of(local, f"{name}-{kind}") is None


@beside_the_model
def test_removing_the_model_leaves_its_data(local, beside, name):
    publish(beside / f"{name}.data", DATA)
    publish(beside / f"{name}.onnx", external_model(f"{name}.data"))
    assert eventually(lambda: bytes_of(local, name)) == DATA
    assert get(local, f"/files/{name}.data").body == DATA
    assert ask(local, "DELETE", model_path(name)).status == 204
    assert (beside / f"{name}.data").read_bytes() == DATA


@beside_the_model
def test_removing_the_model_leaves_a_shard_of_others_that_is_its_data(local, beside, name):
    """Whoever may remove the model need not be allowed to remove what it names."""
    shard = bytes(zt2_data_shard(DATA))
    publish(beside / f"{name}-data.zt", shard)
    publish(beside / f"{name}.onnx", onnx(tensor("w", 2, [len(shard)], external(f"{name}-data.zt"))))
    assert eventually(lambda: bytes_of(local, name)) == shard
    assert ask(local, "DELETE", model_path(name)).status == 204
    assert (beside / f"{name}-data.zt").read_bytes() == shard


# --- commands ---


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def test_commands_read_external_data(tmp_path):
    (tmp_path / "m.onnx").write_bytes(external_model("m.data", offset=96, length=4000))
    (tmp_path / "m.data").write_bytes(bytes(96) + DATA)
    assert list(json.loads(run("ls", "--json", tmp_path / "m.onnx").stdout)["objects"]) == ["w"]
    assert run("verify", tmp_path / "m.onnx").returncode == 0
    made = run("convert", tmp_path / "m.onnx", tmp_path / "m.safetensors")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "m.safetensors").read_bytes().endswith(DATA)
    (tmp_path / "m.data").write_bytes(DATA)
    short = run("verify", tmp_path / "m.onnx")
    assert short.returncode != 0 and "External Size" in short.stdout + short.stderr


def test_commands_read_integers(tmp_path):
    (tmp_path / "m.onnx").write_bytes(WHOLE)
    assert run("verify", tmp_path / "m.onnx").returncode == 0
    assert run("convert", tmp_path / "m.onnx", tmp_path / "m.npz").returncode == 0
    with numpy.load(tmp_path / "m.npz") as made:
        for name, wanted in EXPECTED.items():
            assert numpy.array_equal(made[name], wanted)
