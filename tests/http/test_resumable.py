"""/v1/resumable: tus 1.0.0. What is told as the offset is there after SIGKILL, and nothing is shown before it is whole."""

import base64
import hashlib
import time

import pytest
from tusclient.client import TusClient

from containers import dense, pattern, zt1
from uploads import OTHER, SMALL, content_of, digest_field, files_of, put
from wire import (
    ask,
    assert_problem,
    connect,
    eventually,
    get,
    model_path,
    read_head,
)

TUS = {"Tus-Resumable": "1.0.0"}
PIECE = {**TUS, "Content-Type": "application/offset+octet-stream"}
LARGE = zt1({"w": dense(pattern(6 << 20))})
LIMIT = 64 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


def metadata(name):
    return "model " + base64.b64encode(name.encode()).decode()


def post(server, name, length, body=b"", **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    fields = {**TUS, "Upload-Metadata": metadata(name), "Upload-Length": str(length), **fields}
    return ask(server, "POST", "/v1/resumable", {key: value for key, value in fields.items() if value}, body)


def create(server, name, length, **fields):
    answer = post(server, name, length, **fields)
    assert answer.status == 201, answer
    return answer["Location"]


def head(server, upload):
    return ask(server, "HEAD", upload, TUS)


def offset_of(server, upload):
    answer = head(server, upload)
    assert answer.status == 200, answer
    return int(answer["Upload-Offset"])


def patch(server, upload, offset, body, **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    return ask(server, "PATCH", upload, {**PIECE, "Upload-Offset": str(offset), **fields}, body)


def begin_patch(server, upload, offset, length):
    connection = connect(server)
    connection.sendall(
        f"PATCH {upload} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n"
        f"Content-Type: application/offset+octet-stream\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    return connection


def uploads_of(server, name):
    return [one for one in get(server, "/v1/uploads").json()["uploads"] if one["model"] == name]


def kept_in(folder, upload):
    return [path for path in files_of(folder) if upload.split("/")[-1] in path]


def checksum(algorithm, data):
    return f"{algorithm} {base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"


# --- protocol ---


@pytest.mark.parametrize("path", ["/v1/resumable", "/v1/resumable/0123"])
def test_options_tell_what_is_offered(server, path):
    answer = ask(server, "OPTIONS", path)
    assert answer.status == 204
    assert answer["Tus-Resumable"] == "1.0.0" and answer["Tus-Version"] == "1.0.0"
    extensions = answer["Tus-Extension"].split(",")
    assert set(extensions) == {"creation", "creation-with-upload", "checksum", "expiration", "termination"}
    assert answer["Tus-Max-Size"] == str(LIMIT)
    assert answer["Tus-Checksum-Algorithm"] == "sha1,sha256"
    assert ("PATCH" in answer["Allow"]) == (path != "/v1/resumable")


@pytest.mark.parametrize("version", [None, "0.2.2", "1.0.1"])
@pytest.mark.parametrize("method", ["POST", "HEAD", "PATCH", "DELETE"])
def test_another_version_is_412(server, name, method, version):
    upload = create(server, name, 100)
    fields = {**PIECE, "Upload-Offset": "0", "Upload-Length": "1", "Upload-Metadata": metadata(name)}
    del fields["Tus-Resumable"]
    if version:
        fields["Tus-Resumable"] = version
    answer = ask(server, method, "/v1/resumable" if method == "POST" else upload, fields, None)
    assert answer.status == 412, answer
    assert answer["Tus-Version"] == "1.0.0" and answer["Tus-Resumable"] == "1.0.0"
    assert offset_of(server, upload) == 0


def test_every_answer_carries_the_version(server):
    for answer in (
        head(server, "/v1/resumable/0123"),
        ask(server, "PUT", "/v1/resumable", TUS, b""),
        ask(server, "BREW", "/v1/resumable", TUS, b""),
        ask(server, "BREW", "/v1/resumable/0123", TUS, b""),
        post(server, "..", 1),
    ):
        assert answer.status >= 400 and answer["Tus-Resumable"] == "1.0.0", answer


# --- creation ---


def test_created_upload_tells_offset_length_and_metadata(server, name):
    fields = {"Upload-Metadata": f"filename d29ybGQ=,{metadata(name)},empty"}
    answer = ask(server, "POST", "/v1/resumable", {**TUS, **fields, "Upload-Length": "1256"}, b"")
    assert answer.status == 201 and answer.body == b"", answer
    shown = head(server, answer["Location"])
    assert shown.status == 200
    assert shown["Upload-Offset"] == "0" and shown["Upload-Length"] == "1256"
    assert shown["Upload-Metadata"] == fields["Upload-Metadata"]
    assert shown["Cache-Control"] == "no-store"
    assert shown["Upload-Expires"].endswith("GMT") and answer["Upload-Expires"].endswith("GMT")
    assert get(server, model_path(name)).status == 404
    (entry,) = uploads_of(server, name)
    assert entry["kind"] == "resumable" and entry["id"] == answer["Location"].split("/")[-1] and "expires" in entry


BAD_CREATIONS = {
    "no length": {"Upload_Length": None},
    "deferred length": {"Upload_Length": None, "Upload_Defer_Length": "1"},
    "length both given and deferred": {"Upload_Defer_Length": "1"},
    "part of another upload": {"Upload_Concat": "partial"},
    "negative length": {"Upload_Length": "-1"},
    "length of letters": {"Upload_Length": "ten"},
    "length past 63 bits": {"Upload_Length": "9223372036854775808"},
    "no metadata": {"Upload_Metadata": None},
    "no model": {"Upload_Metadata": "filename bQ=="},
    "model twice": {"Upload_Metadata": "model bQ==,model bQ=="},
    "not base64": {"Upload_Metadata": "model b!=="},
    "unpadded base64": {"Upload_Metadata": "model bQ"},
    "other value not base64": {"Upload_Metadata": "model bQ==,x y"},
    "NUL in the name": {"Upload_Metadata": "model bQBt"},
    "malformed digest": {"Repr_Digest": "sha-256=xyz"},
}


@pytest.mark.parametrize("fields", BAD_CREATIONS.values(), ids=BAD_CREATIONS)
def test_bad_creation_is_400(server, name, fields):
    assert_problem(post(server, name, 10, **fields), 400, "invalid-request")


@pytest.mark.parametrize("bad", ["..", "a b", "/a", "a//b", "a" * 256, "ä", ""])
def test_name_that_is_none_is_400(server, bad):
    code = "invalid-name" if len(bad) < 256 else "invalid-request"
    assert_problem(post(server, bad, 10), 400, code)


def test_too_large_is_413(server, name):
    assert_problem(post(server, name, LIMIT + 1), 413, "too-large")


def test_more_than_the_disk_holds_is_507(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(1 << 60)})
    assert_problem(post(server, name, 1 << 59), 507, "insufficient-storage")
    assert files_of(tmp_path) == []
    assert list((tmp_path / ".ztserve-uploads").iterdir()) == []


def test_read_only_server_refuses_writes_and_knows_no_upload(tmp_path, start_server, name):
    server = start_server(tmp_path)
    assert_problem(post(server, name, 10), 403, "read-only")
    upload = "/v1/resumable/" + "0" * 32
    assert_problem(patch(server, upload, 0, b"x"), 403, "read-only")
    assert_problem(ask(server, "DELETE", upload, TUS), 403, "read-only")
    assert head(server, upload).status == 404


def test_first_bytes_may_come_with_the_creation(server, name):
    answer = post(server, name, len(SMALL), SMALL[:200], Content_Type=PIECE["Content-Type"])
    assert answer.status == 201 and answer["Upload-Offset"] == "200", answer
    assert offset_of(server, answer["Location"]) == 200
    assert patch(server, answer["Location"], 200, SMALL[200:]).status == 204
    assert content_of(server, name) == pattern(1000)


def test_whole_file_may_come_with_the_creation(server, name):
    answer = post(server, name, len(SMALL), SMALL, Content_Type=PIECE["Content-Type"])
    assert answer.status == 201 and answer["Upload-Offset"] == str(len(SMALL)), answer
    assert answer["ETag"] == get(server, model_path(name))["ETag"]
    assert offset_of(server, answer["Location"]) == len(SMALL)


def test_creation_with_a_body_of_another_type_is_415(server, name):
    assert_problem(post(server, name, len(SMALL), SMALL), 415, "unsupported-media-type")
    assert uploads_of(server, name) == []


def test_creation_that_is_cut_leaves_nothing(server, folder, name):
    with connect(server) as connection:
        connection.sendall(
            f"POST /v1/resumable HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 1000\r\n"
            f"Upload-Metadata: {metadata(name)}\r\nContent-Type: application/offset+octet-stream\r\n"
            f"Content-Length: 1000\r\n\r\n".encode()
            + b"x" * 100
        )
        (entry,) = eventually(lambda: [one for one in uploads_of(server, name) if one["received"] == 100])
    eventually(lambda: uploads_of(server, name) == [])
    eventually(lambda: kept_in(folder, entry["id"]) == [])


# --- pieces ---


def test_pieces_make_a_model(server, folder, name):
    upload = create(server, name, len(SMALL))
    for start in range(0, len(SMALL), 500):
        assert get(server, model_path(name)).status == 404
        answer = patch(server, upload, start, SMALL[start : start + 500])
        assert answer.status == 204 and answer["Upload-Offset"] == str(min(start + 500, len(SMALL))), answer
    shown = get(server, model_path(name))
    assert answer["ETag"] == shown["ETag"] and answer["Location"] == model_path(name)
    assert answer["Repr-Digest"] == digest_field("sha-256", SMALL)
    assert (folder / f"{name}.zt").read_bytes() == SMALL
    assert not any(path.endswith("/data") for path in kept_in(folder, upload)) and uploads_of(server, name) == []
    # Its last answer may have been lost.
    shown = head(server, upload)
    assert shown["Upload-Offset"] == str(len(SMALL)) and shown["Location"] == model_path(name)


def test_chunked_piece_is_taken(server, name):
    upload = create(server, name, len(SMALL))
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMALL), SMALL)
    fields = {**PIECE, "Upload-Offset": "0", "Transfer-Encoding": "chunked"}
    assert ask(server, "PATCH", upload, fields, body).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("offset", [0, 99, 101, 5000])
