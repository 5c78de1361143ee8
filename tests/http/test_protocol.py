"""HTTP/1.1 on a bare socket: keep-alive and pipelining, framing that must be refused, and odd but legal requests.

What could be read in two ways (request smuggling) is answered 400 and the connection closed; nothing after it is obeyed.
"""

import re
import socket
import time

import pytest

from containers import dense, pattern, zt1
from wire import TIMEOUT_S, component_path, connect, get, head, read_exactly, read_head, read_until_closed, talk

CLOSE = b"Connection: close\r\n"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
# Occurs in the answer to a smuggled request and nowhere else.
VERSION = b'"version"'


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000)), "big": dense(pattern(3_000_000))}))
    return share_server(
        folder, environment={"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "1", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2"}
    )


@pytest.fixture(scope="module")
def writable(tmp_path_factory, share_server):
    return share_server(tmp_path_factory.mktemp("writable"), "--writable")


def request(method="GET", target="/healthz", *fields):
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *fields, "", ""]
    return "\r\n".join(lines).encode()


def statuses(received):
    return [int(status) for status in STATUS.findall(received)]


def assert_refused_and_closed(server, data):
    """One answer and the end; a second answer would be the smuggled request's. (The library repeats its own head.)"""
    received = talk(server, data)
    assert set(statuses(received)) in ({400}, {413}), received
    assert VERSION not in received


def test_connection_is_kept(server):
    with connect(server) as connection:
        for _ in range(50):
            connection.sendall(request(target=component_path("m", "w")))
            status, fields, begun = read_head(connection)
            assert status == 200 and fields.get("connection", "keep-alive").lower() != "close"
            assert read_exactly(connection, int(fields["content-length"]), begun) == pattern(1000)


def test_pipelined_requests_are_answered_in_order(server):
    paths = ["/v1/models/m/objects/w/data", "/nowhere", "/v1/models/m/objects/big/data", "/version"] * 5
    data = b"".join(request(target=path) for path in paths) + request("GET", "/healthz", "Connection: close")
    received = talk(server, data)
    assert statuses(received) == [200, 404, 200, 200] * 5 + [200]
    assert received.count(pattern(3_000_000)) == 5


def test_pipelined_mix_of_head_and_errors(server):
    data = request("HEAD", "/v1/models/m/objects/w/data") + request("HEAD", "/nowhere") + request("OPTIONS", "/healthz")
    received = talk(server, data + request("GET", "/version", "Connection: close"))
    assert statuses(received) == [200, 404, 204, 200]


def test_request_in_single_bytes_is_understood(server):
    with connect(server) as connection:
        for byte in request("GET", "/version", "Connection: close"):
            connection.sendall(bytes([byte]))
        assert VERSION in read_until_closed(connection)


def test_close_is_kept(server):
    received = talk(server, request("GET", "/version", "Connection: close"))
    assert b"connection: close" in received.lower()


def test_http_1_0_is_answered_and_closed(server):
    received = talk(server, b"GET /version HTTP/1.0\r\n\r\n")
    assert statuses(received) == [200] and VERSION in received


def test_http_1_0_without_chunks(server):
    received = talk(server, b"GET /v1/models/m HTTP/1.0\r\nHost: x\r\n\r\n")
    assert statuses(received) == [200]
    assert b"transfer-encoding" not in received.lower()


def test_absolute_form_of_the_target_is_understood(server):
    received = talk(server, request("GET", "http://x/version", "Connection: close"))
    assert statuses(received) == [200] and VERSION in received
    received = talk(server, request("GET", "http://x/v1/models/m/objects/w/data?a=b", "Connection: close"))
    assert received.endswith(pattern(1000))


@pytest.mark.parametrize("target", ["*", "version", "ftp:x", "x:80"])
def test_targets_of_no_known_form_are_refused(server, target):
    received = talk(server, request("GET", target, "Connection: close"))
    assert statuses(received)[0] in (400, 404), received


def test_options_of_the_server_itself(server):
    received = talk(server, request("OPTIONS", "*", "Connection: close"))
    assert statuses(received)[0] in (200, 204, 400, 404)


