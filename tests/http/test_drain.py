"""From SIGTERM to the end: which requests are still answered, and which connections are closed when."""

import contextlib
import http.client
import json
import signal
import threading
import time

import pytest

from containers import dense, pattern, zt1
from uploads import begin_put
from wire import Connection, ask, component_path, connect, eventually, get, model_path, read_exactly, read_head, read_until_closed

# More than the buffers of both sockets hold.
BIG = pattern(24 << 20)
LATE_S = 600


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "big.zt").write_bytes(zt1({"w": dense(BIG)}))
    return start_server(tmp_path, "--writable", environment={"ZTSERVE_DRAIN_S": str(LATE_S)})


@pytest.fixture
def leaving(start_server, tmp_path):
    """A server that got SIGTERM and keeps listening for much longer than a test takes."""
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_DELAY_S": str(LATE_S)})
    kept = Connection(server)
    assert kept.ask("GET", "/readyz").status == 200
    server.signal(signal.SIGTERM)
    eventually(lambda: get(server, "/readyz").status == 503)
    yield server, kept
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def begin(server, path, more=b""):
    """Sends a request for much, whose reader then stops, and what is to follow it on the connection."""
    connection = connect(server, receive_buffer=16384)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + more)
    status, fields, body = read_head(connection)
    assert status == 200
    return connection, int(fields["content-length"]), body


def drain(server):
    server.signal(signal.SIGTERM)
    eventually(lambda: any("draining: " in line for line in server.log_lines))


def test_while_it_leaves_it_is_not_ready_and_tells_all_connections_to_close(leaving):
    server, kept = leaving
    ready = get(server, "/readyz")
    assert (ready.status, ready.json()["code"]) == (503, "draining")
    for answer in (get(server, "/healthz"), kept.ask("GET", "/v1/models")):
        assert (answer.status, answer["Connection"].lower()) == (200, "close")