def test_another_offset_is_409(server, name, offset):
    upload = create(server, name, 1000)
    assert patch(server, upload, 0, b"x" * 100).status == 204
    assert_problem(patch(server, upload, offset, b"y"), 409, "conflict")
    assert offset_of(server, upload) == 100


@pytest.mark.parametrize("offset", ["", "-1", "x", "0x0"])
def test_malformed_offset_is_400(server, name, offset):
    upload = create(server, name, 1000)
    assert_problem(patch(server, upload, offset, b"y"), 400, "invalid-request")


def test_piece_of_another_type_is_415(server, name):
    upload = create(server, name, 1000)
    answer = patch(server, upload, 0, b"y", Content_Type="application/octet-stream")
    assert_problem(answer, 415, "unsupported-media-type")
    assert_problem(patch(server, upload, 0, b"y", Content_Encoding="gzip"), 415, "unsupported-media-type")


def test_piece_past_the_end_is_413(server, name):
    upload = create(server, name, 1000)
    assert_problem(patch(server, upload, 0, b"y" * 1001), 413, "too-large")
    body = b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n"
    fields = {**PIECE, "Upload-Offset": "0", "Transfer-Encoding": "chunked"}
    assert_problem(ask(server, "PATCH", upload, fields, body), 413, "too-large")


