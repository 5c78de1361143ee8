"""Far more work than the workers can do: new requests are refused, and are not queued behind the others."""

import contextlib
import resource

import pytest

from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from wire import assert_problem, component_path, connect, eventually, get

# More than the workers keep in their queue (base/workers.c).
CLIENTS = 1300
DESCRIPTORS = 4096

pytestmark = [pytest.mark.folder("how many threads read files"), pytest.mark.plain("a preloaded library makes reading slow")]


@pytest.fixture
def many_descriptors():
    """For this process and the servers that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip(f"no more than {hard} descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_full_queue_refuses_what_needs_a_worker(many_descriptors, start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(pattern(1 << 20), shape=[1024, 1024])}))
    slow = {"LD_PRELOAD": str(FAULTS), "ZT_SLOW_READ_MS": "5", "ZTSERVE_WORKERS": "4", "ZTSERVE_DRAIN_S": "0"}
    server = start_server(tmp_path, "--verify", "off", environment=slow)
    target = component_path("m", "w") + "?slice=:,1:1000"
    assert get(server, target).status == 200
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = eventually(lambda: refusal(server, target))
        assert_problem(answer, 503, "overloaded")
        assert int(answer["Retry-After"]) > 0
        assert get(server, "/healthz").status == 200
    # The clients are gone, and so is their work.
    eventually(lambda: get(server, target).status == 200)


def refusal(server, target):
    answer = get(server, target)
    return answer if answer.status == 503 else None
