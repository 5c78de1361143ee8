"""Folders that a Hub's clients see as repositories. Each function writes one and returns {path in the repository: bytes} of
what must be served, no more and no less."""

import json
import subprocess

import numpy as np

from server_process import PROGRAM

import containers
import joined

WORDS = ["[UNK]", "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"]
HIDDEN_SIZE, INNER_SIZE, LAYERS, HEADS = 16, 24, 2, 4
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": len(WORDS),
    "hidden_size": HIDDEN_SIZE,
    "intermediate_size": INNER_SIZE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# What URLs, shells and HTML treat in a way of their own.
ODD_NAMES = ["a blank.txt", "d+e.txt", "hash#tag.txt", "100%.txt", "%41.txt", "ünlaut.txt", "sub/ü b+c#d%/e.txt", "_leading@.txt"]
# A commit says in which bytes a model is; hidden names and links that lead elsewhere say nothing at all.
HIDDEN_NAMES = [".hidden.json", ".git/config", "sub/.cache/file.txt"]
SECRET = b"nobody outside may read this\n"


def write_files(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def as_json(value):
    return json.dumps(value, indent=2).encode() + b"\n"


def make_tokenizer():
    """A tokenizer of whole words."""
    unknown = {"id": 0, "content": WORDS[0], "special": True, "normalized": False}
    unknown.update(dict.fromkeys(("single_word", "lstrip", "rstrip"), False))
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [unknown],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": WORDS[0]},
    }


def text_files():
    tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": WORDS[0], "model_max_length": 64}
    return {
        "config.json": as_json(CONFIG),
        "tokenizer.json": as_json(make_tokenizer()),
        "tokenizer_config.json": as_json(tokenizer_config),
        "generation_config.json": as_json({"bos_token_id": 1, "eos_token_id": 2}),
        "README.md": b"---\nlicense: mit\nlanguage: en\n---\n# A very small model\n",
    }


def weight_shapes():
    """The tensors of a Llama model."""
    wide, narrow = (INNER_SIZE, HIDDEN_SIZE), (HIDDEN_SIZE, INNER_SIZE)
    shapes = {"model.embed_tokens.weight": (len(WORDS), HIDDEN_SIZE), "model.norm.weight": (HIDDEN_SIZE,)}
    for layer in range(LAYERS):
        part = f"model.layers.{layer}."
        shapes.update({f"{part}self_attn.{name}_proj.weight": (HIDDEN_SIZE, HIDDEN_SIZE) for name in "qkvo"})
        shapes.update({f"{part}mlp.gate_proj.weight": wide, f"{part}mlp.up_proj.weight": wide})
        shapes[f"{part}mlp.down_proj.weight"] = narrow
        shapes.update({f"{part}{name}_layernorm.weight": (HIDDEN_SIZE,) for name in ("input", "post_attention")})
    return {**shapes, "lm_head.weight": (len(WORDS), HIDDEN_SIZE)}


def zt_weights():
    random = np.random.default_rng(29)
    arrays = {name: random.standard_normal(shape).astype("<f4") for name, shape in weight_shapes().items()}
    objects = {name: containers.dense(array.tobytes(), "f32", list(array.shape)) for name, array in arrays.items()}
    return bytes(containers.zt1(objects))


def convert(folder, content, out, *options):
    """What this project's own writer makes of the bytes of a `.zt` file: the names of the files it leaves in `folder`."""
    source = folder.parent / f"{folder.name}.source.zt"
    source.write_bytes(content)
    before = set(folder.iterdir())
    subprocess.run([PROGRAM, "convert", source, folder / out, *options], check=True, capture_output=True)
    source.unlink()
    return {path.name: path.read_bytes() for path in set(folder.iterdir()) - before}


def make_model(folder):
    """Configuration, tokenizer, weights, a subfolder, an empty file, odd names; beside them what must not be served."""
    served = write_files(folder, {**text_files(), "empty.txt": b"", "onnx/config.json": b"{}\n"})
    served |= convert(folder, zt_weights(), "model.safetensors")
    served |= write_files(folder, {name: name.encode() for name in ODD_NAMES})
    write_files(folder, {name: SECRET for name in HIDDEN_NAMES})
    outside = folder.parent.parent.parent / "outside.txt"
    outside.write_bytes(SECRET)
    (folder / "link.txt").symlink_to(outside)
    return served


def make_sharded(folder):
    served = write_files(folder, text_files())
    served |= convert(folder, zt_weights(), "model.safetensors", "--max-shard", "4KiB")
    assert "model.safetensors.index.json" in served and len(served) > 7
    return served


def make_zt_only(folder):
    return write_files(folder, {**text_files(), "weights.zt": zt_weights()})


def make_gguf(folder):
    return write_files(folder, {"tiny-Q8_0.gguf": joined.gguf({"w": containers.pattern(4096)}), "README.md": b"# GGUF\n"})


def make_many(folder, count=2500):
    return write_files(folder, {f"part-{number % 7}/{number:04}.txt": b"%d\n" % number for number in range(count)})


def make_large(folder, size=45 << 20):
    return write_files(folder, {"large.bin": containers.pattern(size), "config.json": b"{}\n"})
