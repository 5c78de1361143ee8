"""GET /v1/models/{model} and …/objects/{object}: the manifest as JSON, field by field."""

import hashlib
import json
import math

import pytest

import cbor
import joined
from containers import Component, Object, crc32c, dense, dense_encoded, digest_text, pattern, seekable, zstd_dense, zt01, zt1, zt10, zt2
from wire import assert_problem, eventually, get, head, manifest, model_path, object_path

ODD_NAMES = ["plain", "with/slash", "ünï→☃", "..", ".", "a%2Fb", 'quo"te\\', "sp ace", "new\nline", "?#&=", "\U0001f600"]
INTEGERS = [0, 23, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), -(2**63) - 1, -(2**64)]


def sparse():
    components = {
        "values": Component(pattern(12), "f32", digest="crc32c"),
        "indices": Component(bytes([0, 0, 0, 0, 0, 0, 0, 0, 2] + [0] * 7 + [1] + [0] * 7), "u64", digest=None),
        "indptr": Component(bytes([0] * 8 + [2] + [0] * 7 + [3] + [0] * 7), "u64", digest="sha256"),
    }
    return Object([2, 3], components, "sparse_csr")


ATTRIBUTES = {
    "text": "PyTorch",
    "integers": INTEGERS,
    "floats": [0.0, -0.0, 1.5, 1e300, 0.1, math.nan, math.inf, -math.inf],
    "bytes": b"\xfb\xff\xfe",
    "nested": {"list": [True, False, None, {}, []], "empty": ""},
    # {1: "int", -2: "negative", h'01ff': "bytes", true: "true", "t": "text"}, which a dict of Python cannot hold
    "odd keys": cbor.Raw(b"\xa5\x01\x63int\x21\x68negative\x42\x01\xff\x65bytes\xf5\x64true\x61t\x64text"),
}


@pytest.fixture(scope="module")
def built():
    return {
        "v12": zt1(
            {
                "layer.weight": dense(pattern(24), "f32", [2, 3], attributes={"role": "weight"}),
                "fp8": dense(pattern(6), "u8", [6], type="f8_e4m3fn"),
                "packed": zstd_dense(pattern(4096), "i16", digest="crc32c"),
                "csr": sparse(),
                "plain": dense(pattern(8), "f64", [], digest=None),
            },
            attributes=ATTRIBUTES,
        ),
        "v11": zt1({"a": zstd_dense(pattern(8), "u8", states_length=False)}, version="1.1.0", attributes={"k": "v"}),
        "v10": zt10({"a": dense(pattern(8), "bf16", [2, 2], digest="crc32c")}, attributes={"k": "v"}),
        "v01": zt01(
            {
                "a": dense(pattern(8), "f32", [2], digest="crc32c", fields={"data_endianness": "big", "mine": [1, "x"]}),
                "b": zstd_dense(pattern(8), "i64", digest=None),
            }
        ),
        "v2": zt2(
            {
                "a": dense(pattern(8), "bf16", [2, 2], digest="xxh3"),
                "flags": dense(bytes([0, 1, 1]), "u8", [3], type="bool", digest=None),
                "s": dense_encoded(pattern(1000), seekable(pattern(1000)), "zt.zstd-seekable/1"),
            },
            attributes={"k": {"deep": b"\x00"}},
        ),
        "names": zt1({name: dense(name.encode()) for name in ODD_NAMES}),
    }


@pytest.fixture(scope="module")
def server(built, folder, share_server):
    for name, data in built.items():
        (folder / f"{name}.zt").write_bytes(data)
    (folder / "org").mkdir()
    (folder / "org" / "nested.zt").write_bytes(built["v12"])
    return share_server(folder)


def test_top_has_the_fields_of_the_contract(server, folder):
    answer = get(server, "/v1/models/v12")
    shown = answer.json()
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-cache"
    assert list(shown) == ["name", "source", "parameters", "attributes", "objects"]
    assert shown["name"] == "v12"
    source = shown["source"]
    assert list(source) == ["format", "version", "size", "modified", "etag", "href"]
    assert source["size"] == (folder / "v12.zt").stat().st_size
    assert source["etag"] == answer["ETag"] and source["etag"].startswith('"')
    assert source["href"] == "/files/v12.zt"
    assert get(server, source["href"]).body == (folder / "v12.zt").read_bytes()