def test_unknown_upload_is_404(server):
    for upload in ("0" * 32, "x", "..%2F..", "0" * 31):
        path = f"/v1/resumable/{upload}"
        assert head(server, path).status == 404
        assert_problem(patch(server, path, 0, b"x"), 404, "upload-not-found")
        assert_problem(ask(server, "DELETE", path, TUS), 404, "upload-not-found")


def test_two_pieces_at_once_are_423(server, name):
    upload = create(server, name, 1000)
    with begin_patch(server, upload, 0, 500) as connection:
        connection.sendall(b"x" * 100)
        eventually(lambda: uploads_of(server, name)[0]["received"] == 100)
        assert_problem(patch(server, upload, 100, b"y"), 423, "conflict")
        connection.sendall(b"x" * 400)
        assert read_head(connection)[0] == 204
    assert offset_of(server, upload) == 500


def test_delete_ends_an_upload_whose_piece_has_gone_silent(server, folder, name):
    upload = create(server, name, 1000)
    with begin_patch(server, upload, 0, 500) as connection:
        connection.sendall(b"x" * 100)
        eventually(lambda: uploads_of(server, name)[0]["received"] == 100)
        assert ask(server, "DELETE", upload, TUS).status == 204
        assert head(server, upload).status == 404
        assert kept_in(folder, upload) == [] and uploads_of(server, name) == []
        connection.sendall(b"x" * 400)
        assert read_head(connection)[0] == 409
    assert kept_in(folder, upload) == [] and uploads_of(server, name) == []


