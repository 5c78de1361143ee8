"""transformers over a Hub: `small REPO` prints what the configuration and the tokenizer say, `logits REPO …` what each model
computes; REPO may be a folder. The last line printed is JSON."""

import json
import sys

from transformers import AutoConfig, AutoTokenizer

TEXT = "The quick brown fox jumps over a lazy cat"


def look_at_small_files(repo):
    config = AutoConfig.from_pretrained(repo)
    tokenizer = AutoTokenizer.from_pretrained(repo)
    return {"hidden_size": config.hidden_size, "type": config.model_type, "ids": tokenizer(TEXT)["input_ids"]}


def compute_logits(*repos):
    import torch
    from transformers import AutoModelForCausalLM

    computed = []
    for repo in repos:
        model, loading = AutoModelForCausalLM.from_pretrained(repo, output_loading_info=True)
        assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), (repo, loading)
        ids = AutoTokenizer.from_pretrained(repo)(TEXT, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            computed.append(model(ids).logits.flatten().tolist())
    return computed


print()
print(json.dumps({"small": look_at_small_files, "logits": compute_logits}[sys.argv[1]](*sys.argv[2:])))
