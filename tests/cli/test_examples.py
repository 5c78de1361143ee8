"""The examples of every command's help run as they stand, but for the names of servers and of folders outside of this one."""

import re
import shutil
import subprocess

import joined
import pytest
from containers import dense, pattern, zt1
from server_process import PROGRAM

COMMANDS = ("ls", "verify", "stats", "convert", "pull", "push", "completion", "help", "check-config", "healthcheck")
PLACES = ("https://models.example", "http://models.example:8080", "http://host:8080")
MODEL = zt1({"layer1.w": dense(pattern(4000, seed=61), digest="sha256")})


def examples(command):
    """The lines of the examples, without what they are for."""
    shown = subprocess.run([PROGRAM, "help", command], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\S.*)$", shown.split("Examples:\n")[1], re.MULTILINE)


@pytest.fixture
def here(tmp_path):
    """A folder with the files that examples name."""
    folder = tmp_path / "here"
    (folder / "models").mkdir(parents=True)
    for name in ("model.zt", "models/a.zt"):
        (folder / name).write_bytes(MODEL)
    for name in ("model.gguf", "other.gguf", "llama.gguf"):
        (folder / name).write_bytes(joined.gguf({"w": pattern(256, seed=62)}))
    subprocess.run([PROGRAM, "convert", "-q", folder / "model.zt", folder / "model.safetensors"], check=True)
    (folder / "tiny").mkdir()
    (folder / "tiny/config.json").write_text("{}")
    shutil.copy(folder / "model.safetensors", folder / "tiny")
    (folder / "ztserve.json").write_text('{"root": "models"}')
    (folder / "bin").mkdir()
    (folder / "bin/ztserve").symlink_to(PROGRAM)
    (folder / ".config/fish/completions").mkdir(parents=True)
    return folder


@pytest.fixture
def server(start_server, tmp_path):
    root = tmp_path / "root"
    for name in ("meta-llama/Llama-3-8B/model.zt", "acme/tiny/model.zt", "bert.zt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(MODEL)
    return start_server(root, "--writable")


@pytest.mark.parametrize("command, number", [(command, number) for command in COMMANDS for number in (0, 1)])
def test_an_example_runs(command, number, here, server):
    line = examples(command)[number]
    needed = [tool for tool in ("jq", "man") if f"| {tool}" in line and not shutil.which(tool)]
    if needed:
        pytest.skip(f"there is no {needed[0]} here")
    for place in PLACES:
        line = line.replace(place, server.url)
    line = line.replace("/srv/models", "models").replace("/etc/ztserve/", "")
    environment = {"PATH": f"{here}/bin:/usr/bin:/bin", "HOME": str(here), "LC_ALL": "C.UTF-8", "ZTSERVE_LISTEN": f"127.0.0.1:{server.port}"}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", line], cwd=here, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr if command != "convert" else "") == (0, ""), line
