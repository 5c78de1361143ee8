"""QUERY and POST …/export with `base`: the objects that are not the same in a kept revision of the model."""

import hashlib
import json
import os
import struct

import numpy
import pytest

from clients import Client, write_tokens
from containers import Component, Object, dense, pattern, zstd_dense, zt1, zt2
from histories import KEPT
from kept import KEEPS, head_of, set_revision
from test_export import read_npz
from test_export_body import JSON, METHODS, export, left_out_of, path_of, query, read_header, sha256, tensors_of
from uploads import put
from wire import ask, assert_problem, get, model_path

pytestmark = pytest.mark.folder("versions of a folder")

MODEL = "org/model/weights"
HALVES = (numpy.frombuffer(pattern(2 * 64 * 48, seed=60), "<u2") & 0xBFFF).view("<f2").reshape(64, 48)
SAME, CHANGED, NEW, MOVED = (pattern(70_000, seed=seed) for seed in range(4))
FIRST = {
    "same": dense(SAME),
    "changed": dense(CHANGED),
    "packed": zstd_dense(SAME),
    "retyped": dense(MOVED, "u16"),
    "reshaped": dense(MOVED, "u8", [100, 700]),
    "described": dense(SAME, attributes={"scale": 1}),
    "before": dense(MOVED),
    "gone": dense(NEW[::-1]),
    "half": dense(HALVES.tobytes(), "f16", [64, 48]),
    "small": dense(b"12"),
}
LAST = {
    "same": zstd_dense(SAME),
    "changed": dense(CHANGED[:-1] + b"?"),
    "packed": dense(SAME, digest=None),
    "retyped": dense(MOVED, "i16"),
    "reshaped": dense(MOVED, "u8", [700, 100]),
    "described": dense(SAME, attributes={"scale": 2}),
    "after": dense(MOVED),
    "new": dense(NEW),
    "half": dense(HALVES.tobytes(), "f16", [64, 48]),
    "small": dense(b"12"),
}
UNCHANGED = ["half", "packed", "same", "small"]


def publish(server, objects, name=MODEL, fields=None):
    """The commit of a new version."""
    answer = put(server, name, zt1(objects), **(fields or {}))
    assert answer.status in (201, 204), answer
    return head_of(server, name, fields)


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment=KEEPS)


@pytest.fixture(scope="module")
def commits(server):
    """The first and the last one; the tag v1 and the branch b/1 are at the first."""
    commits = publish(server, FIRST), publish(server, LAST)
    for name, kind in (("v1", "tag"), ("b/1", "branch")):
        assert set_revision(server, MODEL, name, commits[0], kind).status in (200, 201)
    return commits


def named(commits, base):
    return {"first": commits[0], "last": commits[1]}.get(base, base)


# --- what is left out ---


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("base", ["first", "v1", "b/1", "refs/tags/v1", "refs/heads/b/1"])
def test_objects_that_are_the_same_in_a_kept_revision_are_left_out(server, commits, method, base):
    answer = export(server, MODEL, method, base=named(commits, base))
    assert left_out_of(answer.body) == UNCHANGED and answer["ZT-Left-Out"] == str(len(UNCHANGED))
    assert tensors_of(answer.body).keys() == LAST.keys() - set(UNCHANGED)


@pytest.mark.parametrize("kind", ["safetensors", "zt", "zt2", "npz"])
def test_the_old_file_and_the_answer_make_the_new_file(server, commits, tmp_path, kind):
    answer = export(server, MODEL, base=commits[0], format=kind)
    assert answer["ZT-Left-Out"] == str(len(UNCHANGED))
    if kind == "npz":
        assert read_npz(answer.body).keys() == LAST.keys() - set(UNCHANGED)
    if kind != "safetensors":
        return
    old, new = (export(server, name).body for name in (f"org/model@{commits[0]}/weights", MODEL))
    header, head = read_header(new)[0], len(new) - len(read_header(new)[1])
    tensors = {**tensors_of(old), **tensors_of(answer.body)}
    parts = sorted((entry["data_offsets"][0], name) for name, entry in header.items() if name != "__metadata__")
    assert new[:head] + b"".join(tensors[name] for _, name in parts) == new


def test_a_moved_object_is_left_out_if_its_digest_is_stated(server, commits):
    answer = export(server, MODEL, base=commits[0], have=[sha256(MOVED)])
    assert left_out_of(answer.body) == sorted([*UNCHANGED, "after", "reshaped", "retyped"])


def test_an_earlier_revision_may_have_a_later_base(server, commits):
    old = f"org/model@{commits[0]}/weights"
    for base in (commits[1], "main"):
        answer = export(server, old, base=base)
        assert left_out_of(answer.body) == UNCHANGED
        assert tensors_of(answer.body).keys() == FIRST.keys() - set(UNCHANGED)
    assert tensors_of(export(server, f"{MODEL}", base="main").body) == {}


@pytest.mark.parametrize("base", ["last", "main", "HEAD"])
def test_a_client_with_this_revision_gets_no_tensors(server, commits, base):
    answer = export(server, MODEL, base=named(commits, base))
    assert left_out_of(answer.body) == sorted(LAST) and not tensors_of(answer.body)


