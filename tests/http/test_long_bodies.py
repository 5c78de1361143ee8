"""Bodies of more than a MiB, which the server reads differently from short ones: the same answers, and byte for byte the
same files. What follows on the connection is in test_kept_bodies.py."""

import concurrent.futures
import itertools
import random
import signal
import socket
import time

import pytest
import zstandard

from containers import dense, pattern, zt1
from uploads import OTHER, assert_absent, digest_field, put
from wire import assert_problem, connect, eventually, get, model_path, read_exactly, read_head, read_until_closed
from writers import begin, content, repr_digest

MIB = 1 << 20
DATA = pattern(5 * MIB + 77)
FILE = bytes(zt1({"w": dense(DATA)}))
# At the highest level, the compressor finds matches everywhere in this and takes about a second per MiB.
TANGLE = random.Random(1).randbytes(3 * MIB).translate(bytes(i & 1 for i in range(256)))
# More bodies than are read that way at a time, on all loops together.
CROWD = 80


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "200"})


@pytest.fixture(scope="module")
def impatient(tmp_path_factory, share_server):
    """Ends idle connections soon. No other test uses it: a client that a busy machine does not run for so long is cut."""
    return share_server(tmp_path_factory.mktemp("impatient"), "--writable", environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "3"})


def head_of(target, length, *fields):
    lines = [f"PUT {target} HTTP/1.1", "Host: x", f"Content-Length: {length}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answer_of(connection):
    status, fields, body = read_head(connection)
    return status, fields, read_exactly(connection, int(fields.get("content-length", 0)), body)


def test_file_is_stored_as_it_came(server, folder, name):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), len(FILE)) + FILE)
        status, fields, body = answer_of(connection)
        assert (status, body, "connection" in fields) == (201, b"", False)
        assert fields["repr-digest"] == digest_field("sha-256", FILE)
        assert fields["etag"] == get(server, model_path(name))["ETag"]
    assert (folder / f"{name}.zt").read_bytes() == FILE
    assert content(server, name, "w") == DATA


def test_replacement_has_no_length(server, name):
    assert put(server, name, OTHER).status == 201
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), len(FILE)) + FILE)
        status, fields, body = read_head(connection)
        assert (status, body) == (204, b"") and "content-length" not in fields


@pytest.mark.parametrize("sizes", [(1, 100, 3 * MIB + 1), (MIB, 524288), (700_001,)])
def test_pieces_of_any_size_make_the_same_file(server, folder, name, sizes):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), len(FILE)))
        at = 0
        for size in itertools.cycle(sizes):
            piece = FILE[at : at + size]
            if not piece:
                break
            connection.sendall(piece)
            at += len(piece)
            time.sleep(0.01)
        assert answer_of(connection)[0] == 201
    assert (folder / f"{name}.zt").read_bytes() == FILE


def test_a_body_that_waits_for_100_continue_is_accepted(server, folder, name):
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), len(FILE), "Expect: 100-continue"))
        assert read_exactly(connection, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(FILE)
        assert answer_of(connection)[0] == 201
    assert (folder / f"{name}.zt").read_bytes() == FILE


NEXT = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
# States of TCP: nothing is left of a connection that was reset, and the server has only closed its side.
CLOSED, CLOSE_WAIT = 7, 8


def state_of(connection):
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 4)[0]


@pytest.mark.parametrize("count", [1, 20_000])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_client_that_sends_on_behind_its_body_can_read_its_answer(server, name, count, is_late):
    """No reset destroys it, also if the next request comes when the server has closed, as the client has asked it to."""
    with connect(server) as connection:
        data = head_of(model_path(name), len(FILE), "Connection: close") + FILE
        connection.sendall(data if is_late else data + NEXT * count)
        if is_late:
            eventually(lambda: state_of(connection) == CLOSE_WAIT)
            connection.sendall(NEXT * count)
            # Time for a reset, if there is one; there is no event to wait for.
            time.sleep(0.2)
        assert state_of(connection) != CLOSED
        received = read_until_closed(connection)
        assert received.startswith(b"HTTP/1.1 201 ") and received.count(b"HTTP/1.1 ") == 1, received
        eventually(lambda: state_of(connection) == CLOSE_WAIT)


def test_a_short_body_that_stalls_is_answered_and_not_reset(impatient, name):
    with connect(impatient) as connection:
        connection.sendall(head_of(model_path(name), 100_000) + FILE[:100])
        eventually(lambda: state_of(connection) == CLOSE_WAIT)
        connection.sendall(b"more")
        time.sleep(0.2)
        assert state_of(connection) == CLOSE_WAIT
        assert read_until_closed(connection).startswith(b"HTTP/1.1 408 ")


