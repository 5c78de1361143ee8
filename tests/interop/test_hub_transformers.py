"""transformers loads configuration, tokenizer and weights from a server, and computes with them what it computes from the
files themselves."""

import pytest

from environments import is_available
from hub_clients import TRANSFORMERS, HubClient, look_with_transformers
from hub_repositories import WORDS, make_model, make_sharded, make_zt_only


@pytest.fixture(params=TRANSFORMERS)
def release(request):
    if not is_available(request.param):
        pytest.skip(f"{request.param} cannot be installed here")
    return request.param


@pytest.fixture(scope="module")
def hub(folder, share_server):
    make_model(folder / "org/model")
    make_sharded(folder / "org/sharded")
    make_zt_only(folder / "org/zt")
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


def test_weights_as_zt_alone(release, hub, folder, tmp_path):
    """transformers takes the view for the model, and finds no other weights."""
    client = HubClient(release, tmp_path, hub.url)
    own, viewed = look_with_transformers(client, "logits", folder / "org/model", "org/zt")
    assert len(own) == 9 * len(WORDS) and own == viewed
    assert not list(client.home.rglob("*.zt"))


def test_weights_as_zt_in_parts(release, folder, start_server, tmp_path, monkeypatch):
    """As of a model above 5 GB: an index and several files."""
    monkeypatch.setenv("ZTSERVE_HUB_SHARD_BYTES", "4000")
    make_zt_only(folder / "org/zt")
    client = HubClient(release, tmp_path, start_server(folder).url)
    own, viewed = look_with_transformers(client, "logits", folder / "org/model", "org/zt")
    assert own == viewed
    assert len(list(client.home.glob("hub/models--org--zt/snapshots/*/model-0000*-of-0000*.safetensors"))) > 1
