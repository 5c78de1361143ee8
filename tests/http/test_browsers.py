"""Web pages: foreign ones cannot write, those in cors.origins can use the API, and no page can pretend to be the server."""

import http.client

import pytest

from containers import dense, pattern, zt1
from uploads import SMALL
from wire import Answer, TIMEOUT_S, ask, assert_problem, component_path, get, model_path

PAGE = "https://page.example"
OTHER = "https://other.example"
FOREIGN = {"Origin": "https://evil.example"}
TUS = {"Tus-Resumable": "1.0.0"}
# What a page may read of every answer (Fetch, section 4.4.1 "CORS-safelisted response-header name").
ALWAYS_READABLE = {"cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma"}
# The protocol's own fields, and those of the connection.
NOT_FOR_PAGES = {"connection", "date", "server", "transfer-encoding"}

WRITES = [
    ("PUT", model_path("new"), SMALL, {}),
    ("DELETE", model_path("m"), None, {}),
    ("POST", model_path("new") + "/uploads", b"{}", {}),
    ("POST", "/v1/resumable", b"", {**TUS, "Upload-Length": "5"}),
    ("PATCH", "/v1/resumable/" + "0" * 32, b"", TUS),
]


def ask_as(server, host, method, target, fields=None, body=None):
    """A request with a Host of the test's choice."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT_S)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    given = {"Host": host, **(fields or {})}
    if body is not None:
        given["Content-Length"] = str(len(body))
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read())
    connection.close()
    return answer


def make_root(folder):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000), digest="sha256")}))
    return folder


@pytest.fixture(scope="module")
def plain(share_server, tmp_path_factory):
    return share_server(make_root(tmp_path_factory.mktemp("plain")), "--writable")


@pytest.fixture(scope="module")
def listed(share_server, tmp_path_factory):
    root = make_root(tmp_path_factory.mktemp("listed"))
    return share_server(root, "--writable", environment={"ZTSERVE_CORS_ORIGINS": f"{PAGE},http://localhost:3000"})


@pytest.fixture(scope="module")
def open_to_all(share_server, tmp_path_factory):
    return share_server(make_root(tmp_path_factory.mktemp("all")), environment={"ZTSERVE_CORS_ORIGINS": "*"})


def vary_of(answer):
    return [word.strip().lower() for word in (answer["Vary"] or "").split(",")]


# --- writes ---


@pytest.mark.parametrize(("method", "path", "body", "fields"), WRITES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("page", [FOREIGN, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}], ids=["origin", "null", "cross-site"])
def test_a_foreign_page_cannot_write(plain, page, method, path, body, fields):
    problem = assert_problem(ask(plain, method, path, {**fields, **page}, body), 403, "forbidden")
    assert "cors.origins" in problem["detail"]
    assert get(plain, model_path("m")).status == 200
    assert get(plain, "/v1/uploads").json()["uploads"] == []


def test_a_page_may_not_write_before_its_body_is_sent(plain):
    answer = ask(plain, "PUT", model_path("new"), {**FOREIGN, "Expect": "100-continue", "Content-Length": "100"})
    assert_problem(answer, 403, "forbidden")


def test_the_servers_own_pages_may_write(plain):
    own = {"Origin": plain.url, "Sec-Fetch-Site": "same-origin"}
    assert ask(plain, "PUT", model_path("own"), own, SMALL).status == 201
    assert ask(plain, "DELETE", model_path("own"), own).status == 204


def test_listed_pages_may_write(listed):
    page = {"Origin": PAGE, "Sec-Fetch-Site": "cross-site"}
    answer = ask(listed, "PUT", model_path("page"), page, SMALL)
    assert answer.status == 201 and answer["Access-Control-Allow-Origin"] == PAGE
    assert_problem(ask(listed, "DELETE", model_path("page"), {"Origin": OTHER}), 403, "forbidden")


def test_a_name_that_was_made_to_lead_here_cannot_write(plain):
    """DNS rebinding: to the browser the page is the server's own."""
    rebound = {"Origin": f"http://evil.example:{plain.port}", "Sec-Fetch-Site": "same-origin"}
    answer = ask_as(plain, f"evil.example:{plain.port}", "PUT", model_path("new"), rebound, SMALL)
    assert "setting hosts" in assert_problem(answer, 403, "forbidden")["detail"]
    assert ask_as(plain, "evil.example", "GET", model_path("m")).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/models/org/m/xet-write-token/main"),
        ("HEAD", "/api/models/org/m/xet-write-token/main"),
        ("GET", "/v1/uploads"),
        ("POST", f"/api/cas/{'0' * 32}/v1/shards"),
        ("POST", f"/api/cas/{'0' * 32}/v1/xorbs/default/{'0' * 64}"),
        ("PUT", f"/org/m.git/info/lfs/objects/{'0' * 64}?permit=x"),
        ("POST", "/org/m.git/info/lfs/objects/batch"),
    ],
)
@pytest.mark.parametrize("page", [{"Host": "evil.example"}, FOREIGN, {"Sec-Fetch-Site": "cross-site"}], ids=["host", "origin", "site"])
def test_a_page_gets_nothing_that_lets_it_write(plain, method, path, page):
    fields = {name: value for name, value in page.items() if name != "Host"}
    answer = ask_as(plain, page.get("Host", "localhost"), method, path, fields, b"{}" if method in ("PUT", "POST") else None)
    assert answer.status == 403
    assert method == "HEAD" or answer.json()["code"] == "forbidden"


