"""Repositories that are created before anything is committed to them."""

import os

import pytest

from clients import Client, write_tokens
from lfs import assert_refused, commit, commit_lines, header, inline, post, removed, removed_folder
from wire import get
from xet import token_answer

REPO = "org/new"
# SHA-1 of nothing: the commit of no files.
NO_FILES = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
BUCKET = bool(os.environ.get("ZT_S3"))


@pytest.fixture(scope="module")
def shared(folder, share_server):
    return share_server(folder, "--writable")


def create(server, name, owner=None, **fields):
    return post(server, "/api/repos/create", {"name": name, "type": "model", **({"organization": owner} if owner else {})}, **fields)


def created(server, *names, **fields):
    answer = create(server, *names, **fields)
    assert answer.status == 200, answer.body
    told = answer.json()
    assert told["name"] == told["id"] and told["url"].endswith("/" + told["id"])
    return told["id"]


def preupload(server, repo, **fields):
    return post(server, f"/api/models/{repo}/preupload/main", {"files": [{"path": "a", "size": 1}]}, **fields)


def assert_no_repository(answer):
    assert (answer.status, answer["X-Error-Code"]) == (404, "RepoNotFound"), answer.body


def assert_empty(server, repo):
    for target in (f"/api/models/{repo}", f"/api/models/{repo}/revision/main", f"/api/models/{repo}/revision/{NO_FILES}?expand=xetEnabled"):
        answer = get(server, target)
        assert answer.status == 200, (target, answer.body)
        told = answer.json()
        assert (told["id"], told["sha"], told["siblings"]) == (repo, NO_FILES, [])
    assert get(server, f"/api/models/{repo}/tree/main?recursive=true").json() == []
    assert [one["targetCommit"] for one in get(server, f"/api/models/{repo}/refs").json()["branches"]] == [NO_FILES]
    assert [one["id"] for one in get(server, f"/api/models/{repo}/commits/main").json()] == [NO_FILES]
    absent = get(server, f"/{repo}/resolve/main/config.json")
    assert (absent.status, absent["X-Error-Code"]) == (404, "EntryNotFound")


def test_a_repository_is_there_before_its_first_commit(server):
    assert_no_repository(get(server, f"/api/models/{REPO}"))
    assert created(server, "new", "org") == REPO
    assert_empty(server, REPO)
    assert preupload(server, REPO).status == 200
    # The list is one of what there is to load.
    assert get(server, "/api/models").json() == []
    answer = commit_lines(server, header(parentCommit=NO_FILES), inline("f", b"1"), repo=REPO)
    assert answer.status == 200, answer.body
    assert [one["rfilename"] for one in get(server, f"/api/models/{REPO}").json()["siblings"]] == ["f"]


def test_creating_again(server):
    first = create(server, "new", "org")
    for _ in range(2):
        again = create(server, "new", "org")
        assert_refused(again, 409, "exists")
        assert again.json()["url"] == first.json()["url"]
        assert commit(server, inline("f", b"1"), repo=REPO).status == 200


def test_an_owner_in_the_name(server):
    assert created(server, REPO) == REPO
    assert create(server, "new", "org").status == 409


def test_the_owner_of_repositories_is_none_itself(server):
    created(server, "new", "org")
    assert_no_repository(get(server, "/api/models/org"))


@pytest.mark.folder("a bucket has no folders without files")
def test_it_is_a_folder(tmp_path, start_server):
    (tmp_path / "org/by-hand").mkdir(parents=True)
    server = start_server(tmp_path, "--writable")
    created(server, "new", "org")
    assert (tmp_path / REPO).is_dir()
    other = start_server(tmp_path)
    assert_empty(other, REPO)
    assert_empty(other, "org/by-hand")
    assert_no_repository(get(other, "/api/models/org"))
    (tmp_path / "org/by-hand/sub/.hidden").mkdir(parents=True)
    assert get(other, "/api/models/org/by-hand").json()["siblings"] == []


