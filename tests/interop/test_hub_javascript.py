"""The Hub's client in JavaScript, unchanged, reads from a server and uploads to it.

ZT_HUB_LARGE is the size in MiB of the large upload (tests/interop/hub_clients.sh sends a GiB)."""

import base64
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from environments import ENVIRONMENTS, HERE
from hub_repositories import containers, make_many, make_model, make_sharded, weight_shapes, write_files

sys.path.insert(0, str(HERE.parent / "http"))
from clients import Client, write_tokens  # noqa: E402

TIMEOUT_S = 240
INSTALL_S = 100
LARGE_BYTES = int(os.environ.get("ZT_HUB_LARGE", "30")) << 20
OLDEST_NODE = 18


def install():
    """The package, in a folder of its own; None where it is not to be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return None
    folder, wanted = ENVIRONMENTS / "hub-javascript", (HERE / "package.json").read_text()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / "hub-javascript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        marker = folder / "complete"
        if not marker.is_file() or marker.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "package.json").write_text(wanted)
            command = [npm, "install", "--silent", "--no-package-lock", "--omit=optional", "--no-audit", "--no-fund"]
            try:
                subprocess.run(command, cwd=folder, check=True, timeout=INSTALL_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                return None
            marker.write_text(wanted)
    return folder


class Thrown(Exception):
    pass


class JavaScriptClient:
    def __init__(self, folder, url, token=None):
        self.folder, self.url, self.token = folder, url, token

    def call(self, function, *arguments):
        asked = json.dumps({"url": self.url, "token": self.token, "function": function, "arguments": arguments})
        command = ["node", HERE / "client_hub.mjs"]
        result = subprocess.run(
            command, cwd=self.folder, input=asked, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout.splitlines()[-1])
        if "thrown" in answer:
            raise Thrown(answer["thrown"], answer["status"])
        return answer["value"]


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


@pytest.fixture
def written(installed, start_server, tmp_path):
    """A client of an empty server that takes uploads, and the server's folder."""
    root = tmp_path / "root"
    root.mkdir()
    client = JavaScriptClient(installed, start_server(root, "--writable").url)
    client.call("create", "org/new")
    return client, root / "org/new"


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


def test_uploads(written, tmp_path):
    client, folder = written
    commit = client.call("upload", "org/new", "small.bin", 1000)
    assert (folder / "small.bin").read_bytes() == b"0123456789abcdef" * 62 + b"01234567"
    assert client.call("modelInfo", "org/new")["sha"] == commit
    (tmp_path / "README.md").write_bytes(b"# Card\n")
    client.call("uploadFrom", "org/new", "README.md", str(tmp_path / "README.md"))
    assert (folder / "README.md").read_bytes() == b"# Card\n"
    client.call("deleteFile", "org/new", "small.bin")
    assert not (folder / "small.bin").exists()


def test_a_large_upload(written, tmp_path):
    client, folder = written
    source = tmp_path / "source.bin"
    with source.open("wb") as file:
        for number in range(0, LARGE_BYTES, 1 << 20):
            file.write(containers.pattern(1 << 20, seed=number))
    client.call("uploadFrom", "org/new", "data/large.bin", str(source))
    assert subprocess.run(["cmp", source, folder / "data/large.bin"]).returncode == 0


def test_tokens(installed, start_server, tmp_path):
    """Large uploads go by their permit: this client sends no token with them."""
    reader, writer = Client("reader", "read"), Client("writer", "write")
    for client in (reader, writer):
        # It takes only tokens that look like the Hub's own.
        client.token = "hf_" + client.token
    root = tmp_path / "root"
    served = make_model(root / "org/model")
    server = start_server(root, "--writable", "--tokens", write_tokens(tmp_path / "tokens", reader, writer))
    for token in (None, "hf_" + "x" * 40):
        with pytest.raises(Thrown) as thrown:
            JavaScriptClient(installed, server.url, token).call("downloadFile", "org/model", "config.json")
        assert thrown.value.args[1] == 401
    reads, writes = (JavaScriptClient(installed, server.url, client.token) for client in (reader, writer))
    assert reads.call("whoAmI") == "reader"
    assert base64.b64decode(reads.call("downloadFile", "org/model", "config.json")) == served["config.json"]
    with pytest.raises(Thrown) as thrown:
        reads.call("upload", "org/model", "small.bin", 100)
    assert thrown.value.args[1] == 403
    writes.call("upload", "org/model", "large.bin", 30 << 20)
    assert (root / "org/model/large.bin").stat().st_size == 30 << 20
