"""Links within the root, as commits meet them: no folder is emptied where one leads, and no token writes there that could not do so itself."""

import pytest

from clients import Client, write_tokens
from lfs import REPO, assert_refused, commit, inline, lfs_file, removed, removed_folder, stage
from uploads import fill
from wire import eventually, get

pytestmark = pytest.mark.folder("links")

TEAM = Client("team", "write", f"{REPO}/*")
PART = Client("part", "write", f"{REPO}/open", f"{REPO}/open/*")
OWNER = Client("owner", "write")
OTHER = {"secret.txt": b"sss", "sub/k.txt": b"k"}
OWN = {"open/a.txt": b"a", "private/key.txt": b"key"}


def files_of(folder):
    """Those that no link leads to."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.resolve() == folder.resolve() / path.relative_to(folder)}


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "org/other", OTHER)
    fill(tmp_path / REPO, OWN)
    (tmp_path / REPO / "lk").symlink_to("../other")
    (tmp_path / REPO / "open/lk").symlink_to("../private")
    (tmp_path / REPO / "open/f.txt").symlink_to("../../other/secret.txt")
    (tmp_path / REPO / "abs").symlink_to(tmp_path / "org/other")
    return tmp_path


@pytest.fixture
def server(root, tmp_path_factory, start_server):
    tokens = tmp_path_factory.mktemp("links") / "tokens"
    server = start_server(root, "--writable", "--tokens", write_tokens(tokens, TEAM, PART, OWNER))
    assert OWNER.get(server, f"/{REPO}/resolve/main/lk/secret.txt").status == 307
    return server


def assert_unchanged(root):
    assert files_of(root / "org/other") == OTHER
    assert files_of(root / REPO) == OWN


def assert_no_place(answer, *words):
    assert_refused(answer, 409, *words)
    assert answer["X-Error-Code"] == "EntryNotFound"


@pytest.mark.parametrize("client", [TEAM, OWNER], ids=["team", "owner"])
@pytest.mark.parametrize("folder, link", [("lk", "lk"), ("lk/", "lk"), ("abs", "abs"), ("open/lk", "open/lk"), ("open", "open/lk")])
def test_no_folder_is_emptied_where_a_link_leads(root, server, client, folder, link):
    assert_no_place(commit(server, inline("new", b"1"), removed_folder(folder), fields=client.fields), "line 3", f"{link} is a link")
    assert_unchanged(root)


def test_nor_without_tokens(root, start_server):
    server = start_server(root, "--writable")
    assert eventually(lambda: get(server, f"/{REPO}/resolve/main/lk/secret.txt").status == 307)
    assert_no_place(commit(server, removed_folder("lk")), "line 2", "lk is a link")
    assert_unchanged(root)
    assert commit(server, removed("lk/secret.txt"), inline("lk/new.txt", b"1")).status == 200
    assert files_of(root / "org/other") == {"sub/k.txt": b"k", "new.txt": b"1"}


@pytest.mark.parametrize(
    "line",
    [inline("lk/new.txt", b"1"), inline("lk/new/folder/f", b"1"), inline("abs/secret.txt", b"1"), lfs_file("lk/sent", b"sent"), lfs_file("lk/copy", b"a")]
    + [removed("lk/secret.txt"), removed("abs/sub/k.txt"), removed_folder("lk/sub")],
)
def test_a_token_reaches_no_other_repository(root, server, line):
    stage(server, b"sent", fields=TEAM.fields)
    assert_no_place(commit(server, inline("new", b"1"), line, fields=TEAM.fields), "line 3", "is a link to a place where")
    assert_unchanged(root)


@pytest.mark.parametrize("line", [inline("open/lk/new", b"1"), inline("open/lk/key.txt", b"1"), removed("open/lk/key.txt")])
def test_a_token_reaches_no_other_folder(root, server, line):
    assert_no_place(commit(server, line, fields=PART.fields), "line 2: open/lk is a link to a place where")
    assert_unchanged(root)
    assert commit(server, line, fields=TEAM.fields).status == 200
    assert files_of(root / REPO) != OWN


def test_who_may_write_there_does(root, server):
    assert commit(server, inline("lk/new/f", b"1"), removed("lk/secret.txt"), removed_folder("lk/sub"), fields=OWNER.fields).status == 200
    assert files_of(root / "org/other") == {"new/f": b"1"}


def test_a_link_to_a_file_is_replaced(root, server):
    assert commit(server, inline("open/f.txt", b"new"), fields=PART.fields).status == 200
    assert files_of(root / "org/other") == OTHER
    assert files_of(root / REPO) == {**OWN, "open/f.txt": b"new"}


def test_a_repository_may_be_a_link(root, server):
    (root / REPO).rename(root / "elsewhere")
    (root / REPO).symlink_to("../elsewhere")
    (root / "elsewhere/lk").unlink()
    (root / "elsewhere/lk").symlink_to("../org/other")
    assert eventually(lambda: commit(server, inline("open/new", b"1"), fields=PART.fields).status == 200)
    assert commit(server, inline("open/lk/x", b"1"), removed("private/key.txt"), fields=TEAM.fields).status == 200
    assert commit(server, inline("open/lk/x", b"2"), fields=PART.fields).status == 409
    assert commit(server, inline("lk/x", b"2"), fields=TEAM.fields).status == 409
    assert (root / "elsewhere/private/x").read_bytes() == b"1"
