"""Models and files at a revision, the list of revisions, and changes of branches and tags."""

import json
from urllib.parse import quote

import pytest

from containers import pattern
from joined import safetensors
from kept import KEEPS, assert_content, component, content, head_of, model, publish, revisions, revisions_path, set_revision
from uploads import put
from wire import ask, assert_problem, at_once, get, head, segment

NAME = "org/model/weights"
FILE = "/files/org/model/weights.zt"


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment=KEEPS)


@pytest.fixture(scope="module")
def commits(server):
    """Three versions of a model in a folder; v1 is the first, feature/x the second."""
    made = [publish(server, NAME, seed) for seed in (1, 2, 3)]
    assert set_revision(server, NAME, "v1", made[0]).status == 201
    assert set_revision(server, NAME, "feature/x", made[1], "branch").status == 201
    return made


@pytest.fixture(scope="module")
def tiny(server):
    """Two versions of a model in the root."""
    made = [publish(server, "tiny", seed) for seed in (1, 2)]
    assert set_revision(server, "tiny", "v1", made[0]).status == 201
    return made


# --- models ---


def test_tag_branch_and_commit_lead_to_their_version(server, commits):
    for revision, seed in (("v1", 1), ("feature/x", 2), ("main", 3), ("refs/tags/v1", 1), *zip(commits, (1, 2, 3))):
        answer = get(server, component(NAME, revision))
        assert (answer.status, answer.body) == (200, content(seed)), revision
        assert answer["ZT-Commit"] == commits[seed - 1]
    assert_content(server, component(NAME), 3)


def test_model_in_the_root_has_revisions(server, tiny):
    assert_content(server, component("tiny", "v1"), 1)
    assert_content(server, component("tiny", tiny[0]), 1)
    assert_content(server, component("tiny"), 2)
    assert get(server, "/v1/models/tiny@v1").json()["name"] == f"tiny@{tiny[0]}/tiny"


def test_every_resource_has_the_revision(server, commits):
    manifest = get(server, f"/v1/models/{segment(NAME)}@v1")
    assert (manifest.status, manifest["ZT-Commit"]) == (200, commits[0])
    base = f"/v1/models/{NAME}@v1"
    for path in ("", "/objects/w", "/objects/w/data?slice=0:8", "/objects/w/data/statistics", "/objects/w/data/preview", "/verification"):
        answer = get(server, base + path)
        assert (answer.status, answer["ZT-Commit"]) == (200, commits[0]), path
    first = get(server, base + "/export?format=safetensors").body
    assert content(1) in first
    started = ask(server, "POST", base + "/verification")
    assert (started.status, started["ZT-Commit"]) == (202, commits[0])


def test_manifest_leads_back_to_the_same_bytes(server, commits):
    manifest = get(server, f"/v1/models/{NAME}@v1").json()
    pinned = f"org/model@{commits[0]}/weights"
    assert manifest["name"] == pinned
    href = manifest["objects"]["w"]["components"]["data"]["href"]
    assert "@" not in href
    assert_content(server, href, 1)
    assert get(server, manifest["source"]["href"]).body == model(1)
    assert get(server, f"/v1/models/{segment(pinned)}").json() == manifest
    assert get(server, f"/v1/models/{pinned}").json() == manifest
    assert get(server, f"/v1/models/org%2Fmodel@{commits[0]}%2Fweights").json() == manifest
    assert get(server, f"/v1/models/{pinned}")["ZT-Commit"] == commits[0]


def test_answers_follow_a_branch_that_moves(server, name):
    first, second = (publish(server, name, seed) for seed in (1, 2))
    assert set_revision(server, name, "moving", first, "branch").status == 201
    for _ in range(3):
        assert_content(server, component(name, "moving"), 1)
    assert set_revision(server, name, "moving", second, "branch").status == 200
    assert_content(server, component(name, "moving"), 2)


def test_revision_without_the_model_is_404(server, commits):
    publish(server, "org/model/later", 1)
    assert_problem(get(server, "/v1/models/org/model/later@v1"), 404, "model-not-found")


@pytest.mark.parametrize("revision", ["v9", "0" * 40, "refs%2Fheads%2Fv1", "..", "%00"])
def test_unknown_revision_is_404_in_words(server, commits, revision):
    answer = get(server, f"/v1/models/{NAME}@{revision}")
    if revision == "%00":
        assert_problem(answer, 400, "invalid-name")
    else:
        assert_problem(answer, 404, "revision-not-found")
        assert "branch, tag or kept commit" in answer.json()["detail"]


