"""Models of other formats, which the Hub's clients find as safetensors files too."""

import hashlib
import json
import os

import pytest

import neighbours
from containers import dense, pattern, zstd_dense, zt1
from test_export import read_safetensors
from wire import ask, eventually, get, head

REPO = "org/model"
TENSORS = {"a": pattern(64), "b": pattern(128, 2), "c": pattern(32, 3)}
ZT = zt1({name: dense(data, dtype="f32", shape=[len(data) // 4]) for name, data in TENSORS.items()})


def fill(root, files, repo=REPO):
    for name, content in files.items():
        path = root / repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(server, repo=REPO):
    return [entry["rfilename"] for entry in get(server, f"/api/models/{repo}").json()["siblings"]]


def tree(server, repo=REPO, revision="main"):
    answer = get(server, f"/api/models/{repo}/tree/{revision}?recursive=true")
    return {entry["path"]: entry for entry in answer.json() if entry["type"] == "file"}


def commit_of(server, repo=REPO):
    return get(server, f"/api/models/{repo}").json()["sha"]


def resolve(server, name, commit=None, method=get, repo=REPO, **options):
    return method(server, f"/{repo}/resolve/{commit or commit_of(server, repo)}/{name}", **options)


def tensors_of(content):
    return {name: array.tobytes() for name, array in read_safetensors(content).items()}


def test_the_only_model_is_model_safetensors(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT, "config.json": b"{}"})
    server = start_server(tmp_path)
    assert names(server) == ["config.json", "model.safetensors", "weights.zt"]
    answer = resolve(server, "model.safetensors")
    assert answer.status == 200
    assert tensors_of(answer.body) == TENSORS
    assert json.loads(answer.body[8 : 8 + int.from_bytes(answer.body[:8], "little")])["__metadata__"] == {"format": "pt"}
    assert tree(server)["model.safetensors"]["size"] == len(answer.body)
    assert head(server, f"/{REPO}/resolve/{answer['X-Repo-Commit']}/model.safetensors")["Content-Length"] == str(len(answer.body))
    part = resolve(server, "model.safetensors", Range="bytes=5-99")
    assert (part.status, part.body) == (206, answer.body[5:100])
