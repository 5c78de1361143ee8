"""Models of other formats, which the Hub's clients find as safetensors files too."""

import hashlib
import io
import json
import os
import struct
import time

import numpy
import pytest

import cbor
import joined
import neighbours
import uploads
from containers import dense, pattern, zstd_dense, zt1
from test_export import read_safetensors
from wire import eventually, get, head

REPO = "org/model"
TENSORS = {"a": pattern(64), "b": pattern(128, 2), "c": pattern(32, 3)}
ZT = zt1({name: dense(data, dtype="f32", shape=[len(data) // 4]) for name, data in TENSORS.items()})


def fill(root, files, repo=REPO):
    uploads.fill(root / repo, files)


def names(server, repo=REPO):
    return [entry["rfilename"] for entry in get(server, f"/api/models/{repo}").json()["siblings"]]


def tree(server, repo=REPO, revision="main"):
    answer = get(server, f"/api/models/{repo}/tree/{revision}?recursive=true")
    return {entry["path"]: entry for entry in answer.json() if entry["type"] == "file"}


def commit_of(server, repo=REPO):
    return get(server, f"/api/models/{repo}").json()["sha"]


def resolve(server, name, commit=None, method=get, repo=REPO, **options):
    return method(server, f"/{repo}/resolve/{commit or commit_of(server, repo)}/{name}", **options)


def tensors_of(content):
    return {name: array.tobytes() for name, array in read_safetensors(content).items()}


def test_the_only_model_is_model_safetensors(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT, "config.json": b"{}"})
    server = start_server(tmp_path)
    assert names(server) == ["config.json", "model.safetensors", "weights.zt"]
    answer = resolve(server, "model.safetensors")
    assert answer.status == 200
    assert tensors_of(answer.body) == TENSORS
    assert json.loads(answer.body[8 : 8 + int.from_bytes(answer.body[:8], "little")])["__metadata__"] == {"format": "pt"}
    assert tree(server)["model.safetensors"]["size"] == len(answer.body)
    assert head(server, f"/{REPO}/resolve/{answer['X-Repo-Commit']}/model.safetensors")["Content-Length"] == str(len(answer.body))
    part = resolve(server, "model.safetensors", Range="bytes=5-99")
    assert (part.status, part.body) == (206, answer.body[5:100])


def test_a_view_is_sent_as_a_file_is(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT})
    server = start_server(tmp_path)
    answer = resolve(server, "model.safetensors")
    led = head(server, f"/{REPO}/resolve/main/model.safetensors")
    assert led.status == 307 and led["Location"].endswith(f"/{answer['X-Repo-Commit']}/model.safetensors")
    assert led["X-Linked-Size"] == str(len(answer.body))
    assert resolve(server, "model.safetensors", **{"If-None-Match": answer["ETag"]}).status == 304
    assert resolve(server, "model.safetensors", Range=f"bytes={len(answer.body)}-").status == 416
    assert resolve(server, "model.safetensors", Range="bytes=0-0").body == answer.body[:1]
    raw = get(server, f"/{REPO}/raw/{answer['X-Repo-Commit']}/model.safetensors", Range="bytes=0-")
    assert (raw.status, raw.body) == (206, answer.body)


def test_the_hash_of_a_view_is_found_later(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT})
    server = start_server(tmp_path)
    commit = commit_of(server)
    content = resolve(server, "model.safetensors", commit).body
    digest = hashlib.sha256(content).hexdigest()
    assert eventually(lambda: tree(server)["model.safetensors"].get("lfs"))
    assert tree(server)["model.safetensors"]["lfs"]["oid"] == digest
    assert commit_of(server) == commit
    answer = resolve(server, "model.safetensors", commit, head)
    assert (answer["ETag"], answer["X-Repo-Commit"]) == (f'"{digest}"', commit)
    assert answer["Repr-Digest"] is not None


def test_the_hash_of_a_view_is_remembered(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT})
    server = start_server(tmp_path)
    assert eventually(lambda: tree(server)["model.safetensors"].get("lfs"))
    server.stop()
    assert tree(start_server(tmp_path))["model.safetensors"].get("lfs")


def test_two_servers_name_one_commit(tmp_path, start_server):
    for name in ("one", "two"):
        fill(tmp_path / name, {"weights.zt": ZT})
    assert commit_of(start_server(tmp_path / "one")) == commit_of(start_server(tmp_path / "two"))


