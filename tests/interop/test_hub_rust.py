"""The Hub's client in Rust, unchanged: hf-hub 0.4, which candle uses, and 1.0.

ZT_HUB_RUST is the folder of the two programs; they take minutes to build, so only tests/interop/hub_clients.sh does."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from hub_clients import files_below
from hub_repositories import containers, make_large, make_model

PROGRAMS = os.environ.get("ZT_HUB_RUST")
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="ZT_HUB_RUST is not set")
TIMEOUT_S = 240
NEW, OLD = "hub-1-0", "hub-0-4"


class Failed(Exception):
    pass


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server):
    make_large(folder / "org/large")
    return share_server(folder)


def run(home, url, program, *arguments):
    environment = {**os.environ, "HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": url}
    command = [Path(PROGRAMS, program), *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    if result.returncode != 0:
        raise Failed(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def test_0_4_reads(hub, served, folder, tmp_path):
    info = run(tmp_path, hub.url, OLD, "info", "org/model")
    assert sorted(info["siblings"]) == sorted(served)
    for name in ("config.json", "empty.txt", "model.safetensors", "onnx/config.json"):
        path = Path(run(tmp_path, hub.url, OLD, "get", "org/model", name))
        assert path.read_bytes() == served[name]
        assert info["sha"] in path.parts
    path = Path(run(tmp_path, hub.url, OLD, "get-in-parts", "org/large", "large.bin"))
    assert path.read_bytes() == (folder / "org/large/large.bin").read_bytes()
    for missing in (("org/model", "nope.json"), ("org/none", "config.json")):
        with pytest.raises(Failed, match="404"):
            run(tmp_path, hub.url, OLD, "get", *missing)


def test_1_0_reads(hub, served, tmp_path):
    info = run(tmp_path, hub.url, NEW, "info", "org", "model")
    assert sorted(info["siblings"]) == sorted(served)
    assert set(served) < set(run(tmp_path, hub.url, NEW, "tree", "org", "model"))
    path = Path(run(tmp_path, hub.url, NEW, "get", "org", "model", "config.json"))
    assert path.read_bytes() == served["config.json"]
    folder = Path(run(tmp_path, hub.url, NEW, "snapshot", "org", "model"))
    assert (folder.name, files_below(folder)) == (info["sha"], served)
    assert run(tmp_path, hub.url, NEW, "exists", "org", "model", "config.json") == [True, True]
    assert run(tmp_path, hub.url, NEW, "exists", "org", "model", "nope.json") == [True, False]
    with pytest.raises(Failed, match="EntryNotFound"):
        run(tmp_path, hub.url, NEW, "get", "org", "model", "nope.json")
    with pytest.raises(Failed, match="RepoNotFound"):
        run(tmp_path, hub.url, NEW, "snapshot", "org", "none")


def test_1_0_uploads(start_server, tmp_path):
    """All of a file in the commit itself."""
    root, source = tmp_path / "root", tmp_path / "source.bin"
    root.mkdir()
    source.write_bytes(containers.pattern(30 << 20, seed=9))
    url = start_server(root, "--writable").url
    run(tmp_path, url, NEW, "create", "org", "new")
    assert len(run(tmp_path, url, NEW, "upload", "org", "new", source, "data/source.bin")) == 40
    assert (root / "org/new/data/source.bin").read_bytes() == source.read_bytes()
    run(tmp_path, url, NEW, "delete", "org", "new", "data/source.bin")
    assert not (root / "org/new/data/source.bin").exists()
