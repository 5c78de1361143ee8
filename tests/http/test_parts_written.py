"""Models in several files, written: parts in any order and then the index, replacement, and removal of the whole."""

import json
import threading

import pytest

import joined
import mirror
import pytorch
from clients import Client, write_tokens
from containers import pattern
from neighbours import npz
from tus import create, offset_of, patch
from uploads import files_of, put
from wire import ask, assert_problem, component_path, connect, eventually, get, manifest, model_path, read_exactly, read_head

CONTENTS = [pattern(4000, seed=41), pattern(5000, seed=42), pattern(300, seed=43)]
SINGLE = npz(b"one")
BIG_BYTES = 24 << 20
# Parts whose removal takes long enough to look on.
MANY = 20 if mirror.wanted else 600
MAKERS = {"index": joined.files_with_index, "split": joined.files_of_split}
EXTENSIONS = (joined.INDEX, ".safetensors", ".gguf")


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def server(start_server, tmp_path):
    return start_server(tmp_path, "--writable")


def name_of(path):
    return next(path.removesuffix(extension) for extension in EXTENSIONS if path.endswith(extension))


def put_all(server, files):
    """In the order of the files, of which an index is the last."""
    for path, content in files.items():
        answer = put(server, name_of(path), content)
        assert answer.status in (201, 204), (path, answer)


def delete(server, name, **fields):
    return ask(server, "DELETE", model_path(name), {key.replace("_", "-"): value for key, value in fields.items()})


def entries(server, query=""):
    return {entry["name"]: entry for entry in get(server, f"/v1/models{query}").json()["models"]}


def contents(server, model="m", count=3):
    answers = [get(server, component_path(model, f"w{number}")) for number in range(1, count + 1)]
    return [answer.body if answer.status == 200 else answer.status for answer in answers]


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0)])
def test_parts_come_in_any_order(server, tmp_path, make, order):
    files = make("d/m", CONTENTS)
    written = [path for path in files if not path.endswith(".json")]
    for number in order:
        assert put(server, name_of(written[number]), files[written[number]]).status == 201
    for path in files:
        if path.endswith(".json"):
            assert put(server, "d/m", files[path]).status == 201
    assert contents(server, "d/m") == CONTENTS
    assert files_of(tmp_path) == sorted(files)


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_index_of_a_variant_is_uploaded_under_the_name_of_its_model(server, tmp_path, kind):
    name = "m.fp16" if kind == "safetensors" else "pytorch_model.fp16"
    if kind == "safetensors":
        parts = joined.files_with_index(name, CONTENTS)
        index = parts.pop(name + joined.INDEX)
    else:
        parts, index = pytorch_files(name, "bin")
    for part, content in parts.items():
        assert put(server, part.rpartition(".")[0], content).status == 201
    assert put(server, name, index).status == 201
    assert f"{name}.{kind}.index.json" in files_of(tmp_path)
    for other in joined.variant_index_names(name.partition(".")[0], "fp16", kind):
        reply = put(server, other, index)
        assert_problem(reply, 400, "invalid-name")
        assert f"/v1/models/{name}" in reply.json()["detail"]


@pytest.mark.parametrize("form", [0, 1])
def test_index_of_a_variant_is_removed_and_replaced_as_any(server, tmp_path, form):
    made = joined.files_with_variant_index("m", "fp16", CONTENTS, form)
    for path, content in made.items():
        (tmp_path / f".{path}.partial").write_bytes(content)
        (tmp_path / f".{path}.partial").rename(tmp_path / path)
    assert eventually(lambda: contents(server, "m.fp16") == CONTENTS)
    tag = get(server, model_path("m.fp16"))["ETag"]
    assert put(server, "m.fp16", SINGLE, if_none_match="*").status == 412
    assert put(server, "m.fp16", SINGLE, if_match=tag).status == 204
    assert files_of(tmp_path) == ["m.fp16.npz"]
    for path, content in made.items():
        (tmp_path / f".{path}.partial").write_bytes(content)
        (tmp_path / f".{path}.partial").rename(tmp_path / path)
    assert delete(server, "m.fp16").status == 204
    assert eventually(lambda: contents(server, "m.fp16") == CONTENTS)
    assert delete(server, "m.fp16").status == 204
    assert files_of(tmp_path) == []
    assert get(server, model_path("m.fp16")).status == 404


