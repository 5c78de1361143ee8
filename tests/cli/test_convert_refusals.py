"""convert: what it refuses, and that nothing is left then."""

import re
import struct

import pytest

from containers import Component, Object, dense, pattern, zstd_dense, zt1, zt2
from conversions import PLAIN, SPARSE, WEIGHTS, convert, fails  # noqa: F401


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
    line = f'{tmp_path / "a.npy"}: the name of the object, "layer\\u000a1", is lost, because NPY cannot hold it\n'
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
    assert "./-" in refused("convert", write("a.zt", zt1(PLAIN)), "-", "--to", "zt")
