"""Models in several files, read: an index and its parts, or a split GGUF, are one model beside its parts."""

import json
import signal
import struct
import threading

import pytest

import joined
from containers import pattern
from uploads import digest_field
from wire import (
    assert_problem,
    component_path,
    connect,
    eventually,
    get,
    manifest,
    model_path,
    read_exactly,
    read_head,
    verify,
)

CONTENTS = [pattern(4000, seed=31), pattern(5000, seed=32), pattern(300, seed=33)]
# More than the socket buffers of both ends hold.
BIG_BYTES = 24 << 20
MAKERS = {"index": joined.files_with_index, "split": joined.files_of_split, "capitals": joined.files_of_split_in_capitals}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def write(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{path.replace('/', '-')}.partial"
        temporary.write_bytes(content)
        temporary.rename(folder / path)


def entries(server, query=""):
    return {entry["name"]: entry for entry in get(server, f"/v1/models{query}").json()["models"]}


def content(server, model, name):
    answer = get(server, component_path(model, name))
    return answer.body if answer.status == 200 else answer.status


def contents(server, model="m"):
    return [content(server, model, f"w{number}") for number in (1, 2, 3)]


def detail_of(server, model="m"):
    return entries(server).get(model, {}).get("error", {}).get("detail", "")


def test_parts_are_one_model(start_server, tmp_path, make):
    write(tmp_path, make("m", CONTENTS))
    server = start_server(tmp_path)
    assert contents(server) == CONTENTS
    answer = get(server, component_path("m", "w2"), Range="bytes=4990-")
    assert (answer.status, answer.body) == (206, CONTENTS[1][4990:])
    assert get(server, component_path("m", "w2") + "?slice=10:20").body == CONTENTS[1][10:20]
    assert get(server, component_path("m", "w1") + "?shard=1/2").body == CONTENTS[0][2000:]


def test_listing_has_the_model_and_marks_its_parts(start_server, tmp_path, make):
    files = make("d/m", CONTENTS)
    write(tmp_path, files)
    (tmp_path / "d/other.safetensors").write_bytes(joined.safetensors({"w": b"1"}))
    server = start_server(tmp_path)
    listed = entries(server)
    stems = {path.rsplit(".", 1)[0] for path in files if not path.endswith(".json")}
    assert set(listed) == {"d/m", "d/other"} | stems
    assert {name for name, entry in listed.items() if entry.get("part_of") == "d/m"} == stems
    assert listed["d/m"]["objects"] == 3 and listed["d/m"]["format"] == listed[min(stems)]["format"]
    assert listed["d/m"]["size"] == sum(listed[name]["size"] for name in stems)
    assert set(entries(server, "?parts=false")) == {"d/m", "d/other"}
    assert set(entries(server, "?parts=true")) == set(listed)
    assert_problem(get(server, "/v1/models?parts=maybe"), 400, "invalid-request")


def test_pages_leave_parts_out(start_server, tmp_path, make):
    for stem in "abc":
        write(tmp_path, make(stem, CONTENTS))
    server = start_server(tmp_path)
    seen, cursor = [], ""
    while cursor is not None:
        page = get(server, f"/v1/models?parts=0&limit=1{cursor and '&cursor=' + cursor}").json()
        seen += [entry["name"] for entry in page["models"]]
        cursor = page["next"]
    assert seen == ["a", "b", "c"]


def test_manifest_names_the_part_of_each_component(start_server, tmp_path, make):
    files = make("m", CONTENTS)
    write(tmp_path, files)
    server = start_server(tmp_path)
    shown = manifest(server, "m")
    names = sorted(path for path in files if "-of-" in path)
    shards = [shown["objects"][f"w{number}"]["components"]["data"].get("shard") for number in (1, 2, 3)]
    assert shards == [None if shown["source"]["format"] == "gguf" else names[0], *names[1:]]
    assert "href" not in shown["source"]
    assert shown["source"]["size"] == sum((tmp_path / name).stat().st_size for name in names)
    assert not any(key.startswith("split.") for key in shown["attributes"])


def test_export_and_verification_cover_all_parts(start_server, tmp_path, make):
    write(tmp_path, make("m", CONTENTS))
    server = start_server(tmp_path)
    answer = get(server, model_path("m") + "/export?format=safetensors")
    assert answer.status == 200
    (length,) = struct.unpack("<Q", answer.body[:8])
    header = json.loads(answer.body[8 : 8 + length])
    for number, expected in enumerate(CONTENTS, 1):
        start, end = header[f"w{number}"]["data_offsets"]
        assert answer.body[8 + length + start : 8 + length + end] == expected
    report = verify(server, "m")
    assert report["state"] in ("verified", "unverified") and report["components"]["total"] == 3
    assert report["components"]["failed"] == 0


def test_digests_are_known_as_for_other_models(start_server, tmp_path, make):
    write(tmp_path, make("m", CONTENTS))
    server = start_server(tmp_path)
    answer = get(server, component_path("m", "w3"), **{"Want-Repr-Digest": "sha-256=10"})
    assert answer.body == CONTENTS[2] and answer["Repr-Digest"] == digest_field("sha-256", CONTENTS[2])


def test_files_are_the_stored_ones(start_server, tmp_path, make):
    files = make("m", CONTENTS)
    write(tmp_path, files)
    server = start_server(tmp_path)
    for path, expected in files.items():
        assert get(server, f"/files/{path}").body == expected
    for extension in ("gguf", "GGUF"):
        assert get(server, f"/files/m-*-of-00003.{extension}").status == 404
        assert get(server, f"/files/m-%2A-of-00003.{extension}").status == 404
    assert get(server, model_path("m-*-of-00003")).status == 404


@pytest.mark.parametrize("number", [0, 1, 2])
def test_missing_part_is_named_and_makes_the_model_whole_when_it_comes(start_server, tmp_path, make, number):
    files = make("m", CONTENTS)
    missing = sorted(path for path in files if not path.endswith(".json"))[number]
    write(tmp_path, {path: content for path, content in files.items() if path != missing})
    server = start_server(tmp_path)
    assert f"part {missing} is missing" in detail_of(server)
    assert_problem(get(server, model_path("m")), 422, "invalid-model")
    present = [path.rsplit(".", 1)[0] for path in files if path != missing and not path.endswith(".json")]
    assert all(get(server, model_path(name)).status == 200 for name in present)
    write(tmp_path, {missing: files[missing]})
    eventually(lambda: contents(server) == CONTENTS)
    (tmp_path / missing).unlink()
    eventually(lambda: f"part {missing} is missing" in detail_of(server))


def test_replaced_part_is_a_new_version(start_server, tmp_path, make):
    write(tmp_path, make("m", CONTENTS))
    server = start_server(tmp_path)
    before = get(server, model_path("m"))["ETag"]
    changed = [CONTENTS[0], bytes(5000), CONTENTS[2]]
    path, file = next(item for item in make("m", changed).items() if "-00002-" in item[0])
    write(tmp_path, {path: file})
    eventually(lambda: contents(server) == changed)
    assert get(server, model_path("m"))["ETag"] != before


@pytest.mark.folder("a download of a version that a bucket has no more")
def test_replaced_part_changes_no_download(start_server, tmp_path, make):
    big = [pattern(BIG_BYTES, seed=34), *CONTENTS[1:]]
    write(tmp_path, make("m", big))
    server = start_server(tmp_path)
    with connect(server, receive_buffer=1 << 16) as connection:
        connection.sendall(f"GET {component_path('m', 'w1')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, _, received = read_head(connection)
        assert status == 200
        path, file = next(item for item in make("m", [bytes(BIG_BYTES), *CONTENTS[1:]]).items() if "-00001-" in item[0])
        write(tmp_path, {path: file})
        eventually(lambda: get(server, component_path("m", "w1"), Range="bytes=0-9").body == bytes(10))
        assert read_exactly(connection, BIG_BYTES, received) == big[0]


def test_scan_of_everything_leaves_the_model_as_it_is(start_server, tmp_path, make):
    write(tmp_path, make("m", CONTENTS))
    server = start_server(tmp_path)
    before = get(server, model_path("m"))["ETag"]
    server.signal(signal.SIGHUP)
    (tmp_path / "new").mkdir()
    write(tmp_path, {"new/n.gguf": joined.gguf({"w": b"1"})})
    eventually(lambda: "new/n" in entries(server))
    assert get(server, model_path("m"))["ETag"] == before


def test_model_comes_and_goes_with_its_files(start_server, tmp_path, make):
    server = start_server(tmp_path)
    files = make("d/m", CONTENTS)
    write(tmp_path, files)
    eventually(lambda: contents(server, "d/m") == CONTENTS)
    for path in files:
        (tmp_path / path).unlink()
    eventually(lambda: entries(server) == {})
    assert get(server, model_path("d/m")).status == 404


def test_real_file_of_the_name_wins(start_server, tmp_path, make):
    files = make("m", CONTENTS)
    write(tmp_path, {**files, "m.npy": b"no model"})
    server = start_server(tmp_path)
    assert entries(server)["m"]["format"] == "npy"
    assert "part_of" not in entries(server)["m-00001-of-00003"]
    first = min(path for path in files if "-of-" in path)
    own = next((path for path in files if path.endswith(".json")), first.replace("-00001-", "-*-"))
    eventually(lambda: f"{own} is shadowed by m.npy" in server.log)
    (tmp_path / "m.npy").unlink()
    eventually(lambda: contents(server) == CONTENTS)


def test_two_splits_of_one_name_do_not_mix(start_server, tmp_path):
    write(tmp_path, joined.files_of_split("m", CONTENTS))
    write(tmp_path, joined.files_of_split("m", CONTENTS[:2]))
    server = start_server(tmp_path)
    assert manifest(server, "m")["objects"].keys() == {"w1", "w2"}
    for path in joined.files_of_split("m", CONTENTS[:2]):
        (tmp_path / path).unlink()
    eventually(lambda: contents(server) == CONTENTS)


def test_ggufs_that_are_only_named_like_parts_are_no_parts(start_server, tmp_path):
    write(tmp_path, {"m-00001-of-00002.gguf": joined.gguf({"w": b"1"}), "m-00002-of-00002.gguf": joined.gguf({"v": b"2"})})
    server = start_server(tmp_path)
    assert entries(server).keys() == {"m-00001-of-00002", "m-00002-of-00002"}
    assert "part_of" not in entries(server)["m-00001-of-00002"]


def test_parts_may_have_any_name_beside_the_index(start_server, tmp_path):
    made = {"one.safetensors": {"w1": b"1"}, "x-00001-of-00002.safetensors": {"w2": b"22"}}
    write(tmp_path, {path: joined.safetensors(tensors) for path, tensors in made.items()})
    write(tmp_path, {"m.safetensors.index.json": joined.index_of(made)})
    server = start_server(tmp_path)
    assert content(server, "m", "w2") == b"22"
    assert entries(server)["one"]["part_of"] == "m"


MADE = joined.parts_of("m", CONTENTS)
HOSTILE = {
    "no JSON": b"{" * 100_000,
    "no index": b'{"weights": {}}',
    "no parts": b'{"weight_map": {}}',
    "a list": b"[]",
    "empty": b"",
    "outside": json.dumps({"weight_map": {"w1": "../x.safetensors"}}).encode(),
    "absolute": json.dumps({"weight_map": {"w1": "/etc/passwd"}}).encode(),
    "hidden": json.dumps({"weight_map": {"w1": ".x.safetensors"}}).encode(),
    "itself": json.dumps({"weight_map": {"w1": "m.safetensors.index.json"}}).encode(),
    "an index": json.dumps({"weight_map": {"w1": "o.safetensors.index.json"}}).encode(),
    "no model's name": json.dumps({"weight_map": {"w1": "m 1.safetensors"}}).encode(),
    "no model's file": json.dumps({"weight_map": {"w1": "config.json"}}).encode(),
    "repeated": b'{"weight_map": {"w1": "m-00001-of-00003.safetensors", "w1": "m-00002-of-00003.safetensors"}}',
    "too many": json.dumps({"weight_map": {f"w{i}": f"m{i}.safetensors" for i in range(2000)}}).encode(),
    "elsewhere": joined.index_of(MADE, w1="m-00002-of-00003.safetensors", w2="m-00001-of-00003.safetensors"),
    "not there": joined.index_of(MADE, w9="m-00001-of-00003.safetensors"),
    "left out": joined.index_of(MADE, w2="m-00001-of-00003.safetensors"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_index_that_lies_is_refused_and_the_parts_stay_readable(start_server, tmp_path, case):
    files = joined.files_with_index("m", CONTENTS)
    write(tmp_path, {**files, "m" + joined.INDEX: HOSTILE[case]})
    server = start_server(tmp_path)
    assert detail_of(server) != ""
    assert_problem(get(server, model_path("m")), 422, "invalid-model")
    for number, expected in enumerate(CONTENTS, 1):
        assert content(server, f"m-{number:05}-of-00003", f"w{number}") == expected


def test_index_of_a_gigabyte_is_not_read(start_server, tmp_path):
    files = joined.files_with_index("m", CONTENTS)
    write(tmp_path, files)
    with open(tmp_path / ("m" + joined.INDEX), "r+b") as file:
        file.truncate(1 << 30)
    server = start_server(tmp_path)
    assert detail_of(server) != ""
    assert content(server, "m-00001-of-00003", "w1") == CONTENTS[0]


def test_tensor_that_is_elsewhere_is_told_with_both_files(start_server, tmp_path):
    files = joined.files_with_index("m", CONTENTS)
    swapped = joined.index_of(MADE, w1="m-00002-of-00003.safetensors", w2="m-00001-of-00003.safetensors")
    write(tmp_path, {**files, "m" + joined.INDEX: swapped})
    server = start_server(tmp_path)
    assert "m-00001-of-00003.safetensors" in detail_of(server) and "m-00002-of-00003.safetensors" in detail_of(server)
    write(tmp_path, {"m" + joined.INDEX: files["m" + joined.INDEX]})
    eventually(lambda: contents(server) == CONTENTS)


def test_part_that_the_index_does_not_name_is_told(start_server, tmp_path):
    two = {path: tensors for path, tensors in MADE.items() if "00003-of" not in path}
    third = joined.files_with_index("m", CONTENTS)["m-00003-of-00003.safetensors"]
    write(tmp_path, {path: joined.safetensors(tensors) for path, tensors in two.items()})
    write(tmp_path, {"m.safetensors.index.json": joined.index_of(two)})
    server = start_server(tmp_path)
    assert "error" not in entries(server)["m"]
    for _ in range(2):
        write(tmp_path, {"m-00003-of-00003.safetensors": third})
        eventually(lambda: "part m-00003-of-00003.safetensors is not named by the index" in detail_of(server))
        assert content(server, "m-00003-of-00003", "w3") == CONTENTS[2]
        assert "part_of" not in entries(server)["m-00003-of-00003"]
        (tmp_path / "m-00003-of-00003.safetensors").unlink()
        eventually(lambda: content(server, "m", "w2") == CONTENTS[1])
    write(tmp_path, {"m-00003-of-00004.safetensors": third, "n-00003-of-00003.safetensors": third})
    eventually(lambda: len(entries(server)) == 5)
    assert content(server, "m", "w2") == CONTENTS[1]


def test_index_with_an_unusable_name_is_counted_as_such(start_server, tmp_path):
    write(tmp_path, {"\x01no name.safetensors.index.json": b"{}"})
    server = start_server(tmp_path)
    assert entries(server) == {}
    server.wait_for_line("no name.safetensors.index.json")


def test_a_thousand_parts_are_one_model(start_server, tmp_path):
    contents_of = [bytes([number & 255]) * 3 for number in range(1024)]
    write(tmp_path, joined.files_with_index("m", contents_of))
    server = start_server(tmp_path)
    assert content(server, "m", "w1024") == contents_of[-1]
    assert len(entries(server, "?parts=0")) == 1


def test_many_models_of_many_parts_share_the_descriptors(start_server, tmp_path, make):
    stems = [f"m{number}" for number in range(12)]
    contents_of = [*CONTENTS, *[b"x"] * 61]
    for stem in stems:
        write(tmp_path, make(stem, contents_of))
    server = start_server(tmp_path, launcher=("prlimit", "--nofile=700:700"))
    done = []

    def read(stem):
        done.append(contents(server, stem) == CONTENTS)

    for _ in range(2):
        threads = [threading.Thread(target=read, args=(stem,)) for stem in stems]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert done == [True] * 24
