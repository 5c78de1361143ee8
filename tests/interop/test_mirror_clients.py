"""The Hub's own clients, unchanged, against a server that mirrors a Hub: one that behaves like huggingface.co, and another
ztserve. They get what they would get from there, and from then on without it."""

import base64
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from environments import is_available
from hub_clients import OLDEST, TRANSFORMERS, HubClient, Raised, files_below, look_with_transformers
from hub_javascript import JavaScriptClient, install
from hub_repositories import WORDS, containers, joined, make_model, weight_shapes

import meddler as acts
from mock_hub import MockHub
from pull_through import MirrorServers, flip_at
from wire import eventually, get

# With --all, until they have run for longer.
pytestmark = pytest.mark.others

REPO = "org/model"
LARGE = containers.pattern(45 << 20)
GGUF = bytes(joined.gguf({"w": containers.pattern(4096)}))
LLAMA = os.environ.get("ZT_HUB_LLAMA")


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / REPO)


class Upstream:
    """A Hub, or a server over the same files."""

    def __init__(self, kind, served, folder, share_server):
        self.hub = self.server = None
        if kind == "hub":
            # It offers Xet, as the real one does; a mirror must not send clients there.
            self.hub = MockHub(page=5)
            self.hub.add(REPO, served)
            self.hub.add("org/large", {"large.bin": LARGE, "config.json": b"{}\n"})
            self.hub.add("org/gguf", {"tiny-Q8_0.gguf": GGUF, "README.md": b"# GGUF\n"})
            self.endpoint = self.hub.endpoint
        else:
            for repo, files in (("org/large", {"large.bin": LARGE}), ("org/gguf", {"tiny-Q8_0.gguf": GGUF})):
                (folder / repo).mkdir(parents=True)
                for name, content in files.items():
                    (folder / repo / name).write_bytes(content)
            self.server = share_server(folder)
            self.endpoint = self.server.url

    def commit(self, repo):
        return self.hub.repositories[repo].main.id if self.hub else get(self.server, f"/api/models/{repo}").json()["sha"]

    def close(self):
        if self.hub:
            self.hub.close()


@pytest.fixture(scope="module", params=["hub", "ztserve"])
def upstream(request, served, folder, share_server):
    made = Upstream(request.param, served, folder, share_server)
    yield made
    made.close()


@pytest.fixture(scope="module")
def mirror(upstream, share_server, tmp_path_factory):
    return MirrorServers(share_server, tmp_path_factory.mktemp("mirrors"))(upstream.endpoint)


@pytest.fixture
def client(mirror, new_client):
    return new_client(mirror.url)


def test_hf_download(client, served, upstream):
    """Odd names, an empty file, small and large ones; the commit is that of upstream, and the cache can be verified."""
    folder = Path(client.expect_hf("download", REPO).split()[-1])
    assert files_below(folder) == served
    assert folder.name == upstream.commit(REPO)
    if client.release != OLDEST:
        assert f"{len(served)} file(s)" in client.expect_hf("cache", "verify", REPO)


def test_the_cache_is_the_one_that_upstream_would_have_filled(client, served, upstream, new_client):
    client.expect_hf("download", REPO)
    straight = new_client(upstream.endpoint, HF_HUB_DISABLE_XET="1")
    straight.expect_hf("download", REPO)
    assert client.blobs == straight.blobs
    assert {path.name for path in client.home.glob("hub/models--*/snapshots/*")} == {
        path.name for path in straight.home.glob("hub/models--*/snapshots/*")
    }


def test_functions_of_the_library(client, served, upstream):
    commit = upstream.commit(REPO)
    assert client.call("model_info", REPO)["sha"] == commit
    assert sorted(client.call("list_files", REPO)) == sorted(served)
    found = client.call("file_metadata", REPO, "model.safetensors", commit)
    assert (found["commit"], found["size"]) == (commit, len(served["model.safetensors"]))
    pinned = client.call("snapshot", REPO, revision=commit, allow_patterns="*.json")
    assert files_below(pinned) == {name: content for name, content in served.items() if name.endswith(".json")}
    assert sorted(client.call("safetensors_metadata", REPO)["files"]["model.safetensors"]) == sorted(weight_shapes())
    assert client.call("glob", f"{REPO}/*.safetensors") == [f"{REPO}/model.safetensors"]
    part = bytes.fromhex(client.call("read_part", f"{REPO}/model.safetensors", 1000, 500))
    assert part == served["model.safetensors"][1000:1500]


def test_what_is_missing_is_said_to_be_missing(client):
    said = client.refused_hf("download", REPO, "nope.json")
    assert ("Entry Not Found" if client.release == OLDEST else "File not found") in said
    said = client.refused_hf("download", "org/none")
    assert "not found" in said.lower() and "connection" not in said.lower(), said
    with pytest.raises(Raised) as raised:
        client.call("download", REPO, "config.json", revision="nope")
    assert "RevisionNotFoundError" in raised.value.classes


def test_a_large_file(client):
    path = Path(client.expect_hf("download", "org/large", "large.bin").split()[-1])
    assert path.read_bytes() == LARGE


