"""The same request again and again on one connection: a loop gives what it gave a moment ago, and never what was before."""

import os
import signal
import socket

import pytest

from clients import Client, write_tokens
from containers import dense, pattern, zt1
from uploads import put
from wire import (
    ask, component_path, connect, eventually, http_connection, metrics, model_path, publish, read_exactly, read_head,
    read_until_closed, second_address, verify,
)  # fmt: skip

DATA = pattern(3000)
AGAIN = 8


def model(data):
    return zt1({"w": dense(data, digest="sha256")})


class Kept:
    """One connection, so that one loop answers."""

    def __init__(self, server):
        self.server, self.connection = server, http_connection(server)

    def ask(self, target, method="GET", **fields):
        self.server.look_at_folder()
        self.connection.request(method, target, headers={name.replace("_", "-"): value for name, value in fields.items()})
        response = self.connection.getresponse()
        return response.status, response.headers, response.read()

    def ask_again(self, target, method="GET", **fields):
        """Until the answer is a kept one, if it can be; all answers must be the same but for their times: of a file that is
        younger than the server's clock, Last-Modified is that clock's (RFC 9110 section 8.8.2.1)."""
        if target.startswith("/files/"):
            # It is found behind the first answer.
            eventually(lambda: self.ask(target)[1]["Repr-Digest"])
        answers = [self.ask(target, method, **fields) for _ in range(AGAIN)]
        for _, headers, _ in answers:
            del headers["Date"]
        seen = {(status, frozenset({**headers, "Last-Modified": ""}.items()), body) for status, headers, body in answers}
        assert len(seen) == 1, seen
        return answers[0]


