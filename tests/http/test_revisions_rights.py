"""Globs are compared with the plain name: an earlier version is as visible as the model is, on every face."""

import json

import pytest

from clients import Client, write_tokens
from kept import KEEPS, content, head_of, model, publish, revisions_path, set_revision
from wire import ask, assert_problem, get, segment

ADMIN = Client("admin", "admin")
READER = Client("reader", "read", "org/open/*", "plain")
WRITER = Client("writer", "write", "org/open/*", "org/mixed/mine", "plain")
FOLDER = Client("folder", "read", "twin/*")
ROOT = Client("root", "read", "twin")
ALL = [ADMIN, READER, WRITER, FOLDER, ROOT]


@pytest.fixture(scope="module")
def server(folder, share_server, tmp_path_factory):
    tokens = write_tokens(tmp_path_factory.mktemp("tokens") / "tokens", *ALL)
    return share_server(folder, "--writable", "--tokens", tokens, environment=KEEPS)


@pytest.fixture(scope="module")
def commits(server):
    """The last commit of each repository but one, in which every model had other bytes."""
    found = {}
    for seed, name in enumerate(["org/open/weights", "org/secret/weights", "plain", "hidden", "org/mixed/mine", "org/mixed/theirs"], 1):
        found[name] = publish(server, name, seed, ADMIN.fields)
        assert set_revision(server, name, "v1", found[name], fields=ADMIN.fields).status in (200, 201)
        publish(server, name, seed + 100, ADMIN.fields)
    return found


def pinned(name, commit):
    repository, _, rest = name.rpartition("/")
    return f"{repository or name}@{commit}/{rest}"


def reads(name, commit):
    """Requests for the bytes of the first version, by every spelling and face."""
    path = pinned(name, commit)
    repository, rest = path.rsplit("/", 1)
    return {
        "tag": f"/v1/models/{segment(name)}@v1/objects/w/data",
        "commit": f"/v1/models/{segment(name)}@{commit}/objects/w/data",
        "slashes": f"/v1/models/{name}@v1/objects/w/data",
        "pinned": f"/v1/models/{path}/objects/w/data",
        "pinned, escaped": f"/v1/models/{segment(path)}/objects/w/data",
        "pinned, half escaped": f"/v1/models/{path.replace('/', '%2F')}/objects/w/data",
        "manifest": f"/v1/models/{segment(name)}@v1",
        "export": f"/v1/models/{segment(path)}/export?format=npz",
        "verification": f"/v1/models/{segment(path)}/verification",
        "revisions": f"/v1/models/{segment(name)}/revisions",
        "one revision": f"/v1/models/{segment(name)}/revisions/v1",
        "file": f"/files/{path}.zt",
        "file, escaped": f"/files/{path.replace('@', '%40')}.zt",
        "file at revision": f"/files/{name}.zt?revision=v1",
        "folder": f"/files/{repository}/",
        "folder without slash": f"/files/{repository}",
        "s3 object": f"/s3/models/{path}.zt",
        "s3 object, escaped": f"/s3/models/{path.replace('@', '%40')}.zt",
        "s3 list": f"/s3/models?list-type=2&prefix={repository}/",
        "s3 list, encoded": f"/s3/models?list-type=2&prefix={segment(repository + '/')}",
        "s3 level": f"/s3/models?list-type=2&delimiter=/&prefix={repository}/",
        "s3 beginning": f"/s3/models?list-type=2&prefix={repository}/{rest[:2]}",
        "hub file": f"/{repository}/resolve/main/{rest}.zt",
        "hub file at commit": f"/{name.rpartition('/')[0] or name}/resolve/{commit}/{rest}.zt",
        "hub info": f"/api/models/{repository}",
        "hub tree": f"/api/models/{repository}/tree/main",
        "hub info at commit": f"/api/models/{name.rpartition('/')[0] or name}/revision/{commit}",
    }


FORMS = list(reads("org/open/weights", "0" * 40))


def shows(kind, answer):
    if kind.startswith("s3 ") and "list" in kind or kind in ("s3 level", "s3 beginning"):
        return answer.status == 200 and b"<Key>" in answer.body
    return answer.status in (200, 206, 307, 308)


@pytest.mark.parametrize("name", ["org/secret/weights", "hidden"])
@pytest.mark.parametrize("form", FORMS)
def test_a_version_of_a_hidden_model_is_hidden(server, commits, name, form):
    seed = 2 if name == "org/secret/weights" else 4
    for client in (READER, WRITER):
        answer = client.get(server, reads(name, commits[name])[form])
        assert not shows(form, answer), answer
        assert content(seed) not in answer.body
        if form in ("tag", "commit", "slashes", "pinned", "pinned, escaped", "pinned, half escaped", "manifest", "revisions"):
            assert_problem(answer, 403, "forbidden")


@pytest.mark.parametrize("name", ["org/open/weights", "plain"])
@pytest.mark.parametrize("form", [form for form in FORMS if "hub" not in form])
def test_a_version_of_a_visible_model_is_visible(server, commits, name, form):
    answer = READER.get(server, reads(name, commits[name])[form])
    assert shows(form, answer), answer
    if form in ("tag", "commit", "slashes", "pinned", "pinned, escaped", "pinned, half escaped"):
        assert answer.body == content(1 if name == "org/open/weights" else 3)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_token_every_version_is_401(server, commits, form):
    for name in ("org/open/weights", "org/secret/weights"):
        assert get(server, reads(name, commits[name])[form]).status in (401, 403)


