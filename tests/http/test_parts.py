"""Models in several files, read: an index and its parts, or a split GGUF, are one model beside its parts."""

import itertools
import json
import signal
import struct

import pytest

import joined
from containers import pattern
from uploads import digest_field
from wire import assert_problem, at_once, component_path, connect, eventually, get, manifest, model_path, read_exactly, read_head, verify

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


@pytest.fixture(scope="module", params=MAKERS)
def whole(request, tmp_path_factory, share_server):
    """A server with the model m in several files, its folder and its files."""
    root, files = tmp_path_factory.mktemp("whole"), MAKERS[request.param]("m", CONTENTS)
    write(root, files)
    return share_server(root), root, files


def test_parts_are_one_model(whole):
    server, _, _ = whole
    answer = get(server, component_path("m", "w3"), **{"Want-Repr-Digest": "sha-256=10"})
    assert answer.body == CONTENTS[2] and answer["Repr-Digest"] == digest_field("sha-256", CONTENTS[2])
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


def test_manifest_names_the_part_of_each_component(whole):
    server, root, files = whole
    shown = manifest(server, "m")
    names = sorted(path for path in files if "-of-" in path)
    shards = [shown["objects"][f"w{number}"]["components"]["data"].get("shard") for number in (1, 2, 3)]
    assert shards == [None if shown["source"]["format"] == "gguf" else names[0], *names[1:]]
    assert "href" not in shown["source"]
    assert shown["source"]["size"] == sum((root / name).stat().st_size for name in names)
    assert not any(key.startswith("split.") for key in shown["attributes"])


def test_export_and_verification_cover_all_parts(whole):
    server, _, _ = whole
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


def test_files_are_the_stored_ones(whole):
    server, _, files = whole
    for path, expected in files.items():
        assert get(server, f"/files/{path}").body == expected
    for extension in ("gguf", "GGUF"):
        assert get(server, f"/files/m-*-of-00003.{extension}").status == 404
        assert get(server, f"/files/m-%2A-of-00003.{extension}").status == 404
    assert get(server, model_path("m-*-of-00003")).status == 404


def test_missing_part_is_named_and_makes_the_model_whole_when_it_comes(start_server, tmp_path, make):
    files = make("m", CONTENTS)
    parts = sorted(path for path in files if not path.endswith(".json"))
    write(tmp_path, {path: content for path, content in files.items() if path != parts[0]})
    server = start_server(tmp_path)
    assert_problem(get(server, model_path("m")), 422, "invalid-model")
    for missing, following in itertools.zip_longest(parts, parts[1:]):
        assert eventually(lambda missing=missing: f"part {missing} is missing" in detail_of(server))
        present = [path.rsplit(".", 1)[0] for path in parts if path != missing]
        assert all(get(server, model_path(name)).status == 200 for name in present)
        write(tmp_path, {missing: files[missing]})
        assert eventually(lambda: contents(server) == CONTENTS)
        if following:
            (tmp_path / following).unlink()


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


def test_part_of_a_split_under_another_name_is_no_whole_model(start_server, tmp_path):
    first, second = joined.files_of_split("m", CONTENTS[:2]).items()
    write(tmp_path, dict([first, second]))
    write(tmp_path, {"other.gguf": first[1], "x-00002-of-00002.gguf": second[1], "y-00001-of-00002.gguf": second[1]})
    server = start_server(tmp_path)
    found = entries(server)
    assert {name for name in found if "error" in found[name]} == {"other", "x", "y", "y-00001-of-00002"}
    assert "part 1 of 2" in detail_of(server, "other")
    problem = assert_problem(get(server, model_path("other")), 422, "invalid-model")
    assert problem["rule"] == "gguf §Split PartName"
    assert get(server, "/files/other.gguf").body == first[1]
    for name in ("m", "m-00001-of-00002", "x-00002-of-00002"):
        assert get(server, model_path(name)).status == 200


@pytest.mark.parametrize("form", [0, 1])
def test_index_of_a_variant_joins_its_parts(start_server, tmp_path, form):
    """Beside the index and the parts of the model without a variant, in a folder."""
    plain = joined.files_with_index("a/m", [content[::-1] for content in CONTENTS])
    made = joined.files_with_variant_index("a/m", "fp16", CONTENTS, form)
    write(tmp_path, {**plain, **made})
    server = start_server(tmp_path)
    assert contents(server, "a/m.fp16") == CONTENTS
    assert contents(server, "a/m") == [content[::-1] for content in CONTENTS]
    found = entries(server)
    assert {entry["part_of"] for name, entry in found.items() if name.startswith("a/m.fp16-")} == {"a/m.fp16"}
    assert entries(server, "?parts=false").keys() == {"a/m", "a/m.fp16"}
    assert verify(server, "a/m.fp16")["state"] == "verified"
    for path, data in made.items():
        assert get(server, f"/files/{path}").body == data
    (tmp_path / list(made)[1]).unlink()
    assert eventually(lambda: "is missing" in detail_of(server, "a/m.fp16"))
    write(tmp_path, made)
    assert eventually(lambda: contents(server, "a/m.fp16") == CONTENTS)
    (tmp_path / list(made)[-1]).unlink()
    assert eventually(lambda: "a/m.fp16" not in entries(server))


