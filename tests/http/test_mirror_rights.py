"""Local tokens decide who reads what, the upstream's token goes to the upstream only, and no client chooses an address."""

import http.server
import threading

import pytest

import meddler as acts
from clients import Client, write_tokens
from pull_through import MIB, REPO, download, eventually_downloaded, fetch, files_path, resolve_path, safetensors, v1_path
from wire import ask, get

SECRET = "hf_SecretOfTheUpstream0123456789abcdefgh"
FILES = {"config.json": b"{}\n", "model.safetensors": safetensors(3 * MIB)}


# --- local tokens ---


READS = [
    ("hub file", lambda repo: resolve_path(repo, "config.json")),
    ("hub info", lambda repo: f"/api/models/{repo}"),
    ("hub tree", lambda repo: f"/api/models/{repo}/tree/main"),
    ("hub refs", lambda repo: f"/api/models/{repo}/refs"),
    ("file", lambda repo: files_path(repo, "config.json")),
    ("model", lambda repo: v1_path(repo, "model.safetensors")),
    ("s3", lambda repo: f"/s3/models/{repo}/config.json"),
    ("list", lambda repo: f"/files/{repo}/"),
    ("s3 list", lambda repo: f"/s3/models?list-type=2&prefix={repo}/"),
    ("s3 level", lambda repo: f"/s3/models?list-type=2&delimiter=/&prefix={repo}/"),
    ("s3 beginning", lambda repo: f"/s3/models?list-type=2&prefix={repo}"),
]


@pytest.fixture(scope="module")
def reader():
    return Client("reader", "read", "acme/*")


@pytest.fixture(scope="module")
def everybody():
    return Client("all", "read")


@pytest.fixture(scope="module")
def guarded(shared_upstream, share_mirror_of, reader, everybody, tmp_path_factory):
    for repo in (REPO, "secret/model", "acme/there", *(f"secret/other{number}" for number in range(len(READS)))):
        shared_upstream.add(repo, FILES)
    tokens = write_tokens(tmp_path_factory.mktemp("tokens") / "tokens", reader, everybody)
    return share_mirror_of(shared_upstream.endpoint, arguments=["--tokens", tokens])


def shows_nothing(kind, answer):
    """A list of keys is empty instead."""
    return answer.status in (401, 403, 404) or (kind.startswith("s3 ") and answer.status == 200 and b"<Key>" not in answer.body)


@pytest.mark.parametrize("number", range(len(READS)), ids=[name for name, _ in READS])
def test_a_client_cannot_make_the_server_ask_for_a_repository_that_it_may_not_see(guarded, shared_upstream, reader, number):
    """The answer is the same whether upstream has the repository or not."""
    kind, read = READS[number]
    counted = shared_upstream.counting()
    answers = [reader.get(guarded, read(f"secret/{name}{number}")) for name in ("other", "none")]
    assert answers[0].status == answers[1].status and all(shows_nothing(kind, answer) for answer in answers), answers
    assert counted.requests == 0, counted
    assert get(guarded, read("secret/model")).status in (401, 403)
    assert counted.requests == 0, counted


def test_what_others_fetched_is_hidden_from_it(guarded, reader, everybody):
    assert everybody.get(guarded, files_path("secret/model", "config.json")).status == 200
    assert everybody.get(guarded, v1_path("secret/model", "model.safetensors")).status == 200
    for kind, read in READS:
        assert shows_nothing(kind, reader.get(guarded, read("secret/model")))
    assert not any("secret" in one["name"] for one in reader.get(guarded, "/v1/models").json()["models"])
    assert not any("secret" in one["id"] for one in reader.get(guarded, "/api/models").json())


def test_a_client_reads_what_its_globs_allow(guarded, reader):
    assert reader.get(guarded, files_path(REPO, "config.json")).body == FILES["config.json"]
    assert reader.get(guarded, v1_path(REPO, "model.safetensors")).status == 200


def test_tokens_of_clients_are_not_sent_upstream(guarded, shared_upstream, reader, everybody):
    assert reader.get(guarded, files_path("acme/there", "config.json")).status == 200
    for client in (reader, everybody):
        assert not shared_upstream.seen_with(client.token)


# --- the upstream's token ---


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "upstream.token"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def private(upstream, mirror_of, token_file):
    upstream.tokens.add(SECRET)
    upstream.members.add(SECRET)
    upstream.add("acme/private", FILES, is_private=True)
    upstream.add("acme/gated", FILES, is_gated=True)
    return mirror_of(upstream.endpoint, token_file=str(token_file), revalidate_s=1)


def everything_shown(server):
    """What a curious client can read of the server."""
    targets = ["/", "/metrics", "/v1/upstreams", "/readyz", "/healthz", "/v1/models", "/openapi.json", "/api/models", "/ui/"]
    return "".join(str(get(server, target).body) + str(get(server, target).fields) for target in targets)


