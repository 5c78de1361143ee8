"""No event, no work: a connection that waits costs no processor time, in whatever state it is, and a client that never
ends a line is answered instead of being waited for. A connection that the library keeps looking at costs a whole core.

Only the server's threads are looked at, so that other load on the machine does not count."""

import contextlib
import socket

import pytest

from certificates import common_authority, common_certificate
from containers import dense, pattern, zt1
from wire import assert_rests, component_path, connect, get, read_head, read_until_closed

pytestmark = pytest.mark.folder("states of connections, which no store has a part in")

HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
# More than the library's memory for a connection.
LONG = 20_000
BIG = component_path("m", "big").encode()


def request(*fields, line=b"GET /healthz HTTP/1.1", body=b""):
    return line + b"\r\n" + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


PUT = b"PUT /v1/models/never HTTP/1.1"
# As long as a header may be.
FULL = b"X: " + b"y" * 14_900
COOKIES = b"Cookie: " + b"a=b;" * 149

FILLERS = {
    "letters": b"5;" + b"a" * LONG,
    "zeros": b"0" * LONG,
    "quotes": b'5;a="' + b"a" * LONG,
    "NULs": b"5;a" + bytes(LONG),
    "carriage returns": b"5" + b"\r" * LONG,
    "just as much as fits": b"5;" + b"a" * 16_000,
    "little": b"5;" + b"a" * 1000,
}
# The client never ends a line of chunked framing.
ENDLESS = {
    **{f"a size line of {name}": request(CHUNKED, body=body) for name, body in FILLERS.items()},
    **{f"a size line of {name} (PUT)": request(CHUNKED, line=PUT, body=body) for name, body in FILLERS.items()},
    "behind a chunk": request(CHUNKED, line=PUT, body=b"5\r\nhello\r\n5;" + b"a" * LONG),
    "behind 100 KB of chunks": request(CHUNKED, line=PUT, body=(b"2000\r\n" + bytes(8192) + b"\r\n") * 12 + b"5;" + b"a" * LONG),
    "HEAD": request(CHUNKED, line=b"HEAD /healthz HTTP/1.1", body=b"5;" + b"a" * LONG),
    "an unknown path": request(CHUNKED, line=b"GET /nowhere HTTP/1.1", body=b"5;" + b"a" * LONG),
    "Expect": request(CHUNKED, b"Expect: 100-continue", line=PUT, body=b"5;" + b"a" * LONG),
    "a full header": request(FULL, CHUNKED, body=b"5;" + b"a" * LONG),
    "a full header of cookies": request(COOKIES, CHUNKED, body=b"5;" + b"a" * LONG),
    "trailers": request(CHUNKED, body=b"0\r\n" + b"X: y\r\n" * LONG),
    "a trailer": request(CHUNKED, body=b"0\r\nX: " + b"y" * LONG),
    "a header line": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * LONG,
    "a request line": b"GET /" + b"x" * LONG,
    "empty lines": b"\r\n" * LONG,
}
# The server waits for the client.
WAITING = {
    "nothing": b"",
    "half a request line": b"GET /hea",
    "half a header": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: ",
    "a long part of a header": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 12_000,
    "a body that has begun": request(b"Content-Length: 100", body=b"hello"),
    "a full header and a body": request(FULL, b"Content-Length: 100", body=b"hello"),
    "an upload": request(b"Content-Length: 1000", line=PUT, body=b"hello"),
    "a long upload": request(b"Content-Length: 1000000", line=PUT, body=bytes(200_000)),
    "a long upload in chunks": request(CHUNKED, line=PUT, body=b"100000\r\n" + bytes(200_000)),
    "an upload that expects 100": request(b"Content-Length: 1000", b"Expect: 100-continue", line=PUT),
    "part of a size": request(CHUNKED, body=b"5"),
    "a size and a carriage return": request(CHUNKED, body=b"5\r"),
    "a full header and part of an extension": request(FULL, CHUNKED, body=b"5;" + b"a" * 400),
    "part of a chunk": request(CHUNKED, body=b"5\r\nhe"),
    "a chunk and a carriage return": request(CHUNKED, body=b"5\r\nhello\r"),
    "a last chunk": request(CHUNKED, body=b"0\r\n"),
    "part of a trailer": request(CHUNKED, body=b"0\r\nX: y"),
    "a full header and a trailer": request(FULL, CHUNKED, body=b"0\r\nX: y\r\n"),
    "an answer": request(),
    "a refusal": request(b"Content-Length: 1000", line=b"PUT /nowhere HTTP/1.1", body=b"hello"),
    "answers and half a request": request() * 3 + b"GET /hea",
    "a large answer that is not read": request(line=b"GET " + BIG + b" HTTP/1.1"),
}
# Instead of a TLS handshake.
HANDSHAKES = {"half a record's header": b"\x16\x03\x01", "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)}

ENDINGS = ["open", "half-closed", "closed"]


@pytest.fixture(scope="module")
def models(folder):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000)), "big": dense(pattern(32 << 20))}))
    return folder


# Longer than the tests take: a connection that spins must not be ended by a deadline.
LIMITS = {"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "120", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "120"}


@pytest.fixture(scope="module", params=["plain", "TLS"])
def server(request, models, share_server):
    if request.param == "plain":
        return share_server(models, "--writable", "--shared", environment=LIMITS)
    arguments = common_certificate().arguments
    return share_server(models, "--writable", "--shared", *arguments, environment=LIMITS, tls=common_authority())


def bare(server):
    return socket.create_connection((server.host, server.port), timeout=60)


def send(connection, data):
    """As much as the server wants: it may have answered already."""
    with contextlib.suppress(OSError):
        connection.sendall(data)


def end(connection, ending):
    with contextlib.suppress(OSError):
        if ending == "half-closed":
            connection.shutdown(socket.SHUT_WR)
        elif ending == "closed":
            connection.close()


def put_into(server, stack, states, ending):
    """Brings one connection into each of these states."""
    for data in states.values():
        connection = stack.enter_context(connect(server, receive_buffer=4096))
        send(connection, data)
        end(connection, ending)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("states", [WAITING, ENDLESS], ids=["waiting", "endless"])
def test_idle_connections_take_no_processor_time(server, states, ending):
    with contextlib.ExitStack() as stack:
        put_into(server, stack, states, ending)
        assert_rests(server)
    assert_rests(server)


def test_unfinished_handshakes_take_no_processor_time(server):
    if server.context is None:
        pytest.skip("there is no handshake in plain text")
    with contextlib.ExitStack() as stack:
        for data in list(HANDSHAKES.values()) * 10:
            send(stack.enter_context(bare(server)), data)
        assert_rests(server)
        assert get(server, "/healthz").status == 200


@pytest.mark.parametrize("name", ENDLESS)
def test_line_without_end_is_answered(server, name):
    with connect(server) as connection:
        send(connection, ENDLESS[name])
        status, _, _ = read_head(connection)
        if status == 100:
            status, _, _ = read_head(connection)
        assert status in ({404} if name == "an unknown path" else {400, 413, 414, 431})
        read_until_closed(connection)
