"""What the streaming writer refuses, from the header if possible."""

import json

import pytest

from uploads import digest_field
from wire import ask, assert_problem, connect, get, model_path, read_head
from writers import JSON, begin, create, leftovers


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def upload(server):
    upload = begin(server, "refused")
    assert upload.put("w", b"there").status == 201
    upload.declare("declared", shape=[2, 3])
    return upload


@pytest.fixture(autouse=True)
def nothing_changes(upload):
    before = upload.status()["objects"]
    yield
    assert upload.status()["objects"] == before


def refused_before_body(server, target, fields, method="PUT"):
    """The status of an answer that comes while the body is still owed."""
    lines = [f"{method} {target} HTTP/1.1", "Host: x", "Expect: 100-continue"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    with connect(server) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return read_head(connection)[0]


@pytest.mark.parametrize(
    "query, fields, status, code",
    [
        ("shape=5", {}, 400, "invalid-request"),
        ("dtype=u8", {}, 400, "invalid-request"),
        ("dtype=u8&shape=1,,2", {}, 400, "invalid-request"),
        ("dtype=u8&shape=5&shape=5", {}, 400, "invalid-request"),
        ("dtype=u8&shape=5&type=%zz", {}, 400, "invalid-request"),
        ("dtype=u8&shape=5&encoding=raw&level=3", {}, 400, "invalid-request"),
        ("dtype=u8&shape=5&digest=md5:00", {}, 400, "invalid-request"),
        ("dtype=u8&shape=5", {"Content-Range": "bytes 0-4/10"}, 400, "invalid-request"),
        ("dtype=u8&shape=5", {"Repr-Digest": "sha-256=:AA=:"}, 400, "invalid-request"),
        ("dtype=u8&shape=5", {"Content-Encoding": "zstd, gzip"}, 415, "unsupported-media-type"),
        ("dtype=f33&shape=5", {}, 422, "unknown-dtype"),
        ("dtype=u8&shape=6", {}, 422, "size-mismatch"),
        ("dtype=f64&shape=4611686018427387904", {}, 422, "size-mismatch"),
    ],
)
def test_a_component_is_refused_before_its_body(server, upload, query, fields, status, code):
    target = f"{upload.object_path('w')}/data?{query}"
    assert_problem(ask(server, "PUT", target, fields, b"12345"), status, code)
    assert refused_before_body(server, target, {**fields, "Content-Length": "5"}) == status


def test_a_component_is_refused_for_what_is_there(upload):
    assert_problem(upload.put("declared", b"123456", shape="3,2"), 422, "size-mismatch")
    assert_problem(upload.put("x", b"", shape="5", digest="sha256:" + "0" * 64), 404, "component-not-found")
    assert_problem(upload.put("w", b"", shape="0", fields={"Content-Digest": digest_field("sha-256", b"x")}), 422, "digest-mismatch")


NUMBERS = ["1e400", "-18446744073709551617"]


@pytest.mark.parametrize("version", ["1.2.0", "2"])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_do_not_fit(server, version, number):
    body = f'{{"version": "{version}", "attributes": {{"a": [{number}]}}}}'.encode()
    problem = assert_problem(ask(server, "POST", model_path("numbers") + "/uploads", JSON, body), 400, "invalid-request")
    assert number[:20] in problem["detail"]
    one = begin(server, "numbers", version)
    body = f'{{"shape": [5], "attributes": {{"a": {number}}}}}'.encode()
    assert_problem(ask(server, "PUT", one.object_path("w"), JSON, body), 400, "invalid-request")
    exact = {"a": [2**64 - 1, -(2**63), 1e308, 0.5, -0.0]}
    assert one.declare("w", shape=[5], attributes=exact).status == 201
    assert one.put("w", b"12345").status == 201 and one.commit().status == 201
    assert get(server, model_path("numbers")).json()["objects"]["w"]["attributes"] == exact


@pytest.mark.parametrize("version", ["1.2.0", "2"])
def test_component_that_its_layout_cannot_have(server, version):
    upload = begin(server, "layouts", version)
    prefix, suffix = ("", "") if version == "1.2.0" else ("zt.", "/1")
    upload.declare("csr", shape=[2, 3], format=f"{prefix}sparse_csr{suffix}")
    upload.declare("coo", shape=[2, 3], format=f"{prefix}sparse_coo{suffix}")
    for name, role, dtype, shape, size in (
        ("csr", "indices", "f32", 2, 8),
        ("csr", "indptr", "u64", 2, 16),
        ("coo", "coords", "bool", 2, 2),
        ("coo", "coords", "u64", 3, 24),
    ):
        problem = assert_problem(upload.put(name, b"1" * size, role, dtype=dtype, shape=shape), 422, "invalid-model")
        assert (problem["object"], problem["component"]) == (name, role)
        assert problem["rule"] == ("zt1 §3 LayoutRule" if version == "1.2.0" else "zt2 §6 LayoutRule")
    # 1.2 lets an object have more than its layout names.
    assert upload.put("csr", b"1", "other").status == (201 if version == "1.2.0" else 422)
    assert upload.put("csr", b"1" * 24, "indptr", dtype="u64", shape=3).status == 201
    assert upload.put("coo", b"1" * 32, "coords", dtype="u64", shape="2,2").status == 201


@pytest.mark.parametrize("path", ["", "/objects/w", "/objects/w/data?dtype=u8&shape=5", "/commit"])
@pytest.mark.parametrize("identifier", ["0" * 32, "%2E%2E"])
def test_unknown_upload(server, identifier, path):
    method = {"": "DELETE", "/commit": "POST"}.get(path, "PUT")
    answer = ask(server, method, f"/v1/uploads/{identifier}{path}", body=b"12345")
    assert_problem(answer, 404, "upload-not-found")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"version": "1.1.0"}',
        b'{"attributes": {"a": 1, "a": 2}}',
        b'{"other": 1}',
        b'{"attributes": {"a": "\xff"}}',
        b'{"attributes": ' + b'{"a":' * 100 + b"1" + b"}" * 101,
        b'{"version": "2", "attributes": ' + b'{"a":' * 40 + b"1" + b"}" * 41,
    ],
)
def test_malformed_beginning(server, folder, body):
    before = leftovers(folder)
    answer = ask(server, "POST", f"{model_path('new')}/uploads", JSON, body)
    assert_problem(answer, 400, "invalid-request")
    assert leftovers(folder) == before


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"shape": [-1]}',
        b'{"shape": [4294967296, 4294967296, 2]}',
        b'{"shape": [' + b",".join([b"1"] * 65) + b"]}",
        b'{"format": "sparse_csr"}',
        b'{"shape": [1], "unknown": 1}',
    ],
)
def test_malformed_object(server, upload, body):
    answer = ask(server, "PUT", upload.object_path("new"), JSON, body)
    assert_problem(answer, 400, "invalid-request")


