"""convert, run as a person would: its output, its refusals, and what a failure leaves behind."""

import hashlib
import io
import json
import os
import pty
import re
import resource
import select
import signal
import stat
import struct
import subprocess
import time
import zipfile

import numpy
import pytest

from containers import (
    MAGIC_2,
    Component,
    Object,
    dense,
    dense_encoded,
    pattern,
    seekable,
    zstd_dense,
    zt01,
    zt1,
    zt2,
    zt2_data_shard,
)
from server_process import PROGRAM, holds_freed_memory

WEIGHTS = struct.pack("<6f", *range(6))
SUMMARY = r"[0-9]+ objects?, [0-9]+ bytes?, [0-9]+\.[0-9]{3} seconds"
TARGETS = ["zt", "zt2", "mag", "safetensors", "npz"]
EXTENSIONS = {"zt": ".zt", "zt2": ".zt", "mag": ".mag", "safetensors": ".safetensors", "npz": ".npz", "npy": ".npy"}
# Held by every target.
PLAIN = {
    "layer.weight": dense(WEIGHTS, "f32", [2, 3]),
    "same": dense(WEIGHTS, "f32", [6]),
    "column": dense(pattern(40), "i32", [10, 1]),
    "half": dense(b"\x00\x3c" * 5, "f16", [5]),
    "flags": dense(b"\x00\x01\x01", "bool", [3]),
}
SPARSE = Object(
    [2, 3],
    {
        "values": Component(struct.pack("<3f", 1, 2, 3), "f32"),
        "indices": Component(struct.pack("<3Q", 0, 2, 1), "u64"),
        "indptr": Component(struct.pack("<3Q", 0, 2, 3), "u64"),
    },
    format="sparse_csr",
)