@pytest.mark.parametrize("with_checksum", [False, True])
def test_silent_piece_gives_way_to_the_next(server, name, with_checksum):
    upload = create(server, name, len(SMALL))
    stated = f"Upload-Checksum: {checksum('sha1', b'x' * 500)}\r\n" if with_checksum else ""
    with connect(server) as connection:
        connection.sendall(
            f"PATCH {upload} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n{stated}"
            f"Content-Type: application/offset+octet-stream\r\nContent-Length: 500\r\n\r\n".encode() + SMALL[:100]
        )
        time.sleep(0.5)
        at = offset_of(server, upload)
        assert at == (0 if with_checksum else 100)
        assert patch(server, upload, at, SMALL[at:]).status == 423
        eventually(lambda: patch(server, upload, at, SMALL[at : at + 200]).status == 204, 15)
        # What the silent one sends now is not written over what came meanwhile.
        connection.sendall(b"x" * 400)
        assert read_head(connection)[0] == 409
    assert offset_of(server, upload) == at + 200
    assert patch(server, upload, at + 200, SMALL[at + 200 :]).status == 204
    assert content_of(server, name) == pattern(1000)


def test_what_came_of_a_cut_piece_stays(server, name):
    upload = create(server, name, len(SMALL))
    with begin_patch(server, upload, 0, len(SMALL)) as connection:
        connection.sendall(SMALL[:300])
        eventually(lambda: uploads_of(server, name)[0]["received"] == 300)
    eventually(lambda: patch(server, upload, 300, b"").status == 204)
    assert offset_of(server, upload) == 300
    assert patch(server, upload, 300, SMALL[300:]).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_method_override(server, folder, name, method):
    upload = create(server, name, len(SMALL))
    fields = {**PIECE, "Upload-Offset": "0", "X-HTTP-Method-Override": method}
    assert ask(server, "POST", upload, fields, SMALL).status == 204
    assert (content_of(server, name) is not None) == (method == "PATCH")
    assert uploads_of(server, name) == []


def test_override_is_not_for_creation(server, name):
    answer = post(server, name, 10, X_HTTP_Method_Override="PATCH")
    assert_problem(answer, 405, "method-not-allowed")
    assert answer["Allow"] == "POST, OPTIONS" and uploads_of(server, name) == []


def test_post_to_an_upload_without_override_is_405(server, name):
    upload = create(server, name, 1000)
    assert_problem(ask(server, "POST", upload, TUS, b""), 405, "method-not-allowed")
    assert_problem(ask(server, "POST", "/v1/models", {"X-HTTP-Method-Override": "DELETE"}, b""), 405, "method-not-allowed")


# --- checksums ---


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_right_checksum_is_taken_and_a_wrong_piece_discarded(server, name, algorithm):
    upload = create(server, name, len(SMALL))
    half = len(SMALL) // 2
    wrong = patch(server, upload, 0, b"x" * half, Upload_Checksum=checksum(algorithm, SMALL[:half]))
    assert_problem(wrong, 460, "checksum-mismatch")
    assert offset_of(server, upload) == 0
    assert patch(server, upload, 0, SMALL[:half], Upload_Checksum=checksum(algorithm, SMALL[:half])).status == 204
    assert patch(server, upload, half, SMALL[half:], Upload_Checksum=checksum(algorithm, SMALL[half:])).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("field", ["md5 1B2M2Y8AsgTpgAmY7PhCfg==", "sha1", "sha1 x", "sha1 bQ==", "", "crc32 AAAAAA=="])
def test_checksum_that_is_none_is_400(server, name, field):
    upload = create(server, name, 1000)
    if field:
        assert_problem(patch(server, upload, 0, b"x", Upload_Checksum=field), 400, "invalid-request")
    assert offset_of(server, upload) == 0


@pytest.mark.parametrize("field", ["Content_Digest", "Repr_Digest"])
def test_digest_fields_of_a_piece_are_checked(server, name, field):
    upload = create(server, name, len(SMALL))
    answer = patch(server, upload, 0, b"x" * 100, **{field: digest_field("sha-256", SMALL[:100])})
    assert_problem(answer, 422, "digest-mismatch")
    assert_problem(patch(server, upload, 0, b"x", **{field: "sha-256=x"}), 400, "invalid-request")
    assert offset_of(server, upload) == 0
    assert patch(server, upload, 0, SMALL, **{field: digest_field("sha-512", SMALL)}).status == 204


