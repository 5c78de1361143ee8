"""What all tests from outside share: servers that are stopped at the end, and the folder of test files."""

import os
from pathlib import Path

import pytest

from server_process import ServerProcess


@pytest.fixture
def start_server(tmp_path):
    """Starts servers for one test; each must have ended well by the end of it."""
    servers = []

    def start(root=None, *arguments, **options):
        server = ServerProcess(root if root is not None else tmp_path, *arguments, **options)
        servers.append(server)
        return server

    yield start
    failures = []
    for server in servers:
        if server.process.returncode is not None:
            continue
        status = server.stop()
        if status != 0:
            failures.append(f"exit status {status}:\n{server.log}")
    assert not failures, "\n".join(failures)


@pytest.fixture(scope="session")
def corpus():
    folder = os.environ.get("ZT_CORPUS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("skipped: no corpus (ZT_CORPUS is not set)")
    return Path(folder)
