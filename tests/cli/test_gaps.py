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


SMALL_AND_LARGE = zt2({"a": dense(DATA[:100]), "b": dense(DATA)})
NOTES = {
    **{f"clean {make.__name__}": (make(DATA), "") for make in (safetensors, gguf, mag, npy, npz, deflated_npz)},
    **{f"clean {make.__name__}": (make({"a": dense(DATA[:100]), "b": dense(DATA), "c": dense(DATA[:1])}), "") for make in (zt01, zt1, zt2)},
    **{f"padding of {make.__name__}": (with_byte(make({"a": dense(DATA)}), 9, 0xAB), "; padding: not zero at 9") for make in (zt01, zt1, zt2)},
    "further padding": (with_byte(with_byte(SMALL_AND_LARGE, 8, 1), 4096 + 100, 1), "; padding: not zero at 8 (and 1 more)"),
    **{f"bytes behind {make.__name__}": (make(DATA) + b"abc", f"; unreferenced: 3 bytes at {len(make(DATA))}") for make in (gguf, mag)},
    "one byte behind gguf": (gguf(DATA) + b"a", f"; unreferenced: 1 byte at {len(gguf(DATA))}"),
}


@pytest.mark.parametrize("name", NOTES)
def test_a_file_gets_the_note_that_it_deserves(noted, name):
    data, note = NOTES[name]
    assert noted(data) == note


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
