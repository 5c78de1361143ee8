"""docs/recipes.md is true: behind its nginx, uploads in several requests stay on the replica that began them."""

import re
from http.client import HTTPConnection

import pytest

import proxies
from server_process import TOP, ServerProcess

import s3_engines
import tus
import wire
import writers
from buckets import BucketServers
from containers import dense, pattern, zt1
from wire import ask, component_path, eventually, get

CLIENTS = [f"127.0.0.{number}" for number in range(2, 10)]
DATA = pattern(3_000_000, seed=1)
WHOLE = zt1({"w": dense(DATA)})
HALF = len(WHOLE) // 2


class Client:
    """One of the proxy's clients, told from others by its address."""

    context = None

    def __init__(self, proxy, address):
        self.host, self.port, self.address = proxy.host, proxy.port, address


def connect_from(target):
    own = getattr(target, "address", "127.0.0.1")
    return HTTPConnection(target.host, target.port, timeout=wire.TIMEOUT_S, source_address=(own, 0))


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    engines = s3_engines.moto()
    serve = BucketServers(ServerProcess, tmp_path_factory.mktemp("replicas"))
    bucket = next(engines).bucket()
    servers = [serve(bucket, "--writable") for _ in range(2)]
    yield servers
    assert [server.stop() for server in servers] == [0, 0]
    next(engines, None)


@pytest.fixture(scope="module")
def proxy(replicas, tmp_path_factory):
    if proxies.program("nginx") is None:
        pytest.skip("skipped: nginx is not installed")
    page = (TOP / "docs" / "recipes.md").read_text().split("## Replicas over a bucket", 1)[1]
    text = re.search(r"```nginx\n(.*?)```", page, re.DOTALL)[1]
    for name, server in zip("ab", replicas):
        text = text.replace(f"server {name}:8080", f"server {server.host}:{server.port}")
    assert ":8080" not in text
    proxy = proxies.start_nginx(tmp_path_factory.mktemp("proxy"), text)
    yield proxy
    proxy.stop()


@pytest.fixture(params=CLIENTS)
def client(request, proxy, monkeypatch):
    monkeypatch.setattr(wire, "http_connection", connect_from)
    return Client(proxy, request.param)


def assert_everywhere(servers, model, data):
    for server in servers:
        eventually(lambda server=server: get(server, component_path(model, "w")).body == data, within_s=120)


def test_writer_stays_on_its_replica(replicas, client):
    model = f"org/w{client.address}"
    upload = writers.begin(client, model)
    assert upload.put("w", DATA).status == 201
    assert [get(client, upload.path).status for _ in range(4)] == [200] * 4
    assert upload.commit().status == 201
    assert_everywhere([client, *replicas], model, DATA)


def test_resumable_stays_on_its_replica(replicas, client):
    model = f"org/t{client.address}"
    location = tus.create(client, model, len(WHOLE))
    assert tus.patch(client, location, 0, WHOLE[:HALF]).status == 204
    assert tus.offset_of(client, location) == HALF
    assert tus.patch(client, location, HALF, WHOLE[HALF:]).status == 204
    assert_everywhere([client, *replicas], model, DATA)


def test_both_replicas_take_uploads(replicas, proxy, monkeypatch):
    """Ports decide which client gets which: so many that they hardly ever agree on one."""
    monkeypatch.setattr(wire, "http_connection", connect_from)
    homes = set()
    for number in range(2, 62):
        client = Client(proxy, f"127.0.0.{number}")
        upload = writers.begin(client, f"org/b{number}")
        homes.add(tuple(get(server, upload.path).status for server in replicas))
        assert ask(client, "DELETE", upload.path).status == 204
    assert homes == {(200, 404), (404, 200)}