def test_revision_of_an_unknown_model_is_404(server):
    assert_problem(get(server, "/v1/models/nowhere@v1"), 404, "revision-not-found")


@pytest.mark.parametrize("name", ["../secret@v1", ".hidden@v1", "a//b@v1"])
def test_bad_name_at_a_revision_is_400(server, name):
    assert_problem(get(server, f"/v1/models/{name.replace('/', '%2F')}"), 400, "invalid-name")


@pytest.mark.parametrize("method, path", [("PUT", ""), ("DELETE", ""), ("POST", "/uploads"), ("PUT", "/revisions/v2")])
def test_writing_to_a_revision_is_refused_in_words(server, commits, method, path):
    answer = ask(server, method, f"/v1/models/{NAME}@v1{path}", body=model(9) if method != "DELETE" else None)
    assert_problem(answer, 409, "conflict")
    assert "revision" in answer.json()["detail"]
    assert_content(server, component(NAME), 3)


def test_model_keeps_its_revision_when_it_is_deleted(server, name):
    first = publish(server, name, 1)
    assert ask(server, "DELETE", f"/v1/models/{name}").status == 204
    assert_problem(get(server, f"/v1/models/{name}"), 404, "model-not-found")
    assert_content(server, component(name, first), 1)


def test_commits_are_not_in_the_listing(server, commits):
    assert_content(server, component(NAME, "v1"), 1)
    names = [entry["name"] for entry in get(server, "/v1/models").json()["models"]]
    assert NAME in names
    assert not any("@" in name for name in names)


def test_escaped_at_sign_belongs_to_the_name(start_server, tmp_path):
    (tmp_path / "me@home.zt").write_bytes(model(4))
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    assert_problem(get(server, "/v1/models/me@home"), 404, "revision-not-found")
    manifest = get(server, "/v1/models/me%40home").json()
    assert manifest["name"] == "me@home"
    assert_content(server, manifest["objects"]["w"]["components"]["data"]["href"], 4)


def test_at_sign_belongs_to_the_name_where_nothing_is_kept(start_server, tmp_path):
    (tmp_path / "me@home.zt").write_bytes(model(4))
    (tmp_path / "org").mkdir()
    commit = "0" * 40
    (tmp_path / f"org@{commit}").mkdir()
    (tmp_path / f"org@{commit}" / "w.zt").write_bytes(model(5))
    server = start_server(tmp_path)
    for name, seed in (("me@home", 4), ("me%40home", 4), (f"org@{commit}/w", 5)):
        answer = get(server, f"/v1/models/{name}/objects/w/data")
        assert (answer.status, answer.body) == (200, content(seed))
        assert answer["ZT-Commit"] is None
    assert_problem(get(server, "/v1/models/tiny@v1"), 404, "model-not-found")
    for query in ("", "?wait=1&after="):
        answer = get(server, f"/v1/models/me%40home/revisions{query}")
        assert (answer.status, answer.json()) == (200, {"revisions": [], "next": None})
    answer = get(server, "/files/me@home.zt?revision=v1")
    assert_problem(answer, 404, "revision-not-found")
    assert "versions.keep is not set" in answer.json()["detail"]


# --- files ---


def test_file_is_sent_at_a_revision(server, commits, tiny):
    for target, seed, commit in ((FILE, 1, commits[0]), ("/files/tiny.zt", 1, tiny[0])):
        answer = get(server, f"{target}?revision=v1")
        assert (answer.status, answer.body, answer["ZT-Commit"]) == (200, model(seed), commit)
        part = get(server, f"{target}?revision=v1", Range="bytes=10-19")
        assert (part.status, part.body) == (206, model(seed)[10:20])
    assert get(server, FILE).body == model(3)
    assert get(server, f"{FILE}?revision=feature%2Fx").body == model(2)


def test_files_of_any_kind_have_revisions(server, name):
    path = f"/files/org/{name}/notes.txt"
    assert ask(server, "PUT", path, body=b"one").status == 201
    first = head_of(server, f"org/{name}/weights")
    assert ask(server, "PUT", path, body=b"two").status == 204
    assert get(server, f"{path}?revision={first}").body == b"one"
    assert get(server, f"{path}?revision=main").body == b"two"


