"""PUT /v1/models/{model}: what becomes visible and when, what is refused and when, and what is left behind."""

import json
import time

import pytest

from containers import (
    dense,
    dense_encoded,
    digest_text,
    impossible_digests,
    pattern,
    zstd_dense,
    zstd_frame,
    zt01,
    zt1,
    zt10,
    zt2,
)
from uploads import OTHER, SMALL, assert_absent, content_of, digest_field, files_of, put
from wire import (
    Connection,
    ask,
    assert_problem,
    component_path,
    connect,
    eventually,
    get,
    manifest,
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


def chunks_of(file, extension=b""):
    pieces = [file[start : start + 100] for start in range(0, len(file), 100)]
    return [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]


def test_a_chunked_body_is_accepted(server, name):
    with Connection(server) as connection:
        connection.send("PUT", model_path(name), {"Transfer-Encoding": "chunked"})
        for chunk in chunks_of(SMALL):
            connection.http.send(chunk)
        connection.http.send(b"0\r\nTrailer: ignored\r\n\r\n")
        assert connection.receive().status == 201
        assert connection.ask("GET", component_path(name, "w")).body == pattern(1000)


def test_chunk_extensions_get_into_no_file(server, folder, name):
    """libmicrohttpd 1.0.1 takes the line feed behind one for data, and refuses the body at the end of that chunk."""
    with Connection(server) as connection:
        connection.send("PUT", model_path(name), {"Transfer-Encoding": "chunked"})
        connection.http.send(b"".join(chunks_of(SMALL, b";note=x")) + b"0\r\n\r\n")
        status = connection.receive().status
    if status == 201:
        assert (folder / f"{name}.zt").read_bytes() == SMALL
    else:
        assert status == 400
        assert_absent(server, folder, name)


def test_a_body_near_the_limit_is_stored_exactly(server, folder, name):
    file = zt1({"w": dense(pattern(LIMIT - 1000))})
    assert len(file) <= LIMIT
    assert put(server, name, file).status == 201
    assert (folder / f"{name}.zt").read_bytes() == file


INVALID = {
    "text": b"hello, world\n" * 100,
    "empty": b"",
    "cut": bytes(SMALL[:-30]),
    "longer": SMALL + b"x",
    "overflow": zt1({"w": dense(b"1234", shape=[1 << 63, 4])}),
    "v2-hash": OTHER.with_bit_flipped(len(OTHER) - 60),
}


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_model_is_refused_with_its_rule(server, folder, name, kind):
    problem = assert_problem(put(server, name, INVALID[kind]), 422, "invalid-model")
    assert problem["rule"]
    assert_absent(server, folder, name)


def test_invalid_body_leaves_the_earlier_version(server, folder, name):
    put(server, name, SMALL)
    assert put(server, name, INVALID["overflow"]).status == 422
    assert content_of(server, name) == pattern(1000)
    assert (folder / f"{name}.zt").read_bytes() == SMALL


@pytest.mark.parametrize("build, digest", [(zt1, "sha256"), (zt1, "crc32c"), (zt2, "xxh3"), (zt01, "crc32c")])
def test_wrong_digest_in_the_file_is_refused(server, folder, name, build, digest):
    file = build({"w": dense(pattern(1000), digest=digest)})
    assert_problem(put(server, name, file.flipped("w", at=500)), 422, "digest-mismatch")
    assert_absent(server, folder, name)


@pytest.mark.parametrize("build, digest", impossible_digests())
def test_digest_that_no_bytes_can_have_is_refused(server, folder, name, build, digest):
    problem = assert_problem(put(server, name, build({"w": dense(b"1", digest=digest)})), 422, "digest-mismatch")
    assert (problem["object"], problem["component"]) == ("w", "data")
    assert_absent(server, folder, name)


def bool_of_two(build, digest):
    return build({"ok": dense(b"1"), "w": dense(b"\x00\x02", "u8", [2], type="bool", digest=digest)})


def short_zstd(digest):
    """Decodes to one byte fewer than the manifest says."""
    data = pattern(1000)
    return zt1({"w": dense_encoded(data + b"x", zstd_frame(data), "zstd", digest=digest)})


BROKEN_CONTENT = {
    "bool-1": lambda: bool_of_two(zt1, "sha256"),
    "bool-2": lambda: bool_of_two(zt2, "xxh3"),
    "bool-undigested": lambda: bool_of_two(zt1, None),
    "zstd-length": lambda: short_zstd("sha256"),
    "zstd-length-undigested": lambda: short_zstd(None),
}


@pytest.mark.parametrize("kind", BROKEN_CONTENT)
def test_content_that_breaks_a_rule_is_refused(server, folder, name, kind):
    file = BROKEN_CONTENT[kind]()
    problem = assert_problem(put(server, name, file), 422, "invalid-model")
    assert problem["rule"]
    assert (problem["object"], problem["component"]) == ("w", "data")
    assert problem["offset"] >= file.offsets["w", "data"]
    assert_absent(server, folder, name)


def test_a_wrong_digest_is_reported_before_broken_content(server, name):
    objects = {"a": dense(b"\x02", type="bool"), "w": dense(b"1", digest="crc32c:0x00000000")}
    assert_problem(put(server, name, zt1(objects)), 422, "digest-mismatch")


def test_an_unknown_digest_in_the_file_is_accepted(server, name):
    assert put(server, name, zt1({"w": dense(b"1", digest="md5:00")})).status == 201


@pytest.mark.parametrize("field", ["Content-Digest", "Repr-Digest"])
@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
def test_digest_fields_are_checked(server, folder, name, field, algorithm):
    wrong = digest_field(algorithm, SMALL + b"x")
    assert_problem(put(server, name, SMALL, **{field: wrong}), 422, "digest-mismatch")
    assert_absent(server, folder, name)
    assert put(server, name, SMALL, **{field: digest_field(algorithm, SMALL)}).status == 201


def test_one_wrong_digest_of_two_is_enough(server, folder, name):
    both = f"{digest_field('sha-256', SMALL)}, {digest_field('sha-512', OTHER)}"
    assert_problem(put(server, name, SMALL, Content_Digest=both), 422, "digest-mismatch")
    right = f"{digest_field('sha-256', SMALL)}, {digest_field('sha-512', SMALL)}"
    assert put(server, name, SMALL, Content_Digest=right, Repr_Digest=right).status == 201


def test_unknown_digest_algorithm_is_ignored(server, name):
    assert put(server, name, SMALL, Content_Digest="md5=:AAAA:").status == 201


def announce(server, name, length, *fields):
    """Sends a PUT's head with Expect and reads the first answer; the body has not been sent."""
    connection = connect(server)
    lines = [
        f"PUT {model_path(name)} HTTP/1.1",
        "Host: x",
        f"Content-Length: {length}",
        "Expect: 100-continue",
        *fields,
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection, read_head(connection)


def problem_of(connection, answer):
    status, fields, begun = answer
    return status, json.loads(read_exactly(connection, int(fields["content-length"]), begun))


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
        pytest.param("refused", 10, ["If-Match: *"], 412, "precondition-failed", marks=NOT_KNOWN),
        ("taken", 10, ["If-None-Match: *"], 412, "precondition-failed"),
        ("refused", LIMIT + 1, [], 413, "too-large"),
        ("refused", 1 << 60, [], 413, "too-large"),
        ("refused", 10, ["Content-Encoding: gzip"], 415, "unsupported-media-type"),
        (".bad", LIMIT + 1, ["If-Match: *"], 400, "invalid-name"),
        pytest.param("refused", LIMIT + 1, ["If-Match: *"], 412, "precondition-failed", marks=NOT_KNOWN),
    ],
)
def test_refusals_come_before_the_body(server, folder, name, length, fields, status, code):
    put(server, "taken", SMALL)
    connection, answer = announce(server, name, length, *fields)
    got, problem = problem_of(connection, answer)
    assert (got, problem["code"]) == (status, code)
    connection.close()
    assert "refused.zt" not in files_of(folder)


