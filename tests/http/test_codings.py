"""Accept-Encoding: manifests are compressed once, and components are sent compressed as they are stored."""

import gzip
import struct

import pytest
import zstandard

from containers import Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zstd_frame, zt01, zt1, zt2
from uploads import put
from wire import assert_problem, component_path, eventually, get, head, model_path, object_path, sha256_field, verify

# Compresses to three quarters: six bits of eight are random.
BIG = bytes(byte & 0x3F for byte in pattern(512_000, seed=5))
TAIL = pattern(300_000, seed=9)
CODINGS = ["zstd", "gzip"]


def unpack(answer):
    coding = answer.fields.get("Content-Encoding")
    if coding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(answer.body)
    return gzip.decompress(answer.body) if coding == "gzip" else answer.body


def frame(data, **parameters):
    chosen = zstandard.ZstdCompressionParameters.from_level(3, **parameters)
    return zstandard.ZstdCompressor(compression_params=chosen).compress(data)


def with_dictionary(data):
    samples = [pattern(200, seed=seed % 7) + bytes([seed % 251]) * 50 for seed in range(2000)]
    dictionary = zstandard.train_dictionary(4096, samples)
    return zstandard.ZstdCompressor(dict_data=dictionary).compress(data)


SKIPPABLE = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 5) + b"notes"
SEVERAL = frame(BIG[:300_000]) + SKIPPABLE + frame(BIG[300_000:], write_checksum=True)
STORED = {
    "plain": zstd_frame(BIG),
    "several": SEVERAL,
    "widest": frame(BIG, window_log=23),
    "wide": frame(BIG * 20, window_log=24, write_content_size=0),
    "wide at the end": frame(BIG) + frame(BIG * 20, window_log=24, write_content_size=0),
}
CONTENT = {"wide": BIG * 20, "wide at the end": BIG * 21}


