"""What a changed configuration file does on SIGHUP: every number that limits something is in force afterwards, for new
requests and for what is open already, and a file that is broken changes nothing."""

import contextlib
import json
import signal
import threading

import pytest

from containers import Component, Object, dense, pattern, zstd_dense, zstd_frame, zt1
from server_process import is_sanitized
from uploads import SMALL, put
from wire import Connection, ask, begin_answer, component_path, connect, eventually, get, memory_kib, model_path, read_head
from wire import read_until_closed

BIG = pattern(24 << 20)
REQUEST = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


class Configured:
    """A server with a configuration file that tests change."""

    def __init__(self, start_server, folder, settings, *arguments):
        self.file = folder / "config.json"
        self.root = folder / "root"
        self.root.mkdir()
        self.write(settings)
        self.server = start_server(self.root, "--config", self.file, *arguments)

    def write(self, settings):
        self.file.write_text(settings if isinstance(settings, str) else json.dumps(settings))

    def lines(self, words):
        return [line for line in self.server.log_lines if words in line]

    def reload(self, settings, words="reloaded the configuration"):
        """Returns when the log says what became of it."""
        before = len(self.lines(words))
        self.write(settings)
        self.server.signal(signal.SIGHUP)
        eventually(lambda: len(self.lines(words)) > before)


@pytest.fixture
def configured(start_server, tmp_path):
    return lambda settings, *arguments: Configured(start_server, tmp_path, settings, *arguments)


def status_of(connection):
    connection.sendall(REQUEST)
    return read_head(connection)[0]


def test_the_reserve_of_disk_space(configured):
    one = configured({"upload": {"reserve_bytes": 0}}, "--writable")
    assert put(one.server, "m", SMALL).status == 201
    one.reload({"upload": {"reserve_bytes": 1 << 60}})
    assert put(one.server, "m", SMALL).status == 507
    one.reload({"upload": {"reserve_bytes": 0}})
    assert put(one.server, "m", SMALL).status == 204


def begin_upload(server):
    return ask(server, "POST", f"{model_path('m')}/uploads").status


def test_the_uploads_of_a_client(configured):
    one = configured({"upload": {"sessions_per_client": 1}}, "--writable")
    assert [begin_upload(one.server), begin_upload(one.server)] == [201, 429]
    one.reload({"upload": {"sessions_per_client": 2}})
    assert [begin_upload(one.server), begin_upload(one.server)] == [201, 429]
    one.reload({"upload": {"sessions_per_client": 0}})
    assert begin_upload(one.server) == 201


def test_the_expiry_of_uploads(configured):
    one = configured({"upload": {"expire_s": 86400}}, "--writable")
    assert begin_upload(one.server) == 201
    before = get(one.server, "/v1/uploads").json()["uploads"][0]["expires"]
    one.reload({"upload": {"expire_s": 200000}})
    assert get(one.server, "/v1/uploads").json()["uploads"][0]["expires"] > before
    one.reload({"upload": {"expire_s": 1}})
    eventually(lambda: get(one.server, "/v1/uploads").json()["uploads"] == [])


def test_the_number_of_connections(configured):
    """In both directions, and with connections that were opened under another limit."""
    one = configured({"limits": {"connections": 2}, "threads": 4})
    with contextlib.ExitStack() as stack:

        def is_taken(keep=True):
            connection = connect(one.server)
            taken = status_of(connection) == 200
            if taken and keep:
                stack.callback(connection.close)
            else:
                connection.close()
            return taken

        assert [is_taken(), is_taken()] == [True, True]
        assert not is_taken()
        one.reload({"limits": {"connections": 3}, "threads": 4})
        eventually(is_taken)
        assert not is_taken()
        one.reload({"limits": {"connections": 20000}, "threads": 4})
        eventually(is_taken)
        # Each loop takes the limit at its next turn.
        eventually(lambda: is_taken(keep=False))
        one.reload({"limits": {"connections": 1}, "threads": 4})
        eventually(lambda: not is_taken(keep=False))


def test_connections_of_an_address_count_from_before_there_was_a_limit(configured):
    one = configured({})

    def accepts():
        with connect(one.server) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(REQUEST)
            return read_first(connection) != b""

    def read_first(connection):
        try:
            return connection.recv(1)
        except ConnectionResetError:
            return b""

    with connect(one.server) as first, connect(one.server) as second:
        assert (status_of(first), status_of(second)) == (200, 200)
        one.reload({"limits": {"connections_per_address": 2}})
        eventually(lambda: not accepts())
        second.close()
        eventually(accepts)
        assert status_of(first) == 200
        one.reload({})
        eventually(accepts)


