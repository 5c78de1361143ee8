"""GET /v1/uploads, and the limits of one client: number of uploads, time, and rate."""

import json
import time

import pytest

from uploads import SMALL, assert_absent, files_of, put
from wire import assert_problem, connect, eventually, get, model_path, read_head, read_until_closed

LIMITS = {
    "ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "2",
    "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2",
    "ZTSERVE_LIMITS_RATE_GRACE_S": "1",
    "ZTSERVE_LIMITS_BODY_MIN_BYTES_PER_S": "1000",
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def strict_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("strict")


@pytest.fixture(scope="module")
def strict(strict_folder, share_server):
    return share_server(strict_folder, "--writable", environment=LIMITS)


@pytest.fixture(scope="module")
def patient(tmp_path_factory, share_server):
    """Where two bodies without a byte may take as long as they like."""
    limit = {"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": LIMITS["ZTSERVE_UPLOAD_OPEN_PER_CLIENT"]}
    return share_server(tmp_path_factory.mktemp("patient"), "--writable", environment=limit)


def listed(server):
    answer = get(server, "/v1/uploads")
    assert answer.status == 200 and answer["Cache-Control"] == "no-store", answer
    return answer.json()["uploads"]


def begin_put(server, name, length=1000):
    connection = connect(server)
    connection.sendall(f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
    return connection


def test_list_is_empty_without_uploads(server):
    assert listed(server) == []


def test_a_body_in_progress_is_listed_with_the_bytes_received(server, name):
    with begin_put(server, name) as connection:
        connection.sendall(b"x" * 10)
        (entry,) = eventually(lambda: [one for one in listed(server) if one["received"] == 10])
    assert (entry["kind"], entry["model"], entry["length"]) == ("file", name, 1000)
    assert len(entry["id"]) == 32 and entry["created"] <= entry["active"]
    eventually(lambda: listed(server) == [])


def test_finished_upload_is_not_listed(server, name):
    assert put(server, name, SMALL).status == 201
    assert listed(server) == []


def test_one_more_than_a_client_may_send_is_429(patient, name):
    with begin_put(patient, name + "1"), begin_put(patient, name + "2"):
        eventually(lambda: len(listed(patient)) == 2)
        answer = put(patient, name, SMALL)
        assert_problem(answer, 429, "rate-limited")
        assert int(answer["Retry-After"]) > 0
    eventually(lambda: listed(patient) == [])
    assert put(patient, name, SMALL).status == 201


def assert_told_timeout(connection):
    status, fields, body = read_head(connection)
    body += read_until_closed(connection)
    assert status == 408
    problem = json.loads(body)
    assert problem["code"] == "timeout" and problem["request_id"] == fields["x-request-id"]
    assert len(body) == int(fields["content-length"])


def test_a_body_that_stops_is_408_and_leaves_nothing(strict, strict_folder, name):
    with begin_put(strict, name) as connection:
        connection.sendall(b"x" * 10)
        assert_told_timeout(connection)
    eventually(lambda: listed(strict) == [])
    assert_absent(strict, strict_folder, name)


def test_a_body_that_trickles_is_408(strict, strict_folder, name):
    with begin_put(strict, name, 10000) as connection:
        begun = time.monotonic()
        connection.settimeout(0.2)
        received = b""
        while not received and time.monotonic() - begun < 20:
            try:
                connection.sendall(b"x" * 10)
                received = connection.recv(1 << 16)
            except TimeoutError:
                continue
        assert b"408 Request Timeout" in received.split(b"\r\n")[0]
    assert_absent(strict, strict_folder, name)


def test_total_time_of_a_body_is_limited(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_BODY_TIMEOUT_S": "1"})
    with begin_put(server, name, 1 << 30) as connection:
        connection.settimeout(0.2)
        received = b""
        deadline = time.monotonic() + 20
        while not received and time.monotonic() < deadline:
            try:
                connection.sendall(b"x" * 10000)
                received = connection.recv(1 << 16)
            except TimeoutError:
                continue
        assert received.startswith(b"HTTP/1.1 408 ")
    eventually(lambda: listed(server) == [])
    assert files_of(tmp_path) == []