def test_part_of_a_split_is_stored_under_its_own_name_only(server):
    first, second = joined.files_of_split("m.v1", CONTENTS[:2]).values()
    for name, content in (("other", first), ("m.v1-00001-of-00002", second), ("m.v1-00001-of-00003", first)):
        reply = put(server, name, content)
        assert_problem(reply, 422, "invalid-model")
        assert reply.json()["rule"] == "gguf §Split PartName"
    assert put(server, "m.v1-00001-of-00002", first).status == 201
    assert put(server, "m.v1-00002-of-00002", second).status == 201
    assert manifest(server, "m.v1")["objects"].keys() == {"w1", "w2"}


def test_answer_to_the_index_has_the_tag_of_the_whole(server):
    files = joined.files_with_index("m", CONTENTS)
    index = files.pop("m" + joined.INDEX)
    put_all(server, files)
    answer = put(server, "m", index)
    assert (answer.status, answer["Location"]) == (201, "/v1/models/m")
    assert answer["ETag"] == get(server, model_path("m"))["ETag"]
    assert_problem(put(server, "m", index, If_None_Match="*"), 412, "precondition-failed")
    assert put(server, "m", index, If_Match=answer["ETag"]).status == 204


def test_index_comes_through_tus_and_before_the_last_part(server):
    files = joined.files_with_index("m", CONTENTS)
    index, last = files.pop("m" + joined.INDEX), joined.part_names("m", 3)[2]
    put_all(server, {path: content for path, content in files.items() if path != last})
    upload = create(server, "m", len(index))
    assert patch(server, upload, 0, index[:50]).status == 204
    assert offset_of(server, upload) == 50
    assert patch(server, upload, 50, index[50:]).status == 204
    assert f"part {last} is missing" in entries(server)["m"]["error"]["detail"]
    put_all(server, {last: files[last]})
    assert contents(server) == CONTENTS


def test_clients_with_globs_use_and_see_parts_as_they_may(start_server, tmp_path):
    narrow, wide = Client("narrow", "write", "m"), Client("wide", "write", "m*")
    tokens = write_tokens(tmp_path / "tokens", narrow, wide, Client("admin", "admin"))
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", "--tokens", tokens)
    files = joined.files_with_index("m", CONTENTS)
    index = files.pop("m" + joined.INDEX)
    for path, content in files.items():
        assert wide.ask(server, "PUT", model_path(name_of(path)), body=content).status == 201
    answer = narrow.ask(server, "PUT", model_path("m"), body=index)
    assert_problem(answer, 403, "forbidden")
    assert narrow.ask(server, "GET", f"/files/{min(files)}").status == 404
    assert wide.ask(server, "PUT", model_path("m"), body=index).status == 201
    assert narrow.ask(server, "GET", component_path("m", "w1")).body == CONTENTS[0]
    assert narrow.ask(server, "GET", f"/files/{min(files)}").body == files[min(files)]
    assert [entry["name"] for entry in narrow.ask(server, "GET", "/v1/models").json()["models"]] == ["m"]


def pytorch_files(stem, extension):
    names = joined.part_names(stem, 3, extension)
    files = {
        name: pytorch.pt({f"w{number}": pytorch.Tensor(pytorch.Storage(content, "u8"), [len(content)])})
        for number, (name, content) in enumerate(zip(names, CONTENTS), 1)
    }
    return files, joined.index_of({name: {f"w{number}": b""} for number, name in enumerate(names, 1)})


@pytest.mark.parametrize("stem, extension", [("pytorch_model", "bin"), ("m", "pt")])
def test_parts_of_pytorch_are_one_model(server, tmp_path, stem, extension):
    files, index = pytorch_files(stem, extension)
    for path, content in files.items():
        assert put(server, path.removesuffix(f".{extension}"), content).status == 201
    assert put(server, stem, index).status == 201
    assert contents(server, stem) == CONTENTS
    entry = entries(server, "?parts=false")[stem]
    assert (entry["format"], entry["objects"]) == ("pytorch", 3)
    assert files_of(tmp_path) == sorted([*files, f"{stem}.bin.index.json"])
    assert delete(server, stem).status == 204
    assert files_of(tmp_path) == []


def refused(server, index, detail):
    answer = put(server, "m", index)
    assert_problem(answer, 422, "invalid-model")
    assert detail in answer.json()["detail"], answer
    assert "m" not in entries(server)


MADE = joined.parts_of("m", CONTENTS)
LIES = {
    "x.zt": "neither of safetensors nor of PyTorch",
    "sub/../../x.safetensors": "leads out of the folder",
    ".sub/x.safetensors": "a hidden file",
    "m.safetensors": "the name of the whole model",
    "x\t1.safetensors": "a control character",
}


@pytest.mark.parametrize("file", LIES)
def test_index_with_an_unusable_part_is_refused(server, file):
    refused(server, json.dumps({"weight_map": {"w1": file}}).encode(), LIES[file])


