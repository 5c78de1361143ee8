"""What the Hub's clients in Python learn of repositories and files before they download anything."""

import hashlib
import json

import pytest

from hub_clients import OLDEST, Raised
from hub_repositories import CONFIG, make_gguf, make_model, make_sharded, weight_shapes

TOKEN = "hf_" + "aB3" * 12


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def sharded(folder):
    return make_sharded(folder / "org/sharded")


@pytest.fixture(scope="module")
def hub(folder, served, sharded, share_server):
    make_gguf(folder / "other/gguf")
    make_gguf(folder / "single")
    (folder / "in-the-root.zt").write_bytes(b"of no repository")
    return share_server(folder)


@pytest.fixture
def client(hub, new_client):
    return new_client(hub.url)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def pointer_of(content):
    """What git stores in place of a large file, and its name there."""
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(content)}\nsize {len(content)}\n".encode()
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def entry_of(content, commit=None):
    lfs = {"sha256": sha256(content), "size": len(content)}
    return {"type": "file", "size": len(content), "blob_id": pointer_of(content), "lfs": lfs, "commit": commit}


def folders_of(files):
    return {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}


def test_models_are_listed_and_searched(client):
    everything = ["org/model", "org/sharded", "other/gguf"]
    found = client.call("list_models")
    assert [name for name in found if "/" in name] == everything
    assert client.call("list_models", author="org") == everything[:2]
    assert client.call("list_models", search="GGUF") == ["other/gguf"]
    assert client.call("list_models", author="nobody") == []
    assert len(client.call("list_models", limit=2)) == 2


def test_hf_models(client, served):
    if client.release == OLDEST:
        pytest.skip("this release has no such command")
    said = client.expect_hf("models", "ls", "--author", "org", "--format", "json")
    assert [one["id"] for one in json.loads(said)] == ["org/model", "org/sharded"]
    info = json.loads(client.expect_hf("models", "info", "org/model", "--format", "json"))
    assert info["id"] == "org/model"
    assert sorted(one["rfilename"] for one in info["siblings"]) == sorted(served)


def test_the_tree_of_a_repository(client, served):
    commit = client.call("model_info", "org/model")["sha"]
    tree = client.call("tree", "org/model", recursive=True)
    folders = dict.fromkeys(folders_of(served), {"type": "directory"})
    assert tree == {**{name: entry_of(content) for name, content in served.items()}, **folders}
    expanded = client.call("tree", "org/model", recursive=True, expand=True)
    assert expanded == {**{name: entry_of(content, commit) for name, content in served.items()}, **folders}


def test_one_level_and_one_folder_of_it(client, served):
    top = {name.split("/")[0] for name in served}
    assert set(client.call("tree", "org/model")) == top
    assert set(client.call("tree", "org/model", "sub")) == {"sub/ü b+c#d%"}
    assert set(client.call("tree", "org/model", "sub/ü b+c#d%")) == {"sub/ü b+c#d%/e.txt"}
    with pytest.raises(Raised) as raised:
        client.call("tree", "org/model", "additional_chat_templates")
    assert "EntryNotFoundError" in raised.value.classes, raised.value


def test_names_and_hashes_of_files(client, served):
    assert sorted(client.call("list_files", "org/model")) == sorted(served)
    info = client.call("model_info", "org/model", files_metadata=True)
    assert info["siblings"] == {name: {"size": len(content), "sha256": sha256(content)} for name, content in served.items()}
    asked = [*served, "onnx", "nope.json", ".hidden.json", "link.txt"]
    found = client.call("paths_info", "org/model", asked)
    assert found == {**{name: entry_of(content) for name, content in served.items()}, "onnx": {"type": "directory"}}
    expanded = client.call("paths_info", "org/model", ["config.json"], expand=True)
    assert expanded == {"config.json": entry_of(served["config.json"], info["sha"])}


def test_refs_and_commits(client):
    commit = client.call("model_info", "org/model")["sha"]
    assert client.call("refs", "org/model") == {"branches": {"refs/heads/main": commit}, "tags": []}
    assert client.call("commits", "org/model")[0]["id"] == commit
    assert client.call("commits", "org/model", revision=commit)[0]["id"] == commit


def test_what_exists(client):
    assert client.call("exists", "org/model", "config.json", "nope.json", ".hidden.json", "link.txt") == [
        True, True, False, False, False,
    ]  # fmt: skip
    for repo in ("org/none", "none", "org/model.x"):
        assert client.call("exists", repo) == [False], repo


def test_safetensors_metadata(client, sharded):
    names = sorted(weight_shapes())
    elements = sum(CONFIG["vocab_size"] * shape[1] if name in ("lm_head.weight", "model.embed_tokens.weight") else
                   int(len(shape) == 1 and shape[0] or shape[0] * shape[1]) for name, shape in weight_shapes().items())  # fmt: skip
    single = client.call("safetensors_metadata", "org/model")
    assert single == {"sharded": False, "files": {"model.safetensors": names}, "parameters": {"F32": elements}}
    several = client.call("safetensors_metadata", "org/sharded")
    assert several["sharded"] and several["parameters"] == {"F32": elements}
    assert sorted(several["files"]) == sorted(name for name in sharded if name.endswith(".safetensors"))
    assert sorted(name for held in several["files"].values() for name in held) == names


def test_the_file_system(client, served):
    assert client.call("glob", "org/model/*.safetensors") == ["org/model/model.safetensors"]
    deep = sorted(f"org/model/{name}" for name in served if name.endswith(".txt"))
    assert sorted(client.call("glob", "org/model/**/*.txt")) == deep
    listing = client.call("folder_listing", "org/model")
    assert listing["org/model/sub"] == "directory" and listing["org/model/config.json"] == "file"
    part = client.call("read_part", "org/model/model.safetensors", 1000, 3000)
    assert bytes.fromhex(part) == served["model.safetensors"][1000:4000]


def test_login(client):
    """A server without tokens has no names: whoever shows one is let in."""
    client.expect_hf("auth", "login", "--token", TOKEN)
    assert client.home.joinpath("token").read_text() == TOKEN
    assert client.call("whoami") in client.expect_hf("auth", "whoami")
    assert client.call("exists", "org/model") == [True]
