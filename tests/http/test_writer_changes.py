"""The streaming writer when something changes: components sent again, cut, given up; commits that fail, or come twice."""

import concurrent.futures
import random
import time

import pytest
import zstandard

from containers import dense, pattern, zt1
from uploads import digest_field, put
from wire import Connection, ask, assert_problem, component_path, connect, eventually, get, model_path, read_head
from writers import assert_clean, assert_committed, begin, content, create, leftovers


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(params=["1.2.0", "2"])
def version(request):
    return request.param


# --- replacing, failing, abandoning ---


def test_component_sent_again_replaces_the_first(server, folder, name, version):
    upload = begin(server, name, version)
    secret, data = b"SECRET" * 1000, pattern(9000)
    assert upload.put("w", secret).status == 201
    upload.put("v", b"other")
    assert upload.put("w", data, shape="90,100").status == 201
    whole = assert_committed(server, folder, upload, name, {"w": data, "v": b"other"})
    assert b"SECRET" not in whole


def test_replaced_last_component_leaves_no_byte(server, folder, name, version):
    upload = begin(server, name, version)
    upload.put("w", b"first")
    upload.put("x", b"SECRET" * 100_000)
    upload.put("x", b"short")
    whole = assert_committed(server, folder, upload, name, {"w": b"first", "x": b"short"})
    assert b"SECRET" not in whole


def test_place_of_a_replaced_component_is_used_again(server, folder, name):
    upload = begin(server, name)
    for seed in range(4):
        assert upload.put("w", pattern(100_000, seed=seed)).status == 201
    assert_committed(server, folder, upload, name, {"w": pattern(100_000, seed=3)})


@pytest.mark.folder("the files of uploads in a root")
def test_the_space_of_a_failed_component_is_released(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"x" * 3_000_000)
    upload.put("w", b"small")
    wrong = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("v", b"x" * 3_000_000, fields=wrong), 422, "digest-mismatch")
    (data,) = (folder / path for path in leftovers(folder) if upload.id in path and path.endswith("data"))
    eventually(lambda: data.stat().st_blocks * 512 < 100_000)


def test_failed_attempt_keeps_the_earlier_one(server, folder, name, version):
    upload = begin(server, name, version)
    data = pattern(5000)
    assert upload.put("w", data).status == 201
    wrong = b"SECRET" * 1000
    fields = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("w", wrong, fields=fields), 422, "digest-mismatch")
    assert_problem(upload.put("w", wrong, digest=f"sha256:{'0' * 64}"), 422, "digest-mismatch")
    whole = assert_committed(server, folder, upload, name, {"w": data})
    assert b"SECRET" not in whole


@pytest.mark.parametrize("query", [{}, {"encoding": "zstd"}])
def test_connection_cut_in_a_body_leaves_the_earlier_one(server, folder, name, version, query):
    upload = begin(server, name, version)
    data = pattern(5000)
    upload.put("w", data)
    with connect(server) as connection:
        target = upload.component_path("w", dtype="u8", shape=600_000, **query)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n".encode())
        connection.sendall(b"SECRET" * 50_000)
    whole = assert_committed(server, folder, upload, name, {"w": data})
    assert b"SECRET" not in whole


def test_commit_does_not_wait_for_a_body_that_stalls(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"there")
    with connect(server) as connection:
        target = upload.component_path("x", dtype="u8", shape=600_000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n".encode())
        connection.sendall(b"SECRET" * 50_000)
        whole = assert_committed(server, folder, upload, name, {"w": b"there"})
        assert b"SECRET" not in whole
        connection.sendall(b"SECRET" * 50_000)
        assert read_head(connection)[0] == 409
    assert assert_clean(folder, name) == whole


@pytest.mark.parametrize("attempt", range(20))
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


def test_chunked_body_of_another_size_is_refused(server, name):
    upload = begin(server, name)
    for size in (99, 101):
        with Connection(server) as connection:
            connection.http.request("PUT", upload.component_path("w", dtype="u8", shape=100), iter([b"x" * size]))
            assert_problem(connection.receive(), 422, "size-mismatch")
    assert upload.status()["objects"] == {}


@pytest.mark.parametrize("size", [999, 1001])
def test_compressed_body_of_another_decoded_size_is_refused(server, name, version, size):
    upload = begin(server, name, version)
    packed = zstandard.compress(b"x" * size)
    answer = upload.put("w", packed, fields={"Content-Encoding": "zstd"}, shape=1000)
    assert_problem(answer, 422, "size-mismatch")
    assert upload.status()["objects"] == {}


def test_body_that_is_not_zstd_is_refused(server, name, version):
    upload = begin(server, name, version)
    answer = upload.put("w", b"not zstd at all" * 10, fields={"Content-Encoding": "zstd"}, shape=1000)
    assert answer.status == 422, answer
    assert upload.status()["objects"] == {}


@pytest.mark.folder("the files of uploads in a root")
def test_deleted_upload_leaves_nothing(server, folder, name):
    before = leftovers(folder)
    upload = begin(server, name)
    upload.put("w", b"x" * 100_000)
    assert len(leftovers(folder)) > len(before)
    assert upload.delete().status == 204
    assert leftovers(folder) == before
    assert_problem(get(server, upload.path), 404, "upload-not-found")
    assert_problem(upload.put("w", b"x"), 404, "upload-not-found")
    assert_problem(upload.commit(), 404, "upload-not-found")
    assert_problem(upload.delete(), 404, "upload-not-found")


def test_body_that_continues_after_a_delete_is_refused(server, name):
    upload = begin(server, name)
    with connect(server) as connection:
        target = upload.component_path("x", dtype="u8", shape=1000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode() + b"x" * 500)
        eventually(lambda: get(server, upload.path).status == 200)
        assert upload.delete().status == 204
        connection.sendall(b"x" * 500)
        assert read_head(connection)[0] in (404, 409)


# --- commit ---


def test_commit_again_says_the_same(server, name):
    upload = begin(server, name)
    upload.put("w", b"x")
    first, again = upload.commit(), upload.commit()
    assert (first.status, again.status) == (201, 201)
    assert [first[key] for key in ("Location", "ETag", "Repr-Digest")] == [
        again[key] for key in ("Location", "ETag", "Repr-Digest")
    ]
    assert_problem(upload.put("w", b"y"), 409, "conflict")
    assert_problem(upload.declare("w", shape=[1]), 409, "conflict")
    assert upload.status()["state"] == "committed"


def test_commits_at_once_publish_once(server, name):
    upload = begin(server, name)
    upload.put("w", b"x" * 40_000_000)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: upload.commit(), range(6)))
    assert {answer.status for answer in answers} == {201, 409}
    # Another one's outcome is to be asked for again.
    assert all(answer["Retry-After"] == "1" for answer in answers if answer.status == 409)
    assert upload.commit().status == 201


