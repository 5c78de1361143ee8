"""Large pieces of files, which the server sends past the HTTP library: the bytes, the connection afterwards, and files
that change while they are sent."""

import os

import pytest

from containers import dense, pattern, zt1
from wire import Connection, component_path, connect, eventually, get, read_exactly, read_head

LENGTH = 24 << 20
CONTENT = pattern(LENGTH)
TARGET = component_path("m", "w")


@pytest.fixture
def file(folder):
    path = folder / "m.zt"
    path.write_bytes(zt1({"w": dense(CONTENT)}))
    return path


@pytest.fixture
def server(file, start_server):
    server = start_server(file.parent)
    assert get(server, TARGET).body == CONTENT
    return server


def request_of(fields=""):
    return f"GET {TARGET} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


@pytest.mark.parametrize("first", [0, 1, 4095, 1 << 20, (4 << 20) - 1])
@pytest.mark.parametrize("length", [(1 << 20) - 1, 1 << 20, (8 << 20) + 1, LENGTH - (4 << 20)])
def test_every_byte_is_right_and_the_connection_is_kept(server, first, length):
    with Connection(server) as connection:
        for _ in range(3):
            answer = connection.ask("GET", TARGET, {"Range": f"bytes={first}-{first + length - 1}"})
            assert (answer.status, answer["Content-Length"]) == (206, str(length))
            assert answer.body == CONTENT[first : first + length]


def test_a_kept_connection_counts_once(server):
    def accepted():
        lines = get(server, "/metrics").body.decode().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("ztserve_connections_accepted_total")))

    with Connection(server) as connection:
        before = accepted()
        for _ in range(3):
            assert len(connection.ask("GET", TARGET).body) == LENGTH
        # This one, and the one that asks.
        assert accepted() == before + 2


def test_requests_behind_one_another_are_all_answered(server):
    connection = connect(server)
    connection.sendall(request_of() * 2 + request_of("Connection: close\r\n"))
    begun = b""
    for _ in range(3):
        status, begun = read_head_of(connection, begun)
        assert status == 200
        body = read_exactly(connection, LENGTH, begun)
        assert body[:LENGTH] == CONTENT
        begun = body[LENGTH:]
    assert connection.recv(1) == b""


def read_head_of(connection, begun):
    while b"\r\n\r\n" not in begun:
        begun += connection.recv(65536)
    head, rest = begun.split(b"\r\n\r\n", 1)
    return int(head.split()[1]), rest


def test_the_connection_ends_when_the_client_says_so(server):
    connection = connect(server)
    connection.sendall(request_of("Connection: close\r\n"))
    status, _, begun = read_head(connection)
    assert status == 200
    assert read_exactly(connection, LENGTH, begun) == CONTENT
    assert connection.recv(1) == b""


def test_a_file_that_is_truncated_while_it_is_sent_cuts_the_connection(server, file):
    connection = connect(server, receive_buffer=4096)
    connection.sendall(request_of())
    status, _, begun = read_head(connection)
    assert status == 200
    os.truncate(file, 1 << 20)
    received = begun
    try:
        while piece := connection.recv(1 << 20):
            received += piece
    except ConnectionResetError:
        pass
    assert len(received) < LENGTH
    assert get(server, "/healthz").status == 200


def test_clients_that_leave_in_the_middle_leave_nothing_behind(server):
    def descriptors():
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    before = descriptors()
    for _ in range(20):
        with connect(server, receive_buffer=4096) as connection:
            connection.sendall(request_of())
            read_head(connection)
    assert eventually(lambda: descriptors() <= before)
