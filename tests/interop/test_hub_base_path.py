"""A Hub below a path of its host: whole addresses that it gives (the next page, where a branch leads to) stay below it."""

import json
from pathlib import Path

import pytest
import requests

from hub_clients import files_below
from hub_repositories import make_many, make_model, write_files

BASE = "/shared/models"
REPOSITORIES = 1200


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server, tmp_path_factory):
    make_many(folder / "org/many")
    for number in range(REPOSITORIES):
        write_files(folder / f"crowd/model-{number:04}", {"config.json": b"{}\n"})
    config = tmp_path_factory.mktemp("config") / "config.json"
    config.write_text(json.dumps({"base_path": BASE}))
    return share_server(folder, "--config", config)


@pytest.fixture
def client(hub, new_client):
    return new_client(hub.url + BASE)


def test_everything_below_it(client, served):
    got = Path(client.expect_hf("download", "org/model").split()[-1])
    assert files_below(got) == served
    assert client.call("exists", "org/model", "config.json", "nope.json") == [True, True, False]


def test_a_branch_leads_to_its_commit_below_it(hub):
    answer = requests.head(f"{hub.url}{BASE}/org/model/resolve/main/config.json", allow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["Location"].startswith(f"{BASE}/org/model/resolve/{answer.headers['X-Repo-Commit']}/")


def test_every_page(client):
    assert len(client.call("tree", "org/many", recursive=True)) == 2500 + 7
    found = client.call("list_models", author="crowd")
    assert found == [f"crowd/model-{number:04}" for number in range(REPOSITORIES)]
