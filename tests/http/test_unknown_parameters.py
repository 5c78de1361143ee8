"""A parameter that a resource does not have is refused: a slip must not send everything."""

import pytest

from containers import dense, pattern, zt1
from wire import ask, assert_problem, component_path, get, model_path


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(8), dtype="u8")}))
    return share_server(folder, "--writable")


COMPONENT = component_path("m", "w", "data")


@pytest.mark.parametrize("target, near", [
    (COMPONENT + "?slice=0:8&fromat=npy", "format"), (model_path("m") + "?field=shape", "fields"),
    (model_path("m") + "/export?format=zt&matches=a", "match"), ("/version?timeing", "timing"),
])  # fmt: skip
def test_the_nearest_name_is_suggested(server, target, near):
    problem = assert_problem(get(server, target), 400, "invalid-request")
    assert problem["detail"].endswith(f"did you mean {near}?")


@pytest.mark.parametrize("target", [
    COMPONENT + "?=3", pytest.param(COMPONENT + "?" + "x" * 5000, id="long"), COMPONENT + "?Slice=0:8",
    model_path("m") + "/objects/w?slice=0", "/v1/blobs/sha256/" + "0" * 64 + "?x", "/openapi.json?x",
])  # fmt: skip
def test_what_no_resource_has_is_refused(server, target):
    assert_problem(get(server, target), 400, "invalid-request")


@pytest.mark.parametrize("query", ["pretty=true&pretty=false", "attributes=0&attributes=0"])
def test_a_switch_is_given_once(server, query):
    assert_problem(get(server, model_path("m") + "?" + query), 400, "invalid-request")


@pytest.mark.parametrize("target", [
    "/v1/models?limit=3&limit=4", "/v1/models?prefix=a&prefix=a", model_path("m") + "?prefix=a&prefix=b",
    model_path("m") + "?fields=shape&fields=format", model_path("m") + "/export?format=zt&prefix=a&prefix=b",
])  # fmt: skip
def test_what_names_one_thing_is_given_once(server, target):
    problem = assert_problem(get(server, target), 400, "invalid-request")
    assert "must be given once" in problem["detail"]


@pytest.mark.parametrize("query", ["attributes=maybe", "attributes"])
def test_a_switch_that_turns_off_is_true_or_false(server, query):
    problem = assert_problem(get(server, model_path("m") + "?" + query), 400, "invalid-request")
    assert "attributes must be true or false" in problem["detail"]
    assert get(server, model_path("m") + "?pretty").status == 200


@pytest.mark.parametrize(
    "method, target",
    [
        ("PUT", model_path("new") + "?force"),
        ("DELETE", model_path("m") + "?recursive=1"),
        ("POST", "/v1/resumable?model=x"),
        ("PUT", "/v1/uploads/" + "0" * 32 + "/objects/w/data?shapes=3"),
    ],
)
def test_writes_refuse_them_before_anything_is_written(server, folder, method, target):
    before = sorted(folder.iterdir())
    fields = {"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Metadata": "model eA=="} if "resumable" in target else {}
    body = b"{}" if method == "PUT" or "uploads" in target else None
    assert ask(server, method, target, fields, body).status in (400, 404)
    assert sorted(folder.iterdir()) == before
    assert get(server, model_path("m")).status == 200


@pytest.mark.parametrize("target", ["/files/m.zt?x=1&slice=2", "/ui/m/objects?x", "/healthz?probe=1", "/metrics?collect=http"])
def test_files_pages_and_probes_ignore_them(server, target):
    assert get(server, target).status == 200


@pytest.mark.parametrize("target", [COMPONENT + "?&&", COMPONENT + "?sl%69ce=0:2", "/v1/models?pretty&timing=1"])
def test_what_a_resource_has_is_taken(server, target):
    assert get(server, target).status == 200


def test_a_server_that_takes_no_writes_says_that_first(share_server, folder):
    assert_problem(ask(share_server(folder), "PUT", model_path("new") + "?force", body=b"x"), 403, "read-only")
