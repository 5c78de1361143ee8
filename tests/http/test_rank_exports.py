"""GET …/export with several axis rules: the shares that docs/recipes.md gives to eight ranks make the model again."""

import re
from urllib.parse import quote

import numpy
import pytest

from containers import Component, Object, dense, pattern, zt1, zt2
from roles import read
from server_process import TOP
from wire import assert_problem, get, head, model_path

RANKS = 8
HIDDEN, INNER, VOCABULARY, LAYERS = 16, 32, 24, 2
COMMANDS = [
    command.split("\n\n")[0]
    for command in re.split(r"\n(?=#|curl|ztserve)", (TOP / "docs" / "recipes.md").read_text())
    if "axis" in command and command.startswith("curl")
]
RULES, GGUF_RULES = (re.findall(r"-d 'axis=(.*?)'", command) for command in COMMANDS)


def llama():
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "lm_head.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{name}_proj.weight": (HIDDEN, HIDDEN) for name in "qkvo"}
        shapes |= {f"{at}.self_attn.{name}_proj.bias": (HIDDEN,) for name in "qkvo"}
        shapes |= {f"{at}.mlp.{name}_proj.weight": (INNER, HIDDEN) for name in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.{name}": shape for name, shape in (("weight", (HIDDEN, INNER)), ("bias", (HIDDEN,)))}
        shapes |= {f"{at}.{name}_layernorm.weight": (HIDDEN,) for name in ("input", "post_attention")}
    return {
        name: numpy.frombuffer(pattern(4 * int(numpy.prod(shape)), seed), "<i4").reshape(shape)
        for seed, (name, shape) in enumerate(shapes.items())
    }


LLAMA = llama()
ROWS, COLUMNS = 16, 256
HALVES = (numpy.frombuffer(pattern(2 * COLUMNS, seed=90), "<u2") & 0xBFFF).view("<f2")
BLOCKS = numpy.frombuffer(pattern(ROWS * COLUMNS // 32 * 34, seed=91), numpy.uint8).reshape(-1, 34).copy()
BLOCKS[:, 1] &= 0xBF  # scales are finite


def q8_0():
    """As ggml dequantizes them."""
    scales = BLOCKS[:, :2].copy().view("<f2").astype("<f4")
    return (scales * BLOCKS[:, 2:].copy().view("i1").astype("<f4")).reshape(ROWS, COLUMNS)


def blocks():
    return Object([ROWS, COLUMNS], {"data": Component(BLOCKS.tobytes())}, "gguf.q8_0/1", {"block_bytes": 34, "elems_per_block": 32})


GGUF = {name: q8_0() for name in ("blk.0.attn_q.weight", "blk.0.attn_output.weight", "blk.0.ffn_down.weight")}
GGUF |= {name: HALVES.astype("<f4") for name in ("blk.0.attn_norm.weight", "blk.0.ffn_down.bias", "blk.0.attn_q.bias")}


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {name: dense(array.tobytes(), "i32", list(array.shape)) for name, array in LLAMA.items()}
    (folder / "llama.zt").write_bytes(zt1(objects))
    (folder / "blocks.zt").write_bytes(zt2({
        name: blocks() if array.ndim == 2 else dense(HALVES.tobytes(), "f16", [COLUMNS]) for name, array in GGUF.items()
    }))
    (folder / "named.zt").write_bytes(zt1({
        "a:0": dense(LLAMA["lm_head.weight"].tobytes(), "i32", [VOCABULARY, HIDDEN]), "scalar": dense(b"1234", "i32", [])
    }))
    return share_server(folder)


def target(rules, rank=0, ranks=RANKS, model="llama", **options):
    rest = "".join(f"&{name}={quote(str(value))}" for name, value in options.items())
    axes = "".join(f"&axis={quote(rule)}" for rule in rules)
    return f"{model_path(model)}/export?format=safetensors&shard={rank}/{ranks}{axes}{rest}"


def share(server, rules, *given, **options):
    answer = get(server, target(rules, *given, **options))
    assert answer.status == 200, answer
    assert int(answer["Content-Length"]) == len(answer.body)
    return read(answer.body)


def axis_of(name):
    """What the roles of the layers say, apart from the rules; None: whole."""
    if "norm" in name or re.search(r"(o_proj|down_proj|attn_output|ffn_down).bias$", name):
        return None
    return 1 if re.search(r"(o_proj|down_proj|attn_output|ffn_down).weight$", name) else 0


def assert_together(shares, whole):
    assert len(shares) == RANKS and all(set(one) == set(whole) for one in shares)
    for name, array in whole.items():
        parts = [one[name] for one in shares]
        if axis_of(name) is None:
            assert all(part.tobytes() == array.tobytes() for part in parts), name
        else:
            joined = numpy.concatenate(parts, axis_of(name))
            assert joined.shape == array.shape and joined.tobytes() == array.tobytes(), name


def test_eight_ranks_make_the_model(server):
    assert_together([share(server, RULES, rank) for rank in range(RANKS)], LLAMA)


def test_eight_ranks_make_the_dequantized_model(server):
    shares = [share(server, GGUF_RULES, rank, model="blocks", dtype="f32") for rank in range(RANKS)]
    assert_together(shares, GGUF)


def test_the_first_rule_that_matches_counts(server):
    name, array = "lm_head.weight", LLAMA["lm_head.weight"]
    for rules, axis in ((["*:1", "*head*:0"], 1), (["*head*:0", "1"], 0), (["*norm*:1"], 0), (["-1", "*:none"], 1),
                        (["*norm*:none", "1"], 1), ([], 0)):
        assert share(server, rules, 1, 2, match=name)[name].tobytes() == numpy.split(array, 2, axis)[1].tobytes(), rules
    for rules in (["*:none", "0"], ["lm_*:none"], ["none"]):
        assert share(server, rules, 1, 7, match=name)[name].tobytes() == array.tobytes(), rules


def test_the_last_colon_ends_the_glob(server):
    array = LLAMA["lm_head.weight"]
    made = share(server, ["a:0:1", "scalar:none"], 1, 2, model="named")
    assert made["a:0"].tobytes() == numpy.split(array, 2, 1)[1].tobytes() and made["scalar"].tobytes() == b"1234"


def test_rules_are_part_of_the_tag(server):
    lists = ([], ["1"], ["*o_proj*:1"], ["*o_proj*:0"], ["*o_proj*:none"], ["*:0", "*norm*:none"], ["*norm*:none", "*:0"])
    tags = {head(server, target(rules, 0, 1, match="*_proj.weight"))["ETag"] for rules in lists}
    assert len(tags) == len(lists)
    whole = get(server, target(RULES, 3))
    rest = get(server, target(RULES, 3), Range="bytes=1001-", If_Range=whole["ETag"])
    assert rest.status == 206 and rest.body == whole.body[1001:]


def test_what_does_not_fit_is_named(server):
    problem = assert_problem(get(server, target(["*norm*:2"], match="*norm*")), 422, "slice-out-of-range")
    assert problem["object"].endswith("layernorm.weight")
    problem = assert_problem(get(server, target(["*_proj.weight:1", "*:none"], ranks=5)), 422, "shape-not-divisible")
    assert problem["object"].endswith("_proj.weight")


@pytest.mark.parametrize("rule", ["", "x", "*:", "*:1.5", "*:None", "[:0", "*:0:", ":1"])
def test_what_is_no_rule_is_refused(server, rule):
    assert_problem(get(server, target(["*:0", rule])), 400, "invalid-request")


def test_rules_need_a_shard_and_are_bounded(server):
    path = f"{model_path('llama')}/export?format=zt"
    assert_problem(get(server, f"{path}&axis=*:none"), 400, "invalid-request")
    assert get(server, target(["*norm*:0"] * 64, 0, 1)).status == 200
    assert_problem(get(server, target(["*norm*:0"] * 65, 0, 1)), 400, "invalid-request")