def test_refusals_do_not_tell_whether_a_revision_exists(server, commits):
    for form in ("/v1/models/hidden@{}", "/v1/models/hidden/revisions/{}", "/files/hidden.zt?revision={}", "/v1/models/org/secret/weights@{}"):
        known, unknown = (READER.get(server, form.format(revision)) for revision in ("v1", "v9"))
        assert known.status == unknown.status
        assert known.status in (403, 404)
        assert known.json()["code"] == unknown.json()["code"] != "revision-not-found"


def test_listing_of_a_commit_shows_only_what_is_visible(server, commits):
    commit = commits["org/mixed/theirs"]
    listed = WRITER.get(server, f"/files/org/mixed@{commit}/", {"Accept": "application/json"})
    assert [entry["name"] for entry in listed.json()["entries"]] == ["mine.zt"]
    keys = WRITER.get(server, f"/s3/models?list-type=2&prefix=org/mixed@{commit}/").body
    assert b"mine.zt" in keys and b"theirs.zt" not in keys
    assert_problem(WRITER.get(server, f"/v1/models/org/mixed@{commit}/theirs"), 403, "forbidden")
    assert WRITER.get(server, f"/v1/models/org/mixed@{commit}/mine").status == 200


def test_titles_that_may_name_hidden_files_are_hidden(server, commits):
    for path in ("/v1/models/org/mixed/mine/revisions", "/v1/models/org/mixed/mine/revisions/v1"):
        seen = WRITER.get(server, path)
        assert seen.status == 200 and b"theirs" not in seen.body, seen
        assert b"theirs" in ADMIN.get(server, path).body or "v1" in path
    seen = WRITER.get(server, "/api/models/org/mixed/commits/main")
    assert seen.status == 200 and b"theirs" not in seen.body and b"admin" not in seen.body, seen
    assert b"theirs" in ADMIN.get(server, "/api/models/org/mixed/commits/main").body


def test_bytes_of_a_hidden_version_are_not_found_by_their_digest(server, commits):
    component = ADMIN.get(server, "/v1/models/org/secret/weights@v1").json()["objects"]["w"]["components"]["data"]
    blob = f"/v1/blobs/sha256/{component['digest'].removeprefix('sha256:')}"
    assert ADMIN.get(server, blob).status == 200
    assert READER.get(server, blob).status == 404


def test_folder_and_model_of_one_name_are_told_apart(server, commits):
    """Both have the repository "twin"; the models are twin/twin and twin."""
    ask(server, "PUT", "/files/twin/twin.zt", ADMIN.fields, model(50))
    ask(server, "PUT", "/files/twin.zt", ADMIN.fields, model(51))
    inside, outside = (head_of(server, name, ADMIN.fields) for name in ("twin/twin", "twin"))
    assert inside != outside
    for client, commit, seed in ((FOLDER, inside, 50), (ROOT, outside, 51)):
        other = outside if commit == inside else inside
        path = f"/v1/models/twin@{commit}/twin/objects/w/data"
        assert client.get(server, path).body == content(seed)
        assert_problem(client.get(server, path.replace(commit, other)), 403, "forbidden")
        assert client.get(server, f"/files/twin@{commit}/twin.zt").status == 200
        assert client.get(server, f"/files/twin@{other}/twin.zt").status == 404


# --- changes ---


def test_reader_changes_nothing(server, commits):
    for method, path in (("PUT", "v2"), ("DELETE", "v1"), ("PUT", "main")):
        answer = READER.ask(server, method, revisions_path("org/open/weights", path), body=b"{}" if method == "PUT" else None)
        assert_problem(answer, 403, "forbidden")


def test_change_needs_the_whole_repository(server, commits):
    name = "org/mixed/mine"
    for revision, kind in (("v2", "tag"), ("v2", "branch"), ("v1", "tag"), ("main", "branch")):
        assert_problem(set_revision(server, name, revision, commits[name], kind, WRITER.fields), 403, "forbidden")
    assert_problem(WRITER.ask(server, "DELETE", revisions_path(name, "v1")), 403, "forbidden")
    assert ADMIN.get(server, f"/v1/models/{name}@v1").status == 200
    assert set_revision(server, "org/open/weights", "v2", "v1", fields=WRITER.fields).status == 201
    assert set_revision(server, "plain", "v2", "v1", fields=WRITER.fields).status == 201


def test_writer_cannot_write_to_a_commit(server, commits):
    path = pinned("org/open/weights", commits["org/open/weights"])
    for method, target in (("PUT", f"/v1/models/{path}"), ("PUT", f"/files/{path}.zt"), ("PUT", f"/s3/models/{path}.zt")):
        assert WRITER.ask(server, method, target, body=model(9)).status in (400, 403, 409)
    for target in (f"/v1/models/{path}", f"/files/{path}.zt"):
        assert WRITER.ask(server, "DELETE", target).status in (400, 403, 409)
    assert WRITER.get(server, f"/v1/models/{path}/objects/w/data").body == content(1)


def test_purge_needs_the_scope_admin(server):
    first = publish(server, "plain", 7, ADMIN.fields)
    assert_problem(WRITER.ask(server, "DELETE", "/v1/models/plain?purge"), 403, "forbidden")
    assert WRITER.get(server, f"/v1/models/plain@{first}").status == 200
    assert ADMIN.ask(server, "DELETE", "/v1/models/plain?purge").status == 204
    assert_problem(ADMIN.get(server, f"/v1/models/plain@{first}"), 404, "revision-not-found")


def test_commit_names_the_client(server):
    name = "org/open/named"
    assert WRITER.ask(server, "PUT", f"/v1/models/{segment(name)}", body=model(1)).status == 201
    newest = json.loads(ADMIN.get(server, revisions_path(name)).body)["revisions"][0]
    assert newest["client"] == "writer"
