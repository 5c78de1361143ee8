"""Objects that wait for a commit belong to the client that sent them, also to those that know their SHA-256."""

import pytest

import xet
from clients import Client, write_tokens
from lfs import REPO, address, assert_refused, batch, commit, entry, files_of, lfs_file, objects_of, oid_of, post, put, stage, target_of

SECRET = b"a file that nobody else has" * 40
MINE = Client("mine", "write", f"{REPO}/private/*")
THEIRS = Client("theirs", "write", f"{REPO}/public/*")
ALL = Client("all", "write")


@pytest.fixture
def tokens(tmp_path_factory):
    return write_tokens(tmp_path_factory.mktemp("staged-owners") / "tokens", MINE, THEIRS, ALL)


@pytest.fixture
def start(tmp_path, start_server, tokens):
    def start(**environment):
        server = start_server(tmp_path, "--writable", "--tokens", tokens, environment=environment)
        xet.create(server, REPO, **ALL.fields)
        return server

    return start


@pytest.fixture
def server(start):
    return start()


def send_by_lfs(server, client):
    stage(server, SECRET, fields=client.fields)


def send_by_xet(server, client):
    xet.Session(server, REPO, **client.fields).upload(SECRET)


def is_staged_for(server, client):
    (told,) = objects_of(batch(server, entry(SECRET), fields=client.fields))
    verified = post(server, f"/{REPO}.git/info/lfs/verify", entry(SECRET), **client.fields).status
    assert (verified == 200) == ("actions" not in told), (verified, told)
    return verified == 200


@pytest.mark.parametrize("send", [send_by_lfs, send_by_xet])
def test_an_object_does_not_exist_for_another_client(tmp_path, server, send):
    send(server, MINE)
    assert [is_staged_for(server, client) for client in (MINE, THEIRS, ALL)] == [True, False, True]
    (told,) = objects_of(batch(server, {**entry(SECRET), "size": 1}, fields=THEIRS.fields))
    assert "error" not in told
    assert_refused(commit(server, lfs_file("public/stolen", SECRET), fields=THEIRS.fields), 400, "no object with this oid")
    session = xet.Session(server, REPO, **THEIRS.fields)
    assert session.describe(xet.shard(xet.file_of([xet.term(b"x" * 32, 5, 0, 1)], xet.sha256(SECRET)))).status >= 400
    assert commit(server, lfs_file("private/kept", SECRET), fields=MINE.fields).status == 200
    assert files_of(tmp_path) == {"private/kept": SECRET}


@pytest.mark.parametrize("first, second", [(MINE, THEIRS), (THEIRS, MINE), (MINE, ALL), (ALL, MINE)])
@pytest.mark.parametrize("send", [send_by_lfs, send_by_xet])
def test_two_clients_stage_and_commit_the_same_bytes(tmp_path, server, send, first, second):
    paths = {MINE: "private/file", THEIRS: "public/file", ALL: "anywhere"}
    for client in (MINE, THEIRS, ALL):
        if client in (first, second) and not (client is ALL and is_staged_for(server, client)):
            send(server, client)
    for client in (first, second):
        assert commit(server, lfs_file(paths[client], SECRET), fields=client.fields).status == 200, client
    assert files_of(tmp_path) == {paths[client]: SECRET for client in (first, second)}


def test_a_client_that_sees_all_commits_the_object_of_another_and_leaves_it(tmp_path, server):
    send_by_lfs(server, MINE)
    assert commit(server, lfs_file("a", SECRET), lfs_file("b", SECRET), fields=ALL.fields).status == 200
    assert commit(server, lfs_file("private/file", SECRET), fields=MINE.fields).status == 200
    assert files_of(tmp_path) == {"a": SECRET, "b": SECRET, "private/file": SECRET}


def test_owners_are_known_after_a_restart(tmp_path, start):
    server = start()
    send_by_lfs(server, MINE)
    server.stop()
    server = start()
    assert [is_staged_for(server, client) for client in (MINE, THEIRS, ALL)] == [True, False, True]
    assert commit(server, lfs_file("private/file", SECRET), fields=MINE.fields).status == 200


def test_parts_of_two_clients_are_apart(start):
    server = start(ZTSERVE_HUB_PART_BYTES=str(len(SECRET) // 2))
    actions = {}
    for client in (MINE, THEIRS):
        (told,) = objects_of(batch(server, entry(SECRET), fields=client.fields))
        actions[client] = told["actions"]["upload"]
    parts = {client: [target_of(href) for key, href in sorted(told["header"].items()) if key.isdigit()] for client, told in actions.items()}
    half = len(SECRET) // 2
    assert put(server, parts[MINE][0], SECRET[:half]).status == 200
    assert put(server, parts[THEIRS][1], SECRET[half:]).status == 200
    for client in (MINE, THEIRS):
        ended = post(server, target_of(actions[client]["href"]), {"oid": oid_of(SECRET), "parts": [{"partNumber": at, "etag": f'"{at}"'} for at in (1, 2)]})
        assert_refused(ended, 409, "1 of the 2 parts")
    assert put(server, parts[MINE][1], SECRET[half:]).status == 200
    assert address(server, SECRET, fields=THEIRS.fields) is not None


def test_the_address_of_an_upload_by_xet_is_of_no_use_to_another_client(server):
    xorb, entry_ = xet.whole(SECRET)
    mine, theirs = xet.Session(server, REPO, **MINE.fields), xet.Session(server, REPO, **THEIRS.fields)
    assert mine.send(xorb).json() == {"was_inserted": True}
    theirs.path = mine.path
    assert theirs.describe(xet.shard(entry_)).status >= 400
    assert theirs.send(xorb).json() == {"was_inserted": True}
    xet.assert_accepted(mine.describe(xet.shard(entry_)))
    assert [is_staged_for(server, client) for client in (MINE, THEIRS)] == [True, False]
