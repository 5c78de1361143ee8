"""convert: what comes out of it in each format."""

import io
import struct
import zipfile

import numpy
import pytest

from containers import Component, Object, dense, pattern, zstd_dense, zt01, zt1
from conversions import EXTENSIONS, PLAIN, SPARSE, TARGETS, WEIGHTS, read_safetensors, convert, manifest  # noqa: F401


@pytest.mark.parametrize("order", [TARGETS, TARGETS[::-1]], ids=["forth", "back"])
def test_one_format_after_another_holds_the_same_tensors(convert, write, order):
    source = write("plain.zt", zt1(PLAIN))
    direct = convert(source, "direct.safetensors")
    for number, target in enumerate(order):
        source = convert(source, f"{number}{EXTENSIONS[target]}", "--to", target)
    assert convert(source, "last.safetensors").read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("target", ["zt", "mag", "safetensors", "npz", "npy"])
def test_the_extension_of_the_output_may_be_in_any_case(convert, write, target):
    source = write("source.zt", zt1({"w": dense(WEIGHTS, "f32", [2, 3])}))
    extension = EXTENSIONS[target]
    expected = convert(source, "lower" + extension).read_bytes()
    for written in (extension.upper(), extension[:2].upper() + extension[2:]):
        assert convert(source, "other" + written).read_bytes() == expected


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


@pytest.mark.parametrize("arguments", [["--zstd"], ["--zstd=19"]])
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


def test_safetensors_holds_text_attributes_and_tiles_its_data(convert, ztserve, write, tmp_path):
    source = write("a.zt", zt1(PLAIN, attributes={"framework": 'a "b"\n', "é": "ü", "steps": 7}))
    result = ztserve("convert", source, tmp_path / "a.safetensors")
    assert result.status == 0
    lost = f"{tmp_path / 'a.safetensors'}: 1 attribute is lost, because safetensors cannot hold it: steps"
    assert result.output == "" and lost in result.error_lines
    data = (tmp_path / "a.safetensors").read_bytes()
    metadata, tensors = read_safetensors(data)
    assert metadata == {"framework": 'a "b"\n', "é": "ü"}
    assert tensors["flags"] == ("BOOL", [3], b"\x00\x01\x01")
    (length,) = struct.unpack_from("<Q", data)
    assert len(data) == 8 + length + sum(len(content) for _, _, content in tensors.values())
    assert [kind for kind, _, _ in tensors.values()] == ["F32", "F32", "I32", "F16", "BOOL"]


def test_lost_attributes_are_named(ztserve, write, tmp_path):
    objects = {"w\n": dense(WEIGHTS, "f32", [2, 3], attributes={"role": "weight"}), "x": dense(WEIGHTS, "f32", [6])}
    source = write("a.zt", zt1(objects, attributes={"steps": 7, "framework": "x"}))
    result = ztserve("convert", source, tmp_path / "a.npz")
    before = f"{tmp_path / 'a.npz'}: 3 attributes are lost, because NPZ cannot hold them: "
    (line,) = [line for line in result.error_lines if line.startswith(before)]
    assert set(line.removeprefix(before).split(", ")) == {"steps", "framework", "role of w\\u000a"}
    result = ztserve("convert", source, tmp_path / "b.npz", "--progress", "json")
    assert "3 attributes are lost" in result.output and "are lost" not in result.errors
    quiet = ztserve("convert", "-q", source, tmp_path / "c.npz")
    assert (quiet.status, quiet.output, quiet.errors) == (0, "", "")


def test_many_lost_attributes_are_cut(ztserve, write, tmp_path):
    source = write("a.zt", zt1(PLAIN, attributes={f"key{number:03}": number for number in range(100)}))
    result = ztserve("convert", source, tmp_path / "a.npz")
    (line,) = [line for line in result.error_lines if "100 attributes are lost" in line]
    assert line.endswith(": " + ", ".join(f"key{number:03}" for number in range(64)) + ", …")


def test_numpy_reads_npz(convert, write):
    names = ["", "plain", "a/b\\c:d", "../up", "100%", "%41", "ünï", "new\nline"]
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
    assert archive[""].tobytes() == WEIGHTS
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


def header_bytes(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return data[8 : 8 + length]


@pytest.mark.parametrize(
    "metadata, kept", [(b'"__metadata__":{},', True), (b'"__metadata__":null,', False), (b"", False), (b'"__metadata__" : { } ,', True)]
)
def test_empty_metadata_of_safetensors_are_kept(convert, write, metadata, kept):
    entry = b'"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
    header = b"\n{" + metadata + entry + b"}\n"
    source = write("in.safetensors", struct.pack("<Q", len(header)) + header + b"1234")
    for arguments in (["out.safetensors"], ["through.zt"]):
        made = convert(source, *arguments)
    directly = header_bytes(source.parent / "out.safetensors")
    assert directly.rstrip() == b"{" + (b'"__metadata__":{},' if kept else b"") + entry + b"}"
    assert header_bytes(convert(made, "back.safetensors")) == directly


def test_attributes_that_safetensors_cannot_hold_leave_no_empty_metadata(convert, write):
    source = write("in.zt", zt1({"w": dense(b"1234")}, attributes={"layers": [1, 2]}))
    assert b"__metadata__" not in header_bytes(convert(source, "out.safetensors"))
