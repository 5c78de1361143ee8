"""Named sets of axis rules give each rank what splitting every tensor along the axis of its role gives; globs and rules that
match no object are refused."""

import itertools
from urllib.parse import quote

import pytest

from containers import zt1
from roles import ARRAYS, MODELS, UNKNOWN, arrays_of, assert_share, chunk, objects_of, read
from wire import assert_problem, get, model_path

RANKS = 4
EXPECTED = {"llama": "@llama", "mistral": "@llama", "qwen3": "@llama", "gemma": "@llama", "mixtral": "@mixtral",
            "qwen-moe": "@qwen-moe", "gpt-oss": "@gpt-oss", "gguf-gpt-oss": "@gpt-oss", "gguf-llama": "@llama",
            "gguf-qwen3": "@llama", "gguf-mixtral": "@mixtral", "gguf-qwen-moe": "@qwen-moe", "gguf-qwen3-moe": "@qwen-moe"}


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name, arrays in itertools.chain(ARRAYS.items(), ((name, arrays_of(shapes)) for name, shapes in UNKNOWN.items())):
        (folder / f"{name}.zt").write_bytes(zt1(objects_of(arrays)))
    return share_server(folder)


def target(model, rank=0, ranks=RANKS, kind="safetensors", axis=(), match=()):
    rest = "".join(f"&axis={quote(rule)}" for rule in axis) + "".join(f"&match={quote(glob)}" for glob in match)
    shard = f"&shard={rank}/{ranks}" if ranks else ""
    return f"{model_path(model)}/export?format={kind}{shard}{rest}"


def share(server, *given, **options):
    answer = get(server, target(*given, **options))
    assert answer.status == 200, answer.body
    return read(answer.body)


@pytest.mark.parametrize("model", MODELS)
def test_set_divides_each_tensor_by_its_role(server, model):
    for name, rank in itertools.product(MODELS[model][0], (0, RANKS - 1)):
        assert_share(share(server, model, rank, axis=[f"@{name}"]), model, rank)


@pytest.mark.parametrize("model", [model for model in UNKNOWN if model != "other"])
def test_tensor_that_a_set_does_not_know_is_refused_and_named(server, model):
    for name in ("llama", "mixtral", "qwen-moe", "gpt-oss"):
        problem = assert_problem(get(server, target(model, axis=[f"@{name}"])), 422, "not-representable")
        assert problem["object"] == list(UNKNOWN[model])[0] and f"@{name}" in problem["detail"]


def test_rules_before_and_after_a_set_count(server):
    name = "model.embed_tokens.weight"
    whole = ARRAYS["llama"][name]
    assert share(server, "llama", axis=["*embed*:none", "@llama"])[name].tobytes() == whole.tobytes()
    assert share(server, "llama", axis=["@llama", "*embed*:none"])[name].tobytes() == chunk(whole, 0, 0, RANKS).tobytes()
    unknown = UNKNOWN["fp8"]
    made = share(server, "fp8", axis=["@llama", "*scale_inv:1"])
    assert made["model.layers.0.self_attn.o_proj.weight_scale_inv"].shape == (8, 2) and len(made) == len(unknown)
    assert_share(share(server, "llama", 1, axis=["@llama", "1"]), "llama", 1)


def test_set_heeds_only_what_is_selected(server):
    assert set(share(server, "fp8", axis=["@llama"], match=["*norm*"])) == {"model.norm.weight"}


@pytest.mark.parametrize("axis", ["@", "@lama", "@llama3.1", "@llama,@qwen2", "@LLAMA"])
def test_unknown_set_is_refused_with_the_list_of_sets(server, axis):
    detail = assert_problem(get(server, target("llama", axis=[axis])), 400, "invalid-request")["detail"]
    assert "@gpt-oss" in detail and f"axis={axis}: unknown set" in detail


@pytest.mark.parametrize("axis, rule", [(["0", "*o_prj*:1"], "*o_prj*:1"), (["@llama", "*.bias:none"], "*.bias:none")])
@pytest.mark.parametrize("kind", ["safetensors", "zt"])
def test_axis_rule_that_hits_no_object_is_refused_and_named(server, axis, rule, kind):
    problem = assert_problem(get(server, target("llama", axis=axis, kind=kind)), 422, "object-not-found")
    assert f"axis={rule}" in problem["detail"]


def test_set_that_hits_no_object_is_refused_and_named(server):
    problem = assert_problem(get(server, target("other", axis=["*:none", "@mixtral"])), 422, "object-not-found")
    assert "axis=@mixtral" in problem["detail"]


def test_axis_rule_may_hit_what_is_not_selected(server):
    made = share(server, "llama", 1, axis=["*norm*:none", "*.o_proj.weight:1"], match=["*lm_head*"])
    assert made["lm_head.weight"].tobytes() == chunk(ARRAYS["llama"]["lm_head.weight"], 0, 1, RANKS).tobytes()


@pytest.mark.parametrize("kind", ["safetensors", "zt", "zt2", "npz", "reference"])
def test_match_that_hits_no_object_is_refused_and_named(server, kind):
    for match in (["*norm*", "*o_prj*"], ["*o_prj*", "*norm*"]):
        problem = assert_problem(get(server, target("llama", ranks=0, match=match, kind=kind)), 422, "object-not-found")
        assert "match=*o_prj*" in problem["detail"]
    assert get(server, target("llama", ranks=0, match=["*norm*", "*head*"], kind=kind)).status == 200


@pytest.mark.parametrize("kind", ["safetensors", "zt", "reference"])
def test_match_that_hits_only_objects_outside_the_prefix_is_refused_and_named(server, kind):
    path = target("llama", ranks=0, kind=kind)
    problem = assert_problem(get(server, f"{path}&prefix=model.layers.0.&match=*norm*&match=lm_head*"), 422, "object-not-found")
    assert "match=lm_head*" in problem["detail"] and "prefix" in problem["detail"]
    assert get(server, f"{path}&prefix=model.layers.0.&match=*norm*&match=*o_proj*").status == 200


@pytest.mark.parametrize("kind", ["safetensors", "zt", "reference"])
def test_empty_selection_names_the_prefix_or_the_glob(server, kind):
    path = target("llama", ranks=0, kind=kind)
    for query, named in (("&prefix=model.layer.&match=*norm*", "prefix=model.layer. "), ("&prefix=model.layer.", "prefix=model.layer. "),
                         ("&prefix=model.layers.&match=lm_head*&match=*embed*", "match=lm_head* "), ("&match=a&match=b", "match=a ")):
        assert named in assert_problem(get(server, path + query), 404, "object-not-found")["detail"]


@pytest.mark.parametrize("model", EXPECTED)
def test_shard_without_rules_suggests_the_set(server, model):
    answer = get(server, target(model, ranks=2, match=["*norm*"]))
    assert answer.status == 200 and answer["Axis-Suggestion"] == EXPECTED[model]
    problem = assert_problem(get(server, target(model, ranks=7)), 422, "shape-not-divisible")
    assert f"axis={EXPECTED[model]}" in problem["detail"]


def test_nothing_is_suggested_where_no_set_fits_or_rules_are_given(server):
    for asked in (target("phi3", ranks=2), target("gguf-fused-up", ranks=2), target("command-r-plus", ranks=2),
                  target("llama", ranks=2, axis=["@llama"]), target("llama", ranks=0),
                  target("llama", ranks=2, axis=["0"]), target("llama", ranks=1)):
        answer = get(server, asked)
        assert answer.status == 200 and answer["Axis-Suggestion"] is None