@pytest.mark.parametrize("model, version", [("v12", "1.2.0"), ("v11", "1.1.0"), ("v10", "1.0"), ("v01", "0.1.0"), ("v2", "2")])
def test_the_version_is_shown(server, model, version):
    source = manifest(server, model)["source"]
    assert (source["format"], source["version"]) == ("zt", version)


def test_dense_object_is_shown_in_full(server, built):
    shown = manifest(server, "v12")["objects"]["layer.weight"]
    data = pattern(24)
    assert shown == {
        "shape": [2, 3],
        "format": "dense",
        "attributes": {"role": "weight"},
        "components": {
            "data": {
                "dtype": "f32",
                "type": "f32",
                "offset": built["v12"].offsets["layer.weight", "data"],
                "length": 24,
                "encoding": "raw",
                "uncompressed_length": 24,
                "digest": digest_text("sha256", data),
                "href": "/v1/models/v12/objects/layer.weight/data",
            }
        },
    }


def test_version_01_is_shown_in_the_one_shape(server):
    objects = manifest(server, "v01")["objects"]
    assert objects["a"]["format"] == "dense"
    assert objects["a"]["shape"] == [2]
    component = objects["a"]["components"]["data"]
    assert (component["dtype"], component["type"]) == ("f32", "f32")
    assert component["digest"] == f"crc32c:0x{crc32c(pattern(8)):08X}"
    assert objects["a"]["attributes"]["mine"] == [1, "x"]
    assert objects["b"]["components"]["data"]["encoding"] == "zstd"
    assert "digest" not in objects["b"]["components"]["data"]


def test_version_2_is_shown_in_the_one_shape(server):
    shown = manifest(server, "v2")
    assert shown["attributes"] == {"k": {"deep": "AA"}}
    assert shown["objects"]["a"]["components"]["data"]["digest"].startswith("xxh3:")
    flags = shown["objects"]["flags"]["components"]["data"]
    assert (flags["dtype"], flags["type"]) == ("u8", "bool")
    assert shown["objects"]["s"]["components"]["data"]["encoding"] == "zt.zstd-seekable/1"
    assert shown["objects"]["s"]["components"]["data"]["uncompressed_length"] == 1000


def test_attributes_map_as_rfc_8949_says(server):
    shown = manifest(server, "v12")["attributes"]
    assert shown["text"] == "PyTorch"
    assert shown["bytes"] == "-__-"
    assert shown["nested"] == ATTRIBUTES["nested"]
    assert shown["floats"][2:5] == [1.5, 1e300, 0.1]
    assert shown["floats"][5:] == [None, None, None]
    assert shown["odd keys"]["t"] == "text"
    assert shown["odd keys"]["1"] == "int"
    assert shown["odd keys"]["-2"] == "negative"
    assert shown["odd keys"]["h'01ff'"] == "bytes"
    assert shown["odd keys"]["true"] == "true"


def test_integers_are_exact_to_the_last_digit(server):
    text = get(server, "/v1/models/v12").body.decode()
    assert ",".join(map(str, INTEGERS)) in text.replace(" ", "")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_utf8_name_leads_to_its_object(server, name):
    shown = manifest(server, "names")["objects"][name]
    answer = get(server, object_path("names", name))
    assert answer.status == 200
    assert answer.json() == shown
    href = shown["components"]["data"]["href"]
    assert get(server, href).body == name.encode()


def test_nested_model_has_its_name_and_hrefs(server):
    shown = manifest(server, "org/nested")
    assert shown["name"] == "org/nested"
    assert shown["source"]["href"] == "/files/org/nested.zt"
    href = shown["objects"]["fp8"]["components"]["data"]["href"]
    assert href == "/v1/models/org%2Fnested/objects/fp8/data"
    assert get(server, href).body == pattern(6)