def test_leaving_ends_by_itself(start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_DELAY_S": "1"})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "still listening for 1 s" in server.log


def test_an_idle_connection_is_closed_while_a_download_goes_on(server):
    download, length, begun = begin(server, component_path("big", "w"))
    with connect(server) as idle, connect(server) as silent:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_head(idle)[0] == 200
        drain(server)
        read_until_closed(idle)
        assert read_until_closed(silent) == b""
    assert server.process.poll() is None
    assert read_exactly(download, length, begun) == BIG
    assert server.wait() == 0


def test_a_request_that_is_on_its_way_when_nothing_else_is_open_is_answered(start_server, tmp_path):
    """Idle connections live for a second: on a busy machine one may come too late."""

    def is_answered():
        server = start_server(tmp_path)
        with Connection(server) as idle:
            assert idle.ask("GET", "/healthz").status == 200
            server.signal(signal.SIGTERM)
            server.wait_for_line("draining: ")
            time.sleep(0.2)
            try:
                answer = idle.ask("GET", "/healthz")
            except OSError:
                return False
            assert (answer.status, answer["Connection"].lower()) == (200, "close")
        assert server.wait() == 0
        return True

    assert any(is_answered() for _ in range(5))


def test_a_request_behind_a_download_is_answered_too(server):
    """It had been sent before the server began to drain."""
    download, length, begun = begin(
        server, component_path("big", "w"), b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    drain(server)
    assert read_exactly(download, length, begun) == BIG
    status, fields, _ = read_head(download)
    assert (status, fields["connection"].lower()) == (200, "close")
    read_until_closed(download)
    assert server.wait() == 0


def test_a_connection_that_is_done_does_not_hold_up_the_end(server):
    """The header of its answer was sent before the signal, and so could not say that the connection ends."""
    download, length, begun = begin(server, component_path("big", "w"))
    other, other_length, other_begun = begin(server, component_path("big", "w"))
    drain(server)
    assert read_exactly(download, length, begun) == BIG
    assert read_until_closed(download) == b""
    assert read_exactly(other, other_length, other_begun) == BIG
    assert server.wait() == 0


@pytest.mark.parametrize("size", [5000, 8 << 20])
def test_an_upload_in_the_middle_is_finished(server, tmp_path, size):
    """Whether the library reads its body or the server does."""
    data = bytes(zt1({"w": dense(pattern(size))}))
    half = len(data) // 2
    with begin_put(server, model_path("u"), len(data)) as upload:
        upload.sendall(data[:half])
        eventually(lambda: ask(server, "GET", "/v1/uploads").json()["uploads"])
        drain(server)
        upload.sendall(data[half:])
        status, fields, _ = read_head(upload)
        assert (status, fields["connection"].lower()) == (201, "close")
    assert server.wait() == 0
    assert (tmp_path / "u.zt").read_bytes() == data


def test_a_header_in_the_middle_is_waited_for(server):
    download, length, begun = begin(server, component_path("big", "w"))
    with connect(server) as slow, Connection(server) as idle:
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        # Answers on another connection of the same loops show that the first line has been read.
        assert idle.ask("GET", "/healthz").status == 200
        time.sleep(0.2)
        drain(server)
        # Slow for longer than idle connections live.
        assert read_until_closed(idle.http.sock) == b""
        slow.sendall(b"Host: x\r\n\r\n")
        status, fields, _ = read_head(slow)
        assert (status, fields["connection"].lower()) == (200, "close")
    assert read_exactly(download, length, begun) == BIG
    assert server.wait() == 0


def test_connections_that_were_accepted_are_answered(start_server, tmp_path):
    """However close to the signal they came: a client is either refused, or it is answered."""
    outcomes = []

    def ask_until_refused(server):
        while True:
            connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
            with contextlib.closing(connection):
                try:
                    connection.connect()
                except ConnectionError:
                    return
                try:
                    connection.request("GET", "/healthz")
                    outcomes.append(connection.getresponse().status)
                except OSError as error:
                    outcomes.append(error)

    def lose():
        """What clients lost at the end of a server."""
        server = start_server(tmp_path)
        clients = [threading.Thread(target=ask_until_refused, args=(server,)) for _ in range(8)]
        before = len(outcomes)
        for client in clients:
            client.start()
        eventually(lambda: len(outcomes) > before + 100)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        for client in clients:
            client.join()
        return [outcome for outcome in outcomes[before:] if outcome != 200]

    # Between the last look and the end of the socket the kernel may accept some more, and resets them: in one of fifteen
    # ends, as measured, and in more on a busy machine; without that look, in each of them.
    losses = []
    for _ in range(20):
        losses.append(lose())
        assert all(isinstance(loss, ConnectionError) for loss in losses[-1]), losses
        if losses.count([]) == 2:
            return
    raise AssertionError(losses)


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_server_exits_cleanly_with_verdicts_to_save_and_manifests_in_memory(start_server, tmp_path, seconds):
    names = [f"m{number}" for number in range(20)]
    for name in names:
        (tmp_path / f"{name}.zt").write_bytes(zt1({"w": dense(pattern(64))}))
    server = start_server(tmp_path)
    for name in names:
        assert get(server, model_path(name)).status == 200
        assert get(server, component_path(name, "w")).status == 200
    time.sleep(seconds)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_server_exits_cleanly_while_it_hashes_a_model_whose_manifest_is_in_memory(start_server, tmp_path):
    # A sparse file, which takes seconds to hash.
    length = 2 << 30
    head = json.dumps({"w": {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}}).encode()
    with open(tmp_path / "m.safetensors", "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + length)
    # So that glibc overwrites freed memory.
    server = start_server(tmp_path, environment={"MALLOC_PERTURB_": "165"})
    assert get(server, model_path("m")).status == 200
    assert get(server, component_path("m", "w"), Range="bytes=0-9").status == 206
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
