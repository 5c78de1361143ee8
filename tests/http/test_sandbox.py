"""What the server gives up at its start: one line says it, it holds for every thread, and everything still works."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from uploads import SMALL, content_of, put
from wire import ask, eventually, get, model_path

pytestmark = [pytest.mark.folder("what the sandbox allows of the file system"), pytest.mark.plain("a sanitized program is not confined")]

MODEL = zt1({"w": dense(pattern(1000), digest="sha256")})


def line_of(server):
    (line,) = eventually(lambda: [line for line in server.log_lines if "confined: " in line])
    return line.split("confined: ", 1)[1]


def restrictions(server):
    """A pair for each thread: whether privileges can grow, and whether calls are filtered."""
    tasks = Path(f"/proc/{server.process.pid}/task")
    for status in tasks.glob("*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        yield fields["NoNewPrivs"], fields["Seccomp"]


def lock(folder):
    """Makes a folder that even root cannot write to."""
    return bool(shutil.which("chattr")) and subprocess.run(["chattr", "+i", folder], capture_output=True).returncode == 0


def test_every_thread_is_confined_and_one_line_says_how(start_server, tmp_path):
    server = start_server(tmp_path, "--threads", "3")
    line = line_of(server)
    assert line.startswith("no new privileges, "), line
    if "no Landlock" not in line:
        assert f"reads {tmp_path}," in line, line
    privileges, filters = zip(*restrictions(server))
    assert len(privileges) > 3 and set(privileges) == {"1"}
    assert set(filters) == ({"2"} if "system calls filtered" in line else {"0"})


def test_a_writable_root_is_written_and_a_state_folder_elsewhere_too(start_server, tmp_path):
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    server = start_server(root, "--writable", environment={"ZTSERVE_STATE_DIR": str(state)})
    line = line_of(server)
    if "no Landlock" not in line:
        assert f"writes {root}, writes {state}" in line, line
    assert put(server, "org/name", SMALL).status == 201
    assert put(server, "org/name", SMALL).status == 204
    assert ask(server, "DELETE", model_path("org/name")).status == 204
    assert state.is_dir()


def test_without_the_sandbox_nothing_is_given_up(start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_SANDBOX": "false"})
    server.wait_for_line("not confined: the key sandbox is false")
    assert {privileges for privileges, _ in restrictions(server)} == {"0"}


def test_a_root_that_nobody_can_write_is_served_and_its_state_kept_elsewhere(start_server, tmp_path):
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "m.zt").write_bytes(MODEL)
    if not lock(root):
        pytest.skip("skipped: no way here to keep root from writing")
    try:
        server = start_server(root, environment={"ZTSERVE_STATE_DIR": str(state)})
        assert content_of(server, "m") == pattern(1000)
        assert server.stop() == 0
        assert list((state / "verified").iterdir())
        again = start_server(root)
        assert content_of(again, "m") == pattern(1000)
    finally:
        subprocess.run(["chattr", "-i", root], check=True)


def test_a_linked_configuration_is_read_again(start_server, tmp_path):
    """As Kubernetes mounts a ConfigMap: links to a folder that is swapped."""
    root, mount = tmp_path / "root", tmp_path / "mount"
    root.mkdir()
    for version, threads in (("..1", 0), ("..2", 7)):
        (mount / version).mkdir(parents=True)
        (mount / version / "ztserve.json").write_text(f'{{"threads": {threads}}}')
    (mount / "..data").symlink_to("..1")
    (mount / "ztserve.json").symlink_to("..data/ztserve.json")
    server = start_server(root, "--config", mount / "ztserve.json")
    (mount / "..new").symlink_to("..2")
    (mount / "..new").rename(mount / "..data")
    shutil.rmtree(mount / "..1")
    server.signal(signal.SIGHUP)
    eventually(lambda: "threads was changed" in server.log)


def test_a_file_in_a_folder_that_was_not_known_is_named(start_server, tmp_path):
    root, settings, elsewhere = (tmp_path / name for name in ("root", "settings", "elsewhere"))
    for folder in (root, settings, elsewhere):
        folder.mkdir()
    (elsewhere / "tokens").write_text("reader read " + "0" * 64 + "\n")
    file = settings / "ztserve.json"
    file.write_text("{}")
    server = start_server(root, "--config", file)
    if "no Landlock" in line_of(server):
        pytest.skip("skipped: this kernel has no Landlock")
    file.write_text(f'{{"auth": {{"tokens": "{elsewhere}/tokens"}}}}')
    server.signal(signal.SIGHUP)
    eventually(lambda: f"{elsewhere}/tokens is outside the folders that the sandbox allowed" in server.log)
    assert get(server, "/v1/models").status == 200


def test_a_folder_in_the_place_of_the_root_is_a_warning_once(start_server, tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
    (root / "m.zt").write_bytes(MODEL)
    (other / "n.zt").write_bytes(MODEL)
    server = start_server(root)
    if "no Landlock" in line_of(server):
        pytest.skip("skipped: this kernel has no Landlock")
    root.rename(tmp_path / "old")
    other.rename(root)
    for _ in range(2):
        server.signal(signal.SIGHUP)
        eventually(lambda: "reloaded" in server.log)
    eventually(lambda: "the folder of models has been replaced" in server.log)
    (tmp_path / "old" / "later.zt").write_bytes(MODEL)
    eventually(lambda: get(server, model_path("later")).status == 200)
    assert get(server, model_path("m")).status == 200
    assert get(server, model_path("n")).status == 404
    assert server.log.count("the folder of models has been replaced") == 1
