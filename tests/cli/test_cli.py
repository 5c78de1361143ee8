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


@pytest.fixture
def write(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write_file


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
    assert result.lines[4].startswith("3 objects, 3 components, ")
    assert result.lines[4].endswith("zt 1.2.0")


def test_ls_columns_are_aligned(ztserve, write):
    objects = {"a" * 20: dense(b"1", "u8", [1]), "é": dense(pattern(1000), "u8", [1000])}
    lines = ztserve("ls", write("model.zt", zt1(objects))).lines
    assert len({line.index("data") for line in lines[1:3]}) == 1
    assert len({line.index(" raw") for line in lines[1:3]}) == 1


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


def test_ls_of_a_bad_file_says_why(ztserve, write):
    result = ztserve("ls", write("bad.zt", zt1({"w": dense(b"12")})[:-1]))
    assert result.status == 1
    assert result.output == ""
    assert len(result.error_lines) == 1
    assert "bad.zt: " in result.errors


def test_ls_of_a_missing_file_fails(ztserve, tmp_path):
    result = ztserve("ls", tmp_path / "absent.zt")
    assert result.status == 1
    assert "absent.zt" in result.errors


def test_ls_refuses_nonsense(refused):
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
    assert result.status == 0
    assert result.errors == ""
    assert len(result.lines) == 3
    for path, line in zip(files, result.lines):
        assert line.startswith(f"{path}: ok (")
        assert "unsupported" not in line
    assert "2 verified" in result.lines[0]


def test_verify_finds_a_flipped_bit(ztserve, write):
    good = zt1({"other": dense(b"1"), "w": dense(WEIGHTS, "f32", [2, 3])})
    path = write("bad.zt", good.flipped("w"))
    result = ztserve("verify", path)
    assert result.status == 1
    assert result.output == ""
    assert len(result.error_lines) == 1
    assert result.errors.startswith(f"{path}: bad: digest is sha256:")
    assert 'object "w"' in result.errors
    assert f"offset {good.offsets['w', 'data']}" in result.errors


def test_verify_continues_after_a_bad_file(ztserve, write):
    good = zt1({"w": dense(WEIGHTS, "f32", [2, 3])})
    bad = write("bad.zt", good.flipped("w"))
    fine = write("fine.zt", good)
    result = ztserve("verify", bad, fine)
    assert result.status == 1
    assert len(result.error_lines) == 1
    assert [line.split(": ")[1][:2] for line in result.lines] == ["ok"]


def test_verify_counts_further_failures(ztserve, write):
    good = zt1({"a": dense(WEIGHTS), "b": dense(WEIGHTS)})
    broken = bytearray(good)
    for name in ("a", "b"):
        broken[good.offsets[name, "data"]] ^= 1
    result = ztserve("verify", write("bad.zt", broken))
    assert result.status == 1
    assert "(and 1 more)" in result.errors


def test_verify_names_the_rule_of_a_broken_manifest(ztserve, write):
    result = ztserve("verify", write("bad.zt", zt1({"w": dense(WEIGHTS, "f32", [7])})))
    assert result.status == 1
    assert "[zt1" in result.errors
    assert 'object "w"' in result.errors


def test_verify_checks_content_rules(ztserve, write):
    result = ztserve("verify", write("bad.zt", zt2({"w": dense(b"\x00\x02", "u8", [2], type="bool", digest=None)})))
    assert result.status == 1
    assert "LayoutData" in result.errors


@pytest.mark.parametrize("digest", [None, "sha256"])
def test_verify_decodes_components_without_a_digest(ztserve, write, digest):
    made = dense_encoded(pattern(100), b"no zstd frame at all", "zstd", digest=digest)
    result = ztserve("verify", write("bad.zt", zt1({"w": made})))
    assert result.status == 1
    assert 'object "w"' in result.errors


@pytest.mark.parametrize(
    "made, words",
    [
        (dense(b"12", digest="blake3:00"), "blake3"),
        (dense_encoded(b"12", b"xyz", "lzma", digest=None), "lzma"),
        (dense(b"12", "u8", [2], type="f3_new", digest=None), "f3_new"),
    ],
    ids=["digest", "encoding", "type"],
)
def test_verify_names_components_that_it_cannot_check(ztserve, write, made, words):
    result = ztserve("verify", write("odd.zt", zt1({"w": made})))
    assert result.status == 0
    assert len(result.lines) == 1
    assert "; unsupported: " in result.output
    assert words in result.output.split("unsupported: ")[1]


@pytest.mark.parametrize("build, digest", impossible_digests())
def test_verify_fails_a_digest_that_no_bytes_can_have(ztserve, write, build, digest):
    result = ztserve("verify", write("bad.zt", build({"w": dense(b"12", digest=digest)})))
    assert result.status == 1
    assert "1 verified" not in result.output
    assert digest_text(digest.split(":")[0], b"12") in result.errors


def test_verify_knows_a_data_shard(ztserve, write):
    result = ztserve("verify", write("shard.zt", zt2_data_shard()))
    assert result.status == 0
    assert ": ok (data shard" in result.output


def shard_and_model(weights=WEIGHTS, **stated):
    """A data shard, and a model whose only part is in it. `weights`: the bytes that the part's digest covers."""
    shard = zt2_data_shard(WEIGHTS)
    made = dense_in_shard("rest", shard.offsets[0], weights, "f32", [2, 3], digest="xxh3")
    return shard, zt2({"w": made}, fields={"shards": {"rest": {**shard_entry(shard), **stated}}})


def test_verify_reads_the_shards_beside_a_model(ztserve, write):
    shard, model = shard_and_model()
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 0, result.errors
    assert "1 verified" in result.output


def test_verify_checks_parts_in_a_shard(ztserve, write):
    shard, model = shard_and_model(weights=WEIGHTS[::-1])
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 1
    assert "digest is xxh3:" in result.errors


def test_verify_finds_a_flipped_bit_in_a_shard(ztserve, write):
    shard, model = shard_and_model()
    write("m-rest.zt", shard[:100] + b"\xff" + shard[101:])
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 1
    assert "ShardIdentity" in result.errors


def test_verify_does_not_blame_a_model_for_an_absent_shard(ztserve, write):
    result = ztserve("verify", write("m.zt", shard_and_model()[1]))
    assert result.status == 0
    assert "unsupported: shard rest is missing" in result.output


def test_verify_refuses_another_file_in_a_shard_s_place(ztserve, write):
    shard, model = shard_and_model(size=8192)
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 1
    assert "ShardIdentity" in result.errors


def test_verify_finds_a_shard_by_its_content(ztserve, write):
    shard, model = shard_and_model()
    write("decoy.zt", shard[:100] + b"\xff" + shard[101:])
    write("anything", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 0, result.errors
    assert "1 verified" in result.output


def test_a_container_in_the_shard_s_place_is_the_shard_whatever_its_bytes(ztserve, write, tmp_path):
    shard, model = shard_and_model()
    write("m-rest.zt", shard[:100] + b"\xff" + shard[101:])
    write("z.zt", shard)
    path = write("m.zt", model)
    for result in ztserve("verify", path), ztserve("convert", path, tmp_path / "out.npz"):
        assert result.status == 1
        assert "shard rest does not have the digest stated for it" in result.errors
        assert "ShardIdentity" in result.errors
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("wrong", [lambda shard: shard + b"\0", lambda shard: b"\0" + shard[1:]], ids=["size", "magic"])
def test_verify_skips_files_that_cannot_be_the_shard(ztserve, write, wrong):
    shard, model = shard_and_model()
    write("m-rest.zt", wrong(shard))
    write("z.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 0, result.errors


def test_verify_looks_past_a_folder_in_the_shard_s_place(ztserve, write, tmp_path):
    shard, model = shard_and_model()
    (tmp_path / "m-rest.zt").mkdir()
    write("z.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 0, result.errors


def test_verify_reports_the_fault_of_a_file_under_the_name_of_a_shard(ztserve, write):
    shard, model = shard_and_model()
    write("m-rest.zt", b"\0" + shard[1:])
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 1
    assert "shard rest: the file does not begin as zTensor 2 does" in result.errors


def test_verify_takes_a_shard_of_unknown_digest_by_its_size(ztserve, write):
    shard, model = shard_and_model(digest="blake3:00")
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 0, result.errors
    assert "1 verified" in result.output
    assert "unsupported: the digest stated for shard rest cannot be checked" in result.output


def test_verify_fails_a_shard_whose_digest_no_bytes_can_have(ztserve, write):
    shard, model = shard_and_model(digest="sha256:00")
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", model))
    assert result.status == 1
    assert "shard rest" in result.errors


def test_verify_does_not_look_for_content_of_an_unknown_digest(ztserve, write):
    shard, model = shard_and_model(digest="blake3:00")
    write("other.zt", shard)
    assert "shard rest is missing" in ztserve("verify", write("m.zt", model)).output


def test_verify_takes_a_whole_model_as_a_shard(ztserve, write):
    whole = zt2({"own": dense(WEIGHTS, "f32", [2, 3])})
    made = dense_in_shard("rest", whole.offsets["own", "data"], WEIGHTS, "f32", [2, 3])
    write("m-rest.zt", whole)
    result = ztserve("verify", write("m.zt", zt2({"w": made}, fields={"shards": {"rest": shard_entry(whole)}})))
    assert result.status == 0, result.errors
    assert "1 verified" in result.output


def test_verify_judges_content_in_a_shard(ztserve, write):
    shard = zt2_data_shard(b"\0\1\2")
    made = dense_in_shard("rest", shard.offsets[0], b"\0\1\2", type="bool")
    write("m-rest.zt", shard)
    result = ztserve("verify", write("m.zt", zt2({"w": made}, fields={"shards": {"rest": shard_entry(shard)}})))
    assert result.status == 1
    assert "LayoutData" in result.errors


def test_ls_shows_a_model_without_its_shards(ztserve, write):
    path = write("m.zt", shard_and_model()[1])
    assert ztserve("ls", path).status == 0
    shown = json.loads(ztserve("ls", "--json", path).output)
    assert shown["objects"]["w"]["components"]["data"]["shard"] == "rest"


def test_convert_brings_shards_into_one_file(ztserve, write, tmp_path):
    shard, model = shard_and_model()
    path = write("m.zt", model)
    missing = ztserve("convert", path, tmp_path / "one.safetensors")
    assert missing.status == 1
    assert "shard rest is missing" in missing.errors
    write("m-rest.zt", shard)
    assert ztserve("convert", path, tmp_path / "one.safetensors").status == 0
    assert (tmp_path / "one.safetensors").read_bytes().endswith(WEIGHTS)


def test_verify_canonical_wants_the_canonical_form(ztserve, write):
    not_canonical = write("a.zt", zt2({"w": dense(WEIGHTS, "f32", [2, 3], digest="xxh3")}))
    assert ztserve("verify", not_canonical).status == 0
    result = ztserve("verify", not_canonical, "--canonical")
    assert result.status == 1
    assert "[zt2 §7" in result.errors
    older = ztserve("verify", "--canonical", write("b.zt", zt1({"w": dense(b"1")})))
    assert older.status == 1
    assert "only zTensor 2 has a canonical form" in older.errors


def test_verify_of_other_content_fails(ztserve, write, tmp_path):
    for data in (b"", b"\n", b"hello world, this is some text", bytes(5000)):
        result = ztserve("verify", write("text.zt", data))
        assert result.status == 1
        assert len(result.error_lines) == 1
    assert ztserve("verify", tmp_path / "absent").status == 1


def test_verify_counts_a_single_byte_as_one(ztserve, write):
    assert "(1 byte)" in ztserve("verify", write("one", b"x")).errors
    assert "(2 bytes)" in ztserve("verify", write("two", b"xx")).errors


def test_verify_reports_a_file_that_is_not_regular(ztserve, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = ztserve("verify", tmp_path / "pipe")
    assert (result.status, result.errors) == (1, f"{tmp_path / 'pipe'}: bad: not a regular file\n")


def test_verify_keeps_one_line_for_a_file_with_an_odd_name(ztserve, write):
    result = ztserve("verify", write("a\nb.zt", zt1({})))
    assert result.status == 0
    assert len(result.lines) == 1
    assert "a\\u000ab.zt: ok" in result.output


def test_verify_refuses_nonsense(refused):
    refused("verify")
    refused("verify", "--canonical")
    assert "--frob" in refused("verify", "a.zt", "--frob")


def test_verify_agrees_with_the_expected_outcomes(ztserve, corpus):
    wrong = []
    for path, outcome in expected_outcomes(corpus):
        status = ztserve("verify", path).status
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


def test_check_config_refuses_nonsense(refused, tmp_path):
    refused("check-config")
    refused("check-config", "a", "b")
    assert "absent" in refused("check-config", tmp_path / "absent.json")