def test_answer_is_compact_and_pretty_on_request(server):
    compact = get(server, "/v1/models/v12").body
    pretty = get(server, "/v1/models/v12?pretty").body
    assert b"\n" not in compact[:-1] and b": " not in compact.replace(b'"odd keys"', b"")
    assert b'\n  "name": "v12"' in pretty
    assert pretty.endswith(b"}\n") and get(server, "/v1/models/v12/objects/fp8?pretty").body.endswith(b"}\n")
    assert compact.endswith(b"}\n")
    strict = {"parse_constant": lambda text: pytest.fail(text)}
    assert json.loads(compact, **strict) == json.loads(pretty, **strict)


@pytest.mark.parametrize(
    "query, expected",
    [
        ("prefix=p", {"packed", "plain"}),
        ("match=c%5Bs%5Dr", {"csr"}),
        ("match=*", {"layer.weight", "fp8", "packed", "csr", "plain"}),
        ("match=fp8&match=csr", {"fp8", "csr"}),
        ("prefix=p&match=*n", {"plain"}),
        ("match=none", set()),
    ],
)
def test_prefix_and_match_select(server, query, expected):
    answer = get(server, f"/v1/models/v12?{query}")
    assert answer.status == 200
    assert set(answer.json()["objects"]) == expected
    assert answer["ETag"] != get(server, "/v1/models/v12")["ETag"] or len(expected) == 5
    assert answer.json()["source"]["etag"] == get(server, "/v1/models/v12")["ETag"]


@pytest.mark.parametrize("query", ["match=%5Ba", "fields=colour", "fields=", "prefix=%FF"])
def test_senseless_selections_are_refused(server, query):
    assert_problem(get(server, f"/v1/models/v12?{query}"), 400, "invalid-request")


def test_head_equals_get(server):
    for path in (model_path("v12"), object_path("v12", "fp8"), "/v1/models/v12?prefix=p&pretty"):
        got, asked = get(server, path), head(server, path)
        assert asked.status == 200 and asked.body == b""
        for name in ("Content-Type", "Content-Length", "ETag", "Cache-Control"):
            assert asked[name] == got[name], (path, name)


def test_manifest_of_an_empty_model(server, folder, start_server, tmp_path):
    for index, data in enumerate((zt01({}), zt10({}), zt1({}), zt2({}))):
        (tmp_path / f"m{index}.zt").write_bytes(data)
    other = start_server(tmp_path)
    for index in range(4):
        shown = manifest(other, f"m{index}")
        assert (shown["objects"], shown["attributes"]) == ({}, {})


def test_attributes_can_be_left_out(start_server, tmp_path):
    described = dense(pattern(8), attributes={"of": "object"})
    (tmp_path / "m.zt").write_bytes(zt1({"w": described}, attributes={"of": "model"}))
    server = start_server(tmp_path)
    whole = get(server, model_path("m"))
    assert whole.json()["attributes"] == {"of": "model"}
    bare = get(server, model_path("m") + "?attributes=false")
    assert "attributes" not in bare.json() and "attributes" not in bare.json()["objects"]["w"]
    assert bare["ETag"] != whole["ETag"]
    pruned = get(server, model_path("m") + "?attributes=false&fields=shape,attributes").json()["objects"]["w"]
    assert pruned == {"shape": [8]}
    assert get(server, model_path("m") + "?attributes=true").body == whole.body


def test_digests_are_computed_and_stated(start_server, tmp_path):
    data = {"a": pattern(100_000, seed=1), "b": pattern(70_000, seed=2)}
    (tmp_path / "m.safetensors").write_bytes(joined.safetensors(data))
    server = start_server(tmp_path)
    path = model_path("m") + "?digests&fields=components"
    plain = get(server, model_path("m"))
    first = get(server, path)
    whole = eventually(lambda: one if (one := get(server, path)).json()["pending_digests"] == 0 else None)
    known = sum("sha256" in one["components"]["data"] for one in first.json()["objects"].values())
    assert known + first.json()["pending_digests"] >= len(data)
    for name, content in data.items():
        assert whole.json()["objects"][name]["components"]["data"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert first.body == whole.body or first["ETag"] != whole["ETag"]
    assert get(server, path, If_None_Match=whole["ETag"]).status == 304
    assert get(server, model_path("m")).body == plain.body and b"sha256" not in plain.body
    assert_problem(get(server, model_path("m") + "?digests=maybe"), 400, "invalid-request")