NPZ = io.BytesIO()
numpy.savez(NPZ, **{name: numpy.frombuffer(data, "<f4") for name, data in TENSORS.items()})


@pytest.mark.parametrize(
    "name, content, shown",
    [
        ("m.npz", NPZ.getvalue(), "model.safetensors"),
        ("m.zt", zt1({name: zstd_dense(data, "f32") for name, data in TENSORS.items()}), "model.safetensors"),
        ("m.gguf", neighbours.gguf(pattern(64)), "model.safetensors"),
        ("W.NPZ", NPZ.getvalue(), "model.safetensors"),
        ("W.Zt", ZT, "model.safetensors"),
        ("sub/W.GGUF", neighbours.gguf(pattern(64)), "sub/W.safetensors"),
    ],
)
def test_other_formats(tmp_path, start_server, name, content, shown):
    fill(tmp_path, {name: content})
    server = start_server(tmp_path)
    assert names(server) == sorted([name, shown])
    answer = resolve(server, shown)
    expected = {"w": pattern(64)} if name.lower().endswith(".gguf") else TENSORS
    assert tensors_of(answer.body) == expected
    digest = hashlib.sha256(answer.body).hexdigest()
    assert eventually(lambda: (tree(server)[shown].get("lfs") or {}).get("oid") == digest)


def test_several_models_keep_their_names(tmp_path, start_server):
    other = zt1({"a": dense(pattern(8, 9))})
    fill(tmp_path, {"one.zt": ZT, "two.zt": other, "sub/three.zt": ZT})
    server = start_server(tmp_path)
    shown = ["one.safetensors", "one.zt", "sub/three.safetensors", "sub/three.zt", "two.safetensors", "two.zt"]
    assert names(server) == shown
    assert tensors_of(resolve(server, "one.safetensors").body) == TENSORS
    assert tensors_of(resolve(server, "two.safetensors").body) == {"a": pattern(8, 9)}


@pytest.mark.parametrize("companions", [
    ["mmproj-F16.gguf"], ["mmproj.gguf"], ["MMPROJ-model-f16.GGUF"], ["a-mmproj-f16.gguf"], ["mtp-a.gguf"],
    ["mmproj-BF16.gguf", "mmproj-F16.gguf", "mtp-a.gguf"],
])
def test_a_gguf_beside_its_companions_is_the_only_model(tmp_path, start_server, companions):
    others = {name: neighbours.gguf(pattern(32, 7)) for name in companions}
    fill(tmp_path, {"a.gguf": neighbours.gguf(pattern(64))} | others)
    server = start_server(tmp_path)
    assert "model.safetensors" in names(server) and "a.safetensors" not in names(server)
    assert tensors_of(resolve(server, "model.safetensors").body) == {"w": pattern(64)}
    assert resolve(server, "a.safetensors").status == 200
    for name in companions:
        view = name.rsplit(".", 1)[0] + ".safetensors"
        assert tensors_of(resolve(server, view).body) == {"w": pattern(32, 7)}


COMPANIONS = [
    (["a.gguf", "b.gguf"], ["a.safetensors", "b.safetensors"]),
    (["a.gguf", "b.gguf", "mmproj-F16.gguf"], ["a.safetensors", "b.safetensors", "mmproj-F16.safetensors"]),
    (["mmproj-F16.gguf"], ["model.safetensors"]),
    (["mmproj-F16.gguf", "mtp-a.gguf"], ["mmproj-F16.safetensors", "mtp-a.safetensors"]),
    (["a.gguf", "model-mtp.gguf"], ["a.safetensors", "model-mtp.safetensors"]),
    (["a.gguf", "mmprojector.gguf"], ["a.safetensors", "mmprojector.safetensors"]),
    (["a.gguf", "sub/mmproj-F16.gguf"], ["model.safetensors", "sub/mmproj-F16.safetensors"]),
]


def test_companions_are_known_by_their_names(tmp_path, start_server):
    for number, (files, _) in enumerate(COMPANIONS):
        fill(tmp_path, {name: neighbours.gguf(pattern(64)) for name in files}, f"org/r{number}")
    server = start_server(tmp_path)
    for number, (files, expected) in enumerate(COMPANIONS):
        assert [name for name in names(server, f"org/r{number}") if name.endswith(".safetensors")] == expected, files


