"""ls, verify and convert of models in several files: an index, or a split's first part, stands for the whole."""

import json
import re
import struct

import pytest

from containers import dense, pattern, zt1
from conversions import read_safetensors
from parts import gguf_model, gguf_part, index_of, part_name, safetensors_model, safetensors_part
from pytorch import Storage, Tensor, pt

INDEX = "m.safetensors.index.json"
ONE, TWO = part_name("m", 1, 2, "safetensors"), part_name("m", 2, 2, "safetensors")
FIRST, SECOND = part_name("m", 1, 2, "gguf"), part_name("m", 2, 2, "gguf")
PARTS = [[("a", pattern(40)), ("c", pattern(9))], [("b", pattern(100))]]
TENSORS = {name: value for part in PARTS for name, value in part}


@pytest.fixture
def folder(tmp_path):
    """Writes files by name; gives their folder."""

    def write(files):
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        return tmp_path

    return write


def read(path):
    """Metadata, and the bytes of each tensor."""
    metadata, tensors = read_safetensors(path.read_bytes())
    return metadata, {name: data for name, (_, _, data) in tensors.items()}


# --- what stands for the whole ---


def test_an_index_is_listed_as_the_model(ztserve, folder):
    files = folder(safetensors_model("m", PARTS))
    result = ztserve("ls", "--json", files / INDEX)
    assert (result.status, result.errors) == (0, "")
    manifest = json.loads(result.output)
    assert manifest["name"] == "m"
    assert manifest["source"]["format"] == "safetensors"
    assert sorted(manifest["objects"]) == ["a", "b", "c"]
    assert manifest["attributes"] == {"format": "pt"}
    assert manifest["source"]["size"] == sum(len((files / part).read_bytes()) for part in (ONE, TWO))
    assert f" {manifest['source']['size']} bytes" in ztserve("ls", files / INDEX).lines[-1]
    assert [line.split()[0] for line in ztserve("ls", files / INDEX).lines if line.split()[1:2] == ["data"]] == ["a", "b", "c"]


def test_the_first_part_of_a_split_is_listed_as_the_model(ztserve, folder):
    files = folder(gguf_model("m", PARTS))
    manifest = json.loads(ztserve("ls", "--json", files / FIRST).output)
    assert manifest["name"] == "m"
    assert sorted(manifest["objects"]) == ["a", "b", "c"]
    assert manifest["attributes"] == {"general.name": "m"}
    assert manifest["source"]["size"] == sum(len((files / part).read_bytes()) for part in (FIRST, SECOND))


def test_a_manifest_may_be_far_longer_than_that_of_the_first_part(ztserve, folder):
    tensors = [(f"blk.{number}.weight", b"12") for number in range(60_000)]
    files = folder(gguf_model("m", [[], tensors]))
    result = ztserve("ls", "--json", files / FIRST)
    assert result.status == 0, result.errors
    assert len(json.loads(result.output)["objects"]) == len(tensors)


def test_other_parts_are_models_of_their_own(ztserve, folder):
    files = folder({**gguf_model("m", PARTS), **safetensors_model("m", PARTS)})
    for part, names in ((SECOND, ["b"]), (ONE, ["a", "c"]), (TWO, ["b"])):
        manifest = json.loads(ztserve("ls", "--json", files / part).output)
        assert sorted(manifest["objects"]) == names
        assert manifest["name"] == part.rpartition(".")[0]


def test_an_index_may_name_parts_with_a_dot_and_in_subfolders(ztserve, folder, tmp_path):
    (tmp_path / "sub").mkdir()
    made = {"./x.safetensors": PARTS[0], "sub/./y.safetensors": PARTS[1]}
    index = index_of({name: path for path, tensors in made.items() for name, _ in tensors}).replace(b"{}", b'{"loss": NaN}')
    assert b"NaN" in index
    files = folder({**{path: safetensors_part(tensors) for path, tensors in made.items()}, INDEX: index})
    assert sorted(json.loads(ztserve("ls", "--json", files / INDEX).output)["objects"]) == sorted(TENSORS)
    assert ztserve("verify", files / INDEX).status == 0
    assert ztserve("convert", files / INDEX, files / "out.safetensors").status == 0
    assert read(files / "out.safetensors")[1] == TENSORS
    (files / "sub" / "y.safetensors").unlink()
    assert "part sub/y.safetensors is missing" in ztserve("verify", files / INDEX).errors