def test_index_may_name_parts_with_a_dot_and_in_subfolders(server, tmp_path):
    made = {"./one.safetensors": {"w1": CONTENTS[0]}, "sub/two.safetensors": {"w2": CONTENTS[1]}}
    made["./sub/./deep/three.safetensors"] = {"w3": CONTENTS[2]}
    for name, held in zip(("one", "sub/two", "sub/deep/three"), made.values()):
        assert put(server, f"a/{name}", joined.safetensors(held)).status == 201
    assert put(server, "a/m", joined.index_of(made)).status == 201
    assert contents(server, "a/m") == CONTENTS
    shown = manifest(server, "a/m")["objects"]
    shards = [shown[f"w{number}"]["components"]["data"]["shard"] for number in (1, 2, 3)]
    assert shards == ["one.safetensors", "sub/two.safetensors", "sub/deep/three.safetensors"]
    assert {entry["part_of"] for name, entry in entries(server).items() if name != "a/m"} == {"a/m"}
    assert_problem(delete(server, "a/sub/two"), 409, "conflict")
    replaced = joined.safetensors({"w2": CONTENTS[1][::-1]})
    assert put(server, "a/sub/two", replaced).status == 204
    assert eventually(lambda: contents(server, "a/m") == [CONTENTS[0], CONTENTS[1][::-1], CONTENTS[2]])
    assert delete(server, "a/m").status == 204
    assert files_of(tmp_path) == []


def test_index_that_the_parts_contradict_is_refused(server, tmp_path):
    files = joined.files_with_index("m", CONTENTS)
    del files["m" + joined.INDEX]
    put_all(server, files)
    refused(server, joined.index_of(MADE, w1="m-00002-of-00003.safetensors"), "m-00002-of-00003.safetensors")
    refused(server, joined.index_of(MADE, w9="m-00002-of-00003.safetensors"), "m-00002-of-00003.safetensors")
    refused(server, b'{"weight_map": 1}', "")
    refused(server, json.dumps({"weight_map": {"a": "a.safetensors", "b": "b.bin"}}).encode(), "another extension")
    assert files_of(tmp_path) == sorted(files)


def test_removal_takes_index_and_parts_and_nothing_else(server, tmp_path, make):
    put_all(server, {**make("m", CONTENTS), "m-00004-of-00004.safetensors": joined.safetensors({"w": b"1"})})
    put_all(server, make("o", CONTENTS))
    others = [path for path in files_of(tmp_path) if path.startswith("o") or "00004" in path]
    assert delete(server, "m").status == 204
    assert files_of(tmp_path) == others
    assert get(server, model_path("m")).status == 404
    assert contents(server, "o") == CONTENTS


def test_model_behind_a_single_file_is_neither_removed_nor_replaced(server, tmp_path, make):
    files = make("m", CONTENTS)
    put_all(server, files)
    (tmp_path / "m.npz").write_bytes(SINGLE)
    eventually(lambda: entries(server)["m"]["format"] == "npz")
    behind = next((path for path in files if path.endswith(".json")), "m-00001-of-00003.gguf")
    # A part of a split under the model's name is refused for that name, if its content is looked at first.
    own = [files[behind]] if behind.endswith(".json") else []
    for content in (SINGLE, joined.gguf({"w": b"1"}), *own):
        answer = put(server, "m", content)
        assert_problem(answer, 409, "conflict")
        assert behind in answer.json()["detail"]
    assert delete(server, "m").status == 204
    assert contents(server) == CONTENTS
    assert files_of(tmp_path) == sorted(files)


def test_part_is_not_removed_without_its_model(server, tmp_path, make):
    files = make("m", CONTENTS)
    put_all(server, files)
    answer = delete(server, "m-00002-of-00003")
    assert_problem(answer, 409, "conflict")
    assert "model m" in answer.json()["detail"]
    assert files_of(tmp_path) == sorted(files)


def test_part_that_two_models_share_stays_with_the_other(server, tmp_path):
    files = joined.files_with_index("m", CONTENTS)
    put_all(server, files)
    assert put(server, "n", joined.index_of(MADE)).status == 201
    assert delete(server, "m").status == 204
    assert contents(server, "n") == CONTENTS
    assert delete(server, "n").status == 204
    assert files_of(tmp_path) == []


