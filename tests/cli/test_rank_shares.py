"""convert --shard and pull --shard give a rank its share by the same rules; a mistyped name gives no file."""

import json
import struct

import numpy
import pytest

from containers import Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zt1, zt2
from roles import ARRAYS, MODELS, UNKNOWN, arrays_of, assert_share, objects_of, read

AXES = ["--axis", "@llama"]


@pytest.fixture
def llama(tmp_path):
    path = tmp_path / "llama.zt"
    path.write_bytes(zt1(objects_of(ARRAYS["llama"], digest="sha256")))
    return path


def assert_no_file(result, path, *words, status=1):
    assert result.status == status, result.errors
    assert all(word in result.errors for word in words), result.errors
    assert not path.exists()


@pytest.mark.parametrize("jobs", ["1", "3"])
@pytest.mark.parametrize("model", MODELS)
def test_convert_writes_the_share_of_a_rank(ztserve, tmp_path, model, jobs):
    (tmp_path / "m.zt").write_bytes(zt1(objects_of(ARRAYS[model], digest="sha256")))
    out = tmp_path / "rank.safetensors"
    options = ["--shard", "1/4", "--axis", f"@{MODELS[model][0][0]}", "--jobs", jobs]
    result = ztserve("convert", tmp_path / "m.zt", out, *options)
    assert result.status == 0 and len(result.error_lines) == 1, result.errors
    assert_share(read(out.read_bytes()), model, 1)


@pytest.mark.parametrize("kind", ["zt", "zt2", "npz", "safetensors"])
def test_convert_and_export_write_the_same_bytes(ztserve, start_server, tmp_path, kind):
    root, here = tmp_path / "root", tmp_path / "here"
    root.mkdir()
    here.mkdir()
    arrays = ARRAYS["llama"]
    objects = objects_of(arrays, digest="sha256")
    for number, (name, array) in enumerate(arrays.items()):
        if number % 3 == 0:
            objects[name] = zstd_dense(array.tobytes(), "i32", list(array.shape))
    (root / "m.zt").write_bytes(zt1(objects))
    server = start_server(root)
    options = ["--shard", "3/4", *AXES, "--match", "*layers.1*", "--match", "*head*"]
    extension = "zt" if kind == "zt2" else kind
    assert ztserve("pull", f"{server.url}/m", "-o", here / f"a.{extension}", "--format", kind, *options).status == 0
    result = ztserve("convert", root / "m.zt", here / f"b.{extension}", "--to", kind, *options)
    assert result.status == 0, result.errors
    assert (here / f"a.{extension}").read_bytes() == (here / f"b.{extension}").read_bytes()