@pytest.fixture
def write(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write_file


@pytest.fixture
def convert(ztserve, tmp_path):
    """Converts into a file of that name and checks it; gives its path."""

    def run(source, name, *arguments):
        out = tmp_path / name
        result = ztserve("convert", source, out, *arguments)
        assert result.status == 0, result.errors
        assert len(result.error_lines) == 1, result.errors
        assert re.fullmatch(SUMMARY, result.errors.removeprefix(f"{out}: ").rstrip("\n")), result.errors
        canonical = ["--canonical"] if "zt2" in arguments and not any("zstd" in text for text in arguments) else []
        verified = ztserve("verify", *canonical, out)
        assert verified.status == 0, verified.errors
        return out

    return run


@pytest.fixture
def fails(ztserve, tmp_path):
    """Converts, which must fail in one line and leave no file; gives the line."""

    def run(source, *arguments, name="out", status=1):
        before = set(os.listdir(tmp_path))
        result = ztserve("convert", source, tmp_path / name, *arguments)
        assert result.status == status, result.errors
        assert result.output == ""
        assert len(result.error_lines) == 1, result.errors
        assert result.errors.startswith("ztserve: ")
        assert set(os.listdir(tmp_path)) == before
        return result.errors

    return run


@pytest.fixture
def manifest(ztserve):
    def read(path):
        return json.loads(ztserve("ls", "--json", path).output)["objects"]

    return read


def read_safetensors(data):
    (length,) = struct.unpack_from("<Q", data)
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    begin = 8 + length
    return metadata, {
        name: (
            entry["dtype"],
            entry["shape"],
            data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }


# --- what comes out ---


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("further", TARGETS)
def test_every_pair_holds_the_same_tensors(convert, write, target, further):
    source = write("plain.zt", zt1(PLAIN))
    direct = convert(source, "direct.safetensors")
    there = convert(source, "there" + EXTENSIONS[target], "--to", target)
    beyond = convert(there, "beyond" + EXTENSIONS[further], "--to", further)
    back = convert(beyond, "back.safetensors")
    assert back.read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_model_gives_the_same_bytes(convert, write, target):
    older = write("older.zt", zt1({**PLAIN, "half": zstd_dense(b"\x00\x3c" * 5, "f16", [5])}, version="1.1.0"))
    newer = write("newer.zt", zt1(dict(reversed(PLAIN.items()))))
    outputs = {convert(path, f"{path.stem}.out", "--to", target).read_bytes() for path in (older, newer, older)}
    assert len(outputs) == 1


def test_through_zt2_and_back_is_equal_bytes(convert, write):
    attributes = {"b": 1, "aa": [1.5, None, {"zz": -1, "y": b"\x00"}], "layers": {"long": True, "s": "t"}}
    objects = {**PLAIN, "rows": SPARSE, "own": Object([2], {"x": Component(b"\x01\x02", type="mine")}, "house.made/7")}
    first = convert(write("source.zt", zt1(objects, attributes=attributes)), "first.zt")
    second = convert(first, "second.zt", "--to", "zt2")
    assert convert(second, "third.zt").read_bytes() == first.read_bytes()


def test_zt01_becomes_whatever_is_asked_for(convert, write, manifest):
    source = write("old.zt", zt01({"w": dense(WEIGHTS, "f32", [2, 3])}))
    assert manifest(convert(source, "new.zt"))["w"]["shape"] == [2, 3]
    _, tensors = read_safetensors(convert(source, "new.safetensors").read_bytes())
    assert tensors["w"] == ("F32", [2, 3], WEIGHTS)


def test_same_bytes_are_stored_once_in_canonical_zt2(convert, write, manifest):
    objects = manifest(convert(write("plain.zt", zt1(PLAIN)), "canonical.zt", "--to", "zt2"))
    offsets = {name: made["components"]["data"]["offset"] for name, made in objects.items()}
    assert offsets["layer.weight"] == offsets["same"]
    assert len(set(offsets.values())) == len(offsets) - 1


@pytest.mark.parametrize("arguments", [["--zstd"], ["--zstd=1"], ["--zstd=19"]])
@pytest.mark.parametrize("target, encoding", [("zt", "zstd"), ("zt2", "zt.zstd-seekable/1")])
def test_zstd_compresses_and_decodes_to_the_same(convert, write, manifest, arguments, target, encoding):
    data = b"\x01\x02\x03\x04" * 900_000
    source = write("large.zt", zt1({"x": dense(data, "f32", [900_000])}))
    packed = convert(source, "packed.zt", "--to", target, *arguments)
    data_part = manifest(packed)["x"]["components"]["data"]
    assert data_part["encoding"] == encoding
    assert data_part["uncompressed_length"] == len(data)
    assert data_part["length"] < len(data) // 100
    assert read_safetensors(convert(packed, "plain.safetensors").read_bytes())[1]["x"][2] == data


def test_seekable_zstd_is_read(convert, write):
    data = pattern(300_000)
    source = write("seekable.zt", zt2({"x": dense_encoded(data, seekable(data), "zt.zstd-seekable/1", digest="xxh3")}))
    assert read_safetensors(convert(source, "plain.safetensors").read_bytes())[1]["x"][2] == data


def sharded(tmp_path, flip=False):
    """A zTensor 2 model of two objects, one of which lies in a shard beside it."""
    shard = MAGIC_2 + bytes(4096 - len(MAGIC_2)) + WEIGHTS + zt2_data_shard()[len(MAGIC_2) :]
    model = {"own": dense(WEIGHTS, "f32", [6], digest="xxh3"), "there": dense(WEIGHTS, "f32", [2, 3], digest="xxh3")}
    model["there"].components["data"].fields = {"shard": "part", "blob": [4096, len(WEIGHTS)]}
    shards = {"part": {"size": len(shard), "digest": f"sha256:{hashlib.sha256(shard).hexdigest()}"}}
    (tmp_path / "model-part.zt").write_bytes(shard[:4096] + b"\x01" + shard[4097:] if flip else shard)
    (tmp_path / "model.zt").write_bytes(zt2(model, fields={"shards": shards}))
    return tmp_path / "model.zt"


def test_a_model_over_several_files_becomes_one(convert, tmp_path):
    _, tensors = read_safetensors(convert(sharded(tmp_path), "one.safetensors").read_bytes())
    assert tensors["there"] == ("F32", [2, 3], WEIGHTS)
    convert(sharded(tmp_path), "one.zt", "--to", "zt2")


def test_a_missing_or_damaged_shard_leaves_no_output(fails, tmp_path):
    fails(sharded(tmp_path, flip=True), "--to", "zt")
    (tmp_path / "model-part.zt").unlink()
    assert "part" in fails(tmp_path / "model.zt", "--to", "zt")


def test_safetensors_holds_text_attributes_and_tiles_its_data(convert, ztserve, write, tmp_path):
    source = write("a.zt", zt1(PLAIN, attributes={"framework": 'a "b"\n', "é": "ü", "steps": 7}))
    result = ztserve("convert", source, tmp_path / "a.safetensors")
    assert result.status == 0
    assert "1 attribute is lost" in result.output
    data = (tmp_path / "a.safetensors").read_bytes()
    metadata, tensors = read_safetensors(data)
    assert metadata == {"framework": 'a "b"\n', "é": "ü"}
    assert tensors["flags"] == ("BOOL", [3], b"\x00\x01\x01")
    (length,) = struct.unpack_from("<Q", data)
    assert len(data) == 8 + length + sum(len(content) for _, _, content in tensors.values())
    assert [kind for kind, _, _ in tensors.values()] == ["F32", "F32", "I32", "F16", "BOOL"]


def test_numpy_reads_npz(convert, write):
    names = ["plain", "a/b\\c:d", "../up", "100%", "%41", "ünï", "new\nline"]
    objects = {name: dense(WEIGHTS, "f32", [2, 3]) for name in names}
    objects |= {
        "scalar": dense(b"\x07\x00\x00\x00", "i32", []),
        "empty": dense(b"", "u16", [0, 4]),
        "complex": Object([2], {"data": Component(pattern(16), "f32", type="complex64")}),
    }
    out = convert(write("a.zt", zt1(objects)), "a.npz")
    archive = numpy.load(out)
    assert archive["plain"].tobytes() == WEIGHTS
    assert archive["plain"].shape == (2, 3)
    assert archive["scalar"].shape == ()
    assert archive["empty"].shape == (0, 4)
    assert archive["complex"].dtype == numpy.complex64
    assert {"a%2Fb%5Cc%3Ad", "..%2Fup", "100%", "%2541", "ünï", "new%0Aline"} <= set(archive.files)
    with zipfile.ZipFile(out) as opened:
        assert opened.testzip() is None
        assert {entry.date_time for entry in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_names_come_back_from_npz(convert, write, manifest):
    names = ["a/b\\c:d", "../up", "100%", "%41", "%2F", "ünï", "new\nline", "x.npy"]
    source = write("a.zt", zt1({name: dense(WEIGHTS, "f32", [6]) for name in names}))
    assert set(manifest(convert(convert(source, "a.npz"), "back.zt"))) == set(names)


def test_numpy_reads_npy(convert, write):
    out = convert(write("one.zt", zt1({"x": dense(WEIGHTS, "f32", [3, 2])})), "one.npy")
    array = numpy.load(io.BytesIO(out.read_bytes()))
    assert array.shape == (3, 2)
    assert array.tobytes() == WEIGHTS


def test_a_model_without_objects_is_held_by_all_but_npy(convert, write):
    source = write("empty.zt", zt1({}))
    for target in TARGETS:
        convert(source, f"empty{target}", "--to", target)


def test_a_shape_that_ends_in_one_comes_back_from_mag(convert, write, manifest):
    shapes = {"a": [6, 1], "b": [6], "c": [1, 1], "d": [1], "e": [1, 6]}
    objects = {name: dense(WEIGHTS[: 4 * numpy.prod(shape)], "f32", shape) for name, shape in shapes.items()}
    made = manifest(convert(write("a.zt", zt1(objects)), "a.mag"))
    assert {name: entry["shape"] for name, entry in made.items()} == shapes


# --- what is refused ---


@pytest.mark.parametrize("target", ["mag", "safetensors", "npz", "npy"])
def test_a_sparse_object_is_refused_by_its_name(fails, write, target):
    line = fails(write("sparse.zt", zt1({"rows": SPARSE})), "--to", target)
    assert '"rows"' in line
    assert "sparse.zt" in line


@pytest.mark.parametrize(
    "target, made",
    [
        ("mag", dense(b"\x01", "u8")),
        ("mag", dense(b"\x01\x00\x00\x00", "f32", [])),
        ("npz", dense(b"\x01\x02", "bf16")),
        ("npz", dense(b"\x01", "u8", type="f8_e5m2")),
        ("safetensors", Object([1], {"data": Component(bytes(16), "f64", type="complex128")})),
    ],
)
def test_a_type_or_shape_that_a_target_has_not_is_refused(fails, write, target, made):
    assert '"the one"' in fails(write("a.zt", zt1({"the one": made})), "--to", target)


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
def test_a_damaged_file_makes_nothing(fails, write, target):
    objects = {"good": dense(pattern(100)), "hurt": dense(pattern(5000, seed=2))}
    line = fails(write("hurt.zt", zt1(objects).flipped("hurt", at=4321)), "--to", target)
    assert '"hurt"' in line
    assert "digest" in line


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
def test_damaged_compressed_data_leaves_no_output(fails, write, target):
    objects = {"hurt": zstd_dense(pattern(5000), digest=None)}
    assert '"hurt"' in fails(write("hurt.zt", zt1(objects).flipped("hurt", at=1)), "--to", target)


def test_content_against_its_type_makes_nothing(fails, write):
    assert '"flags"' in fails(write("a.zt", zt1({"flags": dense(b"\x00\x02", "bool")})), "--to", "zt2")


def csr(columns, format="sparse_csr", dtype="u64", code="Q"):
    """Two rows of two, three columns wide."""
    return Object(
        [2, 3],
        {
            "values": Component(struct.pack("<4f", 1, 2, 3, 4), "f32"),
            "indices": Component(struct.pack(f"<4{code}", *columns), dtype),
            "indptr": Component(struct.pack(f"<3{code}", 0, 2, 4), dtype),
        },
        format=format,
    )


def coo(coords, format="sparse_coo"):
    """Two points, all of their first coordinates before the second ones."""
    components = {"values": Component(b"ab", "u8"), "coords": Component(struct.pack("<4Q", *coords), "u64")}
    return Object([3, 3], components, format=format)


@pytest.mark.parametrize("options", [[], ["--zstd"]])
@pytest.mark.parametrize(
    "made, component, reason",
    [
        (csr([2, 1, 0, 1]), "indices", "do not increase"),
        (csr([0, 1, 2, 2]), "indices", "do not increase"),
        (csr([0, 1, 2, 1], dtype="i32", code="i"), "indices", "do not increase"),
        (csr([1, 0, 0, 1], format="zt.sparse_csr/1"), "indices", "do not increase"),
        (csr([0, 3, 0, 1], format="zt.sparse_csr/1"), "indices", "outside the shape"),
        (coo([1, 1, 2, 2]), "coords", "occurs twice"),
        (coo([1, 1, 2, 2], format="zt.sparse_coo/1"), "coords", "occurs twice"),
        (coo([1, 1, 2, 3], format="zt.sparse_coo/1"), "coords", "outside the shape"),
    ],
)
def test_content_against_the_layout_it_gets_makes_nothing(fails, write, made, component, reason, options):
    sound = dense(WEIGHTS, "f32", [6])
    # A name that canonical form composes, and so moves behind the others.
    objects = {"e\u0301": sound, "ez": sound, "rows": made}
    line = fails(write("a.zt", zt1(objects)), "--to", "zt2", *options)
    assert f'object "rows", component "{component}"' in line
    assert reason in line
    assert "zt2 §6 LayoutData" in line


@pytest.mark.parametrize("made", [csr([2, 1, 0, 1]), csr([0, 0, 2, 2]), coo([1, 1, 2, 2])])
def test_content_that_zt1_allows_converts_to_it(convert, write, made):
    convert(write("a.zt", zt1({"rows": made})), "out.zt")


def test_content_that_zt1_forbids_is_refused_if_zt2_does_not_know_the_layout(fails, write):
    line = fails(write("a.zt", zt2({"rows": csr([0, 3, 0, 1])})), "--to", "zt")
    assert 'object "rows", component "indices"' in line
    assert "zt1 §3 LayoutData" in line


@pytest.mark.parametrize("made", [csr([0, 2, 1, 2]), csr([0, 2, 1, 2], dtype="i32", code="i"), coo([1, 1, 2, 0])])
def test_content_that_obeys_zt2_converts_to_it(convert, write, made):
    source = write("a.zt", zt1({"rows": made}))
    convert(source, "out.zt", "--to", "zt2")
    convert(source, "packed.zt", "--to", "zt2", "--zstd")


@pytest.mark.parametrize("before", ["", "n"])
@pytest.mark.parametrize("letter", ["n", "ä"])
def test_a_long_name_is_cut_in_a_refusal(fails, write, before, letter):
    line = fails(write("a.zt", zt1({before + letter * 32768: dense(WEIGHTS, "f32", [6])})), "--to", "zt2")
    shown = line.split('[object "')[1].rstrip()
    assert shown.startswith(before + letter * 90)
    assert shown.endswith(f'{letter}…"]')
    assert len(shown.encode()) < 220


@pytest.mark.parametrize("target", ["zt2", "mag", "npz"])
def test_a_name_with_a_nul_is_shown_whole_in_a_refusal(fails, write, target):
    line = fails(write("a.zt", zt1({"left\0right": dense(WEIGHTS, "f32", [6])})), "--to", target)
    assert line.endswith('[object "left\\u0000right"]\n')


def test_npy_reports_the_name_that_it_drops(ztserve, write, tmp_path):
    source = write("a.zt", zt1({"layer\n1": dense(WEIGHTS, "f32", [6])}))
    result = ztserve("convert", source, tmp_path / "a.npy")
    line = f'{tmp_path / "a.npy"}: the name of the object, "layer\\u000a1", is lost, since NPY cannot hold it\n'
    assert (result.status, result.output) == (0, line)
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}/a.npy: 1 object, 24 bytes, [0-9.]+ seconds\n", result.errors)


def test_a_file_that_is_not_a_container_leaves_no_output(fails, write):
    assert "nonsense.zt" in fails(write("nonsense.zt", b"nonsense" * 100), "--to", "zt")


def test_a_missing_file(fails, tmp_path):
    assert "missing.zt" in fails(tmp_path / "missing.zt", "--to", "zt")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--to", "gguf"],
        ["--to"],
        [],
        ["--to", "npz", "--zstd"],
        ["--to", "zt", "--zstd=0"],
        ["--to", "zt", "--zstd=23"],
        ["--to", "zt", "--zstd="],
        ["--to", "zt", "--zstd=3x"],
        ["--to", "zt", "--frobnicate"],
        ["--to", "zt", "third"],
    ],
)
def test_wrong_usage_is_refused_before_anything_is_read(fails, write, arguments):
    fails(write("a.zt", zt1(PLAIN)), *arguments, status=2)


