"""PUT /v1/models/{model}: what becomes visible and when, what is refused and when, and what is left behind."""

import json
import time

import pytest

from containers import dense, dense_encoded, pattern, zstd_dense, zstd_frame, zt01, zt1, zt10, zt2
from uploads import OTHER, SMALL, assert_absent, begin_put, content_of, digest_field, files_of, put
from wire import (
    assert_problem,
    component_path,
    connect,
    eventually,
    get,
    model_path,
    read_exactly,
    read_head,
    read_until_closed,
    segment,
    talk,
    verification,
)

LIMIT = 4 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


def test_new_model_is_201_and_served_at_once(server, folder, name):
    answer = put(server, name, SMALL)
    assert answer.status == 201, answer
    assert answer["Location"] == model_path(name)
    assert answer["Repr-Digest"] == digest_field("sha-256", SMALL)
    shown = get(server, model_path(name))
    assert answer["ETag"] == shown["ETag"] == shown.json()["source"]["etag"]
    assert content_of(server, name) == pattern(1000)
    assert (folder / f"{name}.zt").read_bytes() == SMALL


def test_replacement_is_204_and_served_at_once(server, folder, name):
    first = put(server, name, SMALL)
    second = put(server, name, OTHER)
    assert (first.status, second.status) == (201, 204)
    assert second.body == b""
    assert second["ETag"] != first["ETag"]
    assert second["ETag"] == get(server, model_path(name))["ETag"]
    assert second["Repr-Digest"] == digest_field("sha-256", OTHER)
    assert content_of(server, name) == pattern(1000, seed=2)
    assert [path for path in files_of(folder) if path.startswith(name)] == [f"{name}.zt"]


@pytest.mark.parametrize("make", [zt01, zt10, zt1, zt2])
def test_every_version_is_accepted(server, name, make):
    assert put(server, name, make({"w": dense(b"1234", digest=None)})).status == 201
    assert content_of(server, name) == b"1234"


INVALID = {
    "empty": b"",
    "cut": bytes(SMALL[:-30]),
    "another hash of the manifest": OTHER.with_bit_flipped(len(OTHER) - 60),
}


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_model_is_refused_with_its_rule(server, folder, name, kind):
    assert assert_problem(put(server, name, INVALID[kind]), 422, "invalid-model")["rule"]
    assert_absent(server, folder, name)
    assert put(server, name, SMALL).status == 201
    assert put(server, name, INVALID[kind]).status == 422
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("build, digest", [(zt1, "sha256"), (zt1, "crc32c"), (zt2, "xxh3"), (zt01, "crc32c")])
def test_wrong_digest_in_the_file_is_refused(server, folder, name, build, digest):
    file = build({"w": dense(pattern(1000), digest=digest)})
    assert_problem(put(server, name, file.flipped("w", at=500)), 422, "digest-mismatch")
    assert_absent(server, folder, name)


@pytest.mark.parametrize("build, digest", [(zt01, "crc32c:xyz"), (zt1, "sha256:00"), (zt2, "xxh3:00")])
def test_a_digest_that_no_bytes_can_have_is_refused(server, folder, name, build, digest):
    problem = assert_problem(put(server, name, build({"w": dense(b"1", digest=digest)})), 422, "digest-mismatch")
    assert (problem["object"], problem["component"]) == ("w", "data")
    assert_absent(server, folder, name)


TWO_BOOLS = {"w": dense(b"\x00\x02", "u8", [2], type="bool", digest=None)}
BROKEN_CONTENT = {
    "a boolean of 2": zt1(TWO_BOOLS),
    "a boolean of 2 in 2.0": zt2(TWO_BOOLS),
    "a stream that decodes to less": zt1({"w": dense_encoded(b"1234x", zstd_frame(b"1234"), "zstd", digest="sha256")}),
}


@pytest.mark.parametrize("kind", BROKEN_CONTENT)
def test_content_that_breaks_a_rule_is_refused(server, folder, name, kind):
    file = BROKEN_CONTENT[kind]
    problem = assert_problem(put(server, name, file), 422, "invalid-model")
    assert (problem["object"], problem["component"]) == ("w", "data") and problem["rule"]
    assert problem["offset"] >= file.offsets["w", "data"]
    assert_absent(server, folder, name)


def test_a_wrong_digest_is_reported_before_broken_content(server, name):
    objects = {"a": dense(b"\x02", type="bool"), "w": dense(b"1", digest="crc32c:0x00000000")}
    assert_problem(put(server, name, zt1(objects)), 422, "digest-mismatch")


@pytest.mark.parametrize("field", ["Content-Digest", "Repr-Digest"])
@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
def test_digest_fields_are_checked(server, folder, name, field, algorithm):
    wrong = digest_field(algorithm, SMALL + b"x")
    assert_problem(put(server, name, SMALL, **{field: wrong}), 422, "digest-mismatch")
    assert_absent(server, folder, name)
    assert put(server, name, SMALL, **{field: digest_field(algorithm, SMALL)}).status == 201


def announce(server, name, length, *fields):
    """Sends a PUT's head with Expect and reads the first answer; the body has not been sent."""
    connection = begin_put(server, model_path(name), length, "Expect: 100-continue", *fields)
    return connection, read_head(connection)


