"""transformers loads configuration, tokenizer and weights from a server, and computes with them what it computes from the
files themselves."""

import pytest

from environments import is_available
from hub_clients import TRANSFORMERS, HubClient, look_with_transformers
from hub_repositories import WORDS, make_model, make_sharded


@pytest.fixture(params=TRANSFORMERS)
def release(request):
    if not is_available(request.param):
        pytest.skip(f"{request.param} cannot be installed here")
    return request.param


@pytest.fixture(scope="module")
def hub(folder, share_server):
    make_model(folder / "org/model")
    make_sharded(folder / "org/sharded")
    return share_server(folder)


def test_configuration_and_tokenizer(release, hub, tmp_path):
    seen = look_with_transformers(HubClient(release, tmp_path, hub.url), "small", "org/model")
    text = "the quick brown fox jumps over a lazy cat"
    ids = [WORDS.index(word) if word in WORDS else 0 for word in text.split()]
    assert seen == {"hidden_size": 16, "type": "llama", "ids": ids}


def test_the_same_logits_as_from_the_files(release, hub, folder, tmp_path):
    client = HubClient(release, tmp_path, hub.url)
    own, single, sharded = look_with_transformers(client, "logits", folder / "org/model", "org/model", "org/sharded")
    assert len(own) == 9 * len(WORDS) and len(set(own)) > 80
    assert own == single == sharded
