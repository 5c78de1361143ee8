"""serve under a service manager: what it reports (sd_notify), the watchdog, and sockets that it inherits. The manager is
played by a datagram socket and by descriptors 3 and 4 of the program."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import threading

import pytest

from server_process import PROGRAM, SERVING, ServerProcess
from wire import eventually

WAIT_S = 180
# In a process with these, descriptors from 3 on are the sockets, and LISTEN_PID is its own number.
EXEC_WITH_PID = 'export LISTEN_PID=$$; exec "$@"'


class Manager:
    """Receives the reports."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path if self.path[0] == "/" else "\0" + self.path[1:])
        self.socket.settimeout(WAIT_S)

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(1 << 16).decode().split("\n"))

    def next_with(self, name):
        while True:
            report = self.next()
            if name in report:
                return report


@pytest.fixture
def manager(request, tmp_path):
    """At a path, or where a test says so at an abstract address."""
    name = f"@ztserve-test-{os.getpid()}-{id(request)}" if getattr(request, "param", None) == "abstract" else tmp_path / "notify"
    manager = Manager(name)
    yield manager
    manager.socket.close()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("manager", ["path", "abstract"], indirect=True)
def test_it_reports_readiness_reloads_and_its_end(start_server, root, manager):
    server = start_server(root, environment={"NOTIFY_SOCKET": manager.path})
    ready = manager.next()
    assert ready == {"READY": "1", "STATUS": f"serving {root} on {server.url}"}
    server.signal(signal.SIGHUP)
    reloading = manager.next()
    assert reloading["RELOADING"] == "1" and int(reloading["MONOTONIC_USEC"]) > 0
    assert manager.next() == ready
    server.signal(signal.SIGTERM)
    assert manager.next()["STOPPING"] == "1"
    # 30 s of drain_s and what is left for the rest.
    assert int(manager.next()["EXTEND_TIMEOUT_USEC"]) > 30_000_000
    assert server.wait() == 0


def begin(root, manager, **options):
    command = [PROGRAM, "serve", "--root", root, "--listen", "127.0.0.1:0"]
    return subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": manager.path}, stderr=subprocess.DEVNULL, **options)


def test_it_is_not_ready_before_it_has_read_the_folder_and_printed_its_line(root, manager):
    """The line was printed before the report was sent: it is there to read by then."""
    process = begin(root, manager, stdout=subprocess.PIPE)
    with process.stdout:
        manager.next_with("READY")
        os.set_blocking(process.stdout.fileno(), False)
        assert SERVING.match(process.stdout.read().decode().rstrip("\n"))
        process.terminate()
        assert process.wait(WAIT_S) == 0


def test_a_reload_that_fails_is_reported(start_server, root, tmp_path, manager):
    config = tmp_path / "c.json"
    config.write_text("{}")
    server = start_server(root, "--config", config, environment={"NOTIFY_SOCKET": manager.path})
    manager.next_with("READY")
    config.write_text('{"frob": 1}')
    server.signal(signal.SIGHUP)
    manager.next_with("RELOADING")
    report = manager.next()
    assert report["READY"] == "1" and "frob" in report["STATUS"]