def test_the_token_opens_private_and_gated_repositories_and_goes_nowhere_else(private, upstream):
    shown = ""
    for repo in ("acme/private", "acme/gated"):
        for path, content in FILES.items():
            got = eventually_downloaded(private, repo, path, content)
            shown += str(got.fields)
    upstream.add("acme/private", {"config.json": b"moved\n"})
    assert upstream.seen_with(SECRET)
    assert not [one for one in upstream.store.seen if SECRET in str(one.request.fields) + one.request.target]
    assert not [one for one in upstream.store.seen if "authorization" in one.request.fields]
    shown += everything_shown(private) + private.log
    for status in (401, 403, 500):
        rule = upstream.meddle(acts.reply(status, b"{}"), "info")
        got = download(private, f"acme/refused{status}", "config.json")
        shown += str(got.fields) + str(got.body)
        upstream.stop(rule)
    upstream.go_away()
    got = download(private, "acme/away", "config.json")
    shown += str(got.fields) + str(got.body) + everything_shown(private) + private.log
    assert SECRET not in shown
    assert SECRET not in "".join(path.read_text(errors="replace") for path in private.root.rglob("*.json"))


def test_a_wrong_token_is_told_in_words(upstream, mirror_of, token_file):
    upstream.add(REPO, FILES)
    server = mirror_of(upstream.endpoint, token_file=str(token_file))
    got = download(server, REPO, "config.json")
    assert got.status == 502 and got.json()["code"] == "upstream-unavailable"
    assert "401" in got.json()["detail"] or "token" in got.json()["detail"]
    assert SECRET not in str(got.body) + server.log


@pytest.fixture
def elsewhere():
    """Another server, which keeps what it was sent."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, dict(self.headers.items())))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_HEAD = do_GET

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    server.seen, server.port = seen, server.server_address[1]
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["info", "tree", "resolve"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_does_not_carry_the_token_to_another_origin(upstream, private, elsewhere, kind, status):
    """The same host with another port is another origin."""
    place = f"http://127.0.0.1:{elsewhere.port}/taken"
    upstream.meddle(acts.reply(status, b"", Location=place), kind)
    download(private, "acme/private", "config.json")
    download(private, "acme/private", "model.safetensors")
    assert SECRET not in str(elsewhere.seen), elsewhere.seen


@pytest.mark.parametrize("kind", ["tree"])
def test_the_next_page_is_not_asked_of_another_origin_with_the_token(upstream, private, elsewhere, kind):
    place = f'<http://127.0.0.1:{elsewhere.port}/taken?cursor=1>; rel="next"'
    upstream.meddle(acts.with_fields(Link=place), kind)
    download(private, "acme/private", "config.json")
    assert SECRET not in str(elsewhere.seen), elsewhere.seen


# --- addresses ---

FORBIDDEN = [
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/", "http://2852039166/x",
    "http://0xa9fea9fe/x", "http://0251.0376.0251.0376/x", "http://169.254.1.1:80/", "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1:70/x", "javascript:1", "http:///x",
    "http://user:password@169.254.169.254/x", "//169.254.169.254/x", "http://127.0.0.1:99999/x", "http://[::1/x", "",
]  # fmt: skip


@pytest.fixture(scope="module")
def redirected(shared_upstream, share_mirror_of):
    server = share_mirror_of(shared_upstream.endpoint)
    yield server
    shared_upstream.stop()


@pytest.mark.parametrize("kind", ["resolve", "info"])
@pytest.mark.parametrize("number", range(len(FORBIDDEN)), ids=FORBIDDEN)
def test_redirects_to_forbidden_addresses_are_refused(redirected, shared_upstream, number, kind):
    repo = f"acme/{kind}{number}"
    # Bytes that are here already would not be asked for.
    shared_upstream.add(repo, {"model.bin": f"{repo}\n".encode() * 1000})
    rule = shared_upstream.meddle(acts.reply(302, b"", Location=FORBIDDEN[number]), kind, when=lambda request: f"/{repo}/" in request.target)
    try:
        got = download(redirected, repo, "model.bin")
        assert rule.used and got.status == 502, got
        assert "the upstream redirects " in got.json()["detail"], got
    finally:
        shared_upstream.stop(rule)


def test_a_client_names_no_address(upstream, mirror_of, elsewhere):
    """Neither by the name of a repository, a revision or a file, nor by a header field."""
    upstream.add(REPO, FILES)
    server = mirror_of(upstream.endpoint)
    host = f"127.0.0.1:{elsewhere.port}"
    targets = [
        resolve_path(REPO, f"http://{host}/x"), resolve_path(REPO, "config.json", f"http://{host}/x"), f"/http://{host}/x/resolve/main/y",
        f"//{host}/x/resolve/main/y", f"/api/models/{host}/x", f"/api/models/x@{host}/y", resolve_path(REPO, "config.json", "../../../x"),
        resolve_path(REPO, "config.json", f"main?x=http://{host}"), f"/{REPO}/resolve/main%0d%0aHost:%20{host}/x",
        f"/api/models/{REPO}/tree/main?cursor=http://{host}/", f"/api/models/{REPO}/tree/main?recursive=true&cursor=..%2f..",
    ]  # fmt: skip
    for target in targets:
        ask(server, "GET", target, {"X-Forwarded-Host": host, "Forwarded": f"host={host}", "Referer": f"http://{host}/"})
    assert elsewhere.seen == []
    for one in upstream.seen:
        assert ".." not in one.request.target and f"//{host}" not in one.request.target, one
        assert host not in one.request.fields.get("host", ""), one
        assert one.request.target.startswith(("/api/models/", f"/{REPO}/resolve/")), one.request.target
    assert fetch(server, resolve_path(REPO, "config.json")).body == FILES["config.json"]
