"""Uploading by xet, without any of its clients: what each of their requests gets, and what hostile ones get."""

import concurrent.futures
import itertools
import json
import os
import struct
import time

import pytest

from clients import Client, write_tokens
from containers import pattern
from wire import ask, connect, eventually, get, read_until_closed
from xet import (
    HAS_VERIFICATION,
    LZ4,
    PLAIN,
    PLANES,
    Session,
    Xorb,
    assert_accepted,
    assert_refused,
    chunk,
    chunk_of,
    commit,
    create,
    file_of,
    frame,
    kept,
    lfs_file,
    pieces,
    run,
    sha256,
    shard,
    term,
    token_answer,
    whole,
)

REPO = "org/model"
MIB = 1 << 20
CONTENT = pattern(300_000)


@pytest.fixture
def session(server):
    return Session(server, REPO)


@pytest.fixture(scope="module")
def shared(folder, share_server):
    """For what leaves nothing behind but a session."""
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "0"})


@pytest.fixture
def another(shared):
    return Session(shared, REPO)


def assert_nothing_staged(server, content, repo=REPO):
    assert commit(server, repo, lfs_file("file.bin", content)).status >= 400


def stored(server, path="file.bin", repo=REPO):
    answer = get(server, f"/files/{repo}/{path}")
    assert answer.status == 200, answer.body
    return answer.body


# --- what works ---


@pytest.mark.parametrize("schemes", [(PLAIN,), (LZ4,), (PLANES,), (PLAIN, LZ4, PLANES)])
def test_a_file_arrives_whatever_its_chunks_are_stored_as(server, session, schemes):
    for length in (1, 65536, 300_001, 300_002, 300_003):
        content = pattern(length)
        xorb, entry = whole(content, schemes)
        assert session.send(xorb).json() == {"was_inserted": True}
        assert session.describe(shard(entry)).json() == {"result": 1}
        assert_accepted(commit(server, REPO, lfs_file("file.bin", content)))
        assert stored(server) == content, length


def test_a_file_of_several_xorbs_in_any_order_with_chunks_again(server, session):
    parts = pieces(pattern(1_000_000), 40_000)
    first, second = Xorb(*map(chunk, parts[:10])), Xorb(*(chunk(part, LZ4) for part in parts[10:]))
    content = b"".join(parts[10:12] + parts[0:10] + parts[12:25] + parts[3:4] * 3)
    terms = [term(second, 80_000, 0, 2), term(first, 400_000, 0, 10), term(second, 520_000, 2, 15)]
    terms += [term(first, 40_000, 3, 4)] * 3
    for xorb in (second, first):
        assert_accepted(session.send(xorb))
    assert_accepted(session.describe(shard(file_of(terms, sha256(content)))))
    assert_accepted(commit(server, REPO, lfs_file("file.bin", content)))
    assert stored(server) == content


def test_a_shard_of_several_files_one_of_them_empty(server, session):
    contents = {f"{number}.bin": pattern(50_000 + number) for number in range(20)}
    entries = [file_of([], sha256(b""))]
    for content in contents.values():
        xorb, entry = whole(content)
        assert_accepted(session.send(xorb))
        entries.append(entry)
    assert_accepted(session.describe(shard(*entries)))
    assert_accepted(commit(server, REPO, *(lfs_file(path, content) for path, content in {**contents, "empty": b""}.items())))
    for path, content in {**contents, "empty": b""}.items():
        assert stored(server, path) == content


def test_a_file_without_a_sha256_is_found_by_what_it_is(server, session):
    xorb, _ = whole(CONTENT, (PLAIN,))
    assert_accepted(session.send(xorb))
    terms = [term(xorb, len(CONTENT), 0, len(pieces(CONTENT)))]
    assert_accepted(session.describe(shard(file_of(terms, None, flags=0))))
    assert_accepted(commit(server, REPO, lfs_file("file.bin", CONTENT)))
    assert stored(server) == CONTENT


@pytest.mark.folder("looks at the places of uploads")
def test_a_xorb_and_a_shard_sent_again_change_nothing(tmp_path, server, session):
    xorb, entry = whole(CONTENT)
    assert session.send(xorb).json() == {"was_inserted": True}
    assert session.send(xorb).json() == {"was_inserted": False}
    assert session.send(Xorb(chunk(b"other"), hash=xorb.hash)).json() == {"was_inserted": False}
    for _ in range(3):
        assert_accepted(session.describe(shard(entry)))
    # The session, and the file once.
    eventually(lambda: len(kept(tmp_path)) == 2)
    assert_accepted(commit(server, REPO, lfs_file("file.bin", CONTENT)))
    assert stored(server) == CONTENT


