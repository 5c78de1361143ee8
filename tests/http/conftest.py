"""Servers that the tests of one file share."""

import pytest

from server_process import ServerProcess


@pytest.fixture(scope="module")
def share_server():
    """Like start_server, for servers that all tests of a file share; at its end they must stop with status 0."""
    servers = []

    def start(root, *arguments, **options):
        servers.append(ServerProcess(root, *arguments, **options))
        return servers[-1]

    yield start
    statuses = [server.stop() for server in servers]
    assert statuses == [0] * len(servers), "\n".join(server.log for server in servers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty root for the servers of one file."""
    return tmp_path_factory.mktemp("root")


@pytest.fixture
def name(request):
    """A model's name that no other test uses."""
    letters = (letter if letter.isalnum() else "-" for letter in request.node.name)
    return "".join(letters)
