"""ls, verify, check-config and options without a command, run as a person would."""

import json
import os
import struct

import pytest

from corpus_outcomes import expected_outcomes
from containers import (
    dense,
    dense_encoded,
    dense_in_shard,
    digest_text,
    impossible_digests,
    pattern,
    shard_entry,
    zstd_dense,
    zt01,
    zt1,
    zt2,
    zt2_data_shard,
)

WEIGHTS = struct.pack("<6f", *range(6))


# --- the program ---


def test_version_is_one_line(ztserve):
    result = ztserve("--version")
    assert result.status == 0
    assert len(result.lines) == 1
    assert all(part.isdigit() for part in result.lines[0].split("."))


def test_two_dashes_end_the_options(ztserve, write, refused):
    path = write("-h", zt1({"w": dense(b"1")}))
    for arguments in (["ls", "--", "-h"], ["verify", "--", "-h"], ["ls", "--json", "--", path], ["verify", "--", path]):
        result = ztserve(*arguments, folder=path.parent)
        assert result.status == 0, result.errors
    write("--json", b"{}")
    assert json.loads(ztserve("check-config", "--", "--json", folder=path.parent).output)["verify"] == "lazy"
    assert "--json" in ztserve("verify", "--", "--json", folder=path.parent).errors
    assert ztserve("convert", "--to", "npz", "--", "-h", "-o.npz", folder=path.parent).status == 0
    refused("ls", "--")
    assert "-h" in refused("serve", "--root", path.parent, "--", "-h")


def test_a_full_disk_is_a_failure(ztserve):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        result = ztserve("--version", stdout=full)
    assert result.status == 1
    assert len(result.error_lines) == 1


# --- ls ---


def test_ls_shows_a_line_for_each_component(ztserve, write):
    objects = {
        "layer.weight": dense(WEIGHTS, "f32", [2, 3]),
        "scalar": dense(b"\x07", "u8", [], digest=None),
        "fp8": dense(b"\x01\x02", "u8", [2], type="f8_e4m3fn", digest="crc32c"),
    }
    result = ztserve("ls", write("model.zt", zt1(objects)))
    assert result.status == 0
    rows = [line.split() for line in result.lines]
    assert rows[0] == ["OBJECT", "COMPONENT", "FORMAT", "DTYPE", "SHAPE", "BYTES", "ENCODING", "DIGEST"]
    assert rows[1] == ["fp8", "data", "dense", "u8", "as", "f8_e4m3fn", "[2]", "2", "raw", "crc32c"]
    assert rows[2] == ["layer.weight", "data", "dense", "f32", "[2,3]", "24", "raw", "sha256"]
    assert rows[3] == ["scalar", "data", "dense", "u8", "[]", "1", "raw", "-"]
    assert result.lines[4].startswith("3 objects, 3 components, 9 parameters, ")
    assert result.lines[4].endswith("zt 1.2.0")


def test_ls_json_is_the_manifest(ztserve, write):
    path = write("bert.zt", zt1({"w": dense(WEIGHTS, "f32", [2, 3])}, attributes={"framework": "x"}))
    result = ztserve("ls", path, "--json")
    assert result.status == 0
    assert result.output.endswith("}\n") and not result.output.endswith("\n\n")
    manifest = json.loads(result.output)
    assert manifest["name"] == "bert"
    assert manifest["source"]["format"] == "zt"
    assert manifest["source"]["version"] == "1.2.0"
    assert manifest["source"]["size"] == path.stat().st_size
    assert manifest["parameters"] == 6
    assert manifest["attributes"] == {"framework": "x"}
    component = manifest["objects"]["w"]["components"]["data"]
    assert component["dtype"] == "f32"
    assert component["length"] == 24
    assert "href" not in component
    assert ztserve("ls", "--json", path).output == result.output


def test_ls_escapes_terminal_controls(ztserve, write):
    name = "a\x1b[2J\n\u202eb\x9bc"
    result = ztserve("ls", write("model.zt", zt1({name: dense(b"1")})))
    assert result.status == 0
    assert len(result.lines) == 3
    assert "a\\u001b[2J\\u000a\\u202eb\\u009bc" in result.lines[1]


def test_ls_cuts_long_names_and_keeps_its_columns(ztserve, write):
    name = "é" * 59 + "\n" + "x" * 100
    path = write("model.zt", zt1({name: dense(b"1"), "b" * 60: dense(b"2"), "c": dense(b"3")}))
    lines = ztserve("ls", path).lines
    assert {line.index("data") for line in lines[1:4]} == {62}
    shown = [line.split()[0] for line in lines[1:4]]
    assert sorted(shown) == ["b" * 60, "c", "é" * 59 + "…"]
    assert name in json.loads(ztserve("ls", path, "--json").output)["objects"]