def test_what_the_repository_has_is_not_put_together_again(tmp_path, server):
    Session(server, REPO).upload(CONTENT)
    assert_accepted(commit(server, REPO, lfs_file("file.bin", CONTENT)))
    eventually(lambda: ask(server, "GET", f"/api/models/{REPO}/tree/main").json()[0].get("lfs"))
    again = Session(server, REPO)
    again.upload(CONTENT)
    kinds = [upload["kind"] for upload in get(server, "/v1/uploads").json()["uploads"]]
    assert kinds == ["xet", "xet"]
    assert_accepted(commit(server, REPO, lfs_file("copy.bin", CONTENT)))
    assert stored(server, "copy.bin") == CONTENT


def test_xorbs_and_shards_at_once(server, session):
    contents = [pattern(200_000 + number) for number in range(16)]
    files = [whole(content) for content in contents]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for answer in pool.map(session.send, [xorb for xorb, _ in files]):
            assert_accepted(answer)
        for answer in pool.map(session.describe, [shard(*(entry for _, entry in files[at:])) for at in range(16)]):
            assert_accepted(answer)
    assert_accepted(commit(server, REPO, *(lfs_file(f"{at}.bin", content) for at, content in enumerate(contents))))
    for at, content in enumerate(contents):
        assert stored(server, f"{at}.bin") == content


@pytest.mark.folder("looks at the places of uploads")
def test_a_file_that_waits_for_its_commit_survives_a_restart(tmp_path, server, start_server):
    Session(server, REPO).upload(CONTENT)
    server.kill()
    again = start_server(tmp_path, "--writable")
    # What a session had is removed, what was acknowledged is not.
    eventually(lambda: len(kept(tmp_path)) == 1)
    assert_accepted(commit(again, REPO, lfs_file("file.bin", CONTENT)))
    assert stored(again) == CONTENT


def test_a_restart_between_xorbs_and_shard_is_told(tmp_path, server, session, start_server):
    xorb, entry = whole(CONTENT)
    assert_accepted(session.send(xorb))
    server.kill()
    again = start_server(tmp_path, "--writable")
    session.server = again
    assert_refused(session.describe(shard(entry)), 401)
    later = Session(again, REPO)
    assert_refused(later.describe(shard(entry)), 400, "upload again")
    assert_nothing_staged(again, CONTENT)


# --- tokens ---


def test_the_token_is_told_twice_with_an_address_of_its_own(server):
    create(server, REPO)
    answers = [token_answer(server, REPO) for _ in range(2)]
    for answer in answers:
        told = answer.json()
        assert answer["X-Xet-Cas-Url"] == told["casUrl"] and told["casUrl"].startswith(server.url + "/api/cas/")
        assert answer["X-Xet-Access-Token"] == told["accessToken"]
        assert answer["X-Xet-Token-Expiration"] == str(told["exp"])
        assert 600 < told["exp"] - time.time() < 7200
        assert answer["Cache-Control"] == "no-store"
    assert answers[0]["X-Xet-Cas-Url"] != answers[1]["X-Xet-Cas-Url"]


def test_a_later_token_goes_with_the_earlier_address(server, session):
    xorb, entry = whole(CONTENT)
    assert_accepted(session.send(xorb))
    session.token = Session(server, REPO).token
    assert_accepted(session.describe(shard(entry)))


def test_a_token_of_another_make_is_refused(server, session):
    until, rest = session.token.split(".", 1)
    xorb, entry = whole(CONTENT)
    others = ["", "hf_x", session.token[:-1], session.token + "x", session.token.replace("model", "other"), "x" * 4000]
    others += [f"{int(until) + 1}.{rest}", f"{int(time.time()) - 1}.{rest}"]
    for fields in [{}, *({"Authorization": f"Bearer {token}"} for token in others)]:
        assert_refused(session.send(xorb, fields), 401)
        assert_refused(session.describe(shard(entry), fields), 401)