def test_cut_piece_with_a_checksum_is_discarded(server, name):
    upload = create(server, name, 1000)
    with connect(server) as connection:
        connection.sendall(
            f"PATCH {upload} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
            f"Content-Type: application/offset+octet-stream\r\nContent-Length: 500\r\n"
            f"Upload-Checksum: {checksum('sha1', b'x' * 500)}\r\n\r\n".encode()
            + b"x" * 100
        )
        time.sleep(0.2)
    eventually(lambda: patch(server, upload, 0, b"").status == 204)
    assert offset_of(server, upload) == 0


# --- the end ---


def test_file_that_is_no_model_is_422_and_gone(server, folder, name):
    upload = create(server, name, 1000)
    problem = assert_problem(patch(server, upload, 0, b"x" * 1000), 422, "invalid-model")
    assert problem["detail"]
    assert head(server, upload).status == 404
    assert kept_in(folder, upload) == [] and uploads_of(server, name) == []
    assert get(server, model_path(name)).status == 404


def test_wrong_digest_in_the_file_is_422_and_gone(server, name):
    wrong = zt1({"w": dense(b"1234", digest="sha256:" + "0" * 64)})
    upload = create(server, name, len(wrong))
    assert_problem(patch(server, upload, 0, wrong), 422, "digest-mismatch")
    assert head(server, upload).status == 404


@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
def test_digest_of_the_whole_stated_at_creation_is_checked(server, name, algorithm):
    upload = create(server, name, len(SMALL), Repr_Digest=digest_field(algorithm, OTHER))
    assert_problem(patch(server, upload, 0, SMALL), 422, "digest-mismatch")
    upload = create(server, name, len(SMALL), Repr_Digest=digest_field(algorithm, SMALL))
    assert patch(server, upload, 0, SMALL).status == 204


def test_empty_file_is_422_at_once(server, name):
    assert_problem(post(server, name, 0), 422, "invalid-model")
    eventually(lambda: uploads_of(server, name) == [])


def test_preconditions_of_the_creation_hold_at_the_end(server, name):
    upload = create(server, name, len(SMALL), If_None_Match="*")
    assert patch(server, upload, 0, SMALL[:100]).status == 204
    etag = put(server, name, OTHER)["ETag"]
    assert_problem(patch(server, upload, 100, SMALL[100:]), 412, "precondition-failed")
    assert content_of(server, name) == pattern(1000, seed=2)
    assert_problem(post(server, name, 10, If_None_Match="*"), 412, "precondition-failed")
    upload = create(server, name, len(SMALL), If_Match=etag)
    assert patch(server, upload, 0, SMALL).status == 204
    assert content_of(server, name) == pattern(1000)


def test_publication_that_fails_may_be_tried_again(server, folder, name):
    (folder / f"{name}.zt").mkdir()
    upload = create(server, name, len(SMALL))
    assert_problem(patch(server, upload, 0, SMALL), 409, "conflict")
    (folder / f"{name}.zt").rmdir()
    assert head(server, upload)["Upload-Offset"] == str(len(SMALL))
    assert content_of(server, name) == pattern(1000)


def test_terminated_upload_leaves_nothing(server, folder, name):
    upload = create(server, name, 1000)
    assert patch(server, upload, 0, b"x" * 100).status == 204
    answer = ask(server, "DELETE", upload, TUS)
    assert answer.status == 204 and answer["Tus-Resumable"] == "1.0.0"
    assert head(server, upload).status == 404
    assert kept_in(folder, upload) == [] and uploads_of(server, name) == []