def test_convert_cuts_what_is_encoded_or_widened(ztserve, tmp_path):
    halves = (numpy.frombuffer(pattern(2 * 512, seed=5), "<u2") & 0xBFFF).reshape(16, 32)
    row = struct.pack("<e", 0.5) + bytes(range(32))
    quantized = Object([16, 32], {"data": Component(row * 16, digest="xxh3")}, "gguf.q8_0/1",
                       {"block_bytes": 34, "elems_per_block": 32})
    path, out = tmp_path / "m.zt", tmp_path / "rank.safetensors"
    path.write_bytes(zt2({
        "blk.0.attn_q.weight": quantized,
        "blk.0.ffn_down.weight": quantized,
        "blk.0.attn_norm.weight": dense(halves[0].tobytes(), "f16", [32], digest="xxh3"),
        "blk.0.attn_output.weight": dense_encoded(halves.tobytes(), seekable(halves.tobytes(), 99), "zt.zstd-seekable/1", "f16",
                                                  [16, 32], digest="xxh3"),
    }))
    options = ["--shard", "1/2", *AXES]
    assert_no_file(ztserve("convert", path, out, *options), out, "--dtype f32", "attn_q")
    result = ztserve("convert", path, out, *options, "--dtype", "f32")
    assert result.status == 0, result.errors
    file = out.read_bytes()
    (length,) = struct.unpack_from("<Q", file)
    made = {
        name: numpy.frombuffer(file[8 + length :][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in json.loads(file[8 : 8 + length]).items()
    }
    blocks = numpy.tile(numpy.frombuffer(bytes(range(32)), "i1").astype("<f4") / 2, (16, 1))
    wide = halves.view("<f2").astype("<f4")
    for name, wanted in (("attn_q.weight", blocks[8:]), ("ffn_down.weight", blocks[:, 16:]), ("attn_norm.weight", wide[0]),
                         ("attn_output.weight", wide[:, 16:])):
        assert made[f"blk.0.{name}"].tobytes() == wanted.tobytes(), name


def test_convert_splits_a_share_and_joins_parts(ztserve, llama, tmp_path):
    whole = tmp_path / "whole.safetensors"
    assert ztserve("convert", llama, whole, "--max-shard", "8KB").status == 0
    index = tmp_path / "whole.safetensors.index.json"
    assert index.exists()
    share = tmp_path / "share.safetensors"
    assert ztserve("convert", index, share, "--max-shard", "4KB", "--shard", "2/4", *AXES).status == 0
    joined = tmp_path / "joined.safetensors"
    assert ztserve("convert", f"{share}.index.json", joined).status == 0
    assert_share(read(joined.read_bytes()), "llama", 2)


def test_convert_selects_whole_objects(ztserve, llama, tmp_path):
    out = tmp_path / "norms.safetensors"
    assert ztserve("convert", llama, out, "--match", "*norm*").status == 0
    made = read(out.read_bytes())
    assert set(made) == {name for name in ARRAYS["llama"] if "norm" in name}
    assert all(array.tobytes() == ARRAYS["llama"][name].tobytes() for name, array in made.items())


@pytest.mark.parametrize("options, word", [
    (["--shard", "3/4", "--axis", "*o_prj*:1"], "axis=*o_prj*:1"),
    (["--shard", "3/4", "--axis", "@llama", "--axis", "*.bias:none"], "axis=*.bias:none"),
    (["--shard", "3/4", "--axis", "@mixtral"], "@mixtral"),
    (["--match", "*norm*", "--match", "*o_prj*"], "match=*o_prj*"),
    (["--match", "*o_prj*"], "match=*o_prj*"),
])
def test_mistyped_name_gives_no_file(ztserve, start_server, llama, tmp_path, options, word):
    out = tmp_path / "rank.safetensors"
    assert_no_file(ztserve("convert", llama, out, *options), out, word)
    server = start_server(tmp_path)
    out = tmp_path / "pulled.safetensors"
    assert_no_file(ztserve("pull", f"{server.url}/llama", "-o", out, *options), out, word)
    assert not list(tmp_path.glob("*.part"))


def test_unknown_set_gives_no_file(ztserve, start_server, llama, tmp_path):
    out = tmp_path / "rank.safetensors"
    options = ["--shard", "0/2", "--axis", "@lama"]
    assert_no_file(ztserve("convert", llama, out, *options), out, "@lama", "@gpt-oss", status=2)
    assert_no_file(ztserve("pull", f"{start_server(tmp_path).url}/llama", "-o", out, *options), out, "@gpt-oss")


@pytest.mark.parametrize("options", [
    ["--axis", "0"], ["--shard", "2/2"], ["--shard", "x"], ["--shard", "1"], ["--shard", "0/2", "--axis", "x"], ["--match", "["],
    ["--shard", "0/2", "--axis", "@"], ["--shard", "0/2", "--axis", ":1"],
])
def test_convert_refuses_what_makes_no_sense(refused, llama, tmp_path, options):
    refused("convert", llama, tmp_path / "x.zt", *options)


def test_shard_without_rules_suggests_the_set(ztserve, start_server, llama, tmp_path):
    server = start_server(tmp_path)
    out = tmp_path / "rank.safetensors"
    for command in (["convert", llama, out], ["pull", f"{server.url}/llama", "-o", out]):
        result = ztserve(*command, "--shard", "0/2")
        assert result.status == 0 and "--axis @llama" in result.errors
        out.unlink()
        assert "@llama" not in ztserve(*command, "--shard", "0/2", "--axis", "0").errors
        out.unlink()
        result = ztserve(*command, "--shard", "0/7")
        assert result.status == 1 and "@llama" in result.errors and not out.exists()


def test_nothing_is_suggested_for_other_names(ztserve, tmp_path):
    path = tmp_path / "m.zt"
    path.write_bytes(zt1(objects_of(arrays_of(UNKNOWN["phi3"]))))
    result = ztserve("convert", path, tmp_path / "rank.zt", "--shard", "0/2")
    assert result.status == 0 and len(result.error_lines) == 1


def test_convert_finds_damage_in_what_it_cuts(ztserve, llama, tmp_path):
    damaged = bytearray(llama.read_bytes())
    name = "model.layers.0.self_attn.o_proj.weight"
    at = damaged.index(ARRAYS["llama"][name].tobytes())
    damaged[at + 1] ^= 1
    llama.write_bytes(damaged)
    out = tmp_path / "rank.safetensors"
    for axis in ("*:1", "*:0", "@llama"):
        result = ztserve("convert", llama, out, "--shard", "3/4", "--match", "*o_proj*", "--axis", axis)
        assert_no_file(result, out, "digest is", name)
    assert ztserve("convert", llama, out, "--shard", "3/4", "--match", "*q_proj*", "--axis", "*:0").status == 0