SMUGGLED = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
# Each is the head of a request (method and path go before), and a body that holds another request.
AMBIGUOUS = {
    "length and chunked": ("Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunked and length": ("Transfer-Encoding: chunked\r\nContent-Length: 500", b"0\r\n\r\n"),
    "two lengths": ("Content-Length: 5\r\nContent-Length: 6", b"12345"),
    "the same length twice": ("Content-Length: 5\r\nContent-Length: 5", b"12345"),
    "list of lengths": ("Content-Length: 5, 6", b"12345"),
    "signed length": ("Content-Length: +5", b"12345"),
    "negative length": ("Content-Length: -5", b""),
    "hexadecimal length": ("Content-Length: 0x5", b"12345"),
    "length of letters": ("Content-Length: five", b""),
    "empty length": ("Content-Length: ", b""),
    "length past 64 bits": ("Content-Length: 18446744073709551621", b"12345"),
    "two hosts": ("Host: y", b""),
    "unknown coding": ("Transfer-Encoding: xchunked", b"0\r\n\r\n"),
    "identity": ("Transfer-Encoding: identity", b""),
    "coding before chunked": ("Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
    "coding after chunked": ("Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
    "chunked twice": ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunked with a vertical tab": ("Transfer-Encoding: \x0bchunked", b"0\r\n\r\n"),
    "blank before the colon": ("Transfer-Encoding : chunked", b"0\r\n\r\n"),
    "length with a blank before the colon": ("Content-Length : 5", b"12345"),
    "folded length": ("Content-Length:\r\n 5", b"12345"),
    "folded coding": ("Transfer-Encoding:\r\n chunked", b"0\r\n\r\n"),
    "name that begins as length": ("Content-Lengthy: 5", b""),
    "name that begins as coding": ("Transfer-Encodings: chunked", b""),
    "field without a colon": ("Nonsense", b""),
}


TARGETS = {"PUT": "/v1/models/x", "GET": "/healthz", "POST": "/v1/models/m/verification"}


@pytest.mark.parametrize("case", AMBIGUOUS)
@pytest.mark.parametrize("method", TARGETS)
def test_ambiguous_framing_is_refused_and_closed(server, writable, case, method):
    fields, body = AMBIGUOUS[case]
    for target_server in (server, writable) if method == "PUT" else (server,):
        assert_refused_and_closed(target_server, request(method, TARGETS[method], fields) + body + SMUGGLED)


@pytest.mark.parametrize("method", TARGETS)
def test_blank_after_the_coding_hides_no_request(server, writable, method):
    """It is not part of the value. libmicrohttpd 0.9.75 leaves it there, and the server refuses; 1.0 drops it."""
    head = request(method, TARGETS[method], "Transfer-Encoding: chunked ")
    for target_server in (server, writable) if method == "PUT" else (server,):
        received = talk(target_server, head + b"0\r\n\r\n" + SMUGGLED)
        assert len(statuses(received)) == 1 and VERSION not in received, received


def test_nul_in_the_target_ends_the_connection(server):
    """libmicrohttpd 1.0 does so without an answer."""
    received = talk(server, request("GET", "/healthz\x00/v1/models") + request("GET", "/nowhere") + SMUGGLED)
    assert statuses(received) in ([], [400]), received


@pytest.mark.parametrize(
    "target, field",
    [
        ("/healthz", "X-Nul: 5\x006"),
        ("/healthz", "Content-Length: 0\x005"),
        ("/healthz", "X-Folded: a\r\n b"),
        ("/healthz", "X-Folded:\r\n b"),
        ("/healthz", "X-Bare: a\nX-Other: b"),
        ("/healthz", "X-Nul: a\x00"),
        ("/healthz", "\x00"),
        ("/healthz", "\x00: x"),
        ("/healthz", ": x"),
        ("/healthz", ":"),
        ("/healthz", ": x\r\nX-After: y"),
    ],
)
def test_fields_that_the_library_hides_do_not_shift_the_framing(server, target, field):
    """The library would end the header at an empty name, and read the rest as another request."""
    received = talk(server, request("GET", target, field) + request("GET", "/nowhere", "Connection: close") + SMUGGLED)
    assert statuses(received) == [400], received
    assert b"connection: close" in received.lower()


def test_request_within_a_header_is_not_obeyed(server, writable):
    """Behind a proxy that passes on the line with the empty name, all of it is one request."""
    for target_server in (server, writable):
        received = talk(target_server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n: x\r\n" + SMUGGLED)
        assert statuses(received) == [400] and VERSION not in received, received


@pytest.mark.parametrize("pieces", [1, 7, 2000])
@pytest.mark.parametrize(
    "fields",
    [
        ["X-Long: " + "v" * 6000],
        ["X-Longer: " + "v" * 5000, *(f"X-{index}: y" for index in range(50)), "X-Longest: " + "v" * 5000],
        [f"X-{index}:{' ' * (index % 3)}{'v' * (index % 5 * 30)}{' ' * (index % 2)}" for index in range(90)],
        ["Cookie: a=b; c=d", "X-Empty:", "X-Tab:\t\ty", "Accept: a;q=0.5, b", "X-Empty-Too:  "],
    ],
)
def test_plain_headers_of_any_shape_are_understood(server, fields, pieces):
    data = request("GET", "/version?a=b&c=%20&d", *fields) * 2 + request("GET", "/healthz", "Connection: close")
    with connect(server) as connection:
        for at in range(0, len(data), len(data) // pieces + 1):
            connection.sendall(data[at : at + len(data) // pieces + 1])
        assert statuses(read_until_closed(connection)) == [200, 200, 200]


def test_missing_host_is_refused(server):
    assert_refused_and_closed(server, b"GET /healthz HTTP/1.1\r\n\r\n" + SMUGGLED)


@pytest.mark.parametrize("line", ["GET /healthz HTTP/2.0", "GET /healthz HTTP/9.9", "GET /healthz XTTP/1.1", "GET"])
def test_other_protocols_are_refused(server, line):
    received = talk(server, f"{line}\r\nHost: x\r\n\r\n".encode() + SMUGGLED)
    assert all(status >= 400 for status in statuses(received)), received
    assert VERSION not in received


@pytest.mark.parametrize("trailer", ["", ": x\r\n", "X-Nul: a\x00b\r\n", "X: y\n", "\x00\r\n", "X: y\r\n\r\n"])
def test_nothing_after_a_chunked_body_is_obeyed(server, writable, trailer):
    """The library ends the trailers at one with an empty name, and does not report it."""
    for target_server, method, target in ((writable, "PUT", "/v1/models/x"), (server, "GET", "/healthz")):
        head = request(method, target, "Transfer-Encoding: chunked")
        received = talk(target_server, head + b"1\r\nx\r\n0\r\n" + trailer.encode() + SMUGGLED)
        assert len(statuses(received)) == 1 and VERSION not in received, received


@pytest.mark.parametrize("size", ["zz", "-1", "0x5", "1 1", "fffffffffffffffff", ""])
def test_bad_chunk_sizes_are_refused(writable, size):
    received = talk(
        writable, request("PUT", "/v1/models/x", "Transfer-Encoding: chunked") + f"{size}\r\n".encode() + SMUGGLED
    )
    assert VERSION not in received
    assert all(status >= 400 for status in statuses(received)), received


def test_body_of_a_get_is_not_the_next_request(server):
    body = SMUGGLED
    received = talk(
        server,
        request("GET", "/healthz", f"Content-Length: {len(body)}")
        + body
        + request("GET", "/nowhere", "Connection: close"),
    )
    assert VERSION not in received


def test_body_of_a_refused_put_is_not_the_next_request(server):
    received = talk(server, request("PUT", "/v1/models/x", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED)
    assert statuses(received) == [403] and VERSION not in received


def test_huge_target_is_414(server):
    received = talk(server, request("GET", "/" + "x" * 200_000, "Connection: close"))
    assert set(statuses(received)) <= {414, 431} and received


def test_huge_header_is_431(server):
    received = talk(server, request("GET", "/healthz", "X-Big: " + "x" * 200_000, "Connection: close"))
    assert set(statuses(received)) <= {431, 413, 400} and received


def test_many_fields_are_accepted_or_refused(server):
    fields = [f"X-{index}: {index}" for index in range(5000)]
    received = talk(server, request("GET", "/healthz", *fields, "Connection: close"))
    assert statuses(received)[0] in (200, 431, 400)


def test_header_of_moderate_size_is_fine(server):
    fields = [f"X-{index}: " + "v" * 100 for index in range(50)]
    assert statuses(talk(server, request("GET", "/healthz", *fields, "Connection: close"))) == [200]


@pytest.mark.timeout(TIMEOUT_S)
def test_header_that_never_ends_is_cut(server):
    began = time.monotonic()
    with connect(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        try:
            while time.monotonic() - began < TIMEOUT_S:
                connection.sendall(b"X")
                connection.settimeout(0.1)
                try:
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    pass
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert time.monotonic() - began < 20


def test_idle_connection_is_closed(server):
    with connect(server) as connection:
        connection.sendall(request())
        assert read_head(connection)[0] == 200
        assert read_until_closed(connection) is not None


def test_half_closed_client_gets_its_answer(server):
    with connect(server) as connection:
        connection.sendall(request(target=component_path("m", "big")))
        connection.shutdown(socket.SHUT_WR)
        received = read_until_closed(connection)
    assert received == b"" or received.endswith(pattern(3_000_000)[-1000:])
    assert get(server, "/healthz").status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 1000,
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\r\n\r\n\r\n\r\n",
        b"\xff" * 100_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_noise_does_not_harm(server, data):
    with connect(server) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            read_until_closed(connection)
        except OSError:
            pass
    assert get(server, "/healthz").status == 200


def test_reset_connections_do_not_harm(server):
    for _ in range(50):
        connection = connect(server)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.sendall(request(target=component_path("m", "big")))
        connection.close()
    assert get(server, component_path("m", "w")).body == pattern(1000)


@pytest.mark.parametrize("count", [128, 200])
def test_many_connections_ready_at_once_are_all_answered(server, count):
    connections = [connect(server) for _ in range(count)]
    for connection in connections:
        connection.sendall(request("GET", "/version", "Connection: close"))
    assert all(VERSION in read_until_closed(connection) for connection in connections)
    for connection in connections:
        connection.close()


def test_answers_have_a_date_and_no_stray_body(server):
    for answer in (get(server, "/healthz"), head(server, "/nowhere")):
        assert answer["Date"].endswith(" GMT")
