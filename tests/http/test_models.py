"""GET /v1/models: which files are models, in what order, and page by page."""

import os
import re

import pytest

from containers import dense, pattern, zt1, zt2, zt2_data_shard
from wire import assert_problem, eventually, get, model_path

UTC_SECONDS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
MODELS = ["A", "a", "a-1", "a.b", "b", "deep/er/model", "deep/model", "org/Llama-3-8B", "z_9"]


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture(scope="module")
def server(folder, share_server, tmp_path_factory):
    file = zt1({"w": dense(pattern(64)), "x": dense(pattern(8))})
    for name in MODELS:
        write(folder / f"{name}.zt", file)
    write(folder / "bad.zt", b"this is not a tensor container")
    write(folder / "two.zt", zt2({"w": dense(b"12345678")}))
    write(folder / "shard.zt", zt2_data_shard())
    write(folder / "a.safetensors", b"shadowed, and not even a container")
    for left_out in (".hidden.zt", ".folder/inside.zt", "tab\tbed.zt", "del\x7f.zt", "plain.txt", "none"):
        write(folder / left_out, file)
    write(folder / ("n" * 251 + ".zt"), file)
    (folder / "folder.zt").mkdir()
    os.mkfifo(folder / "pipe.zt")
    outside = tmp_path_factory.mktemp("outside")
    write(outside / "secret.zt", file)
    (folder / "leak.zt").symlink_to(outside / "secret.zt")
    (folder / "leakdir").symlink_to(outside)
    (folder / "dangling.zt").symlink_to(folder / "nothing.zt")
    (folder / "loop").symlink_to(folder)
    return share_server(folder)


def listing(server, query=""):
    answer = get(server, f"/v1/models{query}")
    assert answer.status == 200, answer
    return answer.json()


def names(server, query=""):
    return [model["name"] for model in listing(server, query)["models"]]


def everything(server):
    return [name for name in names(server, "?limit=1000") if not name.startswith(("loop/", "n"))]


def test_listing_has_exactly_the_models_in_bytewise_order(server):
    assert everything(server) == sorted([*MODELS, "bad", "two"])


@pytest.mark.parametrize("name", ["leak", "leakdir/secret", "dangling", "pipe", "folder", "shard", "plain"])
def test_a_file_that_is_not_a_model_is_not_found(server, name):
    assert_problem(get(server, model_path(name)), 404, "model-not-found")


@pytest.mark.parametrize("name", [".folder/inside", "tab\tbed", "c1\x85", "../root/a", "a/"])
def test_names_that_no_model_can_have_are_refused(server, name):
    assert_problem(get(server, model_path(name)), 400, "invalid-name")


def test_an_entry_has_the_documented_members(server, folder):
    (entry,) = listing(server, "?prefix=two")["models"]
    assert set(entry) == {"name", "format", "version", "size", "objects", "parameters", "modified", "etag", "href"}
    assert (entry["name"], entry["format"], entry["version"]) == ("two", "zt", "2")
    assert (entry["size"], entry["objects"]) == ((folder / "two.zt").stat().st_size, 1)
    assert UTC_SECONDS.match(entry["modified"])
    assert entry["href"] == "/v1/models/two"
    assert get(server, entry["href"])["ETag"] == entry["etag"]


def test_unreadable_file_is_listed_with_its_error(server):
    (entry,) = listing(server, "?prefix=bad")["models"]
    assert entry["version"] is None and entry["objects"] is None
    assert set(entry["error"]) == {"code", "detail"}
    assert entry["error"]["code"] == "invalid-model"
    assert entry["error"]["detail"]
    assert_problem(get(server, "/v1/models/bad"), 422, "invalid-model")


@pytest.mark.parametrize("prefix", ["a", "deep%2F", "nothing"])
def test_prefix_selects(server, prefix):
    plain = prefix.replace("%2F", "/")
    expected = [name for name in sorted([*MODELS, "bad", "two"]) if name.startswith(plain)]
    found = names(server, f"?limit=1000&prefix={prefix}")
    assert [name for name in found if not name.startswith(("loop/", "n"))] == expected


@pytest.mark.parametrize("limit", [1, 5, 1000])
def test_pages_follow_one_another_to_the_end(server, limit):
    found, cursor, pages = [], "", 0
    while True:
        page = listing(server, f"?limit={limit}{cursor}")
        assert len(page["models"]) <= limit
        assert page["models"]
        found += [model["name"] for model in page["models"]]
        pages += 1
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert found == names(server, "?limit=1000")
    assert pages == -(-len(found) // limit)


def test_pages_keep_to_the_prefix(server):
    first = listing(server, "?prefix=a&limit=2")
    second = listing(server, f"?prefix=a&limit=2&cursor={first['next']}")
    assert [model["name"] for model in first["models"] + second["models"]] == ["a", "a-1", "a.b"]
    assert second["next"] is None


def test_default_limit_is_100(start_server, tmp_path):
    file = zt1({})
    for index in range(130):
        (tmp_path / f"m{index:03}.zt").write_bytes(file)
    server = start_server(tmp_path)
    page = listing(server)
    assert len(page["models"]) == 100 and page["next"] is not None
    assert names(server, f"?cursor={page['next']}") == [f"m{index:03}" for index in range(100, 130)]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=%00", "prefix=%ED%A0%80"])
def test_senseless_parameters_are_refused(server, query):
    assert_problem(get(server, f"/v1/models?{query}"), 400, "invalid-request")


def test_match_selects_by_globs(server):
    every = names(server, "?limit=1000")
    assert names(server, "?match=a*&limit=1000") == [name for name in every if name.startswith("a")]
    assert names(server, "?match=a&match=tw?") == ["a", "two"]
    assert names(server, "?match=*&prefix=tw") == ["two"]
    assert names(server, "?match=no*such") == []
    first = listing(server, "?match=[!x]*&limit=1")
    rest = names(server, f"?match=[!x]*&limit=1000&cursor={first['next']}")
    assert [first["models"][0]["name"], *rest] == [name for name in every if not name.startswith("x")]
    assert_problem(get(server, "/v1/models?match=[a"), 400, "invalid-request")


def test_a_shadowed_file_is_logged_and_not_served(server):
    eventually(lambda: any("shadow" in line and "safetensors" in line for line in server.log_lines))
    assert get(server, "/v1/models/a").json()["source"]["format"] == "zt"


@pytest.mark.parametrize("path", [".folder/inside.zt", "leak.zt", "leakdir/secret.zt", ".ztserve", "pipe.zt"])
def test_files_outside_the_root_are_not_served(server, path):
    answer = get(server, f"/files/{path}")
    assert answer.status in (400, 404), answer
    assert b"secret" not in answer.body or path.encode() in answer.body
