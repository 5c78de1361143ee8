"""Models of the architectures that named sets of axis rules are for, with the axis by which ranks divide each tensor; and what
each rank should get."""

import json
import struct

import numpy

from containers import dense, pattern

HIDDEN, INNER, VOCABULARY, EXPERTS, HEADS = 32, 64, 24, 4, 8
WHOLE = None

# Roles, written down tensor by tensor: shape, and the axis by which the published parallel implementations divide it.
EMBEDDINGS = {
    "model.embed_tokens.weight": ((VOCABULARY, HIDDEN), 0),
    "lm_head.weight": ((VOCABULARY, HIDDEN), 0),
    "model.norm.weight": ((HIDDEN,), WHOLE),
}
ATTENTION = {
    "self_attn.q_proj.weight": ((HIDDEN, HIDDEN), 0),
    "self_attn.k_proj.weight": ((16, HIDDEN), 0),
    "self_attn.v_proj.weight": ((16, HIDDEN), 0),
    "self_attn.o_proj.weight": ((HIDDEN, HIDDEN), 1),
    "input_layernorm.weight": ((HIDDEN,), WHOLE),
    "post_attention_layernorm.weight": ((HIDDEN,), WHOLE),
}
BIASES = {
    "self_attn.q_proj.bias": ((HIDDEN,), 0),
    "self_attn.k_proj.bias": ((16,), 0),
    "self_attn.v_proj.bias": ((16,), 0),
    "self_attn.o_proj.bias": ((HIDDEN,), WHOLE),
}
DENSE = {
    "mlp.gate_proj.weight": ((INNER, HIDDEN), 0),
    "mlp.up_proj.weight": ((INNER, HIDDEN), 0),
    "mlp.down_proj.weight": ((HIDDEN, INNER), 1),
}
DENSE_BIASES = {"mlp.gate_proj.bias": ((INNER,), 0), "mlp.up_proj.bias": ((INNER,), 0), "mlp.down_proj.bias": ((HIDDEN,), WHOLE)}
HEAD_NORMS = {"self_attn.q_norm.weight": ((4,), WHOLE), "self_attn.k_norm.weight": ((4,), WHOLE)}
GEMMA_NORMS = {
    "pre_feedforward_layernorm.weight": ((HIDDEN,), WHOLE),
    "post_feedforward_layernorm.weight": ((HIDDEN,), WHOLE),
}
MIXTRAL = {"block_sparse_moe.gate.weight": ((EXPERTS, HIDDEN), WHOLE)}
QWEN_MOE = {
    "mlp.gate.weight": ((EXPERTS, HIDDEN), WHOLE),
    "mlp.shared_expert.gate_proj.weight": ((INNER, HIDDEN), 0),
    "mlp.shared_expert.up_proj.weight": ((INNER, HIDDEN), 0),
    "mlp.shared_expert.down_proj.weight": ((HIDDEN, INNER), 1),
    "mlp.shared_expert_gate.weight": ((1, HIDDEN), WHOLE),
}
for expert in range(EXPERTS):
    MIXTRAL |= {
        f"block_sparse_moe.experts.{expert}.w1.weight": ((INNER, HIDDEN), 0),
        f"block_sparse_moe.experts.{expert}.w2.weight": ((HIDDEN, INNER), 1),
        f"block_sparse_moe.experts.{expert}.w3.weight": ((INNER, HIDDEN), 0),
    }
    QWEN_MOE |= {
        f"mlp.experts.{expert}.gate_proj.weight": ((INNER, HIDDEN), 0),
        f"mlp.experts.{expert}.up_proj.weight": ((INNER, HIDDEN), 0),
        f"mlp.experts.{expert}.down_proj.weight": ((HIDDEN, INNER), 1),
    }
