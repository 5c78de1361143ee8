"""Statistics and previews that several clients wait for, that nobody waits for any more, and over buckets."""

import json
import re
import socket

import numpy
import pytest

from containers import Component, Object, dense, seekable, zstd_dense, zt1, zt2
from wire import Connection, assert_problem, component_path, connect, eventually, get

pytestmark = pytest.mark.folder("sparse files larger than the memory of the tests, and a bucket of its own")

GIB = 1 << 30
# Sparse files: what is not stored costs no disk, but is read as zeros. The first would take an hour.
ENDLESS = 8192 * GIB
# Long enough for six clients to ask meanwhile.
LARGE = GIB // 4
GIVEN_UP_S = 180
STATISTICS = "/statistics"
# One row of cells: all elements are one part of the work.
PREVIEW = "/preview?rows=1&cols=1"


def zeros(path, length):
    """A safetensors file of one tensor of f32."""
    shape = [length // 4 // 1024, 1024]
    head = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, length]}}).encode()
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + length)


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    zeros(root / "endless.safetensors", ENDLESS)
    zeros(root / "large.safetensors", LARGE)
    return start_server(root, environment={"ZTSERVE_LIMITS_STATISTICS_BYTES": str(ENDLESS), "ZTSERVE_DRAIN_S": "1"})


def long_jobs(server, figure):
    text = get(server, "/metrics").body.decode()
    return int(re.search(rf'^ztserve_worker_jobs_{figure}{{kind="long"}} (\d+)$', text, re.MULTILINE)[1])


@pytest.mark.parametrize("what", [STATISTICS, PREVIEW])
def test_clients_that_ask_at_once_share_one_computation(server, what):
    before = long_jobs(server, "total")
    clients = [Connection(server) for _ in range(6)]
    for client in clients:
        client.send("GET", component_path("large", "w") + what)
    answers = [client.receive() for client in clients]
    assert {answer.status for answer in answers} == {200} and len({answer.body for answer in answers}) == 1
    # The answers' own forms are written for each.
    assert long_jobs(server, "total") - before == (1 if what == STATISTICS else 1 + len(clients))
    for client in clients:
        client.http.close()


def ask_and_wait(server, target):
    """A client that has asked, once the work has begun."""
    client = connect(server)
    client.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    eventually(lambda: long_jobs(server, "running") == 1)
    return client


@pytest.mark.parametrize("what", [STATISTICS, PREVIEW])
def test_what_nobody_waits_for_is_given_up(server, what):
    target = component_path("endless", "w") + what
    first, second = ask_and_wait(server, target), ask_and_wait(server, target)
    first.close()
    # The second client is still there, so the work goes on, and it has got nothing yet.
    second.settimeout(1)
    with pytest.raises(socket.timeout):
        second.recv(1)
    eventually(lambda: long_jobs(server, "running") == 1)
    second.close()
    eventually(lambda: long_jobs(server, "running") == 0, within_s=GIVEN_UP_S)
    assert get(server, component_path("large", "w") + what.split("?")[0] + "?slice=:9").status == 200


def test_work_that_is_given_up_is_begun_again(server):
    target = component_path("endless", "w") + STATISTICS
    ask_and_wait(server, target).close()
    eventually(lambda: long_jobs(server, "running") == 0, within_s=GIVEN_UP_S)
    ask_and_wait(server, target).close()


def test_a_server_that_stops_does_not_wait_for_it(server):
    client = ask_and_wait(server, component_path("endless", "w") + PREVIEW)
    # start_server's end expects status 0.
    assert server.stop() == 0
    client.close()


# --- buckets ---

RANDOM = numpy.random.default_rng(21)
MATRIX = RANDOM.normal(0, 1, (500, 1100)).astype(numpy.float32)
SHORT = RANDOM.integers(-100, 100, (7, 9)).astype(numpy.int16)
QUERIES = ["/statistics", "/statistics?bins=7&slice=:,3", "/preview?rows=9&cols=8", "/preview?format=png&shard=1/2&axis=1", "/preview?format=npy"]


def models():
    data = MATRIX.tobytes()
    frames = Component(seekable(data, 1 << 16), "f32", None, "zt.zstd-seekable/1", data, "xxh3")
    objects = {
        "plain": dense(data, "f32", list(MATRIX.shape)),
        "packed": zstd_dense(data, "f32", list(MATRIX.shape)),
        "short": dense(SHORT.tobytes(), "i16", list(SHORT.shape)),
    }
    one = zt1(objects)
    return {"one.zt": one, "two.zt": zt2({"plain": Object(list(MATRIX.shape), {"data": frames})}), "wrong.zt": one.flipped("plain", at=70000)}


def test_over_a_bucket_they_are_those_of_the_folder(bucket, serve_bucket, start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for key, data in models().items():
        (root / key).write_bytes(data)
    bucket.put_folder(root)
    local, *replicas = [start_server(root), serve_bucket(bucket), serve_bucket(bucket)]
    for model, key in (("one", "plain"), ("one", "packed"), ("one", "short"), ("two", "plain")):
        for query in QUERIES:
            if key == "short" and "shard" in query:
                continue
            wanted, first, second = [get(server, component_path(model, key) + query) for server in (local, *replicas)]
            assert wanted.status == 200 and wanted.body == first.body == second.body, (model, key, query)
            assert first["ETag"] == second["ETag"]
    made = get(replicas[0], component_path("one", "plain") + STATISTICS).json()
    assert made["mean"] == pytest.approx(MATRIX.mean(dtype=float)) and made["min"] == MATRIX.min()
    for query in QUERIES:
        assert_problem(get(replicas[0], component_path("wrong", "plain") + query), 500, "corrupt-component")