@pytest.fixture(scope="module")
def server(folder, share_server):
    many = {f"layer.{index}.weight": dense(pattern(8, seed=index), "f32", [2]) for index in range(800)}
    (folder / "many.zt").write_bytes(zt1(many))
    (folder / "small.zt").write_bytes(zt1({"a": dense(b"12345678", "f32")}))
    packed = {name: dense_encoded(CONTENT.get(name, BIG), stored, "zstd") for name, stored in STORED.items()}
    packed["dictionary"] = dense_encoded(BIG, with_dictionary(BIG), "zstd")
    packed["broken"] = dense_encoded(BIG, zstd_frame(BIG)[:-1], "zstd")
    packed["raw"] = dense(TAIL)
    packed["undigested"] = zstd_dense(BIG, digest=None)
    packed["tensor"] = zstd_dense(BIG, "f32", [len(BIG) // 16, 4])
    built = zt1(packed)
    (folder / "packed.zt").write_bytes(built)
    (folder / "damaged.zt").write_bytes(built.flipped("plain", at=500))
    (folder / "v2.zt").write_bytes(zt2({"seekable": dense_encoded(BIG, seekable(BIG), "zt.zstd-seekable/1", digest="xxh3")}))
    (folder / "v01.zt").write_bytes(zt01({"z": zstd_dense(BIG, digest=None)}))
    return share_server(folder)


# --- the manifest ---

MANIFESTS = [model_path("many"), model_path("small"), model_path("many") + "?match=*9*", model_path("many") + "?pretty",
             object_path("many", "layer.3.weight"), "/v1/models", "/v1/models?pretty&limit=2",
             "/openapi.json"]  # fmt: skip


@pytest.mark.parametrize("path", MANIFESTS)
@pytest.mark.parametrize("field", ["zstd", "identity;q=0, gzip"])
def test_every_coding_gives_the_same_manifest(server, path, field):
    plain = get(server, path)
    coded = get(server, path, Accept_Encoding=field)
    assert (plain.status, coded.status) == (200, 200)
    assert "Content-Encoding" not in plain.fields
    assert unpack(coded) == plain.body
    assert plain["Vary"] == coded["Vary"] == "Accept-Encoding"
    assert (coded["ETag"] == plain["ETag"]) == ("Content-Encoding" not in coded.fields)
    assert coded["Content-Type"] == plain["Content-Type"]
    asked = head(server, path, Accept_Encoding=field)
    for name in ("ETag", "Content-Length", "Content-Encoding", "Vary", "Cache-Control"):
        assert asked.fields.get(name) == coded.fields.get(name)


@pytest.mark.parametrize("field, coding", [
    ("gzip, zstd", "zstd"), ("gzip, zstd;q=0.9", "gzip"), ("zstd;q=0, *", "gzip"), ("gzip;q=0.1, identity;q=0.2", None), ("br", None),
])  # fmt: skip
def test_weights_choose_the_coding(server, field, coding):
    for path in (model_path("many"), model_path("many") + "?prefix=layer", "/v1/models", "/openapi.json"):
        assert get(server, path, Accept_Encoding=field).fields.get("Content-Encoding") == coding


@pytest.mark.parametrize("path", MANIFESTS)
def test_nothing_acceptable_is_406(server, path):
    assert_problem(get(server, path, Accept_Encoding="br, *;q=0"), 406, "not-acceptable")


def test_coded_answers_have_tags_of_their_own(server):
    for path in [*MANIFESTS[:1], *MANIFESTS[2:4], "/v1/models", "/openapi.json"]:
        tags = [get(server, path, Accept_Encoding=field)["ETag"] for field in ("identity", "zstd", "gzip")]
        assert len(set(tags)) == 3 and not any(tag.startswith("W/") for tag in tags)


def test_whole_manifest_is_tagged_by_generation_and_coding(server):
    tag = get(server, model_path("many"))["ETag"]
    for coding in CODINGS:
        assert get(server, model_path("many"), Accept_Encoding=coding)["ETag"] == f'{tag[:-1]}-{coding}"'
        assert get(server, model_path("many"), Accept_Encoding=coding).body


@pytest.mark.parametrize("path", [MANIFESTS[0], MANIFESTS[2]])
@pytest.mark.parametrize("coding", CODINGS)
def test_conditionals_compare_the_tag_of_the_coding(server, path, coding):
    coded = get(server, path, Accept_Encoding=coding)
    again = get(server, path, Accept_Encoding=coding, If_None_Match=coded["ETag"])
    assert (again.status, again.body, again["ETag"], again["Vary"]) == (304, b"", coded["ETag"], "Accept-Encoding")
    assert get(server, path, If_None_Match=coded["ETag"]).status == 200
    plain = get(server, path)["ETag"]
    assert get(server, path, Accept_Encoding=coding, If_None_Match=plain).status == 200
    assert get(server, path, Accept_Encoding=coding, If_Match=plain).status == 412


@pytest.mark.parametrize("coding", CODINGS)
def test_ranges_address_the_coded_manifest(server, coding):
    whole = get(server, model_path("many"), Accept_Encoding=coding)
    part = get(server, model_path("many"), Accept_Encoding=coding, Range="bytes=10-99")
    assert (part.status, part.body) == (206, whole.body[10:100])
    assert part["Content-Range"] == f"bytes 10-99/{len(whole.body)}"
    assert (part["Content-Encoding"], part["ETag"]) == (coding, whole["ETag"])
    tail = get(server, model_path("many"), Accept_Encoding=coding, Range="bytes=-7", If_Range=whole["ETag"])
    assert tail.body == whole.body[-7:]
    other = get(server, model_path("many"), Range="bytes=-7", If_Range=whole["ETag"])
    assert (other.status, "Content-Encoding" in other.fields) == (200, False)


def test_small_selections_are_sent_as_they_are_unless_refused(server):
    path = object_path("small", "a")
    assert "Content-Encoding" not in get(server, path, Accept_Encoding="zstd").fields
    forced = get(server, path, Accept_Encoding="zstd, identity;q=0")
    assert forced["Content-Encoding"] == "zstd" and unpack(forced) == get(server, path).body


def test_if_match_of_a_write_takes_the_tag_of_every_coding(start_server, tmp_path):
    file = zt1({"a": dense(b"12345678", "f32")})
    other = start_server(tmp_path, "--writable")
    assert put(other, "m", file).status == 201
    for field in ("identity", *CODINGS):
        tag = get(other, model_path("m"), Accept_Encoding=field)["ETag"]
        assert put(other, "m", file, **{"If-Match": tag}).status == 204, field


# --- components ---


def ask_component(server, name, model="packed", query="", **fields):
    return get(server, component_path(model, name) + query, **fields)


@pytest.mark.parametrize("name", ["plain", "several", "widest", "undigested", "tensor"])
def test_stored_zstd_is_sent_as_it_is(server, name):
    plain = ask_component(server, name)
    coded = ask_component(server, name, Accept_Encoding="zstd")
    stored = ask_component(server, name, query="?representation=stored", Accept_Encoding="zstd")
    assert (coded.status, coded["Content-Encoding"]) == (200, "zstd")
    assert coded.body == stored.body and unpack(coded) == plain.body == BIG
    assert len({plain["ETag"], coded["ETag"], stored["ETag"]}) == 3
    assert "Accept-Encoding" in plain["Vary"] and plain["Vary"] == coded["Vary"]
    assert "Content-Encoding" not in plain.fields and "Content-Encoding" not in stored.fields
    for field in ("ZT-Shape", "ZT-Dtype", "ZT-Type", "ZT-Format", "Content-Type", "Last-Modified"):
        assert coded.fields.get(field) == plain.fields.get(field)


@pytest.mark.parametrize("model, name", [("v2", "seekable"), ("v01", "z")])
def test_other_versions_pass_their_frames_through(server, model, name):
    coded = ask_component(server, name, model, Accept_Encoding="zstd")
    assert coded["Content-Encoding"] == "zstd" and unpack(coded) == BIG
    assert coded.body == ask_component(server, name, model, "?representation=stored").body
    assert ask_component(server, name, model).body == BIG


@pytest.mark.parametrize("name", ["wide", "wide at the end", "dictionary", "broken"])
def test_frames_that_not_everybody_decodes_do_not_go_out_as_zstd(server, name):
    coded = ask_component(server, name, Accept_Encoding="zstd, identity;q=0.1")
    assert "Content-Encoding" not in coded.fields
    if name in CONTENT:
        assert coded.body == CONTENT[name]
        assert "Accept-Encoding" in coded["Vary"]
    else:
        assert_problem(coded, 500, "corrupt-component")
    refused = ask_component(server, name, Accept_Encoding="gzip, zstd, identity;q=0")
    assert_problem(refused, 406, "not-acceptable")
    assert "Accept-Encoding" in refused["Vary"]


@pytest.mark.parametrize("field, coding", [("zstd;q=0.001", "zstd"), ("zstd;q=0.5, identity", None), ("gzip", None), ("zstd;q=0", None)])
def test_weights_choose_the_form_of_a_component(server, field, coding):
    answer = ask_component(server, "plain", Accept_Encoding=field)
    assert answer.fields.get("Content-Encoding") == coding and unpack(answer) == BIG


@pytest.mark.parametrize("field", ["zstd, gzip", "identity;q=0"])
def test_raw_components_ignore_accept_encoding(server, field):
    answer = ask_component(server, "raw", Accept_Encoding=field)
    assert (answer.status, answer.body) == (200, TAIL)
    assert "Content-Encoding" not in answer.fields
    assert "Accept-Encoding" not in answer.fields.get("Vary", "")


def test_ranges_address_the_encoded_bytes(server):
    whole = ask_component(server, "plain", Accept_Encoding="zstd")
    part = ask_component(server, "plain", Accept_Encoding="zstd", Range="bytes=100-299")
    assert (part.status, part.body, part["Content-Encoding"]) == (206, whole.body[100:300], "zstd")
    assert part["Content-Range"] == f"bytes 100-299/{len(whole.body)}"
    assert part["ETag"] == whole["ETag"]
    assert ask_component(server, "plain", Range="bytes=100-299").body == BIG[100:300]
    again = ask_component(server, "plain", Accept_Encoding="zstd", If_None_Match=whole["ETag"])
    assert (again.status, again["ETag"]) == (304, whole["ETag"])
    assert ask_component(server, "plain", If_None_Match=whole["ETag"]).status == 200
    other = ask_component(server, "plain", Range="bytes=0-9", If_Range=whole["ETag"])
    assert (other.status, other.body) == (200, BIG)


@pytest.mark.parametrize("query", ["?slice=0:2", "?shard=0/2", "?format=npy", "?representation=stored"])
def test_other_representations_are_not_encoded(server, query):
    answer = ask_component(server, "tensor", query=query, Accept_Encoding="zstd")
    assert answer.status == 200 and "Content-Encoding" not in answer.fields
    assert "Accept-Encoding" not in answer.fields.get("Vary", "")


def test_damaged_frames_are_not_passed_through(server):
    answer = ask_component(server, "plain", "damaged", Accept_Encoding="zstd")
    assert_problem(answer, 500, "corrupt-component")


@pytest.mark.parametrize("stated", [len(BIG) - 1, len(BIG) + 1])
def test_frames_that_state_another_length_are_not_passed_through(folder, server, stated):
    packed = Component(frame(BIG), encoding="zstd", decoded=bytes(stated))
    (folder / "unequal.zt").write_bytes(zt1({"t": Object([stated], {"data": packed})}))
    eventually(lambda: get(server, component_path("unequal", "t")).status != 404)
    try:
        answer = ask_component(server, "t", "unequal", Accept_Encoding="zstd")
        assert_problem(answer, 500, "corrupt-component")
    finally:
        (folder / "unequal.zt").unlink()


def test_a_component_that_failed_verification_is_not_passed_through(start_server, tmp_path):
    broken = Component(zstd_frame(BIG), encoding="zstd", decoded=BIG[:100])
    (tmp_path / "m.zt").write_bytes(zt1({"t": Object([100], {"data": broken})}))
    server = start_server(tmp_path)
    assert verify(server, "m")["state"] == "failed"
    answer = ask_component(server, "t", "m", Accept_Encoding="zstd")
    assert_problem(answer, 500, "corrupt-component")


def test_digest_of_a_coded_answer_covers_the_coded_bytes(server):
    coded = ask_component(server, "plain", Accept_Encoding="zstd", Want_Repr_Digest="sha-256=10")
    assert coded["Repr-Digest"] == sha256_field(coded.body)


@pytest.mark.folder("sparse files larger than the memory of the tests")
def test_a_component_too_large_to_decode_whole_is_sent_by_frames_or_encoded(folder, server, share_server):
    other = share_server(folder, environment={"ZTSERVE_LIMITS_DECODED_BYTES": "100000"})
    path = component_path("packed", "plain")
    assert_problem(get(other, path), 422, "unsupported-encoding")
    assert_problem(get(other, path, Accept_Encoding="zstd;q=0"), 422, "unsupported-encoding")
    assert unpack(get(other, path, Accept_Encoding="zstd")) == BIG
    seekable_path = component_path("v2", "seekable")
    assert get(other, seekable_path).body == BIG
    assert get(other, seekable_path, Range="bytes=70000-200000").body == BIG[70_000:200_001]
    assert unpack(get(other, seekable_path, Accept_Encoding="zstd")) == BIG
