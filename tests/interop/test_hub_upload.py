"""The Hub's clients upload to a server here, unchanged: small files come within the commit, and what is there is not sent again."""

import pytest

from hub_clients import OLDEST, Raised, files_below
from hub_javascript import JavaScriptClient, install
from hub_repositories import text_files, write_files, zt_weights

FILES = {"sub/a b+c.txt": b"of a subfolder", "empty.txt": b"", "weights.zt": zt_weights(), **text_files()}


@pytest.fixture
def client(new_client, hub):
    return new_client(hub.url)


@pytest.fixture
def source(release, tmp_path):
    write_files(tmp_path / "source", FILES)
    if release != OLDEST:
        # It is told to leave this one out; the oldest then sends all others again, whatever it is told of them.
        (tmp_path / "source/.gitattributes").write_bytes(b"* text\n")
    return tmp_path / "source"


def versions(folder):
    """What tells a file from one that replaced it."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_folder(client, root, source, new_client, hub):
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    before = versions(root / "org/new")
    commit = client.call("model_info", "org/new")["sha"]
    client.expect_hf("upload", "org/new", source)
    assert versions(root / "org/new") == before
    assert client.call("model_info", "org/new")["sha"] == commit
    loaded = new_client(hub.url).call("snapshot", "org/new")
    assert files_below(loaded).items() >= FILES.items()


def test_a_file_replaces_another(client, root, source):
    client.call("create", "org/new")
    client.call("create", "org/new", exist_ok=True)
    first = client.call("upload_file", "org/new", str(source / "config.json"), "config.json")
    second = client.call("upload_file", "org/new", str(source / "generation_config.json"), "config.json")
    assert first != second
    assert client.call("model_info", "org/new")["sha"] == second
    assert files_below(root / "org/new") == {"config.json": FILES["generation_config.json"]}


def test_deleting(client, root, source):
    client.call("create", "org/new")
    client.call("upload_folder", "org/new", str(source))
    client.call("delete_file", "org/new", "config.json")
    client.call("delete_folder", "org/new", "sub")
    left = {name: content for name, content in FILES.items() if name not in ("config.json", "sub/a b+c.txt")}
    assert files_below(root / "org/new") == left
    with pytest.raises(Raised) as raised:
        client.call("delete_file", "org/new", "config.json")
    assert "EntryNotFoundError" in raised.value.classes
    assert files_below(root / "org/new") == left


def test_several_changes_at_once(client, root):
    client.call("create", "org/new")
    client.call("commit", "org/new", {"a.txt": "a", "b.txt": "b"})
    commit = client.call("commit", "org/new", {"a.txt": "other", "c/d.txt": "d"}, ["b.txt"])
    assert files_below(root / "org/new") == {"a.txt": b"other", "c/d.txt": b"d"}
    assert client.call("commits", "org/new")[0]["id"] == commit


def test_a_refused_commit_says_why_and_changes_nothing(client, root):
    client.call("create", "org/new")
    first = client.call("commit", "org/new", {"a.txt": "a"})
    client.call("commit", "org/new", {"a.txt": "b"})
    with pytest.raises(Raised) as stale:
        client.call("commit", "org/new", {"a.txt": "c"}, parent_commit=first)
    assert "412" in stale.value.message
    with pytest.raises(Raised) as broken:
        client.call("commit", "org/new", {"a.txt": "c", "config.json": "{"})
    assert "line 3" in broken.value.message
    assert files_below(root / "org/new") == {"a.txt": b"b"}


def test_a_server_that_only_reads(new_client, root, source, start_server):
    client = new_client(start_server(root).url)
    assert "turned off" in client.refused_hf("upload", "org/new", source)
    assert not list(root.glob("org"))


@pytest.fixture
def javascript(hub):
    folder = install()
    if folder is None:
        pytest.skip("no Node.js 18 with npm, or the package is not to be had")
    return JavaScriptClient(folder, hub.url)


def test_javascript(javascript, root):
    javascript.call("create", "org/new")
    first = javascript.call("upload", "org/new", "a/b.bin", 5 << 20)
    assert (root / "org/new/a/b.bin").read_bytes() == b"0123456789abcdef" * (5 << 16)
    second = javascript.call("upload", "org/new", "a/b.bin", 1)
    assert (root / "org/new/a/b.bin").read_bytes() == b"0"
    javascript.call("deleteFile", "org/new", "a/b.bin")
    assert first != second and files_below(root / "org/new") == {}