def test_index_of_an_unreadable_model_takes_nothing_with_it(server, tmp_path):
    (tmp_path / "good.safetensors").write_bytes(joined.safetensors({"w": b"1"}))
    (tmp_path / ("m" + joined.INDEX)).write_bytes(joined.index_of({"good.safetensors": {"v": b"1"}}))
    eventually(lambda: "error" in entries(server).get("m", {}))
    assert_problem(delete(server, "good"), 409, "conflict")
    assert delete(server, "m").status == 204
    assert files_of(tmp_path) == ["good.safetensors"]


def test_removal_disturbs_no_download(server, make):
    big = [pattern(BIG_BYTES, seed=44), *CONTENTS[1:]]
    put_all(server, make("m", big))
    # Over a bucket, only blocks that are in the cache outlive the object.
    assert get(server, component_path("m", "w1")).body == big[0]
    with connect(server, receive_buffer=1 << 16) as connection:
        connection.sendall(f"GET {component_path('m', 'w1')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, _, received = read_head(connection)
        assert status == 200
        assert delete(server, "m").status == 204
        received = read_exactly(connection, BIG_BYTES, received)
        assert len(received) == BIG_BYTES and received == big[0]


def test_half_a_model_is_never_shown_while_it_is_removed(start_server, tmp_path, make):
    files = make("m", [b"x" * 10] * MANY)
    seen = []
    over = threading.Event()

    def watch():
        while not over.is_set():
            seen.append(get(server, model_path("m")).status)

    for path, content in files.items():
        (tmp_path / path).write_bytes(content)
    server = start_server(tmp_path, "--writable")
    assert get(server, model_path("m")).status == 200
    watcher = threading.Thread(target=watch)
    watcher.start()
    assert delete(server, "m").status == 204
    over.set()
    watcher.join()
    assert set(seen) <= {200, 404}


def test_replaced_part_makes_a_new_version(server, make):
    put_all(server, make("m", CONTENTS))
    before = get(server, model_path("m"))["ETag"]
    changed = [CONTENTS[0], bytes(5000), CONTENTS[2]]
    path, content = next(item for item in make("m", changed).items() if "-00002-" in item[0])
    assert put(server, name_of(path), content).status == 204
    assert contents(server) == changed
    assert get(server, model_path("m"))["ETag"] != before
    assert_problem(delete(server, "m", If_Match=before), 412, "precondition-failed")


def test_new_index_keeps_the_parts_that_it_names_and_takes_the_others_away(server, tmp_path):
    put_all(server, joined.files_with_index("m", CONTENTS))
    extra = {"more.safetensors": {"w4": b"4"}}
    put_all(server, {"more.safetensors": joined.safetensors({"w4": b"4"})})
    for parts, there in (({**MADE, **extra}, [*CONTENTS, b"4"]), (dict(list(MADE.items())[:2]), CONTENTS[:2])):
        assert put(server, "m", joined.index_of(parts)).status == 204
        assert contents(server, count=len(there)) == there
        assert files_of(tmp_path) == sorted([*parts, "m" + joined.INDEX])
    assert_problem(put(server, "m", b'{"weight_map": {}}'), 422, "invalid-model")
    assert contents(server, count=2) == CONTENTS[:2]
    shorter = joined.files_with_index("m", CONTENTS[1:])
    put_all(server, shorter)
    assert contents(server, count=2) == CONTENTS[1:]
    assert files_of(tmp_path) == sorted(shorter)


def test_single_file_replaces_the_whole_model(server, tmp_path, make):
    put_all(server, make("m", CONTENTS))
    assert put(server, "m", joined.safetensors({"w1": b"one"})).status == 204
    assert contents(server, count=1) == [b"one"]
    assert files_of(tmp_path) == ["m.safetensors"]


def test_model_in_several_files_replaces_a_single_one(server, tmp_path):
    assert put(server, "m", joined.gguf({"w1": b"one"})).status == 201
    files = joined.files_with_index("m", CONTENTS)
    put_all(server, files)
    assert contents(server) == CONTENTS
    assert files_of(tmp_path) == sorted(files)


def test_a_split_in_capitals_is_removed_and_replaced_as_any(server, tmp_path):
    for path, content in joined.files_of_split_in_capitals("m", CONTENTS).items():
        (tmp_path / path).write_bytes(content)
    eventually(lambda: contents(server) == CONTENTS)
    assert_problem(delete(server, "m-00002-of-00003"), 409, "conflict")
    assert delete(server, "m").status == 204
    assert files_of(tmp_path) == []
    for path, content in joined.files_of_split_in_capitals("m", CONTENTS).items():
        (tmp_path / path).write_bytes(content)
    eventually(lambda: contents(server) == CONTENTS)
    assert put(server, "m", SINGLE).status == 204
    assert files_of(tmp_path) == ["m.npz"]
