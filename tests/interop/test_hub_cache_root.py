"""A folder that the Hub's clients have filled, served as it is: it states commits and hashes in its names, and other clients
read the same from it, also of a commit that is no longer `main`."""

import shutil
from pathlib import Path

import pytest

from hub_clients import OLDEST, RELEASES, HubClient, files_below
from hub_repositories import make_model, write_files

NEW_CONFIG = b'{"model_type": "other"}\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("first") / "root/org/model")


@pytest.fixture(scope="module", params=[RELEASES[0], OLDEST])
def cache(request, served, tmp_path_factory, share_server):
    """A client's cache with two commits of a repository, of which the first was asked for by its name: (folder, commits)."""
    root = tmp_path_factory.mktemp("first") / "root"
    write_files(root / "org/model", served)
    server = share_server(root)
    client = HubClient(request.param, tmp_path_factory.mktemp("home"), server.url)
    old = Path(client.call("snapshot", "org/model")).name
    write_files(root / "org/model", {"config.json.new": NEW_CONFIG})
    (root / "org/model/config.json.new").rename(root / "org/model/config.json")
    while (new := Path(client.call("snapshot", "org/model")).name) == old:
        pass
    return client.home / "hub", old, new


@pytest.fixture
def hub(cache, start_server, tmp_path):
    """Of a copy, as servers write beside what they serve."""
    shutil.copytree(cache[0], tmp_path / "root", symlinks=True)
    return start_server(tmp_path / "root")


def test_main_is_the_newer_commit(hub, cache, served, new_client):
    _, _, new = cache
    client = new_client(hub.url)
    folder = Path(client.call("snapshot", "org/model"))
    assert folder.name == new
    assert files_below(folder) == {**served, "config.json": NEW_CONFIG}
    assert [name for name in client.call("list_models") if name.startswith("org/")] == ["org/model"]


def test_hashes_are_known_at_once(hub, cache, new_client):
    client = new_client(hub.url)
    tree = client.call("tree", "org/model", recursive=True)
    blobs = {path.name for path in (cache[0] / "models--org--model/blobs").iterdir()}
    assert {entry["lfs"]["sha256"] for entry in tree.values() if entry["type"] == "file"} <= blobs
    if client.release != OLDEST:
        client.expect_hf("download", "org/model")
        client.expect_hf("cache", "verify", "org/model")


def test_the_older_commit_is_there_too(hub, cache, served, new_client):
    _, old, _ = cache
    client = new_client(hub.url)
    folder = Path(client.call("snapshot", "org/model", revision=old))
    assert (folder.name, files_below(folder)) == (old, served)
