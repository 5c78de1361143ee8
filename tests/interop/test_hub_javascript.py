"""The Hub's client in JavaScript, unchanged, reads from a server."""

import base64
import hashlib

import pytest

from hub_javascript import JavaScriptClient, Thrown, install
from hub_repositories import make_many, make_model, make_sharded, weight_shapes, write_files


@pytest.fixture(scope="module")
def installed():
    folder = install()
    if folder is None:
        pytest.skip("no Node.js with npm and its packages here")
    return folder


@pytest.fixture(scope="module")
def served(folder):
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def clean(folder, served):
    """Without the names that this client does not escape as it should."""
    return write_files(folder / "org/clean", {name: content for name, content in served.items() if not set("#%") & set(name)})


@pytest.fixture(scope="module")
def hub(installed, folder, served, clean, share_server):
    make_sharded(folder / "org/sharded")
    make_many(folder / "org/many")
    return share_server(folder)


@pytest.fixture
def client(installed, hub):
    return JavaScriptClient(installed, hub.url)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_files_are_listed(client, served):
    listed = {entry["path"]: entry for entry in client.call("listFiles", "org/model", {}) if entry["type"] == "file"}
    assert {name: (one["size"], one["lfs"]["oid"]) for name, one in listed.items()} == {
        name: (len(content), sha256(content)) for name, content in served.items()
    }


def test_every_page_of_2500_files(client):
    listed = [entry["path"] for entry in client.call("listFiles", "org/many", {}) if entry["type"] == "file"]
    assert (len(listed), len(set(listed))) == (2500, 2500)


@pytest.mark.parametrize("name", ["config.json", "empty.txt", "model.safetensors", "a blank.txt", "ünlaut.txt", "d+e.txt"])
def test_a_file_is_downloaded(client, served, name):
    assert base64.b64decode(client.call("downloadFile", "org/model", name)) == served[name]
    info = client.call("fileDownloadInfo", "org/model", name)
    assert (info["size"], info["etag"].strip('"')) == (len(served[name]), sha256(served[name]))


def test_a_part_of_a_file(client, served):
    part = client.call("downloadPart", "org/model", "model.safetensors", 1000, 3000)
    assert base64.b64decode(part) == served["model.safetensors"][1000:3000]


def test_what_is_missing(client):
    assert client.call("downloadFile", "org/model", "nope.json") is None
    assert client.call("fileDownloadInfo", "org/model", "nope.json") is None
    assert client.call("fileExists", "org/model", "nope.json") is False
    assert client.call("fileExists", "org/model", "config.json") is True
    with pytest.raises(Thrown) as thrown:
        client.call("listFiles", "org/none", {})
    assert thrown.value.args[1] == 404


def test_models(client):
    info = client.call("modelInfo", "org/model")
    assert (info["name"], len(info["sha"]), info["private"]) == ("org/model", 40, False)
    assert [one["name"] for one in client.call("listModels", {"owner": "org"})] == [
        "org/clean", "org/many", "org/model", "org/sharded",
    ]  # fmt: skip
    assert client.call("commits", "org/model")[0]["oid"] == info["sha"]


def test_paths(client, served):
    found = {one["path"]: one for one in client.call("pathsInfo", "org/model", ["config.json", "onnx", "nope.json"])}
    assert sorted(found) == ["config.json", "onnx"]
    assert found["config.json"]["lfs"]["oid"] == sha256(served["config.json"])
    assert found["config.json"]["lastCommit"]["id"] == client.call("modelInfo", "org/model")["sha"]


def test_a_snapshot(client, clean, tmp_path):
    got = client.call("snapshot", "org/clean", str(tmp_path / "cache"))
    assert {name: base64.b64decode(content) for name, content in got.items()} == clean


def test_safetensors(client):
    names = sorted(weight_shapes())
    assert client.call("safetensors", "org/model") == {"sharded": False, "names": names}
    assert client.call("safetensors", "org/sharded") == {"sharded": True, "names": names}