@pytest.mark.parametrize("index", ["m.safetensors.index.fp16.json", "m.safetensors.fp16.index.json"])
def test_the_index_of_a_variant_stands_for_its_parts(ztserve, folder, tmp_path, index):
    made = safetensors_model("m.fp16", PARTS)
    made[index] = made.pop("m.fp16" + ".safetensors.index.json")
    files = folder({**made, **safetensors_model("m", [[("a", b"1")], [("b", b"2")]])})
    manifest = json.loads(ztserve("ls", "--json", files / index).output)
    assert (manifest["name"], sorted(manifest["objects"])) == ("m.fp16", ["a", "b", "c"])
    assert manifest["source"]["size"] == sum(len(data) for name, data in made.items() if name != index)
    listed = json.loads(ztserve("ls", "--json", files).output)
    assert {model["name"]: model["objects"] for model in listed} == {"m": 2, "m.fp16": 3}
    assert ztserve("verify", files / index).status == 0
    assert ztserve("convert", files / index, tmp_path / "out.safetensors").status == 0
    assert read(tmp_path / "out.safetensors")[1] == TENSORS
    (files / part_name("m.fp16", 2, 2, "safetensors")).unlink()
    assert "index §Parts MissingPart" in ztserve("verify", files / index).errors
    shown = {model["name"]: model for model in json.loads(ztserve("ls", "--json", files).output)}
    assert shown["m.fp16"]["format"] == "safetensors" and "error" in shown["m.fp16"]


def test_ls_leaves_out_parts_named_as_earlier_diffusers_does(ztserve, folder):
    made = safetensors_model("m", PARTS)
    index = made.pop("m.safetensors.index.json").replace(b".safetensors", b".fp16.safetensors")
    parts = {name.replace(".safetensors", ".fp16.safetensors"): data for name, data in made.items()}
    files = folder({**parts, "m.safetensors.fp16.index.json": index, "x-00001-of-00002.fp16.safetensors": parts[next(iter(parts))]})
    listed = json.loads(ztserve("ls", "--json", files).output)
    assert [model["name"] for model in listed] == ["m.fp16", "x-00001-of-00002.fp16"]


RENAMED = [
    ("other.gguf", 1), ("other.gguf", 2), (FIRST, 2), (SECOND, 1), (part_name("m", 1, 3, "gguf"), 1), ("m-1-of-2.gguf", 1),
    ("without-extension", 1),
]  # fmt: skip


@pytest.mark.parametrize("command, name, number", [("ls", *RENAMED[0]), ("convert", *RENAMED[0]), *(("verify", *one) for one in RENAMED)])
def test_a_part_under_another_name_is_no_whole_model(ztserve, folder, command, name, number):
    made = gguf_model("m", PARTS)[part_name("m", number, 2, "gguf")]
    files = folder({name: made})
    out = [files / "out.zt"] if command == "convert" else []
    result = ztserve(command, files / name, *out)
    assert (result.status, result.output) == (1, "")
    assert f"part {number} of 2" in result.errors and "gguf §Split PartName" in result.errors
    assert not (files / "out.zt").exists()


def test_a_folder_lists_a_part_under_another_name_with_its_error(ztserve, folder):
    made = gguf_model("m", PARTS)
    files = folder({**made, "other.gguf": made[FIRST]})
    listed = ztserve("ls", files)
    assert (listed.status, listed.lines[-1].split("; ")[1]) == (1, "1 cannot be read")
    verified = ztserve("verify", "--json", files)
    assert verified.status == 1
    states = {entry["path"].rpartition("/")[2]: entry["state"] for entry in json.loads(verified.output)}
    assert states == {FIRST: "ok", "other.gguf": "bad"}