def test_index_of_a_variant_may_name_parts_as_earlier_diffusers_does(start_server, tmp_path):
    made = {f"m-0000{n}-of-00002.fp16.safetensors": {f"w{n}": bytes([n])} for n in (1, 2)}
    write(tmp_path, {path: joined.safetensors(tensors) for path, tensors in made.items()})
    write(tmp_path, {"m.safetensors.fp16.index.json": joined.index_of(made)})
    server = start_server(tmp_path)
    assert [content(server, "m.fp16", f"w{n}") for n in (1, 2)] == [b"\1", b"\2"]
    assert entries(server, "?parts=false").keys() == {"m.fp16"}


def test_only_the_first_of_several_indices_of_a_variant_is_the_model(start_server, tmp_path):
    names = [f"m.fp16{joined.INDEX}", *joined.variant_index_names("m", "fp16")]
    for number, name in enumerate(names):
        made = {f"p{number}.safetensors": {"w1": bytes([number])}}
        write(tmp_path, {**{path: joined.safetensors(held) for path, held in made.items()}, name: joined.index_of(made)})
    server = start_server(tmp_path)
    for number, name in enumerate(names):
        assert eventually(lambda: content(server, "m.fp16", "w1") == bytes([number]))
        (tmp_path / name).unlink()
    assert eventually(lambda: "m.fp16" not in entries(server))


def test_missing_part_in_a_subfolder_is_named_and_makes_the_model_whole_when_it_comes(start_server, tmp_path):
    made = {f"./sub/p-0000{n}-of-00002.safetensors": {f"w{n}": bytes([n])} for n in (1, 2)}
    files = {path: joined.safetensors(held) for path, held in made.items()}
    first, second = files
    write(tmp_path, {"m.safetensors.index.json": joined.index_of(made), first: files[first]})
    server = start_server(tmp_path)
    assert "part sub/p-00002-of-00002.safetensors is missing" in detail_of(server)
    write(tmp_path, {second: files[second]})
    assert eventually(lambda: content(server, "m", "w2") == b"\2")
    index = joined.index_of({path: held for path, held in made.items() if path == first})
    write(tmp_path, {"m.safetensors.index.json": index})
    assert eventually(lambda: "part sub/p-00002-of-00002.safetensors is not named by the index" in detail_of(server))


@pytest.mark.folder("a bucket has no links")
@pytest.mark.parametrize("target", ["outside", "."])
def test_part_below_a_link_that_leaves_the_root_is_missing(start_server, tmp_path, target):
    (tmp_path / "outside").mkdir()
    (tmp_path / "root").mkdir()
    write(tmp_path / "outside", {"p.safetensors": joined.safetensors({"w1": b"1"})})
    (tmp_path / "root" / "sub").symlink_to(tmp_path / target)
    write(tmp_path / "root", {"m.safetensors.index.json": joined.index_of({"sub/p.safetensors": {"w1": b"1"}})})
    server = start_server(tmp_path / "root")
    assert "part sub/p.safetensors is missing" in detail_of(server)


MADE = joined.parts_of("m", CONTENTS)
HOSTILE = {
    "no model's name": json.dumps({"weight_map": {"w1": "m 1.safetensors"}}).encode(),
    "no model's file": json.dumps({"weight_map": {"w1": "config.json"}}).encode(),
    "outside": json.dumps({"weight_map": {"w1": "../x.safetensors"}}).encode(),
    "itself": json.dumps({"weight_map": {"w1": "m.safetensors.index.json"}}).encode(),
    "elsewhere": joined.index_of(MADE, w1="m-00002-of-00003.safetensors", w2="m-00001-of-00003.safetensors"),
    "left out": joined.index_of(MADE, w2="m-00001-of-00003.safetensors"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_index_that_lies_is_refused_and_the_parts_stay_readable(start_server, tmp_path, case):
    files = joined.files_with_index("m", CONTENTS)
    write(tmp_path, {**files, "m" + joined.INDEX: HOSTILE[case]})
    server = start_server(tmp_path)
    assert detail_of(server) != ""
    if case == "elsewhere":
        assert "m-00001-of-00003.safetensors" in detail_of(server) and "m-00002-of-00003.safetensors" in detail_of(server)
    assert_problem(get(server, model_path("m")), 422, "invalid-model")
    for number, expected in enumerate(CONTENTS, 1):
        assert content(server, f"m-{number:05}-of-00003", f"w{number}") == expected
    write(tmp_path, {"m" + joined.INDEX: files["m" + joined.INDEX]})
    assert eventually(lambda: contents(server) == CONTENTS)


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
    for _ in range(2):
        assert all(at_once(*(lambda stem=stem: contents(server, stem) == CONTENTS for stem in stems)))
