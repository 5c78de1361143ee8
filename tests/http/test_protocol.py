"""HTTP/1.1 on a bare socket: keep-alive and pipelining, slow and vanishing clients, and odd but legal requests. What must
be refused is in hostile_requests.py.
"""

import re
import socket

import pytest

from containers import dense, pattern, zt1
from wire import component_path, connect, get, head, read_exactly, read_head, read_until_closed, talk

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
VERSION = b'"version"'


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000)), "big": dense(pattern(3_000_000))}))
    return share_server(folder)


@pytest.fixture(scope="module")
def hasty(folder, server, share_server):
    return share_server(folder, environment={"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "1", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2"})


def request(method="GET", target="/healthz", *fields):
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *fields, "", ""]
    return "\r\n".join(lines).encode()


def statuses(received):
    return [int(status) for status in STATUS.findall(received)]


def test_connection_is_kept(server):
    with connect(server) as connection:
        for _ in range(5):
            connection.sendall(request(target=component_path("m", "w")))
            status, fields, begun = read_head(connection)
            assert status == 200 and fields.get("connection", "keep-alive").lower() != "close"
            assert read_exactly(connection, int(fields["content-length"]), begun) == pattern(1000)


def test_pipelined_requests_are_answered_in_order(server):
    paths = ["/v1/models/m/objects/w/data", "/nowhere", "/v1/models/m/objects/big/data", "/version"] * 2
    data = b"".join(request(target=path) for path in paths) + request("GET", "/healthz", "Connection: close")
    received = talk(server, data)
    assert statuses(received) == [200, 404, 200, 200] * 2 + [200]
    assert received.count(pattern(3_000_000)) == 2


def test_http_1_0_without_chunks(server):
    received = talk(server, b"GET /v1/models/m HTTP/1.0\r\nHost: x\r\n\r\n")
    assert statuses(received) == [200]
    assert b"transfer-encoding" not in received.lower()


@pytest.mark.parametrize("pieces", [1, 2000])
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


def test_many_connections_ready_at_once_are_all_answered(server):
    connections = [connect(server) for _ in range(200)]
    for connection in connections:
        connection.sendall(request("GET", "/version", "Connection: close"))
    assert all(VERSION in read_until_closed(connection) for connection in connections)
    for connection in connections:
        connection.close()


def test_answers_have_a_date_and_no_stray_body(server):
    for answer in (get(server, "/healthz"), head(server, "/nowhere")):
        assert answer["Date"].endswith(" GMT")
