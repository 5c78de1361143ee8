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
    "query",
    [
        {"dtype": None},
        {"shape": None},
        {"shape": "1,,2"},
        {"shape": "1,"},
        {"shape": ",1"},
        {"shape": "-1"},
        {"shape": "1 "},
        {"shape": "x"},
        {"shape": "18446744073709551616"},
        {"shape": "4294967296,4294967296,2"},
        {"shape": ",".join(["1"] * 65)},
        {"encoding": "gzip"},
        {"encoding": ""},
        {"encoding": "zstd", "level": "0"},
        {"encoding": "zstd", "level": "99"},
        {"encoding": "zstd", "level": "x"},
        {"encoding": "zstd", "level": ""},
        {"digest": "sha256:12"},
        {"digest": "md5:" + "0" * 32},
        {"digest": "sha256:" + "G" * 64},
        {"digest": "sha256:" + "0" * 65},
    ],
)
def test_malformed_parameters(server, upload, query):
    query = {"dtype": "u8", "shape": "5", **query}
    query = {name: value for name, value in query.items() if value is not None}
    answer = ask(server, "PUT", upload.component_path("w", **query), body=b"12345")
    assert_problem(answer, 400, "invalid-request")


@pytest.mark.parametrize("extra", ["dtype=u8", "dtype=f32", "shape=5", "shape=1", "type=u8&type=u8", "digest=x&digest=y",
                                   "encoding=raw&encoding=zstd", "level=1&level=2", "encoding=raw&level=3"])
def test_parameters_that_contradict_or_repeat_one_another(server, upload, extra):
    target = f"{upload.component_path('w', dtype='u8', shape='5')}&{extra}"
    assert_problem(ask(server, "PUT", target, body=b"12345"), 400, "invalid-request")
    assert refused_before_body(server, target, {"Content-Length": "5"}) == 400


NUMBERS = ["1e400", "-1e400", "18446744073709551616", "-18446744073709551617", "1" + "0" * 30]


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


def test_indices_of_another_type_than_u64(server):
    upload = begin(server, "indices")
    upload.declare("csr", shape=[2, 3], format="sparse_csr")
    upload.declare("coo", shape=[2, 3], format="sparse_coo")
    for name, role, shape in (("csr", "indices", 2), ("csr", "indptr", 3), ("coo", "coords", "2,2")):
        for dtype in ("u32", "i64", "i32"):
            size = {"u32": 4, "i64": 8, "i32": 4}[dtype] * (4 if shape == "2,2" else shape)
            answer = upload.put(name, b"\0" * size, role, dtype=dtype, shape=shape)
            problem = assert_problem(answer, 422, "invalid-model")
            assert (problem["rule"], problem["component"]) == ("zt1 §3 LayoutRule", role)
    # Declared behind its parts it is found at commit.
    late = begin(server, "indices")
    late.put("s", b"\0" * 4, "values", dtype="f32", shape=1)
    late.put("s", b"\0" * 4, "coords", dtype="u32", shape=1)
    late.declare("s", shape=[4], format="sparse_coo")
    assert assert_problem(late.commit(), 422, "invalid-model")["component"] == "coords"


def test_malformed_escape_is_refused(server, upload):
    answer = ask(server, "PUT", f"{upload.object_path('w')}/data?dtype=u8&shape=5&type=%zz", body=b"12345")
    assert_problem(answer, 400, "invalid-request")


@pytest.mark.parametrize(
    "query",
    [
        {"dtype": "f33"},
        {"dtype": ""},
        {"dtype": "float32"},
        {"dtype": "f8_e4m3fn"},
        {"dtype": "u8", "type": "f9"},
        {"dtype": "u16", "type": "f8_e4m3fn"},
        {"dtype": "f64", "type": "complex64"},
    ],
)
def test_unknown_types(server, upload, query):
    answer = ask(server, "PUT", upload.component_path("w", shape="5", **query), body=b"12345")
    assert_problem(answer, 422, "unknown-dtype")


@pytest.mark.parametrize("shape", ["4", "6", "", "0", "5,5"])
def test_length_other_than_shape_times_type(server, upload, shape):
    assert_problem(upload.put("w", b"12345", shape=shape), 422, "size-mismatch")
    fields = {"Content-Length": "5"}
    assert refused_before_body(server, upload.component_path("w", dtype="u8", shape=shape), fields) == 422


def test_size_that_does_not_fit(server, upload):
    answer = upload.put("w", b"1", dtype="f64", shape=str(2**62))
    assert_problem(answer, 422, "size-mismatch")