def test_a_gguf_of_one_part_or_merged_is_a_whole_model(ztserve, folder):
    files = folder({f"{count}.gguf": gguf_part(PARTS[0], (0, count, 2)) for count in (0, 1)})
    for count in (0, 1):
        assert ztserve("verify", files / f"{count}.gguf").status == 0


def test_parts_are_found_beside_a_link_to_the_index(ztserve, folder, tmp_path):
    blobs = tmp_path / "blobs"
    snapshot = tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    for number, (name, data) in enumerate(safetensors_model("m", PARTS).items()):
        (blobs / str(number)).write_bytes(data)
        (snapshot / name).symlink_to(blobs / str(number))
    assert ztserve("verify", snapshot / INDEX).status == 0


# --- verify ---


def test_verify_reads_all_parts(ztserve, folder):
    files = folder({**gguf_model("m", PARTS), **safetensors_model("m", PARTS)})
    result = ztserve("verify", files / INDEX, files / FIRST)
    assert (result.status, result.errors) == (0, "")
    assert result.lines == [
        f"{files / INDEX}: ok (safetensors, 3 objects, 3 components, 2 parts; the file states no digests, so its bytes cannot be verified)",
        f"{files / FIRST}: ok (gguf 3, 3 objects, 3 components, 2 parts; the file states no digests, so its bytes cannot be verified)",
    ]


def test_verify_reports_another_total_size_and_nothing_more(ztserve, folder):
    files = safetensors_model("m", PARTS)
    weight_map = json.loads(files[INDEX])["weight_map"]
    files[INDEX] = index_of(weight_map, 150)
    result = ztserve("verify", folder(files) / INDEX)
    assert result.status == 0
    assert result.output.endswith("; total_size: the index states 150 bytes, the tensors have 149\n")


def test_verify_says_in_which_part_bytes_are_unreferenced(ztserve, folder):
    files = gguf_model("m", PARTS)
    files[SECOND] += b"left"
    result = ztserve("verify", folder(files) / FIRST)
    assert result.status == 0
    assert result.output.endswith(f"; unreferenced: 4 bytes at {len(files[SECOND]) - 4} of {SECOND}\n")


# --- parts that do not belong together ---


# What is another file (None: not there), what is opened, and what is said.
HOSTILE = {
    "missing": ({TWO: None}, INDEX, [TWO, "is missing", 'object "b"', "index §Parts MissingPart"]),
    "truncated": ({TWO: safetensors_part(PARTS[1])[:-1]}, INDEX, [TWO, "safetensors §"]),
    "empty": ({TWO: b""}, INDEX, [TWO, "the file is empty"]),
    "elsewhere": ({INDEX: index_of({"a": ONE, "b": TWO, "c": TWO})}, INDEX, [ONE, TWO, 'object "c"', "index §Tensors WrongPart"]),
    "unnamed": ({INDEX: index_of({"a": ONE, "b": TWO})}, INDEX, [ONE, 'object "c"', "index §Tensors UnknownTensor"]),
    "superfluous": ({INDEX: index_of({"a": ONE, "c": ONE})}, INDEX, [TWO, "is not named by the index", "index §Parts ExtraPart"]),
    "lacking": ({INDEX: index_of({"a": ONE, "b": TWO, "c": ONE, "d": TWO})}, INDEX, [TWO, 'object "d"', "index §Tensors MissingTensor"]),
    "outside": ({INDEX: index_of({"a": "../x"})}, INDEX, ["index §Parts FileName", 'object "a"']),
    "itself": ({INDEX: index_of({"a": INDEX})}, INDEX, ["index §Parts FileName"]),
    "no index": ({INDEX: b"{}"}, INDEX, ["index §Json Schema", "weight_map"]),
    "other format": ({TWO: gguf_part(PARTS[1])}, INDEX, [TWO, "index §Parts PartFormat"]),
    "gguf missing": ({SECOND: None}, FIRST, ["part 2 of 2 is missing", FIRST, "gguf §Split MissingPart"]),
    "gguf number": ({SECOND: gguf_part(PARTS[1], (0, 2, 3))}, FIRST, [SECOND, "gguf §Split ExtraPart"]),
    "gguf no keys": ({SECOND: gguf_part(PARTS[1])}, FIRST, [SECOND, "gguf §Split Keys"]),
    "gguf twice": ({SECOND: gguf_part([("a", b"1")], (1, 2, 3))}, FIRST, [FIRST, SECOND, 'object "a"', "gguf §Split DuplicateName"]),
    "gguf count": ({SECOND: gguf_part([*PARTS[1], ("d", b"1")], (1, 2, 3))}, FIRST, ["4 tensors", FIRST, "gguf §Split TensorCount"]),
}
OPENED = [(command, case) for command in ("ls", "convert") for case in ("missing", "elsewhere", "gguf missing")]