def test_without_upstream(served, new_client, mirror_of_own, tmp_path):
    """A second client, a command, and after a restart."""
    hub, server, again = mirror_of_own(served)
    new_client(server.url).expect_hf("download", REPO)
    hub.go_away()
    for _ in range(2):
        client = new_client(server.url)
        assert files_below(client.expect_hf("download", REPO).split()[-1]) == served
        said = client.refused_hf("download", "org/other")
        assert "upstream" in said.lower() or "503" in said, said
        assert server.stop() == 0
        server = again()


@pytest.fixture
def mirror_of_own(start_server, tmp_path):
    """A Hub with one repository and a server that mirrors it, for one test."""
    hub, mirrors = MockHub(page=5), MirrorServers(start_server, tmp_path)

    def make(files):
        hub.add(REPO, files)
        server = mirrors(hub.endpoint)
        return hub, server, lambda: mirrors.again(server, hub.endpoint)

    yield make
    hub.close()


@pytest.mark.parametrize("place", [1000, 22 << 20, len(LARGE) - 1000])
def test_a_flipped_bit_is_never_downloaded(new_client, mirror_of_own, place):
    """Clients hash nothing, and continue a download that was cut; in the end they have the right file or none."""
    hub, server, _ = mirror_of_own({"large.bin": LARGE})
    flip_at(hub, place)
    client = new_client(server.url)
    result = client.hf("download", REPO, "large.bin")
    if result.returncode == 0:
        assert Path(result.stdout.split()[-1]).read_bytes() == LARGE
    path = eventually(lambda: (found := client.hf("download", REPO, "large.bin")).returncode == 0 and found.stdout.split()[-1])
    assert Path(path).read_bytes() == LARGE


def test_clients_wait_while_upstream_limits_its_rate(new_client, mirror_of_own, served):
    """At the second try at the latest, when the limit is over."""
    hub, server, _ = mirror_of_own(served)
    hub.meddle(acts.reply(429, b"{}", Retry_After="1"), "info", "resolve", times=2)
    client = new_client(server.url)
    eventually(lambda: client.hf("download", REPO).returncode == 0)
    (folder,) = client.home.glob("hub/models--*/snapshots/*")
    assert files_below(folder) == served


def test_several_clients_at_once_cost_one_download(release, new_client, mirror_of_own):
    hub, server, _ = mirror_of_own({"large.bin": LARGE, "config.json": b"{}\n"})
    counted = hub.counting()
    clients = [new_client(server.url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda client: client.expect_hf("download", REPO, "large.bin").split()[-1], clients))
    assert all(Path(path).read_bytes() == LARGE for path in paths)
    assert counted.sent_bytes() <= 1.01 * len(LARGE), counted


@pytest.mark.parametrize("release", [OLDEST], indirect=True)
def test_hf_transfer(client):
    """It fetches ranges side by side."""
    client.environment["HF_HUB_ENABLE_HF_TRANSFER"] = "1"
    path = client.expect_hf("download", "org/large", "large.bin").split()[-1]
    assert Path(path).read_bytes() == LARGE


@pytest.mark.others
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name, mirror, folder, served, tmp_path):
    if not is_available(name):
        pytest.skip(f"{name} cannot be installed here")
    seen = look_with_transformers(HubClient(name, tmp_path / "a", mirror.url), "small", REPO)
    text = "the quick brown fox jumps over a lazy cat"
    assert seen["ids"] == [WORDS.index(word) if word in WORDS else 0 for word in text.split()]
    own, mirrored = look_with_transformers(HubClient(name, tmp_path / "b", mirror.url), "logits", folder / REPO, REPO)
    assert own == mirrored


@pytest.mark.others
def test_javascript(mirror, served, upstream, tmp_path):
    installed = install()
    if installed is None:
        pytest.skip("no Node.js with npm and its packages here")
    client = JavaScriptClient(installed, mirror.url)
    listed = {entry["path"] for entry in client.call("listFiles", REPO, {}) if entry["type"] == "file"}
    assert listed == set(served)
    assert client.call("modelInfo", REPO)["sha"] == upstream.commit(REPO)
    for name in ("config.json", "empty.txt", "model.safetensors", "a blank.txt"):
        assert base64.b64decode(client.call("downloadFile", REPO, name)) == served[name]
    assert client.call("downloadFile", REPO, "nope.json") is None
    part = client.call("downloadPart", REPO, "model.safetensors", 1000, 3000)
    assert base64.b64decode(part) == served["model.safetensors"][1000:3000]
    got = client.call("snapshot", "org/gguf", str(tmp_path / "cache"))
    assert base64.b64decode(got["tiny-Q8_0.gguf"]) == GGUF
    assert client.call("safetensors", REPO) == {"sharded": False, "names": sorted(weight_shapes())}


@pytest.mark.others
@pytest.mark.skipif(LLAMA is None, reason="ZT_HUB_LLAMA is not set")
def test_llama(mirror, tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path), "HF_ENDPOINT": mirror.url}
    result = subprocess.run([LLAMA, "org/gguf"], env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.splitlines()[-1]).read_bytes() == GGUF


@pytest.mark.parametrize("upstream", ["hub"], indirect=True)
def test_the_mock_satisfies_the_clients_itself(upstream, served, new_client):
    """What it says of them would otherwise prove little."""
    client = new_client(upstream.endpoint, HF_HUB_DISABLE_XET="1")
    assert files_below(client.expect_hf("download", REPO).split()[-1]) == served
    assert "not found" in client.refused_hf("download", REPO, "nope.json").lower()