def test_a_commit_is_its_own_base(server, commits):
    old = f"org/model@{commits[0]}/weights"
    for base in (commits[0], "v1"):
        assert export(server, old, base=base)["ZT-Left-Out"] == str(len(FIRST))


def test_only_selected_objects_are_compared(server, commits):
    answer = export(server, MODEL, base="v1", match=["same", "new"])
    assert left_out_of(answer.body) == ["same"] and tensors_of(answer.body) == {"new": NEW}


def test_parts_and_converted_objects_are_left_out_if_the_whole_object_is_the_same(server, commits):
    options = {"match": ["half", "changed"], "shard": "1/2", "axis": 0}
    assert tensors_of(export(server, MODEL, base="v1", **options).body) == {"changed": (CHANGED[:-1] + b"?")[35_000:]}
    assert left_out_of(export(server, MODEL, base="v1", match="half", dtype="f32").body) == ["half"]


def test_all_components_of_an_object_count(start_server, tmp_path):
    def sparse(values):
        return {"csr": Object([2, 3], {
            "values": Component(values, "f32"),
            "indices": Component(struct.pack("<2Q", 0, 2), "u64"),
            "indptr": Component(struct.pack("<3Q", 0, 1, 2), "u64"),
        }, "sparse_csr")}  # fmt: skip

    server = start_server(tmp_path, "--writable", environment=KEEPS)
    first, second, third = (publish(server, sparse(pattern(8, seed=seed))) for seed in (1, 2, 1))
    assert first == third
    for base, count in ((first, "1"), (second, "0")):
        assert export(server, MODEL, base=base, format="zt")["ZT-Left-Out"] == count


