"""Who may connect: the limit on the connections of the process, the limit for each address, and what the client that is
one too many learns."""

import contextlib
import socket
import subprocess

import pytest

from containers import dense, pattern, zt1
from server_process import PROGRAM
from wire import connect, eventually, read_head, read_until_closed

LIMIT = 40
SURPLUS = 64
LOOPS = 16
VERSION = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


def start(start_server, folder, **limits):
    environment = {f"ZTSERVE_LIMITS_{name.upper()}": str(value) for name, value in limits.items()}
    return start_server(folder, environment={**environment, "ZTSERVE_THREADS": str(LOOPS)})


@pytest.fixture
def server(start_server, tmp_path):
    return start(start_server, tmp_path, connections=LIMIT)


def status_of(connection):
    connection.sendall(VERSION)
    return read_head(connection)[0]


def connect_many(stack, server, count):
    return [stack.enter_context(connect(server)) for _ in range(count)]


def assert_overloaded(received):
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    assert lines[0] == "HTTP/1.1 503 Service Unavailable", received
    assert int(fields["retry-after"]) > 0 and fields["connection"] == "close"
    assert int(fields["content-length"]) == len(body)
    assert b'"code":"overloaded"' in body and fields["x-request-id"].encode() in body


@pytest.mark.parametrize("asks", [False, True])
def test_a_connection_over_the_limit_gets_503_and_is_closed(server, asks):
    with contextlib.ExitStack() as stack:
        connections = connect_many(stack, server, LIMIT)
        assert [status_of(connection) for connection in connections] == [200] * LIMIT
        for _ in range(3):
            with connect(server) as surplus:
                if asks:
                    surplus.sendall(VERSION)
                assert_overloaded(read_until_closed(surplus))
        assert [status_of(connection) for connection in connections] == [200] * LIMIT
    eventually(lambda: any("connections are in use" in line for line in server.log_lines))


def test_a_request_over_the_limit_is_not_carried_out(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(pattern(16))}))
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_LIMITS_CONNECTIONS": "2"})
    with contextlib.ExitStack() as stack:
        connections = connect_many(stack, server, 2)
        assert [status_of(connection) for connection in connections] == [200] * 2
        with connect(server) as surplus:
            surplus.sendall(b"DELETE /v1/models/m HTTP/1.1\r\nHost: x\r\n\r\n")
            assert_overloaded(read_until_closed(surplus))
        assert [status_of(connection) for connection in connections] == [200] * 2
    server.stop()
    assert (tmp_path / "m.zt").exists()


@contextlib.contextmanager
def full(server, limit=LIMIT):
    """While others have all connections."""
    with contextlib.ExitStack() as stack:
        connections = connect_many(stack, server, limit)
        assert [status_of(connection) for connection in connections] == [200] * limit
        yield
        assert [status_of(connection) for connection in connections] == [200] * limit


@pytest.mark.parametrize("method, path", [("GET", "/healthz"), ("HEAD", "/readyz")])
def test_a_probe_over_the_limit_is_answered_and_closed(server, method, path):
    with full(server):
        # More than there are places, so each must be free again.
        for _ in range(SURPLUS + 10):
            with connect(server) as surplus:
                surplus.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 2)
                received = read_until_closed(surplus)
                assert received.startswith(b"HTTP/1.1 200 ") and b"\r\nConnection: close\r\n" in received, received
                assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "request_head",
    [
        "POST /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nContent-Length: 5\r\n",
        "GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
        "GET /v1/models HTTP/1.1\r\n",
    ],
)
def test_what_only_resembles_a_probe_gets_503_over_the_limit(server, request_head):
    with full(server), connect(server) as surplus:
        surplus.sendall(f"{request_head}Host: x\r\n\r\n".encode())
        assert_overloaded(read_until_closed(surplus))