def test_a_line_break_in_a_path_forges_no_report(tmp_path, manager):
    root = tmp_path / "a\nERRNO=1"
    root.mkdir()
    process = begin(root, manager, stdout=subprocess.DEVNULL)
    assert set(manager.next()) == {"READY", "STATUS"}
    process.terminate()
    assert process.wait(WAIT_S) == 0


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"NOTIFY_SOCKET": "/nowhere/notify"}, "NOTIFY_SOCKET: /nowhere/notify"),
        ({"NOTIFY_SOCKET": "notify"}, "NOTIFY_SOCKET"),
        ({"LISTEN_FDS": "x"}, "LISTEN_FDS"),
        ({"LISTEN_FDS": "1000"}, "LISTEN_FDS"),
        ({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "web"}, 'descriptor 3 ("web")'),
    ],
)
def test_nonsense_of_a_manager_is_refused(root, environment, words):
    result = subprocess.run(
        ["bash", "-c", EXEC_WITH_PID, "bash", PROGRAM, "serve", "--root", root, "--listen", "127.0.0.1:0"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and words in result.stderr


# --- the watchdog ---


def test_the_watchdog_hears_from_it(start_server, root, manager):
    environment = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"}
    start_server(root, environment=environment)
    for _ in range(5):
        assert manager.next_with("WATCHDOG") == {"WATCHDOG": "1"}


def test_the_watchdog_of_another_process_is_left_alone(start_server, root, manager):
    environment = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    server = start_server(root, environment=environment)
    assert "READY" in manager.next()
    server.signal(signal.SIGHUP)
    assert "RELOADING" in manager.next()


@pytest.fixture
def hanging(tmp_path):
    """The environment in which a loop that accepts a connection hangs as long as a file exists, and the file."""
    library = PROGRAM.parent / "libzt_faults.so"
    file = tmp_path / "hang"
    return {"LD_PRELOAD": str(library), "ZT_HANG": str(file), "ZTSERVE_SANDBOX": "false"}, file


@pytest.mark.plain("a preloaded library makes a loop hang")
def test_the_watchdog_hears_nothing_while_a_loop_hangs(start_server, root, manager, hanging):
    environment, hang = hanging
    environment = {**environment, "NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000", "ZTSERVE_THREADS": "2"}
    server = start_server(root, environment=environment)
    manager.next_with("WATCHDOG")
    # A loop that was merely late may have been told of before.
    before = len(server.log_lines)
    hang.touch()
    # The loop that gets this connection hangs.
    client = socket.create_connection((server.host, server.port))
    eventually(lambda: any("an event loop hangs" in line for line in server.log_lines[before:]))
    drain_reports(manager)
    manager.socket.settimeout(1)  # ten times the interval of the reports
    with pytest.raises(TimeoutError):
        manager.next()
    hang.unlink()
    manager.socket.settimeout(WAIT_S)
    manager.next_with("WATCHDOG")
    client.close()


def drain_reports(manager):
    manager.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            manager.next()


# --- inherited sockets ---


def listening(host="127.0.0.1", family=socket.AF_INET):
    return socket.create_server((host, 0), family=family, backlog=128)


@pytest.fixture
def activate(root):
    servers = []

    def start(sockets, *arguments, environment=None):
        servers.append(start_activated(root, sockets, *arguments, environment=environment))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            assert server.stop() == 0


def start_activated(root, sockets, *arguments, environment=None):
    moved = " ".join(f"{3 + index}<&{100 + index}" for index in range(len(sockets)))
    for index, one in enumerate(sockets):
        os.dup2(one.fileno(), 100 + index, inheritable=True)
    script = f'exec {moved}; export LISTEN_PID=$$ LISTEN_FDS={len(sockets)}; exec "$@"'
    try:
        return ServerProcess(
            root,
            *arguments,
            environment=environment,
            launcher=["bash", "-c", script, "bash"],
            pass_fds=[100 + index for index in range(len(sockets))],
        )
    finally:
        for index in range(len(sockets)):
            os.close(100 + index)


def status(address, path="/healthz"):
    connection = http.client.HTTPConnection(*address, timeout=WAIT_S)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().status


def test_an_inherited_socket_is_listened_on(activate):
    with listening() as one:
        server = activate([one], environment={"ZTSERVE_THREADS": "3"})
        assert (server.host, server.port) == one.getsockname()
        assert [status(one.getsockname()) for _ in range(50)] == [200] * 50


def test_several_inherited_sockets_are_all_served(activate):
    """By a server that would have a single loop."""
    with listening() as one, listening() as two, listening("::1", socket.AF_INET6) as six:
        activate([one, two, six], environment={"ZTSERVE_THREADS": "1"})
        for taken in (one, two, six):
            assert status(taken.getsockname()[:2]) == 200


def test_no_request_is_lost_when_it_is_restarted(activate):
    """The socket stays open in the manager: clients wait instead of being refused."""
    results = []
    ended = threading.Event()
    with listening() as one:
        server = activate([one])

        def keep_asking():
            while not ended.is_set():
                try:
                    results.append(status(one.getsockname()))
                except (OSError, http.client.HTTPException) as error:
                    results.append(repr(error))

        client = threading.Thread(target=keep_asking)
        client.start()
        for _ in range(3):
            before = len(results)
            eventually(lambda: len(results) > before + 20)
            assert server.stop() == 0
            server = activate([one])
        ended.set()
        client.join()
    assert set(results) == {200}


def test_an_inherited_socket_that_is_open_to_others_is_not_writable_without_tokens(root):
    with listening("0.0.0.0") as one:
        with pytest.raises(RuntimeError) as refused:
            start_activated(root, [one], "--writable")
    assert "writable is refused on 0.0.0.0" in str(refused.value)


def test_reloading_keeps_an_inherited_socket(activate):
    with listening() as one:
        server = activate([one])
        server.signal(signal.SIGHUP)
        eventually(lambda: any("reloaded" in line for line in server.log_lines))
        assert not any("listen was changed" in line for line in server.log_lines)
        assert status(one.getsockname()) == 200


def test_sockets_for_another_process_are_left_alone(start_server, root):
    server = start_server(root, environment={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
    assert status((server.host, server.port)) == 200