def test_data_of_another_shape_than_declared(upload):
    assert_problem(upload.put("declared", b"12345", shape="5"), 422, "size-mismatch")
    assert_problem(upload.put("declared", b"123456", shape="3,2"), 422, "size-mismatch")


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


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd, gzip", "x"])
def test_other_codings(server, upload, coding):
    answer = upload.put("w", b"12345", fields={"Content-Encoding": coding})
    assert_problem(answer, 415, "unsupported-media-type")
    fields = {"Content-Length": "5", "Content-Encoding": coding}
    assert refused_before_body(server, upload.component_path("w", dtype="u8", shape="5"), fields) == 415


def test_part_of_a_component(upload):
    answer = upload.put("w", b"12345", fields={"Content-Range": "bytes 0-4/10"})
    assert_problem(answer, 400, "invalid-request")


def test_malformed_digest_field(upload):
    assert_problem(upload.put("w", b"12345", fields={"Repr-Digest": "sha-256=:AA=:"}), 400, "invalid-request")


def test_body_without_length(server, upload):
    with connect(server) as connection:
        target = upload.component_path("w", dtype="u8", shape="5")
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert read_head(connection)[0] == 411


def test_an_unknown_digest_is_refused(upload):
    answer = upload.put("x", b"", shape="5", digest="sha256:" + "0" * 64)
    assert_problem(answer, 404, "component-not-found")


@pytest.mark.parametrize("path", ["", "/objects/w", "/objects/w/data?dtype=u8&shape=5", "/commit"])
@pytest.mark.parametrize("identifier", ["0" * 32, "x", "0" * 33, "%2E%2E", "0" * 31 + "G"])
def test_unknown_upload(server, identifier, path):
    method = {"": "DELETE", "/commit": "POST"}.get(path, "PUT")
    answer = ask(server, method, f"/v1/uploads/{identifier}{path}", body=b"12345")
    assert_problem(answer, 404, "upload-not-found")


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b"null",
        b'{"version": "1.1.0"}',
        b'{"version": 2}',
        b'{"version": "2", "version": "2"}',
        b'{"attributes": []}',
        b'{"attributes": {"a": 1, "a": 2}}',
        b'{"other": 1}',
        b"{} x",
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


@pytest.mark.parametrize("name", [".hidden", "a b", "a/../b", "-x", "a" * 256, "a/" + "b" * 253])
def test_beginning_under_an_invalid_name(server, name):
    assert_problem(create(server, name), 400, "invalid-name")


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"shape": 5}',
        b'{"shape": [-1]}',
        b'{"shape": [1.5]}',
        b'{"shape": ["1"]}',
        b'{"shape": [' + b",".join([b"1"] * 65) + b"]}",
        b'{"shape": [4294967296, 4294967296, 2]}',
        b'{"shape": [1], "format": 5}',
        b'{"shape": [1], "format": ""}',
        b'{"format": "sparse_csr"}',
        b'{"shape": [1], "attributes": "x"}',
        b'{"shape": [1], "unknown": 1}',
        b'{"shape": [1], "shape": [1]}',
        b'{"shape": [1]',
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


def test_json_with_a_coding(server, upload):
    answer = ask(server, "PUT", upload.object_path("w"), JSON | {"Content-Encoding": "gzip"}, b"{}")
    assert_problem(answer, 415, "unsupported-media-type")


def test_names_longer_than_zt2_has(server):
    upload = begin(server, "long-names", "2")
    assert_problem(upload.put("x" * 1025, b"1"), 400, "invalid-name")
    assert_problem(upload.declare("x" * 1025, shape=[1]), 400, "invalid-name")
    assert upload.put("x" * 1024, b"1").status == 201
    assert upload.commit().status == 201


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


def test_disk_without_room(tmp_path, share_server):
    server = share_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_RESERVE_BYTES": str(1 << 50)})
    assert_problem(create(server, "m"), 507, "insufficient-storage")
    assert leftovers(tmp_path) == []


def test_length_past_the_free_space(server, upload):
    target = upload.component_path("big", dtype="u8", shape=str(1 << 39))
    assert refused_before_body(server, target, {"Content-Length": str(1 << 39)}) == 507
    assert refused_before_body(server, target, {"Content-Length": str(1 << 39), "Content-Encoding": "zstd"}) == 507


def test_digest_mismatch_of_an_empty_component(upload):
    answer = upload.put("w", b"", shape="0", fields={"Content-Digest": digest_field("sha-256", b"x")})
    assert_problem(answer, 422, "digest-mismatch")
