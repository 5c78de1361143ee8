"""How long a body may be: lengths that no file has, and upload.max_bytes to the byte."""

import pytest

from uploads import begin_put
from wire import assert_problem, ask, connect, get, model_path, read_head, read_until_closed

LIMIT = 300_000


@pytest.fixture(scope="module")
def server(share_server, folder):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


@pytest.mark.parametrize("length", [LIMIT + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 2])
@pytest.mark.parametrize("target", ["/v1/models/m", "/v1/models"])
def test_length_that_no_body_may_have_is_413(server, length, target):
    method = "PUT" if target.endswith("/m") else "GET"
    length = length if method == "PUT" else max(length, 1 << 60)
    with connect(server) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        received = read_until_closed(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ") and b'"code":"too-large"' in body, received


@pytest.mark.parametrize("length", [LIMIT + 1, 1 << 63, (1 << 64) - 2])
@pytest.mark.parametrize(
    "request_line, field, status",
    [
        ("GET /v1/nothing", "", 404),
        ("PUT /v1/models", "", 405),
        ("PUT /v1/models/%00", "", 400),
        ("PUT /v1/models/m", "If-Match: \"none\"\r\n", 412),
    ],
)
def test_a_refusal_for_another_reason_comes_before_the_length(server, length, request_line, field, status):
    # What is not known of a name without asking is asked at publication only.
    assert get(server, "/v1/models/m").status == 404
    with connect(server) as connection:
        connection.sendall(f"{request_line} HTTP/1.1\r\nHost: x\r\n{field}Content-Length: {length}\r\n\r\n".encode())
        assert read_until_closed(connection).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize("length", [LIMIT + 1, 1 << 63, (1 << 64) - 2])
def test_a_server_without_writes_refuses_any_length_with_403(share_server, folder, length):
    with begin_put(share_server(folder), "/v1/models/m", length) as connection:
        assert read_until_closed(connection).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("length", [(1 << 64) - 1, 1 << 64, 10**30])
def test_length_that_64_bits_do_not_hold_is_413(server, length):
    """The HTTP library answers these by itself."""
    with begin_put(server, "/v1/models/m", length) as connection:
        assert read_until_closed(connection).startswith(b"HTTP/1.1 413 ")


def put_chunked(server, name, length):
    """In chunks of 64 KiB and a rest, so that the last of them alone can pass the limit."""
    sizes = [65536] * (length // 65536) + [length % 65536]
    body = b"".join(b"%x\r\n%b\r\n" % (size, bytes(size)) for size in sizes if size) + b"0\r\n\r\n"
    with begin_put(server, model_path(name), None) as connection:
        connection.sendall(body)
        return read_head(connection)[0]


@pytest.mark.parametrize("over, status", [(0, 422), (1, 413), (4096, 413), (65536, 413)])
def test_chunked_body_is_limited_to_the_byte(server, name, over, status):
    assert put_chunked(server, name, LIMIT + over) == status


@pytest.mark.parametrize("over, status", [(0, 422), (1, 413)])
def test_declared_body_is_limited_to_the_byte(server, name, over, status):
    answer = ask(server, "PUT", model_path(name), body=bytes(LIMIT + over))
    assert_problem(answer, status, "invalid-model" if status == 422 else "too-large")
