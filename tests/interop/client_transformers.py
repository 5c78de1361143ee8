"""A small model as transformers' save_pretrained writes it in several files: `write FOLDER` prints, by the path of each
index, the tensors that the parts hold: shape and SHA-256, as safetensors and torch load them."""

import hashlib
import inspect
import json
import sys
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

warnings.simplefilter("ignore")

PART_SIZE = "15KB"


def make_model(tied):
    torch.manual_seed(13)
    config = LlamaConfig(
        vocab_size=120,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16)


def bytes_of(tensor):
    return tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()


def load(path):
    return load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)


def described(index):
    """What the parts hold, each tensor in the part that the index names."""
    places = json.loads(index.read_text())["weight_map"]
    tensors = {}
    for part in sorted(set(places.values())):
        found = load(index.parent / part)
        assert all(places[name] == part for name in found)
        tensors.update(found)
    assert sorted(tensors) == sorted(places)
    return {
        name: {"shape": list(tensor.shape), "sha256": hashlib.sha256(bytes_of(tensor)).hexdigest()}
        for name, tensor in tensors.items()
    }


def write(folder):
    # Releases from 5 on write safetensors only.
    keeps_pickles = "safe_serialization" in inspect.signature(LlamaForCausalLM.save_pretrained).parameters
    for tied in (False, True):
        model = make_model(tied)
        stem = "tied" if tied else "apart"
        model.save_pretrained(folder / f"{stem}-safetensors", max_shard_size=PART_SIZE)
        if keeps_pickles:
            model.save_pretrained(folder / f"{stem}-bin", max_shard_size=PART_SIZE, safe_serialization=False)
    print(json.dumps({str(index): described(index) for index in sorted(folder.glob("*/*.index.json"))}))


assert sys.argv[1] == "write"
write(Path(sys.argv[2]))