def test_a_token_is_for_one_repository(server, session):
    other = Session(server, "org/other")
    xorb, entry = whole(CONTENT)
    assert_accepted(session.send(xorb))
    # The same address with another repository's token is another session.
    assert_refused(session.describe(shard(entry), other.fields), 400, "not sent in this upload")
    assert_accepted(session.describe(shard(entry)))
    assert_nothing_staged(server, CONTENT, "org/other")


def test_xorbs_of_another_upload_cannot_be_named(server, session):
    xorb, entry = whole(CONTENT)
    assert_accepted(session.send(xorb))
    assert_refused(Session(server, REPO).describe(shard(entry)), 400, "not sent in this upload")
    assert_nothing_staged(server, CONTENT)


WRITER = Client("writer", "write", "org/*")
READER = Client("reader", "read", "org/*")
OTHER = Client("other", "write", "team/*")


@pytest.fixture
def guarded(tmp_path, start_server):
    tokens = tmp_path / "tokens"
    (tmp_path / "root").mkdir()
    return start_server(tmp_path / "root", "--writable", "--tokens", write_tokens(tokens, WRITER, READER, OTHER))


def test_with_tokens_the_token_of_xet_is_the_permit(guarded):
    assert token_answer(guarded, REPO).status == 401
    assert token_answer(guarded, REPO, **READER.fields).status == 403
    assert_refused(token_answer(guarded, REPO, **OTHER.fields), 403)
    session = Session(guarded, REPO, **WRITER.fields)
    xorb, entry = whole(CONTENT)
    assert_refused(session.send(xorb, WRITER.fields), 401)
    assert_accepted(session.send(xorb))
    assert_accepted(session.describe(shard(entry)))
    assert commit(guarded, REPO, lfs_file("file.bin", CONTENT), **session.fields).status == 401
    assert_accepted(commit(guarded, REPO, lfs_file("file.bin", CONTENT), **WRITER.fields))
    # It is no token for anything else.
    assert get(guarded, f"/api/models/{REPO}", **session.fields).status == 401


def test_revisions_names_and_servers_that_take_none(tmp_path, server, start_server):
    assert token_answer(server, REPO, "other")["X-Error-Code"] == "RevisionNotFound"
    assert_refused(token_answer(server, "a--b"), 400)
    (tmp_path / "read").mkdir()
    session = Session(server, REPO)
    assert token_answer(server, REPO, "refs%2Fheads%2Fmain").status == 200
    session.server = start_server(tmp_path / "read")
    assert token_answer(session.server, REPO).status == 403
    assert session.describe(shard()).status == 403


def test_it_can_be_turned_off(tmp_path, start_server):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"hub": {"xet": False}}))
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", "--config", config)
    assert_refused(token_answer(server, REPO), 501, "HF_HUB_DISABLE_XET=1")


def test_nothing_else_is_there(session):
    for path in ("/v1/chunks/default/" + "0" * 64, "/v1/reconstructions/" + "0" * 64, "/v2/reconstructions/" + "0" * 64):
        assert ask(session.server, "GET", session.path + path, session.fields).status == 404
    for path in ("/v2/shards", "/v1/xorb-grants/default/" + "0" * 64, "/v1/xorbs/other/" + "0" * 64):
        assert session.post(path, b"x" * 100_000).status == 404


def test_reading_is_without_xet(server, session):
    session.upload(CONTENT)
    assert_accepted(commit(server, REPO, lfs_file("file.bin", CONTENT)))
    for target in (f"/{REPO}/resolve/main/file.bin", f"/api/models/{REPO}/tree/main", f"/api/models/{REPO}"):
        answer = get(server, target)
        assert answer["X-Xet-Hash"] is None and "xet" not in (answer["Link"] or "")
        assert b"xet" not in answer.body[:10_000]
    assert ask(server, "GET", f"/api/models/{REPO}/xet-read-token/main").status == 404


