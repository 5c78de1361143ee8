"""A file above 50 GB: clients that would refuse it by its length begin to download it. None of it to the end."""

import json
import re
import signal
import subprocess

import pytest

from environments import HERE, python_of
from hub_clients import OLDEST
from wire import eventually

SIZE = 51 << 30


@pytest.fixture(scope="module")
def hub(folder, share_server):
    (folder / "org/big").mkdir(parents=True)
    with open(folder / "org/big/huge.bin", "wb") as file:
        file.truncate(SIZE)
    return share_server(folder)


@pytest.fixture
def client(hub, new_client, release):
    if release == OLDEST:
        pytest.skip("this release needs a length, and refuses this one")
    return new_client(hub.url)


def test_its_description_has_no_length(client):
    found = client.call("file_metadata", "org/big", "huge.bin")
    assert found["size"] is None and re.fullmatch("[0-9a-f]{40}", found["commit"]) and found["etag"]


def test_its_download_begins(hub, client):
    asked = json.dumps({"function": "download", "arguments": ["org/big", "huge.bin"], "options": {}})
    command = [str(python_of(client.release)), str(HERE / "client_hub.py")]
    with subprocess.Popen(command, env=client.environment, cwd=client.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        run.stdin.write(asked)
        run.stdin.close()
        try:
            assert eventually(lambda: any(path.stat().st_size > 0 for path in client.home.rglob("*.incomplete")))
            assert run.poll() is None
        finally:
            run.send_signal(signal.SIGKILL)
