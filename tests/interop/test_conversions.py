"""The real packages read converted files as equal; where a package has a single form, convert writes the same bytes."""

import hashlib
import json
import subprocess
from urllib.parse import unquote

import numpy
import pytest

from environments import python_of, read_with, run_client, write_with
from server_process import PROGRAM

# The packages whose files are converted, except for one file with empty names, which only safetensors allows.
PACKAGES = ("1.2.3", "2.1.2", "safetensors")
NOT_CONVERTED = {"nameless"}


def convert(source, out, *arguments):
    result = subprocess.run([PROGRAM, "convert", source, out, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


def digests(expected):
    return {name: made["components"]["data"] for name, made in expected.items() if list(made["components"]) == ["data"]}


@pytest.fixture(scope="module", params=PACKAGES)
def written(request, tmp_path_factory):
    """Files that one package wrote, each with the digests of its tensors."""
    files = write_with(request.param, tmp_path_factory.mktemp("written"))
    return {path: expected for path, expected in files.items() if path.stem not in NOT_CONVERTED}


def has_small_floats(expected):
    """bfloat16 and smaller floats, for which numpy has no types."""
    small = ("bf16", "bfloat16", "float8", "packed", "none.of.many")
    return any(kind in name for name in expected for kind in small)


@pytest.mark.parametrize("compression", [[], ["--zstd"]])
def test_ztensor_1_2_reads_converted_files(written, tmp_path, compression):
    for path, expected in written.items():
        made = convert(path, tmp_path / f"{path.stem}.zt", "--to", "zt", *compression)
        if set(digests(expected)) != set(expected) or path.stem in ("packed", "complex"):
            continue  # its client reads dense tensors only, and takes none for smaller or larger than their dtype
        read = read_with("1.2.3", made)
        # There is no bfloat16 in numpy: such a tensor is read as integers of the same bits, or not at all.
        wanted = digests(expected)
        assert {name: digest for name, digest in read.items() if "bf16" not in name} == {
            name: digest for name, digest in wanted.items() if "bf16" not in name
        }


@pytest.mark.parametrize("compression", [[], ["--zstd"]])
def test_ztensor_2_reads_and_verifies_converted_files(written, tmp_path, compression):
    for path, expected in written.items():
        made = convert(path, tmp_path / f"{path.stem}.zt", "--to", "zt2", *compression)
        assert read_with("2.1.2", made) == digests(expected)
        verify = "import sys, ztensor; print(ztensor.verify(sys.argv[1]).undigested)"
        checked = subprocess.run([python_of("2.1.2"), "-c", verify, made], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        assert checked.stdout.strip() == "0"


def test_canonical_bytes_are_those_of_the_reference(written, tmp_path):
    for path, expected in written.items():
        if set(digests(expected)) != set(expected):
            continue
        made = convert(path, tmp_path / f"{path.stem}.zt", "--to", "zt2")
        copied = tmp_path / f"{path.stem}.copy.zt"
        run_client("2.1.2", made, copied, script="client_canonical.py")
        assert copied.read_bytes() == made.read_bytes()


def test_safetensors_reads_converted_files(written, tmp_path):
    for path, expected in written.items():
        if set(digests(expected)) != set(expected) or has_small_floats(expected):
            continue  # numpy has no bfloat16
        made = convert(path, tmp_path / f"{path.stem}.safetensors")
        assert read_with("safetensors", made) == digests(expected)


def test_safetensors_through_ztensor_is_the_same_file(tmp_path):
    run_client("safetensors", "write", tmp_path)
    source = tmp_path / "plain.safetensors"
    for target in ("zt", "zt2"):
        through = convert(source, tmp_path / f"{target}.zt", "--to", target)
        back = convert(through, tmp_path / f"{target}.safetensors")
        # The package writes metadata in random order, so its first line is compared by meaning.
        assert_same_safetensors(source.read_bytes(), back.read_bytes())


def assert_same_safetensors(first, second):
    lengths = [int.from_bytes(data[:8], "little") for data in (first, second)]
    assert lengths[0] == lengths[1]
    headers = [json.loads(data[8 : 8 + lengths[0]]) for data in (first, second)]
    assert list(headers[0].items())[1:] == list(headers[1].items())[1:]
    assert headers[0]["__metadata__"] == headers[1]["__metadata__"]
    assert first[8 + lengths[0] :] == second[8 + lengths[0] :]


def test_numpy_reads_converted_files(written, tmp_path):
    for path, expected in written.items():
        if set(digests(expected)) != set(expected) or has_small_floats(expected):
            continue
        with numpy.load(convert(path, tmp_path / f"{path.stem}.npz")) as archive:
            read = {unquote(name): archive[name] for name in archive.files}
        shapes = {name: list(array.shape) for name, array in read.items()}
        assert shapes == {name: made["shape"] for name, made in expected.items()}
        found = {name: hashlib.sha256(numpy.ascontiguousarray(array).tobytes()) for name, array in read.items()}
        assert {name: digest.hexdigest() for name, digest in found.items()} == digests(expected)