# --- what is no xorb ---


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        chunk(b"x")[:-1],
        chunk(CONTENT[:1000]) + b"\0\1",
        b"\1" + chunk(b"x")[1:],
        chunk_of(3, b"x", 1),
        chunk_of(PLAIN, b"xx", 1),
        chunk_of(LZ4, b"", 1),
        chunk_of(LZ4, b"x", 0),
        chunk_of(LZ4, b"x", (128 << 10) + 1),
        chunk_of(LZ4, b"x" * ((256 << 10) + 1), 1),
        chunk(b"x") * 8193,
        chunk_of(LZ4, b"x", 128 << 10) * 513,
        b"XETBLOB\1",
        os.urandom(100),
    ],
    ids=itertools.count(),
)
def test_what_is_no_xorb_is_refused_and_not_known(another, body):
    xorb = Xorb(body)
    assert_refused(another.send(xorb), 400)
    assert_refused(another.describe(shard(file_of([term(xorb, 1, 0, 1)], sha256(b"x")))), 400, "not sent in this upload")


def test_a_footer_of_an_older_client_is_left_out(server, session):
    xorb, entry = whole(CONTENT)
    xorb.body += b"XETBLOB\1" + os.urandom(5000)
    assert_accepted(session.send(xorb))
    assert_accepted(session.describe(shard(entry)))


def test_other_addresses_are_refused(shared, another):
    for name in ("0" * 63, "0" * 65, "0" * 63 + "g", "A" * 64, "%2e%2e"):
        assert another.post(f"/v1/xorbs/default/{name}", chunk(b"x")).status in (400, 404), name
    for key in ("0" * 31, "0" * 33, "A" * 32, "g" * 32, "..", "%2e%2e"):
        assert ask(shared, "POST", f"/api/cas/{key}/v1/shards", another.fields, shard()).status in (400, 404), key


@pytest.mark.parametrize(
    "path, length", [("/v1/xorbs/default/" + "0" * 64, 65 * MIB + 1), ("/v1/shards", 128 * MIB + 1)]
)
def test_bodies_are_bounded_before_they_are_read(shared, another, path, length):
    head = f"POST {another.path}{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {another.token}\r\n"
    with connect(shared) as connection:
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
        assert read_until_closed(connection).startswith(b"HTTP/1.1 413 ")
    with connect(shared) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert read_until_closed(connection).startswith(b"HTTP/1.1 411 ")


# --- chunks that do not decode ---


BAD_CHUNKS = [
    chunk_of(LZ4, frame(b"x" * 1000)[:-4], 1000),
    chunk_of(LZ4, frame(b"x" * 1000) + b"\0", 1000),
    chunk_of(LZ4, frame(b"x" * 1000), 999),
    chunk_of(LZ4, frame(b"x" * 1000), 1001),
    chunk_of(LZ4, b"not a frame of LZ4", 1000),
    chunk_of(PLANES, frame(b"x" * 1000), 1001),
    # Some thousand times as much as it says.
    chunk_of(LZ4, run(b"x", 8 * MIB), 1000),
    chunk_of(LZ4, run(b"x", 8 * MIB), 128 << 10),
    chunk_of(PLANES, run(b"x", 8 * MIB), 128 << 10),
    # Blocks of 4 MiB, and a dictionary.
    chunk_of(LZ4, bytes.fromhex("04224d18607073") + bytes(4), 1000),
    chunk_of(LZ4, bytes.fromhex("04224d18614001000000") + bytes(4), 1000),
    # A frame that is skipped.
    chunk_of(LZ4, bytes.fromhex("502a4d1804000000") + b"abcd", 4),
]


@pytest.mark.folder("looks at the places of uploads")
def test_a_chunk_that_does_not_decode_fails_the_shard(tmp_path, server, session):
    for number, bad in enumerate(BAD_CHUNKS):
        xorb = Xorb(chunk(b"first"), bad, chunk(b"last"))
        length = int.from_bytes(bad[5:8], "little")
        assert_accepted(session.send(xorb))
        entry = file_of([term(xorb, 9 + length, 0, 3)], sha256(b"x"))
        assert_refused(session.describe(shard(entry)), 400, "does not decode")
        # What was begun is removed, and the session goes on.
        assert eventually(lambda: len(kept(tmp_path)) == 1), number
        entry = file_of([term(xorb, 5, 0, 1), term(xorb, 4, 2, 3)], sha256(b"firstlast"))
        assert_accepted(session.describe(shard(entry)))
        assert_accepted(commit(server, REPO, lfs_file("file.bin", b"firstlast")))
        assert stored(server) == b"firstlast"


# --- what is no shard ---


@pytest.fixture
def sent(session):
    xorb = Xorb(*map(chunk, pieces(CONTENT)))
    assert_accepted(session.send(xorb))
    return xorb


