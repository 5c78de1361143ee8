"""Models in several files as the tools that people use make them and read them."""

import json
import subprocess

import pytest

from environments import read_with, run_client
from server_process import PROGRAM


def ztserve(*arguments):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_what_save_pretrained_writes_is_joined(tmp_path):
    wanted = json.loads(run_client("parts", "write", tmp_path))
    index = tmp_path / "model.safetensors.index.json"
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    # No word about total_size: the writer and we count the same.
    assert ztserve("verify", index).endswith("the file states no digests, so its bytes cannot be verified)\n")
    ztserve("convert", index, tmp_path / "whole.safetensors")
    assert read_with("safetensors", tmp_path / "whole.safetensors") == wanted


@pytest.mark.parametrize("size", [1, 3_000, 20_000, 40_000])
def test_parts_are_those_that_huggingface_hub_would_choose(tmp_path, size):
    wanted = json.loads(run_client("parts", "write", tmp_path))
    whole, index = tmp_path / "whole.safetensors", tmp_path / "out.safetensors.index.json"
    ztserve("convert", tmp_path / "model.safetensors.index.json", whole)
    ztserve("convert", whole, tmp_path / "out.safetensors", "--max-shard", size)
    assert json.loads(run_client("parts", "read", index)) == wanted
    assert json.loads(index.read_text()) == json.loads(run_client("parts", "plan", whole, size))


@pytest.mark.parametrize("arguments", [[3], [1], [5, "small"]])
def test_what_gguf_splits_is_joined(tmp_path, arguments):
    wanted = json.loads(run_client("gguf", tmp_path, *arguments, script="client_gguf_split.py"))
    parts = sorted(tmp_path.glob("model-*-of-*.gguf"))
    assert len(parts) > 2
    assert f"{len(wanted)} objects" in ztserve("verify", parts[0])
    manifest = json.loads(ztserve("ls", "--json", parts[0]))
    assert manifest["name"] == "model"
    assert manifest["attributes"] == {"general.architecture": "test"}
    assert sorted(manifest["objects"]) == sorted(wanted)
    ztserve("convert", parts[0], tmp_path / "whole.zt")
    ztserve("verify", tmp_path / "whole.zt")
    digests = {
        name: entry["components"]["data"]["digest"]
        for name, entry in json.loads(ztserve("ls", "--json", tmp_path / "whole.zt"))["objects"].items()
    }
    assert digests == {name: f"sha256:{digest}" for name, digest in wanted.items()}
