"""Chunked bodies that the server reads past the HTTP library: chunks of any size in pieces of any size make the same
file, what is not sound is refused with 400 and ends the connection, and what follows is the next request."""

import random
import socket
import time

import pytest
import zstandard

import tus
from containers import dense, pattern, zt1
from test_kept_bodies import LAST, VERSION, Answers, send, smuggled
from uploads import assert_absent
from wire import connect, eventually, get, model_path, read_until_closed
from writers import begin, content, repr_digest

MIB = 1 << 20
DATA = pattern(3 * MIB + 77)
FILE = bytes(zt1({"w": dense(DATA)}))


@pytest.fixture(scope="module")
def server(folder, share_server):
    environment = {"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "200", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "5"}
    return share_server(folder, "--writable", environment=environment)


@pytest.fixture
def victim(server, folder):
    path = folder / f"victim-{len(list(folder.iterdir()))}.zt"
    path.write_bytes(FILE)
    assert eventually(lambda: get(server, model_path(path.stem)).status == 200)
    yield path.stem
    assert path.read_bytes() == FILE


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


SIZES = [(MIB,), (65536,), (8192,), (4096, 1), (100_000, 7, 512 * 1024), (16_000,), (1_000,), (len(FILE),)]


@pytest.mark.parametrize("sizes", SIZES)
def test_chunks_of_any_size_make_the_same_file(server, folder, name, sizes):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name)) + chunked(FILE, sizes) + VERSION + head_of(model_path(name)) + chunked(FILE, sizes) + LAST)
        answers = Answers(connection)
        assert [answers.next() for _ in range(4)] == [201, 200, 204, 200]
        assert answers.is_over()
    assert (folder / f"{name}.zt").read_bytes() == FILE
    assert content(server, name, "w") == DATA


@pytest.mark.parametrize("seed", range(6))
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


def test_a_body_that_waits_for_100_continue_is_accepted(server, folder, name):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), "Expect: 100-continue"))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(chunked(FILE, [65536]) + LAST)
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
    "a chunk without its end": b"0\r\n\r\n",
    "a chunk that ends with a line feed": b"\n0\r\n\r\n",
    "a chunk that ends with a carriage return": b"\rX0\r\n\r\n",
    "a size that is no number": b"\r\nxyz\r\n\r\n0\r\n\r\n",
    "a size with a sign": b"\r\n+5\r\nhello\r\n0\r\n\r\n",
    "a size with a prefix": b"\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "a size with a blank": b"\r\n5 \r\nhello\r\n0\r\n\r\n",
    "a size that ends with a line feed": b"\r\n5\nhello\r\n0\r\n\r\n",
    "a size of 2^63": b"\r\n8000000000000000\r\nhello",
    "a size of 17 digits": b"\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    "an empty size": b"\r\n\r\n0\r\n\r\n",
    "an extension with a line feed": b"\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
    "an extension with a carriage return": b"\r\n5;a\rb\r\nhello\r\n0\r\n\r\n",
    "an extension with NUL": b"\r\n5;a\0b\r\nhello\r\n0\r\n\r\n",
    "an extension that is no token": b"\r\n5;[a]=b\r\nhello\r\n0\r\n\r\n",
    "an extension without a name": b"\r\n5;\r\nhello\r\n0\r\n\r\n",
    "an extension whose quotes do not end": b'\r\n5;a="b\r\nhello\r\n0\r\n\r\n',
    "extensions of 32 KiB": b"\r\n5;" + b"a" * 32768 + b"\r\nhello\r\n0\r\n\r\n",
    "a trailer without a name": b"\r\n0\r\n: x\r\n\r\n",
    "a trailer without a colon": b"\r\n0\r\nnothing\r\n\r\n",
    "a folded trailer": b"\r\n0\r\nX: y\r\n z\r\n\r\n",
    "a trailer that ends with a line feed": b"\r\n0\r\nX: y\n\r\n",
    "a trailer with NUL": b"\r\n0\r\nX: a\0b\r\n\r\n",
    "an end of a line feed": b"\r\n0\r\n\n",
    "an end of a carriage return": b"\r\n0\r\n\rX",
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


@pytest.mark.parametrize("sent", [1, 20_000, MIB + 5, len(FIRST) + 2, -4, -1])
@pytest.mark.parametrize("reset", [False, True])
def test_cut_body_leaves_nothing(server, folder, name, sent, reset):
    connection = connect(server)
    connection.sendall(head_of(model_path(name)) + chunked(FILE, [MIB])[:sent])
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    eventually(lambda: name not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, name)


@pytest.mark.parametrize("sent", [2 * MIB, len(FIRST), len(FIRST) + 3, -5, -1])
def test_a_body_that_stops_is_answered_408(server, folder, name, sent):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name)) + chunked(FILE, [MIB])[:sent])
        answers = Answers(connection)
        assert answers.next() == 408
    eventually(lambda: name not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, name)


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


@pytest.mark.parametrize("chunk", [None, 65536, 1000])
@pytest.mark.parametrize("pieces", [1, 3, 7])
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


@pytest.mark.parametrize("chunk", [None, 65536])
@pytest.mark.parametrize("sent", [200_000, 2 * MIB])
def test_what_came_of_a_cut_piece_stays(server, folder, name, chunk, sent):
    place = tus.create(server, name, len(FILE))
    connection = connect(server)
    connection.sendall(patch_of(place, 0, FILE, chunk)[:sent])
    connection.close()
    offset = eventually(lambda: tus.offset_of(server, place))
    assert 0 < offset <= sent
    answers = None

    def is_continued():
        """The cut piece may still be on its way to the file: its connection is refused and closed."""
        nonlocal answers
        at = tus.offset_of(server, place)
        with connect(server) as connection:
            answers = Answers(connection)
            connection.sendall(patch_of(place, at, FILE[at:], chunk))
            return answers.next() == 204

    assert eventually(is_continued)
    assert answers.fields["repr-digest"] == repr_digest(FILE)
    assert (folder / f"{name}.zt").read_bytes() == FILE


def test_a_piece_with_a_wrong_digest_leaves_nothing(server, name):
    place = tus.create(server, name, len(FILE))
    with connect(server) as connection:
        answers = Answers(connection)
        for digest, status in ((repr_digest(DATA), 422), (repr_digest(FILE), 204)):
            connection.sendall(patch_of(place, 0, FILE, 65536, [f"Content-Digest: {digest}"]))
            assert answers.next() == status
            assert tus.offset_of(server, place) == (len(FILE) if status == 204 else 0)