def test_ls_of_a_bad_or_missing_file_says_why(ztserve, write, tmp_path):
    result = ztserve("ls", write("bad.zt", zt1({"w": dense(b"12")})[:-1]))
    assert (result.status, result.output, len(result.error_lines)) == (1, "", 1) and "bad.zt: " in result.errors
    result = ztserve("ls", tmp_path / "absent.zt")
    assert result.status == 1 and "absent.zt" in result.errors


def test_ls_refuses_wrong_usage(refused):
    refused("ls")
    assert "--frob" in refused("ls", "a", "--frob")


# --- verify ---


def test_verify_says_ok_for_good_files(ztserve, write):
    files = [
        write("a.zt", zt1({"w": dense(WEIGHTS, "f32", [2, 3]), "z": zstd_dense(pattern(5000))})),
        write("b.zt", zt2({"w": dense(WEIGHTS, "f32", [2, 3], digest="xxh3")})),
        write("c.zt", zt01({"w": dense(WEIGHTS, "f32", [2, 3], digest="crc32c")})),
    ]
    result = ztserve("verify", *files)
    assert (result.status, result.errors, len(result.lines)) == (0, "", 3)
    for path, line in zip(files, result.lines):
        assert line.startswith(f"{path}: ok (") and "unsupported" not in line
    assert "2 verified" in result.lines[0]


def test_verify_finds_flipped_bits_and_continues_after_a_bad_file(ztserve, write):
    good = zt1({"a": dense(b"1"), "w": dense(WEIGHTS, "f32", [2, 3])})
    bad, fine = write("bad.zt", good.flipped("w")), write("fine.zt", good)
    result = ztserve("verify", bad, fine)
    assert (result.status, len(result.error_lines)) == (1, 1)
    assert result.errors.startswith(f"{bad}: bad: digest is sha256:") and 'object "w"' in result.errors
    assert f"offset {good.offsets['w', 'data']}" in result.errors
    assert [line.split(": ")[1][:2] for line in result.lines] == ["ok"]
    both = bytearray(good.flipped("w"))
    both[good.offsets["a", "data"]] ^= 1
    assert "(and 1 more)" in ztserve("verify", write("bad.zt", both)).errors


# A file, the exit status, and what is said.
FILES = {
    "a shape of another length": (zt1({"w": dense(WEIGHTS, "f32", [7])}), 1, ["[zt1", 'object "w"']),
    "content against its type": (zt2({"w": dense(b"\x00\x02", "u8", [2], type="bool", digest=None)}), 1, ["LayoutData"]),
    "no zstd frame": (zt1({"w": dense_encoded(pattern(100), b"no frame at all", "zstd", digest=None)}), 1, ['object "w"']),
    "no zstd frame, with a digest": (zt1({"w": dense_encoded(pattern(100), b"no frame at all", "zstd")}), 1, ['object "w"']),
    "unknown digest": (zt1({"w": dense(b"12", digest="blake3:00")}), 0, ["; unsupported: ", "blake3"]),
    "unknown encoding": (zt1({"w": dense_encoded(b"12", b"xyz", "lzma", digest=None)}), 0, ["; unsupported: ", "lzma"]),
    "unknown type": (zt1({"w": dense(b"12", "u8", [2], type="f3_new", digest=None)}), 0, ["; unsupported: ", "f3_new"]),
    "data shard": (zt2_data_shard(), 0, [": ok (data shard"]),
    "empty": (b"", 1, [": bad: "]),
    "one byte": (b"x", 1, ["(1 byte)"]),
    "two bytes": (b"xx", 1, ["(2 bytes)"]),
    "text": (b"hello world, this is some text", 1, [": bad: "]),
    "zeros": (bytes(5000), 1, [": bad: "]),
}


@pytest.mark.parametrize("name", FILES)
def test_verify_says_in_one_line_what_a_file_is(ztserve, write, name):
    data, status, words = FILES[name]
    result = ztserve("verify", write("file", data))
    assert (result.status, len(result.lines) + len(result.error_lines)) == (status, 1), result.errors
    said = result.errors if status else result.output
    assert all(word in said for word in words), said


@pytest.mark.parametrize("build, digest", impossible_digests())
def test_verify_fails_a_digest_that_no_bytes_can_have(ztserve, write, build, digest):
    result = ztserve("verify", write("bad.zt", build({"w": dense(b"12", digest=digest)})))
    assert result.status == 1
    assert "1 verified" not in result.output
    assert digest_text(digest.split(":")[0], b"12") in result.errors


