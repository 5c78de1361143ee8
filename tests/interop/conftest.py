"""Clients of a Hub: what several files of tests need of servers and caches."""

import pytest

from hub_clients import RELEASES, HubClient
from hub_repositories import write_files


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


@pytest.fixture
def new_client(release, tmp_path):
    """Makes clients of one release, each with an empty cache."""
    made = []

    def make(url, **options):
        made.append(HubClient(release, tmp_path / f"home{len(made)}", url, **options))
        return made[-1]

    return make


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def hub(request, root, start_server):
    """Serves root for writing, with the module's SETTINGS."""
    return start_server(root, "--writable", environment=getattr(request.module, "SETTINGS", {}))


@pytest.fixture
def source(request, tmp_path):
    """A folder with the module's FILES, to be uploaded."""
    write_files(tmp_path / "source", request.module.FILES)
    return tmp_path / "source"
