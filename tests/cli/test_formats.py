"""ls and verify over every format: the table of each, and the damage found in each."""

import json

import pytest

from containers import dense, zt01, zt1, zt10, zt2
from neighbours import deflated_npz, gguf, mag, npy, npz, safetensors
from onnx_messages import onnx, raw, tensor
from pytorch import Storage, Tensor, pt

# Zeros and ones: all of them can hold those.
DATA = bytes(index % 3 % 2 for index in range(3000))
# A file, the label of its format, and the row of its one component.
FORMATS = {
    "zt 0.1": (zt01({"w": dense(DATA)}), "zt 0.1.0", "w data dense u8 [3000] 3000 raw sha256"),
    "zt 1.0": (zt10({"w": dense(DATA)}), "zt 1.0", "w data dense u8 [3000] 3000 raw sha256"),
    "zt 1.2": (zt1({"w": dense(DATA)}), "zt 1.2.0", "w data dense u8 [3000] 3000 raw sha256"),
    "zt 2": (zt2({"w": dense(DATA, digest="xxh3")}), "zt 2", "w data dense u8 [3000] 3000 raw xxh3"),
    "safetensors": (safetensors(DATA), "safetensors", "w data dense u8 [3000] 3000 raw -"),
    "gguf": (gguf(DATA), "gguf 3", "w data dense i8 [3000] 3000 raw -"),
    "mag": (mag(DATA), "mag 1", "w data dense bool [3000] 3000 raw -"),
    "npz": (npz(DATA), "npz", "w data dense u8 [3000] 3000 raw crc32"),
    "npy": (npy(DATA), "npy", "data data dense u8 [3000] 3000 raw -"),
    "pytorch": (pt({"w": Tensor(Storage(DATA, "u8"), [3000])}), "pytorch", "w data dense u8 [3000] 3000 raw crc32"),
    "onnx": (onnx(tensor("w", 2, [3000], raw(DATA))), "onnx", "w data dense u8 [3000] 3000 raw -"),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_ls_and_verify_show_format_and_component(ztserve, write, kind):
    """Under a name without an extension: the content decides the format."""
    file, label, row = FORMATS[kind]
    path = write("file", file)
    table = ztserve("ls", path)
    assert (table.status, table.errors, table.lines[1].split()) == (0, "", row.split())
    assert table.lines[-1].startswith("1 object, 1 component, ") and table.lines[-1].endswith(f", {label}")
    shown = json.loads(ztserve("ls", "--json", path).output)
    assert [shown["source"]["format"], shown["source"]["version"]] == (label + " ").split(" ")[:2]
    name, role, layout, dtype = row.split()[:4]
    made = shown["objects"][name]
    component = made["components"][role]
    assert (made["format"], made["shape"]) == (layout, [3000])
    assert (component["dtype"], component["type"], component["encoding"]) == (dtype, dtype, "raw")
    assert file[component["offset"] :][: component["length"]] == DATA
    undigested = "; the file states no digests, so its bytes cannot be verified"
    counts = undigested if row.endswith("-") else ", 1 verified, 0 without digest"
    assert ztserve("verify", path).output == f"{path}: ok ({label}, 1 object, 1 component{counts})\n"
    canonical = ztserve("verify", "--canonical", path)
    assert canonical.status == 1
    assert ("only zTensor 2 has a canonical form" in canonical.errors) == (label != "zt 2")


def test_verify_takes_all_formats_at_once(ztserve, write):
    paths = [write(f"{number}.zt", file) for number, (file, _, _) in enumerate(FORMATS.values())]
    result = ztserve("verify", *paths)
    assert result.status == 0
    assert [line.split(": ")[0] for line in result.lines] == list(map(str, paths))


def flipped(file, place):
    return file[:place] + bytes([file[place] ^ 0xFF]) + file[place + 1 :]


def test_verify_finds_every_flipped_byte(ztserve, write):
    """Of an array in an archive, of a deflated entry, and among the records of a mag."""
    stored, packed, records = npz(DATA), deflated_npz(DATA), mag(b"\1")
    shown = json.loads(ztserve("ls", "--json", write("packed", packed)).output)["objects"]["w"]["components"]["data"]
    assert (shown["encoding"], shown["uncompressed_length"]) == ("deflate", 3000)
    # The first bytes hold the array's header, and are read on opening.
    places = {
        "stored": (stored, [stored.index(DATA) + 100]),
        "packed": (packed, range(shown["offset"], shown["offset"] + shown["length"], 7)),
        "records": (records, range(8, len(records) - 1)),
    }
    paths = [write(f"{name}-{place}", flipped(file, place)) for name, (file, some) in places.items() for place in some]
    result = ztserve("verify", *paths)
    assert (result.status, result.output) == (1, "")
    assert [line.split(": ")[0] for line in result.error_lines] == list(map(str, paths))
    assert "digest is crc32:" in result.error_lines[0] and 'object "w"' in result.error_lines[0]


def test_verify_finds_invalid_booleans(ztserve, write):
    result = ztserve("verify", write("file", mag(b"\0\1\2")))
    assert result.status == 1 and "[mag §Data LayoutData" in result.errors


def test_ls_shows_quantized_tensors(ztserve, write):
    """One block of q4_0: 18 bytes for 32 elements."""
    file = gguf(bytes(32)).replace(b"\x20\0\0\0\0\0\0\0\x18\0\0\0", b"\x20\0\0\0\0\0\0\0\x02\0\0\0")
    result = ztserve("ls", write("file", file))
    assert result.lines[1].split() == "w data gguf.q4_0/1 u8 [32] 18 raw -".split()


# --- files of real writers, where a corpus has them ---


def test_golden_mag_files_are_shown_and_found_good(ztserve, corpus):
    paths = sorted((corpus / "golden" / "mag").glob("*.mag"))
    if not paths:
        pytest.skip("skipped: the corpus has no .mag files")
    for path in paths:
        results = ztserve("ls", path), ztserve("ls", "--json", path), ztserve("verify", path)
        if path.read_bytes()[:4] == b"MAG&":
            assert [result.status for result in results] == [1, 1, 1]
            assert all("which is not supported" in result.errors for result in results)
            continue
        assert [result.status for result in results] == [0, 0, 0], path
        assert results[0].lines[-1].endswith(", mag 1")
        source = json.loads(results[1].output)["source"]
        assert (source["format"], source["version"]) == ("mag", "1")
        assert ": ok (mag 1, " in results[2].output


def test_golden_mag_of_the_first_release_holds_its_tensors(ztserve, corpus):
    path = corpus / "golden" / "mag" / "magnetron-0.1.2.mag"
    if not path.is_file():
        pytest.skip("skipped: the corpus has no such file")
    objects = json.loads(ztserve("ls", "--json", path).output)["objects"]
    shown = {name: (made["shape"], made["components"]["data"]["dtype"]) for name, made in objects.items()}
    assert shown == {
        "w.f32": ([2, 3], "f32"),
        "h.f16": ([5], "f16"),
        "m.bool": ([1, 2, 1, 2, 1, 2], "bool"),
        "i.i32": ([5], "i32"),
    }
