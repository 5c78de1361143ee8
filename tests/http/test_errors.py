"""Errors: one shape for all, invalid names, unknown methods, and no paths of the disk in any message."""

import re

import pytest

from containers import dense, pattern, zt1
from wire import ask, assert_problem, component_path, get, head, talk

ALLOWED = {
    "/v1/models": {"GET", "HEAD", "OPTIONS"},
    "/v1/models/m": {"GET", "HEAD", "OPTIONS", "PUT"},
    "/v1/models/m/verification": {"GET", "HEAD", "OPTIONS", "POST"},
    "/files/m.zt": {"GET", "HEAD", "OPTIONS"},
    "/healthz": {"GET", "HEAD", "OPTIONS"},
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT")


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(100)), "wrong": dense(b"1", digest="crc32c:0x00000000")}))
    (folder / "bad.zt").write_bytes(b"rubbish")
    return share_server(folder)


def allowed(answer):
    return {method.strip() for method in answer["Allow"].split(",")}


@pytest.mark.parametrize("path", ALLOWED)
def test_options_is_204_and_other_methods_405_with_allow(server, path):
    answer = ask(server, "OPTIONS", path)
    assert (answer.status, answer.body) == (204, b"")
    known = allowed(answer)
    # Later routes may add methods to a resource; today's must be there.
    assert known >= ALLOWED[path]
    for method in METHODS:
        if method not in known:
            answer = ask(server, method, path, body=b"")
            assert answer.status == 405, (method, answer)
            assert allowed(answer) == known
            if method != "HEAD":
                assert_problem(answer, 405, "method-not-allowed")


def test_malformed_escapes_in_a_query_are_refused(server):
    for target in ("/v1/models?%zz", "/v1/models/m?pretty=%4", "/v1/models/m?match=a&match=%4", "/v1/models/m/objects/w/data?slice=%"):
        assert_problem(get(server, target), 400, "invalid-request")


@pytest.mark.parametrize("method", ["BREW", "get"])
def test_an_unknown_method_is_501(server, method):
    for path in ("/v1/models", "/nowhere"):
        assert_problem(ask(server, method, path), 501, "not-implemented")


# All shapes of paths and names are in tests/unit/server/test_router.c and test_model_name.c.
@pytest.mark.parametrize("path", ["/v1/models/", "/v1/models/m/objects", "/v1/models/m/objects/w/data/more", "/V1/models", "/healthz/"])
def test_unknown_path_is_404(server, path):
    assert_problem(get(server, path), 404, "not-found")
    assert head(server, path).status == 404


@pytest.mark.parametrize("path", [
    "/v1/models/%zz", "/v1/models/m%00", "/v1/models/m/objects/%c0%80", "/v1/models/m/objects/w/%00", "/v1/models//objects/w",
    "//v1/models", "/v1/models/%2E%2E", "/v1/models/a%2F..%2Fm", "/v1/models/" + "x" * 1025,
])  # fmt: skip
def test_name_that_cannot_be_is_400(server, path):
    assert_problem(get(server, path), 400, "invalid-name")


@pytest.mark.parametrize("path", ["/v1/models/m/objects/..", "/v1/models/m/objects/%2E%2E", "/v1/models/m/objects/a%2Fb"])
def test_names_of_objects_are_any_utf8(server, path):
    assert_problem(get(server, path), 404, "object-not-found")


@pytest.mark.parametrize("path", ["/v1/models/%6D", "/v1/models/m/objects/%77/dat%61", "/files/%6D.zt"])
def test_escaped_letters_of_names_are_those_letters(server, path):
    assert get(server, path).status == 200


PROBLEMS = {
    "/v1/models/none": (404, "model-not-found"),
    "/v1/models/m/objects/none": (404, "object-not-found"),
    "/v1/models/m/objects/w/none": (404, "component-not-found"),
    "/v1/models/bad": (422, "invalid-model"),
    "/v1/models/bad/objects/w/data": (422, "invalid-model"),
    "/v1/models/m/objects/wrong/data": (500, "corrupt-component"),
    "/v1/models?limit=x": (400, "invalid-request"),
    "/files/none.zt": (404, "not-found"),
    "/files/../../etc/passwd": None,
    "/files/%2e%2e/%2e%2e/etc/passwd": None,
    "/v1/models/%00": (400, "invalid-name"),
    "/v1/models/%2e%2e%2fetc": (400, "invalid-name"),
}


@pytest.mark.parametrize("path", PROBLEMS)
def test_problem_has_its_shape_and_no_path_of_the_disk(server, folder, path):
    answer = get(server, path)
    if PROBLEMS[path]:
        assert_problem(answer, *PROBLEMS[path])
    assert answer.status >= 400
    text = answer.body.decode()
    assert str(folder) not in text
    assert str(folder.parent) not in text
    assert "/tmp/" not in text and ".c:" not in text
    assert head(server, path).status == answer.status


def test_problem_of_a_corrupt_component_names_it(server):
    problem = assert_problem(get(server, component_path("m", "wrong")), 500, "corrupt-component")
    assert problem["object"] == "wrong" or "wrong" in problem["detail"]


@pytest.mark.parametrize("sent", ["x" * 128, "01-AB.c_d"])
def test_sane_request_id_is_echoed(server, sent):
    for path in ("/v1/models", "/nowhere", component_path("m", "w"), "/healthz"):
        assert get(server, path, X_Request_Id=sent)["X-Request-Id"] == sent
    assert get(server, "/nowhere", X_Request_Id=sent).json()["request_id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, 'a"b'])
def test_other_request_ids_are_replaced_on_errors_and_left_out_elsewhere(server, sent):
    made = get(server, "/nowhere", X_Request_Id=sent.encode())["X-Request-Id"]
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", made)
    assert made != sent
    assert get(server, "/v1/models", X_Request_Id=sent.encode())["X-Request-Id"] is None


def test_answers_that_caches_can_share_have_no_request_id(server):
    path = component_path("m", "w")
    first = get(server, path)
    partial = get(server, path, Range="bytes=0-1")
    unchanged = get(server, path, If_None_Match=first["ETag"])
    assert [answer.status for answer in (first, partial, unchanged)] == [200, 206, 304]
    for answer in (first, partial, unchanged, ask(server, "OPTIONS", path), head(server, path)):
        assert answer["X-Request-Id"] is None, answer


def test_host_field_is_not_believed(server):
    request = b"GET /v1/models/none HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b"evil.example" not in talk(server, request)