@pytest.mark.parametrize("command, case", [*OPENED, *(("verify", case) for case in HOSTILE)])
def test_parts_that_do_not_belong_together_are_refused_and_named(ztserve, folder, tmp_path, command, case):
    changed, name, words = HOSTILE[case]
    files = {**gguf_model("m", PARTS), **safetensors_model("m", PARTS), **changed}
    files = {path: data for path, data in files.items() if data is not None}
    out = [tmp_path / "out.zt"] if command == "convert" else []
    result = ztserve(command, folder(files) / name, *out)
    assert (result.status, result.output) == (1, "")
    assert len(result.error_lines) == 1
    for word in [name, *words]:
        assert word in result.errors
    assert not (tmp_path / "out.zt").exists()
    # The parts stay readable.
    for part in (ONE, FIRST):
        if part != name:
            assert ztserve("ls", tmp_path / part).status == 0


def test_an_index_of_a_gigabyte_is_refused_unread(ztserve, folder, tmp_path):
    with open(tmp_path / INDEX, "wb") as file:
        file.truncate(1 << 30)
    result = ztserve("ls", tmp_path / INDEX)
    assert result.status == 1
    assert "an index of 1073741824 bytes, more than" in result.errors


# --- convert joins ---


@pytest.mark.parametrize("name", [INDEX, FIRST])
def test_convert_joins(ztserve, folder, tmp_path, name):
    files = folder({**gguf_model("m", PARTS), **safetensors_model("m", PARTS)})
    result = ztserve("convert", files / name, tmp_path / "whole.safetensors")
    assert result.status == 0, result.errors
    assert re.search(r"[0-9]+ objects?, [0-9]+ bytes?, [0-9.]+ seconds\n$", result.errors)
    metadata, tensors = read(tmp_path / "whole.safetensors")
    assert tensors == TENSORS
    assert metadata == ({"format": "pt"} if name == INDEX else {"general.name": "m"})


