"""verify reports harmless faults (unreferenced ranges, padding that is not zero) and still accepts the file."""

import pytest

from containers import dense, zt01, zt1, zt2
from neighbours import deflated_npz, gguf, mag, npy, npz, safetensors

# Zeros and ones: all formats can hold those.
DATA = bytes(index % 3 % 2 for index in range(4096))


@pytest.fixture
def noted(ztserve, tmp_path):
    """What verify says of a file after "ok (…)"; the file must be good."""

    def verify(data):
        path = tmp_path / "file"
        path.write_bytes(data)
        result = ztserve("verify", path)
        assert (result.status, result.errors) == (0, "")
        assert len(result.lines) == 1
        assert result.lines[0].startswith(f"{path}: ok (")
        return result.lines[0].partition(")")[2]

    return verify


def with_byte(data, offset, value):
    return data[:offset] + bytes([value]) + data[offset + 1 :]


@pytest.mark.parametrize("make", [safetensors, gguf, mag, npy, npz, deflated_npz])
def test_clean_files_get_no_note(noted, make):
    assert noted(make(DATA)) == ""


@pytest.mark.parametrize("make", [zt01, zt1, zt2])
def test_clean_ztensor_files_get_no_note(noted, make):
    assert noted(make({"a": dense(DATA[:100]), "b": dense(DATA), "c": dense(DATA[:1])})) == ""


@pytest.mark.parametrize("make", [zt01, zt1, zt2])
def test_nonzero_padding_is_reported(noted, make):
    assert noted(with_byte(make({"a": dense(DATA)}), 9, 0xAB)) == "; padding: not zero at 9"


def test_further_padding_is_counted(noted):
    file = zt2({"a": dense(DATA[:100]), "b": dense(DATA)})
    assert noted(with_byte(with_byte(file, 8, 1), 4096 + 100, 1)) == "; padding: not zero at 8 (and 1 more)"


def test_an_earlier_generation_is_reported(noted):
    earlier = zt2({"a": dense(DATA)})
    assert noted(zt2({"b": dense(DATA)}, after=earlier)).startswith("; unreferenced: ")


@pytest.mark.parametrize("make", [gguf, mag])
def test_bytes_after_the_last_tensor_are_reported(noted, make):
    file = make(DATA)
    assert noted(file + b"abc") == f"; unreferenced: 3 bytes at {len(file)}"


def test_one_byte_is_no_bytes(noted):
    file = gguf(DATA)
    assert noted(file + b"a") == f"; unreferenced: 1 byte at {len(file)}"


def test_both_kinds_are_reported(noted):
    file = zt2({"a": dense(DATA[:100])}, after=with_byte(zt2({"b": dense(DATA)}), 20, 1))
    note = noted(file)
    assert note.startswith("; unreferenced: ")
    # What was padding once is part of what nothing refers to.
    assert "padding" not in note
    behind = with_byte(file, file.rindex(DATA[:100]) + 100, 1)
    assert noted(behind) == f"{note}; padding: not zero at {file.rindex(DATA[:100]) + 100}"


def test_a_bad_file_gets_no_note(ztserve, tmp_path):
    path = tmp_path / "bad.zt"
    path.write_bytes(with_byte(with_byte(zt2({"a": dense(DATA, digest="xxh3")}), 4096, 9), 9, 1))
    result = ztserve("verify", path)
    assert result.status == 1
    assert "padding" not in result.errors
