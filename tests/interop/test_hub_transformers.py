"""transformers loads configuration, tokenizer and weights from a server, and computes with them what it computes from the
files themselves; also where the weights are in a `.zt` file only."""

import json

import pytest

from environments import HERE, is_available, python_of
from hub_clients import HubClient
from hub_repositories import WORDS, make_model, make_sharded, make_zt_only

RELEASES = ["transformers-5.23.0", "transformers-4.57.6"]


@pytest.fixture(params=RELEASES)
def release(request):
    if not is_available(request.param):
        pytest.skip(f"{request.param} cannot be installed here")
    return request.param


@pytest.fixture(scope="module")
def hub(folder, share_server):
    make_model(folder / "org/model")
    make_sharded(folder / "org/sharded")
    make_zt_only(folder / "org/zt-only")
    return share_server(folder)


def look(client, kind, repo):
    result = client._run([python_of(client.release), HERE / "client_hub_transformers.py", kind, repo])
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_configuration_and_tokenizer(release, hub, tmp_path):
    seen = look(HubClient(release, tmp_path / "home", hub.url), "small", "org/model")
    text = "the quick brown fox jumps over a lazy cat"
    ids = [WORDS.index(word) if word in WORDS else 0 for word in text.split()]
    assert seen == {"hidden_size": 16, "type": "llama", "ids": ids}


def test_the_same_logits_from_every_repository(release, hub, folder, tmp_path):
    wanted = look(HubClient(release, tmp_path / "local", "http://127.0.0.1:1"), "logits", folder / "org/model")
    assert len(wanted) == 9 * len(WORDS) and len(set(wanted)) > 80
    for repo in ("org/model", "org/sharded", "org/zt-only"):
        assert look(HubClient(release, tmp_path / repo.replace("/", "-"), hub.url), "logits", repo) == wanted, repo