@pytest.mark.parametrize("path", ["/files/org/model", "/files/org/model/"])
def test_folder_leads_to_the_folder_of_the_commit(server, commits, path):
    answer = get(server, f"{path}?revision=v1")
    assert (answer.status, answer["ZT-Commit"]) == (307, commits[0])
    assert answer["Location"] == ("../../" if path.endswith("/") else "../") + f"org/model%40{commits[0]}/"
    folder = get(server, f"/files/org/model@{commits[0]}/", Accept="application/json")
    assert [entry["name"] for entry in folder.json()["entries"]] == ["weights.zt"]


def test_unknown_revisions_and_files_are_404(server, commits):
    assert_problem(get(server, f"{FILE}?revision=v9"), 404, "revision-not-found")
    assert_problem(get(server, "/files/org/model/none.txt?revision=v1"), 404, "not-found")
    assert_problem(get(server, "/files/?revision=v1"), 404, "revision-not-found")
    assert_problem(get(server, f"{FILE}?revision="), 400, "invalid-request")
    assert_problem(get(server, "/files/.ztserve/x?revision=v1"), 404, "not-found")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_file_at_a_revision_is_not_written(server, commits, method):
    assert_problem(ask(server, method, f"{FILE}?revision=v1", body=model(9) if method == "PUT" else None), 409, "conflict")
    assert get(server, FILE).body == model(3)


# --- the list ---


def test_list_has_the_youngest_first(server, commits):
    listed = revisions(server, NAME)
    assert [entry["commit"] for entry in listed if entry["commit"] in commits][-3:] == commits[::-1]
    oldest, newest = listed[-1], listed[0]
    assert (oldest["commit"], oldest["parent"], oldest["tags"]) == (commits[0], None, ["v1"])
    assert (newest["branch"], newest["branches"]) == ("main", ["main"])
    assert newest["title"] and newest["time"].endswith("Z")
    assert_content(server, oldest["href"] + "/objects/w/data", 1)


def test_list_comes_in_pages(server, name):
    made = [publish(server, name, seed) for seed in range(1, 6)]
    found, cursor = [], ""
    while cursor is not None:
        answer = get(server, revisions_path(name) + f"?limit=2{cursor and '&cursor=' + cursor}").json()
        assert len(answer["revisions"]) <= 2
        found += [entry["commit"] for entry in answer["revisions"]]
        cursor = answer["next"]
    assert found == made[::-1]


def test_list_of_a_branch_begins_at_its_commit(server, commits):
    assert [entry["commit"] for entry in revisions(server, NAME, "?revision=feature/x")] == commits[1::-1]
    assert [entry["commit"] for entry in revisions(server, f"{NAME}")][-1] == commits[0]
    assert_problem(get(server, revisions_path(NAME) + "?revision=none"), 404, "revision-not-found")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=x", "wait=1", "after=" + "0" * 40, "wait=301&after=" + "0" * 40, "wait=1&after=zz", "wait=1&after=" + "A" * 40, "revisions=x"])
def test_senseless_parameters_are_400(server, commits, query):
    assert_problem(get(server, f"{revisions_path(NAME)}?{query}"), 400, "invalid-request")


# --- branches and tags ---


def test_tag_is_made_read_moved_and_removed(server, name):
    first, second = (publish(server, name, seed) for seed in (1, 2))
    made = set_revision(server, name, "v1", first, message="the first")
    assert (made.status, made["ETag"], made["ZT-Commit"]) == (201, f'"{first}"', first)
    assert {key: made.json()[key] for key in ("name", "kind", "commit", "message")} == {
        "name": "v1",
        "kind": "tag",
        "commit": first,
        "message": "the first",
    }
    shown = get(server, revisions_path(name, "v1"))
    assert (shown.status, shown.json()) == (200, made.json())
    assert head(server, revisions_path(name, "v1"))["ETag"] == f'"{first}"'
    assert set_revision(server, name, "v1", "main").json()["commit"] == second
    assert ask(server, "DELETE", revisions_path(name, "v1")).status == 204
    assert_problem(get(server, revisions_path(name, "v1")), 404, "revision-not-found")
    assert_problem(ask(server, "DELETE", revisions_path(name, "v1")), 404, "revision-not-found")


def test_branch_with_a_slash_is_made_and_removed(server, name):
    first = publish(server, name, 1)
    assert set_revision(server, name, "a/b", first, "branch").json()["kind"] == "branch"
    assert_content(server, component(name, "a/b"), 1)
    assert ask(server, "DELETE", revisions_path(name, "a/b")).status == 204


