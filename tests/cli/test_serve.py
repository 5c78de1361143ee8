"""serve as a program: its refusals, its output, and how it ends."""

import http.client
import json
import os
import signal
import socket
import time

import pytest

from containers import dense, pattern, zt1
from server_process import SERVING

WAIT_S = 180


def get(server, path, connection=None):
    connection = connection or http.client.HTTPConnection(server.host, server.port, timeout=WAIT_S)
    connection.request("GET", path)
    response = connection.getresponse()
    return response, response.read()


def begin(connection, server, others):
    """A request of which the first line has been read, so that it is waited for; others are under way too."""
    connection.sock.sendall(b"GET /readyz HTTP/1.1\r\n")
    # This one, and the one that asks.
    wanted = f"ztserve_http_requests_in_progress {others + 2}\n"
    wait_for(lambda: wanted in get(server, "/metrics")[1].decode())


def finish(connection):
    connection.sock.sendall(b"Host: x\r\n\r\n")
    response = http.client.HTTPResponse(connection.sock)
    response.begin()
    return response, response.read()


def wait_for(condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


# --- refusing ---


def test_serve_needs_a_root(refused):
    assert "--root" in refused("serve")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--frob"], "--frob"),
        (["--frob=1"], "--frob"),
        (["--threads"], "--threads"),
        (["--threads", "many"], "--threads"),
        (["--threads", "--writable"], "--threads"),
        (["--listen", "nowhere"], "--listen"),
        (["--listen", "127.0.0.1:70000"], "--listen"),
        (["--verify", "often"], "--verify"),
        (["--log-level", "loud"], "--log-level"),
        (["--writable=yes"], "--writable"),
        (["--config", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (["--tls-cert=f"], "tls.cert is set without tls.key"),
        (["--tls-key", "f"], "tls.key is set without tls.cert"),
        (["--tls-client-ca", "f"], "tls.client_ca needs tls.cert and tls.key"),
        *((["--listen", "0.0.0.0:0", "--writable"], words) for words in ("0.0.0.0", "--tokens", "127.0.0.1", "proxy")),
    ],
)
def test_serve_refuses_wrong_usage(refused, tmp_path, arguments, words):
    assert words in refused("serve", "--root", tmp_path, *arguments)


@pytest.mark.parametrize("name, words", [("absent", "absent"), ("file", "Not a directory")])
def test_a_root_that_is_no_folder_is_named(ztserve, tmp_path, name, words):
    (tmp_path / "file").write_bytes(b"")
    result = ztserve("serve", "--root", tmp_path / name, "--listen", "127.0.0.1:0")
    assert (result.status, len(result.error_lines)) == (1, 1)
    assert f"{tmp_path}/{name}" in result.errors and words in result.errors


def test_a_root_that_may_not_be_read_is_refused(ztserve, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    result = ztserve("serve", "--root", folder, "--listen", "127.0.0.1:0")
    assert result.status == 1
    assert "ermission denied" in result.errors


def test_an_address_in_use_is_reported(ztserve, start_server, tmp_path):
    """Also by another server of this program: they never share a port."""
    address = f"127.0.0.1:{start_server(tmp_path).port}"
    result = ztserve("serve", "--root", tmp_path, "--listen", address)
    assert (result.status, len(result.error_lines)) == (1, 1)
    for words in (f"cannot listen on {address}: ", "in use", "ss -ltnp", "--listen"):
        assert words in result.errors


def test_an_address_of_another_machine_is_reported(ztserve, tmp_path):
    result = ztserve("serve", "--root", tmp_path, "--listen", "192.0.2.1:0")
    assert (result.status, len(result.error_lines)) == (1, 1)
    assert "cannot listen on 192.0.2.1:0: " in result.errors and "ip address" in result.errors


# --- serving ---


def test_serve_says_where_it_is(start_server, tmp_path):
    server = start_server(tmp_path, "--threads=1")
    assert SERVING.match(f"ztserve: serving {tmp_path} on {server.url}")
    assert get(server, "/healthz")[0].status == get(server, "/readyz")[0].status == 200


def test_version_is_the_same_everywhere(ztserve, start_server, tmp_path):
    body = get(start_server(tmp_path), "/version")[1]
    assert json.loads(body) == {"version": ztserve("--version").output.strip()}


def test_an_empty_root_is_explained(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    wait_for(lambda: any("contains no models" in line for line in server.log_lines))
    assert sum("contains no models" in line for line in server.log_lines) == 1
    assert "curl -T" in server.log


def test_later_sources_of_configuration_win(start_server, tmp_path):
    config = tmp_path / "c.json"
    config.write_text('{"log": {"format": "json", "level": "error"}, "threads": 1}')
    environment = {"ZTSERVE_LOG_LEVEL": "warn", "ZTSERVE_FROB": "1"}
    server = start_server(tmp_path, "--config", config, "--log-level", "info", environment=environment)
    get(server, "/healthz")
    wait_for(lambda: any('"/healthz"' in line for line in server.log_lines))
    line = next(line for line in server.log_lines if '"/healthz"' in line)
    assert json.loads(line)["status"] == 200
    assert sum("ZTSERVE_FROB" in line for line in server.log_lines) == 1


# --- SIGHUP ---


def test_sighup_reads_the_configuration_again(start_server, tmp_path):
    config = tmp_path / "c.json"
    config.write_text('{"log": {"level": "warn"}, "threads": 1}')
    server = start_server(tmp_path, "--config", config)
    get(server, "/healthz")
    # The loop has written what it had to say of the first request when it answers another one.
    get(server, "/version")
    config.write_text('{"log": {"level": "info"}, "threads": 2}')
    server.signal(signal.SIGHUP)
    wait_for(lambda: any("reloaded the configuration" in line for line in server.log_lines))
    assert any("threads was changed" in line for line in server.log_lines)
    get(server, "/version")
    wait_for(lambda: any("/version" in line for line in server.log_lines))
    assert not any("/healthz" in line for line in server.log_lines)


def test_a_fifo_in_place_of_the_configuration_does_not_stop_a_reload(start_server, tmp_path):
    settings = tmp_path / "c.json"
    settings.write_text("{}")
    server = start_server(tmp_path, "--config", settings)
    settings.unlink()
    os.mkfifo(settings)
    server.signal(signal.SIGHUP)
    wait_for(lambda: f"the configuration is unchanged: {settings}: is not a regular file" in server.log)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


# --- ending ---


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(start_server, tmp_path, number):
    server = start_server(tmp_path)
    server.signal(number)
    assert server.wait() == 0


def test_sigint_is_heard_though_a_shell_ignored_it(start_server, tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = start_server(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    server.signal(signal.SIGINT)
    assert server.wait() == 0


class SlowDownload:
    """A download of which only the head was read, so that it is open until somebody reads on."""

    def __init__(self, server):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(WAIT_S)
        self.socket.connect((server.host, server.port))
        self.socket.sendall(b"GET /files/big.zt HTTP/1.1\r\nHost: x\r\n\r\n")
        self.received = self.socket.recv(1000)

    def finish(self):
        """Reads on, and returns the whole body."""
        pieces = [self.received]
        while piece := self.socket.recv(1 << 16):
            pieces.append(piece)
        return b"".join(pieces).split(b"\r\n\r\n", 1)[1]


@pytest.fixture
def big(tmp_path):
    # More than the buffers of both sockets hold.
    data = bytes(zt1({"w": dense(pattern(64 << 20))}))
    (tmp_path / "big.zt").write_bytes(data)
    return data


def test_an_open_download_is_finished_while_draining(start_server, tmp_path, big):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_S": "600"})
    other = http.client.HTTPConnection(server.host, server.port, timeout=WAIT_S)
    assert get(server, "/readyz", other)[0].status == 200
    download = SlowDownload(server)
    begin(other, server, 1)
    server.signal(signal.SIGTERM)
    server.wait_for_line("draining")
    with pytest.raises(ConnectionRefusedError):
        get(server, "/healthz")
    response, body = finish(other)
    assert response.status == 503
    assert json.loads(body)["code"] == "draining"
    assert response.getheader("Connection") == "close"
    assert server.process.poll() is None
    assert download.finish() == big
    assert server.wait() == 0


def test_a_second_signal_cuts_at_once(start_server, tmp_path, big):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_S": "600"})
    download = SlowDownload(server)
    server.signal(signal.SIGTERM)
    server.wait_for_line("draining")
    begun = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - begun < WAIT_S
    assert "draining: 1 request is open" in server.log
    assert "1 request is cut: a second signal arrived" in server.log
    download.socket.close()


def test_requests_that_outlast_the_drain_are_cut(start_server, tmp_path, big):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_S": "1"})
    download = SlowDownload(server)
    begun = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - begun > 0.9
    assert "drain_s has passed" in server.log
    download.socket.close()


def test_a_client_that_goes_away_while_draining_ends_the_wait(start_server, tmp_path, big):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_S": "600"})
    download = SlowDownload(server)
    server.signal(signal.SIGTERM)
    server.wait_for_line("draining")
    download.socket.close()
    begun = time.monotonic()
    assert server.wait() == 0
    assert time.monotonic() - begun < WAIT_S


def test_hashing_in_the_background_does_not_hold_up_the_end(start_server, tmp_path):
    data = bytes(zt1({"w": dense(pattern(8 << 20))}))
    for number in range(40):
        (tmp_path / f"m{number}.zt").write_bytes(data)
    server = start_server(tmp_path, "--verify", "eager")
    begun = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - begun < WAIT_S