@pytest.fixture
def server(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(model(DATA))
    return start_server(tmp_path, "--writable")


@pytest.mark.folder("changes to a file that are seen at once")
@pytest.mark.parametrize("target", [model_path("m"), component_path("m", "w"), "/files/m.zt", "/v1/models/m/objects/w"])
def test_a_replaced_file_is_seen_at_once(server, tmp_path, target):
    client = Kept(server)
    tags = {client.ask_again(target)[1]["ETag"]}
    for turn in range(5):
        publish(tmp_path / "m.zt", model(pattern(3000, turn)))
        tag = client.ask(target)[1]["ETag"]
        assert tag not in tags
        assert client.ask_again(target)[1]["ETag"] == tag
        tags.add(tag)


@pytest.mark.folder("changes to a file that are seen at once")
def test_a_file_replaced_between_repeated_requests_is_seen_at_once(server, tmp_path):
    client = Kept(server)
    tags = set()
    for turn in range(100):
        publish(tmp_path / "m.zt", model(pattern(100, turn)))
        tags.add(client.ask_again(model_path("m"))[1]["ETag"])
    assert len(tags) == 100


def test_a_file_that_takes_the_name_is_seen_at_once(server, tmp_path):
    publish(tmp_path / "n.safetensors", model(DATA))
    client = Kept(server)
    eventually(lambda: client.ask(model_path("n"))[0] == 200)
    tag = client.ask_again(model_path("n"))[1]["ETag"]
    publish(tmp_path / "n.zt", model(pattern(10)))
    eventually(lambda: client.ask(model_path("n"))[1]["ETag"] != tag)
    (tmp_path / "n.zt").unlink()
    eventually(lambda: client.ask(model_path("n"))[1]["ETag"] == tag)


def test_uploads_and_deletions_are_seen_at_once(server):
    client = Kept(server)
    for turn in range(3):
        data = pattern(2000, turn)
        assert put(server, "up", model(data)).status in (201, 204)
        assert client.ask_again(component_path("up", "w"))[2] == data
        assert client.ask_again(component_path("up", "w"), Range="bytes=100-199")[2] == data[100:200]
        if turn % 3 == 2:
            assert ask(server, "DELETE", model_path("up")).status == 204
            assert client.ask(component_path("up", "w"))[0] == 404


def test_what_is_found_corrupt_is_no_longer_given(tmp_path, start_server):
    data = bytearray(model(DATA))
    data[data.index(DATA[:50]) + 10] ^= 1
    (tmp_path / "m.zt").write_bytes(data)
    server = start_server(tmp_path, "--verify", "off")
    client = Kept(server)
    target = component_path("m", "w")
    assert client.ask_again(target)[0] == 200
    verify(server, "m")
    assert client.ask(target)[0] == 500


def test_what_goes_on_is_not_kept(tmp_path, start_server):
    """That a model is verified again changes nothing but the report."""
    (tmp_path / "m.zt").write_bytes(model(pattern(32 << 20)))
    server = start_server(tmp_path)
    client = Kept(server)
    target = f"{model_path('m')}/verification"
    seen = set()
    for _ in range(10):
        verify(server, "m")
        assert b'"verified"' in client.ask_again(target)[2]
        client.ask(target, "POST")
        # Sometimes it may be over by now.
        seen.add(b'"running"' in client.ask(target)[2])
    assert True in seen


def test_a_digest_is_stated_as_soon_as_it_is_known(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(model(DATA))
    server = start_server(tmp_path, "--verify", "off")
    client = Kept(server)
    target = component_path("m", "w")
    assert client.ask_again(target)[1]["Repr-Digest"] is None
    verify(server, "m")
    assert client.ask_again(target)[1]["Repr-Digest"] is not None


VARIANTS = [
    {},
    {"Range": "bytes=0-9"},
    {"Range": "bytes=10-19"},
    {"Range": "bytes=99999-"},
    {"Accept": "application/x-npy"},
    {"Accept_Encoding": "zstd"},
    {"Accept_Encoding": "identity;q=0"},
    {"If_None_Match": "*"},
    {"If_Match": '"other"'},
    {"Want_Repr_Digest": "sha-256=1"},
    {"Want_Content_Digest": "sha-256=1", "Range": "bytes=5-9"},
    {"X_Other": "no field that changes anything"},
]


def test_requests_that_differ_get_their_own_answers(server):
    """Each answer is compared with one on a connection of its own, which no loop has kept."""
    client = Kept(server)
    target = component_path("m", "w")
    for _ in range(3):
        for method in ("GET", "HEAD"):
            for number, fields in enumerate(VARIANTS):
                status, headers, body = client.ask(target, method, **fields)
                fresh = Kept(server).ask(target, method, X_Fresh=os.urandom(8).hex(), **fields)
                assert (status, body if status < 400 else b"") == (fresh[0], fresh[2] if status < 400 else b""), number
                for name in ("ETag", "Content-Length", "Content-Range", "Content-Type", "Repr-Digest", "Content-Digest", "Vary"):
                    if status < 400 or name != "Content-Length":
                        assert headers[name] == fresh[1][name], (number, name)


def test_every_request_keeps_its_own_id(server):
    client = Kept(server)
    for turn in range(AGAIN):
        assert client.ask(model_path("m"), X_Request_Id=f"turn-{turn}")[1]["X-Request-Id"] == f"turn-{turn}"
        assert client.ask(model_path("m"))[1]["X-Request-Id"] is None
    for _ in range(AGAIN):
        assert client.ask(model_path("m"), X_Request_Id="the-same")[1]["X-Request-Id"] == "the-same"
        assert "total" in client.ask(model_path("m") + "?timing")[1]["Server-Timing"]


def test_kept_answers_are_logged_and_counted(server):
    client = Kept(server)
    for _ in range(50):
        client.ask(component_path("m", "w"), Range="bytes=0-9", User_Agent="again and again")
    client.ask("/healthz")
    lines = [line for line in server.log_lines if "again and again" in line]
    eventually(lambda: len([line for line in server.log_lines if "again and again" in line]) == 50)
    lines = [line for line in server.log_lines if "again and again" in line]
    assert all(" 206 10 bytes " in line and 'model="m"' in line and 'client="127.0.0.1"' in line for line in lines)
    assert len({line.split(" ms ")[1].split()[0] for line in lines}) == 50
    wanted = 'ztserve_http_requests_total{route="/v1/models/{model}/objects/{object}/{component}",method="GET",status="206"} 50'
    assert wanted in ask(server, "GET", "/metrics").body.decode()


def test_a_token_that_is_taken_back_opens_nothing(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(model(DATA))
    old, new = Client("old", "read"), Client("new", "read")
    tokens = write_tokens(tmp_path / "tokens", old)
    server = start_server(root, "--tokens", tokens)
    client = Kept(server)
    target = component_path("m", "w")
    assert client.ask_again(target, Authorization=f"Bearer {old.token}")[0] == 200
    assert client.ask(target)[0] == 401
    write_tokens(tokens, new)
    server.signal(signal.SIGHUP)
    eventually(lambda: client.ask(target, Authorization=f"Bearer {old.token}")[0] == 401)
    assert client.ask_again(target, Authorization=f"Bearer {new.token}")[0] == 200


# --- as bytes ---

COMPONENT = component_path("m", "w")
ROUTE = 'route="/v1/models/{model}/objects/{object}/{component}",method="GET",status="206"'


def request(fields="Range: bytes=0-99\r\n", method="GET", version="1.1"):
    return f"{method} {COMPONENT} HTTP/{version}\r\nHost: h\r\n{fields}\r\n".encode()


@pytest.fixture
def lone_loop(tmp_path, start_server):
    """All connections share its answers."""
    (tmp_path / "m.zt").write_bytes(model(DATA))
    return start_server(tmp_path, environment={"ZTSERVE_THREADS": "1", "ZTSERVE_LIMITS_SEND_BUFFER_BYTES": "16384"})


def test_a_repeated_request_may_arrive_in_any_pieces(lone_loop):
    again = request()
    pieces = [[again]] * 4 + [[again + again], [again[:9], again[9:]], [again[:-1], again[-1:]], [b"\r\n" + again], [again]]
    with connect(lone_loop) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for parts in pieces * 3:
            answered = metrics(lone_loop).get(f"ztserve_http_requests_total{{{ROUTE}}}", 0)
            for part in parts:
                connection.sendall(part)
                # The next part comes alone.
                metrics(lone_loop)
            body = b""
            for _ in range(b"".join(parts).count(b"GET")):
                status, fields, body = read_head_of(connection, body)
                assert (status, body[:100], fields["content-range"]) == (206, DATA[:100], f"bytes 0-99/{len(DATA)}")
                body = body[100:]
                answered += 1
            assert body == b""
            eventually(lambda: metrics(lone_loop)[f"ztserve_http_requests_total{{{ROUTE}}}"] == answered)


def second_request(length):
    """Of so many bytes."""
    fields = "Range: bytes=100-199\r\nX-Length: {}\r\n"
    return request(fields.format("x" * (length - len(request(fields.format(""))))))


def test_the_request_behind_a_body_is_not_taken_for_the_one_before_it(lone_loop):
    """It comes in one piece with the body, and is as long as the header that came alone."""
    first = request("Range: bytes=0-99\r\nContent-Length: 5\r\nExpect: 100-continue\r\n")
    with connect(lone_loop) as connection:
        for _ in range(AGAIN):
            connection.sendall(first)
            assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
            connection.sendall(b"12345" + second_request(len(first)))
            body = b""
            for begin in 0, 100:
                status, _, body = read_head_of(connection, body)
                assert (status, body[:100]) == (206, DATA[begin : begin + 100])
                body = body[100:]
            assert body == b""


def read_head_of(connection, received):
    """As read_head, of an answer with a body of 100 bytes that may have begun with what was received; all of its body."""
    while b"\r\n\r\n" not in received or len(received.split(b"\r\n\r\n", 1)[1]) < 100:
        chunk = connection.recv(1 << 16)
        assert chunk, received
        received += chunk
    block, body = received.split(b"\r\n\r\n", 1)
    lines = block.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), fields, body


ENDS = {
    "close": (request("Connection: close\r\n"), False),
    "HTTP/1.0": (request(version="1.0"), False),
    "the end of the stream": (request(), True),
    "after the interim answer": (request("Expect: 100-continue\r\n"), True),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_repeated_request_ends_its_connection_as_the_first_did(lone_loop, end):
    sent, half_closed = ENDS[end]
    with connect(lone_loop) as other:
        answers = set()
        for _ in range(AGAIN):
            for _ in range(2):
                other.sendall(request())
                read_head_of(other, b"")
            with connect(lone_loop) as connection:
                connection.sendall(sent)
                if half_closed:
                    connection.shutdown(socket.SHUT_WR)
                lines = read_until_closed(connection).split(b"\r\n")
            answers.add(tuple(sorted(line for line in lines if not line.startswith(b"Date: "))))
    assert len(answers) == 1
    assert DATA[:100] in b"\r\n".join(answers.pop())


def test_a_client_that_does_not_read_gets_all_repeated_answers_later(lone_loop):
    """It sends requests until the server waits for it in the middle of an answer."""
    sent, total = request(""), f"ztserve_http_requests_total{{{ROUTE.replace('206', '200')}}}"
    readers = []
    for _ in range(6):
        reader, count = connect(lone_loop, receive_buffer=2048), 0
        before = metrics(lone_loop)
        waiting = before["ztserve_http_requests_in_progress"]
        while (now := metrics(lone_loop))["ztserve_http_requests_in_progress"] == waiting:
            if now.get(total, 0) == before.get(total, 0) + count:
                reader.sendall(sent)
                count += 1
        readers.append((reader, count))
    for reader, count in readers:
        with reader:
            for _ in range(count):
                status, _, body = read_head(reader)
                assert status == 200
                assert read_exactly(reader, len(DATA), body) == DATA
            # The connection is as good as before.
            reader.sendall(sent)
            assert read_exactly(reader, len(DATA), read_head(reader)[2]) == DATA


def test_a_client_that_goes_away_in_a_repeated_answer_is_forgotten(lone_loop):
    for _ in range(3):
        reader = connect(lone_loop, receive_buffer=2048)
        waiting = metrics(lone_loop)["ztserve_http_requests_in_progress"]
        while metrics(lone_loop)["ztserve_http_requests_in_progress"] == waiting:
            reader.sendall(request(""))
        reader.close()
        eventually(lambda: metrics(lone_loop)["ztserve_http_requests_in_progress"] == waiting)


def test_an_answer_of_one_address_is_not_given_at_the_other(tmp_path, start_server):
    """The bucket is called like a path of the first address, so that the same bytes find something at both."""
    (tmp_path / "m.bin").write_bytes(DATA)
    environment = {"ZTSERVE_THREADS": "1", "ZTSERVE_S3_LISTEN": "127.0.0.1:0", "ZTSERVE_S3_BUCKET": "files"}
    server = start_server(tmp_path, environment=environment)
    with connect(server) as first, connect(second_address(server)) as second:
        for _ in range(20):
            for connection, is_of_s3 in (first, False), (second, True):
                connection.sendall(b"GET /files/m.bin HTTP/1.1\r\nHost: h\r\n\r\n")
                status, fields, body = read_head(connection)
                assert (status, "x-amz-request-id" in fields) == (200, is_of_s3)
                assert read_exactly(connection, len(DATA), body) == DATA
