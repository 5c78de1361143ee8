"""Folders of the Hub's clients that state what is not true, and repositories that change all the time."""

import hashlib
import os
import threading

import pytest

from wire import ask, eventually, get

COMMIT = "c" * 40


# Snapshots are links to blobs.
LINKS = pytest.mark.folder("a bucket has no links")


def make_cache(root, blobs, links):
    """A folder as the Hub's clients fill it; links: from a file's name to that of its blob."""
    repo = root / "models--org--cached"
    snapshot = repo / "snapshots" / COMMIT
    for folder in (repo / "blobs", repo / "refs", snapshot):
        folder.mkdir(parents=True)
    for name, content in blobs.items():
        (repo / "blobs" / name).write_bytes(content)
    for name, blob in links.items():
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    (repo / "refs" / "main").write_text(COMMIT)
    return repo


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@LINKS
def test_a_blob_whose_name_is_not_its_digest(tmp_path, start_server):
    """What a name states is good for a tag, but no digest; what was found of the bytes takes its place."""
    make_cache(tmp_path, {"a" * 64: b"other bytes"}, {"f.bin": "a" * 64})
    server = start_server(tmp_path)
    target = f"/org/cached/resolve/{COMMIT}/f.bin"
    first = get(server, target)
    assert (first.status, first.body, first["ETag"]) == (200, b"other bytes", f'"{"a" * 64}"')
    assert first["Repr-Digest"] is None
    assert eventually(lambda: get(server, target)["Repr-Digest"] is not None)
    assert eventually(lambda: get(server, target)["ETag"] == f'"{sha256(b"other bytes")}"')
    (entry,) = get(server, f"/api/models/org/cached/tree/{COMMIT}").json()
    assert entry["lfs"]["oid"] == sha256(b"other bytes")


@LINKS
def test_a_snapshot_that_grows(tmp_path, start_server):
    """Clients fill a snapshot file by file, as they are asked for them."""
    repo = make_cache(tmp_path, {"a" * 64: b"a", "b" * 64: b"b"}, {"a.bin": "a" * 64})
    server = start_server(tmp_path)
    assert get(server, f"/org/cached/resolve/{COMMIT}/a.bin").status == 200
    assert get(server, f"/org/cached/resolve/{COMMIT}/b.bin")["X-Error-Code"] == "EntryNotFound"
    (repo / "refs" / "main").write_text("d" * 40)
    (repo / "snapshots" / COMMIT / "b.bin").symlink_to(f"../../blobs/{'b' * 64}")
    (repo / "snapshots" / ("d" * 40)).mkdir()
    assert eventually(lambda: get(server, f"/org/cached/resolve/{COMMIT}/b.bin").body == b"b")


@LINKS
@pytest.mark.parametrize("text", [b"", b"main", b"../" * 20, b"\0" * 40, b"\xff" * 64])
def test_a_main_that_is_no_commit(tmp_path, start_server, text):
    repo = make_cache(tmp_path, {"a" * 64: b"a"}, {"a.bin": "a" * 64})
    (repo / "refs" / "main").write_bytes(text)
    # As if there were none: the only snapshot is "main".
    answer = get(start_server(tmp_path), "/api/models/org/cached")
    assert (answer.status, answer.json()["sha"]) == (200, COMMIT)


def test_a_main_that_never_ends(tmp_path, start_server):
    repo = make_cache(tmp_path, {}, {})
    (repo / "refs" / "main").unlink()
    os.mkfifo(repo / "refs" / "main")
    server = start_server(tmp_path)
    assert get(server, "/api/models/org/cached").status == 404


def test_names_with_zeros_are_no_beginnings_of_others(tmp_path, start_server):
    (tmp_path / "org" / "model").mkdir(parents=True)
    (tmp_path / "org" / "model" / "a.txt").touch()
    server = start_server(tmp_path)
    assert get(server, "/api/models?author=org%00" + "x" * 5000).json() == []
    entries = ask(server, "GET", "/files/?after=org%00" + "x" * 5000, {"Accept": "application/json"}).json()["entries"]
    assert entries == []


# --- changes ---


def test_a_repository_that_changes_all_the_time(tmp_path, start_server):
    """Everybody gets an answer, each of one set of bytes."""
    repo = tmp_path / "org" / "model"
    repo.mkdir(parents=True)
    (repo / "config.json").write_bytes(b"{}")
    server = start_server(tmp_path)
    ended = threading.Event()

    def change():
        number = 0
        while not ended.is_set():
            number += 1
            (repo / "log.txt").write_text(str(number))
            ask(server, "GET", f"/org/model/resolve/{'0' * 40}/log.txt")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        statuses = []

        def read():
            for _ in range(20):
                found = get(server, "/org/model/resolve/main/config.json")
                statuses.append((found.status, get(server, found["Location"]).status))

        readers = [threading.Thread(target=read) for _ in range(8)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    finally:
        ended.set()
        changing.join()
    assert statuses == [(307, 200)] * 160
