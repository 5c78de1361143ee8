"""llama.cpp's own downloader, unchanged, finds and fetches the GGUF file of a repository (`llama-server -hf`).

ZT_HUB_LLAMA is the program; it takes minutes to fetch and build, so only tests/interop/hub_clients.sh does."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy
from hub_repositories import containers, joined, make_gguf, write_files

PROGRAM = os.environ.get("ZT_HUB_LLAMA")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="ZT_HUB_LLAMA is not set")
LARGE = {"w": containers.pattern(45 << 20)}


@pytest.fixture(scope="module")
def hub(folder, share_server):
    make_gguf(folder / "org/gguf")
    write_files(folder / "org/split", joined.files_of_split("tiny-Q8_0", [b"first part", b"second part"]))
    write_files(folder / "org/large", {"large-Q8_0.gguf": joined.gguf(LARGE)})
    return share_server(folder)


def run(home, url, repo):
    environment = {**os.environ, "HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": url}
    return subprocess.run([PROGRAM, repo], env=environment, capture_output=True, text=True, timeout=240)


def fetched(home, url, repo):
    result = run(home, url, repo)
    assert result.returncode == 0, result.stderr
    return Path(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("repo", ["org/gguf", "org/gguf:Q8_0"])
def test_a_model_is_found_and_fetched(hub, folder, tmp_path, repo):
    path = fetched(tmp_path, hub.url, repo)
    content = (folder / "org/gguf/tiny-Q8_0.gguf").read_bytes()
    assert path.read_bytes() == content
    # Named as huggingface_hub names it: they share one cache.
    assert path.resolve().name == hashlib.sha256(content).hexdigest()


def test_every_part_of_a_split_model(hub, folder, tmp_path):
    path = fetched(tmp_path, hub.url, "org/split")
    got = {found.name: found.read_bytes() for found in path.parent.iterdir()}
    assert got == {found.name: found.read_bytes() for found in (folder / "org/split").glob("*.gguf")}
    assert len(got) == 2


def test_a_cut_download_goes_on(hub, folder, tmp_path):
    proxy = CuttingProxy(hub, after=25 << 20)
    try:
        path = fetched(tmp_path, proxy.url, "org/large")
        ranges = proxy.ranges("/large-Q8_0.gguf")
    finally:
        proxy.close()
    assert path.read_bytes() == (folder / "org/large/large-Q8_0.gguf").read_bytes()
    assert proxy.cuts == 1 and int(ranges[-1].split("=")[1].rstrip("-")) > 20 << 20


def test_nothing_there(hub, tmp_path):
    result = run(tmp_path, hub.url, "org/none")
    assert (result.returncode, result.stdout) == (1, "")
