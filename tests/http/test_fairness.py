"""One client's work, however much it is and however slow the disk, does not hold up another client's."""

import json
import os
import select
import socket

import pytest

from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from wire import component_path, model_path, read_head

# More than what a worker does at once as a short job (base/workers.c), so it is queued as a long one.
LARGE = 5 << 20
MODELS = 60
SLICES = 200
HOSTILE = "127.0.0.1"
OTHER = "127.0.0.2"

pytestmark = [pytest.mark.folder("how many threads read files"), pytest.mark.plain("a preloaded library makes reading slow")]


@pytest.fixture
def slow_server(start_server, tmp_path):
    """Reading 256 KiB takes 20 ms, so a large component takes 0.4 s, and all of the hostile client's work several seconds."""
    large = zt1({"w": dense(pattern(LARGE), shape=[LARGE // 1024, 1024])})
    for number in range(MODELS):
        (tmp_path / f"{number}.zt").write_bytes(large)
    (tmp_path / "small.zt").write_bytes(zt1({"w": dense(pattern(1 << 20), shape=[1024, 1024])}))
    (tmp_path / "large.zt").write_bytes(large)
    slow = {"LD_PRELOAD": str(FAULTS), "ZT_SLOW_READ_MS": "20", "ZTSERVE_WORKERS": "5", "ZTSERVE_DRAIN_S": "0"}
    return start_server(tmp_path, environment=slow)


@pytest.fixture
def one_processor():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def begin(server, method, target, address):
    connection = socket.create_connection((server.host, server.port), timeout=60, source_address=(address, 0))
    connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return connection


def fetch(server, method, target, address):
    with begin(server, method, target, address) as connection:
        status, _, body = read_head(connection)
        while chunk := connection.recv(1 << 16):
            body += chunk
        return status, body


def waiting(connections):
    answered, _, _ = select.select(connections, [], [], 0)
    return len(connections) - len(answered)


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", component_path("small", "w"), 200),
        ("GET", component_path("large", "w"), 200),
        ("GET", component_path("small", "w") + "?slice=:,1:1000", 200),
        ("GET", model_path("small") + "/export?format=safetensors", 200),
        # What the hostile client waits for too, last in its queue.
        ("GET", component_path(str(MODELS - 1), "w"), 200),
    ],
)
def test_a_client_is_answered_while_anothers_work_waits(slow_server, method, target, status):
    hostile = [begin(slow_server, "GET", component_path(str(n), "w"), HOSTILE) for n in range(MODELS)]
    # Short jobs too: gathering is one for every window that is sent.
    assert fetch(slow_server, "GET", component_path("small", "w"), HOSTILE)[0] == 200
    hostile += [begin(slow_server, "GET", component_path("small", "w") + f"?slice={n}:,1:1000", HOSTILE) for n in range(SLICES)]
    # So that they are queued: the last one's connection is answered after all others were accepted.
    assert fetch(slow_server, "GET", "/healthz", HOSTILE)[0] == 200
    assert fetch(slow_server, method, target, OTHER)[0] == status
    assert waiting(hostile) > MODELS // 4
    for connection in hostile:
        connection.close()


def test_a_verification_begins_while_anothers_wait(slow_server):
    for number in range(MODELS):
        assert fetch(slow_server, "POST", f"{model_path(str(number))}/verification", HOSTILE)[0] == 202
    assert fetch(slow_server, "POST", f"{model_path('small')}/verification", OTHER)[0] == 202
    # One that the hostile client has asked for too, last of all.
    assert fetch(slow_server, "POST", f"{model_path(str(MODELS - 1))}/verification", OTHER)[0] == 202
    for model in ("small", str(MODELS - 1)):
        while state(slow_server, model) == "running":
            pass
        assert state(slow_server, model) == "verified"
    running = [n for n in range(MODELS) if state(slow_server, str(n)) == "running"]
    assert len(running) > MODELS // 4


def test_with_a_single_processor_a_verification_is_done_while_anothers_component_is_hashed(start_server, tmp_path, one_processor):
    (tmp_path / "large.zt").write_bytes(zt1({"w": dense(pattern(16 << 20), shape=[16 << 20])}))
    (tmp_path / "small.zt").write_bytes(zt1({"w": dense(pattern(1 << 20), shape=[1 << 20])}))
    slow = {"LD_PRELOAD": str(FAULTS), "ZT_SLOW_READ_MS": "100", "ZTSERVE_DRAIN_S": "0"}
    server = start_server(tmp_path, environment=slow)
    assert fetch(server, "POST", f"{model_path('large')}/verification", HOSTILE)[0] == 202
    while report(server, "large")["bytes"]["hashed"] == 0:
        pass
    assert fetch(server, "POST", f"{model_path('small')}/verification", OTHER)[0] == 202
    while state(server, "small") == "running":
        pass
    assert state(server, "small") == "verified"
    # Its only component was being hashed all the time: that takes sixteen times as long.
    assert state(server, "large") == "running"


def report(server, model):
    return json.loads(fetch(server, "GET", f"{model_path(model)}/verification", OTHER)[1])


def state(server, model):
    return report(server, model)["state"]
