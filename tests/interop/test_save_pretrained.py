"""What transformers' save_pretrained writes in several files is served as one model, every byte as safetensors and torch load
it. The current release writes safetensors only; an older one is here for pytorch_model.bin."""

import hashlib
import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from environments import is_available, run_client
from server_process import PROGRAM

RELEASES = {"transformers-5.23.0": {"safetensors"}, "transformers-4.46.3": {"safetensors", "bin"}}
# Below the name of the joined model, in an index's own.
SUFFIXES = {"safetensors": ".safetensors.index.json", "bin": ".bin.index.json"}


@pytest.fixture(scope="module", params=RELEASES)
def written(request, tmp_path_factory):
    """The folder, and by the path of each index in it the tensors of that model."""
    if not is_available(request.param):
        pytest.skip(f"{request.param} cannot be installed here")
    folder = tmp_path_factory.mktemp("pretrained")
    indices = {Path(path): tensors for path, tensors in json.loads(run_client(request.param, "write", folder)).items()}
    formats = {path.parent.name.rpartition("-")[2] for path in indices}
    assert formats == RELEASES[request.param]
    return folder, indices


def model_of(folder, index):
    suffix = SUFFIXES[index.parent.name.rpartition("-")[2]]
    return str(index.relative_to(folder)).removesuffix(suffix)


def test_the_joined_model_has_every_tensor_byte_for_byte(written, start_server):
    folder, indices = written
    server = start_server(folder)
    listed = {entry["name"]: entry for entry in requests.get(f"{server.url}/v1/models?parts=false").json()["models"]}
    assert sorted(listed) == sorted(model_of(folder, index) for index in indices)
    for index, tensors in indices.items():
        url = f"{server.url}/v1/models/{quote(model_of(folder, index), safe='')}"
        objects = requests.get(url).json()["objects"]
        shown = {name: entry["shape"] for name, entry in objects.items()}
        assert shown == {name: tensor["shape"] for name, tensor in tensors.items()}
        assert len({entry["components"]["data"]["shard"] for entry in objects.values()}) > 2
        for name, tensor in tensors.items():
            answer = requests.get(f"{url}/objects/{quote(name, safe='')}/data")
            assert answer.status_code == 200, answer.text
            assert hashlib.sha256(answer.content).hexdigest() == tensor["sha256"], name


def test_the_commands_find_it_whole(written, tmp_path):
    _, indices = written
    for index, tensors in indices.items():
        result = subprocess.run([PROGRAM, "verify", index], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        assert f"{len(tensors)} objects" in result.stdout
        out = tmp_path / f"{index.parent.name}.zt"
        subprocess.run([PROGRAM, "convert", index, out], check=True)
        made = json.loads(subprocess.run([PROGRAM, "ls", "--json", out], capture_output=True, check=True).stdout)["objects"]
        digests = {name: entry["components"]["data"]["digest"].removeprefix("sha256:") for name, entry in made.items()}
        assert digests == {name: tensor["sha256"] for name, tensor in tensors.items()}