GPT_OSS = {
    "self_attn.sinks": ((HEADS,), 0),
    "mlp.router.weight": ((EXPERTS, HIDDEN), WHOLE),
    "mlp.router.bias": ((EXPERTS,), WHOLE),
    "mlp.experts.gate_up_proj_bias": ((EXPERTS, 2 * INNER), 1),
    "mlp.experts.down_proj_bias": ((EXPERTS, HIDDEN), WHOLE),
}
# Outputs before inputs, as in the published file.
GPT_OSS_PACKED = GPT_OSS | {
    "mlp.experts.gate_up_proj_blocks": ((EXPERTS, 2 * INNER, 1, 16), 1),
    "mlp.experts.gate_up_proj_scales": ((EXPERTS, 2 * INNER, 1), 1),
    "mlp.experts.down_proj_blocks": ((EXPERTS, HIDDEN, 4, 16), 2),
    "mlp.experts.down_proj_scales": ((EXPERTS, HIDDEN, 4), 2),
}
# Inputs before outputs, as transformers holds them.
GPT_OSS_PLAIN = GPT_OSS | {
    "mlp.experts.gate_up_proj": ((EXPERTS, HIDDEN, 2 * INNER), 2),
    "mlp.experts.down_proj": ((EXPERTS, INNER, HIDDEN), 1),
}
GGUF_ENDS = {
    "token_embd.weight": ((VOCABULARY, HIDDEN), 0),
    "output.weight": ((VOCABULARY, HIDDEN), 0),
    "output_norm.weight": ((HIDDEN,), WHOLE),
    "rope_freqs.weight": ((2,), WHOLE),
}
GGUF_ATTENTION = {
    "attn_norm.weight": ((HIDDEN,), WHOLE),
    "ffn_norm.weight": ((HIDDEN,), WHOLE),
    "attn_q.weight": ((HIDDEN, HIDDEN), 0),
    "attn_k.weight": ((16, HIDDEN), 0),
    "attn_v.weight": ((16, HIDDEN), 0),
    "attn_q.bias": ((HIDDEN,), 0),
    "attn_output.weight": ((HIDDEN, HIDDEN), 1),
    "attn_output.bias": ((HIDDEN,), WHOLE),
}
GGUF_HEAD_NORMS = {"attn_q_norm.weight": ((4,), WHOLE), "attn_k_norm.weight": ((4,), WHOLE)}
GGUF_DENSE = {
    "ffn_gate.weight": ((INNER, HIDDEN), 0),
    "ffn_up.weight": ((INNER, HIDDEN), 0),
    "ffn_down.weight": ((HIDDEN, INNER), 1),
    "ffn_down.bias": ((HIDDEN,), WHOLE),
}
GGUF_EXPERTS = {
    "ffn_gate_inp.weight": ((EXPERTS, HIDDEN), WHOLE),
    "ffn_gate_exps.weight": ((EXPERTS, INNER, HIDDEN), 1),
    "ffn_up_exps.weight": ((EXPERTS, INNER, HIDDEN), 1),
    "ffn_down_exps.weight": ((EXPERTS, HIDDEN, INNER), 2),
}
GGUF_SHARED = {
    "ffn_gate_inp_shexp.weight": ((HIDDEN,), WHOLE),
    "ffn_gate_shexp.weight": ((INNER, HIDDEN), 0),
    "ffn_up_shexp.weight": ((INNER, HIDDEN), 0),
    "ffn_down_shexp.weight": ((HIDDEN, INNER), 1),
}
GGUF_GPT_OSS = {
    "attn_sinks.weight": ((HEADS,), 0),
    "ffn_gate_inp.bias": ((EXPERTS,), WHOLE),
    "ffn_gate_exps.bias": ((EXPERTS, INNER), 1),
    "ffn_up_exps.bias": ((EXPERTS, INNER), 1),
    "ffn_down_exps.bias": ((EXPERTS, HIDDEN), WHOLE),
    "post_attention_norm.weight": ((HIDDEN,), WHOLE),
}


def checkpoint(*parts, before="model."):
    layers = {f"{before}layers.{layer}.{name}": role for layer in range(2) for part in parts for name, role in part.items()}
    return {name.replace("model.", before, 1): role for name, role in EMBEDDINGS.items()} | layers


def gguf(*parts):
    return GGUF_ENDS | {f"blk.{layer}.{name}": role for layer in range(2) for part in parts for name, role in part.items()}


