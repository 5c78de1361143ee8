"""A model's name whose slashes stand as they are, since proxies and clients undo %2F."""

import re

import pytest

from containers import dense, pattern, zt1
from uploads import SMALL, files_of
from wire import ask, assert_problem, get

MODEL = "/v1/models/meta-llama/Llama-3-8B"
ESCAPED = "/v1/models/meta-llama%2FLlama-3-8B"


@pytest.fixture(scope="module")
def server(folder, share_server):
    small = zt1({"w": dense(pattern(8), dtype="u8")})
    for name in ("meta-llama/Llama-3-8B", "a/b/c/d", "top", "objects", "x/objects/y", "export/verification"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.zt").write_bytes(small)
    return share_server(folder, "--writable", "--log-format", "json")


@pytest.mark.parametrize("rest", ["", "/objects/w", "/objects/w/data", "/export?format=safetensors", "/verification"])
def test_both_spellings_are_one_resource(server, rest):
    plain, escaped = get(server, MODEL + rest), get(server, ESCAPED + rest)
    assert plain.status == escaped.status == 200
    assert plain.body == escaped.body
    assert plain["ETag"] == escaped["ETag"]


@pytest.mark.parametrize("path", ["a/b/c/d", "a%2Fb/c%2Fd", "a/b%2Fc/d", "top", "objects"])
def test_a_name_is_its_first_segment_and_those_up_to_a_resource(server, path):
    answer = get(server, f"/v1/models/{path}/objects/w/data")
    assert (answer.status, answer.body) == (200, pattern(8))


def test_a_name_with_a_segment_of_a_resource_must_be_escaped(server):
    assert get(server, "/v1/models/x%2Fobjects%2Fy").json()["name"] == "x/objects/y"
    assert_problem(get(server, "/v1/models/x/objects/y"), 404, "model-not-found")
    assert get(server, "/v1/models/export%2Fverification").json()["name"] == "export/verification"
    assert get(server, "/v1/models/objects").json()["name"] == "objects"


def test_every_method_takes_them(server, folder):
    put = ask(server, "PUT", "/v1/models/new/in/folder", body=SMALL)
    assert (put.status, put["Location"]) == (201, "/v1/models/new%2Fin%2Ffolder")
    assert "new/in/folder.zt" in files_of(folder)
    assert ask(server, "POST", "/v1/models/new/in/folder/verification").status == 202
    assert ask(server, "POST", "/v1/models/new/other/uploads", body=b"{}").status == 201
    options = ask(server, "OPTIONS", "/v1/models/new/in/folder")
    assert (options.status, options["Allow"]) == (204, "GET, HEAD, PUT, DELETE, OPTIONS")
    assert ask(server, "HEAD", MODEL).status == 200
    assert ask(server, "DELETE", "/v1/models/new/in/folder").status == 204
    assert_problem(get(server, "/v1/models/new/in/folder"), 404, "model-not-found")


def test_routes_of_metrics_and_log_are_those_of_the_escaped_form(server):
    assert get(server, MODEL + "/objects/w/data").status == 200
    metrics = get(server, "/metrics").body.decode()
    routes = set(re.findall(r'route="([^"]*)"', metrics))
    assert "/v1/models/{model}/objects/{object}/{component}" in routes
    assert not any("llama" in route for route in routes)
    assert '"model":"meta-llama/Llama-3-8B"' in server.log.replace('": "', '":"') or "Llama-3-8B" in server.log