def test_preconditions_are_about_the_commit(server, name):
    first, second = (publish(server, name, seed) for seed in (1, 2))
    only_new, only_first = {"If-None-Match": "*"}, {"If-Match": f'"{first}"'}
    assert_problem(set_revision(server, name, "v", second, fields=only_first), 412, "precondition-failed")
    assert set_revision(server, name, "v", first, fields=only_new).status == 201
    assert_problem(set_revision(server, name, "v", second, fields=only_new), 412, "precondition-failed")
    assert set_revision(server, name, "v", second, fields=only_first).status == 200
    assert_problem(set_revision(server, name, "v", second, fields=only_first), 412, "precondition-failed")
    assert_problem(ask(server, "DELETE", revisions_path(name, "v"), only_first), 412, "precondition-failed")
    assert ask(server, "DELETE", revisions_path(name, "v"), {"If-Match": f'"{second}"'}).status == 204


def test_moving_main_restores_the_files(server, name):
    path = f"org/{name}/weights"
    first, second = (publish(server, path, seed) for seed in (1, 2))
    assert ask(server, "PUT", f"/files/org/{name}/notes.txt", body=b"notes").status == 201
    restored = set_revision(server, path, "main", first, "branch", message="the second was wrong")
    assert (restored.status, restored.json()["commit"]) == (200, first)
    assert_content(server, component(path), 1)
    assert_problem(get(server, f"/files/org/{name}/notes.txt"), 404, "not-found")
    newest = revisions(server, path)[0]
    assert (newest["commit"], newest["title"], newest["message"]) == (first, f"Restore {first}", "the second was wrong")
    assert_problem(set_revision(server, path, "main", second, "branch", {"If-Match": f'"{second}"'}), 412, "precondition-failed")
    assert set_revision(server, path, "main", second, "branch", {"If-Match": f'"{first}"'}).status == 200
    assert_content(server, component(path), 2)


@pytest.mark.parametrize("parts", [("{}-00001-of-00002", "{}-00002-of-00002"), ("one of {}", "two of {}")], ids=["numbered", "named"])
def test_moving_main_restores_the_parts_of_a_model_in_the_root(server, name, parts):
    name = name.replace("/", "-")
    files = [part.format(name) + ".safetensors" for part in parts]

    def upload(seed):
        for number, file in enumerate(files):
            content = safetensors({f"w{number}": pattern(1000, seed=seed + number)})
            assert ask(server, "PUT", f"/files/{quote(file)}", {}, content).status in (201, 204)
        index = {"metadata": {"seed": seed}, "weight_map": {f"w{number}": file for number, file in enumerate(files)}}
        answer = ask(server, "PUT", f"/files/{name}.safetensors.index.json", {}, json.dumps(index).encode())
        assert answer.status in (201, 204), answer
        return answer["ZT-Commit"]

    first, second = upload(1), upload(10)
    for commit, seed in ((first, 1), (second, 10)):
        assert set_revision(server, name, "main", commit, "branch").status == 200
        for number in range(2):
            for model_name in (name, f"{name}@{commit}"):
                answer = get(server, f"/v1/models/{model_name}/objects/w{number}/data")
                assert answer.status == 200 and answer.body == pattern(1000, seed=seed + number), (model_name, answer)


def test_restoring_a_folder_replaces_no_file_of_another_repository(server, name):
    """Without its config.json, the folder's subfolders are repositories of their own."""
    assert ask(server, "PUT", f"/files/{name}/config.json", body=b"{}").status == 201
    whole = ask(server, "PUT", f"/files/{name}/inside/notes.txt", body=b"earlier")["ZT-Commit"]
    assert ask(server, "DELETE", f"/files/{name}/config.json").status == 204
    assert ask(server, "PUT", f"/files/{name}/inside/notes.txt", body=b"present").status == 204
    assert_problem(set_revision(server, f"{name}/model", "main", whole, "branch"), 409, "conflict")
    assert get(server, f"/files/{name}/inside/notes.txt").body == b"present"


def test_main_stays(server, commits):
    assert_problem(ask(server, "DELETE", revisions_path(NAME, "main")), 409, "conflict")
    assert_problem(set_revision(server, NAME, "main", commits[0], "tag"), 400, "invalid-request")
    assert_content(server, component(NAME), 3)


