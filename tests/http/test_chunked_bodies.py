"""Chunked bodies that the server reads past the HTTP library: chunks of any size in pieces of any size make the same
file, what is not sound is refused with 400 and ends the connection, and what follows is the next request."""

import contextlib
import random
import socket
import time

import pytest
import zstandard

import tus
from containers import dense, pattern, zt1
from test_kept_bodies import LAST, VERSION, Answers, impatient, impatient_folder, send, smuggled, victim
from uploads import assert_absent
from wire import connect, eventually, get, model_path, read_until_closed
from writers import begin, content, repr_digest

MIB = 1 << 20
DATA = pattern(3 * MIB + 77)
FILE = bytes(zt1({"w": dense(DATA)}))


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "200"})


def head_of(target, *fields, method="PUT"):
    lines = [f"{method} {target} HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def chunked(data, sizes, end=b"0\r\n\r\n"):
    """Chunks of these sizes, over and over."""
    parts, at, i = [], 0, 0
    while at < len(data):
        piece = data[at : at + sizes[i % len(sizes)]]
        parts.append(b"%x\r\n%b\r\n" % (len(piece), piece))
        at += len(piece)
        i += 1
    return b"".join(parts) + end


SMALL = bytes(zt1({"w": dense(pattern(64))}))

SIZES = [(65536,), (4096, 1), (100_000, 7, 512 * 1024), (1_000,), (len(FILE),)]


@pytest.mark.parametrize("sizes", SIZES)
def test_chunks_of_any_size_make_the_same_file(server, folder, name, sizes):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name)) + chunked(FILE, sizes) + VERSION + head_of(model_path(name)) + chunked(FILE, sizes) + LAST)
        answers = Answers(connection)
        assert [answers.next() for _ in range(4)] == [201, 200, 204, 200]
        assert answers.is_over()
    assert (folder / f"{name}.zt").read_bytes() == FILE
    assert content(server, name, "w") == DATA


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_any_size_make_the_same_file(server, folder, name, seed):
    """Also when the library's buffer ends anywhere in the framing."""
    generator = random.Random(seed)
    file = bytes(zt1({"w": dense(pattern(200_000, seed=seed))}))
    sizes = [generator.choice([1, 2, 15, 16, 100, 4096, 8192, 20_000]) for _ in range(50)]
    data = head_of(model_path(name)) + chunked(file, sizes) + VERSION * seed + LAST
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        at = 0
        while at < len(data):
            length = generator.choice([1, 2, 3, 7, 1000, 5000, 30_000])
            connection.sendall(data[at : at + length])
            at += length
            if generator.random() < 0.3:
                time.sleep(0.002)
        answers = Answers(connection)
        assert answers.next() == 201
        if "connection" not in answers.fields:
            assert [answers.next() for _ in range(seed + 1)] == [200] * (seed + 1)
        assert read_until_closed(connection) == b""
    assert (folder / f"{name}.zt").read_bytes() == file


def test_chunks_that_come_one_by_one_make_the_same_file(server, folder, name):
    """As clients send them whose source is slow: a whole chunk in each packet, so that the library has used all of it."""
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head_of(model_path(name)))
        for at in range(0, 400_000, 8192):
            piece = FILE[at : at + 8192] if at + 8192 < 400_000 else FILE[at:]
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            time.sleep(0.005)
        connection.sendall(b"0\r\n\r\n" + LAST)
        answers = Answers(connection)
        assert [answers.next(), answers.next()] == [201, 200]
    assert (folder / f"{name}.zt").read_bytes() == FILE


def test_extensions_and_trailers_are_dropped(server, folder, name):
    body = b"%x\r\n%b\r\n%x;a=b;c=\"d\"\r\n%b\r\n0;last\r\nX: y\r\nContent-Length: 5\r\n\r\n"
    body %= (MIB, FILE[:MIB], len(FILE) - MIB, FILE[MIB:])
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name)) + body + LAST)
        answers = Answers(connection)
        assert [answers.next(), answers.next()] == [201, 200]
    assert (folder / f"{name}.zt").read_bytes() == FILE


