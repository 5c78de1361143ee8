"""The commands are tested on files from the same builders as the server."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))

import meddler as meddling  # noqa: E402
from server_process import PROGRAM  # noqa: E402

TIMEOUT_S = 180


class Result:
    def __init__(self, completed):
        self.status = completed.returncode
        self.output = completed.stdout.decode(errors="surrogateescape")
        self.errors = completed.stderr.decode(errors="surrogateescape")

    @property
    def lines(self):
        return self.output.splitlines()

    @property
    def error_lines(self):
        return self.errors.splitlines()


@pytest.fixture
def ztserve():
    """Runs the program to its end."""

    def run(*arguments, environment=None, stdout=subprocess.PIPE, folder=None):
        completed = subprocess.run(
            [str(PROGRAM), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            timeout=TIMEOUT_S,
            check=False,
        )
        completed.stdout = completed.stdout or b""
        return Result(completed)

    return run


@pytest.fixture
def refused(ztserve):
    """Runs the program, which must give its reason in one line and exit with status 2."""

    def run(*arguments, **options):
        result = ztserve(*arguments, **options)
        assert result.status == 2, result.errors
        assert result.output == ""
        assert len(result.error_lines) == 1, result.errors
        assert result.errors.startswith("ztserve: ")
        return result.errors

    return run


@pytest.fixture
def here(tmp_path):
    """An empty folder to run commands in."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path):
    """An empty folder for a server."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def server(start_server, root):
    return start_server(root, "--writable")


@pytest.fixture
def between(server):
    """What commands reach the server of a test through, and what can go wrong on the way."""
    made = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    yield made
    made.close()


@pytest.fixture
def environment(tmp_path):
    """In which push remembers what it has begun in a folder of the test."""
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def push(ztserve, environment):
    def run(*arguments):
        return ztserve("push", *arguments, environment=environment)

    return run


@pytest.fixture
def write(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write_file


@pytest.fixture
def model(request, tmp_path):
    """A file that holds the module's MODEL."""
    path = tmp_path / "m.zt"
    path.write_bytes(request.module.MODEL)
    return path