@pytest.mark.parametrize("files", [["w.npz", "w.NPZ"], ["w.zt", "w.NPZ"], ["w.ZT", "w.npz"], ["w.NPZ", "w.Npz"]])
def test_of_two_spellings_the_model_is_seen(tmp_path, start_server, files):
    """The one that /v1/models serves by that name; there is one model then."""
    for number, file in enumerate(files):
        extension = file.rsplit(".", 1)[1].lower()
        content = io.BytesIO()
        numpy.savez(content, number=numpy.uint8(number))
        fill(tmp_path, {file: content.getvalue() if extension == "npz" else zt1({"number": dense(bytes([number]), dtype="u8")})})
    server = start_server(tmp_path)
    served = get(server, "/v1/models/org%2Fmodel%2Fw/objects/number/data").body
    assert names(server) == sorted([*files, "model.safetensors"])
    assert tensors_of(resolve(server, "model.safetensors").body) == {"number": served}
    assert resolve(server, "w.safetensors").body == resolve(server, "model.safetensors").body


def test_a_real_file_has_its_name_first(tmp_path, start_server):
    real = neighbours.safetensors(pattern(16))
    fill(tmp_path, {"model.zt": ZT, "model.safetensors": real})
    server = start_server(tmp_path)
    assert names(server) == ["model.safetensors", "model.zt"]
    assert resolve(server, "model.safetensors").body == real


def test_a_folder_has_its_name_first(tmp_path, start_server):
    fill(tmp_path, {"x.zt": ZT, "model.safetensors/a.txt": b""})
    server = start_server(tmp_path)
    assert names(server) == ["model.safetensors/a.txt", "x.zt"]


def test_views_can_be_turned_off(tmp_path, start_server, monkeypatch):
    monkeypatch.setenv("ZTSERVE_HUB_VIEWS", "false")
    fill(tmp_path, {"weights.zt": ZT})
    server = start_server(tmp_path)
    assert names(server) == ["weights.zt"]
    absent = resolve(server, "model.safetensors")
    assert (absent.status, absent["X-Error-Code"]) == (404, "EntryNotFound")


def test_what_is_no_model_and_what_safetensors_cannot_hold_has_no_view(tmp_path, start_server):
    sparse = zt1({"a": dense(pattern(8), dtype="u8", encoding="unheard-of")})
    for number, content in enumerate([b"no container", zt1({}), neighbours.gguf(pattern(64))[:-8], sparse]):
        fill(tmp_path, {"weights.zt": content}, f"org/r{number}")
    server = start_server(tmp_path)
    for number in range(4):
        assert names(server, f"org/r{number}") == ["weights.zt"], number


@pytest.mark.folder("changes to a file that are seen at once")
def test_a_pinned_view_never_gives_other_bytes(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT, "config.json": b"{}"})
    server = start_server(tmp_path)
    old = commit_of(server)
    other = {name: bytes(reversed(data)) for name, data in TENSORS.items()}
    (tmp_path / REPO / "new").write_bytes(zt1({name: dense(data, dtype="f32") for name, data in other.items()}))
    os.replace(tmp_path / REPO / "new", tmp_path / REPO / "weights.zt")
    gone = resolve(server, "model.safetensors", old)
    assert (gone.status, gone["X-Error-Code"]) == (404, "RevisionNotFound")
    assert resolve(server, "config.json", old).status == 200
    assert eventually(lambda: commit_of(server) != old)
    assert tensors_of(resolve(server, "model.safetensors").body) == other


def test_corrupt_tensors_are_not_sent(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT.flipped("b")})
    server = start_server(tmp_path)
    answer = resolve(server, "model.safetensors")
    assert (answer.status, answer.json()["code"]) == (500, "corrupt-component")


def test_a_view_is_seen_by_who_may_see_its_model(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT, "notes.txt": b""})
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    rights = {"a": "org/model/weights", "b": "org/model/notes*", "c": "org/model/model*"}
    tokens.write_text("".join(f"{name} read {hashlib.sha256(name.encode()).hexdigest()} {glob}\n" for name, glob in rights.items()))
    server = start_server(tmp_path, "--tokens", str(tokens))
    seen = {}
    for name in rights:
        told = get(server, f"/api/models/{REPO}", Authorization=f"Bearer {name}")
        seen[name] = [entry["rfilename"] for entry in told.json().get("siblings", [])]
    assert seen == {"a": ["model.safetensors", "weights.zt"], "b": ["notes.txt"], "c": []}
    answer = get(server, f"/{REPO}/resolve/main/model.safetensors", Authorization="Bearer b")
    assert (answer.status, answer["X-Error-Code"]) == (404, "EntryNotFound")


