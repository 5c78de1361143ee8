"""ONNX: initializers as a server shows them, and external data that comes, changes and goes beside the model."""

import io
import json
import os
import subprocess
from hashlib import sha1

import numpy
import pytest

from containers import dense_in_shard, pattern, shard_entry, zt2, zt2_data_shard
from onnx_messages import external, field, onnx, raw, single, tensor, varint
from server_process import PROGRAM
from uploads import put
from wire import ask, assert_problem, component_path, eventually, get, manifest, model_path, publish, verify

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
    assert [components[name]["encoding"] for name in EXPECTED] == ["raw", "raw", "varint", "varint"]


@pytest.mark.parametrize("name", EXPECTED)
def test_components_are_the_tensors(server, name):
    wanted = EXPECTED[name]
    answer = get(server, component_path("whole", name))
    assert (answer.status, answer.body) == (200, wanted.tobytes())
    part = get(server, component_path("whole", name), Range="bytes=3-14")
    assert (part.status, part.body) == (206, wanted.tobytes()[3:15])
    loaded = numpy.load(io.BytesIO(get(server, component_path("whole", name) + "?format=npy").body))
    assert loaded.dtype == wanted.dtype and numpy.array_equal(loaded, wanted)


def test_the_model_is_exported_to_safetensors(server):
    exported = get(server, "/v1/models/whole/export?format=safetensors").body
    length = int.from_bytes(exported[:8], "little")
    header = json.loads(exported[8 : 8 + length])
    for name, wanted in EXPECTED.items():
        begin, end = header[name]["data_offsets"]
        assert exported[8 + length + begin : 8 + length + end] == wanted.tobytes()


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
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", ".hidden", "sub/../../data"])
def test_data_that_is_not_beside_the_model_is_refused(local, beside, name, location):
    (beside / "sub").mkdir(exist_ok=True)
    for path in (".hidden", "sub/data"):
        (beside / path).write_bytes(DATA)
    publish(beside / f"{name}.onnx", external_model(location))
    assert eventually(lambda: problem_of(local, name, 422))["rule"] == "onnx §External Location"


@beside_the_model
@pytest.mark.parametrize("location, path", [("./{}.d", "{}.d"), ("./sub/.//deep/{}.d", "sub/deep/{}.d")])
def test_data_may_be_named_with_a_dot_and_below_the_folder(local, beside, name, location, path):
    data = beside / "a" / path.format(name)
    data.parent.mkdir(parents=True, exist_ok=True)
    publish(beside / "a" / f"{name}.onnx", external_model(location.format(name)))
    assert eventually(lambda: problem_of(local, f"a/{name}", 422))["detail"] == f"shard {path.format(name)} is missing"
    publish(data, DATA)
    assert eventually(lambda: bytes_of(local, f"a/{name}")) == DATA
    assert get(local, f"/files/a/{path.format(name)}").body == DATA
    assert run("verify", beside / "a" / f"{name}.onnx").returncode == 0


@beside_the_model
def test_data_below_a_link_is_read_only_if_the_link_stays_in_the_folder(local, beside, name):
    for folder in (f"{name}/real", f"{name}-other"):
        (beside / folder).mkdir(parents=True)
        publish(beside / folder / "d", DATA)
    for link, target in {"in": "real", "up": f"../{name}-other", "far": str(beside / f"{name}-other"), "out": "/etc"}.items():
        (beside / name / link).symlink_to(target)
        location = f"{link}/passwd" if link == "out" else f"{link}/d"
        (beside / name / f"{link}.onnx").write_bytes(external_model(location, count=1000 if link != "out" else 1))
    assert eventually(lambda: bytes_of(local, f"{name}/in")) == DATA
    assert run("verify", beside / name / "in.onnx").returncode == 0
    for link in ("up", "far", "out"):
        assert "is missing" in eventually(lambda: problem_of(local, f"{name}/{link}", 422))["detail"]
        refused = run("verify", beside / name / f"{link}.onnx")
        assert refused.returncode == 1 and "not below the model's folder" in refused.stderr


