"""tus-js-client, the client of browsers, unchanged: parallel uploads, also interrupted ones, and streams of unknown length."""

import hashlib
import json

import pytest
import requests

from node_clients import run_script

import containers


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    path = tmp_path_factory.mktemp("sent") / "sent.zt"
    path.write_bytes(containers.zt1({"w": containers.dense(containers.pattern(5_000_000))}))
    return path


@pytest.fixture
def upload(start_server, tmp_path, sent):
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, "--writable")

    def run(form):
        told = json.loads(run_script("tus", "client_tus.cjs", f"{server.url}/v1/resumable", sent, "m", form))
        stored = requests.get(f"{server.url}/files/m.zt").content
        assert hashlib.sha256(stored).digest() == hashlib.sha256(sent.read_bytes()).digest()
        assert requests.get(f"{server.url}/v1/models/m").status_code == 200
        assert requests.get(f"{server.url}/v1/uploads").json()["uploads"] == []
        shown = requests.head(told["url"], headers={"Tus-Resumable": "1.0.0"})
        assert shown.headers["Upload-Offset"] == shown.headers["Upload-Length"] == str(sent.stat().st_size)
        return told, shown.headers

    return run


def created(told, first=0):
    """Upload-Concat of each creation that succeeded."""
    return [one["concat"] for one in told["requests"][first:] if one["method"] == "POST" and one["status"] == 201]


def test_a_parallel_upload_becomes_one_model(upload):
    told, shown = upload("parallel")
    concats = created(told)
    assert concats[:4] == ["partial"] * 4 and len(concats) == 5
    assert shown["Upload-Concat"] == concats[4] and concats[4].startswith("final;http://")
    assert {one["status"] for one in told["requests"]} == {201, 204}


def test_an_interrupted_parallel_upload_goes_on_with_its_parts(upload):
    told, _ = upload("resumed")
    assert created(told)[:4] == ["partial"] * 4
    (final,) = created(told, told["first"])
    assert final.startswith("final;")
    heads = [one["status"] for one in told["requests"][told["first"] :] if one["method"] == "HEAD"]
    assert len(heads) >= 4 and set(heads) == {200}


def test_a_stream_of_unknown_length_becomes_a_model(upload):
    told, shown = upload("deferred")
    assert "Upload-Concat" not in shown
    (creation,) = [one for one in told["requests"] if one["method"] == "POST"]
    assert creation["deferred"] == "1" and creation["length"] is None
    lengths = [one["length"] for one in told["requests"] if one["method"] == "PATCH"]
    assert lengths[-1] == shown["Upload-Length"] and set(lengths[:-1]) == {None}