# Over a bucket, a name that no list had is looked up behind the body.
NOT_KNOWN = pytest.mark.folder("names that are known to be absent")


def test_expect_is_answered_with_100_and_the_body_accepted(server, name):
    connection, (status, _, _) = announce(server, name, len(SMALL), "Connection: close")
    assert status == 100
    connection.sendall(SMALL)
    assert read_head(connection)[0] == 201
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize(
    "name, length, fields, status, code",
    [
        (".bad", 10, [], 400, "invalid-name"),
        ("refused", 10, ["Content-Range: bytes 0-9/20"], 400, "invalid-request"),
        ("refused", 10, ["If-None-Match: other"], 400, "invalid-request"),
        ("refused", 10, ["Repr-Digest: sha-256=x"], 400, "invalid-request"),
        ("taken", 10, ["If-None-Match: *"], 412, "precondition-failed"),
        ("refused", 1 << 60, [], 413, "too-large"),
        ("refused", 10, ["Content-Encoding: gzip"], 415, "unsupported-media-type"),
        (".bad", LIMIT + 1, ["If-Match: *"], 400, "invalid-name"),
        pytest.param("refused", LIMIT + 1, ["If-Match: *"], 412, "precondition-failed", marks=NOT_KNOWN),
    ],
)
def test_refusals_come_before_the_body(server, folder, name, length, fields, status, code):
    put(server, "taken", SMALL)
    connection, (got, answered, begun) = announce(server, name, length, *fields)
    problem = json.loads(read_exactly(connection, int(answered["content-length"]), begun))
    assert (got, problem["code"]) == (status, code)
    connection.close()
    assert "refused.zt" not in files_of(folder)


def test_disk_reserve_refuses_with_507(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_RESERVE_BYTES": str(1 << 59)})
    assert_problem(put(server, "m", SMALL), 507, "insufficient-storage")
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("length", [100_000, None])
def test_cut_connection_leaves_nothing(server, folder, name, length):
    before = files_of(folder)
    with begin_put(server, model_path(name), length) as connection:
        connection.sendall(b"400\r\n" + SMALL[:1024])
        time.sleep(0.1)
        assert get(server, model_path(name)).status == 404
    eventually(lambda: files_of(folder) == before)
    assert get(server, model_path(name)).status == 404


def test_replacement_under_a_download_never_shows(server, name):
    data = pattern(LIMIT - 10_000, seed=5)
    put(server, name, zt1({"w": dense(data)}))
    with connect(server, receive_buffer=8192) as connection:
        connection.sendall(f"GET {component_path(name, 'w')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, fields, begun = read_head(connection)
        assert put(server, name, SMALL).status == 204
        assert content_of(server, name) == pattern(1000)
        assert status == 200
        assert read_exactly(connection, int(fields["content-length"]), begun) == data


def test_body_and_next_request_in_one_write(server, name):
    put_head = f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(SMALL)}\r\n\r\n"
    follower = f"GET {component_path(name, 'w')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = talk(server, put_head.encode() + SMALL + follower.encode())
    assert received.startswith(b"HTTP/1.1 201")
    assert received.endswith(b"\r\n\r\n" + pattern(1000))


def test_verdicts_of_the_upload_are_kept(server, name):
    put(server, name, zt1({"w": dense(pattern(1000)), "x": zstd_dense(pattern(500), digest="crc32c")}))
    assert get(server, component_path(name, "w"))["Repr-Digest"] == digest_field("sha-256", pattern(1000))
    state = verification(server, name)
    assert state["state"] == "verified"
    assert state["components"] == {"total": 2, "verified": 2, "failed": 0, "unsupported": 0, "undigested": 0}
    assert state["bytes"]["hashed"] == state["bytes"]["total"] > 0


def test_uploaded_file_has_its_digest(server, name):
    for file in (SMALL, OTHER):
        put(server, name, file)
        answer = get(server, f"/files/{name}.zt")
        assert answer.body == file
        assert answer["Repr-Digest"] == digest_field("sha-256", file)


def test_upload_tag_and_verdicts_survive_a_restart(start_server, tmp_path):
    first = start_server(tmp_path, "--writable")
    assert put(first, "m", SMALL).status == 201
    tag = get(first, model_path("m"))["ETag"]
    assert first.stop() == 0
    second = start_server(tmp_path, "--writable")
    assert get(second, model_path("m"))["ETag"] == tag
    assert verification(second, "m")["state"] == "verified"
    assert put(second, "m", OTHER, If_Match=tag).status == 204


def test_killed_server_leaves_nothing_half(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    connection = begin_put(server, model_path("m"), len(SMALL))
    connection.sendall(SMALL[:-1])
    time.sleep(0.1)
    server.kill()
    read_until_closed(connection)
    connection.close()
    second = start_server(tmp_path, "--writable")
    assert get(second, "/v1/models").json()["models"] == []
    assert files_of(tmp_path) == []


def test_nothing_is_left_in_the_root_but_models(server, folder):
    left = [path for path in files_of(folder) if not path.endswith(".zt") or segment(path).startswith(".")]
    assert left == []