def test_a_client_may_send_its_body_although_its_503_is_there(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_LIMITS_CONNECTIONS": "2"})
    size = 16 << 20
    with full(server, 2), connect(server) as surplus:
        surplus.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        surplus.sendall(f"PUT /v1/models/m HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        assert surplus.recv(1, socket.MSG_PEEK) == b"H"
        surplus.sendall(bytes(size))
        assert_overloaded(read_until_closed(surplus))


@pytest.mark.parametrize("begin", [b"GET /healthz HTTP/1.1\r\nHost:", b"GET"])
def test_a_request_over_the_limit_that_does_not_end_is_cut(server, begin):
    with full(server), connect(server) as surplus:
        surplus.sendall(begin)
        received = read_until_closed(surplus)
        if received:
            assert_overloaded(received)


def test_ztserve_healthcheck_succeeds_over_the_limit(server):
    with full(server):
        for option in [[], ["--ready"]]:
            command = [PROGRAM, "healthcheck", *option, f"http://{server.host}:{server.port}"]
            done = subprocess.run(command, capture_output=True, timeout=60)
            assert done.returncode == 0, done


def status_or_none(server):
    """None if the connection is closed without an answer, as it is while too many clients are being refused."""
    with connect(server) as connection:
        try:
            return status_of(connection)
        except (ConnectionError, ValueError, IndexError, AssertionError):
            return None


def is_served(server):
    return status_or_none(server) == 200


def test_connections_are_admitted_again_when_others_close(server):
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            for connection in connect_many(stack, server, LIMIT + 10):
                connection.sendall(VERSION)
        eventually(lambda: is_served(server))


def test_silent_connections_over_the_limit_end_soon(server):
    """So that others can be answered too."""
    with contextlib.ExitStack() as stack:
        connections = connect_many(stack, server, LIMIT)
        assert [status_of(connection) for connection in connections] == [200] * LIMIT
        for surplus in connect_many(stack, server, SURPLUS):
            assert read_head(surplus)[0] == 503
        eventually(lambda: status_or_none(server) == 503, within_s=120)


def test_the_log_warns_once_however_many_loops_there_are(server):
    with contextlib.ExitStack() as stack:
        connections = connect_many(stack, server, LIMIT)
        assert [status_of(connection) for connection in connections] == [200] * LIMIT
        for surplus in connect_many(stack, server, SURPLUS):
            assert read_head(surplus)[0] == 503
    server.stop()
    # Once in a while, if that takes long.
    assert 0 < sum("connections are in use" in line for line in server.log_lines) < LOOPS // 2


def test_far_too_many_connections_are_closed(server):
    """The number of clients that are being refused is limited too."""
    with contextlib.ExitStack() as stack:
        answers = []
        for connection in connect_many(stack, server, LIMIT + 200):
            with contextlib.suppress(ConnectionError):
                connection.sendall(VERSION)
            try:
                answers.append(read_head(connection)[0])
            except (ConnectionError, ValueError, IndexError, AssertionError):
                answers.append(None)
        assert answers.count(200) >= LIMIT
        assert set(answers) <= {200, 503, None} and answers.count(503) > 0
    eventually(lambda: is_served(server))


def test_connections_that_asked_nothing_leave_their_address(start_server, tmp_path):
    server = start(start_server, tmp_path, connections_per_address=4)
    for _ in range(20):
        connect(server).close()

    def four_are_served():
        with contextlib.ExitStack() as stack:
            try:
                return [status_of(connection) for connection in connect_many(stack, server, 4)] == [200] * 4
            except (ConnectionError, ValueError, IndexError, AssertionError):
                return False

    eventually(four_are_served)


def test_one_more_connection_of_an_address_is_closed(start_server, tmp_path):
    server = start(start_server, tmp_path, connections_per_address=4)
    with contextlib.ExitStack() as stack:
        for connection in connect_many(stack, server, 4):
            assert status_of(connection) == 200
        with connect(server) as fifth, contextlib.suppress(ConnectionError):
            fifth.sendall(VERSION)
            assert fifth.recv(1) == b""


def test_a_refusal_reaches_a_client_that_sends_its_whole_body_first(start_server, tmp_path):
    server = start_server(tmp_path)
    size = 16 << 20
    with connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        connection.sendall(f"PUT /v1/models/m HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        connection.sendall(bytes(size))
        status, fields, _ = read_head(connection)
        assert status == 403 and fields["connection"] == "close"