# --- several files ---


def in_parts(tmp_path, start_server, monkeypatch, part_bytes, files):
    monkeypatch.setenv("ZTSERVE_HUB_SHARD_BYTES", str(part_bytes))
    fill(tmp_path, files)
    return start_server(tmp_path)


def test_a_large_model_has_several_files_and_an_index(tmp_path, start_server, monkeypatch):
    server = in_parts(tmp_path, start_server, monkeypatch, 192, {"weights.zt": ZT})
    parts = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert names(server) == [*parts, "model.safetensors.index.json", "weights.zt"]
    index = resolve(server, "model.safetensors.index.json")
    assert index["Content-Type"] == "application/json"
    assert json.loads(index.body) == {
        "metadata": {"total_size": 224},
        "weight_map": {"a": parts[0], "b": parts[0], "c": parts[1]},
    }
    held = [tensors_of(resolve(server, part).body) for part in parts]
    assert held == [{name: TENSORS[name] for name in "ab"}, {"c": TENSORS["c"]}]
    listed = tree(server)
    assert listed["model.safetensors.index.json"]["lfs"]["oid"] == hashlib.sha256(index.body).hexdigest()
    assert listed["model.safetensors.index.json"]["size"] == len(index.body)
    part = resolve(server, "model.safetensors.index.json", Range="bytes=3-9")
    assert (part.status, part.body) == (206, index.body[3:10])
    assert resolve(server, "model.safetensors.index.json", method=head)["Content-Length"] == str(len(index.body))


def test_of_two_views_with_one_name_the_first_model_has_it(tmp_path, start_server, monkeypatch):
    small = {"d": pattern(16)}
    first = zt1({"d": dense(small["d"], dtype="f32", shape=[4])})
    server = in_parts(tmp_path, start_server, monkeypatch, 192, {"m.zt": ZT, "m-00001-of-00002.zt": first})
    assert tensors_of(resolve(server, "m-00001-of-00002.safetensors").body) == small


def test_hashes_of_parts_are_found(tmp_path, start_server, monkeypatch):
    server = in_parts(tmp_path, start_server, monkeypatch, 100, {"weights.zt": ZT})
    wanted = {f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)}
    assert eventually(lambda: all(tree(server)[name].get("lfs") for name in wanted))
    for name in wanted:
        assert tree(server)[name]["lfs"]["oid"] == hashlib.sha256(resolve(server, name).body).hexdigest()


def test_what_fits_into_one_file_has_no_index(tmp_path, start_server, monkeypatch):
    server = in_parts(tmp_path, start_server, monkeypatch, 224, {"weights.zt": ZT})
    assert names(server) == ["model.safetensors", "weights.zt"]


def test_the_parts_of_several_models(tmp_path, start_server, monkeypatch):
    server = in_parts(tmp_path, start_server, monkeypatch, 192, {"one.zt": ZT, "small.zt": zt1({"a": dense(b"a")}), "sub/two.zt": ZT})
    shown = [f"one-0000{i}-of-00002.safetensors" for i in (1, 2)]
    assert names(server)[:3] == [*shown, "one.safetensors.index.json"]
    index = resolve(server, "sub/two.safetensors.index.json").json()
    assert set(index["weight_map"].values()) == {f"two-0000{i}-of-00002.safetensors" for i in (1, 2)}


def test_a_real_index_has_its_name_first(tmp_path, start_server, monkeypatch):
    files = {"weights.zt": ZT, "weights.safetensors.index.json": b"{}"}
    server = in_parts(tmp_path, start_server, monkeypatch, 192, files)
    assert resolve(server, "weights.safetensors.index.json").body == b"{}"
    assert not [name for name in names(server) if "-of-" in name]


def test_there_is_a_bound_on_parts(tmp_path, start_server, monkeypatch):
    """Whatever the setting says: a model of very many tensors has larger files."""
    data = pattern(3000)
    many = zt1({f"t{i:04}": dense(data[i : i + 1], digest=None) for i in range(3000)})
    server = in_parts(tmp_path, start_server, monkeypatch, 1, {"weights.zt": many})
    index = resolve(server, "model.safetensors.index.json").json()
    assert len(index["weight_map"]) == 3000
    assert 300 < len(set(index["weight_map"].values())) <= 1000