def test_two_files_are_needed(refused, write):
    refused("convert")
    refused("convert", write("a.zt", zt1(PLAIN)))


# --- several threads ---


def on_one_processor(source, out, *arguments):
    """Converts as a machine with one processor does: in one thread."""
    return subprocess.run(
        [PROGRAM, "convert", source, out, *arguments],
        capture_output=True,
        preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]),
        timeout=60,
        check=False,
    )


def in_parts(tmp_path, count=5):
    """A model over several files, with components of many blocks, small ones, empty ones and twins."""
    weight_map = {}
    for part in range(count):
        file = f"model-{part + 1:05}-of-{count:05}.safetensors"
        header, data = {}, b""
        tensors = {"large": pattern(700_001 + 4096 * part), "small": bytes([part, 1]), "empty": b"", "twin": b"t" * 300_000}
        for name, raw in tensors.items():
            place = [len(data), len(data) + len(raw)]
            header[f"{name}.{part}"] = {"dtype": "U8", "shape": [len(raw)], "data_offsets": place}
            weight_map[f"{name}.{part}"] = file
            data += raw
        text = json.dumps(header).encode()
        (tmp_path / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
def test_threads_write_the_bytes_that_one_writes(convert, tmp_path, target):
    source = in_parts(tmp_path)
    alone = tmp_path / "alone"
    assert on_one_processor(source, alone, "--to", target).returncode == 0
    assert convert(source, "together" + EXTENSIONS[target], "--to", target).read_bytes() == alone.read_bytes()


def test_threads_write_the_parts_that_one_writes(ztserve, tmp_path):
    source = in_parts(tmp_path)
    for folder in ("alone", "together"):
        (tmp_path / folder).mkdir()
    arguments = ["--max-shard", "1MB"]
    assert on_one_processor(source, tmp_path / "alone/out.safetensors", *arguments).returncode == 0
    assert ztserve("convert", source, tmp_path / "together/out.safetensors", *arguments).status == 0
    names = sorted(os.listdir(tmp_path / "alone"))
    assert len(names) > 2
    assert sorted(os.listdir(tmp_path / "together")) == names
    for name in names:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "together" / name).read_bytes()


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
@pytest.mark.parametrize("hurt", [["0"], ["7"], ["3", "6"]])
def test_threads_refuse_damage_as_one_does(fails, write, tmp_path, target, hurt):
    """Of several damaged components the first is named, whichever thread was faster."""
    whole = zt1({str(i): dense(pattern(400_000 * (8 - i)), digest="sha256") for i in range(8)})
    data = bytearray(whole)
    for name in hurt:
        data[whole.offsets[name, "data"]] ^= 1
    source = write("hurt.zt", data)
    alone = on_one_processor(source, tmp_path / "out", "--to", target)
    assert alone.returncode == 1
    assert f'"{hurt[0]}"' in alone.stderr.decode()
    assert fails(source, "--to", target) == alone.stderr.decode()