def test_read_only_comes_before_everything_else(start_server, tmp_path):
    connection, answer = announce(start_server(tmp_path), ".bad", 1 << 60, "If-Match: *")
    status, problem = problem_of(connection, answer)
    assert (status, problem["code"]) == (403, "read-only")


def test_put_that_says_nothing_of_its_body_is_411(server, name):
    assert_problem(ask(server, "PUT", f"/v1/models/{name}"), 411, "length-required")


def test_other_expectations_are_417(server, name):
    assert put(server, name, SMALL, Expect="the-unexpected").status == 417


def test_chunked_body_past_the_limit_is_413_and_leaves_nothing(server, folder, name):
    with connect(server) as connection:
        connection.sendall(f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
        try:
            for _ in range(6):
                connection.sendall(chunk)
            connection.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            status, fields, begun = read_head(connection)
            assert status == 413, (status, begun)
    eventually(lambda: not [path for path in files_of(folder) if path.split("/")[-1].startswith(".")])
    assert_absent(server, folder, name)


def test_disk_reserve_refuses_with_507(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_RESERVE_BYTES": str(1 << 59)})
    assert_problem(put(server, "m", SMALL), 507, "insufficient-storage")
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("framing", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
def test_cut_connection_leaves_nothing(server, folder, name, framing):
    before = files_of(folder)
    with connect(server) as connection:
        connection.sendall(f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n".encode())
        connection.sendall(b"400\r\n" + SMALL[:1024])
        time.sleep(0.1)
        assert get(server, model_path(name)).status == 404
    eventually(lambda: files_of(folder) == before)
    assert get(server, model_path(name)).status == 404


def test_stalled_body_is_ended_and_leaves_nothing(start_server, tmp_path):
    environment = {"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "1"}
    server = start_server(tmp_path, "--writable", environment=environment)
    with connect(server) as connection:
        connection.sendall(
            f"PUT {model_path('m')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(SMALL)}\r\n\r\n".encode()
        )
        connection.sendall(SMALL[:-1])
        read_until_closed(connection)
    eventually(lambda: files_of(tmp_path) == [])
    assert get(server, model_path("m")).status == 404


def test_unfinished_upload_does_not_touch_the_version_served(server, folder, name):
    put(server, name, SMALL)
    with connect(server) as connection:
        connection.sendall(
            f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(OTHER)}\r\n\r\n".encode()
        )
        connection.sendall(OTHER[:-1])
        time.sleep(0.1)
        assert content_of(server, name) == pattern(1000)
        connection.sendall(OTHER[-1:])
        assert read_head(connection)[0] == 204
    assert content_of(server, name) == pattern(1000, seed=2)


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


def test_connection_is_good_for_the_next_request(server, name):
    with Connection(server) as connection:
        for index in range(5):
            assert connection.ask("PUT", model_path(f"{name}-{index}"), body=SMALL).status == 201
            assert connection.ask("GET", component_path(f"{name}-{index}", "w")).body == pattern(1000)


def test_body_and_next_request_in_one_write(server, name):
    put_head = f"PUT {model_path(name)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(SMALL)}\r\n\r\n"
    follower = f"GET {component_path(name, 'w')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = talk(server, put_head.encode() + SMALL + follower.encode())
    assert received.startswith(b"HTTP/1.1 201")
    assert received.endswith(b"\r\n\r\n" + pattern(1000))


def test_uploaded_model_is_verified_already(server, name):
    put(server, name, SMALL)
    assert get(server, component_path(name, "w"))["Repr-Digest"] == digest_field("sha-256", pattern(1000))
    stated = manifest(server, name)["objects"]["w"]["components"]["data"]["digest"]
    assert stated == digest_text("sha256", pattern(1000))


def test_verdicts_of_the_upload_are_kept(server, name):
    objects = {"w": dense(pattern(1000)), "x": zstd_dense(pattern(500), digest="crc32c")}
    put(server, name, zt1(objects))
    state = verification(server, name)
    assert state["state"] == "verified"
    assert state["components"] == {"total": 2, "verified": 2, "failed": 0, "unsupported": 0, "undigested": 0}
    assert state["bytes"]["hashed"] == state["bytes"]["total"] > 0


def test_verdicts_of_the_upload_survive_a_restart(start_server, tmp_path):
    first = start_server(tmp_path, "--writable")
    assert put(first, "m", SMALL).status == 201
    assert first.stop() == 0
    assert verification(start_server(tmp_path), "m")["state"] == "verified"


def test_uploaded_file_has_its_digest(server, name):
    for file in (SMALL, OTHER):
        put(server, name, file)
        answer = get(server, f"/files/{name}.zt")
        assert answer.body == file
        assert answer["Repr-Digest"] == digest_field("sha-256", file)


def test_uploads_survive_a_restart(start_server, tmp_path):
    first = start_server(tmp_path, "--writable")
    assert put(first, "m", SMALL).status == 201
    tag = get(first, model_path("m"))["ETag"]
    assert first.stop() == 0
    second = start_server(tmp_path, "--writable")
    assert get(second, model_path("m"))["ETag"] == tag
    assert put(second, "m", OTHER, If_Match=tag).status == 204


def test_killed_server_leaves_nothing_half(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    connection = connect(server)
    connection.sendall(f"PUT {model_path('m')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(SMALL)}\r\n\r\n".encode())
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
