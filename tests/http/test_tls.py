"""HTTP over TLS: which versions and ciphers, that answers and bodies come whole in any size and rhythm, and that the
server holds out against clients that do not finish, do not speak TLS, or lose their files.

Whole test files can be run over TLS too: ZT_ALWAYS_TLS=1."""

import contextlib
import json
import os
import random
import socket
import ssl
import threading

import pytest

from certificates import Authority
from containers import dense, pattern, zt1
from wire import ask, component_path, connect, eventually, get, head, http_connection, metrics, model_path, read_exactly
from wire import read_head, read_until_closed

BIG = random.Random(1).randbytes(3_000_001)
SMALL = pattern(1000)
RECORD = 16384
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.sign("server")


@pytest.fixture(scope="module")
def server(folder, share_server, authority, certificate):
    (folder / "m.zt").write_bytes(zt1({"w": dense(SMALL), "big": dense(BIG)}))
    return share_server(folder, "--writable", *certificate.arguments, tls=authority)


@pytest.fixture
def start(start_server, tmp_path, authority, certificate):
    """A server of the test's own, with limits as keywords."""

    def start(*arguments, **limits):
        environment = {f"ZTSERVE_LIMITS_{name.upper()}": str(value) for name, value in limits.items()}
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        return start_server(root, *certificate.arguments, *arguments, environment=environment, tls=authority)

    return start


def plain(server):
    return socket.create_connection((server.host, server.port), timeout=60)


# --- the session ---


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken_with_sound_ciphers(server, authority, version):
    context = authority.context(version=version)
    with context.wrap_socket(plain(server), server_hostname=server.host) as connection:
        assert connection.version().replace(".", "_") == version.name
        assert "GCM" in connection.cipher()[0] or "CHACHA20" in connection.cipher()[0]
        connection.sendall(HEALTH)
        assert read_head(connection)[0] == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_versions_are_refused(server, authority, version):
    context = authority.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with pytest.raises(OSError), context.wrap_socket(plain(server), server_hostname=server.host):
        pass
    assert get(server, "/healthz").status == 200


