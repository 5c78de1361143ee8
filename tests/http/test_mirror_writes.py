"""Uploads beside a mirror: upstream neither hears of them nor has to answer."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers import dense, zt1
from mock_hub import MockHub
from pull_through import fetch
from wire import ask, eventually, get

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


def test_an_upload_is_not_hidden_by_a_repository_that_is_being_looked_up(upstream, mirror_of):
    """Nor does upstream's file take its place."""
    upstream.add("mine/new", {"config.json": b"{}\n", "f.txt": b"of upstream\n"})
    server = mirror_of(upstream.endpoint, arguments=["--writable"])
    goes_on = threading.Event()

    def wait(request, handler):
        goes_on.wait(600)
        return handler.forward(request)

    waiting = upstream.meddle(wait, "tree")
    with ThreadPoolExecutor(1) as pool:
        try:
            answer = pool.submit(fetch, server, "/files/mine/new/config.json")
            eventually(lambda: waiting.used)
            assert ask(server, "PUT", "/files/mine/new/f.txt", {}, b"mine\n").status == 201
        finally:
            goes_on.set()
        assert answer.result().status == 404
    assert get(server, "/files/mine/new/f.txt").body == b"mine\n"
    assert ask(server, "PUT", "/files/mine/new/g.txt", {}, b"mine too\n").status == 201