def test_missing_component_is_named_and_can_still_be_sent(server, folder, name, version):
    upload = begin(server, name, version)
    layout = "sparse_coo" if version == "1.2.0" else "zt.sparse_coo/1"
    upload.declare("s", shape=[4], format=layout)
    upload.put("s", b"1234", "values", dtype="f32", shape=1)
    problem = assert_problem(upload.commit(), 422, "invalid-model")
    assert problem["object"] == "s" and "coords" in problem["detail"]
    assert upload.put("s", (3).to_bytes(8, "little"), "coords", dtype="u64", shape=1).status == 201
    assert_committed(server, folder, upload, name, {("s", "values"): b"1234"})


def test_declared_object_without_components_is_refused(server, name):
    upload = begin(server, name)
    upload.declare("w", shape=[4])
    assert assert_problem(upload.commit(), 422, "invalid-model")["object"] == "w"


def test_content_that_breaks_a_rule_is_refused(server, folder, name):
    upload = begin(server, name)
    upload.put("flags", b"\0\1\2", dtype="bool", shape="3")
    assert_problem(upload.commit(), 422, "invalid-model")
    upload.put("flags", b"\0\1\1", dtype="bool", shape="3")
    assert_committed(server, folder, upload, name, {"flags": b"\0\1\1"})


def test_preconditions_of_the_beginning_hold_at_commit(server, folder, name, version):
    upload = begin(server, name, version, If_None_Match="*")
    upload.put("w", b"mine")
    assert put(server, name, zt1({"w": dense(b"theirs")})).status == 201
    assert_problem(upload.commit(), 412, "precondition-failed")
    assert upload.status()["state"] == "open"
    assert content(server, name, "w") == b"theirs"
    assert ask(server, "DELETE", model_path(name)).status in (204, 405)


def test_commit_after_a_failed_one_with_more_components(server, folder, name, version):
    upload = begin(server, name, version, attributes={"SECRET": "y" * 100})
    upload.put("w", b"one")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    upload.put("x", b"two")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    whole = assert_committed(server, folder, upload, name, {"w": b"one", "x": b"two"})
    assert whole.count(b"SECRET") == 1


def test_failed_empty_commit_leaves_no_bytes(server, folder, name, version):
    upload = begin(server, name, version)
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    upload.put("w", b"one")
    assert_committed(server, folder, upload, name, {"w": b"one"})


def test_failed_commit_can_be_repeated_as_it_is(server, folder, name, version):
    upload = begin(server, name, version)
    upload.put("w", b"one")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    assert_committed(server, folder, upload, name, {"w": b"one"})


def test_preconditions_are_checked_when_it_begins(server, name):
    assert put(server, name, zt1({"w": dense(b"theirs")})).status == 201
    etag = get(server, model_path(name))["ETag"]
    assert_problem(create(server, name, If_None_Match="*"), 412, "precondition-failed")
    assert_problem(create(server, name, If_Match='"other"'), 412, "precondition-failed")
    upload = begin(server, name, If_Match=etag)
    upload.put("w", b"mine")
    assert upload.commit().status == 201
    assert content(server, name, "w") == b"mine"


def test_two_that_only_create_one_wins(server, name):
    uploads = [begin(server, name, If_None_Match="*") for _ in range(2)]
    for number, upload in enumerate(uploads):
        upload.put("w", bytes([number]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda upload: upload.commit(), uploads))
    assert statuses == [201, 412]
