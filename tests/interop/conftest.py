"""Clients of a Hub: what several files of tests need of servers and caches."""

import pytest

from hub_clients import RELEASES, HubClient


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