FIRST = b"%x\r\n%b" % (MIB, FILE[:MIB])
BAD = {
    "a chunk that is longer": b"X\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": b"\n0\r\n\r\n",
    "a size that is no number": b"\r\nxyz\r\n\r\n0\r\n\r\n",
    "a size of 2^63": b"\r\n8000000000000000\r\nhello",
    "an extension with a line feed": b"\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
    "extensions of 32 KiB": b"\r\n5;" + b"a" * 32768 + b"\r\nhello\r\n0\r\n\r\n",
    "a trailer without a colon": b"\r\n0\r\nnothing\r\n\r\n",
    "an end of a line feed": b"\r\n0\r\n\n",
    "a request for a size": None,
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_not_sound_is_refused_and_ends_the_connection(server, folder, name, victim, what):
    bad = BAD[what] or b"\r\n" + smuggled(victim)
    with connect(server) as connection:
        send(connection, head_of(model_path(name)) + FIRST + bad + smuggled(victim) + VERSION)
        answers = Answers(connection)
        assert answers.next() == 400, answers.body
        assert answers.fields["connection"] == "close" and b'"invalid-request"' in answers.body
        assert read_until_closed(connection) == answers.begun == b""
    assert_absent(server, folder, name)


@pytest.mark.parametrize("end, size", [(b"\n", 1000), (b"\r", 1000), (b"\0\n", 8192), (b"", 8192)], ids=["LF", "CR", "NUL LF", "none"])
def test_chunks_with_a_wrong_end_in_packets_are_refused(server, folder, name, victim, size, end):
    """The library uses up each packet, so that the end of the chunk can be seen only as it comes."""
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head_of(model_path(name)))
        for _ in range(80_000 // size):
            send(connection, b"%x\r\n%b%b" % (size, FILE[:size], end))
            time.sleep(0.001)
        send(connection, b"0\r\n\r\n" + smuggled(victim))
        answers = Answers(connection)
        assert answers.next() == 400, answers.body
        assert answers.fields["connection"] == "close"
        assert read_until_closed(connection) == answers.begun == b""
    assert_absent(server, folder, name)


def test_trailers_without_end_are_431(server, folder, name):
    with connect(server) as connection:
        send(connection, head_of(model_path(name)) + chunked(FILE, [MIB], end=b"0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n"))
        answers = Answers(connection)
        assert (answers.next(), answers.fields["connection"]) == (431, "close")
    assert_absent(server, folder, name)


def test_a_request_inside_a_chunk_is_not_obeyed(server, name, victim):
    body = chunked(smuggled(victim) * (2 * MIB // len(smuggled(victim))), [len(smuggled(victim)) * 1000])
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name)) + body + LAST)
        answers = Answers(connection)
        assert [answers.next(), answers.next()] == [422, 200]
        assert answers.is_over()


@pytest.mark.parametrize("sent, reset", [(1, True), (20_000, False), (MIB + 5, True), (len(FIRST) + 2, False), (-4, True), (-1, False)])
def test_cut_body_leaves_nothing(server, folder, name, sent, reset):
    connection = connect(server)
    connection.sendall(head_of(model_path(name)) + chunked(FILE, [MIB])[:sent])
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    eventually(lambda: name not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, name)


def test_a_body_that_stops_is_answered_408(impatient, impatient_folder, name):
    cuts = [2 * MIB, len(FIRST), len(FIRST) + 3, -5, -1]
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(impatient)) for _ in cuts]
        for connection, sent in zip(connections, cuts, strict=True):
            connection.sendall(head_of(model_path(name)) + chunked(FILE, [MIB])[:sent])
        assert {cut: Answers(connection).next() for cut, connection in zip(cuts, connections)} == dict.fromkeys(cuts, 408)
    eventually(lambda: name not in get(impatient, "/v1/uploads").body.decode())
    assert_absent(impatient, impatient_folder, name)


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_the_end_of_a_body_is_too_late_after_its_408(impatient, impatient_folder, name, method):
    body = SMALL if method == "PUT" else b'{"paths": ["a"]}'
    target = model_path(name) if method == "PUT" else "/api/models/a/b/paths-info/main"
    rests = [b"0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n", b"x\r\n"]
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(impatient)) for _ in rests]
        for connection in connections:
            connection.sendall(head_of(target, method=method) + chunked(body, [len(body)], end=b""))
        for connection, late in zip(connections, rests, strict=True):
            answers = Answers(connection)
            assert answers.next() == 408, late
            connection.sendall(late)
            assert answers.is_over(), late
    assert get(impatient, "/healthz").status == 200
    assert_absent(impatient, impatient_folder, name)


