"""The streaming writer when something changes: components sent again, cut, given up; commits that fail, or come twice."""

import concurrent.futures
import random
import time

import pytest

from containers import pattern
from uploads import begin_put, digest_field
from wire import assert_problem, component_path, eventually, get, read_head
from writers import assert_clean, assert_committed, begin, leftovers


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(params=["1.2.0", "2"])
def version(request):
    return request.param


# --- replacing, failing, abandoning ---


def test_replaced_and_failed_components_leave_no_byte(server, folder, name, version):
    upload = begin(server, name, version)
    data, secret = pattern(9000), b"SECRET" * 1000
    assert upload.put("w", secret).status == 201
    assert upload.put("w", data, shape="90,100").status == 201
    wrong = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("w", secret, fields=wrong), 422, "digest-mismatch")
    assert_problem(upload.put("w", secret, digest=f"sha256:{'0' * 64}"), 422, "digest-mismatch")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    upload.put("x", secret * 100)
    assert upload.put("x", b"short").status == 201
    whole = assert_committed(server, folder, upload, name, {"w": data, "x": b"short"})
    assert b"SECRET" not in whole


@pytest.mark.folder("the files of uploads in a root")
def test_the_space_of_a_failed_component_is_released(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"x" * 3_000_000)
    upload.put("w", b"small")
    wrong = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("v", b"x" * 3_000_000, fields=wrong), 422, "digest-mismatch")
    (data,) = (folder / path for path in leftovers(folder) if upload.id in path and path.endswith("data"))
    eventually(lambda: data.stat().st_blocks * 512 < 100_000)


@pytest.mark.parametrize("query", [{}, {"encoding": "zstd"}])
def test_connection_cut_in_a_body_leaves_the_earlier_one(server, folder, name, version, query):
    upload = begin(server, name, version)
    data = pattern(5000)
    upload.put("w", data)
    with begin_put(server, upload.component_path("w", dtype="u8", shape=600_000, **query), 600_000) as connection:
        connection.sendall(b"SECRET" * 50_000)
    whole = assert_committed(server, folder, upload, name, {"w": data})
    assert b"SECRET" not in whole


def test_commit_does_not_wait_for_a_body_that_stalls(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"there")
    with begin_put(server, upload.component_path("x", dtype="u8", shape=600_000), 600_000) as connection:
        connection.sendall(b"SECRET" * 50_000)
        whole = assert_committed(server, folder, upload, name, {"w": b"there"})
        assert b"SECRET" not in whole
        connection.sendall(b"SECRET" * 50_000)
        assert read_head(connection)[0] == 409
    assert assert_clean(folder, name) == whole


@pytest.mark.parametrize("attempt", range(8))
def test_bodies_at_the_moment_of_a_commit_are_in_it_or_conflict(server, name, attempt):
    moments = random.Random(attempt)
    upload = begin(server, name)
    bodies = {f"w{i}": moments.randbytes(5000) for i in range(8)}
    for one in bodies:
        upload.put(one, b"earlier")

    def send(one, moment):
        time.sleep(moment)
        return upload.put(one, bodies[one]) if one in bodies else upload.commit()

    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = {one: pool.submit(send, one, moments.random() / 100) for one in [*bodies, None]}
    assert sent.pop(None).result().status == 201
    for one, future in sent.items():
        answer = future.result()
        assert answer.status in (201, 409), answer
        held = get(server, component_path(name, one)).body
        assert held == (bodies[one] if answer.status == 201 else b"earlier")


# --- commit ---


def test_commits_at_once_publish_once(server, name):
    def has_conflict():
        """On a busy machine they may come one after another."""
        upload = begin(server, name)
        upload.put("w", b"x" * 20_000_000)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: upload.commit(), range(6)))
        statuses = {answer.status for answer in answers}
        assert 201 in statuses and statuses <= {201, 409}
        # Another one's outcome is to be asked for again.
        assert all(answer["Retry-After"] == "1" for answer in answers if answer.status == 409)
        assert upload.commit().status == 201
        return 409 in statuses

    eventually(has_conflict)


def test_content_that_breaks_a_rule_is_refused(server, folder, name):
    upload = begin(server, name)
    upload.put("flags", b"\0\1\2", dtype="bool", shape="3")
    assert_problem(upload.commit(), 422, "invalid-model")
    upload.put("flags", b"\0\1\1", dtype="bool", shape="3")
    assert_committed(server, folder, upload, name, {"flags": b"\0\1\1"})
