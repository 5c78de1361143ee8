"""Connections that are kept behind bodies which the server reads past the HTTP library: what follows a body is the next
request from its first byte on, and limits, deadlines and counts go on."""

import contextlib
import json
import os
import random
import select
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from uploads import assert_absent, digest_field
from wire import connect, eventually, get, metrics, model_path, read_exactly, read_until_closed

MIB = 1 << 20
DATA = pattern(5 * MIB + 77)
FILE = bytes(zt1({"w": dense(DATA)}))
VERSION = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
IDLE_S = 3


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "200"})


@pytest.fixture(scope="module")
def impatient_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("impatient")


@pytest.fixture(scope="module")
def impatient(impatient_folder, share_server):
    """Ends idle connections soon. No other test uses it: a client that a busy machine does not run for so long is cut."""
    return share_server(impatient_folder, "--writable", environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": str(IDLE_S)})


def put_of(target, body=FILE, length=None, fields=()):
    lines = [f"PUT {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body) if length is None else length}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def send(connection, data):
    """The server may have closed before everything is sent."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


class Answers:
    """The answers that come over a connection, one after another."""

    def __init__(self, connection):
        self.connection, self.begun = connection, b""

    def next(self):
        while b"\r\n\r\n" not in self.begun:
            piece = self.connection.recv(1 << 16)
            assert piece, self.begun
            self.begun += piece
        head, self.begun = self.begun.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        self.fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        length = int(self.fields.get("content-length", 0))
        while len(self.begun) < length:
            piece = self.connection.recv(1 << 16)
            assert piece, self.begun
            self.begun += piece
        self.body, self.begun = self.begun[:length], self.begun[length:]
        return int(lines[0].split()[1])

    def is_over(self):
        """Whether the server has closed, and nothing came before."""
        try:
            return self.begun == b"" and self.connection.recv(1) == b""
        except ConnectionResetError:
            return False


def test_one_connection_carries_many_long_bodies(server, folder, name):
    def accepted():
        return metrics(server)["ztserve_connections_accepted_total"]

    with connect(server) as connection:
        answers = Answers(connection)
        # Answered, so it has been counted: another loop may be the one that tells the count.
        connection.sendall(VERSION)
        assert answers.next() == 200
        before = accepted()
        for i in range(5):
            connection.sendall(put_of(model_path(name)))
            assert answers.next() == (201 if i == 0 else 204)
            assert "connection" not in answers.fields
            assert answers.fields["repr-digest"] == digest_field("sha-256", FILE)
            connection.sendall(VERSION)
            assert (answers.next(), b"version" in answers.body) == (200, True)
        assert accepted() == before + 1
    assert (folder / f"{name}.zt").read_bytes() == FILE


def test_requests_behind_long_bodies_are_answered_in_order(server, folder, name):
    """Everything is sent before anything is read."""
    other = f"{name}-other"
    with connect(server) as connection:
        answers = Answers(connection)
        connection.sendall(
            put_of(model_path(name)) + VERSION + put_of(model_path(other), FILE) + VERSION * 100 + put_of(model_path(name)) + LAST
        )
        assert [answers.next() for _ in range(105)] == [201, 200, 201, *[200] * 100, 204, 200]
        assert answers.is_over()
    assert (folder / f"{name}.zt").read_bytes() == (folder / f"{other}.zt").read_bytes() == FILE


@pytest.mark.parametrize("size, cut", [(MIB + 16384, -1), (MIB + 65536, 0), (2 * MIB, 1), (3 * MIB + 4095, -1)])
def test_every_cut_between_body_and_next_request_is_the_same(server, folder, name, size, cut):
    """The bytes around the end of the body come together, or one by one."""
    file = bytes(zt1({"w": dense(pattern(size))}))
    data, end = put_of(model_path(name), file) + VERSION + LAST, len(put_of(model_path(name), file)) + cut
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(data[: end - 1])
        connection.sendall(data[end - 1 : end])
        connection.sendall(data[end:])
        answers = Answers(connection)
        assert [answers.next() for _ in range(3)] == [201, 200, 200]
        assert answers.is_over()
    assert (folder / f"{name}.zt").read_bytes() == file


def test_half_closed_client_has_all_its_answers(server, name):
    with connect(server) as connection:
        connection.sendall(put_of(model_path(name)) + VERSION)
        connection.shutdown(socket.SHUT_WR)
        answers = Answers(connection)
        assert [answers.next(), answers.next()] == [201, 200]
        assert answers.is_over()


@pytest.mark.parametrize("fields, version", [(("Connection: close",), b"1.1"), (("Connection: x, Close",), b"1.1"), ((), b"1.0")])
def test_the_connection_ends_when_the_client_says_so(server, name, fields, version):
    with connect(server) as connection:
        connection.sendall(put_of(model_path(name), fields=fields).replace(b"HTTP/1.1", b"HTTP/" + version, 1) + VERSION)
        answers = Answers(connection)
        assert (answers.next(), answers.fields["connection"]) == (201, "close")
        assert answers.is_over()


def test_a_refused_body_leaves_the_connection_open(server, folder, name):
    """The whole body is read before the refusal, so where the next request begins is known."""
    with connect(server) as connection:
        connection.sendall(put_of(model_path(name), FILE[:-1] + b"x") + VERSION + LAST)
        answers = Answers(connection)
        assert answers.next() == 422 and json.loads(answers.body)["code"] == "invalid-model"
        assert [answers.next(), answers.next()] == [200, 200]
        assert answers.is_over()
    assert_absent(server, folder, name)


@pytest.mark.folder("slow sending, which a store would see too")
@pytest.mark.plain("a preloaded library makes sending slow")
@pytest.mark.parametrize("fields", [(), ("Connection: close",)])
def test_an_answer_that_the_socket_does_not_take_at_once_comes_whole(start_server, tmp_path, fields):
    server = start_server(tmp_path, "--writable", environment={"LD_PRELOAD": str(FAULTS), "ZT_SEND_BYTES": "7"})
    if server.context is not None:
        pytest.skip("with TLS the library sends it")
    with connect(server) as connection:
        connection.sendall(put_of(model_path("m")) * 2 + put_of(model_path("m"), FILE[:-1] + b"x", fields=fields))
        answers = Answers(connection)
        assert [answers.next() for _ in range(3)] == [201, 204, 422]
        assert json.loads(answers.body)["code"] == "invalid-model"
        if fields:
            assert answers.is_over()


# --- what must not be a request, and what must ---


def smuggled(victim):
    return f"DELETE {model_path(victim)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@pytest.fixture
def victim(server, folder, name):
    path = folder / f"victim-{len(list(folder.iterdir()))}.zt"
    path.write_bytes(FILE)
    assert eventually(lambda: get(server, model_path(path.stem)).status == 200)
    yield path.stem
    assert path.read_bytes() == FILE


def test_a_request_inside_a_body_is_not_obeyed(server, name, victim):
    """Also not if it begins where a piece does, or is the end of the body."""
    body = smuggled(victim) * (2 * MIB // len(smuggled(victim)))
    with connect(server) as connection:
        connection.sendall(put_of(model_path(name), body) + VERSION + put_of(model_path(name), body) + LAST)
        answers = Answers(connection)
        assert [answers.next() for _ in range(4)] == [422, 200, 422, 200]
        assert answers.is_over()


@pytest.mark.parametrize("more", [1, 2, 40])
def test_a_body_that_is_longer_than_its_length_spoils_what_follows(server, name, victim, more):
    """The rest of the body is the beginning of the next request, and is not one."""
    with connect(server) as connection:
        send(connection, put_of(model_path(name), FILE + b"\0" * more, length=len(FILE)) + smuggled(victim))
        received = read_until_closed(connection)
    assert received.startswith(b"HTTP/1.1 201 ")
    # The library refuses it, or hears nothing that it could answer.
    assert [line.split()[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")] in ([b"201"], [b"201", b"400"])


def test_a_body_that_is_shorter_than_its_length_takes_from_what_follows(server, folder, name, victim):
    taken = len(smuggled(victim)) - 2
    with connect(server) as connection:
        connection.sendall(put_of(model_path(name), FILE, length=len(FILE) + taken) + smuggled(victim) + LAST)
        answers = Answers(connection)
        assert answers.next() == 422
        # The rest of the smuggled request is an empty line, which is skipped before a request.
        assert answers.next() == 200
        assert answers.is_over()
    assert_absent(server, folder, name)


@pytest.mark.parametrize(
    "field", [b"Content-Length: 5, 5", b"Content-Length : 5", b"Transfer-Encoding: chunked, identity", b" X: folded"]
)
def test_framing_is_checked_on_kept_connections_too(server, name, victim, field):
    doubtful = b"POST /v1/models/m/verification HTTP/1.1\r\nHost: x\r\n" + field + b"\r\n\r\n"
    with connect(server) as connection:
        send(connection, put_of(model_path(name)) + doubtful + smuggled(victim))
        received = read_until_closed(connection)
    assert received.startswith(b"HTTP/1.1 201 ")
    statuses = [line.split()[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")]
    assert set(statuses[1:]) <= {b"400"}


def test_random_bytes_behind_a_body_are_refused(server, name, victim):
    generator = random.Random(7)
    for _ in range(10):
        noise = generator.randbytes(generator.randrange(1, 300))
        with connect(server) as connection:
            send(connection, put_of(model_path(name)) + noise + b"\r\n\r\n" + smuggled(victim))
            received = read_until_closed(connection)
        statuses = [line.split()[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")]
        assert statuses[0] in (b"201", b"204") and set(statuses[1:]) <= {b"400"}, received


# --- limits, deadlines, counts, stops ---


def only_connection(server):
    """A connection that has been answered, so that it holds a place."""
    ended_s = time.monotonic() + 120
    while time.monotonic() < ended_s:
        connection = connect(server)
        try:
            connection.sendall(VERSION)
            if Answers(connection).next() == 200:
                return connection
        except (AssertionError, OSError):
            connection.close()
    raise AssertionError("the only place never came free")


def test_a_kept_connection_holds_the_only_place_of_its_address(start_server, tmp_path):
    """Also while the socket goes from one connection of the library to the next."""
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_LIMITS_CONNECTIONS_PER_ADDRESS": "1"})
    ended = threading.Event()

    small = put_of(model_path("m"), bytes(zt1({"w": dense(pattern(300000))})))

    def is_answered():
        try:
            return get(server, "/healthz").status == 200
        except OSError:
            return False

    def intrude():
        while not ended.is_set():
            if is_answered():
                return True
        return False

    # Those who waited for the server may still hold the place.
    with only_connection(server) as connection, ThreadPoolExecutor(2) as intruders:
        answers = Answers(connection)
        intrusions = [intruders.submit(intrude) for _ in range(2)]
        for i in range(200):
            connection.sendall(small)
            assert answers.next() == (201 if i == 0 else 204)
        ended.set()
        assert [intrusion.result() for intrusion in intrusions] == [False, False]
    assert eventually(is_answered)


def test_a_kept_connection_ends_when_it_is_idle(impatient, name):
    with connect(impatient) as connection:
        connection.sendall(put_of(model_path(name)))
        answers = Answers(connection)
        assert answers.next() == 201
        assert answers.is_over()


def test_a_header_behind_a_body_must_end_in_time(start_server, tmp_path):
    environment = {"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "1", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "600"}
    server = start_server(tmp_path, "--writable", environment=environment)
    with connect(server) as connection:
        connection.sendall(put_of(model_path("m")) + VERSION[:-2])
        answers = Answers(connection)
        assert answers.next() == 201
        assert read_until_closed(connection) == b""


def test_a_later_body_that_stops_is_answered_408(impatient, impatient_folder, name):
    other = f"{name}-other"
    with connect(impatient) as connection:
        connection.sendall(put_of(model_path(name)) + put_of(model_path(other), FILE[: 2 * MIB], length=len(FILE)))
        answers = Answers(connection)
        assert [answers.next(), answers.next()] == [201, 408]
        assert read_until_closed(connection) == b""
    assert_absent(impatient, impatient_folder, other)


PART = 40_000


def is_waited_for(server, folder, name):
    """False if this process was not run for so long that the server may have cut a body."""
    bodies = {
        "short": (b"Content-Length: 60000\r\n\r\n", 5000),
        "long": (b"Content-Length: %d\r\n\r\n" % (5 * MIB), PART),
        "chunked": (b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (5 * MIB), PART),
    }
    with contextlib.ExitStack() as stack:
        connections = {kind: stack.enter_context(connect(server)) for kind in bodies}
        last_s = time.monotonic()
        for kind, connection in connections.items():
            connection.sendall(f"PUT {model_path(name)}-{kind} HTTP/1.1\r\nHost: x\r\n".encode() + bodies[kind][0])
            connection.sendall(b"x")
        for kind in bodies:
            eventually(lambda kind=kind: f"{name}-{kind}" in get(server, "/v1/uploads").body.decode() or time.monotonic() > last_s + IDLE_S)
        for _ in range(IDLE_S * 10):
            before_s, last_s = last_s, time.monotonic()
            for kind, connection in connections.items():
                send(connection, b"x" * (bodies[kind][1] // 10))
            if time.monotonic() - before_s > IDLE_S / 2:
                return False
            time.sleep(0.15)
        # The server's clock is coarse.
        until_s = last_s + IDLE_S - 0.1
        answered = select.select(connections.values(), [], [], max(0, until_s - time.monotonic()))[0]
        if answered and time.monotonic() > until_s:
            return False
        assert answered == []
        for kind, connection in connections.items():
            answers = Answers(connection)
            assert answers.next() == 408, kind
            assert answers.is_over(), kind
    eventually(lambda: name not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, name)
    return True


@pytest.mark.waits
def test_a_body_is_idle_only_while_nothing_comes(impatient, impatient_folder, name):
    """Its pieces come with pauses, which together are longer than a connection may be idle; then nothing comes any more.
    The short body is read by the library, the others are not."""
    assert any(is_waited_for(impatient, impatient_folder, f"{name}-{turn}") for turn in range(10))


@pytest.mark.parametrize("sent", [1, 20_000, 3 * MIB])
def test_a_later_body_that_is_reset_leaves_nothing(server, folder, name, sent):
    other = f"{name}-other"
    connection = connect(server)
    connection.sendall(put_of(model_path(name)))
    assert Answers(connection).next() == 201
    connection.sendall(put_of(model_path(other), FILE[:sent], length=len(FILE)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    eventually(lambda: other not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, other)


def test_clients_that_leave_behind_their_bodies_leave_nothing_behind(server, name):
    def descriptors():
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    get(server, "/v1/uploads")
    before = descriptors()
    for i in range(20):
        with connect(server) as connection:
            connection.sendall(put_of(model_path(name)) + (VERSION if i % 2 else b""))
            if i % 3:
                Answers(connection).next()
    assert eventually(lambda: descriptors() <= before + 1)


def test_a_server_that_drains_answers_the_body_and_closes(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_DRAIN_S": "600"})
    with connect(server) as connection:
        data = put_of(model_path("m"))
        connection.sendall(data[: 3 * MIB])
        eventually(lambda: b'"received":' in get(server, "/v1/uploads").body)
        server.signal(signal.SIGTERM)
        assert eventually(lambda: any("draining: " in line for line in server.log_lines))
        connection.sendall(data[3 * MIB :] + VERSION)
        answers = Answers(connection)
        assert (answers.next(), answers.fields["connection"]) == (201, "close")
        assert answers.is_over()
    assert server.wait() == 0
    assert (tmp_path / "m.zt").read_bytes() == FILE


def test_a_server_that_drains_closes_a_kept_connection(start_server, tmp_path):
    environment = {"ZTSERVE_DRAIN_S": "600", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "600"}
    server = start_server(tmp_path, "--writable", environment=environment)
    with connect(server) as connection:
        connection.sendall(put_of(model_path("m")))
        answers = Answers(connection)
        assert answers.next() == 201
        server.signal(signal.SIGTERM)
        assert answers.is_over()
    assert server.wait() == 0


def test_bytes_of_a_cut_answer_are_counted_from_its_beginning(start_server, tmp_path):
    """The kernel counts from the beginning of the connection; the log says what the client got of this answer."""
    server = start_server(tmp_path, "--writable", "--log-format", "json")
    connection = connect(server, receive_buffer=4096)
    for i in range(3):
        connection.sendall(put_of(model_path("m")))
        assert Answers(connection).next() == (201 if i == 0 else 204)
        connection.sendall(b"GET /v1/models/m/objects/w/data HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (Answers(connection).next() if i < 2 else 200) == 200
    received = read_exactly(connection, 300_000)
    assert received.startswith(b"HTTP/1.1 200 ")
    connection.close()
    assert server.stop() == 0
    line = [json.loads(line) for line in server.log_lines if "/objects/w/data" in line][-1]
    assert line["cut"] is True and 250_000 < line["bytes"] < len(DATA)


def test_every_request_of_a_kept_connection_is_one_line_in_the_log(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", "--log-format", "json")
    with connect(server) as connection:
        connection.sendall((put_of(model_path("m")) + VERSION) * 3)
        answers = Answers(connection)
        assert [answers.next() for _ in range(6)] == [201, 200, 204, 200, 204, 200]
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.log_lines if '"method"' in line]
    assert [(line["method"], line["status"]) for line in lines] == [("PUT", 201), ("GET", 200)] + [("PUT", 204), ("GET", 200)] * 2
    assert all("cut" not in line for line in lines)
