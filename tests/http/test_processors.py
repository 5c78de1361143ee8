"""Processors are counted once, by the affinity mask: thread counts and limits agree under it."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from wire import connect, eventually, get, read_head

CONNECTIONS = 20
# The pool never has fewer: one for each kind of job, and one that each client leaves to others.
LEAST_WORKERS = 4


@contextmanager
def one_processor():
    """As under `taskset -c 0`: the server inherits the mask."""
    mask = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mask)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mask)


def threads(server):
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return [(task / "comm").read_text().strip() for task in tasks]


@pytest.mark.folder("how many threads read files")
def test_thread_counts_and_limits_agree_under_a_mask(start_server, tmp_path):
    with one_processor():
        server = start_server(tmp_path, environment={"ZTSERVE_LIMITS_CONNECTIONS": str(CONNECTIONS)})
    assert get(server, "/healthz").status == 200
    # Each gives itself its name.
    names = eventually(lambda: (now := threads(server)).count("worker") >= LEAST_WORKERS and now)
    assert names.count("loop") == 1, names
    assert names.count("worker") == LEAST_WORKERS, names
    clients = [connect(server) for _ in range(CONNECTIONS - 2)]
    for client in clients:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_head(client)[0] == 200
    for client in clients:
        client.close()
