"""Starting, health, reloading and stopping, as an operator sees them."""

import json
import os
import signal
import socket
import subprocess

import pytest

from containers import dense, pattern, zt1
from server_process import PROGRAM, held_port
from wire import Connection, begin_answer, component_path, connect, eventually, get, head, read_exactly, read_head, read_until_closed

BIG = pattern(24 << 20)
# Time limit of a start that must fail; a server that started anyway would keep running.
RUN_TIMEOUT_S = 60


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(BIG), "s": dense(b"12")}))
    return start_server(tmp_path)


def run(*arguments, environment=None):
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        env={**os.environ, **(environment or {})},
    )


def serve(*arguments, **options):
    return run("serve", "--listen", "127.0.0.1:0", *arguments, **options)


def assert_one_clear_line(result, status, *words):
    assert result.returncode == status, result
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert result.stdout == ""


def test_health_readiness_and_version(server):
    for path in ("/healthz", "/readyz", "/version"):
        got, asked = get(server, path), head(server, path)
        assert (got.status, asked.status, asked.body) == (200, 200, b"")
        assert asked["Content-Length"] == got["Content-Length"] == str(len(got.body))
    version = get(server, "/version").json()["version"]
    assert version in run("--version").stdout


@pytest.mark.parametrize("arguments, word", [(["--nonsense"], "--nonsense"), (["--threads", "-1"], "--threads"), (["extra"], "extra")])
def test_wrong_usage_is_2_and_names_the_wrong(tmp_path, arguments, word):
    result = run("serve", "--root", tmp_path, *arguments)
    assert result.returncode == 2, result
    assert word in result.stderr
    assert result.stdout == ""


def test_port_in_use_is_1(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--root", tmp_path, "--listen", f"127.0.0.1:{port}")
    assert_one_clear_line(result, 1, str(port))


def test_port_of_another_ztserve_is_1(server, tmp_path):
    result = run("serve", "--root", tmp_path, "--listen", f"127.0.0.1:{server.port}")
    assert_one_clear_line(result, 1, str(server.port))
    assert get(server, "/healthz").status == 200


def test_missing_root_is_a_clear_line(tmp_path):
    assert_one_clear_line(serve("--root", tmp_path / "nothing"), 1, "nothing")


def test_root_that_is_a_file_gives_a_clear_message(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert_one_clear_line(serve("--root", tmp_path / "file"), 1, "file")


def test_empty_root_is_served_and_filled_later(start_server, tmp_path):
    server = start_server(tmp_path)
    assert get(server, "/v1/models").json() == {"models": [], "next": None}
    assert get(server, "/readyz").status == 200
    (tmp_path / "m.zt").write_bytes(zt1({}))
    eventually(lambda: get(server, "/v1/models/m").status == 200)


@pytest.mark.folder("roots that disappear")
def test_root_that_disappears_stops_nothing(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(zt1({}))
    server = start_server(root)
    root.rename(tmp_path / "elsewhere")
    assert get(server, "/healthz").status == 200
    server.signal(signal.SIGHUP)
    eventually(lambda: get(server, "/v1/models").status == 200)


def test_other_address_is_not_writable_without_tokens(tmp_path):
    result = run("serve", "--root", tmp_path, "--listen", "0.0.0.0:0", "--writable")
    assert result.returncode in (1, 2) and result.stderr.strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_an_idle_server_with_0(start_server, tmp_path, number):
    server = start_server(tmp_path)
    with Connection(server) as idle:
        assert idle.ask("GET", "/healthz").status == 200
        server.signal(number)
        assert server.wait() == 0


class Paused:
    """A download of the big component whose reader stopped after the head."""

    def __init__(self, server):
        self.connection, status, self.fields, self.begun = begin_answer(server, component_path("m", "w"))
        assert status == 200

    def finish(self):
        return read_exactly(self.connection, int(self.fields["content-length"]), self.begun)


def refuses_connections(server):
    try:
        connect(server).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the socket was closed between the two ends of the handshake
    return False


def test_sigterm_lets_a_download_finish_and_takes_no_new_connections(server):
    download = Paused(server)
    server.signal(signal.SIGTERM)
    eventually(lambda: refuses_connections(server))
    assert server.process.poll() is None
    assert download.finish() == BIG
    assert read_until_closed(download.connection) == b""
    assert server.wait() == 0


def test_an_open_connection_is_told_to_close_while_draining(server):
    download = Paused(server)
    with Connection(server) as other, Connection(server) as third:
        assert other.ask("GET", "/readyz").status == 200
        assert third.ask("GET", "/healthz").status == 200
        # Of which the first line has been read, so that it is waited for.
        other.http.sock.sendall(b"GET /readyz HTTP/1.1\r\n")
        eventually(lambda: b"ztserve_http_requests_in_progress 3\n" in get(server, "/metrics").body)
        server.signal(signal.SIGTERM)
        eventually(lambda: refuses_connections(server))
        other.http.sock.sendall(b"Host: x\r\n\r\n")
        status, fields, body = read_head(other.http.sock)
        body = read_exactly(other.http.sock, int(fields["content-length"]), body)
        assert (status, json.loads(body)["code"], fields["connection"].lower()) == (503, "draining", "close")
    assert download.finish() == BIG
    assert server.wait() == 0


def test_upload_under_way_is_drained(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    data = zt1({"w": dense(b"1234")})
    with connect(server) as connection:
        connection.sendall(f"PUT /v1/models/u HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data[:-1])
        eventually(lambda: get(server, "/v1/uploads").json()["uploads"])
        server.signal(signal.SIGTERM)
        eventually(lambda: refuses_connections(server))
        connection.sendall(data[-1:])
        assert read_head(connection)[0] == 201
    assert server.wait() == 0
    assert (tmp_path / "u.zt").read_bytes() == data


def test_json_log_has_one_object_a_line(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"s": dense(b"12")}))
    server = start_server(tmp_path, "--log-format", "json")
    get(server, component_path("m", "s"), X_Request_Id="one", traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    get(server, "/nowhere/%22quote", X_Request_Id="two")
    server.stop()
    lines = [json.loads(line) for line in server.log_lines]
    assert all({"time", "level", "message"} <= set(line) for line in lines)
    requests = {line["request_id"]: line for line in lines if "request_id" in line}
    one = requests["one"]
    assert {"request_id", "trace_id", "method", "path", "route", "status", "bytes", "duration_ms"} <= set(one)
    assert (one["method"], one["status"], one["bytes"], one["trace_id"]) == ("GET", 200, 2, "a" * 32)
    assert one["path"] == component_path("m", "s")
    assert requests["two"]["status"] == 404


def test_restart_on_the_same_port_works_at_once(start_server, tmp_path):
    first = start_server(tmp_path)
    with Connection(first) as connection:
        connection.ask("GET", "/healthz")
        assert first.stop() == 0
    place = held_port(first.port)
    second = start_server(tmp_path, "--listen", f"127.0.0.1:{first.port}")
    place.close()
    assert second.port == first.port
    assert get(second, "/healthz").status == 200