@pytest.mark.parametrize("ciphers", ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-CCM"])
def test_weak_ciphers_are_refused(server, authority, ciphers):
    context = authority.context(version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(ciphers)
    with pytest.raises(OSError), context.wrap_socket(plain(server), server_hostname=server.host):
        pass


@pytest.mark.parametrize("offered, chosen", [(["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), ([], None)])
def test_the_protocol_is_agreed_upon(server, authority, offered, chosen):
    context = authority.context()
    if offered:
        context.set_alpn_protocols(offered)
    with context.wrap_socket(plain(server), server_hostname=server.host) as connection:
        assert connection.selected_alpn_protocol() == chosen
        connection.sendall(HEALTH)
        assert read_head(connection)[0] == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(server, authority, version):
    context = authority.context(version=version)
    with context.wrap_socket(plain(server), server_hostname=server.host) as first:
        first.sendall(HEALTH)
        assert read_head(first)[0] == 200
        session = first.session
    with context.wrap_socket(plain(server), server_hostname=server.host, session=session) as second:
        assert second.session_reused
        second.sendall(HEALTH)
        assert read_head(second)[0] == 200


# --- answers ---


def test_rsa_certificates_work(start_server, tmp_path, authority):
    server = start_server(tmp_path, *authority.sign("rsa", rsa=True).arguments, tls=authority)
    assert get(server, "/healthz").status == 200


@pytest.mark.parametrize("length", [1, RECORD - 1, RECORD, RECORD + 1, 65536, 65537, 1_000_000])
def test_ranges_of_any_length_are_right(server, length):
    for first in (0, 123_457):
        answer = get(server, component_path("m", "big"), Range=f"bytes={first}-{first + length - 1}")
        assert answer.status == 206 and answer.body == BIG[first : first + length]


def test_answers_of_every_shape_are_right(server):
    path = component_path("m", "big")
    whole = get(server, path)
    assert (whole.status, whole.body) == (200, BIG)
    asked = head(server, path)
    assert asked.body == b"" and asked["Content-Length"] == str(len(BIG))
    assert get(server, path, If_None_Match=whole["ETag"]).status == 304
    assert get(server, "/nowhere").status == 404
    many = ",".join(f"{at}-{at + 9}" for at in range(0, 300_000, 30_000))
    parts = get(server, path, Range=f"bytes={many}")
    assert parts.status == 206 and all(BIG[at : at + 10] in parts.body for at in range(0, 300_000, 30_000))
    large = get(server, path, Range="bytes=0-99999,200000-2000000")
    assert BIG[:100_000] in large.body and BIG[200_000:2_000_001] in large.body
    assert get(server, "/files/m.zt").body == (get(server, "/files/m.zt", Range="bytes=0-").body)
    exported = get(server, f"{model_path('m')}/export?format=safetensors")
    assert exported.status == 200 and BIG in exported.body


def test_more_requests_than_one_record_holds_are_answered(server):
    count = 300
    with connect(server) as connection:
        sender = threading.Thread(target=connection.sendall, args=(HEALTH * count,))
        sender.start()
        received = b""
        while received.count(b'{"status":"ok"}') < count:
            received += connection.recv(65536)
        sender.join()
    assert received.count(b"HTTP/1.1 200") == count


def test_a_request_of_many_small_records_is_answered(server):
    with connect(server) as connection:
        for byte in HEALTH:
            connection.sendall(bytes([byte]))
        assert read_head(connection)[0] == 200


def ranged(first, length):
    return f"GET {component_path('m', 'big')} HTTP/1.1\r\nHost: x\r\nRange: bytes={first}-{first + length - 1}\r\n\r\n".encode()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_repeated_requests_in_any_records_get_their_answers(start, authority, tmp_path, version):
    """Cached answers and others alternate, each record is sent when the answers before it have arrived."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/m.zt").write_bytes(zt1({"big": dense(BIG)}))
    server = start()
    server.context = authority.context(version=version)
    small, full, other = ranged(5, 100), ranged(9, RECORD), ranged(7, 300_000)
    records = [[small]] * 4 + [[full]] * 4 + [[small, small], [small[:9], small[9:]], [small, full + small], [other]]
    records.append([full + other, small])
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for parts in records * 3:
            for part in parts:
                connection.sendall(part)
            left = b"".join(parts)
            received = b""
            while left:
                expected = next(one for one in (small, full, other) if left.startswith(one))
                left = left[len(expected) :]
                while b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                block, received = received.split(b"\r\n\r\n", 1)
                assert block.startswith(b"HTTP/1.1 206")
                first, length = {small: (5, 100), full: (9, RECORD), other: (7, 300_000)}[expected]
                while len(received) < length:
                    received += connection.recv(65536)
                assert received[:length] == BIG[first : first + length]
                received = received[length:]
            assert received == b""


def test_repeated_answers_wait_for_a_client_that_does_not_read(start, tmp_path):
    """The server must stop within an answer, and later go on with the rest of its record."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/m.zt").write_bytes(zt1({"big": dense(BIG)}))
    server = start(send_buffer_bytes=16384)
    count, sent = 1000, ranged(3, RECORD)
    with connect(server, receive_buffer=65536) as connection:
        for _ in range(3):
            connection.sendall(sent)
            assert read_exactly(connection, RECORD, read_head(connection)[2]) == BIG[3 : 3 + RECORD]
        sender = threading.Thread(target=lambda: [connection.sendall(sent) for _ in range(count)])
        sender.start()
        in_progress = "ztserve_http_requests_in_progress"
        eventually(lambda: metrics(server)[in_progress] > 1)
        rest = b""
        for _ in range(count):
            while b"\r\n\r\n" not in rest:
                rest += connection.recv(65536)
            rest = rest.split(b"\r\n\r\n", 1)[1]
            while len(rest) < RECORD:
                rest += connection.recv(65536)
            assert rest[:RECORD] == BIG[3 : 3 + RECORD]
            rest = rest[RECORD:]
        sender.join()
        assert rest == b""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_end_of_the_session_is_announced(server, authority, version):
    """Otherwise a client cannot tell it from an attacker's cut (RFC 8446 section 6.1)."""
    context = authority.context(version=version)
    with context.wrap_socket(plain(server), server_hostname=server.host, suppress_ragged_eofs=False) as connection:
        connection.sendall(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        assert received.endswith(b'{"status":"ok"}\n')


def test_clients_side_by_side_get_their_own_bytes(server):
    failures = []

    def fetch(seed):
        chooser = random.Random(seed)
        connection = http_connection(server)
        for _ in range(10):
            first = chooser.randrange(len(BIG))
            length = chooser.choice([1, 5000, 20_000, 70_000, 500_000])
            fields = {"Range": f"bytes={first}-{first + length - 1}"}
            connection.request("GET", component_path("m", "big"), headers=fields)
            if connection.getresponse().read() != BIG[first : first + length]:
                failures.append((seed, first, length))
        connection.close()

    threads = [threading.Thread(target=fetch, args=(seed,)) for seed in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# --- bodies ---


def test_uploads_of_any_length_come_back(server, name):
    for length in (0, RECORD, 5_000_000):
        content = zt1({"w": dense(random.Random(length).randbytes(length))})
        assert ask(server, "PUT", model_path(name), {}, content).status in (201, 204)
        assert get(server, f"/files/{name}.zt").body == content


def test_a_chunked_upload_is_taken(server, name):
    content = zt1({"w": dense(random.Random(8).randbytes(1_000_000))})
    with connect(server) as connection:
        connection.sendall(
            f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            "Expect: 100-continue\r\n\r\n".encode()
        )
        assert read_head(connection)[0] == 100
        for at in range(0, len(content), 77_777):
            chunk = content[at : at + 77_777]
            connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        connection.sendall(b"0\r\n\r\n")
        assert read_head(connection)[0] == 201
    assert get(server, f"/files/{name}.zt").body == content


# --- clients that misbehave ---


def test_a_refusal_before_the_body_can_be_read(server):
    with connect(server) as connection:
        head_bytes = b"PUT /v1/models/%20 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"
        connection.sendall(head_bytes + bytes(300_000))
        assert read_head(connection)[0] == 400


def test_a_body_that_stops_is_answered_408(start):
    server = start("--writable", rate_grace_s=1, idle_timeout_s=2)
    with connect(server) as connection:
        head_bytes = b"PUT /v1/models/m HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"
        connection.sendall(head_bytes + bytes(2_000_000))
        assert read_head(connection)[0] == 408
        assert read_until_closed(connection) == b""


@pytest.mark.parametrize("begin", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_a_handshake_that_does_not_end_is_cut(start, begin):
    server = start(header_timeout_s=1)
    with plain(server) as connection:
        connection.sendall(begin)
        assert connection.recv(1) == b""


def test_a_handshake_that_trickles_is_cut(start):
    server = start(header_timeout_s=1, idle_timeout_s=60)
    with plain(server) as connection, pytest.raises(OSError):
        connection.settimeout(0.05)
        # The head of a long ClientHello, and then a byte now and then.
        connection.sendall(b"\x16\x03\x01\x20\x00\x01\x00\x1f\xfc")
        for _ in range(1200):
            connection.sendall(b"\x00")
            try:
                if connection.recv(1) == b"":
                    raise ConnectionError("cut")
            except TimeoutError:
                pass


@pytest.mark.parametrize("request_line", ["GET /healthz", "PUT /v1/models/x", "OPTIONS *"])
def test_plain_http_is_answered_400_in_words(server, request_line):
    before = len(server.log_lines)
    for _ in range(10):
        with plain(server) as connection:
            connection.sendall(f"{request_line} HTTP/1.1\r\nHost: x\r\nX: {'x' * 5000}\r\n\r\n".encode())
            head, body = read_until_closed(connection).split(b"\r\n\r\n", 1)
            assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"\r\nConnection: close" in head
            assert f"\r\nContent-Length: {len(body)}".encode() in head
            assert json.loads(body)["code"] == "invalid-request" and "https://" in json.loads(body)["detail"]
    assert get(server, "/healthz").status == 200
    # That request; the others are not worth a line.
    assert len(server.log_lines) <= before + 2, server.log


def test_plain_http_that_trickles_is_answered_too(server):
    with plain(server) as connection:
        connection.sendall(b"G")
        assert read_until_closed(connection).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"get / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01", b" GET / HTTP/1.1\r\n\r\n"])
def test_a_client_that_does_not_speak_tls_is_turned_away(server, garbage):
    before = len(server.log_lines)
    for _ in range(10):
        with plain(server) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            assert b"HTTP/" not in read_until_closed(connection)
    assert get(server, "/healthz").status == 200
    # That request; the others are not worth a line.
    assert len(server.log_lines) <= before + 2, server.log


def test_clients_that_leave_at_any_moment_harm_nobody(server):
    for sent in range(0, 600, 30):
        with plain(server) as connection:
            connection.sendall(os.urandom(3) + bytes(sent) if sent % 60 else b"\x16\x03\x01\x02\x00" + bytes(sent))
    for read in (0, 1, 100_000):
        with connect(server, receive_buffer=4096) as connection:
            connection.sendall(f"GET {component_path('m', 'big')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            read_exactly(connection, read)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert get(server, component_path("m", "big")).body == BIG


class Session:
    """A session whose records the test sends and receives itself."""

    def __init__(self, raw, server, context):
        self.raw = raw
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=server.host)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(self.outgoing.read())
                self.incoming.write(raw.recv(65536))

    def records(self, content, end=False):
        self.tls.write(content)
        if end:
            with contextlib.suppress(ssl.SSLError):
                self.tls.unwrap()
        return self.outgoing.read()

    def read_until_closed(self):
        self.incoming.write(read_until_closed(self.raw))
        self.incoming.write_eof()
        received = b""
        with contextlib.suppress(ssl.SSLError):
            while chunk := self.tls.read(65536):
                received += chunk
        return received


def test_a_damaged_record_ends_the_connection(server, authority):
    with plain(server) as raw:
        session = Session(raw, server, authority.context())
        records = bytearray(session.records(HEALTH))
        records[-1] ^= 1
        raw.sendall(records)
        assert session.read_until_closed() == b""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("path", ["/healthz", component_path("m", "big")])
def test_a_client_that_has_ended_its_side_gets_its_answer(server, authority, version, path):
    with plain(server) as raw:
        session = Session(raw, server, authority.context(version=version))
        raw.sendall(session.records(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), end=True))
        raw.shutdown(socket.SHUT_WR)
        received = session.read_until_closed()
        assert received.endswith(b'{"status":"ok"}\n' if path == "/healthz" else BIG[-1000:])


@pytest.mark.folder("files that change under a download")
@pytest.mark.parametrize("first, last", [(0, 2_999_999), (1_000_000, 1_050_000)])
def test_a_file_that_shrinks_while_it_is_sent_cuts_only_that_answer(start, tmp_path, first, last):
    """Encrypting from a mapping would be killed by SIGBUS."""
    server = start()
    file = tmp_path / "root" / "m.zt"
    file.write_bytes(zt1({"w": dense(random.Random(3).randbytes(40_000_000), digest=None)}))
    path = component_path("m", "w")
    eventually(lambda: get(server, path, Range="bytes=0-0").status == 206)
    with connect(server, receive_buffer=4096) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-39999999\r\n\r\n".encode())
        assert read_head(connection)[0] == 206
        os.truncate(file, 100_000)
        # Perhaps before the server notices that the file has changed.
        with connect(server) as other:
            other.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes={first}-{last}\r\n\r\n".encode())
            read_head(other)
        read_until_closed(connection)
    assert get(server, "/healthz").status == 200
    assert server.process.poll() is None


CHANGES = {
    "shorter": lambda file: os.truncate(file, 20_000_000),
    "shorter within a page of its end": lambda file: os.truncate(file, file.stat().st_size - 5),
    "other bytes": lambda file: write_at(file, 39_000_000, b"other"),
}


def write_at(file, offset, data):
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(data)


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_from_a_file_that_changes_never_completes(start, tmp_path, change):
    server = start()
    file = tmp_path / "root" / "m.zt"
    # The loop reads whole MiB behind the first 64 KiB, up to the end.
    length = (64 << 10) + (38 << 20)
    file.write_bytes(zt1({"w": dense(random.Random(4).randbytes(length), digest=None)}))
    path = component_path("m", "w")
    eventually(lambda: get(server, path, Range="bytes=0-0").status == 206)
    with connect(server, receive_buffer=65536) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, _, body = read_head(connection)
        assert status == 200
        # The server is far beyond its first window.
        body = read_exactly(connection, 10_000_000, body)
        CHANGES[change](file)
        assert 10_000_000 <= len(body) + len(read_until_closed(connection)) < length


def test_the_log_tells_how_much_of_a_cut_answer_arrived(start, tmp_path):
    server = start("--log-format", "json")
    (tmp_path / "root" / "m.zt").write_bytes(zt1({"w": dense(bytes(40_000_000))}))
    path = component_path("m", "w")
    eventually(lambda: get(server, path, Range="bytes=0-0").status == 206)
    with connect(server, receive_buffer=65536) as connection:
        connection.sendall(HEALTH)
        read_exactly(connection, 1)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        read_exactly(connection, 20_000_000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    line = eventually(lambda: next((line for line in server.log_lines if '"cut":true' in line), None))
    bytes_sent = int(line.split('"bytes":')[1].split(",")[0])
    assert 19_000_000 < bytes_sent < 30_000_000, line


def test_one_connection_too_many_gets_503(start):
    server = start(connections=1)
    with connect(server) as first:
        first.sendall(HEALTH)
        status, fields, body = read_head(first)
        read_exactly(first, int(fields["content-length"]), body)
        assert status == 200
        for target in [b"/version", b"/v1/models"]:
            with connect(server) as second:
                second.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                status, fields, body = read_head(second)
                assert status == 503 and fields["retry-after"] == "1"
                body = read_exactly(second, int(fields["content-length"]), body)
                assert json.loads(body)["code"] == "overloaded" and body.endswith(b"}\n")
        first.sendall(HEALTH)
        assert read_head(first)[0] == 200
