"""Every problem on the paths of the Hub's clients has its text where they look for it: in the member `error`, and in
X-Error-Message."""

import pytest

from clients import Client, write_tokens
from wire import ask, connect, get, read_until_closed, talk

READER = Client("reader", "read", "org/*")
WRITER = Client("writer", "write")
STRANGER = Client("stranger", "read")
VALUES = {"repo": "org/model", "revision": "main/config.json", "path": "some/thing", "oid": "0" * 64, "part": "1",
          "session": "0" * 32, "hash": "0" * 64}  # fmt: skip
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH")
COMMIT = "/api/models/org/model/commit/main"


@pytest.fixture(scope="module")
def server(folder, share_server, tmp_path_factory):
    (folder / "org/model").mkdir(parents=True)
    (folder / "org/model/config.json").write_bytes(b"{}")
    tokens = tmp_path_factory.mktemp("access") / "tokens"
    return share_server(folder, "--writable", "--tokens", write_tokens(tokens, READER, WRITER))


@pytest.fixture(scope="module")
def described(server):
    """{path: {method: the scope that it needs; None: none}} of the Hub's paths."""
    paths = WRITER.get(server, "/openapi.json").json()["paths"]
    hub = {path: item for path, item in paths.items() if all("hub" in one["tags"] for one in item.values())}
    assert len(hub) >= 25
    return {
        path: {method.upper(): [one["token"][0] for one in operation["security"] if "token" in one] for method, operation in item.items()}
        for path, item in hub.items()
    }  # fmt: skip


def target_of(path):
    for name, value in VALUES.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, "give the test a value for it"
    return path


def assert_shown(answer, *statuses):
    """The text is the same in all places; gives it."""
    assert answer.status in statuses, answer
    problem = answer.json()
    assert problem["detail"] and problem["error"] == problem["detail"], answer.body
    assert answer["X-Error-Message"] == "".join(letter if " " <= letter <= "~" else "?" for letter in problem["detail"])
    return problem["detail"]


def body_of(method):
    return None if method in ("GET", "HEAD") else b""


@pytest.mark.parametrize("client, said", [(None, "send a token"), (STRANGER, "not valid")], ids=["none", "wrong"])
def test_clients_that_are_not_known(server, described, client, said):
    for path, operations in described.items():
        for method, scopes in operations.items():
            answer = ask(server, method, target_of(path), client.fields if client else {}, body_of(method))
            if scopes:
                assert said in assert_shown(answer, 401), path
                assert answer["WWW-Authenticate"].startswith("Bearer")
            elif answer.status >= 400:
                assert_shown(answer, 400, 401, 403, 404)


def test_a_scope_that_is_too_small(server, described):
    count = 0
    for path, operations in described.items():
        for method, scopes in operations.items():
            if scopes == ["write"]:
                answer = READER.ask(server, method, target_of(path), body=body_of(method))
                assert assert_shown(answer, 403) == "this request needs the scope write"
                assert 'scope="write"' in answer["WWW-Authenticate"]
                count += 1
    assert count >= 6


def test_a_method_that_is_not_allowed(server, described):
    for path, operations in described.items():
        for method in METHODS:
            if method in operations or (method == "HEAD" and "GET" in operations):
                continue
            answer = WRITER.ask(server, method, target_of(path), body=body_of(method))
            assert answer.status == 405 and answer["X-Error-Message"] and "Allow" in answer.fields, (method, path)
            if method != "HEAD":
                assert_shown(answer, 405)


def test_head_has_the_field_too(server, described):
    for path in (path for path, operations in described.items() if "GET" in operations):
        answers = [ask(server, method, target_of(path)) for method in ("HEAD", "GET")]
        assert answers[0].status == answers[1].status >= 400 and answers[0].body == b""
        assert answers[0]["X-Error-Message"] == answers[1].json()["error"]


def test_refusals_of_bodies(server):
    coded = WRITER.ask(server, "POST", COMMIT, {"Content-Encoding": "gzip"}, b"x")
    assert "Content-Encoding" in assert_shown(coded, 415)
    for target in ("/api/repos/create", "/api/models/org/model/preupload/main", "/org/model.git/info/lfs/objects/batch"):
        huge = WRITER.ask(server, "POST", target, {"Content-Type": "application/json", "Content-Length": str(1 << 40)})
        assert_shown(huge, 413)
    assert_shown(WRITER.ask(server, "POST", "/api/validate-yaml", {"Content-Length": str(1 << 40)}), 413)


def test_refusals_before_the_path_is_looked_at(server):
    many = {f"X-{number}": "x" for number in range(120)}
    assert "header fields" in assert_shown(WRITER.get(server, "/api/models", many), 431)
    assert_shown(WRITER.get(server, "/org/model/resolve/main/" + "x" * 9000), 414)
    assert_shown(WRITER.ask(server, "BREW", "/api/models"), 501)
    assert_shown(WRITER.get(server, "/org/model/resolve/main//config.json"), 400, 404)
    double = "GET /api/models HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
    assert b"\r\nX-Error-Message: " in talk(server, double.encode())


def test_refusals_of_files(server):
    path = "/org/model/raw/main/config.json"
    leads_to = READER.get(server, path)["Location"] or path
    assert "ETag" in assert_shown(READER.get(server, leads_to, {"If-Match": '"other"'}), 412)
    assert "2 bytes" in assert_shown(READER.get(server, leads_to, {"Range": "bytes=7-"}), 416)


def test_a_body_that_stops(start_server, tmp_path):
    tokens = write_tokens(tmp_path / "tokens", WRITER)
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, "--writable", "--tokens", tokens, environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2"})
    head = f"POST {COMMIT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {WRITER.token}\r\nContent-Length: 1000\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(head.encode() + b'{"key"')
        received = read_until_closed(connection)
    fields, body = received.split(b"\r\n\r\n", 1)
    assert fields.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nX-Error-Message: the body took too long" in fields
    assert b'"error":"the body took too long, or arrived too slowly"' in body


def test_other_paths_have_neither(server):
    for target in ("/v1/models", "/files/org/model/none", "/none"):
        for client in (STRANGER, WRITER):
            answer = client.get(server, target)
            if answer.status >= 400:
                assert "error" not in answer.json() and "X-Error-Message" not in answer.fields, answer
    assert get(server, "/healthz").status == 200
