"""Who may do what: tokens, scopes, and globs of models, on every route that the server describes."""

import base64
import hashlib
import json

import pytest

from clients import Client, write_tokens
from containers import dense, dense_in_shard, pattern, shard_entry, zt1, zt2, zt2_data_shard
from tus import PIECE, TUS, metadata
from wire import assert_problem, ask, component_path, get, model_path, talk

CHALLENGE = 'Bearer realm="ztserve"'
SECRET = pattern(3000, seed=81)
OWN = pattern(2000, seed=82)
SCOPES = ("read", "write", "admin")


def model(data):
    return zt1({"t": dense(data)})


READER = Client("reader", "read")
WRITER = Client("writer", "write")
ADMIN = Client("admin", "admin")
TEAM = Client("team", "write", "team/*", "shared?")
NOBODY = Client("nobody", "read")
TEAM_ADMIN = Client("team-admin", "admin", "team/*")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "tokens"
    return write_tokens(path, READER, WRITER, ADMIN, TEAM, TEAM_ADMIN)


@pytest.fixture(scope="module")
def server(folder, tokens, share_server):
    (folder / "team").mkdir()
    (folder / "other").mkdir()
    (folder / "team/own.zt").write_bytes(model(OWN))
    (folder / "other/secret.zt").write_bytes(model(SECRET))
    (folder / "shared1.zt").write_bytes(model(OWN))
    return share_server(folder, "--writable", "--tokens", tokens)


# --- who ---


def assert_unauthorized(answer, challenge):
    assert_problem(answer, 401, "unauthorized")
    assert answer["WWW-Authenticate"] == challenge
    assert answer["Cache-Control"] == "no-store"


def test_requests_without_a_token_are_challenged(server):
    assert_unauthorized(get(server, "/v1/models"), CHALLENGE)


def test_requests_with_a_wrong_token_learn_that_it_is_invalid(server):
    assert_unauthorized(NOBODY.get(server, "/v1/models"), f'{CHALLENGE}, error="invalid_token"')
    half = Client("half", "read")
    half.token = READER.token[:-1]
    assert_unauthorized(half.get(server, "/v1/models"), f'{CHALLENGE}, error="invalid_token"')


@pytest.mark.parametrize("value", ["Bearer", "Bearer a b", "{token}", "Basic {token}"])
def test_malformed_credentials_are_refused(server, value):
    answer = get(server, "/v1/models", Authorization=value.format(token=READER.token))
    assert_problem(answer, 401, "unauthorized")
    assert answer["WWW-Authenticate"].startswith(CHALLENGE)


def test_repeated_credentials_are_refused_even_if_they_are_the_same(server):
    field = f"Authorization: Bearer {READER.token}\r\n"
    target = "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    assert talk(server, f"{target}{field}\r\n".encode()).startswith(b"HTTP/1.1 200")
    assert talk(server, f"{target}{field}authorization: bearer x\r\n\r\n".encode()).startswith(b"HTTP/1.1 401")


def test_a_token_in_the_query_is_none(server):
    assert_unauthorized(get(server, f"/v1/models?access_token={READER.token}"), CHALLENGE)


def test_unknown_paths_and_methods_do_not_show_themselves_to_strangers(server):
    for method, target in (("GET", "/nothing"), ("POST", "/v1/models"), ("GET", "/v1/models/other%2Fsecret"),
                           ("GET", "/v1/models/missing"), ("BREW", "/v1/models"), ("GET", "//"), ("GET", "/v1/models/"),
                           ("GET", "/v1/models/%zz"), ("TRACE", "/nothing")):  # fmt: skip
        answer = ask(server, method, target)
        assert_unauthorized(answer, CHALLENGE)
        assert "Allow" not in answer.fields, answer
    assert_problem(READER.get(server, "/nothing"), 404, "not-found")
    assert_problem(READER.ask(server, "POST", "/v1/models"), 405, "method-not-allowed")


def test_what_everybody_may_know_needs_no_token(server):
    for target in ("/healthz", "/readyz"):
        assert get(server, target).status == 200
        assert NOBODY.get(server, target).status == 200
    assert ask(server, "OPTIONS", "/v1/models").status == 204


