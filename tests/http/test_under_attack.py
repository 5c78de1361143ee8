"""A server under attack by slow clients still answers others: slowhttptest in its four modes, idle connections, and
readers that trickle. tests/stress/attack.py does the same with far more clients, and measures."""

import contextlib
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers import dense, pattern, zt1
from wire import Connection, component_path, memory_kib, model_path

BIG = component_path("m", "big")
# Below the limit on descriptors that most systems have by default.
CLIENTS = 200
ATTACK_S = 5
MODES = {
    "headers": ["-H", "-i", "1"],
    "bodies": ["-B", "-i", "1", "-s", "8192", "-t", "PUT"],
    "ranges": ["-R", "-a", "5", "-b", "3000"],
    "readers": ["-X", "-w", "512", "-y", "1024", "-n", "1", "-z", "32"],
}
# What a connection may cost that made a request: libmicrohttpd's memory and what belongs to it.
CONNECTION_KIB = 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000)), "big": dense(pattern(16 << 20))}))
    return share_server(folder, "--writable", environment={"ZTSERVE_DRAIN_S": "1"})


def ask_for(server, is_over):
    """The statuses that an ordinary client gets meanwhile, and the longest that it waited."""
    statuses, longest = set(), 0
    with Connection(server) as connection:
        while True:
            began = time.monotonic()
            statuses.add(connection.ask("GET", model_path("m")).status)
            longest = max(longest, time.monotonic() - began)
            if is_over():
                return statuses, longest
            time.sleep(0.01)


@pytest.mark.waits
@pytest.mark.skipif(shutil.which("slowhttptest") is None, reason="slowhttptest is not installed")
@pytest.mark.parametrize("mode", MODES)
def test_slowhttptest_leaves_the_server_answering(server, mode):
    command = ["slowhttptest", "-c", str(CLIENTS), "-r", "100", "-l", str(ATTACK_S), "-p", "5", *MODES[mode]]
    with ThreadPoolExecutor(1) as pool:
        target = server.url + ("/v1/models/slow" if mode == "bodies" else BIG)
        attack = pool.submit(subprocess.run, [*command, "-u", target], capture_output=True, text=True)
        statuses, longest = ask_for(server, attack.done)
        output = re.sub(r"\x1b\[[0-9;]*m", "", attack.result().stdout)
    assert set(re.findall(r"service available:\s+(\w+)", output)) == {"YES"}, output
    assert statuses == {200} and longest < 60


@pytest.mark.plain("measures memory, or is traced")
def test_idle_connections_cost_little(server):
    with contextlib.ExitStack() as stack:
        before = memory_kib(server, "RssAnon")
        idle = [stack.enter_context(Connection(server)) for _ in range(2 * CLIENTS)]
        assert {one.ask("GET", model_path("m")).status for one in idle} == {200}
        assert memory_kib(server, "RssAnon") - before < 2 * CLIENTS * CONNECTION_KIB + 4096
        assert {one.ask("GET", model_path("m")).status for one in idle} == {200}
