"""The Hub's clients against a server with a tokens file: nothing without a token, and what its scope allows with one."""

import re
import sys
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy
from hub_clients import OLDEST, RELEASES, Raised
from hub_repositories import containers, make_model

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))
from clients import Client, write_tokens  # noqa: E402
from wire import ask  # noqa: E402

READER = Client("reader", "read")
WRITER = Client("writer", "write")
TEAM = Client("team", "write", "team/*")
WRONG = "hf_" + "x" * 40


@pytest.fixture(scope="module")
def served(folder):
    make_model(folder / "team/model")
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server, tmp_path_factory):
    tokens = write_tokens(tmp_path_factory.mktemp("access") / "tokens", READER, WRITER, TEAM)
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
    said = client.refused_hf("upload", "org/new", __file__)
    assert "403" in said or "forbidden" in said.lower()


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
    with pytest.raises(Raised):
        client.call("commit", "org/model", {"x.txt": "x"})


def test_a_large_file_is_put_by_its_permit_only(hub, folder, new_client, release, tmp_path):
    # What another release has sent is not asked for again.
    content = containers.pattern(30 << 20, seed=6 + RELEASES.index(release))
    (tmp_path / "large.bin").write_bytes(content)
    repository = f"org/{release}"
    proxy = CuttingProxy(hub, after=1 << 40)
    try:
        client = new_client(proxy.url, token=WRITER.token, HF_HUB_DISABLE_XET="1")
        client.call("create", repository)
        client.call("upload_file", repository, str(tmp_path / "large.bin"), "large.bin")
        puts = [head for head in proxy.requests if head.startswith("PUT ")]
    finally:
        proxy.stop()
    assert (folder / repository / "large.bin").read_bytes() == content
    assert puts and not [head for head in puts if re.search(r"^authorization:", head, re.I | re.M)]
    target = puts[0].split(" ")[1]
    # A permit is for its own object, and cannot be made up.
    digits = re.search(r"[0-9a-f]{64}", target).group()
    for changed in (target.split("?")[0], target[:-1] + ("0" if target[-1] != "0" else "1"), target.replace(digits, "0" * 64)):
        if changed != target:
            assert ask(hub, "PUT", changed, {}, b"x").status in (401, 403, 404), changed


def test_the_user_names_the_repository(hub, folder, new_client, release):
    client = new_client(hub.url, token=WRITER.token)
    name = f"mine-{release}"
    assert client.call("create", name).endswith(f"/{WRITER.name}/{name}")
    if release != OLDEST:
        client.expect_hf("upload", f"{WRITER.name}/{name}", __file__, "test.py")
        assert (folder / WRITER.name / name / "test.py").read_bytes() == Path(__file__).read_bytes()
