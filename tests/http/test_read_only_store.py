"""A writable server on a folder to which it may not write: 403 with the reason, and the server keeps running."""

import base64
import os
import shutil
import subprocess

import pytest

from containers import pattern
from uploads import SMALL, content_of, put
from wire import ask, assert_problem, get, model_path

pytestmark = pytest.mark.folder("permissions of folders")


def lock(folder):
    if os.geteuid() != 0:
        folder.chmod(0o555)
        return True
    # Only this stops root.
    return bool(shutil.which("chattr")) and subprocess.run(["chattr", "+i", folder], capture_output=True).returncode == 0


def unlock(folder):
    if os.geteuid() != 0:
        folder.chmod(0o755)
    else:
        subprocess.run(["chattr", "-i", folder], check=True)


@pytest.fixture
def server(tmp_path, start_server):
    (tmp_path / "sub").mkdir()
    for name in ("m.zt", "sub/m.zt"):
        (tmp_path / name).write_bytes(SMALL)
    server = start_server(tmp_path, "--writable")
    locked = [folder for folder in (tmp_path, tmp_path / "sub") if lock(folder)]
    if len(locked) < 2:
        pytest.skip("no way here to keep root from writing")
    yield server
    for folder in locked:
        unlock(folder)


def test_every_kind_of_write_is_403_with_the_reason(server):
    created = {"Tus-Resumable": "1.0.0", "Upload-Length": "9", "Upload-Metadata": "model " + base64.b64encode(b"n").decode()}
    for answer in (
        put(server, "n", SMALL),
        put(server, "m", SMALL),
        ask(server, "DELETE", model_path("m")),
        ask(server, "DELETE", model_path("sub/m")),
        ask(server, "POST", model_path("n") + "/uploads", {"Content-Type": "application/json"}, b"{}"),
        ask(server, "POST", "/v1/resumable", created, b""),
    ):
        problem = assert_problem(answer, 403, "read-only")
        assert problem["detail"].startswith("the server may not write to the folder of models: cannot ")
    assert content_of(server, "m") == content_of(server, "sub/m") == pattern(1000)
    assert get(server, model_path("n")).status == 404


def test_folder_below_that_cannot_be_written_to_is_403_at_publication(server, tmp_path):
    unlock(tmp_path)
    assert put(server, "n", SMALL).status == 201
    assert_problem(put(server, "sub/n", SMALL), 403, "read-only")
    assert_problem(put(server, "sub/m", SMALL), 403, "read-only")
    assert content_of(server, "sub/m") == pattern(1000)
    lock(tmp_path)