def test_json_that_is_too_long(server, upload):
    body = json.dumps({"attributes": {"a": "x" * (5 << 20)}}).encode()
    assert_problem(ask(server, "PUT", upload.object_path("long"), JSON, body), 413, "too-large")
    fields = {"Content-Length": str(len(body))}
    assert refused_before_body(server, upload.object_path("long"), fields) == 413
    assert refused_before_body(server, f"{model_path('long')}/uploads", fields, "POST") == 413


def test_read_only_server_refuses_every_write(folder, share_server, upload):
    server = share_server(folder)
    assert_problem(create(server, "m"), 403, "read-only")
    path = upload.path
    assert_problem(get(server, path), 404, "upload-not-found")
    for method, target in (
        ("DELETE", path),
        ("PUT", f"{path}/objects/w"),
        ("PUT", f"{path}/objects/w/data?dtype=u8&shape=1"),
        ("POST", f"{path}/commit"),
    ):
        assert_problem(ask(server, method, target, body=b"1"), 403, "read-only")
    fields = {"Content-Length": "1"}
    assert refused_before_body(server, f"{path}/objects/w/data?dtype=u8&shape=1", fields) == 403


def test_other_methods(server, upload):
    assert_problem(ask(server, "PATCH", upload.path), 405, "method-not-allowed")
    assert_problem(get(server, f"{upload.path}/commit"), 405, "method-not-allowed")
    assert_problem(get(server, f"{upload.object_path('w')}/data"), 405, "method-not-allowed")


def test_more_than_the_server_takes(tmp_path, share_server):
    limits = {"ZTSERVE_UPLOAD_MAX_BYTES": "100000", "ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"}
    server = share_server(tmp_path, "--writable", environment=limits)
    upload = begin(server, "m")
    assert_problem(upload.put("w", b"x" * 100_001), 413, "too-large")
    fields = {"Content-Length": "200000"}
    assert refused_before_body(server, upload.component_path("w", dtype="u8", shape="200000"), fields) == 413
    assert upload.put("a", b"x" * 60_000).status == 201
    assert_problem(upload.put("b", b"x" * 60_000), 413, "too-large")
    assert upload.put("a", b"y" * 30_000).status == 201
    begin(server, "n")
    assert_problem(create(server, "o"), 429, "rate-limited")
    assert upload.delete().status == 204
    begin(server, "o")