def test_stated_digests_are_compared(server, folder, name):
    for algorithm in ("sha-256", "sha-512"):
        wrong = put(server, name, FILE, Content_Digest=digest_field(algorithm, FILE[:-1]))
        assert_problem(wrong, 422, "digest-mismatch")
        assert_absent(server, folder, name)
    both = f"{digest_field('sha-256', FILE)}, {digest_field('sha-512', FILE)}"
    assert put(server, name, FILE, Content_Digest=both).status == 201


def test_of_several_wrong_components_the_first_is_reported(server, folder, name):
    """Objects of a large file are hashed side by side."""
    datas = {f"w{i}": pattern(MIB, seed=i) for i in range(8)}
    file = bytearray(zt1({key: dense(data) for key, data in datas.items()}))
    good = bytes(file)
    for key in ("w6", "w3", "w5"):
        file[good.index(datas[key][:64]) + 100] ^= 1
    answer = put(server, name, bytes(file))
    assert_problem(answer, 422, "digest-mismatch")
    assert answer.json()["object"] == "w3"
    assert_absent(server, folder, name)
    assert put(server, name, good).status == 201
    assert get(server, model_path(name) + "/verification").json()["state"] == "verified"


@pytest.mark.parametrize("sent, reset", [(1, True), (20_000, False), (600_000, False), (3 * MIB, True), (len(FILE) - 1, False)])
def test_cut_body_leaves_nothing(server, folder, name, sent, reset):
    connection = connect(server)
    connection.sendall(head_of(model_path(name), len(FILE)) + FILE[:sent])
    if reset:
        connection.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER of no time
    connection.close()
    eventually(lambda: name not in get(server, "/v1/uploads").body.decode())
    assert_absent(server, folder, name)


def test_a_body_that_stops_while_the_server_is_behind_is_answered_408(impatient, name):
    """The server does not read while it compresses; only after that does the client's time run."""
    upload = begin(impatient, name)
    target = upload.component_path("w", dtype="u8", shape=len(TANGLE), encoding="zstd", level=19)
    with connect(impatient) as connection:
        connection.sendall(head_of(target, len(TANGLE)) + TANGLE[:1])
        time.sleep(0.2)
        connection.sendall(TANGLE[1 : 1 + 2 * MIB])
        assert read_head(connection)[0] == 408


def test_time_that_the_server_takes_is_not_the_client_s(start_server, tmp_path, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_BODY_TIMEOUT_S": "2"})
    upload = begin(server, name)
    answer = upload.put("w", TANGLE, encoding="zstd", level=19)
    assert answer.status == 201, answer


@pytest.mark.parametrize("version", ["1.2.0", "2"])
def test_components_arrive_whole(server, name, version):
    upload = begin(server, name, version)
    assert upload.put("raw", DATA)["Repr-Digest"] == repr_digest(DATA)
    assert upload.put("packed", DATA, encoding="zstd")["Repr-Digest"] == repr_digest(DATA)
    answer = upload.put("sent", zstandard.compress(DATA, 1), fields={"Content-Encoding": "zstd"}, shape=len(DATA))
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(DATA), answer
    assert upload.commit().status == 201
    for role in ("raw", "packed", "sent"):
        assert content(server, name, role) == DATA


def test_component_cut_off_leaves_the_earlier_one(server, name):
    upload = begin(server, name)
    assert upload.put("w", DATA[: 2 * MIB]).status == 201
    with connect(server) as connection:
        target = upload.component_path("w", dtype="u8", shape=len(DATA))
        connection.sendall(head_of(target, len(DATA)) + DATA[: 3 * MIB])
    time.sleep(0.2)
    assert upload.commit().status == 201
    assert content(server, name, "w") == DATA[: 2 * MIB]


def test_a_crowd_of_components_arrives_whole(server, name):
    upload = begin(server, name)
    contents = {f"w{i}": pattern(MIB + 200_000 + i, seed=i) for i in range(CROWD)}
    with concurrent.futures.ThreadPoolExecutor(CROWD) as pool:
        for answer in pool.map(upload.put, contents.keys(), contents.values()):
            assert answer.status == 201, answer
    assert upload.commit().status == 201
    for key, data in contents.items():
        assert content(server, name, key) == data


def test_server_stops_in_the_middle_of_a_body(start_server, tmp_path, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_DRAIN_S": "1"})
    with connect(server) as connection:
        connection.sendall(head_of(model_path(name), len(FILE)) + FILE[: 3 * MIB])
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert read_until_closed(connection) == b""
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".ztserve-")] == []
