"""Large pieces of files, which the server sends past the HTTP library or from a mapping: the bytes, the connection
afterwards, and files that change while they are sent."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from server_process import ServerProcess
from wire import Connection, ask, begin_answer, component_path, connect, descriptors, eventually, get, metrics, read_exactly, read_head

# More than the buffers of both ends hold.
LENGTH = 24 << 20
CONTENT = pattern(LENGTH)
TARGET = component_path("m", "w")


@pytest.fixture
def file(folder):
    path = folder / "m.zt"
    path.write_bytes(zt1({"w": dense(CONTENT, shape=[LENGTH // 4096, 4096])}))
    return path


@pytest.fixture
def server(file, start_server):
    server = start_server(file.parent)
    assert get(server, TARGET).body == CONTENT
    return server


def request_of(fields=""):
    return f"GET {TARGET} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


@pytest.mark.parametrize("first", [0, 4095])
@pytest.mark.parametrize("length", [(64 << 10) + 1, (1 << 20) - 1, 1 << 20, (4 << 20) + 1, LENGTH - (4 << 20)])
def test_every_byte_is_right_and_the_connection_is_kept(server, first, length):
    with Connection(server) as connection:
        for _ in range(2):
            answer = connection.ask("GET", TARGET, {"Range": f"bytes={first}-{first + length - 1}"})
            assert (answer.status, answer["Content-Length"]) == (206, str(length))
            assert answer.body == CONTENT[first : first + length]


def test_a_kept_connection_counts_once(server):
    def accepted():
        return metrics(server)["ztserve_connections_accepted_total"]

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


PAGE = 4096


@pytest.mark.folder("files that change under a download")
@pytest.mark.parametrize(("length", "count"), [(3 << 20, 1), (60 << 10, 100)], ids=["one piece", "pipelined"])
def test_no_zeros_take_the_place_of_what_a_file_has_lost(server, file, length, count):
    manifest = json.loads(get(server, "/v1/models/m").body)
    offset = manifest["objects"]["w"]["components"]["data"]["offset"]
    # The answer ends within a page, which stays mapped when the file is cut a little before.
    last_page = (offset + LENGTH // 2) // PAGE * PAGE
    end = last_page + 3000 - offset
    expected = CONTENT[end - length : end]
    connection = connect(server, receive_buffer=4096)
    connection.sendall(request_of(f"Range: bytes={end - length}-{end - 1}\r\n") * count)
    status, _, begun = read_head(connection)
    assert status == 206
    connection.settimeout(60)
    # By now no more is sent: the buffers are full.
    assert eventually(lambda: get(server, "/healthz").status == 200)
    os.truncate(file, last_page + 100)
    received = begun + read_until_end(connection)
    for body in re.split(rb"HTTP/1.1 206 .*?\r\n\r\n", received.split(b"HTTP/1.1 4")[0].split(b"HTTP/1.1 5")[0], flags=re.S):
        assert body == expected[: len(body)]
    assert len(received) < length * count


def read_until_end(connection):
    """What still comes, until the server closes the connection or sends nothing for a second."""
    received = []
    connection.settimeout(1)
    try:
        while piece := connection.recv(1 << 20):
            received.append(piece)
    except (ConnectionResetError, TimeoutError):
        pass
    return b"".join(received)


def rewrite_middle(path):
    with path.open("r+b") as file:
        file.seek(LENGTH // 2)
        file.write(b"other bytes")


def shorten_and_restore(path):
    length = path.stat().st_size
    os.truncate(path, length // 4)
    os.truncate(path, length)


# Ways of sending: past the library, by sendfile and from the mapping; gathered; by a worker; by the library.
WAYS = {
    "file": ("/files/m.zt", "", 200),
    "component": (TARGET, "", 200),
    "mapped": (f"{TARGET}?slice=:,0:3000", "", 200),
    "gathered": (f"{TARGET}?slice=:,0:900", "", 200),
    "export": ("/v1/models/m/export?format=npz", "", 200),
    "middle": (TARGET, f"Range: bytes={LENGTH // 2 - (1 << 20)}-{LENGTH // 2 + (2 << 20)}\r\n", 206),
}


@pytest.mark.folder("files that change under a download")
@pytest.mark.parametrize("change", [rewrite_middle, shorten_and_restore])
@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_written_to_in_its_place_never_gives_a_whole_mixture(server, file, way, change):
    target, fields, expected = WAYS[way]
    connection, status, head, begun = begin_answer(server, target, fields)
    assert status == expected
    # By now no more is sent: the buffers are full.
    assert eventually(lambda: get(server, "/healthz").status == 200)
    whole = ask(server, "GET", target, dict(line.split(": ", 1) for line in fields.splitlines())).body
    change(file)
    received = begun + read_until_end(connection)
    # A worker may have read all of it before.
    assert received == whole or len(received) < int(head["content-length"])
    assert get(server, "/healthz").status == 200


@pytest.mark.folder("a file in a bucket is not truncated")
@pytest.mark.parametrize("fields", ["", f"Range: bytes=1000-{(12 << 20) - 1}\r\n"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("reads", [True, False], ids=["reads on", "waits"])
def test_a_truncated_file_cuts_its_answers_at_once(file, start_server, version, fields, reads):
    """Also those that the kernel sends: it finds nothing more to send, and says nothing."""
    patient = {"ZTSERVE_LIMITS_SEND_BUFFER_BYTES": "0", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "600"}
    server = start_server(file.parent, environment=patient)
    with connect(server, receive_buffer=65536) as connection:
        connection.sendall(f"GET {TARGET} HTTP/{version}\r\nHost: localhost\r\n{fields}\r\n".encode())
        read_exactly(connection, 1 << 20)
        with file.open("r+b") as opened:
            opened.truncate(1 << 19)
        if not reads:
            # An answer that waits for its client may be cut only when the client reads on.
            time.sleep(0.2)
        received = 0
        try:
            while piece := connection.recv(1 << 20):
                received += len(piece)
        except ConnectionResetError:
            pass
    assert received < LENGTH // 2


@pytest.mark.parametrize("target", [TARGET, f"{TARGET}?slice=:,0:3000"], ids=["whole", "slice"])
def test_clients_that_leave_in_the_middle_leave_nothing_behind(server, target):
    before = descriptors(server)
    for _ in range(20):
        begin_answer(server, target)[0].close()
    assert eventually(lambda: descriptors(server) <= before)


def test_a_client_that_sends_no_more_gets_the_whole_answer(server):
    if server.context is not None:
        pytest.skip("with TLS the end of what a client sends is not that of the socket")
    connection = connect(server)
    connection.sendall(request_of())
    status, _, begun = read_head(connection)
    connection.shutdown(socket.SHUT_WR)
    assert status == 200
    assert read_exactly(connection, LENGTH, begun) == CONTENT
    assert connection.recv(1) == b""


def test_what_a_client_asks_for_last_is_answered_behind_a_large_answer(server):
    if server.context is not None:
        pytest.skip("with TLS the end of what a client sends is not that of the socket")
    connection, begun = begin(server)
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection.shutdown(socket.SHUT_WR)
    assert read_exactly(connection, LENGTH, begun) == CONTENT
    assert connection.recv(12) == b"HTTP/1.1 200"


def begin(server):
    """An answer whose reader stops at its beginning, long before the end is in the buffers."""
    connection, status, _, begun = begin_answer(server, TARGET)
    assert status == 200
    return connection, begun


@pytest.mark.folder("files that change under a download")
def test_a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was(server, file):
    connection, begun = begin(server)
    other = file.with_name("other")
    other.write_bytes(zt1({"w": dense(CONTENT[::-1])}))
    os.replace(other, file)
    assert eventually(lambda: get(server, TARGET).body == CONTENT[::-1])
    assert read_exactly(connection, LENGTH, begun) == CONTENT


def test_a_reload_changes_nothing_of_an_answer(server):
    connection, begun = begin(server)
    server.signal(signal.SIGHUP)
    assert eventually(lambda: any("reloaded" in line or "SIGHUP" in line for line in server.log_lines))
    assert read_exactly(connection, LENGTH, begun) == CONTENT
    connection.sendall(request_of("Range: bytes=0-9\r\n"))
    status, _, begun = read_head(connection)
    assert (status, read_exactly(connection, 10, begun)) == (206, CONTENT[:10])


def test_a_kept_connection_holds_the_only_place_of_its_address(file, start_server):
    server = start_server(file.parent, environment={"ZTSERVE_LIMITS_CONNECTIONS_PER_ADDRESS": "1"})

    def is_answered():
        try:
            return get(server, "/healthz").status == 200
        except OSError:
            return False

    with Connection(server) as connection:
        for _ in range(3):
            assert connection.ask("GET", TARGET).body == CONTENT
            assert not is_answered()
    assert eventually(is_answered)


def test_a_kept_connection_ends_when_it_is_idle(file, start_server):
    server = start_server(file.parent, environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "3", "ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "600"})
    with connect(server) as connection:
        # So little that the socket takes it at once: on a busy machine a reader may be late.
        connection.sendall(request_of("Range: bytes=0-99999\r\n"))
        _, _, begun = read_head(connection)
        assert read_exactly(connection, 100_000, begun) == CONTENT[:100_000]
        assert connection.recv(1) == b""


@pytest.fixture
def hanging_disk(file, start_server, tmp_path):
    """A server with one loop whose disk gives nothing until the file that comes along is removed."""
    disk_hangs = tmp_path / "disk-hangs"
    disk_hangs.touch()
    # Nothing counts as being in the page cache if reading is slow at all.
    slow = {"LD_PRELOAD": str(FAULTS), "ZT_SLOW_READ_MS": "1", "ZT_HANG_READ": str(disk_hangs)}
    server = start_server(file.parent, environment={**slow, "ZTSERVE_THREADS": "1", "ZTSERVE_SANDBOX": "false"})
    if server.context is not None:
        pytest.skip("with TLS the library sends it")
    yield server, disk_hangs
    disk_hangs.unlink(missing_ok=True)


@pytest.mark.plain("a preloaded library makes reading hang")
@pytest.mark.folder("disks that hang")
@pytest.mark.parametrize("length", [(64 << 10) + 1, LENGTH])
def test_others_are_answered_while_a_file_is_read_from_a_disk(hanging_disk, length):
    server, disk_hangs = hanging_disk
    connection = connect(server)
    connection.sendall(request_of(f"Range: bytes=0-{length - 1}\r\n"))
    status, _, begun = read_head(connection)
    assert (status, begun) == (206, b"")
    assert get(server, "/healthz").status == 200
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        connection.recv(1)
    connection.settimeout(60)
    disk_hangs.unlink()
    assert read_exactly(connection, length) == CONTENT[:length]


@pytest.mark.plain("a preloaded library makes reading hang")
@pytest.mark.folder("disks that hang")
def test_a_client_may_leave_while_a_file_is_read_from_a_disk(hanging_disk):
    server, disk_hangs = hanging_disk
    with connect(server) as connection:
        connection.sendall(request_of())
        assert read_head(connection)[0] == 200
    assert get(server, "/healthz").status == 200
    disk_hangs.unlink()
    assert get(server, TARGET).body == CONTENT
    assert server.stop() == 0


# --- to this machine and to others ---

# Of the network that RFC 2544 sets aside for measurements.
SERVER, CLIENT = "198.18.7.1", "198.18.7.2"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def between():
    """The names of two network namespaces that a pair of interfaces joins."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    one, other = names = [f"zt-large-{os.getpid()}-{side}" for side in ("server", "client")]
    try:
        made = ip("netns", "add", one) and ip("netns", "add", other)
        made = made and ip("-n", one, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", other)
        for name, address in zip(names, (SERVER, CLIENT)):
            made = made and ip("-n", name, "address", "add", f"{address}/30", "dev", "v0") and ip("-n", name, "link", "set", "v0", "up")
            made = made and ip("-n", name, "link", "set", "lo", "up")
        if not made:
            pytest.skip("network namespaces cannot be made here")
        yield names
    finally:
        for name in names:
            ip("netns", "delete", name)


@pytest.mark.folder("how a file goes to a socket")
@pytest.mark.skipif(shutil.which("strace") is None or shutil.which("curl") is None, reason="needs strace and curl")
@pytest.mark.parametrize(("client", "most"), [(0, 512 << 10), (1, 8 << 20)], ids=["to this machine", "to another"])
@pytest.mark.plain("measures memory, or is traced")
def test_to_other_machines_pieces_are_larger(file, between, tmp_path, client, most):
    trace = tmp_path / "trace"
    launcher = ["ip", "netns", "exec", between[0], "strace", "-D", "-f", "-e", "trace=sendfile", "-o", str(trace)]
    server = ServerProcess(file.parent, launcher=launcher, listen=f"{SERVER}:0")
    try:
        url = f"{server.url}{TARGET}"
        command = ["ip", "netns", "exec", between[client], "curl", "-s", "-k", "-o", str(tmp_path / "got"), url]
        assert subprocess.run(command, check=False).returncode == 0
        assert (tmp_path / "got").read_bytes() == CONTENT
    finally:
        assert server.stop() == 0
    if server.context is not None:
        pytest.skip("with TLS the library sends it")
    lengths = [int(length) for length in re.findall(r"sendfile\(.*, (\d+)\) = ", trace.read_text())]
    assert lengths and max(lengths) == most


@pytest.mark.folder("how a file goes to a socket")
@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss")
def test_only_what_goes_to_other_machines_is_paced(file, between):
    """A new namespace has the system's way of congestion control; here it gets one that is not the server's own choice."""

    def in_namespace(number, *command):
        command = ["ip", "netns", "exec", between[number], *command]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    known = in_namespace(0, "sysctl", "-n", "net.ipv4.tcp_available_congestion_control").split()
    other = next((name for name in known if name != "reno"), None)
    if other is None:
        pytest.skip("the kernel has one way of congestion control only")
    in_namespace(0, "sysctl", "-w", f"net.ipv4.tcp_congestion_control={other}")
    server = ServerProcess(file.parent, launcher=["ip", "netns", "exec", between[0]], listen=f"{SERVER}:0")
    try:
        for client, expected in ((0, "reno"), (1, other)):
            hold = f"exec 3<>/dev/tcp/{SERVER}/{server.port}; echo ready; read"
            command = ["ip", "netns", "exec", between[client], "bash", "-c", hold]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                assert process.stdout.readline() == b"ready\n"

                def ways(of=f"( sport = :{server.port} )"):
                    return [name for name in known if f" {name} " in in_namespace(0, "ss", "-tin", "state", "established", of)]

                assert eventually(lambda: ways() == [expected])
                process.communicate(b"\n")
    finally:
        assert server.stop() == 0
