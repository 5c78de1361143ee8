"""What a connection costs and when it ends: requests that the HTTP library rejects, clients that leave in the
middle, and more clients than there may be connections.
"""

import concurrent.futures
import contextlib
import itertools
import resource
import signal
import socket
import time

import pytest

from containers import dense, pattern, zt1
from wire import assert_problem, assert_rests, component_path, connect, descriptors, eventually, get, read_exactly, read_head
from wire import read_until_closed, talk

BIG = pattern(24 << 20)
# Far longer than anything here may take: a test that waits for a timeout fails.
PATIENT = {"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "600", "ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "600", "ZTSERVE_DRAIN_S": "600"}
SOON_S = 180
CLIENTS = 30

# The connection goes on after the first request; the second begins and ends with the connection.
UNFINISHED = {
    "request line": b"GET /v1/mod",
    "header": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX: ",
    "second header": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\nX: ",
    "whole request": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "body": b"PUT /v1/models/cut HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 1000,
    "chunk": b"PUT /v1/models/cut HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nxxx",
    "no body": b"PUT /v1/models/cut HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
}


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(BIG), "s": dense(b"12")}))
    return start_server(tmp_path, "--writable", environment=PATIENT)


def least_descriptors(server):
    """Without those that a thread has open for a moment, to read a folder."""
    counts = []
    for _ in range(20):
        counts.append(descriptors(server))
        time.sleep(0.01)
    return min(counts)


def assert_stops_soon(server):
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize("pairs", [1000, 3000])
def test_header_too_long_for_the_library_leaks_nothing(server, pairs):
    """Its parts take more of the library's memory than the field, and the library then does not report the end."""
    cookie = "; ".join(["a=b"] * pairs)
    for target in ("/healthz", "/nowhere"):
        fields = f"Host: x\r\nCookie: {cookie}\r\nConnection: close\r\n"
        received = talk(server, f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode())
        assert received == b"" or int(received.split()[1]) in (200, 404, 431), received[:100]
    assert_stops_soon(server)
    assert sum(f" {target} " in line for line in server.log_lines for target in ("/healthz", "/nowhere")) == 2


@pytest.mark.parametrize("count", [65, 800])
def test_many_matches_reach_their_limit(server, count):
    answer = get(server, "/v1/models/m?" + "&".join(["match=a"] * count))
    assert "at most 64" in assert_problem(answer, 400, "invalid-request")["detail"]


def test_query_of_thousands_of_parameters_is_read(server):
    target = component_path("m", "s") + "?" + "timing&" * 1000
    received = talk(server, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 200 ") and received.endswith(b"\r\n\r\n12"), received
    assert get(server, "/v1/models/m?" + "timing&" * 1000 + "match=nothing").json()["objects"] == {}
    assert_stops_soon(server)


@pytest.mark.parametrize("part", UNFINISHED)
def test_client_that_left_in_the_middle_is_noticed(server, part):
    """The end of the stream arrives with the last bytes, or right after them."""
    get(server, "/healthz")
    time.sleep(0.2)
    before = descriptors(server)
    for _ in range(CLIENTS):
        with connect(server) as connection:
            connection.sendall(UNFINISHED[part])
    eventually(lambda: descriptors(server) <= before, within_s=SOON_S)
    assert_stops_soon(server)


@pytest.mark.parametrize("part", UNFINISHED)
def test_half_closed_client_in_the_middle_is_let_go(server, part):
    for _ in range(10):
        with connect(server) as connection:
            connection.sendall(UNFINISHED[part])
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(SOON_S)
            read_until_closed(connection)


def test_half_closed_client_gets_its_slow_answer(server):
    request = f"GET {component_path('m', 'w')} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with connect(server, receive_buffer=4096) as connection:
        connection.sendall(request + request)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        for _ in range(2):
            status, fields = read_head_exactly(connection)
            assert status == 200
            assert read_exactly(connection, int(fields["content-length"])) == BIG
        assert read_until_closed(connection) == b""


def read_head_exactly(connection):
    """As read_head, but reads nothing of the next answer."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        received += connection.recv(1)
    lines = received.decode("latin-1").split("\r\n")[:-2]
    fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    return int(lines[0].split()[1]), fields


@pytest.mark.parametrize("chunked", [False, True])
def test_half_closed_client_gets_its_upload_confirmed(server, tmp_path, chunked):
    data = zt1({"w": dense(pattern(3_000_000))})
    field = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data) if chunked else data
    with connect(server) as connection:
        connection.sendall(f"PUT /v1/models/u HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        assert read_head(connection)[0] == 201
    assert (tmp_path / "u.zt").read_bytes() == data


def test_half_closed_clients_get_their_short_uploads_confirmed(server):
    """The end of the stream arrives before, with or after the moment from which the request waits for workers."""
    data = zt1({"w": dense(b"12")})

    def upload(index):
        with connect(server) as connection:
            head = f"PUT /v1/models/s{index} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            connection.shutdown(socket.SHUT_WR)
            return read_until_closed(connection)[:12]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(upload, range(60))) == {b"HTTP/1.1 201"}


@pytest.mark.parametrize("count", [8, 24])
def test_after_the_limit_of_connections_the_next_is_served(start_server, tmp_path, count):
    server = start_server(tmp_path, environment={**PATIENT, "ZTSERVE_LIMITS_CONNECTIONS": "8"})
    connections = [connect(server) for _ in range(count)]
    for connection in connections:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    for connection in connections:
        assert read_head(connection)[0] in (200, 503)
    for connection in connections:
        connection.close()
    for _ in range(8):
        eventually(lambda: status_on_a_new_connection(server) == 200)


def status_on_a_new_connection(server):
    """503 as long as the server has not noticed that others have closed."""
    with connect(server) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return read_head(connection)[0]


@pytest.mark.parametrize("spare", [0, 3])
def test_without_descriptors_the_server_rests_and_then_refuses(start_server, tmp_path, spare):
    server = start_server(tmp_path, environment=PATIENT)
    process = server.process.pid
    few = least_descriptors(server) + spare
    _, hard = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (few, hard))
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(connect(server)) for _ in range(spare + 12)]
        for connection in waiting:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert_rests(server)
        answers = {read_head(connection)[0] for connection in waiting}
        # Without a spare one, a thread that closes its folder may still leave room for a client.
        assert answers == {200, 503} or (spare == 0 and answers == {503})
    resource.prlimit(process, resource.RLIMIT_NOFILE, (few + 20, hard))
    eventually(lambda: status_on_a_new_connection(server) == 200)


def test_connections_are_accepted_again_after_descriptors_ran_out(start_server, tmp_path):
    server = start_server(tmp_path, environment=PATIENT)
    process = server.process.pid
    few = least_descriptors(server) + 3
    resource.prlimit(process, resource.RLIMIT_NOFILE, (few, few))

    def ask_often(_):
        return [talk(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[:12] for _ in range(50)]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(itertools.chain.from_iterable(pool.map(ask_often, range(16))))
    # The server refuses those that wait when no other has left for two seconds.
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"} and answers.count(b"HTTP/1.1 200") > len(answers) // 2
    eventually(lambda: status_on_a_new_connection(server) == 200)