@pytest.mark.folder("changes to a file that are seen at once")
def test_the_parts_of_a_pinned_commit_go_with_their_model(tmp_path, start_server, monkeypatch):
    server = in_parts(tmp_path, start_server, monkeypatch, 192, {"weights.zt": ZT, "config.json": b"{}"})
    old = commit_of(server)
    (tmp_path / REPO / "new").write_bytes(zt1({"other": dense(pattern(64))}))
    os.replace(tmp_path / REPO / "new", tmp_path / REPO / "weights.zt")
    for name in ("model-00001-of-00002.safetensors", "model.safetensors.index.json"):
        gone = resolve(server, name, old)
        assert (gone.status, gone["X-Error-Code"]) == (404, "RevisionNotFound")


def sparse_model(path, count, tensor_bytes):
    """A file of zeros that takes no room on the disk."""
    layout = {f"layer{i}": 64 + i * tensor_bytes for i in range(count)}
    data = {"dtype": "f32", "length": tensor_bytes}
    objects = {
        name: {"shape": [tensor_bytes // 4], "format": "dense", "components": {"data": {**data, "offset": offset}}}
        for name, offset in layout.items()
    }
    manifest = cbor.encode({"version": "1.2.0", "objects": objects})
    with open(path, "wb") as file:
        file.write(b"ZTEN1000" + bytes(56))
        file.seek(64 + count * tensor_bytes)
        file.write(manifest + struct.pack("<Q", len(manifest)) + b"ZTEN1000")


@pytest.mark.folder("a sparse file")
def test_a_model_of_12_gb(tmp_path, start_server):
    (tmp_path / REPO).mkdir(parents=True)
    sparse_model(tmp_path / REPO / "weights.zt", 6, 2 << 30)
    server = start_server(tmp_path)
    begun = time.monotonic()
    index = resolve(server, "model.safetensors.index.json").json()
    assert index["metadata"]["total_size"] == 6 * (2 << 30)
    assert index["weight_map"] == {f"layer{i}": f"model-0000{i // 2 + 1}-of-00003.safetensors" for i in range(6)}
    described = resolve(server, "model-00003-of-00003.safetensors", method=head)
    size = int(described["Content-Length"])
    assert 4 << 30 < size < (4 << 30) + 4096
    last = resolve(server, "model-00003-of-00003.safetensors", Range=f"bytes={size - 100}-")
    assert (last.status, last.body) == (206, bytes(100))
    assert time.monotonic() - begun < 120


# --- one model in several files, or by its own name ---


def test_two_formats_of_one_name_are_one_model(tmp_path, start_server):
    content = io.BytesIO()
    numpy.savez(content, other=numpy.uint8(1))
    fill(tmp_path, {"a.zt": ZT, "a.npz": content.getvalue()})
    server = start_server(tmp_path)
    assert names(server) == ["a.npz", "a.zt", "model.safetensors"]
    assert tensors_of(resolve(server, "model.safetensors").body) == TENSORS


def test_the_only_model_has_its_own_name_too(tmp_path, start_server):
    fill(tmp_path, {"weights.zt": ZT})
    server = start_server(tmp_path)
    view = resolve(server, "model.safetensors")
    assert resolve(server, "weights.safetensors").body == view.body
    assert resolve(server, "weights.safetensors")["ETag"] == view["ETag"]
    assert get(server, f"/{REPO}/resolve/main/weights.safetensors").status == 307
    assert "weights.safetensors" not in names(server) and "weights.safetensors" not in tree(server)
    for name in ("other.safetensors", "sub/weights.safetensors", "weights.safetensors/x"):
        assert resolve(server, name)["X-Error-Code"] == "EntryNotFound"


def test_what_is_stored_comes_before_a_second_name(tmp_path, start_server):
    fill(tmp_path, {"w.zt": ZT, "w.safetensors/x": b"1"})
    server = start_server(tmp_path)
    assert resolve(server, "w.safetensors")["X-Error-Code"] == "EntryNotFound"
    assert resolve(server, "w.safetensors/x").body == b"1"


@pytest.mark.parametrize("index", joined.variant_index_names("model", "fp16"))
def test_the_index_of_a_variant_has_no_view(tmp_path, start_server, index):
    """Looking at the repository once crashed the server."""
    files = joined.files_with_variant_index("model", "fp16", [pattern(40), pattern(30, 2)])
    *parts, (_, content) = files.items()
    fill(tmp_path, {**dict(parts), index: content, "other.zt": ZT})
    server = start_server(tmp_path)
    assert set(tree(server)) == {*dict(parts), index, "other.safetensors", "other.zt"}
    assert resolve(server, index).body == content
