"""The Hub's clients against a server with a tokens file: nothing without a token, and what its glob covers with one."""

from pathlib import Path

import pytest

from hub_clients import Raised
from hub_repositories import make_model

from clients import Client, write_tokens

READER = Client("reader", "read")
TEAM = Client("team", "write", "team/*")
WRONG = "hf_" + "x" * 40


@pytest.fixture(scope="module")
def served(folder):
    make_model(folder / "team/model")
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server, tmp_path_factory):
    tokens = write_tokens(tmp_path_factory.mktemp("access") / "tokens", READER, TEAM)
    return share_server(folder, "--writable", "--tokens", tokens)


@pytest.mark.parametrize("token", [None, WRONG], ids=["none", "wrong"])
def test_nothing_without_a_known_token(hub, new_client, token):
    client = new_client(hub.url, token=token)
    for command in (["download", "org/model"], ["download", "org/model", "config.json"], ["upload", "org/new", __file__]):
        said = client.refused_hf(*command)
        assert "connection" not in said.lower()
        assert "401" in said or "token" in said.lower()
    assert not client.blobs
    with pytest.raises(Raised):
        client.call("list_models")


def test_a_reader_reads(hub, served, new_client):
    client = new_client(hub.url, token=READER.token)
    folder = Path(client.expect_hf("download", "org/model").split()[-1])
    assert (folder / "model.safetensors").read_bytes() == served["model.safetensors"]
    assert client.call("whoami") == READER.name


@pytest.mark.parametrize(
    "token, said", [(READER.token, "this request needs the scope write"), (WRONG, "the token is not valid")], ids=["reader", "wrong"]
)
def test_a_refused_upload_says_why(hub, new_client, token, said):
    assert said in new_client(hub.url, token=token).refused_hf("upload", "org/new", __file__)


def test_login(hub, new_client):
    client = new_client(hub.url)
    client.expect_hf("auth", "login", "--token", READER.token)
    assert READER.name in client.expect_hf("auth", "whoami")
    assert client.call("exists", "org/model", "config.json") == [True, True]
    other = new_client(hub.url)
    assert "connection" not in other.refused_hf("auth", "login", "--token", WRONG).lower()


def test_a_client_sees_only_its_models(hub, served, new_client):
    client = new_client(hub.url, token=TEAM.token)
    assert client.call("list_models") == ["team/model"]
    assert Path(client.call("download", "team/model", "config.json")).read_bytes() == served["config.json"]
    with pytest.raises(Raised) as raised:
        client.call("download", "org/model", "config.json")
    assert "connection" not in str(raised.value).lower()
