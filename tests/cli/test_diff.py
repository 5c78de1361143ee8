"""ztserve diff: which tensors of two models differ, by how much, and how much has to be read for that."""

import json

import joined
import numpy
import pytest
from containers import dense, pattern, zt1, zt2
from repositories import wait_for_model

RANDOM = numpy.random.default_rng(3)
SHAPE = (100, 300)
# Whole numbers that every type holds exactly.
OLD = RANDOM.integers(0, 50, SHAPE).astype(numpy.float64)
NEW = OLD.copy()
NEW[0, 0] += 8
NEW[7, 9] += 1
NEW[99, 299] += 3


def bf16(values):
    return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)


NUMPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u64": "<u8", "u16": "<u2", "u8": "u1"}


def encode(dtype, values):
    if dtype == "bf16":
        return dense(bf16(values).tobytes(), "bf16", SHAPE)
    return dense(values.astype(NUMPY[dtype]).tobytes(), dtype, SHAPE)


@pytest.fixture
def diff(ztserve):
    def run(*arguments):
        return ztserve("diff", *arguments)

    return run


def found(result, status):
    assert (result.status, result.errors) == (status, ""), result.errors
    return json.loads(result.output)


@pytest.mark.parametrize("dtype", [*NUMPY, "bf16"])
def test_changed_elements_are_measured(diff, write, dtype):
    old = write("old.zt", zt1({"w": encode(dtype, OLD)}))
    new = write("new.zt", zt1({"w": encode(dtype, NEW)}))
    tensor = found(diff("--json", old, new), 1)["tensors"]["w"]
    assert tensor["change"] == "changed"
    assert (tensor["elements"], tensor["changed_elements"], tensor["max"], tensor["not_finite"]) == (OLD.size, 3, 8, 0)
    assert tensor["mean"] == pytest.approx(12 / OLD.size)


def test_small_floats_are_measured(diff, write):
    old, new = (dense(bytes([0x38, 0x40, other, 0x7F]), "u8", (4,), type="f8_e4m3fn") for other in (0x00, 0x3C))
    tensor = found(diff("--json", write("a.zt", zt1({"w": old})), write("b.zt", zt1({"w": new}))), 1)["tensors"]["w"]
    assert (tensor["changed_elements"], tensor["max"], tensor["mean"]) == (1, 1.5, 1.5 / 4)


def test_what_is_not_finite_is_counted(diff, write):
    old, new = numpy.array([1, 2, numpy.nan, 4], "<f4"), numpy.array([1, numpy.inf, numpy.nan, 6], "<f4")
    paths = [write(name, zt1({"w": dense(one.tobytes(), "f32", (4,))})) for name, one in (("a.zt", old), ("b.zt", new))]
    tensor = found(diff("--json", *paths), 1)["tensors"]["w"]
    assert (tensor["changed_elements"], tensor["not_finite"], tensor["max"], tensor["mean"]) == (2, 1, 2, 2 / 3)


def test_every_kind_of_difference_has_a_line(diff, write):
    same = {name: dense(pattern(100, seed=9)) for name in ("equal", "a-same")}
    old = write("old.zt", zt1({**same, "gone": dense(b"ab"), "shaped": dense(bytes(6), "u8", (2, 3)), "typed": encode("f32", OLD)}))
    new = write("new.zt", zt2({**same, "new": dense(b"abc"), "shaped": dense(bytes(6), "u8", (3, 2)), "typed": encode("bf16", NEW)}))
    result = diff(old, new)
    assert (result.status, result.errors) == (1, "")
    lines = [line.split() for line in result.lines]
    assert lines[:-1] == [
        ["gone", "gone", "u8", "[2]"],
        ["new", "new", "u8", "[3]"],
        ["reshaped", "shaped", "u8", "[2,3]", "->", "u8", "[3,2]"],
        ["retyped", "typed", "f32", "[100,300]", "->", "bf16", "[100,300]", "0.01", "%", "of", "elements,", "max", "8,", "mean", "0.0004"],
    ]
    assert result.lines[-1] == "6 tensors: 2 equal, 1 retyped, 1 reshaped, 1 gone, 1 new"
    counts = found(diff("--json", old, new), 1)
    assert (counts["equal"], counts["retyped"], counts["reshaped"], counts["gone"], counts["new"], counts["changed"]) == (2, 1, 1, 1, 1, 0)
    quiet = diff("-q", old, new)
    assert (quiet.status, quiet.output, quiet.errors) == (1, "", "")


def test_formats_and_several_files_do_not_matter(diff, write, tmp_path):
    tensors = {f"t{i}": pattern(1000 + i, seed=i) for i in range(4)}
    one = write("one.zt", zt1({name: dense(data) for name, data in tensors.items()}))
    write("m-00001-of-00002.safetensors", joined.safetensors({name: tensors[name] for name in ("t0", "t1")}))
    write("m-00002-of-00002.safetensors", joined.safetensors({name: tensors[name] for name in ("t2", "t3")}))
    index = {"weight_map": {name: f"m-0000{1 + (name > 't1')}-of-00002.safetensors" for name in tensors}}
    other = write("m.safetensors.index.json", json.dumps(index).encode())
    result = diff(one, other)
    assert (result.status, result.output) == (0, "4 tensors: 4 equal\n")


def test_stated_digests_are_compared(diff, write):
    old, new = pattern(100_000, seed=1), pattern(100_000, seed=2)
    for make, digest in ((zt1, "sha256"), (zt2, "sha256"), (zt2, "xxh3")):
        files = [write(f"{i}.zt", make({"same": dense(old, digest=digest), "w": dense(data, digest=digest)})) for i, data in enumerate((old, new))]
        assert diff(*files).lines[-1] == "2 tensors: 1 equal, 1 changed"


def test_trouble_has_a_status_of_its_own(diff, write, refused):
    good = write("good.zt", zt1({"w": dense(b"abc")}))
    for arguments in ((good, write("bad.zt", b"nothing")), ("nowhere.zt", good)):
        result = diff(*arguments)
        assert (result.status, result.output, len(result.error_lines)) == (2, "", 1)
    for arguments in ((), (good,), (good, good, good)):
        assert "two files or URLs" in refused("diff", *arguments)


def test_equal_tensors_of_servers_are_not_fetched(between, server, root, diff, here):
    old = {f"t{i:02}": pattern(400_000, seed=i) for i in range(16)}
    new = {**old, "t03": bytes(400_000)}
    (root / "new.safetensors").write_bytes(joined.safetensors(new))
    (root / "old.zt").write_bytes(zt1({name: dense(data, digest="sha256") for name, data in old.items()}))
    for name in ("new", "old"):
        wait_for_model(f"{server.url}/v1/models/{name}")
    (here / "old.safetensors").write_bytes(joined.safetensors(old))
    for before, remote in ((here / "old.safetensors", 1), (between.endpoint + "/old", 2)):
        counted = between.counting()
        result = diff(before, between.endpoint + "/new")
        assert (result.status, result.errors) == (1, "")
        assert result.lines[-1] == "16 tensors: 15 equal, 1 changed"
        # Of each side that is remote the header and one tensor, and the blocks after it, which are read ahead.
        assert sum(one.sent_bytes for one in counted.seen) < remote * 16 * 400_000 / 2
    assert diff(between.endpoint + "/old", here / "old.safetensors").status == 0