def test_answers_to_known_clients_are_private(server):
    for target in (model_path("team/own"), "/v1/models", component_path("team/own", "t"), "/files/team/own.zt"):
        answer = READER.get(server, target)
        assert answer.status == 200, answer
        assert answer["Cache-Control"] == "private, no-cache"
        assert answer["Vary"].split(", ")[-1] == "Authorization"
        again = READER.get(server, target, {"If-None-Match": answer["ETag"]})
        assert again.status == 304 and again["Cache-Control"] == "private, no-cache", again
    blob = READER.get(server, f"/v1/blobs/sha256/{hashlib.sha256(OWN).hexdigest()}")
    assert blob.status == 200 and blob["Cache-Control"] == "private, max-age=31536000, immutable"


# --- scopes, on every route ---

VALUES = {"model": "team%2Fown", "object": "t", "component": "data", "hex": hashlib.sha256(OWN).hexdigest(),
          "path": "team/own.zt", "id": "0" * 32,
          "repo": "team", "name": "v1", "revision": "main/own.zt", "upstream": "up"}  # fmt: skip


def operations(server):
    """Every route that the server describes: path, method, and the scope that it needs (None: none)."""
    paths = READER.get(server, "/openapi.json").json()["paths"]
    for path, item in paths.items():
        for method, operation in item.items():
            needed = [scopes[0] for one in operation["security"] for scopes in one.values()]
            yield path, method.upper(), needed[0] if needed else None


def target_of(path):
    for name, value in VALUES.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, "give the test a value for it"
    return path


NOT_DONE = ("/branch/{revision}", "/tag/{revision}", "/super-squash/{revision}", "/{repo}/settings", "/repos/delete")


def test_every_route_needs_its_scope_and_no_more(server):
    routes = list(operations(server))
    assert len(routes) >= 27
    for path, method, needed in routes:
        # Addresses that are permits, or take a token that the server has made for them.
        if path.startswith(("/api/cas/{session}", "/{repo}.git/info/lfs/objects/{oid}")):
            continue
        # 403 to everybody, since clients print the words of that: there are no branches, for instance.
        if path.endswith(NOT_DONE):
            continue
        if method == "DELETE" and path in ("/v1/models/{model}", "/files/{path}"):
            continue  # have tests of their own
        for client in (None, READER, WRITER, ADMIN):
            fields = {**(client.fields if client else {}), **TUS, "Upload-Metadata": metadata("team/own")}
            status = ask(server, method, target_of(path), fields, b"" if method != "GET" else None).status
            enough = needed is None or (client and SCOPES.index(client.scope) >= SCOPES.index(needed))
            expected = {401} if client is None else {403}
            assert (status in expected) != enough, (path, method, client and client.name, status)


def test_a_scope_that_is_too_small_is_named(server):
    answer = READER.ask(server, "DELETE", model_path("team/own"))
    assert_problem(answer, 403, "forbidden")
    assert answer["WWW-Authenticate"] == f'{CHALLENGE}, error="insufficient_scope", scope="write"'
    answer = WRITER.get(server, "/v1/uploads")
    assert answer["WWW-Authenticate"] == f'{CHALLENGE}, error="insufficient_scope", scope="admin"'


def test_a_refusal_comes_before_the_body(server):
    for field, status in (("", 401), (f"Authorization: Bearer {READER.token}\r\n", 403)):
        head = f"PUT {model_path('team/new')} HTTP/1.1\r\nHost: x\r\n{field}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        answer = talk(server, head.encode())
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
        assert b"100 Continue" not in answer


def test_writing_and_deleting_with_a_token(server, name):
    assert WRITER.ask(server, "PUT", model_path(name), body=model(OWN)).status == 201
    assert_problem(READER.ask(server, "DELETE", model_path(name)), 403, "forbidden")
    assert READER.get(server, model_path(name)).status == 200
    assert WRITER.ask(server, "DELETE", model_path(name)).status == 204


# --- globs ---


def names(answer):
    assert answer.status == 200, answer
    return [one["name"] for one in answer.json()["models"]]


def test_a_listing_shows_only_what_the_client_may_see(server):
    assert {"team/own", "other/secret", "shared1"} <= set(names(READER.get(server, "/v1/models")))
    assert set(names(TEAM.get(server, "/v1/models"))) <= {"team/own", "shared1"}
    assert names(TEAM.get(server, "/v1/models?prefix=other")) == []


