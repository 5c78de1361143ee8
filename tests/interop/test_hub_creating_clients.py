"""The Hub's clients create repositories, unchanged, and fill them where the answer says that they are."""


import pytest

from hub_clients import OLDEST, Raised, files_below
from hub_javascript import JavaScriptClient, Thrown, install
from hub_repositories import text_files, zt_weights

from clients import Client, write_tokens

FILES = {"weights.zt": zt_weights(), "sub/a b.txt": b"of a subfolder", **text_files()}
ANNA = Client("anna", "write", "anna/*")


@pytest.fixture
def client(new_client, hub):
    return new_client(hub.url)


def test_a_repository_without_files_exists(client):
    assert client.call("exists", "org/new", "config.json") == [False, False]
    client.call("create", "org/new")
    assert client.call("exists", "org/new", "config.json") == [True, False]
    assert client.call("list_files", "org/new") == []
    with pytest.raises(Raised) as raised:
        client.call("create", "org/new")
    assert "409" in raised.value.message
    client.call("create", "org/new", exist_ok=True)


def test_a_file_for_a_repository_that_is_not_there(client, root, source):
    with pytest.raises(Raised) as raised:
        client.call("upload_file", "org/none", str(source / "config.json"), "config.json")
    assert "RepositoryNotFoundError" in raised.value.classes
    assert not (root / "org").exists()


def test_a_name_without_an_owner(client, root, source):
    for _ in range(2):
        client.expect_hf("upload", "solo", source / "config.json")
    assert files_below(root / "anonymous/solo") == {"config.json": FILES["config.json"]}
    assert not (root / "solo").exists()


def test_a_name_without_an_owner_with_a_token(new_client, root, source, tmp_path, start_server):
    tokens = write_tokens(tmp_path / "tokens", ANNA)
    client = new_client(start_server(root, "--writable", "--tokens", tokens).url, token=ANNA.token)
    client.expect_hf("upload", "solo", source / "config.json")
    assert files_below(root / "anna/solo") == {"config.json": FILES["config.json"]}
    assert not (root / "solo").exists()


@pytest.mark.parametrize("release", [OLDEST], indirect=True)
def test_a_large_folder(client, root, source):
    client.expect_hf("upload-large-folder", "org/lf", source, "--repo-type", "model")
    assert files_below(root / "org/lf") == FILES


def test_javascript(hub, root):
    folder = install()
    if folder is None:
        pytest.skip("no Node.js 18 with npm, or the package is not to be had")
    client = JavaScriptClient(folder, hub.url)
    with pytest.raises(Thrown) as thrown:
        client.call("create", "org/new", "config.json")
    assert thrown.value.args[1] == 501
    assert not (root / "org").exists()
    assert client.call("create", "org/new")["id"] == "org/new"
    assert client.call("listFiles", "org/new", {}) == []