def test_the_first_failure_in_the_files_order_is_reported(fails, write):
    """The second component is found damaged while the first, which takes a thread much longer, is still being read."""
    whole = zt1({"a": dense(bytes(32 << 20), digest="sha256"), "b": dense(pattern(64), digest="sha256")})
    data = bytearray(whole)
    for name in "ab":
        data[whole.offsets[name, "data"]] ^= 1
    source = write("hurt.zt", data)
    for target in ("zt", "safetensors"):
        assert '"a"' in fails(source, "--to", target)


# --- the file that is written ---


def test_a_failure_leaves_the_older_file(ztserve, write):
    source = write("hurt.zt", zt1({"hurt": dense(pattern(50))}).flipped("hurt"))
    out = write("out.zt", b"older")
    assert ztserve("convert", source, out).status == 1
    assert out.read_bytes() == b"older"


def test_an_older_file_is_replaced_and_a_link_followed(convert, write, tmp_path):
    source = write("a.zt", zt1(PLAIN))
    real = write("real.zt", b"older")
    (tmp_path / "link.zt").symlink_to(real)
    convert(source, "link.zt")
    assert (tmp_path / "link.zt").is_symlink()
    assert real.read_bytes() != b"older"


def test_a_file_can_be_converted_onto_itself(convert, write):
    source = write("a.zt", zt1(PLAIN))
    convert(source, "a.zt", "--to", "zt2")


