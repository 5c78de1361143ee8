"""The library removes a connection late if an older one on its loop is idle; no answer may wait for that."""

import os

import pytest

from containers import dense, pattern, zt1
from wire import component_path, connect, read_exactly, read_head

DATA = pattern(24 << 20)
PATH = component_path("m", "w")


@pytest.fixture
def server(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(DATA)}))
    return start_server(tmp_path, "--threads", "1")


@pytest.fixture
def neighbour(server):
    """It made a request and stays."""
    with connect(server) as connection:
        ask(connection)
        read_head(connection)
        yield connection


def ask(connection, path="/healthz", *fields):
    lines = [f"GET {path} HTTP/1.1", "Host: x", *fields, "", ""]
    connection.sendall("\r\n".join(lines).encode())


def download(connection, *fields):
    ask(connection, PATH, *fields)
    status, _, begun = read_head(connection)
    assert status == 200
    assert begun + read_exactly(connection, len(DATA) - len(begun)) == DATA


def test_a_connection_that_is_to_close_closes(server, neighbour):
    with connect(server) as connection:
        download(connection, "Connection: close")
        assert connection.recv(1) == b""


def test_a_connection_that_is_kept_is_served_on(server, neighbour):
    with connect(server) as connection:
        for _ in range(3):
            download(connection)
            ask(connection)
            assert read_head(connection)[0] == 200


@pytest.mark.folder("files that change under a download")
@pytest.mark.parametrize("target", [PATH, "/files/m.zt"])
def test_an_answer_that_is_cut_ends(server, neighbour, tmp_path, target):
    with connect(server, receive_buffer=1 << 16) as connection:
        ask(connection, target)
        status, _, _ = read_head(connection)
        assert status == 200
        os.truncate(tmp_path / "m.zt", 1 << 20)
        received = 0
        while chunk := connection.recv(1 << 20):
            received += len(chunk)
        assert received < len(DATA)
