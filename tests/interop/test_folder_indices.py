"""Programs that read the index of a folder: wget -r, rclone, lftp and fsspec get every file that is served, and no other."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from environments import run_client

import containers

FILES = {
    "top.json": b"{}",
    "model.zt": containers.zt1({"w": containers.dense(containers.pattern(4096))}),
    "org/model/config.json": b'{"a": 1}',
    "org/model/READ ME+more@x.md": b"# Read me",
    "org/model/_lead.jinja": b"{{ x }}",
    "org/model/sub dir/größe 日本.txt": b"deep",
    "org/model/a:b & 'c' #d?.txt": b"odd",
    "org/model/100%.txt": b"per cent",
    "org/model/empty.txt": b"",
    "org/model/weights.dat": containers.pattern(3_000_000),
}


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "root"
    for name, data in [*FILES.items(), (".hidden", b"no"), ("org/.git/config", b"no")]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return start_server(root)


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    return place


def run(command, place):
    environment = {**os.environ, "HOME": str(place.parent), "LC_ALL": "C.UTF-8"}
    result = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def files_of(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_wget_mirrors_a_folder(server, place):
    run(["wget", "-q", "-r", "-np", "-nH", "--cut-dirs=1", "-e", "robots=off", "--restrict-file-names=nocontrol", f"{server.url}/files/"], place)
    found = {name: data for name, data in files_of(place).items() if Path(name).name != "index.html"}
    assert found == FILES


def test_rclone_lists_and_copies(server, place):
    remote = [f"--http-url={server.url}/files/", ":http:"]
    listed = run(["rclone", "--config=/dev/null", "lsf", "-R", "--files-only", "--format=sp", *remote], place)
    assert set(listed.splitlines()) == {f"{len(data)};{name}" for name, data in FILES.items()}
    run(["rclone", "--config=/dev/null", "copy", *remote, "copied"], place)
    assert files_of(place / "copied") == FILES


def test_lftp_mirrors_a_folder(server, place):
    run(["lftp", "-c", f"set http:accept-charset utf-8; set cmd:fail-exit yes; mirror {server.url}/files/ copied"], place)
    assert files_of(place / "copied") == FILES


def test_fsspec_lists_and_walks(server):
    found = json.loads(run_client("http", "walk", f"{server.url}/files/"))
    assert found == {name: len(data) for name, data in FILES.items()}