def test_the_base_may_have_another_format(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    base = publish(server, {"same": dense(SAME), "changed": dense(CHANGED)})
    answer = put(server, MODEL, zt2({"same": dense(SAME, digest="xxh3"), "changed": dense(NEW)}))
    assert answer.status == 204, answer
    assert left_out_of(export(server, MODEL, base=base).body) == ["same"]


def test_another_layout_is_another_object(start_server, tmp_path):
    def laid_out(layout):
        return {"w": Object([2, 3], {"data": Component(b"123456")}, layout), "v": Object([2, 3], {"data": Component(b"123456")}, "mine/1")}

    server = start_server(tmp_path, "--writable", environment=KEEPS)
    base = publish(server, laid_out("mine/1"))
    publish(server, laid_out("mine/2"))
    assert export(server, MODEL, base=base, format="zt")["ZT-Left-Out"] == "1"


def test_every_part_of_a_model_in_several_files_is_compared(start_server, tmp_path):
    def part(name, data):
        header = json.dumps({name: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
        answer = ask(server, "PUT", f"/files/org/parts/{name}.safetensors", {}, struct.pack("<Q", len(header)) + header + data)
        assert answer.status in (201, 204), answer

    server = start_server(tmp_path, "--writable", environment=KEEPS)
    part("one", SAME)
    part("two", CHANGED)
    index = {"metadata": {}, "weight_map": {name: f"{name}.safetensors" for name in ("one", "two")}}
    assert ask(server, "PUT", "/files/org/parts/model.safetensors.index.json", {}, json.dumps(index).encode()).status == 201
    base = head_of(server, "org/parts/model")
    part("two", NEW)
    answer = export(server, "org/parts/model", base=base)
    assert left_out_of(answer.body) == ["one"] and tensors_of(answer.body) == {"two": NEW}


def test_digests_that_files_do_not_state_are_computed(start_server, tmp_path):
    large = pattern(3 << 20)
    server = start_server(tmp_path, "--writable", environment={**KEEPS, "ZTSERVE_LIMITS_DIGEST_PIECE_BYTES": "0"})
    base = publish(server, {"w": dense(large, digest=None), "v": dense(large[::-1], digest=None)})
    publish(server, {"w": zstd_dense(large, digest=None), "v": dense(large[:-1] + b"?", digest=None)})
    for _ in range(2):
        assert left_out_of(export(server, MODEL, base=base).body) == ["w"]


# --- the answer is that of every export ---


def test_the_tag_has_the_commit_of_the_base_and_survives_a_restart(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    first, second = publish(server, FIRST), publish(server, {**FIRST, "more": dense(b"1")})
    publish(server, LAST)
    assert set_revision(server, MODEL, "v", first).status in (200, 201)
    by_commit, by_tag, other = (export(server, MODEL, base=base) for base in (first, "v", second))
    assert (by_tag.body, by_tag["ETag"]) == (by_commit.body, by_commit["ETag"])
    assert other.body == by_tag.body and other["ETag"] != by_tag["ETag"]
    assert set_revision(server, MODEL, "v", second).status == 200
    moved = query(server, MODEL, fields={"If-None-Match": by_tag["ETag"]}, base="v")
    assert (moved.status, moved["ETag"]) == (200, other["ETag"])
    assert server.stop() == 0
    again = start_server(tmp_path, "--writable", environment=KEEPS)
    assert query(again, MODEL, fields={"If-None-Match": other["ETag"]}, base="v").status == 304
    assert export(again, MODEL, base=first).body == by_commit.body


def test_models_of_equal_bytes_have_bases_of_their_own(start_server, tmp_path):
    """A rollback may make two names of one file."""
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    publish(server, {"w": dense(SAME)}, "org/model/one")
    base = publish(server, {"w": dense(CHANGED)}, "org/model/two")
    for name in ("one", "two"):
        publish(server, {"w": dense(NEW)}, f"org/model/{name}")
    publish(server, {"w": dense(SAME)}, "org/model/one")
    os.unlink(tmp_path / "org/model/two.zt")
    os.link(tmp_path / "org/model/one.zt", tmp_path / "org/model/two.zt")
    assert export(server, "org/model/one", base=base)["ZT-Left-Out"] == "1"
    assert export(server, "org/model/two", base=base)["ZT-Left-Out"] == "0"


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_download_resumes(server, commits, method):
    whole = export(server, MODEL, method, base="v1")
    middle = len(whole.body) // 2
    fields = {"Range": f"bytes={middle}-", "If-Range": whole["ETag"]}
    rest = query(server, MODEL, method, fields, base="v1")
    assert (rest.status, whole.body[:middle] + rest.body) == (206, whole.body)
    other = query(server, MODEL, method, fields, base=commits[1])
    assert other.status == 200 and tensors_of(other.body) == {}


# --- refusals ---


def test_unknown_revisions_are_refused_in_words(server, commits):
    for base in ("v2", "0" * 40, "x" * 1000, "b", "../v1"):
        answer = query(server, MODEL, base=base)
        assert_problem(answer, 404, "revision-not-found")
        assert answer.json()["detail"].startswith(f"/base: {base[:100]} is not a revision")


def test_a_revision_without_the_model_is_refused_in_words(server, commits):
    last = publish(server, {"w": dense(b"1")}, "org/model/later")
    answer = query(server, "org/model/later", base=commits[1])
    assert_problem(answer, 404, "revision-not-found")
    assert "does not have the model" in answer.json()["detail"]
    assert export(server, "org/model/later", base=last)["ZT-Left-Out"] == "1"


def test_a_commit_of_another_repository_is_no_base(server, commits):
    other = publish(server, {"w": dense(b"1")}, "org/other/weights")
    assert_problem(query(server, MODEL, base=other), 404, "revision-not-found")


def test_a_forgotten_commit_is_no_base(start_server, tmp_path):
    server = start_server(tmp_path, "--writable", "--keep-versions", "2")
    commits = [publish(server, {"w": dense(b"%d" % number), "v": dense(SAME)}) for number in range(3)]
    assert_problem(query(server, MODEL, base=commits[0]), 404, "revision-not-found")
    assert left_out_of(export(server, MODEL, base=commits[1]).body) == ["v"]


def test_a_damaged_base_is_never_taken_for_what_the_client_has(start_server, tmp_path):
    first = zt1({"w": dense(SAME), "v": dense(NEW)})
    server = start_server(tmp_path, "--writable", environment=KEEPS)
    base = publish(server, {"w": dense(SAME), "v": dense(NEW)})
    publish(server, {"w": dense(SAME), "v": dense(CHANGED)})
    assert server.stop() == 0
    digest = hashlib.sha256(first).hexdigest()
    kept = tmp_path / KEPT / "objects" / digest[:2] / digest[2:]
    facts = kept.stat()
    with open(kept, "r+b") as file:
        file.seek(first.offsets["w", "data"])
        file.write(bytes([SAME[0] ^ 1]))
    os.utime(kept, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    again = start_server(tmp_path, "--writable", environment=KEEPS)
    answer = query(again, MODEL, base=base)
    assert_problem(answer, 500, "corrupt-component")
    assert "base" in answer.json()["detail"]
    assert tensors_of(export(again, MODEL).body)["w"] == SAME


# --- rights ---


def test_who_may_read_a_model_may_name_its_revisions_as_base(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    admin = Client("admin", "admin")
    readers = Client("reader", "read", "org/model/*"), Client("one", "read", MODEL), Client("stranger", "read", "other/*")
    server = start_server(root, "--writable", "--tokens", write_tokens(tmp_path / "tokens", admin, *readers), environment=KEEPS)
    base = publish(server, FIRST, fields=admin.fields)
    publish(server, LAST, fields=admin.fields)
    body = json.dumps({"base": base}).encode()
    at_base = f"{model_path(MODEL)}@{base}"
    for reader in readers[:2]:
        assert get(server, at_base, **reader.fields).status == 200
        answer = reader.ask(server, "QUERY", path_of(MODEL), JSON, body)
        assert (answer.status, left_out_of(answer.body)) == (200, UNCHANGED)
    assert get(server, at_base, **readers[2].fields).status == 403
    assert_problem(readers[2].ask(server, "QUERY", path_of(MODEL), JSON, body), 403, "forbidden")
    assert_problem(ask(server, "QUERY", path_of(MODEL), JSON, body), 401, "unauthorized")
