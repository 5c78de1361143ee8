"""Models in several files as transformers' save_pretrained makes them: huggingface_hub chooses the parts, safetensors writes
them. `write FOLDER`, `read INDEX` (prints SHA-256 by tensor as JSON), `plan FILE BYTES` (prints the part of each tensor of a
single file as JSON)."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from huggingface_hub import split_state_dict_into_shards_factory
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

MAX_SHARD_BYTES = 20_000


def split(tensors, stem, size):
    return split_state_dict_into_shards_factory(
        tensors,
        get_storage_size=lambda tensor: tensor.nbytes,
        filename_pattern=stem + "{suffix}.safetensors",
        max_shard_size=size,
    )


def make_tensors():
    random = np.random.default_rng(61)
    tensors = {"embed.weight": random.standard_normal((100, 64)).astype(np.float32)}
    for layer in range(12):
        tensors[f"layers.{layer}.weight"] = random.standard_normal((32, 48)).astype(np.float16)
        tensors[f"layers.{layer}.bias"] = random.standard_normal(48).astype(np.float32)
    tensors["größe"] = np.arange(7, dtype=np.int64)
    tensors["none"] = np.zeros((0, 4), dtype=np.float32)
    return tensors


def write(folder):
    tensors = make_tensors()
    plan = split(tensors, "model", MAX_SHARD_BYTES)
    for name, keys in plan.filename_to_tensors.items():
        save_file({key: tensors[key] for key in keys}, folder / name, metadata={"format": "pt"})
    index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    print(json.dumps(digests(tensors)))


def digests(tensors):
    return {name: hashlib.sha256(tensor.tobytes()).hexdigest() for name, tensor in tensors.items()}


def read(path):
    weight_map = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
    tensors = {}
    for name in sorted(set(weight_map.values())):
        part = load_file(path.parent / name)
        assert all(weight_map[key] == name for key in part)
        tensors.update(part)
    assert sorted(tensors) == sorted(weight_map)
    print(json.dumps(digests(tensors)))


def plan_of(path, size):
    """In the order of the bytes in the file."""
    with safe_open(path, "np") as file:
        tensors = {name: file.get_tensor(name) for name in file.offset_keys()}
    plan = split(tensors, "out", size)
    print(json.dumps({"weight_map": plan.tensor_to_filename, "metadata": plan.metadata}))


command, argument = sys.argv[1], Path(sys.argv[2])
if command == "write":
    write(argument)
elif command == "read":
    read(argument)
else:
    plan_of(argument, int(sys.argv[3]))
