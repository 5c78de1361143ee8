"""Sizes of files that clients of the Hub state: whole numbers, taken as they are."""

import pytest

from lfs import REPO, assert_refused, batch, commit, entry, files_of, inline, lfs_file, objects_of, oid_of, post, stage
from wire import ask

CONTENT = b"the content of a file"
NOT_WHOLE = [1.5, len(CONTENT) + 0.5, -0.5, -1, 1e300, True, None, "21", [21]]


@pytest.fixture(scope="module")
def server(folder, share_server):
    server = share_server(folder, "--writable")
    assert commit(server, inline("kept", CONTENT)).status == 200
    return server


def sized(size, content=CONTENT):
    return {"oid": oid_of(content), "size": size}


@pytest.mark.parametrize("size", NOT_WHOLE)
def test_what_is_no_whole_number_is_refused(folder, server, size):
    assert_refused(batch(server, entry(b"other"), sized(size)), 400, "object 1", "a whole number as size")
    assert_refused(post(server, f"/{REPO}.git/info/lfs/verify", sized(size)), 400, "send")
    preupload = post(server, f"/api/models/{REPO}/preupload/main", {"files": [{"path": "a", "size": size}]})
    assert_refused(preupload, 400, "file 0")
    if size is not None:
        assert_refused(commit(server, lfs_file("new", CONTENT, size=size)), 400, "line 2", "size")
    assert files_of(folder) == {"kept": CONTENT}


@pytest.mark.parametrize("size", [0, 1 << 40, (1 << 53) - 1, (1 << 53) + 1, (1 << 63) - 1])
def test_the_answer_has_the_size_that_was_asked_for(server, size):
    (only,) = objects_of(batch(server, sized(size, b"large")))
    assert (only["oid"], only["size"]) == (oid_of(b"large"), size)
    assert only.get("error", {}).get("code") == (413 if size > 1 << 40 else None)
    assert_refused(post(server, f"/{REPO}.git/info/lfs/verify", sized(size)), 422, f"not {size}")


def test_what_no_integer_can_hold_is_refused(server):
    for size in (1 << 63, 1 << 64, 10**40):
        assert_refused(batch(server, sized(size)), 400)


def test_a_whole_number_may_be_written_as_another(server):
    stage(server, b"staged")
    body = f'{{"operation": "upload", "objects": [{{"oid": "{oid_of(b"staged")}", "size": 6.0}}]}}'
    (only,) = objects_of(ask(server, "POST", f"/{REPO}.git/info/lfs/objects/batch", {}, body.encode()))
    assert only == {"oid": oid_of(b"staged"), "size": 6}
