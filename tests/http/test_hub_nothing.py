"""What a Hub has besides, or does besides: refused in words, and by codes that its clients understand."""

import hashlib
import json

import pytest

from containers import dense, pattern, zt1
from wire import ask, assert_problem, get

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})
PATHS = "/api/models/org/m/paths-info/main"


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "org/m/sub").mkdir(parents=True)
    (folder / "org/m/sub/a.txt").write_bytes(b"a")
    (folder / "org/m/config.json").write_bytes(b"{}")
    return share_server(folder)


def assert_code(answer, code):
    assert answer.status == 404 and answer["X-Error-Code"] == code, answer
    assert answer.json()["error"] == answer["X-Error-Message"]


# --- other kinds ---


@pytest.mark.parametrize("kind", ["datasets", "spaces", "kernels"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_other_kinds_of_repositories(server, kind, method):
    body = None if method == "GET" else b"x" * 100_000
    assert_code(ask(server, method, f"/{kind}/o/d", {}, body), "RepoNotFound")
    for rest in ("o/d", "o/d/paths-info/main", "o/d/commit/main", "o/d/branch/b"):
        assert_code(ask(server, method, f"/api/{kind}/{rest}", {}, body), "RepoNotFound")
    for rest in ("o/d.git/info/lfs/objects/batch", "o/d/resolve/main/f"):
        assert_code(ask(server, method, f"/{kind}/{rest}", {}, body), "RepoNotFound")


def test_they_are_told_of_to_who_may_read(tmp_path, start_server):
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"a read {hashlib.sha256(b'a').hexdigest()}\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    target = "/api/datasets/o/d/paths-info/main"
    assert_code(ask(server, "POST", target, {"Authorization": "Bearer a"}, b"{}"), "RepoNotFound")
    assert ask(server, "POST", target, {}, b"{}").status == 401


@pytest.mark.parametrize(
    "method, target, words",
    [
        ("DELETE", "/api/repos/delete", "does not delete repositories"),
        ("POST", "/api/models/org/m/branch/b", "only the branch main"),
        ("DELETE", "/api/models/org/m/branch/b", "only the branch main"),
        ("POST", "/api/models/org/m/tag/main", "no tags"),
        ("DELETE", "/api/models/org/m/tag/v1", "no tags"),
        ("POST", "/api/models/org/m/super-squash/main", "nothing to squash"),
        ("PUT", "/api/models/org/m/settings", "no settings"),
    ],
)
def test_what_is_not_done_is_said(server, method, target, words):
    answer = ask(server, method, target, {}, b"{}")
    assert answer.status == 403 and words in answer["X-Error-Message"], answer
    assert answer.json()["error"] == answer["X-Error-Message"]


# --- whether a client may read ---


def test_whether_a_client_may_read(tmp_path, start_server):
    for name in ("org/m", "org/hidden"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "w.zt").write_bytes(MODEL)
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"a read {hashlib.sha256(b'a').hexdigest()} org/m/*\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    assert get(server, "/api/models/org/m/auth-check", Authorization="Bearer a").status == 200
    assert get(server, "/api/models/org/m/auth-check").status == 401
    for name in ("org/hidden", "org/none"):
        assert_code(get(server, f"/api/models/{name}/auth-check", Authorization="Bearer a"), "RepoNotFound")


# --- trees ---


def test_an_empty_segment_of_a_tree_is_no_entry(server):
    for path in ("sub//a.txt", "/sub", "sub//", "a//b"):
        assert_code(get(server, f"/api/models/org/m/tree/main/{path}"), "EntryNotFound")
    assert [entry["path"] for entry in get(server, "/api/models/org/m/tree/main/sub/").json()] == ["sub/a.txt"]


def test_a_tree_in_pages(server):
    target, found = "/api/models/org/m/tree/main?recursive=true&limit=1", []
    while target:
        answer = get(server, target)
        found.append([entry["path"] for entry in answer.json()])
        target = answer["Link"] and answer["Link"][answer["Link"].index("/api/") : answer["Link"].index(">")]
    assert found == [["config.json"], ["sub"], ["sub/a.txt"]]


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", "1000000", "99999999999999999999999"])
def test_a_limit_that_is_none(server, limit):
    answer = get(server, f"/api/models/org/m/tree/main?recursive=true&limit={limit}")
    assert len(answer.json()) == 3 and answer["Link"] is None


# --- paths ---


def paths_info(server, body, kind="application/json"):
    answer = ask(server, "POST", PATHS, {"Content-Type": kind}, body)
    assert answer.status == 200, answer
    return answer.json()


@pytest.mark.parametrize("value, is_true", [(True, True), ("True", True), ("true", True), ("1", True), ("False", False), ("", False), (None, False)])
def test_a_boolean_may_be_text(server, value, is_true):
    (entry,) = paths_info(server, json.dumps({"paths": ["config.json"], "expand": value}).encode())
    assert ("lastCommit" in entry) == is_true


def test_a_path_is_answered_once(server):
    expected = ["sub", "config.json", "sub/a.txt"]
    asked = ["sub", "config.json", "sub", "sub/a.txt", "none", "config.json"]
    assert [entry["path"] for entry in paths_info(server, json.dumps({"paths": asked}).encode())] == expected
    form = "&".join(f"paths={path}" for path in asked).encode()
    assert [entry["path"] for entry in paths_info(server, form, "application/x-www-form-urlencoded")] == expected


@pytest.mark.parametrize("values", [[0] * 20_000, [[]] * 5_000], ids=["values", "lists"])
def test_a_json_body_of_very_many_values_is_refused(server, values):
    body = json.dumps({"paths": ["config.json"], "more": values}).encode()
    answer = ask(server, "POST", PATHS, {"Content-Type": "application/json"}, body)
    assert_problem(answer, 400, "invalid-request")


def test_names_of_files_have_any_characters(server):
    names = ["config.json", "a,b[{" * 50] + [f"[{number}]" for number in range(9000)]
    assert [entry["path"] for entry in paths_info(server, json.dumps({"paths": names}).encode())] == ["config.json"]