def test_idle_upload_expires(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_EXPIRE_S": "1"})
    upload = create(server, name, 1000)
    eventually(lambda: uploads_of(server, name) == [])
    assert head(server, upload).status == 404
    eventually(lambda: files_of(tmp_path) == [])


def test_client_holds_no_more_than_its_limit(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"})
    first, _ = create(server, name, 10), create(server, name, 10)
    answer = post(server, name, 10)
    assert_problem(answer, 429, "rate-limited")
    assert int(answer["Retry-After"]) > 0
    assert ask(server, "DELETE", first, TUS).status == 204
    create(server, name, 10)


def test_kept_files_are_not_served(server, folder, name):
    upload = create(server, name, 1000)
    for path in kept_in(folder, upload):
        assert get(server, f"/files/{path}").status == 404


# --- kills ---


def test_acknowledged_bytes_survive_a_kill(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE), If_None_Match="*")
    at = 0
    while at < len(LARGE):
        end = min(at + (2 << 20), len(LARGE))
        assert patch(server, upload, at, LARGE[at:end]).status == 204
        server.kill()
        server = start_server(tmp_path, "--writable")
        at = end
        if at < len(LARGE):
            assert offset_of(server, upload) == at
            assert [one["model"] for one in uploads_of(server, name)] == [name]
    assert get(server, "/v1/uploads").json()["uploads"] == []
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE
    shown = head(server, upload)
    assert shown.status == 200 and shown["Upload-Offset"] == shown["Upload-Length"] == str(len(LARGE))
    assert shown["Location"] == model_path(name) and not shown["Upload-Expires"]
    again = patch(server, upload, len(LARGE), b"")
    assert again.status == 204 and again["Repr-Digest"] == digest_field("sha-256", LARGE)
    assert all(path == f"{name}.zt" or path in kept_in(tmp_path, upload) for path in files_of(tmp_path))


def test_memory_of_a_finished_upload_ends(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    server.kill()
    state = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "state"
    first, end = state.read_text().splitlines()
    when, digest = end.split()
    state.write_text(f"{first}\n{int(when) - 595:020} {digest}\n")
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == len(SMALL)
    eventually(lambda: head(server, upload).status == 404, 15)
    assert files_of(tmp_path) == [f"{name}.zt"]


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_publication_that_a_kill_kept_from_being_noted_is_none(tmp_path, start_server, name, cut):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    server.kill()
    state = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "state"
    first, end = state.read_text().splitlines()
    state.write_text(f"{first}\n" + (end + "\n")[:cut])
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404
    assert files_of(tmp_path) == [f"{name}.zt"]


def test_bytes_of_a_piece_that_a_kill_cut_are_kept(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE))
    with begin_patch(server, upload, 0, len(LARGE)) as connection:
        connection.sendall(LARGE[: 3 << 20])
        eventually(lambda: uploads_of(server, name)[0]["received"] == 3 << 20)
        server.kill()
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 3 << 20
    assert patch(server, upload, 3 << 20, LARGE[3 << 20 :]).status == 204
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE


def test_after_another_boot_only_what_was_acknowledged_counts(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL[:100]).status == 204
    server.kill()
    place = tmp_path / ".ztserve-uploads" / upload.split("/")[-1]
    with (place / "data").open("ab") as data:
        data.write(b"never told")
    state = (place / "state").read_text()
    (place / "state").write_text(state[:21] + "00000000-0000-0000-0000-000000000000\n")
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 100
    assert (place / "data").read_bytes() == SMALL[:100]
    assert patch(server, upload, 100, SMALL[100:]).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("broken", ["data", "state", "resumable"])
def test_what_nobody_can_finish_is_removed_at_start(tmp_path, start_server, name, broken):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, 1000)
    server.kill()
    place = tmp_path / ".ztserve-uploads" / upload.split("/")[-1]
    (place / broken).unlink()
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404
    assert not place.exists()


@pytest.mark.parametrize("cut", [0, 1, 19, 40, -1])
def test_facts_that_were_cut_short_are_removed_at_start(tmp_path, start_server, name, cut):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, 1000)
    server.kill()
    facts = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "resumable"
    text = facts.read_bytes()
    facts.write_bytes(text[:cut] if cut >= 0 else text[:-2])
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404


def test_second_server_leaves_live_uploads_alone_and_takes_them_over_later(tmp_path, start_server, name):
    first = start_server(tmp_path, "--writable")
    upload = create(first, name, len(SMALL))
    second = start_server(tmp_path, "--writable")
    assert head(second, upload).status == 404
    assert patch(first, upload, 0, SMALL[:100]).status == 204
    first.kill()
    assert offset_of(second, upload) == 100
    assert patch(second, upload, 100, SMALL[100:]).status == 204
    assert content_of(second, name) == pattern(1000)


# --- a client that others wrote ---


def test_tuspy_uploads_and_resumes(server, folder, tmp_path, name):
    (tmp_path / "m.zt").write_bytes(LARGE)
    client = TusClient(f"{server.url}/v1/resumable")
    uploader = client.uploader(str(tmp_path / "m.zt"), chunk_size=1 << 20, metadata={"model": name})
    uploader.upload(stop_at=3 << 20)
    assert uploader.offset == 3 << 20
    again = client.uploader(str(tmp_path / "m.zt"), chunk_size=2 << 20, url=uploader.url, upload_checksum=True)
    assert again.offset == 3 << 20
    again.upload()
    assert (folder / f"{name}.zt").read_bytes() == LARGE
