"""/v1/resumable (tus 1.0.0): the protocol, creating an upload, and sending its pieces."""

import base64

import pytest

from containers import pattern
from tus import PIECE, TUS, begin_patch, checksum, create, head, kept_in, metadata, offset_of, patch, post, uploads_of
from uploads import SMALL, content_of, digest_field
from wire import ask, assert_problem, connect, eventually, get, model_path, read_head

LIMIT = 64 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


# --- protocol ---


@pytest.mark.parametrize("path", ["/v1/resumable", "/v1/resumable/0123"])
def test_options_list_version_extensions_and_limits(server, path):
    answer = ask(server, "OPTIONS", path)
    assert answer.status == 204
    assert answer["Tus-Resumable"] == "1.0.0" and answer["Tus-Version"] == "1.0.0"
    creations = {"creation", "creation-with-upload", "creation-defer-length"}
    assert set(answer["Tus-Extension"].split(",")) == creations | {"checksum", "concatenation", "expiration", "termination"}
    assert answer["Tus-Max-Size"] == str(LIMIT)
    assert answer["Tus-Checksum-Algorithm"] == "sha1,sha256"
    assert ("PATCH" in answer["Allow"]) == (path != "/v1/resumable")


@pytest.mark.parametrize("method, version", [("POST", None), ("HEAD", "1.0.1"), ("PATCH", "0.2.2"), ("DELETE", None)])
def test_another_version_is_412(server, name, method, version):
    upload = create(server, name, 100)
    fields = {**PIECE, "Upload-Offset": "0", "Upload-Length": "1", "Upload-Metadata": metadata(name), "Tus-Resumable": version}
    fields = {key: value for key, value in fields.items() if value}
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


@pytest.mark.parametrize("filename", ["browser.zt", "browser"])
def test_a_filename_without_its_extension_names_the_model(server, filename):
    encoded = base64.b64encode(filename.encode()).decode()
    fields = {**TUS, "Upload-Metadata": f"filetype,filename {encoded}", "Upload-Length": str(len(SMALL))}
    created = ask(server, "POST", "/v1/resumable", {**fields, "Content-Type": "application/offset+octet-stream"}, SMALL)
    assert created.status == 201
    assert get(server, "/v1/models/browser").status == 200
    assert ask(server, "DELETE", "/v1/models/browser").status == 204


def test_a_created_upload_shows_offset_length_and_metadata(server, name):
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


REFUSED_CREATIONS = [
    ({"Upload_Length": None}, 400, "invalid-request"),
    ({"Upload_Defer_Length": "1"}, 400, "invalid-request"),
    ({"Upload_Length": "9223372036854775808"}, 400, "invalid-request"),
    ({"Upload_Metadata": None}, 400, "invalid-request"),
    ({"Upload_Metadata": "model bQ==,x y"}, 400, "invalid-request"),
    ({"Upload_Metadata": metadata("a//b")}, 400, "invalid-name"),
    ({"Repr_Digest": "sha-256=xyz"}, 400, "invalid-request"),
    ({"Upload_Length": str(LIMIT + 1)}, 413, "too-large"),
    ({"X_HTTP_Method_Override": "PATCH"}, 405, "method-not-allowed"),
]


@pytest.mark.parametrize("fields, status, code", REFUSED_CREATIONS)
def test_a_creation_is_refused(server, name, fields, status, code):
    assert_problem(post(server, name, 10, **fields), status, code)
    assert uploads_of(server, name) == []


def test_a_read_only_server_refuses_writes_and_has_no_uploads(tmp_path, start_server, name):
    server = start_server(tmp_path)
    assert_problem(post(server, name, 10), 403, "read-only")
    upload = "/v1/resumable/" + "0" * 32
    assert_problem(patch(server, upload, 0, b"x"), 403, "read-only")
    assert_problem(ask(server, "DELETE", upload, TUS), 403, "read-only")
    assert head(server, upload).status == 404


def test_the_creation_may_carry_the_whole_file(server, name):
    answer = post(server, name, len(SMALL), SMALL, Content_Type=PIECE["Content-Type"])
    assert answer.status == 201 and answer["Upload-Offset"] == str(len(SMALL)), answer
    assert answer["ETag"] == get(server, model_path(name))["ETag"]
    assert offset_of(server, answer["Location"]) == len(SMALL)


# --- pieces ---


REFUSED_PIECES = [
    (101, 1, {}, 409, "conflict"),
    ("0x0", 1, {}, 400, "invalid-request"),
    (100, 1, {"Content_Type": "application/octet-stream"}, 415, "unsupported-media-type"),
    (100, 1, {"Content_Encoding": "gzip"}, 415, "unsupported-media-type"),
    (100, 1, {"Upload_Checksum": "md5 1B2M2Y8AsgTpgAmY7PhCfg=="}, 400, "invalid-request"),
    (100, 1, {"Content_Digest": digest_field("sha-256", b"x")}, 422, "digest-mismatch"),
    (100, 901, {}, 413, "too-large"),
]


@pytest.mark.parametrize("offset, length, fields, status, code", REFUSED_PIECES)
def test_a_piece_is_refused_and_adds_no_byte(server, name, offset, length, fields, status, code):
    upload = create(server, name, 1000)
    assert patch(server, upload, 0, b"x" * 100).status == 204
    assert_problem(patch(server, upload, offset, b"y" * length, **fields), status, code)
    assert offset_of(server, upload) == 100


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
    # The client may have missed the last answer.
    shown = head(server, upload)
    assert shown["Upload-Offset"] == str(len(SMALL)) and shown["Location"] == model_path(name)


def test_unknown_upload_is_404(server):
    for upload in ("0" * 32, "..%2F.."):
        path = f"/v1/resumable/{upload}"
        assert head(server, path).status == 404
        assert_problem(patch(server, path, 0, b"x"), 404, "upload-not-found")
        assert_problem(ask(server, "DELETE", path, TUS), 404, "upload-not-found")


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
            f"Content-Type: application/offset+octet-stream\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert read_head(connection)[0] == 100
        connection.sendall(SMALL[:100])
        if not with_checksum:
            eventually(lambda: uploads_of(server, name)[0]["received"] == 100)
        at = offset_of(server, upload)
        assert at == (0 if with_checksum else 100)
        assert patch(server, upload, at, SMALL[at:]).status == 423
        eventually(lambda: patch(server, upload, at, SMALL[at : at + 200]).status == 204, 15)
        # What the silent client sends now does not overwrite what came in the meantime.
        connection.sendall(b"x" * 400)
        assert read_head(connection)[0] == 409
    assert offset_of(server, upload) == at + 200
    assert patch(server, upload, at + 200, SMALL[at + 200 :]).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_post_with_a_method_override_is_that_method(server, folder, name, method):
    upload = create(server, name, len(SMALL))
    fields = {**PIECE, "Upload-Offset": "0", "X-HTTP-Method-Override": method}
    assert ask(server, "POST", upload, fields, SMALL).status == 204
    assert (content_of(server, name) is not None) == (method == "PATCH")
    assert uploads_of(server, name) == []


def test_post_to_an_upload_without_override_is_405(server, name):
    upload = create(server, name, 1000)
    assert_problem(ask(server, "POST", upload, TUS, b""), 405, "method-not-allowed")
    assert_problem(ask(server, "POST", "/v1/models", {"X-HTTP-Method-Override": "DELETE"}, b""), 405, "method-not-allowed")