@beside_the_model
def test_a_length_of_0_is_all_that_the_tensor_takes(local, beside, name):
    publish(beside / f"{name}.data", bytes(96) + DATA + b"more")
    publish(beside / f"{name}.onnx", external_model(f"{name}.data", offset=96, length=0))
    assert eventually(lambda: bytes_of(local, name)) == DATA


@beside_the_model
def test_the_checksum_of_a_data_file_is_verified(local, beside, name):
    whole = bytes(96) + DATA
    publish(beside / f"{name}.data", whole)
    for kind, checksum in {"right": sha1(whole).hexdigest(), "upper": sha1(whole).hexdigest().upper(), "wrong": "0" * 40}.items():
        publish(beside / f"{name}-{kind}.onnx", external_model(f"{name}.data", offset=96, checksum=checksum))
    for kind in ("right", "upper"):
        assert eventually(lambda: bytes_of(local, f"{name}-{kind}")) == DATA
        assert run("verify", beside / f"{name}-{kind}.onnx").returncode == 0
    answer = eventually(lambda: get(local, component_path(f"{name}-wrong", "w")))
    assert_problem(answer, 500, "corrupt-component")
    assert verify(local, f"{name}-wrong")["state"] == "failed"
    result = run("verify", beside / f"{name}-wrong.onnx")
    assert result.returncode == 1 and "onnx §External Checksum" in result.stderr
    assert run("convert", beside / f"{name}-wrong.onnx", beside / f"{name}.zt").returncode == 1


@beside_the_model
def test_a_checksum_that_is_no_sha1_is_reported_as_unsupported(local, beside, name):
    publish(beside / f"{name}.data", DATA)
    publish(beside / f"{name}.onnx", external_model(f"{name}.data", checksum="x" * 40))
    assert eventually(lambda: bytes_of(local, name)) == DATA
    result = run("verify", beside / f"{name}.onnx")
    assert (result.returncode, result.stderr) == (0, "") and "unsupported: the digest stated" in result.stdout


def test_two_checksums_of_one_file_are_refused(tmp_path):
    made = [tensor(name, 1, [1], external("d", checksum=checksum * 40)) for name, checksum in (("a", "0"), ("b", "1"))]
    (tmp_path / "m.onnx").write_bytes(onnx(*made))
    (tmp_path / "d").write_bytes(bytes(8))
    assert "onnx §External Checksum" in run("verify", tmp_path / "m.onnx").stderr
    apart = [made[0], tensor("c", 1, [1], external("e")), made[1]]
    (tmp_path / "m.onnx").write_bytes(onnx(*apart))
    assert "onnx §External Checksum" in run("ls", tmp_path / "m.onnx").stderr


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
def test_removing_the_model_leaves_a_shard_of_others_that_is_its_data(local, beside, name):
    """Whoever may remove the model need not be allowed to remove what it names."""
    shard = bytes(zt2_data_shard(DATA))
    publish(beside / f"{name}-data.zt", shard)
    publish(beside / f"{name}.onnx", onnx(tensor("w", 2, [len(shard)], external(f"{name}-data.zt"))))
    assert eventually(lambda: bytes_of(local, name)) == shard
    assert ask(local, "DELETE", model_path(name)).status == 204
    assert (beside / f"{name}-data.zt").read_bytes() == shard


# --- numbers in several fields ---

ENDS = [0, -1, 300, -(2**63), 2**63 - 1]
HALVES = numpy.arange(6, dtype="<f8").reshape(2, 3)


def packed(number, values):
    return field(number, b"".join(varint(value) if isinstance(value, int) else value for value in values))


def words(array):
    return [item.tobytes() for item in array.flat]


REPEATED = {
    "unpacked": (7, numpy.array(ENDS, "<i8"), b"".join(single(7, value) for value in ENDS)),
    "mixed": (7, numpy.array(ENDS, "<i8"), single(7, 0) + packed(7, ENDS[1:4]) + packed(7, []) + single(7, ENDS[4])),
    "empty-first": (7, numpy.array(ENDS, "<i8"), packed(7, []) + packed(7, ENDS)),
    "between": (7, numpy.array(ENDS, "<i8"), single(7, 0) + field(12, b"a text" * 50) + field(99, 7) + packed(7, ENDS[1:]) + field(12, b"x")),
    "floats-twice": (1, VALUES, packed(4, words(VALUES[:7])) + packed(4, words(VALUES[7:]))),
    "complex": (14, HALVES.astype("<c8"), b"".join(single(4, part) for part in words(HALVES.astype("<c8").view("<f4")))),
    "shorts": (5, SHORTS, b"".join(single(5, int(value)) for value in SHORTS.flat)),
}