def test_pages_are_counted_by_what_is_shown(tmp_path, start_server):
    odd = Client("odd", "read", "*[13579]")
    root = tmp_path / "root"
    root.mkdir()
    for number in range(40):
        (root / f"m{number:02}.zt").write_bytes(model(OWN))
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", odd))
    seen, target, pages = [], "/v1/models?limit=7", 0
    while target:
        page = odd.get(server, target).json()
        assert len(page["models"]) == (7 if pages < 2 else 6)
        seen += [one["name"] for one in page["models"]]
        cursor, pages = page["next"], pages + 1
        if cursor:
            assert base64.urlsafe_b64decode(cursor + "==").decode() in seen
        target = cursor and f"/v1/models?limit=7&cursor={cursor}"
    assert pages == 3 and seen == [f"m{number:02}" for number in range(1, 40, 2)]


def test_a_page_that_only_hidden_models_follow_is_the_last(tmp_path, start_server):
    first = Client("first", "read", "a")
    root = tmp_path / "root"
    root.mkdir()
    for letter in "abc":
        (root / f"{letter}.zt").write_bytes(model(OWN))
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", first))
    page = first.get(server, "/v1/models?limit=1").json()
    assert [one["name"] for one in page["models"]] == ["a"] and page["next"] is None


def test_a_model_outside_the_globs_is_forbidden_whether_it_exists_or_not(server):
    for hidden in ("other/secret", "other/missing", "team", "shared10"):
        for method, rest in (("GET", ""), ("HEAD", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/objects/t"),
                             ("GET", "/objects/t/data"), ("GET", "/export?format=zt"), ("POST", "/verification"),
                             ("POST", "/uploads")):  # fmt: skip
            answer = TEAM.ask(server, method, model_path(hidden) + rest, body=None if method in ("GET", "HEAD") else b"{}")
            assert answer.status == 403, (method, hidden, rest, answer)
            assert "WWW-Authenticate" not in answer.fields
    assert READER.get(server, model_path("other/secret")).status == 200
    assert_problem(TEAM.get(server, model_path("team/missing")), 404, "model-not-found")


def test_a_name_cannot_slip_past_a_glob(server):
    for target in ("/v1/models/team%2F..%2Fother%2Fsecret", "/v1/models/team%2F%2E%2E%2Fother%2Fsecret",
                   "/files/team/../other/secret.zt", "/files/team/%2E%2E/other/secret.zt", "/files/team/./own.zt",
                   "/files/./other/secret.zt", "/files//other/secret.zt", "/files/team%2F..%2Fother/secret.zt"):  # fmt: skip
        assert TEAM.get(server, target).status in (400, 403, 404), target


def test_a_blob_is_found_only_in_models_that_the_client_may_see(server):
    secret = f"/v1/blobs/sha256/{hashlib.sha256(SECRET).hexdigest()}"
    own = f"/v1/blobs/sha256/{hashlib.sha256(OWN).hexdigest()}"
    assert READER.get(server, secret).body == SECRET
    for fields in ({}, {"If-None-Match": f'"{secret[-64:]}"'}, {"Range": "bytes=0-1"}):
        assert_problem(TEAM.get(server, secret, fields), 404, "not-found")
    assert TEAM.get(server, own).body == OWN
    absent = TEAM.get(server, f"/v1/blobs/sha256/{'0' * 64}").json()
    hidden = TEAM.get(server, secret).json()
    assert absent["detail"] == hidden["detail"]


def test_shards_are_seen_with_their_model(tmp_path, start_server):
    one = Client("one", "read", "big")
    two = Client("two", "read", "small", "big-*")
    three = Client("three", "read", "small")
    root = tmp_path / "root"
    root.mkdir()
    (root / "small.zt").write_bytes(model(OWN))
    shard = zt2_data_shard(OWN)
    inside = dense_in_shard("part-1", shard.offsets[0], OWN, digest="xxh3")
    (root / "big.zt").write_bytes(zt2({"w": inside}, fields={"shards": {"part-1": shard_entry(shard)}}))
    (root / "big-part-1.zt").write_bytes(shard)
    (root / "big-sibling.zt").write_bytes(model(SECRET))
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", one, two, three))
    assert one.get(server, component_path("big", "w")).body == OWN
    assert one.get(server, "/files/big-part-1.zt").body == shard
    # By its own name, although not as a part of a model.
    assert two.get(server, "/files/big-part-1.zt").body == shard
    assert three.get(server, "/files/big-part-1.zt").status == 404
    assert one.get(server, "/files/big-sibling.zt").status == 404
    assert one.get(server, "/files/small.zt").status == 404
    assert two.get(server, "/files/big.zt").status == 404


# --- uploads ---


def test_uploads_of_hidden_models_do_not_exist(server, name):
    created = WRITER.ask(server, "POST", f"{model_path(name)}/uploads", body=b"{}")
    assert created.status == 201, created
    path = created["Location"]
    for method, rest in (("GET", ""), ("DELETE", ""), ("PUT", "/objects/t"), ("PUT", "/objects/t/data?dtype=u8&shape=1"),
                         ("POST", "/commit")):  # fmt: skip
        assert_problem(TEAM.ask(server, method, path + rest, body=None if method == "GET" else b"{}"), 404, "upload-not-found")
    assert WRITER.ask(server, "DELETE", path).status == 204


def test_resumable_uploads_of_hidden_models_do_not_exist(server, name):
    fields = {**TUS, "Upload-Length": "9"}
    refused = TEAM.ask(server, "POST", "/v1/resumable", {**fields, "Upload-Metadata": metadata(name)}, b"")
    assert_problem(refused, 403, "forbidden")
    created = WRITER.ask(server, "POST", "/v1/resumable", {**fields, "Upload-Metadata": metadata(name)}, b"")
    assert created.status == 201, created
    path = created["Location"]
    patch = {**TUS, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    assert TEAM.ask(server, "HEAD", path, TUS).status == 404
    assert_problem(TEAM.ask(server, "PATCH", path, patch, b"x"), 404, "upload-not-found")
    assert_problem(TEAM.ask(server, "DELETE", path, TUS), 404, "upload-not-found")
    assert WRITER.ask(server, "HEAD", path, TUS)["Upload-Offset"] == "0"
    assert WRITER.ask(server, "DELETE", path, TUS).status == 204


def create_part(server, client, body=b"x"):
    fields = {**TUS, "Upload-Concat": "partial", "Upload-Length": str(len(body)), "Content-Type": PIECE["Content-Type"]}
    answer = client.ask(server, "POST", "/v1/resumable", fields, body)
    assert answer.status == 201, answer
    return answer["Location"]


def join(server, client, name, *parts):
    fields = {**TUS, "Upload-Metadata": metadata(name), "Upload-Concat": "final;" + " ".join(parts)}
    return client.ask(server, "POST", "/v1/resumable", fields, b"")


def test_a_part_of_a_file_is_its_own_clients_and_theirs_who_may_see_all_models(server):
    own, other = create_part(server, TEAM), create_part(server, WRITER)
    for path, stranger in ((own, TEAM_ADMIN), (other, TEAM)):
        patch = {**PIECE, "Upload-Offset": "1"}
        assert stranger.ask(server, "HEAD", path, TUS).status == 404
        assert_problem(stranger.ask(server, "PATCH", path, patch, b""), 404, "upload-not-found")
        assert_problem(stranger.ask(server, "DELETE", path, TUS), 404, "upload-not-found")
        assert_problem(join(server, stranger, "team/joined", path), 400, "invalid-request")
    for path, client in ((own, TEAM), (own, READER), (own, WRITER), (other, WRITER), (other, ADMIN)):
        assert client.ask(server, "HEAD", path, TUS)["Upload-Offset"] == "1"
    ids = [path.split("/")[-1] for path in (own, other)]
    listed = {one["id"] for one in ADMIN.get(server, "/v1/uploads").json()["uploads"]}
    assert listed >= set(ids)
    assert not set(ids) & {one["id"] for one in TEAM_ADMIN.get(server, "/v1/uploads").json()["uploads"]}
    assert ADMIN.ask(server, "DELETE", own, TUS).status == WRITER.ask(server, "DELETE", other, TUS).status == 204


def test_a_final_upload_needs_the_right_to_its_model(server):
    content = model(OWN)
    parts = [create_part(server, TEAM, content[:100]), create_part(server, TEAM, content[100:])]
    assert_problem(join(server, TEAM, "other/joined", *parts), 403, "forbidden")
    final = join(server, TEAM, "team/joined", *parts)
    assert final.status == 201
    assert TEAM.ask(server, "HEAD", final["Location"], TUS)["Location"] == model_path("team/joined")
    assert TEAM.get(server, model_path("team/joined")).status == 200
    assert TEAM.ask(server, "DELETE", model_path("team/joined")).status == 204


def test_the_owner_of_a_part_survives_a_kill(tmp_path, start_server):
    tokens = write_tokens(tmp_path / "tokens", WRITER, TEAM, TEAM_ADMIN)
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, "--writable", "--tokens", tokens)
    part = create_part(server, TEAM)
    server.kill()
    server = start_server(root, "--writable", "--tokens", tokens)
    assert TEAM_ADMIN.ask(server, "HEAD", part, TUS).status == 404
    assert TEAM.ask(server, "HEAD", part, TUS)["Upload-Offset"] == "1"


def test_the_list_of_uploads_shows_only_what_an_admin_may_see(server, name):
    created = WRITER.ask(server, "POST", f"{model_path(name)}/uploads", body=b"{}")
    listed = [one["model"] for one in ADMIN.get(server, "/v1/uploads").json()["uploads"]]
    assert name in listed
    assert name not in [one["model"] for one in TEAM_ADMIN.get(server, "/v1/uploads").json()["uploads"]]
    assert WRITER.ask(server, "DELETE", created["Location"]).status == 204


def test_bytes_of_hidden_models_cannot_be_copied_by_their_digest(server):
    created = TEAM.ask(server, "POST", f"{model_path('team/copy')}/uploads", body=b"{}")
    assert created.status == 201, created
    path = created["Location"]

    def copy(client, data):
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return client.ask(server, "PUT", f"{path}/objects/x/data?dtype=u8&shape={len(data)}&digest={digest}", body=b"")

    assert_problem(copy(TEAM, SECRET), 404, "component-not-found")
    assert copy(TEAM, OWN).status == 201
    assert copy(WRITER, SECRET).status == 201
    assert TEAM.ask(server, "DELETE", path).status == 204


def test_clients_are_counted_by_name_and_not_by_address(tmp_path, start_server):
    one, two = Client("one", "write"), Client("two", "write")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"upload": {"sessions_per_client": 1}}))
    root = tmp_path / "root"
    root.mkdir()
    tokens = write_tokens(tmp_path / "tokens", one, two)
    server = start_server(root, "--writable", "--tokens", tokens, "--config", config)

    def begin(client):
        return client.ask(server, "POST", f"{model_path('m')}/uploads", body=b"{}").status

    assert [begin(one), begin(one), begin(two), begin(two)] == [201, 429, 201, 429]


# --- clients that people use ---


@pytest.mark.folder("a folder in the way of a model")
def test_asking_about_an_upload_publishes_nothing_for_a_reader(server, folder):
    (folder / "late.zt").mkdir()
    whole = model(OWN)
    fields = {**TUS, **WRITER.fields, "Upload-Metadata": metadata("late"), "Upload-Length": str(len(whole))}
    upload = ask(server, "POST", "/v1/resumable", fields, b"")["Location"]
    piece = {**PIECE, **WRITER.fields, "Upload-Offset": "0"}
    assert_problem(ask(server, "PATCH", upload, piece, whole), 409, "conflict")
    (folder / "late.zt").rmdir()
    shown = ask(server, "HEAD", upload, {**TUS, **READER.fields})
    assert shown.status == 200 and shown["Upload-Offset"] == str(len(whole)) and shown["Location"] is None
    assert not (folder / "late.zt").exists()
    assert get(server, model_path("late"), **READER.fields).status == 404
    shown = ask(server, "HEAD", upload, {**TUS, **WRITER.fields})
    assert shown.status == 200 and shown["Location"] == model_path("late")
    assert get(server, model_path("late"), **READER.fields).status == 200