@pytest.mark.parametrize("version", ["1.2.0", "2"])
def test_components_arrive_whole(server, name, version):
    upload = begin(server, name, version)
    packed = zstandard.compress(DATA, 1)
    with connect(server) as connection:
        answers = Answers(connection)
        for key, body, fields in (("raw", DATA, ()), ("sent", packed, ("Content-Encoding: zstd",))):
            target = upload.component_path(key, dtype="u8", shape=len(DATA))
            connection.sendall(head_of(target, *fields) + chunked(body, [65536]))
            assert answers.next() == 201
            assert answers.fields["repr-digest"] == repr_digest(DATA)
    assert upload.commit().status == 201
    assert content(server, name, "raw") == content(server, name, "sent") == DATA


# --- resumable uploads ---


def patch_of(place, offset, body, chunk=None, fields=()):
    lines = [f"PATCH {place} HTTP/1.1", "Host: x", "Tus-Resumable: 1.0.0", f"Upload-Offset: {offset}"]
    lines += ["Content-Type: application/offset+octet-stream", *fields]
    lines.append("Transfer-Encoding: chunked" if chunk else f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (chunked(body, [chunk]) if chunk else body)


@pytest.mark.parametrize("chunk, pieces", [(None, 3), (65536, 1), (1000, 7)])
def test_pieces_of_a_resumable_upload_over_one_connection(server, folder, name, chunk, pieces):
    place = tus.create(server, name, len(FILE))
    length = -(-len(FILE) // pieces)
    with connect(server) as connection:
        answers = Answers(connection)
        for offset in range(0, len(FILE), length):
            connection.sendall(patch_of(place, offset, FILE[offset : offset + length], chunk))
            assert (answers.next(), answers.fields["upload-offset"]) == (204, str(min(offset + length, len(FILE))))
        assert answers.fields["repr-digest"] == repr_digest(FILE)
    assert (folder / f"{name}.zt").read_bytes() == FILE


@pytest.mark.parametrize("chunk, sent", [(None, 200_000), (65536, 2 * MIB)])
def test_what_came_of_a_cut_piece_stays(server, folder, name, chunk, sent):
    place = tus.create(server, name, len(FILE))
    connection = connect(server)
    connection.sendall(patch_of(place, 0, FILE, chunk)[:sent])
    connection.close()
    offset = eventually(lambda: tus.offset_of(server, place))
    assert 0 < offset <= sent

    def is_continued():
        """The cut piece may still be on its way to the file: its connection is refused and closed."""
        at = tus.offset_of(server, place)
        with connect(server) as connection:
            answers = Answers(connection)
            connection.sendall(patch_of(place, at, FILE[at:], chunk))
            return answers.next() == 204 and answers.fields["repr-digest"] == repr_digest(FILE)

    assert eventually(is_continued)
    assert (folder / f"{name}.zt").read_bytes() == FILE


def test_a_piece_with_a_wrong_digest_leaves_nothing(server, name):
    place = tus.create(server, name, len(FILE))
    with connect(server) as connection:
        answers = Answers(connection)
        for digest, status in ((repr_digest(DATA), 422), (repr_digest(FILE), 204)):
            connection.sendall(patch_of(place, 0, FILE, 65536, [f"Content-Digest: {digest}"]))
            assert answers.next() == status
            assert tus.offset_of(server, place) == (len(FILE) if status == 204 else 0)
