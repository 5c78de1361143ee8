"""What the server keeps of uploads by xet that are under way: how much, how long, and how it stays responsive meanwhile."""

import hashlib
import os
import threading
import time

import pytest

from containers import pattern
from uploads import Expiring
from wire import connect, eventually, get, memory_kib
from xet import LZ4, Session, Xorb, assert_accepted, assert_refused, chunk, chunk_of, file_of, kept, run, sha256, shard, term, whole

REPO = "org/model"
MIB = 1 << 20
CONTENT = pattern(300_000)


@pytest.fixture
def session(server):
    return Session(server, REPO)


@pytest.mark.folder("looks at the places of uploads")
def test_sessions_of_one_client_are_bounded(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"})
    sessions = [Session(server, REPO) for _ in range(3)]
    xorb, _ = whole(CONTENT)
    # Addresses cost nothing before they are used.
    assert [session.send(xorb).status for session in sessions] == [200, 200, 429]
    assert len(kept(tmp_path)) == 2
    uploads = get(server, "/v1/uploads").json()["uploads"]
    assert [(upload["kind"], upload["model"]) for upload in uploads] == [("xet", REPO)] * 2
    assert uploads[0]["received"] > len(CONTENT)


@pytest.mark.folder("looks at the places of uploads")
def test_a_session_expires_with_what_it_has(tmp_path, start_server):
    expiring = Expiring(start_server, tmp_path)
    server = expiring.server
    session = Session(server, REPO)
    xorb, entry = whole(CONTENT)
    assert_accepted(session.send(xorb))
    assert len(kept(expiring.root)) == 1
    expiring.expire()
    eventually(lambda: kept(expiring.root) == [])
    assert get(server, "/v1/uploads").json()["uploads"] == []
    assert_refused(session.describe(shard(entry)), 400, "upload again")


def test_a_xorb_that_is_cut_off_is_not_known(server, session):
    xorb, entry = whole(pattern(5_000_000))
    head = f"POST {session.path}/v1/xorbs/default/{xorb.hex} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.token}\r\n"
    with connect(server) as connection:
        connection.sendall(f"{head}Content-Length: {len(xorb.body)}\r\n\r\n".encode() + xorb.body[:-1])
        time.sleep(0.2)
    assert_refused(session.describe(shard(entry)), 400, "not sent")
    assert_accepted(session.send(xorb))
    assert_accepted(session.describe(shard(entry)))


@pytest.mark.folder("looks at the places of uploads")
def test_a_client_that_leaves_while_a_file_is_made_leaves_nothing(tmp_path, server, session):
    xorb = Xorb(*[chunk_of(LZ4, run(b"x", 128 << 10), 128 << 10)] * 512)
    assert_accepted(session.send(xorb))
    body = shard(file_of([term(xorb, 64 * MIB, 0, 512)] * 3, sha256(b"x")))
    head = f"POST {session.path}/v1/shards HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.token}\r\n"
    with connect(server) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    # Another one waits for its turn, and gets it.
    small = file_of([term(xorb, 128 << 10, 3, 4)], sha256(b"x" * (128 << 10)))
    assert_accepted(session.describe(shard(small)))
    eventually(lambda: len(kept(tmp_path)) == 2)


def test_memory_is_flat_under_a_large_file(server, session):
    parts = [os.urandom(100_000) + b"\0" * 31_072 for _ in range(500)]
    xorb = Xorb(*map(chunk, parts))
    Session(server, REPO).upload(pattern(3 * MIB))
    before = memory_kib(server, "VmHWM")
    assert_accepted(session.send(xorb))
    content = hashlib.sha256()
    for _ in range(4):
        for part in parts:
            content.update(part)
    entry = file_of([term(xorb, 131_072 * 500, 0, 500)] * 4, content.digest())
    assert_accepted(session.describe(shard(entry)))
    assert memory_kib(server, "VmHWM") - before < 48 << 10


def test_small_requests_are_answered_while_a_file_is_made(server, session):
    xorb = Xorb(*[chunk_of(LZ4, run(b"x", 128 << 10), 128 << 10)] * 512)
    assert_accepted(session.send(xorb))
    body = shard(file_of([term(xorb, 64 * MIB, 0, 512)] * 6, None, flags=0))
    answers = []
    thread = threading.Thread(target=lambda: answers.append(session.describe(body)))
    thread.start()
    answered = 0
    while thread.is_alive():
        assert get(server, "/healthz").status == 200
        answered += thread.is_alive()
        time.sleep(0.01)
    assert_accepted(answers[0])
    assert answered > 0
