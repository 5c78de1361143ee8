"""What a client whose token covers only some files of a repository learns of the others, and does to them, by uploading."""

import pytest

import xet
from clients import Client, write_tokens
from lfs import (
    REPO, assert_refused, batch, commit, entry, files_of, inline, lfs_file,
    objects_of, oid_of, post, put, removed, removed_folder, target_of,
)  # fmt: skip
from test_hub_copies import copy_of

PART = Client("part", "write", f"{REPO}/open/*")
ODD = Client("odd", "write", f"{REPO}/mixed", f"{REPO}/mixed/a*")
OWNER = Client("owner", "write")
SECRET = b"the content of a key"
FILES = {"open/a.txt": b"a", "private/key.txt": SECRET, "mixed/a": b"1", "mixed/b": b"2"}


@pytest.fixture
def server(tmp_path_factory, tmp_path, start_server):
    tokens = tmp_path_factory.mktemp("write-rights") / "tokens"
    server = start_server(tmp_path, "--writable", "--tokens", write_tokens(tokens, PART, ODD, OWNER))
    lines = [inline(path, content) for path, content in FILES.items()]
    assert commit(server, *lines, fields=OWNER.fields).status == 200
    return server


def verify(server, client, size):
    return post(server, f"/{REPO}.git/info/lfs/verify", {"oid": oid_of(SECRET), "size": size}, **client.fields)


def test_an_object_that_may_not_be_seen_is_to_be_sent(tmp_path, server):
    guessed, wrong = entry(SECRET), {**entry(SECRET), "size": 1}
    assert ["actions" in one for one in objects_of(batch(server, guessed, fields=OWNER.fields))] == [False]
    told = objects_of(batch(server, guessed, wrong, fields=PART.fields))
    assert all("actions" in one and "error" not in one for one in told)
    upload = next(one for one in told if one["size"] == len(SECRET))["actions"]["upload"]
    assert put(server, target_of(upload["href"]), SECRET).status == 200
    assert commit(server, lfs_file("open/mine.txt", SECRET), fields=PART.fields).status == 200
    assert files_of(tmp_path)["open/mine.txt"] == SECRET


def test_it_cannot_be_verified(server):
    for size in (len(SECRET), 1):
        hidden = verify(server, PART, size)
        assert (hidden.status, hidden["X-Error-Code"]) == (404, "EntryNotFound")
    assert verify(server, OWNER, len(SECRET)).status == 200


@pytest.mark.parametrize("line", [copy_of("open/copy.txt", SECRET), lfs_file("open/copy.txt", SECRET)])
def test_it_is_not_copied(tmp_path, server, line):
    assert_refused(commit(server, line, fields=PART.fields), 400, "line 2: open/copy.txt: no object with this oid")
    assert files_of(tmp_path) == FILES
    assert commit(server, line, fields=OWNER.fields).status == 200


def test_what_is_seen_is_copied(tmp_path, server):
    assert commit(server, copy_of("open/copy.txt", b"a"), fields=PART.fields).status == 200
    assert files_of(tmp_path)["open/copy.txt"] == b"a"


def test_by_xet_it_is_put_together(tmp_path, server):
    session = xet.Session(server, REPO, **PART.fields)
    assert session.describe(xet.shard(xet.file_of([xet.term(b"x" * 32, 5, 0, 1)], xet.sha256(SECRET)))).status >= 400
    session.upload(SECRET)
    assert commit(server, lfs_file("open/mine.txt", SECRET), fields=PART.fields).status == 200
    assert files_of(tmp_path)["open/mine.txt"] == SECRET


def test_removals_say_nothing_of_what_may_not_be_seen(tmp_path, server):
    told = [commit(server, line, fields=PART.fields) for line in (removed_folder("private"), removed_folder("none"))]
    told += [commit(server, removed(path), fields=PART.fields) for path in ("private/key.txt", "private/none.txt")]
    assert {(answer.status, answer["X-Error-Message"]) for answer in told} == {(403, told[0]["X-Error-Message"])}
    assert files_of(tmp_path) == FILES


def test_a_folder_loses_what_may_be_seen(tmp_path, server):
    assert commit(server, removed_folder("mixed"), fields=ODD.fields).status == 200
    assert files_of(tmp_path) == {path: content for path, content in FILES.items() if path != "mixed/a"}
    assert_refused(commit(server, removed_folder("mixed"), fields=ODD.fields), 404, "line 2: there is no folder mixed")