SHARD = zt2_data_shard(WEIGHTS)
DAMAGED = SHARD[:100] + b"\xff" + SHARD[101:]
OTHER_MAGIC = b"\0" + SHARD[1:]
FLAGS = zt2_data_shard(b"\0\1\2")
WHOLE = zt2({"own": dense(WEIGHTS, "f32", [2, 3])})


def model_over(shard, made=None, **stated):
    """A model whose only part is in a shard."""
    made = made or dense_in_shard("rest", SHARD.offsets[0], WEIGHTS, "f32", [2, 3], digest="xxh3")
    return zt2({"w": made}, fields={"shards": {"rest": {**shard_entry(shard), **stated}}})


MODEL = model_over(SHARD)
# The digest of its part is that of other bytes.
WRONG = model_over(SHARD, dense_in_shard("rest", SHARD.offsets[0], WEIGHTS[::-1], "f32", [2, 3], digest="xxh3"))
# What lies beside the model, the model, options, the exit status, and what is said.
SHARDS = {
    "in its place": ({"m-rest.zt": SHARD}, MODEL, [], 0, ["1 verified"]),
    "with other bytes than the part": ({"m-rest.zt": SHARD}, WRONG, [], 1, ["digest is xxh3:"]),
    "with a flipped bit": ({"m-rest.zt": DAMAGED}, MODEL, [], 1, ["ShardIdentity"]),
    "with a flipped bit beside a good copy": (
        {"m-rest.zt": DAMAGED, "z.zt": SHARD}, MODEL, [], 1, ["shard rest does not have the digest stated for it", "ShardIdentity"],
    ),
    "missing": ({}, MODEL, [], 1, ["m.zt: bad: shard rest is missing\n"]),
    "missing as allowed": ({}, MODEL, ["--allow-missing"], 0, ["unsupported: shard rest is missing"]),
    "damage where one may be missing": ({"m-rest.zt": SHARD}, WRONG, ["--allow-missing"], 1, ["digest is xxh3:"]),
    "of another size": ({"m-rest.zt": SHARD}, model_over(SHARD, size=8192), [], 1, ["ShardIdentity"]),
    "found by its content": ({"decoy.zt": DAMAGED, "anything": SHARD}, MODEL, [], 0, ["1 verified"]),
    "beside a longer file in its place": ({"m-rest.zt": SHARD + b"\0", "z.zt": SHARD}, MODEL, [], 0, ["1 verified"]),
    "beside a file of another kind in its place": ({"m-rest.zt": OTHER_MAGIC, "z.zt": SHARD}, MODEL, [], 0, ["1 verified"]),
    "of another kind": ({"m-rest.zt": OTHER_MAGIC}, MODEL, [], 1, ["shard rest: the file does not begin as zTensor 2 does"]),
    "of an unknown digest, taken by its size": (
        {"m-rest.zt": SHARD}, model_over(SHARD, digest="blake3:00"), [], 0,
        ["1 verified", "unsupported: the digest stated for shard rest cannot be checked"],
    ),
    "of an unknown digest, not looked for": ({"other.zt": SHARD}, model_over(SHARD, digest="blake3:00"), [], 1, ["shard rest is missing"]),
    "of a digest that no bytes have": ({"m-rest.zt": SHARD}, model_over(SHARD, digest="sha256:00"), [], 1, ["shard rest"]),
    "that is a whole model": (
        {"m-rest.zt": WHOLE}, model_over(WHOLE, dense_in_shard("rest", WHOLE.offsets["own", "data"], WEIGHTS, "f32", [2, 3])), [], 0,
        ["1 verified"],
    ),
    "with content against its type": (
        {"m-rest.zt": FLAGS}, model_over(FLAGS, dense_in_shard("rest", FLAGS.offsets[0], b"\0\1\2", type="bool")), [], 1, ["LayoutData"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARDS)
def test_verify_judges_a_model_with_a_shard(ztserve, write, name):
    beside, model, options, status, words = SHARDS[name]
    for file, data in beside.items():
        write(file, data)
    result = ztserve("verify", *options, write("m.zt", model))
    assert result.status == status, result.errors
    said = result.errors if status else result.output
    assert all(word in said for word in words), said


def test_a_folder_in_the_shard_s_place_is_passed_over(ztserve, write, tmp_path):
    (tmp_path / "m-rest.zt").mkdir()
    write("z.zt", SHARD)
    assert ztserve("verify", write("m.zt", MODEL)).status == 0


def test_a_missing_shard_as_json_and_to_ls(ztserve, write):
    path = write("m.zt", MODEL)
    made = json.loads(ztserve("verify", "--json", path).output)
    assert (made["state"], made["failures"], made["error"]) == ("bad", 1, {"detail": "shard rest is missing"})
    made = json.loads(ztserve("verify", "--allow-missing", "--json", path).output)
    assert (made["state"], made["unsupported"], made["first_unsupported"]) == ("ok", 1, {"detail": "shard rest is missing"})
    assert ztserve("ls", path).status == 0
    shown = json.loads(ztserve("ls", "--json", path).output)
    assert shown["objects"]["w"]["components"]["data"]["shard"] == "rest"


def test_convert_brings_shards_into_one_file(ztserve, write, tmp_path):
    path, out = write("m.zt", MODEL), tmp_path / "one.safetensors"
    assert "shard rest is missing" in ztserve("convert", path, out).errors
    write("m-rest.zt", DAMAGED)
    write("z.zt", SHARD)
    assert "ShardIdentity" in ztserve("convert", path, out).errors and not out.exists()
    write("m-rest.zt", SHARD)
    assert ztserve("convert", path, out).status == 0
    assert out.read_bytes().endswith(WEIGHTS)


def test_verify_canonical_wants_the_canonical_form(ztserve, write):
    not_canonical = write("a.zt", zt2({"w": dense(WEIGHTS, "f32", [2, 3], digest="xxh3")}))
    assert ztserve("verify", not_canonical).status == 0
    result = ztserve("verify", not_canonical, "--canonical")
    assert result.status == 1 and "[zt2 §7" in result.errors
    older = ztserve("verify", "--canonical", write("b.zt", zt1({"w": dense(b"1")})))
    assert older.status == 1 and "only zTensor 2 has a canonical form" in older.errors


def test_verify_of_what_is_no_file_or_has_a_line_break_in_its_name(ztserve, write, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = ztserve("verify", tmp_path / "pipe")
    assert (result.status, result.errors) == (1, f"{tmp_path / 'pipe'}: bad: not a regular file\n")
    assert ztserve("verify", tmp_path / "absent").status == 1
    assert "a\\u000ab.zt: ok" in ztserve("verify", write("a\nb.zt", zt1({}))).output


def test_verify_refuses_wrong_usage(refused):
    refused("verify")
    refused("verify", "--canonical")
    assert "--frob" in refused("verify", "a.zt", "--frob")


def test_verify_agrees_with_the_expected_outcomes(ztserve, corpus):
    wrong = []
    for path, outcome in expected_outcomes(corpus):
        # The shards of some valid models are not part of the corpus.
        status = ztserve("verify", "--allow-missing", path).status
        if status != (0 if outcome in ("accept", "data-shard") else 1):
            wrong.append((path.name, outcome, status))
    assert wrong == []


# --- check-config ---


def test_check_config_prints_the_resulting_settings(ztserve, write):
    path = write("c.json", b'{"listen": "127.0.0.1:9000", "upload": {"max_bytes": 5}}')
    result = ztserve("check-config", path)
    assert result.status == 0, result.errors
    shown = json.loads(result.output)
    assert shown["listen"] == "127.0.0.1:9000"
    assert shown["upload"]["max_bytes"] == 5
    assert shown["verify"] == "lazy"
    assert ztserve("check-config", write("again.json", result.output.encode())).output == result.output


def test_check_config_shows_the_environment_over_the_file(ztserve, write):
    path = write("c.json", b'{"listen": "127.0.0.1:9000", "verify": "off"}')
    environment = {**os.environ, "ZTSERVE_LISTEN": "127.0.0.1:9001"}
    shown = json.loads(ztserve("check-config", path, environment=environment).output)
    assert shown["listen"] == "127.0.0.1:9001"
    assert shown["verify"] == "off"


@pytest.mark.parametrize(
    "text, words",
    [
        (b'{"listne": "127.0.0.1:1"}', "listne"),
        (b'{"upload": {"max_byte": 1}}', "upload.max_byte"),
        (b'{"verify": "sometimes"}', "verify"),
        (b'{"threads": -1}', "threads"),
        (b'{"threads": 1, "threads": 2}', "threads"),
        (b"{", "c.json"),
        (b"", "c.json"),
    ],
)
def test_check_config_names_what_is_wrong(refused, write, text, words):
    assert words in refused("check-config", write("c.json", text))


def test_check_config_refuses_wrong_usage(refused, tmp_path):
    refused("check-config")
    refused("check-config", "a", "b")
    assert "absent" in refused("check-config", tmp_path / "absent.json")
