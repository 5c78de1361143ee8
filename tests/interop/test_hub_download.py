"""What the Hub's clients in Python download from a folder is byte for byte what lies there, and lands in their caches under
the names that their own tools expect."""

import hashlib
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy
from hub_clients import OLDEST, Raised, files_below
from hub_repositories import make_gguf, make_large, make_many, make_model

UNKNOWN_COMMIT = "0123456789" * 4
# Trap of the clients: with a status that they cannot read they advise this.
CONNECTION = "connection"


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server):
    make_large(folder / "org/large")
    make_large(folder / "org/larger", 60 << 20)
    make_many(folder / "org/many")
    make_gguf(folder / "single")
    return share_server(folder)


@pytest.fixture
def client(hub, new_client):
    return new_client(hub.url)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_hf_download_of_one_file(client, served):
    path = Path(client.expect_hf("download", "org/model", "config.json").split()[-1])
    assert path.read_bytes() == served["config.json"]
    assert path.is_relative_to(client.home / "hub/models--org--model/snapshots")


def test_hf_download_of_everything(client, served):
    """Odd names, an empty file and all; nothing hidden, nothing from outside."""
    folder = Path(client.expect_hf("download", "org/model").split()[-1])
    assert files_below(folder) == served
    assert client.blobs == {sha256(content) for content in served.values()}
    commit = (client.home / "hub/models--org--model/refs/main").read_text()
    assert folder.name == commit == client.call("model_info", "org/model")["sha"]


def test_hf_download_of_some_files_into_a_folder(client, served):
    client.expect_hf("download", "org/model", "--include", "*.json", "--local-dir", client.home / "d")
    assert files_below(client.home / "d") == {name: content for name, content in served.items() if name.endswith(".json")}


def test_what_is_missing_is_said_to_be_missing(client):
    said = client.refused_hf("download", "org/model", "nope.json")
    assert ("Entry Not Found" if client.release == OLDEST else "File not found") in said
    assert CONNECTION not in said.lower()
    said = client.refused_hf("download", "org/none")
    assert "not found" in said.lower()
    assert CONNECTION not in said.lower()


def test_an_absence_is_kept_under_the_commit(client):
    with pytest.raises(Raised) as raised:
        client.call("download", "org/model", "nope.json")
    assert "EntryNotFoundError" in raised.value.classes
    (kept,) = client.home.glob("hub/models--org--model/.no_exist/*/nope.json")
    assert kept.parent.name == client.call("model_info", "org/model")["sha"]


def test_revisions(client, served):
    commit = client.call("model_info", "org/model")["sha"]
    assert len(commit) == 40
    for revision in ("main", "HEAD", "refs/heads/main", commit):
        assert client.call("file_metadata", "org/model", "config.json", revision)["commit"] == commit
        assert client.call("model_info", "org/model", revision=revision)["sha"] == commit
    pinned = client.call("snapshot", "org/model", revision=commit, allow_patterns="*.json")
    assert Path(pinned).name == commit
    for revision in ("v1.0", UNKNOWN_COMMIT, "refs/pr/1"):
        with pytest.raises(Raised) as raised:
            client.call("download", "org/model", "config.json", revision=revision)
        assert "RevisionNotFoundError" in raised.value.classes, raised.value


def test_metadata_of_files(client, served):
    for name in ("config.json", "empty.txt", "model.safetensors", "sub/ü b+c#d%/e.txt"):
        found = client.call("file_metadata", "org/model", name)
        assert (found["etag"], found["size"]) == (sha256(served[name]), len(served[name]))


def test_datasets_and_spaces_are_not_here(client):
    for kind in ("dataset", "space"):
        with pytest.raises(Raised) as raised:
            client.call("snapshot", "org/model", repo_type=kind)
        assert "RepositoryNotFoundError" in raised.value.classes, raised.value


def test_a_repository_with_one_name(client):
    assert Path(client.call("download", "single", "README.md")).read_bytes() == b"# GGUF\n"


def test_a_second_download_finds_everything_in_the_cache(client, served, hub):
    first = Path(client.call("snapshot", "org/model"))
    changed = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    assert client.call("snapshot", "org/model") == str(first)
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == changed


def test_hf_cache_verify(client, served):
    if client.release == OLDEST:
        pytest.skip("this release cannot verify")
    folder = Path(client.expect_hf("download", "org/model").split()[-1])
    assert f"{len(served)} file(s)" in client.expect_hf("cache", "verify", "org/model")
    blob = (folder / "model.safetensors").resolve()
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)
    said = client.refused_hf("cache", "verify", "org/model")
    assert "verification failed" in said
    assert said.count("model.safetensors") == 1 and "config.json" not in said


def test_2500_files(client, folder):
    expected = files_below(folder / "org/many")
    assert len(expected) == 2500
    assert sorted(client.call("list_files", "org/many")) == sorted(expected)
    assert sorted(client.call("model_info", "org/many")["siblings"]) == sorted(expected)
    got = client.call("snapshot", "org/many", allow_patterns="part-3/*", max_workers=8)
    assert files_below(got) == {name: content for name, content in expected.items() if name.startswith("part-3/")}


def test_a_cut_connection_resumes(client, hub, folder):
    proxy = CuttingProxy(hub, after=25 << 20)
    client.environment["HF_ENDPOINT"] = proxy.url
    try:
        if client.release == OLDEST:
            # It goes on when it is called again.
            assert "IncompleteRead" in client.refused_hf("download", "org/large", "large.bin")
        path = client.expect_hf("download", "org/large", "large.bin").split()[-1]
        first, second = proxy.ranges("/large.bin")
    finally:
        proxy.close()
    assert Path(path).read_bytes() == (folder / "org/large/large.bin").read_bytes()
    assert (proxy.cuts, first) == (1, None)
    # Whole blocks of 10 MiB that it has.
    assert second == "bytes=20971520-"


@pytest.mark.parametrize("release", [OLDEST], indirect=True)
def test_hf_transfer_fetches_ranges_side_by_side(client, hub, folder):
    """It does so from 50 MiB on."""
    proxy = CuttingProxy(hub, after=1 << 40)
    client.environment.update(HF_ENDPOINT=proxy.url, HF_HUB_ENABLE_HF_TRANSFER="1")
    try:
        path = client.expect_hf("download", "org/larger", "large.bin").split()[-1]
        ranges = proxy.ranges("/large.bin")
    finally:
        proxy.close()
    assert Path(path).read_bytes() == (folder / "org/larger/large.bin").read_bytes()
    # It leaves a first answer unread, and asks for one byte that tells the size.
    pieces = [f"bytes={begin}-{begin + (10 << 20) - 1}" for begin in range(0, 60 << 20, 10 << 20)]
    assert sorted(ranges, key=str) == sorted([None, "bytes=0-0", *pieces], key=str)
