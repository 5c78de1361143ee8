"""Archives with members that are no arrays: the others are read, and what is not read is listed."""

import io
import json
import pickle
import zipfile

import numpy
import pytest

VALUES = numpy.arange(6, dtype="<f4").reshape(2, 3)


def npy(array):
    file = io.BytesIO()
    numpy.save(file, array, allow_pickle=True)
    return file.getvalue()


MEMBERS = {
    "a.npy": npy(VALUES),
    "bare": npy(VALUES),
    "__MACOSX/._a.npy": b"\0\5\x16\7" + bytes(60),
    "pickle.npy": pickle.dumps({"a": 1}),
    "notes.txt": b"hello",
    "empty.npy": b"",
    "names.npy": npy(numpy.array(["a", "b"])),
    "objects.npy": npy(numpy.array([1, "x"], dtype=object)),
    "records.npy": npy(numpy.zeros(2, [("a", "<f4")])),
}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("folder/", b"")
        for name, data in MEMBERS.items():
            file.writestr(name, data)
    return path


def test_what_is_not_read_is_listed_with_its_reason(ztserve, archive):
    manifest = json.loads(ztserve("ls", "--json", archive).output)
    assert set(manifest["objects"]) == {"a", "bare"}
    assert manifest["attributes"]["unread"] == {
        "__MACOSX/._a.npy": "it is not a NumPy array",
        "empty.npy": "it is empty",
        "names.npy": "the dtype <U1 is not supported",
        "notes.txt": "it is not a NumPy array",
        "objects.npy": "the dtype |O is not supported",
        "pickle.npy": "it is not a NumPy array",
        "records.npy": "a structured dtype is not supported",
    }
    assert ztserve("verify", archive).status == 0


def test_the_other_arrays_are_converted(ztserve, archive, tmp_path):
    assert ztserve("convert", archive, tmp_path / "out.npz").status == 0
    with numpy.load(tmp_path / "out.npz") as written:
        assert set(written.files) == {"a", "bare"}
        assert numpy.array_equal(written["bare"], VALUES)