COUNT = len(pieces(CONTENT))


@pytest.mark.folder("looks at the places of uploads")
def test_terms_that_name_something_else_are_refused(tmp_path, server, session, sent):
    cases = {
        "does not have": [(0, COUNT + 1), (COUNT, COUNT + 1), (0, 2**32 - 1), (2**32 - 2, 2**32 - 1)],
        "no chunks": [(1, 1), (2, 1)],
    }
    wrong = [(term(sent, len(CONTENT), *chunks), word) for word, ranges in cases.items() for chunks in ranges]
    wrong += [(term(sent, length, 0, COUNT), "differ in length") for length in (len(CONTENT) - 1, len(CONTENT) + 1, 2**32 - 1)]
    for one, word in [*wrong, (term(b"?" * 32, len(CONTENT), 0, COUNT), "not sent")]:
        assert_refused(session.describe(shard(file_of([one], sha256(CONTENT)))), 400, word)
    assert_nothing_staged(server, CONTENT)
    eventually(lambda: len(kept(tmp_path)) == 1)


@pytest.mark.folder("looks at the places of uploads")
def test_a_sha256_of_another_file_is_refused(tmp_path, server, session, sent):
    other = pattern(len(CONTENT) + 1)
    entry = file_of([term(sent, len(CONTENT), 0, COUNT)], sha256(other))
    assert_refused(session.describe(shard(entry)), 422, "SHA-256")
    assert_nothing_staged(server, CONTENT)
    assert_nothing_staged(server, other)
    eventually(lambda: len(kept(tmp_path)) == 1)


def test_what_is_wrong_with_a_later_file_fails_the_shard_before_the_first(server, session, sent):
    right = file_of([term(sent, len(CONTENT), 0, COUNT)], sha256(CONTENT))
    wrong = file_of([term(b"?" * 32, 1, 0, 1)], sha256(b"x"))
    assert_refused(session.describe(shard(right, wrong)), 400, "not sent")
    assert_nothing_staged(server, CONTENT)


def test_every_prefix_of_a_shard_is_refused(server, session, sent):
    body = shard(file_of([term(sent, len(CONTENT), 0, COUNT)], sha256(CONTENT)))
    end = body.index(b"\xff" * 32) + 48
    for length in [0, 1, 47, *range(48, end, 16), end - 1]:
        assert session.describe(body[:length]).status == 400, length
    assert_accepted(session.describe(body[:end]))


def test_counts_that_lie_are_refused(session, sent):
    terms = [term(sent, len(CONTENT), 0, COUNT)]
    for count, flags in itertools.product([2, 1000, 2**31 - 1, 2**32 - 1], [0, HAS_VERIFICATION]):
        assert_refused(session.describe(shard(file_of(terms, sha256(CONTENT), flags, count), end=b"\xff" * 32)), 400)


def test_headers_of_anything_else_are_refused(session):
    for body in (b"x" * 48, b"\0" + shard()[1:], shard()[:32] + struct.pack("<2Q", 3, 0) + shard()[48:]):
        assert_refused(session.describe(body), 400)
    assert_accepted(session.describe(shard()))


def test_more_files_than_a_shard_may_have_are_refused(session):
    empty = file_of([], sha256(b""))
    assert_refused(session.describe(shard(*[empty] * 10_001)), 400, "too many files")


def test_a_file_beyond_the_largest_is_refused_while_it_is_made(tmp_path, start_server):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"upload": {"max_bytes": 2 * MIB}}))
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", "--config", config)
    session = Session(server, REPO)
    xorb = Xorb(*[chunk_of(LZ4, run(b"x", 128 << 10), 128 << 10)] * 8)
    assert_accepted(session.send(xorb))
    many = file_of([term(xorb, MIB, 0, 8)] * 3, sha256(b"x" * 3 * MIB))
    assert_refused(session.describe(shard(many)), 413)
    some = file_of([term(xorb, MIB, 0, 8)] * 2, sha256(b"x" * 2 * MIB))
    assert_accepted(session.describe(shard(some)))
    # So are the xorbs of a session that have more.
    answers = [session.send(Xorb(chunk(os.urandom(128 << 10)), *[chunk(os.urandom(1000))] * 100)) for _ in range(12)]
    assert answers[0].status == 200 and answers[-1].status == 413