def test_the_umask_holds(convert, write):
    before = os.umask(0o027)
    try:
        out = convert(write("a.zt", zt1(PLAIN)), "out.zt")
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def test_a_file_that_is_not_regular_is_not_replaced(ztserve, write, tmp_path):
    source = write("a.zt", zt1(PLAIN))
    for out in (tmp_path, "/dev/null"):
        result = ztserve("convert", source, out, "--to", "zt")
        assert result.status == 1
        assert len(result.error_lines) == 1
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_missing_folder(ztserve, write, tmp_path):
    result = ztserve("convert", write("a.zt", zt1(PLAIN)), tmp_path / "missing" / "out.zt")
    assert result.status == 1
    assert "out.zt" in result.errors


def test_a_full_disk_leaves_nothing(write, tmp_path):
    """A limit on the size of files stands for the disk."""
    source = write("a.zt", zt1({"x": dense(pattern(1 << 20))}))
    limit = 1 << 19
    result = subprocess.run(
        [PROGRAM, "convert", source, tmp_path / "out.zt"],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert b"out.zt" in result.stderr
    assert os.listdir(tmp_path) == ["a.zt"]


def make_large(tmp_path, size):
    path = tmp_path / "large.safetensors"
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return path


def test_a_signal_leaves_nothing(tmp_path):
    source = make_large(tmp_path, 1 << 30)
    process = subprocess.Popen(
        [PROGRAM, "convert", source, tmp_path / "out.zt", "--zstd=22"], stderr=subprocess.PIPE, text=True
    )
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert os.listdir(tmp_path) == ["large.safetensors"]


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    source = make_large(tmp_path, 1 << 28)
    leader, follower = pty.openpty()
    process = subprocess.Popen([PROGRAM, "convert", source, tmp_path / "out.zt", "--zstd=12"], stderr=follower)
    os.close(follower)
    shown = b""
    while process.poll() is None or select.select([leader], [], [], 0)[0]:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                shown += os.read(leader, 4096)
            except OSError:
                break
    os.close(leader)
    assert process.wait() == 0
    progress, _, summary = shown.rpartition(b"\r\x1b[K")
    assert not progress or b"\rconverting: " in progress
    assert b"\n" not in progress
    assert re.fullmatch(rf".*/out.zt: {SUMMARY}\r\n", summary.decode())


def peak_kib(process):
    """The peak memory of a running process."""
    peak = 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            peak = max([peak, *(int(line.split()[1]) for line in status if line.startswith("VmHWM"))])
        time.sleep(0.01)
    return peak


@pytest.mark.parametrize("target", ["zt2", "npz", "zt"])
def test_memory_does_not_follow_the_size(tmp_path, target):
    if holds_freed_memory():
        pytest.skip("a sanitizer holds memory of its own")
    process = subprocess.Popen([PROGRAM, "convert", make_large(tmp_path, 3 << 28), tmp_path / "out", "--to", target])
    peak = peak_kib(process)
    assert process.returncode == 0
    assert peak < 64 << 10
