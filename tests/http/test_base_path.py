"""A server below a path (base_path): requests with and without it, and the addresses that answers hold."""

import json
import re

import pytest

from containers import dense, pattern, zt1
from tus import TUS, metadata
from uploads import SMALL
from wire import ask, assert_problem, get, model_path

BASE = "/some/models"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    (root / "m.zt").write_bytes(zt1({"w": dense(pattern(1000), digest="sha256")}))
    return root


@pytest.fixture(scope="module")
def server(share_server, root, tmp_path_factory):
    settings = tmp_path_factory.mktemp("settings") / "c.json"
    settings.write_text(json.dumps({"base_path": BASE}))
    return share_server(root, "--writable", "--config", str(settings))


@pytest.mark.parametrize("target", ["/v1/models/m?pretty", "/files/m.zt", "/healthz", "/", "/ui/"])
def test_requests_come_with_the_base_path_or_without_it(server, target):
    plain, below = get(server, target), get(server, BASE + target)
    assert plain.status == 200 and (below.status, below.body, below["ETag"]) == (200, plain.body, plain["ETag"])


def test_the_base_path_itself_is_the_root(server):
    assert get(server, BASE).json() == get(server, "/").json()


@pytest.mark.parametrize("target", ["/some/", "/some/modelsv1/models", "/Some/models/v1/models", BASE + BASE + "/v1/models"])
def test_other_paths_are_not_taken_for_it(server, target):
    assert_problem(get(server, target), 404, "not-found")


def test_the_addresses_in_json_begin_with_it(server):
    manifest = get(server, "/v1/models/m").json()
    assert manifest["source"]["href"] == BASE + "/files/m.zt"
    assert manifest["objects"]["w"]["components"]["data"]["href"] == BASE + model_path("m") + "/objects/w/data"
    one = get(server, model_path("m") + "/objects/w").json()
    assert one["components"]["data"]["href"] == BASE + model_path("m") + "/objects/w/data"
    [listed] = get(server, "/v1/models?match=m").json()["models"]
    assert listed["href"] == BASE + model_path("m")
    links = get(server, "/").json()
    assert [links[name] for name in ("models", "openapi", "ui")] == [BASE + "/v1/models", BASE + "/openapi.json", BASE + "/ui/"]


def test_locations_begin_with_it(server):
    put = ask(server, "PUT", BASE + model_path("put"), {}, SMALL)
    assert (put.status, put["Location"]) == (201, BASE + model_path("put"))
    writer = ask(server, "POST", model_path("w") + "/uploads", {}, b"{}")
    assert re.fullmatch(BASE + "/v1/uploads/[0-9a-f]+", writer["Location"])
    assert get(server, writer["Location"]).status == 200
    assert ask(server, "DELETE", writer["Location"]).status == 204
    tus = ask(server, "POST", BASE + "/v1/resumable", {**TUS, "Upload-Length": "5", "Upload-Metadata": metadata("t")}, b"")
    assert re.fullmatch(BASE + "/v1/resumable/[0-9a-f]+", tus["Location"])
    assert ask(server, "DELETE", tus["Location"], TUS).status == 204


def test_the_page_loads_its_files_below_it(server):
    page = get(server, BASE + "/ui/models/m", Accept="text/html")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assert len(addresses) > 5
    for address in addresses:
        if not address.startswith("#"):
            assert address.startswith(BASE + "/") and get(server, address).status == 200, address
    assert page["Content-Security-Policy"] == get(server, BASE + "/", Accept="text/html")["Content-Security-Policy"]
    assert get(server, "/ui/", If_None_Match=page["ETag"]).status == 304


def test_the_page_is_not_coded_below_a_path(server):
    assert get(server, "/ui/", Accept_Encoding="zstd, gzip")["Content-Encoding"] is None
    assert_problem(get(server, "/ui/", Accept_Encoding="zstd, identity;q=0"), 406, "not-acceptable")


def test_tags_differ_from_those_of_another_base_path(server, start_server, root):
    other = start_server(root)
    for target in ("/v1/models/m", "/v1/models", "/ui/"):
        assert get(server, target)["ETag"] != get(other, target)["ETag"]


@pytest.mark.folder("thousands of files, for which a store takes minutes")
def test_the_next_page_of_a_repository_is_below_it(tmp_path, start_server, monkeypatch):
    (tmp_path / "org/model").mkdir(parents=True)
    for number in range(5001):
        (tmp_path / f"org/model/{number:04}").touch()
    monkeypatch.setenv("ZTSERVE_BASE_PATH", BASE)
    server = start_server(tmp_path)
    link = get(server, "/api/models/org/model/tree/main?recursive=true")["Link"]
    assert link.startswith(f"<http://{server.host}:{server.port}{BASE}/api/models/org/model/tree/main?")
    assert len(get(server, link[link.index(BASE) : link.index(">")]).json()) == 1
