"""PUT of every format: the content decides the extension, and other files of the name are removed."""

import itertools

import pytest

from containers import dense, zt1, zt2
from neighbours import deflated_npz, gguf, mag, npy, npz, safetensors
from pytorch import Storage, Tensor, pt
from uploads import assert_absent, digest_field, files_of, put
from wire import assert_problem, component_path, get, manifest, model_path, verify

# Zeros and ones, so that all can hold it, also the one that has booleans only.
DATA = bytes(index % 3 % 2 for index in range(5000))
# Extension, format, and a file that holds DATA.
FORMATS = {
    "zt 1.2": ("zt", zt1({"w": dense(DATA)})),
    "zt 2": ("zt", zt2({"w": dense(DATA)})),
    "safetensors": ("safetensors", safetensors(DATA)),
    "gguf": ("gguf", gguf(DATA)),
    "mag": ("mag", mag(DATA)),
    "npz": ("npz", npz(DATA)),
    "npz deflated": ("npz", deflated_npz(DATA)),
    "npy": ("npy", npy(DATA)),
}
EXTENSIONS = {extension: file for extension, file in reversed(FORMATS.values())}


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


def object_of(extension):
    return "data" if extension == "npy" else "w"


def own_files(folder, name):
    return [path for path in files_of(folder) if path.startswith(f"{name}.")]


@pytest.mark.parametrize("kind", FORMATS)
def test_content_decides_the_extension(server, folder, name, kind):
    extension, file = FORMATS[kind]
    answer = put(server, name, file, Content_Type="application/octet-stream")
    assert answer.status == 201, answer
    assert answer["Repr-Digest"] == digest_field("sha-256", file)
    assert own_files(folder, name) == [f"{name}.{extension}"]
    shown = manifest(server, name)
    assert shown["source"]["format"] == extension
    assert shown["source"]["href"] == f"/files/{name}.{extension}"
    assert shown["source"]["etag"] == answer["ETag"]
    assert get(server, shown["source"]["href"]).body == file
    assert get(server, component_path(name, object_of(extension))).body == DATA
    assert verify(server, name)["state"] == "verified"


@pytest.mark.parametrize("old, new", itertools.pairwise([*EXTENSIONS, "npy"]))
def test_replacing_removes_the_other_formats_file(server, folder, name, old, new):
    assert put(server, name, EXTENSIONS[old]).status == 201
    answer = put(server, name, EXTENSIONS[new])
    assert answer.status == 204
    assert own_files(folder, name) == [f"{name}.{new}"]
    assert manifest(server, name)["source"]["format"] == new
    assert get(server, f"/files/{name}.{old}").status == 404
    assert get(server, component_path(name, object_of(new))).body == DATA


def test_a_file_under_a_wrong_extension_is_replaced_too(server, folder, name):
    (folder / f"{name}.zt").write_bytes(safetensors(b"old"))
    assert put(server, name, safetensors(DATA)).status == 204
    assert own_files(folder, name) == [f"{name}.safetensors"]
    assert get(server, component_path(name, "w")).body == DATA


@pytest.mark.parametrize("stem, extension", [("weights", "pt"), ("pytorch_model", "bin")])
def test_a_file_that_is_no_model_is_not_replaced(server, folder, stem, extension):
    path = folder / "nobodys" / f"{stem}.{extension}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"somebody else's file")
    assert_problem(put(server, f"nobodys/{stem}", pt({"w": Tensor(Storage(DATA[:16]), [4])})), 409, "conflict")
    assert path.read_bytes() == b"somebody else's file"
    path.unlink()
    assert_absent(server, folder, f"nobodys/{stem}")


@pytest.mark.parametrize("old, new", [("safetensors", "zt"), ("zt", "npz")])
def test_preconditions_are_about_the_name_whatever_its_format(server, folder, name, old, new):
    etag = put(server, name, EXTENSIONS[old])["ETag"]
    assert_problem(put(server, name, EXTENSIONS[new], If_None_Match="*"), 412, "precondition-failed")
    assert_problem(put(server, name, EXTENSIONS[new], If_Match='"other"'), 412, "precondition-failed")
    assert own_files(folder, name) == [f"{name}.{old}"]
    assert put(server, name, EXTENSIONS[new], If_Match=etag).status == 204
    assert own_files(folder, name) == [f"{name}.{new}"]


def flipped(file, place):
    return file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :]


def with_wrong_crc(archive):
    """Another CRC-32 in both places where the archive states it."""
    stated = archive.rindex(b"PK\x01\x02") + 16
    local = archive.index(archive[stated : stated + 4])
    return flipped(flipped(archive, stated), local)


# The beginning of the rule that is reported; a wrong digest has a code of its own.
BROKEN = {
    "safetensors": (safetensors(DATA)[:-1], "safetensors §Header "),
    "gguf": (gguf(DATA)[:-1], "gguf §Data "),
    "mag": (mag(DATA)[:-1], "mag §"),
    "mag checksum": (flipped(mag(DATA), 8), "mag §Header Checksum"),
    "mag bool": (mag(b"\x02"), "mag §Data LayoutData"),
    "npz": (npz(DATA)[:-1], "zip §Directory "),
    "npy": (npy(DATA)[:-1], "npy §Data DataSize"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_breaks_a_rule_is_refused_and_leaves_nothing(server, folder, name, kind):
    file, rule = BROKEN[kind]
    problem = assert_problem(put(server, name, file), 422, "invalid-model")
    assert problem["rule"].startswith(rule)
    assert_absent(server, folder, name)


WRONG_CRC = {
    "data": flipped(npz(DATA), npz(DATA).index(DATA)),
    "stored": with_wrong_crc(npz(DATA)),
    "deflated": with_wrong_crc(deflated_npz(DATA)),
}


@pytest.mark.parametrize("kind", WRONG_CRC)
def test_an_archive_with_a_wrong_crc_is_refused(server, folder, name, kind):
    problem = assert_problem(put(server, name, WRONG_CRC[kind]), 422, "digest-mismatch")
    assert (problem["object"], problem["component"]) == ("w", "data")
    assert_absent(server, folder, name)


@pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a\n", b"MAG&\x01\x00\x00\x00"], ids=["hdf5", "mag stream"])
def test_known_formats_that_are_not_read_are_named(server, folder, name, head):
    problem = assert_problem(put(server, name, head + bytes(100)), 422, "invalid-model")
    assert "which is not supported" in problem["detail"]
    assert_absent(server, folder, name)


def test_models_of_every_format_are_listed_side_by_side(server):
    for kind, (_, file) in FORMATS.items():
        assert put(server, f"side/{kind.replace(' ', '-')}", file).status == 201
    models = get(server, "/v1/models?prefix=side/").json()["models"]
    listed = {model["name"].removeprefix("side/"): (model["format"], model["version"]) for model in models}
    assert listed == {
        "zt-1.2": ("zt", "1.2.0"),
        "zt-2": ("zt", "2"),
        "safetensors": ("safetensors", ""),
        "gguf": ("gguf", "3"),
        "mag": ("mag", "1"),
        "npz": ("npz", ""),
        "npz-deflated": ("npz", ""),
        "npy": ("npy", ""),
    }
    assert all(get(server, model_path(model["name"]))["ETag"] == model["etag"] for model in models)
