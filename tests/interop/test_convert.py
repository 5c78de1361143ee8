"""What convert makes, the real packages read equal; and where they write one form only, it is the same bytes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy
import pytest

from server_process import PROGRAM

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(os.environ.get("ZT_INTEROP_VENVS", HERE.parent.parent / "build" / "interop"))
REQUIREMENTS = ["numpy==2.2.6", "ml_dtypes==0.5.1"]
PACKAGES = {"1.2.3": "ztensor==1.2.3", "2.1.2": "ztensor==2.1.2", "safetensors": "safetensors==0.6.2"}
CLIENTS = {"1.2.3": "client_1_2.py", "2.1.2": "client_2.py", "safetensors": "client_safetensors.py"}


def python_of(name):
    """The interpreter of the environment that has this package, made if need be (test_ztensor.py makes the same)."""
    wanted = " ".join([PACKAGES[name], *REQUIREMENTS, sys.version.split()[0]])
    folder = ENVIRONMENTS / name
    marker = folder / "complete"
    python = folder / "bin" / "python"
    if not marker.is_file() or marker.read_text() != wanted:
        # --clear would empty what a link leads to.
        assert not folder.is_symlink(), f"{folder} leads elsewhere"
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, PACKAGES[name], *REQUIREMENTS], check=True)
        marker.write_text(wanted)
    return python


def run_client(name, *arguments, script=None):
    command = [python_of(name), HERE / (script or CLIENTS[name]), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def read_with(name, path):
    """SHA-256 of each dense tensor, by its name."""
    return json.loads(run_client(name, "read", path))


def convert(source, out, *arguments):
    result = subprocess.run([PROGRAM, "convert", source, out, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


def digests(expected):
    return {name: made["components"]["data"] for name, made in expected.items() if list(made["components"]) == ["data"]}


@pytest.fixture(scope="module", params=PACKAGES)
def written(request, tmp_path_factory):
    """Files that one package wrote, each with the digests of its tensors."""
    folder = tmp_path_factory.mktemp("written")
    run_client(request.param, "write", folder)
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".zt", ".safetensors")]
    assert files
    return {path: json.loads(Path(f"{path}.expected.json").read_text()) for path in files}


@pytest.mark.parametrize("compression", [[], ["--zstd"]])
def test_ztensor_1_2_reads_what_becomes_of_them(written, tmp_path, compression):
    for path, expected in written.items():
        made = convert(path, tmp_path / f"{path.stem}.zt", "--to", "zt", *compression)
        if set(digests(expected)) != set(expected):
            continue  # its client reads dense tensors only
        read = read_with("1.2.3", made)
        # It has no bfloat16 in numpy: such a tensor is read as numbers of the same bits, or not at all.
        wanted = digests(expected)
        assert {name: digest for name, digest in read.items() if "bf16" not in name} == {
            name: digest for name, digest in wanted.items() if "bf16" not in name
        }


@pytest.mark.parametrize("compression", [[], ["--zstd"]])
def test_ztensor_2_reads_and_verifies_what_becomes_of_them(written, tmp_path, compression):
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


def test_safetensors_reads_what_becomes_of_them(written, tmp_path):
    for path, expected in written.items():
        if set(digests(expected)) != set(expected) or any("bf16" in name for name in expected):
            continue  # numpy has no bfloat16
        made = convert(path, tmp_path / f"{path.stem}.safetensors")
        assert read_with("safetensors", made) == digests(expected)


def test_safetensors_through_ztensor_is_the_same_file(tmp_path):
    run_client("safetensors", "write", tmp_path)
    source = tmp_path / "plain.safetensors"
    for target in ("zt", "zt2"):
        through = convert(source, tmp_path / f"{target}.zt", "--to", target)
        back = convert(through, tmp_path / f"{target}.safetensors")
        # The package writes metadata in no order: its first line is compared as it means.
        assert_same_safetensors(source.read_bytes(), back.read_bytes())


def assert_same_safetensors(first, second):
    lengths = [int.from_bytes(data[:8], "little") for data in (first, second)]
    assert lengths[0] == lengths[1]
    headers = [json.loads(data[8 : 8 + lengths[0]]) for data in (first, second)]
    assert list(headers[0].items())[1:] == list(headers[1].items())[1:]
    assert headers[0]["__metadata__"] == headers[1]["__metadata__"]
    assert first[8 + lengths[0] :] == second[8 + lengths[0] :]


def test_numpy_reads_what_becomes_of_them(written, tmp_path):
    for path, expected in written.items():
        if set(digests(expected)) != set(expected) or any("bf16" in name for name in expected):
            continue
        with numpy.load(convert(path, tmp_path / f"{path.stem}.npz")) as archive:
            read = {unquote(name): archive[name] for name in archive.files}
        shapes = {name: list(array.shape) for name, array in read.items()}
        assert shapes == {name: made["shape"] for name, made in expected.items()}
        found = {name: hashlib.sha256(numpy.ascontiguousarray(array).tobytes()) for name, array in read.items()}
        assert {name: digest.hexdigest() for name, digest in found.items()} == digests(expected)