def test_parts_of_terabytes_are_opened_by_their_headers(ztserve, tmp_path):
    """20 parts of 5 GB, as sparse files: nothing but their headers is read."""
    count = 20
    size = 5 * 10**9
    weight_map = {}
    for number in range(1, count + 1):
        name = part_name("m", number, count, "safetensors")
        tensor = f"layers.{number}"
        header = json.dumps({tensor: {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
        with open(tmp_path / name, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + size)
        weight_map[tensor] = name
    (tmp_path / INDEX).write_bytes(index_of(weight_map, size * count))
    result = ztserve("ls", tmp_path / INDEX)
    assert result.status == 0, result.errors
    assert sum(str(size) in line for line in result.lines) == count


# --- convert splits ---


def parts_of(folder, stem):
    """The tensors of each part that the index names, and the index."""
    index = json.loads((folder / f"{stem}.safetensors.index.json").read_text())
    names = sorted(set(index["weight_map"].values()))
    parts = {name: read(folder / name)[1] for name in names}
    assert {tensor: name for name in names for tensor in parts[name]} == index["weight_map"]
    assert index["metadata"]["total_size"] == sum(len(value) for part in parts.values() for value in part.values())
    return parts, index


def test_convert_splits_into_parts_of_at_most_that_size(ztserve, folder, tmp_path):
    tensors = [(letter, pattern(length)) for letter, length in zip("fedcba", (6, 6, 2, 6, 2, 2))]
    source = folder({"in.safetensors": safetensors_part(tensors, {"format": "pt"})}) / "in.safetensors"
    result = ztserve("convert", source, tmp_path / "out.safetensors", "--max-shard", "10")
    assert result.status == 0, result.errors
    assert re.search(r"[0-9]+ objects?, [0-9]+ bytes?, [0-9.]+ seconds, in these files:\n", result.errors)
    parts, index = parts_of(tmp_path, "out")
    # In the order of the bytes in the file, as transformers takes a model's tensors in their order.
    assert [sorted(part) for part in parts.values()] == [["f"], ["d", "e"], ["a", "b", "c"]]
    assert list(parts) == [part_name("out", number, 3, "safetensors") for number in (1, 2, 3)]
    assert {name: value for part in parts.values() for name, value in part.items()} == dict(tensors)
    assert all(read(tmp_path / name)[0] == {"format": "pt"} for name in parts)
    assert not (tmp_path / "out.safetensors").exists()
    assert ztserve("verify", tmp_path / "out.safetensors.index.json").output.endswith("cannot be verified)\n")


def test_a_larger_tensor_has_a_part_of_its_own(ztserve, folder, tmp_path):
    tensors = [("a", b"1"), ("b", pattern(100)), ("c", b"1"), ("empty", b"")]
    source = folder({"in.safetensors": safetensors_part(tensors)}) / "in.safetensors"
    assert ztserve("convert", source, tmp_path / "out.safetensors", "--max-shard=50").status == 0
    parts, _ = parts_of(tmp_path, "out")
    # As huggingface_hub does it: the part that is being filled goes on after the larger tensor.
    assert [sorted(part) for part in parts.values()] == [["b"], ["a", "c", "empty"]]


@pytest.mark.parametrize("name", [INDEX, FIRST])
def test_joined_models_are_split_again(ztserve, folder, tmp_path, name):
    files = folder({**gguf_model("m", PARTS), **safetensors_model("m", PARTS)})
    assert ztserve("convert", files / name, tmp_path / "out.safetensors", "--max-shard", "60").status == 0
    parts, _ = parts_of(tmp_path, "out")
    assert [sorted(part) for part in parts.values()] == [["b"], ["a", "c"]]
    # And the parts of the model itself, while it is read.
    assert ztserve("convert", files / INDEX, tmp_path / "m.safetensors", "--max-shard", "100").status == 0
    parts, _ = parts_of(tmp_path, "m")
    assert {name: value for part in parts.values() for name, value in part.items()} == TENSORS


def test_parts_of_an_extension_in_capitals_are_named_without_it(ztserve, folder, tmp_path):
    files = folder(safetensors_model("m", PARTS))
    assert ztserve("convert", files / INDEX, tmp_path / "out.SafeTensors", "--max-shard", "60").status == 0
    assert sorted(parts_of(tmp_path, "out")[0]) == [part_name("out", number, 2, "safetensors") for number in (1, 2)]


def test_what_fits_into_one_part_is_one_file(ztserve, folder, tmp_path):
    files = folder(safetensors_model("m", PARTS))
    assert ztserve("convert", files / INDEX, tmp_path / "out.safetensors", "--max-shard", "1KiB").status == 0
    assert read(tmp_path / "out.safetensors")[1] == TENSORS
    assert not list(tmp_path.glob("out.safetensors.index.json"))
    assert not list(tmp_path.glob("out-*"))


def test_a_file_that_would_hide_the_parts_is_left_alone(ztserve, folder, tmp_path):
    files = folder({**safetensors_model("m", PARTS), "out.safetensors": b"mine"})
    result = ztserve("convert", files / INDEX, tmp_path / "out.safetensors", "--max-shard", "60")
    assert result.status == 1
    assert "out.safetensors: it exists" in result.errors
    assert (tmp_path / "out.safetensors").read_bytes() == b"mine"
    assert not list(tmp_path.glob("out-*"))


def test_parts_of_another_count_are_left_alone(ztserve, folder, tmp_path):
    files = folder({**safetensors_model("m", PARTS), "out-00002-of-00003.safetensors": b"mine", "out-00001-of-00003.safetensors": b"mine"})
    before = {path: path.read_bytes() for path in files.iterdir()}
    result = ztserve("convert", files / INDEX, tmp_path / "out.safetensors", "--max-shard", "60")
    assert result.status == 1
    assert "out-00001-of-00003.safetensors: it belongs to another split of this name, which now has 2 parts" in result.errors
    assert {path: path.read_bytes() for path in files.iterdir()} == before
    # Parts of as many are replaced, and those of other names are none of this split.
    for name in ("out-00001-of-00003.safetensors", "out-00002-of-00003.safetensors"):
        (tmp_path / name).unlink()
    for name in ("out-00002-of-00002.safetensors", "outer-00001-of-00003.safetensors", "out-00001-of-00003.gguf"):
        (tmp_path / name).write_bytes(b"mine")
    assert ztserve("convert", files / INDEX, tmp_path / "out.safetensors", "--max-shard", "60").status == 0
    assert sorted(parts_of(tmp_path, "out")[0]) == [part_name("out", number, 2, "safetensors") for number in (1, 2)]


def test_a_failure_leaves_no_part_behind(ztserve, tmp_path):
    broken = zt1({"a": dense(pattern(64)), "b": dense(pattern(64)), "c": dense(pattern(64))})
    at = broken.index(pattern(64), 64 + 64 * 2)
    (tmp_path / "in.zt").write_bytes(broken[:at] + b"\xff" + broken[at + 1 :])
    result = ztserve("convert", tmp_path / "in.zt", tmp_path / "out.safetensors", "--max-shard", "64")
    assert result.status == 1
    assert "digest" in result.errors
    assert [path.name for path in tmp_path.iterdir()] == ["in.zt"]


def test_a_part_that_cannot_be_named_takes_the_others_back(ztserve, folder, tmp_path):
    files = folder(safetensors_model("m", PARTS))
    out = tmp_path / "out"
    out.mkdir()
    (out / "x.safetensors.index.json").mkdir()
    result = ztserve("convert", files / INDEX, out / "x.safetensors", "--max-shard", "60")
    assert result.status == 1
    assert "x.safetensors.index.json: it exists and is not a regular file" in result.errors
    assert [path.name for path in out.iterdir()] == ["x.safetensors.index.json"]


def test_the_last_lines_name_the_files_that_exist(ztserve, folder, tmp_path):
    files = folder(safetensors_model("m", PARTS))
    result = ztserve("convert", files / INDEX, tmp_path / "out.SafeTensors", "--max-shard", "60")
    assert result.status == 0
    made = [part_name("out", number, 2, "safetensors") for number in (1, 2)] + ["out.safetensors.index.json"]
    assert result.error_lines[-3:] == [str(tmp_path / name) for name in made]
    assert result.error_lines[-4].endswith(" seconds, in these files:")
    assert all((tmp_path / name).is_file() for name in made)
    quiet = ztserve("convert", "-q", files / INDEX, tmp_path / "out.safetensors", "--max-shard", "60")
    assert (quiet.status, quiet.output, quiet.errors) == (0, "", "")
    # What fits into one file is that file.
    result = ztserve("convert", files / INDEX, tmp_path / "one.safetensors", "--max-shard", "1GB")
    assert len(result.error_lines) == 1 and result.errors.startswith(f"{tmp_path / 'one.safetensors'}: ")


@pytest.mark.parametrize("size", ["", "0", "0GB", "-1", "1.5GB", "5XB", "GB", "99999999999999999999", "18446744073709551615KB"])
def test_sizes_that_are_none_are_refused(refused, tmp_path, size):
    assert "--max-shard" in refused("convert", "in.safetensors", tmp_path / "out.safetensors", "--max-shard", size)


@pytest.mark.parametrize("out", ["out.zt", "out.npz", "out.mag"])
def test_only_safetensors_is_split(refused, tmp_path, out):
    assert "only safetensors" in refused("convert", "in.safetensors", tmp_path / out, "--max-shard", "5GB")


@pytest.mark.parametrize("size, parts", [("1KB", 3), ("1kib", 2), ("1000", 3), ("1000B", 3), ("1MB", 1), ("1GiB", 1)])
def test_units_are_decimal_or_binary(ztserve, folder, tmp_path, size, parts):
    tensors = [("a", pattern(512)), ("b", pattern(512)), ("c", pattern(512))]
    source = folder({"in.safetensors": safetensors_part(tensors)}) / "in.safetensors"
    assert ztserve("convert", source, tmp_path / "out.safetensors", "--max-shard", size).status == 0
    assert len(list(tmp_path.glob("out-*"))) == (parts if parts > 1 else 0)


def test_too_many_parts_are_refused(ztserve, folder, tmp_path):
    tensors = [(f"t{number}", b"1") for number in range(1025)]
    source = folder({"in.safetensors": safetensors_part(tensors)}) / "in.safetensors"
    result = ztserve("convert", source, tmp_path / "out.safetensors", "--max-shard", "1")
    assert result.status == 1
    assert "1025 parts" in result.errors
    assert [path.name for path in tmp_path.iterdir()] == ["in.safetensors"]


# --- PyTorch's parts ---


def pytorch_model():
    """Views of shared, transposed and deflated storages, in two parts."""
    first = Storage(struct.pack("<6f", *range(6)))
    second = Storage(struct.pack("<4h", 1, 2, 3, 4), "i16", deflated=True)
    one, two = part_name("pytorch_model", 1, 2, "bin"), part_name("pytorch_model", 2, 2, "bin")
    weight_map = {"w": one, "same": one, "turned": one, "h": two, "tail": two}
    return {
        one: pt({"w": Tensor(first, [2, 3]), "same": Tensor(first, [6]), "turned": Tensor(first, [3, 2], [1, 3])}),
        two: pt({"h": Tensor(second, [4]), "tail": Tensor(second, [2], offset=2)}),
        "pytorch_model.bin.index.json": index_of(weight_map, 32),
    }


def test_pytorch_parts_are_joined(ztserve, folder, tmp_path):
    files = folder(pytorch_model())
    index = files / "pytorch_model.bin.index.json"
    manifest = json.loads(ztserve("ls", "--json", index).output)
    assert manifest["name"] == "pytorch_model"
    assert manifest["source"]["format"] == "pytorch"
    result = ztserve("verify", index)
    assert (result.status, result.errors) == (0, "")
    assert "2 parts" in result.output
    # Shared storages are counted once in the index.
    assert "total_size" not in result.output
    result = ztserve("convert", index, tmp_path / "out.safetensors")
    assert result.status == 0, result.errors
    assert re.search(r"[0-9]+ objects?, [0-9]+ bytes?, [0-9.]+ seconds\n$", result.errors)
    _, tensors = read(tmp_path / "out.safetensors")
    assert tensors == {
        "w": struct.pack("<6f", *range(6)),
        "same": struct.pack("<6f", *range(6)),
        "turned": struct.pack("<6f", 0, 3, 1, 4, 2, 5),
        "h": struct.pack("<4h", 1, 2, 3, 4),
        "tail": struct.pack("<2h", 3, 4),
    }


def test_damage_in_a_pytorch_part_is_found(ztserve, folder):
    files = pytorch_model()
    name = part_name("pytorch_model", 1, 2, "bin")
    at = files[name].index(struct.pack("<6f", *range(6)))
    files[name] = files[name][:at] + b"\xff" + files[name][at + 1 :]
    result = ztserve("verify", folder(files) / "pytorch_model.bin.index.json")
    assert result.status == 1
    assert name in result.errors
