"""Files that only another user may read, as safetensors writes them: the log, the listing and the answers say who may not
read what, and the file is served once it may be read."""

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from parts import safetensors_model
from wire import assert_problem, eventually, get, model_path

pytestmark = pytest.mark.folder("permissions of files")

USER = 65534
MODEL = zt1({"a": dense(pattern(100))})
PARTS = [[("a", b"abc")], [("b", b"defg")]]


def user():
    uid = USER if os.geteuid() == 0 else os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@pytest.fixture
def launcher():
    """As root, every file can be read."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    return ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")


@pytest.fixture
def root():
    """Other users may not enter the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="ztserve-unreadable-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "org").mkdir(mode=0o755)
        yield Path(folder)


def put(root, name, data, mode=0o600):
    path = root / name
    path.write_bytes(data)
    path.chmod(mode if os.geteuid() == 0 else mode & 0o077)
    return path


def words(name):
    mode = "0600" if os.geteuid() == 0 else "0000"
    return f"user {user()} may not read this file (mode {mode}; chmod a+r allows it): {name}"


def test_log_listing_and_answers_say_who_may_not_read_what(start_server, root, launcher):
    put(root, "org/m.zt", MODEL)
    put(root, "notes.txt", b"notes")
    server = start_server(root, launcher=launcher)
    server.wait_for_line(f"org/m.zt cannot be read: {words('org/m.zt')}")
    (entry,) = get(server, "/v1/models").json()["models"]
    assert entry["error"] == {"code": "invalid-model", "detail": words("org/m.zt")}
    answer = get(server, model_path("org/m"))
    assert_problem(answer, 422, "invalid-model")
    assert answer.json()["detail"] == words("org/m.zt")
    for path in ("org/m.zt", "notes.txt"):
        answer = get(server, f"/files/{path}")
        assert_problem(answer, 500, "internal")
        assert answer.json()["detail"] == words(path)


def test_a_file_that_becomes_readable_is_served(start_server, root, launcher):
    path = put(root, "m.zt", MODEL)
    server = start_server(root, launcher=launcher)
    assert get(server, model_path("m")).status == 422
    path.chmod(0o644)
    eventually(lambda: get(server, model_path("m")).status == 200)


def test_a_part_that_may_not_be_read_is_named(start_server, root, launcher):
    files = safetensors_model("m", PARTS)
    for name, data in files.items():
        put(root, name, data, 0o600 if name.startswith("m-00002") else 0o644)
    (second,) = [name for name in files if name.startswith("m-00002")]
    server = start_server(root, launcher=launcher)
    answer = get(server, model_path("m"))
    assert_problem(answer, 422, "invalid-model")
    assert words(second) in answer.json()["detail"]


def test_a_folder_that_may_not_be_entered_has_no_advice(start_server, root, launcher):
    put(root, "org/notes.txt", b"notes", 0o644)
    server = start_server(root, launcher=launcher)
    (root / "org").chmod(0o600 if os.geteuid() == 0 else 0)
    answer = get(server, "/files/org/notes.txt")
    (root / "org").chmod(0o755)
    assert_problem(answer, 500, "internal")
    assert answer.json()["detail"] == f"user {user()} may not read this file: org/notes.txt"
