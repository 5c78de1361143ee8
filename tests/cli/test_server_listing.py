"""ls URL lists the models of a server, by pages of any length."""

import json
from dataclasses import replace
from types import SimpleNamespace

import joined
import meddler as meddling
import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1

MODEL = zt1({"w": dense(pattern(3000, seed=61), digest="sha256")})


@pytest.fixture
def filled(root, start_server):
    """A server with models of some formats, one of which cannot be read."""
    (root / "org/deep").mkdir(parents=True)
    (root / "a.zt").write_bytes(MODEL)
    (root / "org/deep/b c.zt").write_bytes(MODEL)
    (root / "org/bad.zt").write_bytes(b"nonsense" * 100)
    for name, data in joined.files_with_index("s", [pattern(4000, seed=62), pattern(3000, seed=63)]).items():
        (root / "org" / name).write_bytes(data)
    return start_server(root)


NAMES = ["a", "org/bad", "org/deep/b c", "org/s"]


@pytest.mark.parametrize("path", ["", "/", "/v1/models", "/v1/models/"])
def test_every_model_is_a_line(filled, ztserve, path):
    result = ztserve("ls", filled.url + path)
    assert result.status == 1  # as for a folder with a file that cannot be read
    assert [line.split("  ")[0] for line in result.lines] == ["NAME        ".strip(), *NAMES, result.lines[-1]]
    assert result.lines[-1].startswith("4 models, ") and result.lines[-1].endswith("1 cannot be read")
    assert result.errors == ""


def test_parameters_are_counted(filled, ztserve):
    line = next(line for line in ztserve("ls", filled.url).lines if line.startswith("org/s "))
    assert line.split()[1:5] == ["safetensors", "2", "7.0", "K"]
    assert [model["parameters"] for model in json.loads(ztserve("ls", "--json", filled.url).output)] == [3000, None, 3000, 7000]


def test_names_alone_and_the_models_of_a_folder(filled, ztserve):
    assert ztserve("ls", "-q", filled.url).lines == NAMES
    for path in ("/org/", "/v1/models/org/"):
        assert ztserve("ls", "-q", filled.url + path).lines == NAMES[1:]
    assert ztserve("ls", "-q", filled.url + "/org/deep/").lines == NAMES[2:3]


def test_json_is_the_servers_listing(filled, ztserve):
    listed = json.loads(ztserve("ls", "--json", filled.url).output)
    assert [model["name"] for model in listed] == NAMES
    by_name = {model["name"]: model for model in listed}
    assert by_name["a"]["href"] == "/v1/models/a" and by_name["a"]["size"] == len(MODEL)
    assert by_name["org/bad"]["error"]["code"] == "invalid-model"
    assert by_name["org/s"]["objects"] == 2
    two = json.loads(ztserve("ls", "--json", filled.url, filled.url + "/a").output)
    assert [entry.get("name") for entry in two[:4]] == NAMES and len(two) == 5


def test_pages_are_followed(filled, ztserve):
    between = meddling.Meddler(SimpleNamespace(endpoint=filled.url))
    rule = between.meddle(
        lambda request, handler: handler.forward(replace(request, target=request.target.replace("limit=1000", "limit=1")))
    )
    assert ztserve("ls", "-q", between.endpoint).lines == NAMES
    between.close()
    assert rule.used >= 4


def test_a_server_without_models_is_listed_as_empty(server, ztserve):
    result = ztserve("ls", server.url)
    assert (result.status, result.lines, result.errors) == (0, ["0 models, 0 bytes"], "")
    assert ztserve("ls", "--json", server.url).output == "[\n]\n"


def test_a_token_is_sent(root, start_server, ztserve, tmp_path):
    (root / "a.zt").write_bytes(MODEL)
    (root / "b.zt").write_bytes(MODEL)
    client = Client("me", "read", "b")
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", client))
    (tmp_path / "token").write_text(client.token)
    refused = ztserve("ls", server.url)
    assert refused.status == 1 and "requires a token" in refused.errors
    assert ztserve("ls", "-q", server.url, "--token-file", tmp_path / "token").lines == ["b"]
    (tmp_path / "token").write_text("wrong")
    refused = ztserve("ls", server.url, "--token-file", tmp_path / "token")
    assert refused.status == 1 and "the server refused the token (ZTSERVE_TOKEN or --token-file) (401" in refused.errors


def test_a_server_that_is_none_of_models_is_reported(hosts_nothing, ztserve):
    result = ztserve("ls", hosts_nothing + "/", hosts_nothing + "/x/")
    assert result.status == 1 and len(result.error_lines) == 2 and result.output == ""


@pytest.fixture
def hosts_nothing(server):
    between = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    between.meddle(meddling.reply(404, b"<html>nothing</html>"))
    yield between.endpoint
    between.close()
