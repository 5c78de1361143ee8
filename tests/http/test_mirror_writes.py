"""Uploads beside a mirror: upstream neither hears of them nor has to answer."""

import json

import pytest

from containers import dense, zt1
from mock_hub import MockHub
from wire import ask, get

MODEL = bytes(zt1({"w": dense(bytes(64))}))
COMMIT = b'{"key":"header","value":{"summary":"x"}}\n{"key":"file","value":{"path":"x.txt","content":"eA==","encoding":"base64"}}\n'
CREATION = json.dumps({"name": "created", "organization": "mine"}).encode()
JSON, LINES = {"Content-Type": "application/json"}, {"Content-Type": "application/x-ndjson"}
UPLOADS = {
    "a model": ("PUT", "/v1/models/mine%2Fa%2Fm", {}, MODEL, 201, "/v1/models/mine%2Fa%2Fm"),
    "a file": ("PUT", "/files/mine/b/f.txt", {"If-None-Match": "*"}, b"f", 201, "/files/mine/b/f.txt"),
    "an object": ("PUT", "/s3/models/mine/c/o.txt", {}, b"o", 200, "/s3/models/mine/c/o.txt"),
    "a repository": ("POST", "/api/repos/create", JSON, CREATION, 200, "/api/models/mine/created"),
    "a commit": ("POST", "/api/models/mine/d/commit/main", LINES, COMMIT, 200, "/api/models/mine/d"),
}  # fmt: skip


@pytest.fixture(params=["there", "away"])
def hub(request):
    hub = MockHub()
    if request.param == "away":
        hub.go_away()
    yield hub
    hub.close()


def test_uploads_ask_no_upstream(hub, start_server, tmp_path):
    server = start_server(tmp_path, "--writable", "--upstream", hub.endpoint)
    counted = hub.counting()
    for kind, (method, target, fields, body, status, place) in UPLOADS.items():
        answer = ask(server, method, target, fields, body)
        assert answer.status == status, (kind, answer)
        assert get(server, place).status == 200, kind
    assert ask(server, "DELETE", "/v1/models/mine%2Fa%2Fm").status == 204
    assert ask(server, "DELETE", "/files/mine/b/f.txt").status == 204
    assert counted.requests == 0, counted
