"""HTTP/1.1 on a bare socket: keep-alive and pipelining, slow and vanishing clients, and odd but legal requests. What must
be refused is in hostile_requests.py.
"""

import re
import socket
import time

import pytest

from containers import dense, pattern, zt1
from wire import TIMEOUT_S, component_path, connect, get, head, read_exactly, read_head, read_until_closed, talk

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
VERSION = b'"version"'


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000)), "big": dense(pattern(3_000_000))}))
    return share_server(folder)


@pytest.fixture(scope="module")
def hasty(folder, server, share_server):
    return share_server(
        folder, environment={"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "1", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2"}
    )


def request(method="GET", target="/healthz", *fields):
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *fields, "", ""]
    return "\r\n".join(lines).encode()


def statuses(received):
    return [int(status) for status in STATUS.findall(received)]


def test_connection_is_kept(server):
    with connect(server) as connection:
        for _ in range(50):
            connection.sendall(request(target=component_path("m", "w")))
            status, fields, begun = read_head(connection)
            assert status == 200 and fields.get("connection", "keep-alive").lower() != "close"
            assert read_exactly(connection, int(fields["content-length"]), begun) == pattern(1000)


def test_pipelined_requests_are_answered_in_order(server):
    paths = ["/v1/models/m/objects/w/data", "/nowhere", "/v1/models/m/objects/big/data", "/version"] * 5
    data = b"".join(request(target=path) for path in paths) + request("GET", "/healthz", "Connection: close")
    received = talk(server, data)
    assert statuses(received) == [200, 404, 200, 200] * 5 + [200]
    assert received.count(pattern(3_000_000)) == 5


def test_pipelined_mix_of_head_and_errors(server):
    data = request("HEAD", "/v1/models/m/objects/w/data") + request("HEAD", "/nowhere") + request("OPTIONS", "/healthz")
    received = talk(server, data + request("GET", "/version", "Connection: close"))
    assert statuses(received) == [200, 404, 204, 200]


def test_request_in_single_bytes_is_understood(server):
    with connect(server) as connection:
        for byte in request("GET", "/version", "Connection: close"):
            connection.sendall(bytes([byte]))
        assert VERSION in read_until_closed(connection)


def test_close_is_kept(server):
    received = talk(server, request("GET", "/version", "Connection: close"))
    assert b"connection: close" in received.lower()


def test_http_1_0_without_chunks(server):
    received = talk(server, b"GET /v1/models/m HTTP/1.0\r\nHost: x\r\n\r\n")
    assert statuses(received) == [200]
    assert b"transfer-encoding" not in received.lower()


@pytest.mark.parametrize("pieces", [1, 7, 2000])
@pytest.mark.parametrize(
    "fields",
    [
        ["X-Long: " + "v" * 6000],
        ["X-Longer: " + "v" * 5000, *(f"X-{index}: y" for index in range(50)), "X-Longest: " + "v" * 5000],
        [f"X-{index}:{' ' * (index % 3)}{'v' * (index % 5 * 30)}{' ' * (index % 2)}" for index in range(90)],
        ["Cookie: a=b; c=d", "X-Empty:", "X-Tab:\t\ty", "Accept: a;q=0.5, b", "X-Empty-Too:  "],
    ],
)
def test_plain_headers_of_any_shape_are_understood(server, fields, pieces):
    data = request("GET", "/version?timing=%31&&timing=0&", *fields) * 2 + request("GET", "/healthz", "Connection: close")
    with connect(server) as connection:
        for at in range(0, len(data), len(data) // pieces + 1):
            connection.sendall(data[at : at + len(data) // pieces + 1])
        assert statuses(read_until_closed(connection)) == [200, 200, 200]


def test_body_of_a_refused_put_is_not_the_next_request(server):
    smuggled = request("GET", "/version", "Connection: close")
    received = talk(server, request("PUT", "/v1/models/x", f"Content-Length: {len(smuggled)}") + smuggled)
    assert statuses(received) == [403] and VERSION not in received


@pytest.mark.timeout(TIMEOUT_S)
def test_header_that_never_ends_is_cut(hasty):
    began = time.monotonic()
    with connect(hasty) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        try:
            while time.monotonic() - began < TIMEOUT_S:
                connection.sendall(b"X")
                connection.settimeout(0.1)
                try:
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    pass
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert time.monotonic() - began < 20


def test_idle_connection_is_closed(hasty):
    with connect(hasty) as connection:
        connection.sendall(request())
        assert read_head(connection)[0] == 200
        assert read_until_closed(connection) is not None


def test_half_closed_client_gets_its_answer(server):
    with connect(server) as connection:
        connection.sendall(request(target=component_path("m", "big")))
        connection.shutdown(socket.SHUT_WR)
        received = read_until_closed(connection)
    assert received == b"" or received.endswith(pattern(3_000_000)[-1000:])
    assert get(server, "/healthz").status == 200


def test_reset_connections_do_not_harm(server):
    for _ in range(50):
        connection = connect(server)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.sendall(request(target=component_path("m", "big")))
        connection.close()
    assert get(server, component_path("m", "w")).body == pattern(1000)


@pytest.mark.parametrize("count", [128, 200])
def test_many_connections_ready_at_once_are_all_answered(server, count):
    connections = [connect(server) for _ in range(count)]
    for connection in connections:
        connection.sendall(request("GET", "/version", "Connection: close"))
    assert all(VERSION in read_until_closed(connection) for connection in connections)
    for connection in connections:
        connection.close()


def test_answers_have_a_date_and_no_stray_body(server):
    for answer in (get(server, "/healthz"), head(server, "/nowhere")):
        assert answer["Date"].endswith(" GMT")