@pytest.mark.parametrize("target_host", ["evil.example:80", "localhost@evil.example"])
def test_the_host_of_an_absolute_target_counts(plain, target_host):
    target = f"http://{target_host}{model_path('absolute')}"
    assert_problem(ask_as(plain, "localhost", "PUT", target, {}, SMALL), 403, "forbidden")
    same = f"http://localhost:{plain.port}{model_path('absolute')}"
    assert ask_as(plain, "evil.example", "PUT", same, {}, SMALL).status in (201, 204)
    own = {"Origin": f"http://localhost:{plain.port}"}
    assert ask_as(plain, "evil.example", "PUT", same, own, SMALL).status == 204


@pytest.mark.parametrize("host", ["[::1]", "models.localhost:8080"])
def test_local_names_can_write(plain, host):
    answer = ask_as(plain, host, "PUT", model_path("local"), {}, SMALL)
    assert answer.status in (201, 204), answer


def test_listed_hosts_are_the_only_names_of_the_server(start_server, tmp_path):
    server = start_server(make_root(tmp_path), environment={"ZTSERVE_HOSTS": "models.example.org"})
    assert ask_as(server, "models.example.org:8080", "GET", model_path("m")).status == 200
    for method in ("GET", "OPTIONS", "DELETE"):
        assert_problem(ask_as(server, "127.0.0.1", method, model_path("m")), 403, "forbidden")
    for path in ("/healthz", "/readyz"):
        assert ask_as(server, "127.0.0.1", "GET", path).status == 200


# --- reading ---


def test_without_origins_no_page_is_let_in(plain):
    for answer in (get(plain, model_path("m"), Origin=PAGE), get(plain, "/nothing", Origin=PAGE)):
        assert [name for name in answer.fields if name.lower().startswith("access-control")] == []
        assert "origin" not in vary_of(answer)


ANSWERS = [
    ("GET", model_path("m"), {}, 200),
    ("HEAD", model_path("m"), {}, 200),
    ("GET", component_path("m", "w"), {"Range": "bytes=0-9"}, 206),
    ("GET", "/nothing", {}, 404),
    ("BREW", "/v1/models", {}, 501),
    ("GET", component_path("m", "w"), {"Range": "bytes=5000-"}, 416),
    ("OPTIONS", "/v1/resumable", {}, 204),
]


@pytest.mark.parametrize(("method", "path", "fields", "status"), ANSWERS, ids=lambda value: str(value)[:30])
def test_a_listed_page_reads_every_answer_and_others_none(listed, method, path, fields, status):
    answer = ask(listed, method, path, {**fields, "Origin": PAGE})
    assert answer.status == status
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert "origin" in vary_of(answer)
    assert answer["Access-Control-Allow-Credentials"] is None
    exposed = {name.strip().lower() for name in answer["Access-Control-Expose-Headers"].split(",")}
    names = {name.lower() for name in answer.fields if not name.lower().startswith("access-control")}
    assert names - exposed - ALWAYS_READABLE - NOT_FOR_PAGES == set()
    for other in ({}, {"Origin": OTHER}):
        answer = ask(listed, method, path, {**fields, **other})
        assert answer["Access-Control-Allow-Origin"] is None
        assert "origin" in vary_of(answer)


