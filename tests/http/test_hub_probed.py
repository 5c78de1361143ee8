"""Paths that Hub clients try to find out what a server can do: the answer is the same for a body of any length."""

import pytest

from containers import pattern
from wire import ask, connect, read_until_closed

MIB = 1 << 20
# Above what is dropped to keep a connection, above JSON, xorbs and shards, and above upload.max_bytes.
LENGTHS = [0, MIB + 1, 64 * MIB + 1, (1 << 63) - 1]
CAS = "/api/cas/0123456789abcdef0123456789abcdef"
PROBED = [
    ("POST", f"{CAS}/v2/shards", 404),
    ("POST", f"{CAS}/shards", 404),
    ("POST", f"{CAS}/v2/xorbs/default/{'0' * 64}", 404),
    ("POST", f"{CAS}/v1/files", 404),
    ("POST", "/api/models/org/m/branch/b", 403),
    ("POST", "/api/models/org/m/tag/t", 403),
    ("PUT", "/api/models/org/m/settings", 403),
    ("DELETE", "/api/repos/delete", 403),
    ("POST", "/api/models/org/m/discussions", 405),
    ("POST", "/api/datasets/org/m/preupload/main", 404),
    ("POST", "/org/m.git/info/lfs/locks", 404),
    ("POST", "/org/m.git/info/lfs/locks/verify", 404),
    ("POST", "/org/m.git/git-upload-pack", 404),
]


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(1 << 40)})


def begin(method, path, framing):
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode()


def status_of(received):
    return int(received.split(b" ", 2)[1])


@pytest.mark.parametrize(("method", "path", "status"), PROBED)
def test_a_probe_is_answered_before_its_body_whatever_the_length(server, method, path, status):
    for length in LENGTHS:
        closing = "Connection: close\r\n" if length == 0 else ""
        with connect(server) as connection:
            connection.sendall(begin(method, path, f"{closing}Content-Length: {length}"))
            assert status_of(read_until_closed(connection)) == status, length


@pytest.mark.parametrize(("method", "path", "status"), PROBED)
def test_a_client_that_sends_everything_first_reads_the_answer(server, method, path, status):
    assert ask(server, method, path, {}, pattern(5 * MIB)).status == status


@pytest.mark.parametrize(("method", "path", "status"), PROBED)
def test_a_probe_with_a_chunked_body_is_answered(server, method, path, status):
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with connect(server) as connection:
        connection.sendall(begin(method, path, "Transfer-Encoding: chunked") + chunk * 40 + b"0\r\n\r\n")
        assert status_of(read_until_closed(connection)) == status


@pytest.mark.parametrize(("length", "status"), [(MIB + 1, 200), (64 * MIB + 1, 200), (1 << 40, 413)])
def test_the_metadata_of_a_long_readme_is_not_refused(server, length, status):
    with connect(server) as connection:
        connection.sendall(begin("POST", "/api/validate-yaml", f"Content-Length: {length}"))
        assert status_of(read_until_closed(connection)) == status
    if length == MIB + 1:
        assert ask(server, "POST", "/api/validate-yaml", {}, pattern(length)).status == 200


def test_a_chunked_body_that_no_one_wants_ends_with_413(server):
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with connect(server) as connection:
        connection.sendall(begin("POST", "/v1/models/m/verification", "Transfer-Encoding: chunked") + chunk * 40 + b"0\r\n\r\n")
        assert status_of(read_until_closed(connection)) == 413
