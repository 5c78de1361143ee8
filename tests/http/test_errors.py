"""Errors: one shape for all, invalid names, unknown methods, and no paths of the disk in any message."""

import re

import pytest

from containers import dense, pattern, zt1
from wire import ask, assert_problem, component_path, eventually, get, head, talk

ALLOWED = {
    "/v1/models": {"GET", "HEAD", "OPTIONS"},
    "/v1/models/m": {"GET", "HEAD", "OPTIONS", "PUT"},
    "/v1/models/m/objects/w": {"GET", "HEAD", "OPTIONS"},
    "/v1/models/m/objects/w/data": {"GET", "HEAD", "OPTIONS"},
    "/v1/models/m/verification": {"GET", "HEAD", "OPTIONS", "POST"},
    "/files/m.zt": {"GET", "HEAD", "OPTIONS"},
    "/healthz": {"GET", "HEAD", "OPTIONS"},
    "/readyz": {"GET", "HEAD", "OPTIONS"},
    "/version": {"GET", "HEAD", "OPTIONS"},
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
def test_options_is_204_with_allow(server, path):
    answer = ask(server, "OPTIONS", path)
    assert (answer.status, answer.body) == (204, b"")
    # Later routes may add methods to a resource; today's must be there.
    assert allowed(answer) >= ALLOWED[path]


@pytest.mark.parametrize("path", ALLOWED)
def test_other_methods_are_405_with_allow(server, path):
    known = allowed(ask(server, "OPTIONS", path))
    for method in METHODS:
        if method not in known:
            answer = ask(server, method, path, body=b"")
            assert answer.status == 405, (method, answer)
            assert allowed(answer) == known
            if method != "HEAD":
                assert_problem(answer, 405, "method-not-allowed")


def test_malformed_escapes_in_a_query_are_refused(server):
    for query in ("?unknown=%zz", "?%zz", "?%", "?pretty=%4"):
        assert_problem(get(server, "/v1/models" + query), 400, "invalid-request")
        assert_problem(get(server, "/v1/models/m" + query), 400, "invalid-request")
    for target in ("/v1/models?prefix=%zz", "/v1/models/m?match=a&match=%4", "/v1/models/m/objects/w/data?slice=%"):
        assert_problem(get(server, target), 400, "invalid-request")


@pytest.mark.parametrize("method", ["BREW", "FROB", "get", "Get", "PROPFIND-X", "G"])
def test_an_unknown_method_is_501(server, method):
    for path in ("/v1/models", "/nowhere"):
        assert_problem(ask(server, method, path), 501, "not-implemented")


@pytest.mark.parametrize(
    "path",
    [
        "/v1", "/v1/", "/v1/models/", "/v1/models/m/", "/v1/models/m/objects", "/v1/models/m/objects/",
        "/v1/models/m/objects/w/", "/v1/models/m/objects/w/data/", "/v1/models/m/objects/w/data/more", "/V1/models",
        "/v2/models", "/healthz/", "/favicon.ico", "/problems/not-found/x", "/v1/../v1/models",
    ],
)  # fmt: skip
def test_unknown_path_is_404(server, path):
    assert_problem(get(server, path), 404, "not-found")
    assert head(server, path).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/%", "/v1/models/%4", "/v1/models/%zz", "/v1/models/m%", "/v1/models/m%00", "/v1/models/%00",
        "/v1/models/m/objects/%ff", "/v1/models/m/objects/%c3%28", "/v1/models/m/objects/%c0%80",
        "/v1/models/m/objects/%ed%a0%80", "/v1/models/m/objects/%f4%90%80%80", "/v1/models/m/objects/w%00",
        "/v1/models/m/objects/w/%00", "/v1/models/m/objects/w/%", "/v1/models//objects/w", "/v1/models/m//objects/w",
        "/v1/models/m/objects//data", "/v1//models", "//v1/models", "/v1/models/.", "/v1/models/..", "/v1/models/%2E%2E",
        "/v1/models/a%2F%2Fb", "/v1/models/%2Fa", "/v1/models/a%2F", "/v1/models/a%2F..%2Fm", "/v1/models/a%0Ab",
        "/v1/models/" + "x" * 1025,
    ],
)  # fmt: skip
def test_name_that_cannot_be_is_400(server, path):
    assert_problem(get(server, path), 400, "invalid-name")


@pytest.mark.parametrize(
    "path", ["/v1/models/m/objects/..", "/v1/models/m/objects/%2E%2E", "/v1/models/m/objects/a%2Fb"]
)
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


def test_range_problem_has_its_shape(server):
    assert_problem(get(server, component_path("m", "w"), Range="bytes=100-"), 416, "range-not-satisfiable")


def test_problem_of_a_corrupt_component_names_it(server):
    problem = assert_problem(get(server, component_path("m", "wrong")), 500, "corrupt-component")
    assert problem["object"] == "wrong" or "wrong" in problem["detail"]


@pytest.mark.parametrize("sent", ["a", "x" * 128, "01-AB.c_d", "req.1"])
def test_sane_request_id_is_echoed(server, sent):
    for path in ("/v1/models", "/nowhere", component_path("m", "w"), "/healthz"):
        assert get(server, path, X_Request_Id=sent)["X-Request-Id"] == sent
    assert get(server, "/nowhere", X_Request_Id=sent).json()["request_id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "a;b", 'a"b', "ä", "a,b", "<script>"])
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


def test_made_request_ids_differ(server):
    assert len({get(server, "/nowhere")["X-Request-Id"] for _ in range(20)}) == 20


def test_request_id_is_in_the_log(server):
    get(server, "/nowhere", X_Request_Id="find-me-again")
    eventually(lambda: any("find-me-again" in line for line in server.log_lines))


def test_host_field_is_not_believed(server):
    request = b"GET /v1/models/none HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b"evil.example" not in talk(server, request)