@pytest.mark.parametrize("case", REPEATED)
def test_numbers_in_several_fields_are_read(server, folder, name, case, tmp_path):
    kind, wanted, data = REPEATED[case]
    made = onnx(tensor("before", 7, [1], packed(7, [1])), tensor("w", kind, wanted.shape, data), tensor("after", 7, [1], packed(7, [2])))
    assert put(server, name, made).status == 201
    assert bytes_of(server, name) == wanted.tobytes()
    component = manifest(server, name)["objects"]["w"]["components"]["data"]
    assert component["encoding"] == ("varint" if case == "empty-first" else "protobuf")
    assert verify(server, name)["state"] == "verified"
    part = ask(server, "GET", component_path(name, "w"), {"Range": "bytes=3-6"})
    assert (part.status, part.body) == (206, wanted.tobytes()[3:7])
    (tmp_path / "m.onnx").write_bytes(made)
    assert run("verify", tmp_path / "m.onnx").returncode == 0
    if case != "complex":
        assert run("convert", tmp_path / "m.onnx", tmp_path / "m.npz").returncode == 0
        with numpy.load(tmp_path / "m.npz") as arrays:
            assert numpy.array_equal(arrays["w"], wanted) and arrays["w"].dtype == wanted.dtype


# --- commands ---


@pytest.mark.parametrize(
    "data, rule",
    [
        (single(7, 1), "onnx §Tensor DataLength"),
        (single(7, 1) * 3, "onnx §Tensor DataLength"),
        (single(7, 1) + single(5, 1), "onnx §Tensor Repeated"),
        (single(7, 1) + raw(bytes(8)), "onnx §Tensor Repeated"),
        (raw(bytes(8)) + raw(bytes(8)), "onnx §Tensor Repeated"),
        (packed(7, [1]) + field(7, b"\x80"), "onnx §Wire Bounds"),
        (single(7, 1) + single(7, 2) + external("d"), "onnx §Tensor Data"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(tmp_path, data, rule):
    (tmp_path / "m.onnx").write_bytes(onnx(tensor("w", 7, [2], data)))
    result = run("verify", tmp_path / "m.onnx")
    assert result.returncode == 1 and rule in result.stderr


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


def test_verify_calls_a_model_without_its_external_data_bad(tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(external_model("m.data", length=4000))
    for argument in (model, tmp_path):
        missing = run("verify", "--json", argument)
        assert missing.returncode == 1
        made = json.loads(missing.stdout)
        made = made[0] if argument == tmp_path else made
        assert (made["state"], made["error"]["detail"]) == ("bad", "shard m.data is missing")
    allowed = run("verify", "--allow-missing", argument)
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert "unsupported: shard m.data is missing" in allowed.stdout


@beside_the_model
@pytest.mark.parametrize("name", ["m.zt", "m.onnx"])
def test_verify_calls_a_model_at_a_url_without_a_file_bad(start_server, tmp_path, name):
    shard = zt2_data_shard(DATA)
    part = dense_in_shard("rest", shard.offsets[0], DATA)
    stored = zt2({"w": part}, fields={"shards": {"rest": shard_entry(shard)}})
    (tmp_path / name).write_bytes(stored if name == "m.zt" else external_model("m-rest.bin", length=4000))
    server = start_server(tmp_path)
    url = f"http://127.0.0.1:{server.port}/files/{name}"
    missing = run("verify", url)
    assert missing.returncode == 1 and "is missing" in missing.stderr
    assert run("verify", "--allow-missing", url).returncode == 0
    there = "m-rest.zt" if name == "m.zt" else "m-rest.bin"
    (tmp_path / there).write_bytes(bytes(shard) if name == "m.zt" else DATA)
    assert eventually(lambda: run("verify", url).returncode == 0)
