"""What the Hub's clients in Python upload lies in the folder byte for byte, all of a commit or nothing; what is there already
is not sent again."""

import json
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy
from hub_clients import OLDEST, Raised, files_below
from hub_repositories import ODD_NAMES, containers, convert, text_files, write_files, zt_weights

WITHOUT_XET = {"HF_HUB_DISABLE_XET": "1"}
LARGE = containers.pattern(30 << 20, seed=5)
SMALL = {**text_files(), "sub/deeper/notes.txt": b"notes\n", **{name: name.encode() for name in ODD_NAMES}}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def hub(root, start_server):
    return start_server(root, "--writable")


@pytest.fixture
def source(tmp_path):
    """A folder to upload, with weights."""
    folder = tmp_path / "source"
    write_files(folder, SMALL)
    convert(folder, zt_weights(), "model.safetensors")
    return folder


def commit_of(client, repo="org/new"):
    return client.call("model_info", repo)["sha"]


def stored(root, repo="org/new"):
    """Without what the server may keep for itself under hidden names."""
    files = files_below(root / repo)
    return {name: content for name, content in files.items() if not any(part.startswith(".") for part in Path(name).parts)}


@pytest.mark.parametrize("variables", [{}, WITHOUT_XET], ids=["xet-installed", "xet-off"])
def test_hf_upload_of_a_folder(hub, root, source, new_client, variables):
    client = new_client(hub.url, **variables)
    client.expect_hf("upload", "org/new", source)
    assert stored(root) == files_below(source)
    info = client.call("model_info", "org/new")
    assert sorted(info["siblings"]) == sorted(files_below(source))
    got = Path(client.call("snapshot", "org/new"))
    assert (got.name, files_below(got)) == (info["sha"], files_below(source))


def posts(proxy, path):
    return [head for head in proxy.requests if head.startswith("POST") and path in head.split(" ")[1]]


def test_what_is_there_already_is_not_sent_again(hub, source, new_client):
    client = new_client(hub.url, **WITHOUT_XET)
    client.call("create", "org/new")
    first = client.call("upload_folder", "org/new", str(source))
    proxy = CuttingProxy(hub, after=1 << 40)
    again = new_client(proxy.url, **WITHOUT_XET)
    try:
        again.expect_hf("upload", "org/new", source)
        assert posts(proxy, "/preupload/") and not posts(proxy, "/commit/") and not posts(proxy, "/info/lfs/")
        (source / "config.json").write_bytes(b'{"changed": true}\n')
        again.expect_hf("upload", "org/new", source)
        (sent,) = posts(proxy, "/commit/")
    finally:
        proxy.stop()
    if client.release != OLDEST:
        # That one sends all of them in a commit with any change.
        fields = dict(line.lower().split(": ", 1) for line in sent.split("\r\n")[1:])
        assert int(fields.get("content-length", 0)) < 5000
    assert commit_of(client) != first
    assert client.call("safetensors_metadata", "org/new")["sharded"] is False


def test_a_large_file(hub, root, new_client, tmp_path):
    """Through the store for large files, then the commit that names it."""
    large = tmp_path / "large.bin"
    large.write_bytes(LARGE)
    client = new_client(hub.url, **WITHOUT_XET)
    client.call("create", "org/new")
    commit = client.call("upload_file", "org/new", str(large), "data/large.bin")
    assert stored(root) == {"data/large.bin": LARGE}
    assert commit_of(client) == commit
    assert Path(client.call("download", "org/new", "data/large.bin")).read_bytes() == LARGE
    # The same bytes under another name are there already.
    proxy = CuttingProxy(hub, after=1 << 40)
    try:
        other = new_client(proxy.url, **WITHOUT_XET)
        other.call("upload_file", "org/new", str(large), "data/copy.bin")
        assert not [head for head in proxy.requests if head.startswith("PUT")]
    finally:
        proxy.stop()
    assert stored(root) == {"data/large.bin": LARGE, "data/copy.bin": LARGE}


def test_deleting_files_and_folders(hub, root, source, new_client):
    client = new_client(hub.url)
    client.expect_hf("upload", "org/new", source)
    assert client.call("delete_file", "org/new", "README.md") == commit_of(client)
    client.call("delete_folder", "org/new", "sub")
    left = {name: content for name, content in files_below(source).items() if name != "README.md" and name[:4] != "sub/"}
    assert stored(root) == left
    assert sorted(client.call("list_files", "org/new")) == sorted(left)
    with pytest.raises(Raised):
        client.call("delete_file", "org/new", "README.md")
    assert stored(root) == left


def test_several_changes_in_one_commit(hub, root, new_client):
    client = new_client(hub.url)
    client.call("create", "org/new")
    first = client.call("commit", "org/new", {"a.txt": "a", "b.txt": "b", "sub/c.txt": "c"})
    second = client.call("commit", "org/new", {"a.txt": "changed", "d.txt": "d"}, ["b.txt"], parent_commit=first)
    wanted = {"a.txt": b"changed", "d.txt": b"d", "sub/c.txt": b"c"}
    assert (stored(root), commit_of(client)) == (wanted, second)
    for added, deleted, parent in (
        ({"late.txt": "x"}, [], first),
        ({"new.txt": "x"}, ["nope.txt"], None),
        ({"fine.txt": "x", "bad.json": "{"}, [], None),
        ({"fine.txt": "x", "bad.safetensors": "no header"}, [], None),
        ({"fine.txt": "x", "sub/../../../outside.txt": "x"}, [], None),
        ({"fine.txt": "x", "d.txt/below.txt": "a file is no folder"}, [], None),
    ):
        with pytest.raises(Raised):
            client.call("commit", "org/new", added, deleted, parent_commit=parent)
        assert (stored(root), commit_of(client)) == (wanted, second), added


def test_creating_repositories(hub, root, new_client):
    client = new_client(hub.url)
    assert client.call("create", "org/empty").endswith("/org/empty")
    assert client.call("exists", "org/empty", "config.json") == [True, False]
    assert client.call("list_files", "org/empty") == []
    assert client.call("create", "org/empty", exist_ok=True).endswith("/org/empty")
    with pytest.raises(Raised) as raised:
        client.call("create", "org/empty")
    assert "409" in str(raised.value)
    with pytest.raises(Raised):
        client.call("upload_file", "org/none", __file__, "test.py")
    assert not (root / "org/none").exists()


def test_a_server_that_only_reads(root, start_server, new_client, source):
    client = new_client(start_server(root).url)
    client.refused_hf("upload", "org/new", source)
    assert not (root / "org").exists()


def test_hf_upload_of_one_file(hub, root, new_client, tmp_path):
    client = new_client(hub.url)
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\n# A card\n")
    client.expect_hf("upload", "org/new", card)
    assert stored(root) == {"README.md": card.read_bytes()}
    if client.release != OLDEST:
        listed = json.loads(client.expect_hf("models", "ls", "--author", "org", "--format", "json"))
        assert [one["id"] for one in listed] == ["org/new"]