MODELS = {
    "llama": (["llama"], checkpoint(ATTENTION, DENSE)),
    "llama-biases": (["llama"], checkpoint(ATTENTION, BIASES, DENSE, DENSE_BIASES)),
    "mistral": (["mistral"], checkpoint(ATTENTION, DENSE)),
    "qwen2": (["qwen2"], checkpoint(ATTENTION, BIASES, DENSE)),
    "qwen3": (["qwen3"], checkpoint(ATTENTION, HEAD_NORMS, DENSE)),
    "gemma": (["gemma", "gemma2", "gemma3"], checkpoint(ATTENTION, HEAD_NORMS, GEMMA_NORMS, DENSE)),
    "gemma-text": (["gemma3"], checkpoint(ATTENTION, GEMMA_NORMS, DENSE, before="language_model.model.")),
    "bare": (["llama"], checkpoint(ATTENTION, DENSE, before="")),
    "mixtral": (["mixtral"], checkpoint(ATTENTION, MIXTRAL)),
    "qwen-moe": (["qwen-moe", "qwen2-moe", "qwen3_moe"], checkpoint(ATTENTION, BIASES, HEAD_NORMS, QWEN_MOE, DENSE)),
    "gpt-oss": (["gpt-oss", "gpt_oss"], checkpoint(ATTENTION, BIASES, GPT_OSS_PACKED)),
    "gpt-oss-plain": (["gpt-oss"], checkpoint(ATTENTION, BIASES, GPT_OSS_PLAIN)),
    "gguf-llama": (["llama"], gguf(GGUF_ATTENTION, GGUF_DENSE)),
    "gguf-qwen3": (["qwen3"], gguf(GGUF_ATTENTION, GGUF_HEAD_NORMS, GGUF_DENSE)),
    "gguf-mixtral": (["mixtral"], gguf(GGUF_ATTENTION, GGUF_EXPERTS)),
    "gguf-qwen-moe": (["qwen-moe"], gguf(GGUF_ATTENTION, GGUF_EXPERTS, GGUF_SHARED)),
    "gguf-qwen3-moe": (["qwen3-moe"], gguf(GGUF_ATTENTION, GGUF_HEAD_NORMS, GGUF_EXPERTS)),
    "gguf-gpt-oss": (["gpt-oss"], gguf(GGUF_ATTENTION, GGUF_EXPERTS, GGUF_GPT_OSS)),
}
UNKNOWN = {
    "phi3": {"model.layers.0.self_attn.qkv_proj.weight": (96, HIDDEN), "model.layers.0.self_attn.o_proj.weight": (HIDDEN, HIDDEN)},
    "phi3-mlp": {"model.layers.0.mlp.gate_up_proj.weight": (2 * INNER, HIDDEN), "model.norm.weight": (HIDDEN,)},
    "fp8": {"model.layers.0.self_attn.o_proj.weight_scale_inv": (8, 8), "model.norm.weight": (HIDDEN,)},
    "adapter": {"base.model.layers.0.self_attn.q_proj.lora_A.weight": (8, HIDDEN), "model.norm.weight": (HIDDEN,)},
    "gguf-fused-up": {"blk.0.ffn_up.weight": (2 * INNER, HIDDEN), "output_norm.weight": (HIDDEN,)},
    "command-r-plus": {"model.layers.0.self_attn.q_norm.weight": (HEADS, 4), "model.norm.weight": (HIDDEN,)},
    "gguf-command-r-plus": {"blk.0.attn_k_norm.weight": (HEADS, 4), "output_norm.weight": (HIDDEN,)},
    "other": {"a": (8, 8)},
    "gguf-fused": {"blk.0.attn_qkv.weight": (96, HIDDEN), "output_norm.weight": (HIDDEN,)},
}


def arrays_of(shapes):
    return {
        name: numpy.frombuffer(pattern(4 * int(numpy.prod(shape)), seed), "<i4").reshape(shape)
        for seed, (name, shape) in enumerate(shapes.items())
    }


ARRAYS = {model: arrays_of({name: shape for name, (shape, _) in roles.items()}) for model, (_, roles) in MODELS.items()}


def objects_of(arrays, **options):
    return {name: dense(array.tobytes(), "i32", list(array.shape), **options) for name, array in arrays.items()}


def read(data):
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: numpy.frombuffer(data[8 + length :][slice(*entry["data_offsets"])], {"I32": "<i4", "F32": "<f4"}[entry["dtype"]])
        .reshape(entry["shape"])
        for name, entry in header.items()
    }


def chunk(array, axis, rank, ranks):
    return array if axis is WHOLE else numpy.split(array, ranks, axis)[rank]


def assert_share(made, model, rank, ranks=4):
    assert set(made) == set(ARRAYS[model])
    for name, array in ARRAYS[model].items():
        wanted = chunk(array, MODELS[model][1][name][1], rank, ranks)
        assert made[name].shape == wanted.shape and made[name].tobytes() == wanted.tobytes(), name