def test_branch_does_not_hide_a_tag_of_its_name(server, name):
    first = publish(server, name, 1)
    assert set_revision(server, name, "v", first, "tag").status == 201
    assert_problem(set_revision(server, name, "v", first, "branch"), 409, "conflict")


@pytest.mark.parametrize("revision", ["HEAD", "a b", "a..b", "-x~1", "x.lock", "0" * 40, "a" * 256])
def test_names_that_git_forbids_are_400(server, commits, revision):
    assert_problem(set_revision(server, NAME, revision, commits[0]), 400, "invalid-name")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"commit": 1}', b'{"commit": "v1", "kind": "note"}', b'{"commit": "v1", "message": 1}', b'{"commit": "v1", "foo": 1}'])
def test_senseless_bodies_are_400(server, commits, body):
    assert_problem(ask(server, "PUT", revisions_path(NAME, "v2"), body=body), 400, "invalid-request")


def test_unknown_commit_is_404(server, commits):
    assert_problem(set_revision(server, NAME, "v2", "0" * 40), 404, "revision-not-found")
    assert_problem(set_revision(server, "nowhere", "v2", "main"), 404, "revision-not-found")


def test_read_only_server_changes_no_revision(start_server, tmp_path):
    server = start_server(tmp_path, environment=KEEPS)
    assert_problem(set_revision(server, "x", "v1", "main"), 403, "read-only")
    assert_problem(ask(server, "DELETE", revisions_path("x", "v1")), 403, "read-only")


def test_changes_are_409_where_nothing_is_kept(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    answer = set_revision(server, "x", "v1", "main")
    assert_problem(answer, 409, "conflict")
    assert "versions.keep is not set" in answer.json()["detail"]


# --- purging ---


def test_purge_forgets_all_revisions(server, name):
    first = publish(server, name, 1)
    publish(server, name, 2)
    assert ask(server, "DELETE", f"/v1/models/{name}?purge").status == 204
    assert_problem(get(server, component(name, first)), 404, "revision-not-found")
    assert_problem(get(server, revisions_path(name)), 404, "revision-not-found")
    assert_problem(ask(server, "DELETE", f"/v1/models/{name}?purge"), 404, "model-not-found")


def test_removed_model_can_be_purged(server, name):
    first = publish(server, name, 1)
    assert ask(server, "DELETE", f"/v1/models/{name}").status == 204
    assert ask(server, "DELETE", f"/v1/models/{name}?purge").status == 204
    assert_problem(get(server, component(name, first)), 404, "revision-not-found")


def test_purge_gives_the_other_files_a_first_commit(server, name):
    assert ask(server, "PUT", f"/files/{name}/a/notes.txt", body=b"notes").status == 201
    publish(server, f"{name}/a/weights", 1)
    purged = ask(server, "DELETE", f"/v1/models/{quote(name)}%2Fa%2Fweights?purge")
    assert purged.status == 204
    entries = revisions(server, f"{name}/a/x")
    assert [(entry["commit"], entry["parent"]) for entry in entries] == [(purged["ZT-Commit"], None)]
    assert get(server, f"/files/{name}/a/notes.txt?revision=main").body == b"notes"
    assert get(server, f"/files/{name}/a/weights.zt?revision=main").status == 404


def test_main_is_the_folder_before_its_first_commit(start_server, tmp_path):
    (tmp_path / "org/model").mkdir(parents=True)
    (tmp_path / "org/model/weights.zt").write_bytes(model(1))
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    assert_content(server, component("org/model/weights", "main"), 1)
    answer = get(server, "/files/org/model/weights.zt?revision=main")
    assert (answer.status, answer.body, answer["ZT-Commit"]) == (200, model(1), None)
    assert_problem(get(server, component("org/model/none", "main")), 404, "model-not-found")


def test_change_during_a_purge_keeps_its_commit(server, name):
    """It is forgotten only together with the model."""
    for seed in range(30):
        publish(server, name, seed)
        at_once(lambda: ask(server, "DELETE", f"/v1/models/{name}?purge"), lambda: put(server, name, model(100)))
        if get(server, f"/v1/models/{name}").status == 200:
            head = head_of(server, name)
            assert_content(server, component(name, head), 100)


def test_description_has_the_routes(server):
    paths = json.loads(get(server, "/openapi.json").body)["paths"]
    assert {"get", "put", "delete"} <= set(paths["/v1/models/{model}/revisions/{name}"])
