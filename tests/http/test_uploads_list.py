"""GET /v1/uploads, and the limits of one client: number of uploads, time, and rate."""

import json
import threading

import pytest

import tus
from uploads import SMALL, assert_absent, begin_put, files_of, put
from wire import ask, assert_problem, at_once, eventually, get, model_path, read_head, read_until_closed

LIMITS = {
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


def listed(server):
    answer = get(server, "/v1/uploads")
    assert answer.status == 200 and answer["Cache-Control"] == "no-store", answer
    return answer.json()["uploads"]


def test_a_body_in_progress_is_listed_with_the_bytes_received(server, name):
    assert listed(server) == []
    with begin_put(server, model_path(name), 1000) as connection:
        connection.sendall(b"x" * 10)
        (entry,) = eventually(lambda: [one for one in listed(server) if one["received"] == 10])
    assert (entry["kind"], entry["model"], entry["length"]) == ("file", name, 1000)
    assert len(entry["id"]) == 32 and entry["created"] <= entry["active"]
    eventually(lambda: listed(server) == [])


def test_one_more_than_a_client_may_send_is_429(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "2"})
    with begin_put(server, model_path(name + "1"), 1000), begin_put(server, model_path(name + "2"), 1000):
        eventually(lambda: len(listed(server)) == 2)
        answer = put(server, name, SMALL)
        assert_problem(answer, 429, "rate-limited")
        assert int(answer["Retry-After"]) > 0
    eventually(lambda: listed(server) == [])
    assert put(server, name, SMALL).status == 201


def test_a_body_that_stops_is_408_and_leaves_nothing(strict, strict_folder, name):
    with begin_put(strict, model_path(name), 1000) as connection:
        connection.sendall(b"x" * 10)
        status, fields, body = read_head(connection)
        body += read_until_closed(connection)
    assert status == 408 and len(body) == int(fields["content-length"])
    problem = json.loads(body)
    assert problem["code"] == "timeout" and problem["request_id"] == fields["x-request-id"]
    eventually(lambda: listed(strict) == [])
    assert_absent(strict, strict_folder, name)


def trickle(connection, piece):
    """What the server answers while a body comes in pieces with pauses."""
    connection.settimeout(0.2)
    for _ in range(900):
        try:
            connection.sendall(piece)
            return connection.recv(1 << 16)
        except TimeoutError:
            continue
    return b""


def test_a_body_that_trickles_is_408(strict, strict_folder, name):
    with begin_put(strict, model_path(name), 10000) as connection:
        assert trickle(connection, b"x" * 10).startswith(b"HTTP/1.1 408 ")
    assert_absent(strict, strict_folder, name)


def test_total_time_of_a_body_is_limited(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_BODY_TIMEOUT_S": "1"})
    with begin_put(server, model_path(name), 1 << 30) as connection:
        assert trickle(connection, b"x" * 10000).startswith(b"HTTP/1.1 408 ")
    eventually(lambda: listed(server) == [] and files_of(tmp_path) == [])


def test_uploads_that_a_client_removes_while_they_are_created(server):
    """What is listed is complete: another client may remove it at once, or ask for it."""
    over = threading.Event()

    def create():
        """An upload may be over before the request that creates it."""
        try:
            answers = [tus.post(server, f"removed-{i}", 100) for i in range(400)]
        finally:
            over.set()
        for answer in answers:
            assert answer.status != 409 or "was ended" in answer.json()["detail"], answer
        return {answer.status for answer in answers}

    def remove():
        statuses = set()
        while not over.is_set():
            for upload in listed(server):
                target = f"/v1/resumable/{upload['id']}"
                for method in ("HEAD", "DELETE"):
                    answer = ask(server, method, target, {"Tus-Resumable": "1.0.0"})
                    statuses.add(answer.status)
                    assert answer.status < 500, (method, answer)
        return statuses

    created, *removed = at_once(create, remove, remove)
    assert 201 in created and created <= {201, 409, 429}, created
    assert set.union(*removed) <= {200, 204, 404, 410, 423}, removed
    assert get(server, "/healthz").status == 200