def test_a_304_varies_like_the_200(listed):
    whole = get(listed, model_path("m"), Origin=PAGE)
    answer = get(listed, model_path("m"), Origin=PAGE, If_None_Match=whole["ETag"])
    assert answer.status == 304
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert vary_of(answer) == vary_of(whole) and "origin" in vary_of(whole) and "accept-encoding" in vary_of(whole)


def test_with_a_star_every_answer_is_the_same_for_all(open_to_all):
    for fields in ({}, {"Origin": PAGE}):
        answer = ask(open_to_all, "GET", model_path("m"), fields)
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert "origin" not in vary_of(answer)


# --- preflight ---


def preflight(server, path, origin=PAGE, method="PUT", **fields):
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    return ask(server, "OPTIONS", path, {**asked, **{name.replace("_", "-"): value for name, value in fields.items()}})


def test_a_preflight_request_of_a_listed_page_is_answered(listed):
    answer = preflight(listed, model_path("x"), Access_Control_Request_Headers="authorization,content-type")
    assert answer.status == 204 and answer.body == b""
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert {"GET", "PUT", "DELETE"} <= {name.strip() for name in answer["Access-Control-Allow-Methods"].split(",")}
    assert answer["Access-Control-Allow-Headers"] == "authorization,content-type"
    assert int(answer["Access-Control-Max-Age"]) > 0
    assert answer["Access-Control-Allow-Private-Network"] is None
    assert "origin" in vary_of(answer)


def test_a_preflight_request_for_a_private_network_is_answered(listed):
    answer = preflight(listed, model_path("x"), Access_Control_Request_Private_Network="true")
    assert answer["Access-Control-Allow-Private-Network"] == "true"


def test_a_preflight_request_of_another_page_gets_no_permission(listed, plain):
    for answer in (preflight(listed, model_path("x"), origin=OTHER), preflight(plain, model_path("x"))):
        assert answer.status == 204 and answer["Allow"]
        assert [name for name in answer.fields if name.lower().startswith("access-control")] == []


@pytest.mark.parametrize("path", ["/nothing", "/v1/models/%ff"])
def test_a_preflight_request_for_a_path_without_a_resource_is_answered(listed, path):
    answer = preflight(listed, path, method="DELETE", Access_Control_Request_Headers="authorization")
    assert answer.status == 204 and answer["Access-Control-Allow-Origin"] == PAGE
    assert "DELETE" in answer["Access-Control-Allow-Methods"]
    assert answer["Access-Control-Allow-Headers"] == "authorization"
    for other in (preflight(listed, path, origin=OTHER), preflight(listed, path, method="DELETE, PUT"), preflight(listed, path, method="")):
        assert other.status in (204, 400, 404) and other["Access-Control-Allow-Methods"] is None


def test_only_names_of_fields_are_echoed(listed):
    answer = preflight(listed, model_path("x"), Access_Control_Request_Headers="a, b<script>")
    assert answer["Access-Control-Allow-Headers"] is None


# --- with tokens ---


@pytest.fixture
def guarded(start_server, tmp_path):
    tokens = tmp_path / "tokens"
    root = tmp_path / "root"
    root.mkdir()
    # The SHA-256 of "secret".
    tokens.write_text("reader write 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n")
    return start_server(make_root(root), "--writable", "--tokens", tokens, environment={"ZTSERVE_CORS_ORIGINS": PAGE})


def test_a_preflight_request_needs_no_token(guarded):
    assert preflight(guarded, model_path("m"))["Access-Control-Allow-Origin"] == PAGE


def test_a_page_can_read_that_it_needs_a_token(guarded):
    answer = get(guarded, model_path("m"), Origin=PAGE)
    assert_problem(answer, 401, "unauthorized")
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert "www-authenticate" in answer["Access-Control-Expose-Headers"].lower()


def test_with_tokens_any_host_may_be_named_but_foreign_pages_still_cannot_write(guarded):
    token = {"Authorization": "Bearer secret"}
    assert ask_as(guarded, "models.example.org", "PUT", model_path("x"), token, SMALL).status == 201
    assert_problem(ask(guarded, "PUT", model_path("x"), {**token, **FOREIGN}, SMALL), 403, "forbidden")
    answer = get(guarded, model_path("m"), Origin=PAGE, **token)
    assert answer.status == 200 and {"authorization", "origin"} <= set(vary_of(answer))
