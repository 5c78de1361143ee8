"""A repository as transformers writes it: `write FOLDER` makes a small Llama in several files with a tokenizer, `load FOLDER`
prints what from_pretrained finds there: the SHA-256 of each weight, and the tokens of a sentence."""

import hashlib
import json
import sys
import warnings

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

warnings.simplefilter("ignore")

PART_SIZE = "1MB"
WORDS = ["[UNK]", "a", "model", "in", "several", "files", *(f"word{number}" for number in range(2000))]


def write(folder):
    torch.manual_seed(17)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=128, intermediate_size=192, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2
    )
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size=PART_SIZE)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder)


def load(folder):
    weights = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    found = {
        name: hashlib.sha256(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest() for name, tensor in weights.items()
    }
    found["tokens"] = AutoTokenizer.from_pretrained(folder)("a model in several unknown files")["input_ids"]
    print(json.dumps(found))


{"write": write, "load": load}[sys.argv[1]](sys.argv[2])
