"""ls and verify of several files and of folders: tables, JSON, names only, and what stands in a model's place."""

import json
import struct
import urllib.error
import urllib.request

import pytest

from containers import dense, pattern, zt1, zt2_data_shard

WEIGHTS = struct.pack("<6f", *range(6))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def safetensors(tensors):
    entries, data = {}, b""
    for name, content in tensors.items():
        entries[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.fixture
def folder(write, tmp_path):
    """Three models, of which one cannot be read, and what is no model."""
    write("models/b.zt", zt1({"w": dense(WEIGHTS, "f32", [2, 3])}))
    write("models/org/a.safetensors", safetensors({"x": b"1", "y": b"22"}))
    write("models/pointer.safetensors", POINTER)
    write("models/shadowed/b.npz", b"nonsense")
    write("models/shadowed/b.zt", zt1({}))
    write("models/notes.bin", b"some text")
    write("models/.hidden/c.zt", zt1({}))
    write("models/shard.zt", zt2_data_shard())
    return tmp_path / "models"


def get(url):
    """Status and JSON."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_what_is_left_out_is_counted(ztserve, folder, write):
    write("models/.b.zt", b"")
    write("models/two\nlines.zt", zt1({}))
    assert ztserve("ls", folder).lines[-1].endswith("1 file hidden by another of the same name")
    assert ztserve("verify", folder).lines[-1] == (
        f"{folder}: not checked: 1 file hidden by another of the same name, 1 file whose name cannot be served (to check a file, give its path)"
    )
    assert ztserve("verify", "-q", folder).lines == []
    assert all("path" in one for one in json.loads(ztserve("verify", "--json", folder).output))


# --- ls ---


def test_ls_of_a_folder_shows_each_model_below_it(ztserve, folder):
    result = ztserve("ls", folder)
    rows = [line.split(maxsplit=6) for line in result.lines]
    assert rows[0] == ["NAME", "FORMAT", "OBJECTS", "PARAMETERS", "SIZE", "ERROR"]
    assert [row[0] for row in rows[1:-1]] == ["b", "org/a", "pointer", "shadowed/b"]
    assert rows[1][1:4] == ["zt", "1.2.0", "1"]
    assert rows[2][1:3] == ["safetensors", "2"]
    assert rows[3][1:6] == ["safetensors", "-", "-", str(len(POINTER)), "bytes"]
    assert "git lfs pull" in result.lines[3]
    assert result.lines[-1].startswith("4 models, ")
    assert "; 1 cannot be read" in result.lines[-1]
    assert (result.status, result.errors) == (1, "")


def test_ls_of_a_folder_agrees_with_the_server(ztserve, folder, start_server):
    listed = get(start_server(folder).url + "/v1/models")[1]["models"]
    shown = json.loads(ztserve("ls", "--json", folder).output)
    keys = ["name", "format", "version", "size", "objects", "parameters", "modified", "error"]
    assert [[model.get(key) for key in keys] for model in shown] == [[model.get(key) for key in keys] for model in listed]
    assert [model["path"] for model in shown][:2] == [f"{folder}/b.zt", f"{folder}/org/a.safetensors"]


def test_ls_of_a_folder_removes_nothing(ztserve, write, folder):
    left = write("models/.ztserve-upload-1", b"of a crash")
    ztserve("ls", folder)
    assert left.exists()


def test_ls_of_several_files_is_an_array_or_tables_with_their_names(ztserve, folder):
    files = [folder / "b.zt", folder / "org/a.safetensors"]
    result = ztserve("ls", "--json", *files)
    assert result.output.endswith("]\n")
    assert [model["name"] for model in json.loads(result.output)] == ["b", "a"]
    assert json.loads(ztserve("ls", "--json", files[0]).output) == json.loads(result.output)[0]
    tables = ztserve("ls", *files)
    assert tables.lines[0] == f"{files[0]}:"
    assert f"{files[1]}:" in tables.lines
    assert tables.status == 0


def test_ls_continues_after_a_bad_file(ztserve, folder):
    result = ztserve("ls", "--json", folder / "pointer.safetensors", folder / "absent.zt", folder / "b.zt")
    assert [model["name"] for model in json.loads(result.output)] == ["b"]
    assert len(result.error_lines) == 2
    assert result.status == 1


def test_ls_quiet_prints_names(ztserve, folder, refused):
    assert ztserve("ls", "-q", folder).lines == ["b", "org/a", "pointer", "shadowed/b"]
    assert ztserve("ls", "--quiet", folder / "org/a.safetensors").lines == ["x", "y"]
    refused("ls", "-q", "--json", folder)


def test_an_empty_folder_has_no_models(ztserve, tmp_path):
    assert ztserve("ls", tmp_path).output == "0 models, 0 bytes\n"
    assert ztserve("verify", tmp_path).output == f"{tmp_path}: ok (a folder without models)\n"
    for command in ("ls", "verify"):
        assert json.loads(ztserve(command, "--json", tmp_path).output) == []


def test_ls_shows_short_attributes_whole_and_cuts_long_ones(ztserve, write):
    attributes = {"framework": "PyTorch", "vocabulary": ["word"] * 500, "steps": 7, "odd\n\u202e": 'a "b"\u0007', "nested": {"a": [1, {"b": 2}]}}
    result = ztserve("ls", write("a.zt", zt1({"w": dense(b"1")}, attributes=attributes)))
    rows = dict(line.split("  ", 1) for line in result.lines if "  " in line and not line.startswith(("OBJECT", "w ")))
    rows = {name.strip(): value.strip() for name, value in rows.items()}
    assert rows["ATTRIBUTE"] == "VALUE"
    assert rows["framework"] == "PyTorch"
    assert rows["steps"] == "7"
    assert rows["nested"] == '{"a":[1,{"b":2}]}'
    assert len(rows["vocabulary"]) == 60 and rows["vocabulary"].endswith("…")
    assert rows["odd\\n\\u202e"] == 'a \\"b\\"\\u0007'
    assert result.lines[-1].startswith("1 object, 1 component, ")


def test_parts_are_left_out_where_their_index_is_there(ztserve, write, tmp_path):
    for number, name in ((1, "x"), (2, "y")):
        write(f"m-0000{number}-of-00002.safetensors", safetensors({name: b"1"}))
    write("other-00001-of-00002.safetensors", safetensors({"z": b"1"}))
    weights = {name: f"m-0000{number}-of-00002.safetensors" for number, name in ((1, "x"), (2, "y"))}
    write("m.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": weights}).encode())
    shown = json.loads(ztserve("ls", "--json", tmp_path).output)
    assert [(model["name"], model["objects"]) for model in shown] == [("m", 2), ("other-00001-of-00002", 1)]


def test_names_and_indices_are_found_in_capitals_too(ztserve, write, tmp_path):
    write("UPPER.ZT", zt1({"w": dense(b"1")}))
    write("M-00001-of-00001.SAFETENSORS", safetensors({"x": b"1"}))
    write("M.SAFETENSORS.INDEX.JSON", json.dumps({"metadata": {}, "weight_map": {"x": "M-00001-of-00001.SAFETENSORS"}}).encode())
    assert ztserve("ls", "-q", tmp_path).lines == ["M", "UPPER"]
    assert json.loads(ztserve("ls", "--json", tmp_path / "UPPER.ZT").output)["name"] == "UPPER"
    assert json.loads(ztserve("ls", "--json", tmp_path / "M.SAFETENSORS.INDEX.JSON").output)["name"] == "M"


# --- verify ---


def test_verify_of_a_folder_checks_each_model(ztserve, folder):
    result = ztserve("verify", folder)
    assert result.status == 1
    assert [line.split(": ")[0] for line in result.lines[:-1]] == [
        str(folder / name) for name in ("b.zt", "org/a.safetensors", "shadowed/b.zt", "shard.zt")
    ]
    assert result.errors.startswith(f"{folder}/pointer.safetensors: bad: ")
    assert len(result.error_lines) == 1


def test_verify_quiet_prints_only_what_is_bad(ztserve, folder):
    assert ztserve("verify", "-q", folder / "b.zt", folder / "shard.zt").output == ""
    result = ztserve("verify", "--quiet", folder)
    assert (result.status, result.output, len(result.error_lines)) == (1, "", 1)


def test_verify_as_json(ztserve, folder, write):
    damaged = write("bad.zt", zt1({"w": dense(pattern(100))}).flipped("w"))
    one = json.loads(ztserve("verify", "--json", folder / "b.zt").output)
    assert (one["state"], one["format"], one["version"], one["objects"]) == ("ok", "zt", "1.2.0", 1)
    assert one["components"] == {"total": 1, "verified": 1, "undigested": 0}
    result = ztserve("verify", "--json", folder, damaged)
    assert result.output.endswith("]\n")
    judged = {entry["path"]: entry for entry in json.loads(result.output)}
    assert judged[str(folder / "shard.zt")]["state"] == "data-shard"
    assert "git lfs pull" in judged[str(folder / "pointer.safetensors")]["error"]["detail"]
    assert (judged[str(damaged)]["state"], judged[str(damaged)]["error"]["object"]) == ("bad", "w")
    assert result.status == 1
    assert len(result.error_lines) == 2


def test_verify_says_when_a_file_states_no_digests(ztserve, folder, write):
    assert ztserve("verify", folder / "org/a.safetensors").output == (
        f"{folder}/org/a.safetensors: ok (safetensors, 2 objects, 2 components; the file states no digests, "
        "so its bytes cannot be verified)\n"
    )
    mixed = write("mixed.zt", zt1({"a": dense(b"1"), "b": dense(b"2", digest=None)}))
    assert "1 verified, 1 without digest)" in ztserve("verify", mixed).output


def test_progress_as_json_ends_with_all_bytes(ztserve, write):
    path = write("a.zt", zt1({"a": dense(pattern(5000))}))
    result = ztserve("verify", "--progress=json", path)
    last = json.loads(result.error_lines[-1])
    assert (last["event"], last["operation"], last["name"]) == ("end", "verifying", str(path))
    assert last["bytes"] == last["total_bytes"] == 5000


# --- what stands in a model's place ---


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("a.safetensors", POINTER, "Git LFS pointer"),
        ("pytorch_model.bin", POINTER, "git lfs pull"),
        ("a.bin", b"some text", "only if written by torch.save"),
        ("a.pt", b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94.", "a pickle, but not one written by torch.save"),
        ("a.safetensors", b"<!DOCTYPE html><html>", "a web page"),
        ("a.safetensors", b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        ("a.pth", bytes(257) + b"ustar" + bytes(300), "a tar archive"),
        ("a.gguf", b"", "the file is empty"),
    ],
)
def test_what_is_no_model_is_named(ztserve, write, name, content, words):
    path = write(name, content)
    for command in ("ls", "verify"):
        result = ztserve(command, path)
        assert result.status == 1
        assert words in result.errors
        assert len(result.error_lines) == 1


def test_a_pointer_in_a_served_folder_says_what_to_do(folder, start_server):
    server = start_server(folder)
    (model,) = [model for model in get(server.url + "/v1/models")[1]["models"] if "error" in model]
    assert model["name"] == "pointer"
    assert "git lfs pull" in model["error"]["detail"]
    status, problem = get(server.url + "/v1/models/pointer")
    assert (status, problem["rule"]) == (422, "zt §Detection GitLfsPointer")
    assert "git lfs pull" in problem["detail"]