@pytest.mark.folder("no name in a bucket is in another's way")
@pytest.mark.parametrize("make", ["file", "file above", "link out of the root"])
def test_something_else_has_the_name(tmp_path, start_server, make):
    root = tmp_path / "root"
    (root / "org").mkdir(parents=True)
    if make == "file":
        (root / REPO).write_bytes(b"1")
    elif make == "file above":
        (root / "org").rmdir()
        (root / "org").write_bytes(b"1")
    else:
        (root / "org").rmdir()
        (root / "org").symlink_to(tmp_path)
    assert_refused(create(start_server(root, "--writable"), "new", "org"), 400, "is not a folder")
    assert not (tmp_path / "new").exists()


# --- whose it is ---


def test_without_an_owner_it_is_everybodys(server):
    repo = created(server, "solo")
    who = get(server, "/api/whoami-v2", Authorization="Bearer anything").json()["name"]
    assert repo == f"{who}/solo"
    assert_empty(server, repo)


def test_without_an_owner_it_is_the_clients_own(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    anna, ben, api = Client("anna", "write", "anna/*"), Client("ben", "write", "org/*"), Client("api", "write")
    server = start_server(tmp_path / "root", "--writable", "--tokens", write_tokens(tmp_path / "tokens", anna, ben, api))
    assert created(server, "solo", **anna.fields) == "anna/solo"
    assert get(server, "/api/models/anna/solo", **anna.fields).status == 200
    assert_no_repository(get(server, "/api/models/anna/solo", **ben.fields))
    # Globs hold for it as for any other.
    assert_refused(create(server, "solo", **ben.fields), 403)
    assert created(server, "solo", "org", **ben.fields) == "org/solo"
    # No owner can be called so.
    assert created(server, "solo", **api.fields) == "solo"
    assert preupload(server, "solo", **api.fields).status == 200


# --- what is not created ---


@pytest.mark.parametrize(
    "body, status",
    [
        ({}, 400),
        ({"name": 1}, 400),
        ({"name": ".."}, 400),
        ({"name": "a/b/c"}, 400),
        ({"name": "b/c", "organization": "a"}, 400),
        ({"name": "x" * 300}, 400),
        ({"name": "x", "organization": "v1"}, 400),
        ({"name": "v1/x"}, 400),
        ({"name": "x", "type": "dataset"}, 501),
        ({"name": "x", "files": [{"path": "a", "content": "YQ==", "encoding": "base64"}]}, 501),
        ([], 400),
    ],
)
def test_creating_what_cannot_be(folder, shared, body, status):
    assert_refused(post(shared, "/api/repos/create", body), status)
    assert not [path for path in folder.iterdir() if not path.name.startswith(".")]


def test_no_files_are_none(server):
    assert post(server, "/api/repos/create", {"name": REPO, "files": []}).status == 200
    assert_empty(server, REPO)


@pytest.mark.folder("a bucket's repositories may be known to another server")
@pytest.mark.parametrize("lines", [[], [removed("f")], [removed_folder("d"), removed("f")]])
def test_without_files_no_repository_begins(tmp_path, server, lines):
    assert_no_repository(commit(server, *lines, repo="org/absent"))
    assert_no_repository(commit_lines(server, header(parentCommit="0" * 40), *lines, repo="org/absent"))
    assert not (tmp_path / "org").exists()
    assert create(server, "absent", "org").status == 200
    assert commit(server, repo="org/absent").status == 200
    removal = commit(server, removed("f"), repo="org/absent")
    assert (removal.status, removal["X-Error-Code"]) == (404, "EntryNotFound")


def test_nothing_is_sent_for_a_repository_that_is_not_there(server):
    for answer in (preupload(server, "org/none"), token_answer(server, "org/none")):
        if BUCKET:
            # Another server may have created it.
            assert answer.status == 200
        else:
            assert_no_repository(answer)
    # A commit begins it.
    assert commit(server, inline("f", b"1"), repo="org/none").status == 200
    assert preupload(server, "org/none").status == token_answer(server, "org/none").status == 200