def test_the_time_for_a_header(configured):
    """For one that has begun, too."""
    one = configured({"limits": {"header_timeout_s": 600}})
    with connect(one.server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHo")
        one.reload({"limits": {"header_timeout_s": 1}})
        assert read_until_closed(slow) == b""


def test_the_time_of_an_idle_connection(configured):
    one = configured({"limits": {"idle_timeout_s": 600}})
    with connect(one.server) as idle:
        assert status_of(idle) == 200
        one.reload({"limits": {"idle_timeout_s": 1}})
        read_until_closed(idle)


def begin_body(server, name, length=1_000_000):
    """The header of an upload and some of its body, after which the client sends no more."""
    connection = connect(server)
    connection.sendall(f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + bytes(1000))
    return connection


def trickle(connection):
    """Sends a byte now and then, until there is an answer; returns its status."""
    connection.settimeout(0.2)
    for _ in range(900):
        connection.sendall(b"x")
        with contextlib.suppress(TimeoutError):
            return read_head(connection)[0]
    raise AssertionError("no answer")


@pytest.mark.parametrize("changed", [{"upload": {"body_timeout_s": 1}}, {"limits": {"rate_grace_s": 1, "body_min_bytes_per_s": 1000000}}])
def test_the_time_and_the_rate_of_a_body(configured, changed):
    """Of one that has begun."""
    one = configured({"limits": {"rate_grace_s": 1, "body_min_bytes_per_s": 0}}, "--writable")
    with begin_body(one.server, "m") as slow:
        one.reload({"limits": {"rate_grace_s": 1, "body_min_bytes_per_s": 0}, **changed})
        assert trickle(slow) == 408


def test_the_bodies_of_a_client(configured):
    one = configured({"upload": {"open_per_client": 1}}, "--writable")
    with begin_body(one.server, "a"):
        eventually(lambda: get(one.server, "/v1/uploads").json()["uploads"])
        assert put(one.server, "m", SMALL).status == 429
        one.reload({"upload": {"open_per_client": 2}})
        assert put(one.server, "m", SMALL).status == 201
        one.reload({"upload": {"open_per_client": 1}})
        assert put(one.server, "m", SMALL).status == 429


def download(server):
    """Begins to download BIG; the reader has stopped after the head."""
    connection, status, *_ = begin_answer(server, component_path("big", "w"))
    assert status == 200
    return connection


def add_big(one):
    (one.root / "big.zt").write_bytes(zt1({"w": dense(BIG)}))
    eventually(lambda: get(one.server, model_path("big")).status == 200)


def test_the_time_of_a_reader_that_stalls(configured):
    one = configured({"limits": {"idle_timeout_s": 600}})
    add_big(one)
    with download(one.server):
        one.reload({"limits": {"idle_timeout_s": 1}})
        eventually(lambda: one.lines(": timeout"))


@pytest.mark.parametrize("first, second", [(0, 65536), (65536, 0)])
def test_the_send_buffer(configured, first, second):
    one = configured({"limits": {"send_buffer_bytes": first}})
    add_big(one)
    with Connection(one.server) as kept:
        assert kept.ask("GET", component_path("big", "w")).body == BIG
        one.reload({"limits": {"send_buffer_bytes": second}})
        assert kept.ask("GET", component_path("big", "w")).body == BIG
    assert get(one.server, component_path("big", "w")).body == BIG


def of_unknown_length(data):
    """Nothing says how long it is before it is decoded."""
    part = Component(zstd_frame(data), encoding="zstd", decoded=data, states_length=False)
    return Object([len(data)], {"data": part}, format="acme.own")


@pytest.mark.parametrize("build", [zstd_dense, of_unknown_length])
def test_the_size_of_what_is_decoded(configured, build):
    """What was refused under the old limit is not remembered."""
    one = configured({"limits": {"decoded_bytes": 1000}})
    (one.root / "m.zt").write_bytes(zt1({"w": build(pattern(5000))}))
    path = component_path("m", "w")
    eventually(lambda: get(one.server, path).status == 422)
    one.reload({"limits": {"decoded_bytes": 10000}})
    assert get(one.server, path).body == pattern(5000)


def test_the_time_to_drain(configured):
    one = configured({"drain_s": 600})
    add_big(one)
    with download(one.server):
        one.reload({"drain_s": 1})
        one.server.signal(signal.SIGTERM)
        assert one.server.wait() == 0


@pytest.mark.parametrize(
    "broken, words",
    [
        ('{"upload": {"max_bytes": 1000000, "expire_s": 0}}', ["config.json", "upload.expire_s", "must be"]),
        ('{"upload": {"max_bytes": 1000000}\n "drain_s": 1}', ["config.json", "line 2"]),
    ],
)
def test_a_broken_file_changes_nothing_at_all(configured, broken, words):
    """One line says what is wrong."""
    one = configured({"upload": {"max_bytes": 100}}, "--writable")
    one.reload(broken, "the configuration is unchanged")
    (line,) = one.lines("the configuration is unchanged")
    assert [word for word in words if word not in line] == []
    assert put(one.server, "m", SMALL).status == 413
    one.reload({"upload": {"max_bytes": 1000000}})
    assert put(one.server, "m", SMALL).status == 201


def test_many_reloads_beside_traffic_leave_memory_flat(configured):
    one = configured({})
    (one.root / "m.zt").write_bytes(zt1({"w": dense(pattern(10000))}))
    eventually(lambda: get(one.server, model_path("m")).status == 200)
    failures = []
    ended = threading.Event()

    def traffic():
        with Connection(one.server) as connection:
            while not ended.is_set():
                answer = connection.ask("GET", component_path("m", "w"))
                if answer.body != pattern(10000):
                    failures.append(answer)

    threads = [threading.Thread(target=traffic) for _ in range(4)]
    for thread in threads:
        thread.start()
    sizes = []
    for round_ in range(60):
        one.reload({"limits": {"idle_timeout_s": 60 + round_ % 7, "connections": 100 + round_, "header_timeout_s": 20 + round_ % 3}})
        sizes.append(memory_kib(one.server))
    ended.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert is_sanitized() or max(sizes[30:]) < max(sizes[:30]) + 2048, sizes
