"""Copies as the Hub's clients ask for them: the oid of a file that the repository has, without its size."""

import pytest

from containers import pattern
from lfs import assert_refused, commit, files_of, inline, lfs_file, oid_of, places, removed, stage
from wire import eventually

CONTENT = pattern(300_000, seed=9)


def copy_of(path, content):
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": oid_of(content)}}


@pytest.mark.parametrize("content", [CONTENT, b""], ids=["some", "empty"])
def test_a_file_of_the_repository_is_copied(tmp_path, server, content):
    assert commit(server, inline("old", content)).status == 200
    answer = commit(server, copy_of("new", content), copy_of("sub/third", content))
    assert answer.status == 200, answer
    assert files_of(tmp_path) == {"old": content, "new": content, "sub/third": content}


def test_a_file_is_moved(tmp_path, server):
    assert commit(server, inline("old", CONTENT)).status == 200
    assert commit(server, removed("old"), copy_of("sub/new", CONTENT)).status == 200
    assert files_of(tmp_path) == {"sub/new": CONTENT}


def test_what_was_sent_before_needs_no_size(tmp_path, server):
    stage(server, CONTENT)
    assert commit(server, copy_of("one", CONTENT), lfs_file("two", CONTENT)).status == 200
    assert files_of(tmp_path) == {"one": CONTENT, "two": CONTENT}
    assert eventually(lambda: places(tmp_path) == [])


def test_a_size_of_null_is_none(tmp_path, server):
    assert commit(server, inline("old", CONTENT)).status == 200
    assert commit(server, lfs_file("new", CONTENT, size=None)).status == 200
    assert files_of(tmp_path) == {"old": CONTENT, "new": CONTENT}


def test_what_is_nowhere_is_not_copied(tmp_path, server):
    assert commit(server, inline("old", CONTENT)).status == 200
    assert_refused(commit(server, inline("f", b"1"), copy_of("new", b"other")), 400, "line 3: new: no object with this oid")
    assert files_of(tmp_path) == {"old": CONTENT}


@pytest.mark.parametrize("is_staged", [False, True], ids=["stored", "staged"])
def test_a_wrong_size_is_refused(tmp_path, server, is_staged):
    if is_staged:
        stage(server, CONTENT)
    else:
        assert commit(server, inline("old", CONTENT)).status == 200
    before = files_of(tmp_path)
    for size, status in ((len(CONTENT) + 1, 422), (0, 422), (-1, 400), ("300000", 400)):
        assert_refused(commit(server, lfs_file("new", CONTENT, size=size)), status, "line 2")
        assert files_of(tmp_path) == before
