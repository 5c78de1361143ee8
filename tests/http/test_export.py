"""GET …/export: byte for byte the file that `ztserve convert` makes, from any byte on; shards as NumPy splits them; and
refusals name the object, before the first byte."""

import io
import json
import random
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import neighbours
from containers import Component, Object, dense, dense_encoded, dense_in_shard, pattern, seekable, shard_entry, zstd_dense, zstd_frame, zt01
from containers import zt1, zt2, zt2_data_shard
from server_process import PROGRAM
from wire import assert_problem, assert_rests, ask, component_path, connect, cpu_seconds, eventually, get, head, model_path, verify

FORMATS = ["safetensors", "zt", "zt2", "npz"]
EXTENSIONS = {"safetensors": "safetensors", "zt": "zt", "zt2": "zt", "npz": "npz"}
BIG = pattern(300_000, seed=31)
GRID = numpy.frombuffer(pattern(8 * 12 * 16 * 4, seed=32), "<f4").reshape(8, 12, 16)
INTEGERS = numpy.arange(24 * 10, dtype="<i2").reshape(24, 10)


def grid(**options):
    return dense(GRID.tobytes(), "f32", list(GRID.shape), **options)


def fortran_npz():
    file = io.BytesIO()
    numpy.savez(file, w=numpy.asfortranarray(INTEGERS), big=INTEGERS.astype(">i2"), plain=INTEGERS)
    return file.getvalue()


def sharded(folder):
    """A zTensor 2 model over two files."""
    shard = zt2_data_shard(b"in front", BIG)
    (folder / "two-w.zt").write_bytes(shard)
    objects = {"in": dense_in_shard("w", shard.offsets[1], BIG, digest="xxh3"), "own": dense(pattern(5000))}
    return zt2(objects, fields={"shards": {"w": shard_entry(shard)}})


# Every kind of file, and every way in which bytes are stored.
SOURCES = {
    "plain.zt": zt1(
        {
            "grid": grid(),
            "ints": dense(INTEGERS.tobytes(), "i16", [24, 10]),
            "same": dense(GRID.tobytes(), "f32", [96, 16]),
            "flags": dense(bytes([0, 1, 1, 0]), "bool", [4]),
            "none": dense(b"", "f32", [0, 4]),
            "ünï/a": dense(b"1"),
        },
        attributes={"made": "by hand"},
    ),
    "undigested.zt": zt1({"w": dense(BIG, digest=None), "z": zstd_dense(BIG, digest=None)}),
    "zstd.zt": zt1({"grid": dense_encoded(GRID.tobytes(), zstd_frame(GRID.tobytes()), "zstd", "f32", [8, 12, 16])}
                   | {f"z{number}": zstd_dense(pattern(70_000, number), states_length=number % 2 == 0) for number in range(8)}),
    "seekable.zt": zt2({
        "grid": dense_encoded(GRID.tobytes(), seekable(GRID.tobytes(), 5000), "zt.zstd-seekable/1", "f32", [8, 12, 16], digest="xxh3"),
        "w": dense(BIG, digest="sha256"),
        "v": dense(BIG, digest="xxh3"),
    }),
    "old.zt": zt01({"w": dense(GRID.tobytes(), "f32", [8, 12, 16], digest="crc32c", fields={"data_endianness": "big"})}),
    "tensors.safetensors": neighbours.safetensors(BIG, metadata={"framework": "none"}),
    "quants.gguf": neighbours.gguf(BIG),
    "bits.mag": neighbours.mag(bytes(index % 2 for index in range(5000))),
    "arrays.npz": neighbours.npz(BIG),
    "packed.npz": neighbours.deflated_npz(BIG),
    "turned.npz": fortran_npz(),
    "one.npy": neighbours.npy(BIG),
}  # fmt: skip
SPARSE = zt1({
    "csr": Object([2, 3], {
        "values": Component(pattern(8), "f32"),
        "indices": Component(struct.pack("<2h", 0, 2), "i16"),
        "indptr": Component(struct.pack("<3B", 0, 1, 2), "u8"),
    }, "sparse_csr"),
    "w": dense(BIG),
})  # fmt: skip


@pytest.fixture(scope="module")
def server(folder, share_server):
    for file, data in SOURCES.items():
        (folder / file).write_bytes(data)
    (folder / "two.zt").write_bytes(sharded(folder))
    (folder / "sparse.zt").write_bytes(SPARSE)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "model.v1.zt").write_bytes(SOURCES["plain.zt"])
    return share_server(folder)


def target(model, kind, **options):
    query = "".join(f"&{name}={value}" for name, value in options.items())
    return f"{model_path(model)}/export?format={kind}{query}"


def export(server, model, kind, **options):
    answer = get(server, target(model, kind, **options))
    assert answer.status == 200, answer
    assert int(answer["Content-Length"]) == len(answer.body)
    return answer


def converted(path, kind, folder):
    """The file that convert makes; None if it refuses."""
    out = folder / f"made.{kind}"
    result = subprocess.run([PROGRAM, "convert", path, out, "--to", kind], capture_output=True)
    return out.read_bytes() if result.returncode == 0 else None


def read_safetensors(data):
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    names = {"F32": "<f4", "I16": "<i2", "U8": "u1", "BOOL": "?", "I8": "i1"}
    return {
        name: numpy.frombuffer(data[8 + length :][slice(*entry["data_offsets"])], names[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def read_npz(data):
    with numpy.load(io.BytesIO(data)) as arrays:
        return {name: arrays[name] for name in arrays.files}


# --- the same as convert ---


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("file", [*SOURCES, "two.zt", "sparse.zt"])
def test_an_export_equals_the_file_that_convert_makes(server, folder, tmp_path, file, kind):
    wanted = converted(folder / file, kind, tmp_path)
    model = file.rsplit(".", 1)[0]
    if wanted is None:
        assert_problem(get(server, target(model, kind)), 422, "not-representable")
        return
    answer = export(server, model, kind)
    assert answer.body == wanted
    choose = random.Random(f"{file} {kind}")
    for _ in range(4):
        first = choose.randrange(len(wanted))
        last = min(choose.choice([first, first + 100, first + 70_000, len(wanted)]), len(wanted) - 1)
        part = get(server, target(model, kind), Range=f"bytes={first}-{last}")
        assert (part.status, part.body) == (206, wanted[first : last + 1])
        assert part["Content-Range"] == f"bytes {first}-{last}/{len(wanted)}"


def test_an_export_is_the_same_without_verification(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    files = ["plain.zt", "zstd.zt", "seekable.zt", "packed.npz"]
    for file in files:
        (root / file).write_bytes(SOURCES[file])
    server = start_server(root, "--verify", "off")
    for file in files:
        for kind in FORMATS:
            assert export(server, file.split(".")[0], kind).body == converted(root / file, kind, tmp_path), (file, kind)


def test_many_small_objects_are_put_together(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    objects = {f"o{number:05}": dense(pattern(number % 97 + 1, number)) for number in range(3000)}
    objects["large"] = dense(BIG)
    (root / "many.zt").write_bytes(zt1(objects))
    server = start_server(root)
    for kind in ("safetensors", "zt"):
        wanted = converted(root / "many.zt", kind, tmp_path)
        assert export(server, "many", kind).body == wanted
        part = get(server, target("many", kind), Range="bytes=-400000")
        assert part.body == wanted[-400_000:]


# --- the representation ---


@pytest.mark.parametrize("kind", FORMATS)
def test_the_header_says_what_it_is(server, kind):
    answer = export(server, "deep/er/model.v1", kind)
    assert answer["Content-Disposition"] == f'attachment; filename="model.v1.{EXTENSIONS[kind]}"'
    assert answer["Content-Type"] == ("application/zip" if kind == "npz" else "application/octet-stream")
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Cache-Control"] == "no-cache"
    assert answer["ETag"].startswith('"') and answer["Last-Modified"]
    bare = head(server, target("deep/er/model.v1", kind))
    assert bare.status == 200 and bare.body == b""
    for field in ("Content-Length", "ETag", "Content-Disposition", "Content-Type", "Last-Modified"):
        assert bare[field] == answer[field]


def test_every_question_has_a_tag_of_its_own(server):
    options = [{}, {"match": "grid"}, {"match": "i*"}, {"prefix": "grid"}, {"prefix": "g", "match": "*d"}]
    tags = {get(server, target("plain", kind, **option))["ETag"] for kind in FORMATS for option in options}
    tags |= {get(server, target("plain", "zt", match="grid", shard=shard))["ETag"] for shard in ("0/2", "1/2", "0/4")}
    tags.add(get(server, target("plain", "zt", match="grid", shard="0/2", axis=1))["ETag"])
    assert len(tags) == len(FORMATS) * len(options) + 4


def test_a_tag_survives_a_restart_and_changes_with_the_file(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(SOURCES["plain.zt"])
    first = start_server(root)
    tag = export(first, "m", "zt2")["ETag"]
    assert first.stop() == 0
    second = start_server(root)
    again = get(second, target("m", "zt2"), If_None_Match=tag)
    assert (again.status, again.body, again["ETag"]) == (304, b"", tag)
    assert get(second, target("m", "zt2"), If_Match='"other"').status == 412
    (root / ".m").write_bytes(zt1({"grid": grid()}))
    (root / ".m").rename(root / "m.zt")
    eventually(lambda: get(second, target("m", "zt2"), If_None_Match=tag).status == 200)


def test_preconditions_do_not_hide_refusals(server):
    fields = {"If-None-Match": "*"}
    assert_problem(ask(server, "GET", target("sparse", "npz"), fields), 422, "not-representable")
    assert_problem(ask(server, "GET", target("plain", "npz", match="x"), fields), 404, "object-not-found")


# --- selections ---


def test_globs_and_prefixes_select(server):
    assert set(read_safetensors(export(server, "plain", "safetensors", match="i*").body)) == {"ints"}
    two = export(server, "plain", "safetensors", match="gr?d", prefix="g").body
    assert set(read_safetensors(two)) == {"grid"}
    answer = get(server, target("plain", "safetensors") + "&match=none&match=%C3%BCn%C3%AF%2F*")
    assert set(read_safetensors(answer.body)) == {"none", "ünï/a"}


def test_objects_that_are_not_selected_cannot_cause_a_refusal(server):
    whole = export(server, "sparse", "npz", match="w")
    assert read_npz(whole.body)["w"].tobytes() == BIG


@pytest.mark.parametrize("query", [
    "", "?format=gguf", "?format=zt&format=npz", "?format=zt&match=[", "?format=zt&shard=2/2", "?format=zt&axis=1", "?format=zt&prefix=%ff",
])  # fmt: skip
def test_questions_without_sense_are_refused(server, query):
    assert_problem(get(server, f"{model_path('plain')}/export{query}"), 400, "invalid-request")


# --- shards ---


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("model", ["plain", "zstd", "seekable"])
def test_shards_are_numpys_splits(server, model, axis, kind):
    read = read_safetensors if kind == "safetensors" else read_npz
    for rank, part in enumerate(numpy.split(GRID, 4, axis)):
        answer = export(server, model, kind, match="grid", shard=f"{rank}/4", axis=axis)
        numpy.testing.assert_array_equal(read(answer.body)["grid"].view("u4"), part.view("u4"))
        assert answer["Content-Disposition"].endswith(f'-{rank}-of-4.{kind}"')
        middle = len(answer.body) // 2
        rest = get(server, target(model, kind, match="grid", shard=f"{rank}/4", axis=axis), Range=f"bytes={middle}-")
        assert rest.body == answer.body[middle:]


def test_shards_of_arrays_that_are_turned_or_swapped(server):
    for name in ("w", "big", "plain"):
        for axis in (0, 1):
            for rank, part in enumerate(numpy.split(INTEGERS, 2, axis)):
                made = export(server, "turned", "npz", match=name, shard=f"{rank}/2", axis=axis)
                numpy.testing.assert_array_equal(read_npz(made.body)[name], part)


@pytest.mark.parametrize("model", ["plain", "zstd"])
def test_sharded_exports_state_right_digests(server, tmp_path, model):
    for kind, options in (("zt", []), ("zt2", ["--canonical"])):
        for axis in (0, 1):
            made = tmp_path / "made.zt"
            made.write_bytes(export(server, model, kind, match="grid", shard="1/4", axis=axis).body)
            subprocess.run([PROGRAM, "verify", *options, made], check=True, capture_output=True)


def test_an_object_that_does_not_divide_is_named(server):
    problem = assert_problem(get(server, target("plain", "zt", match="ints", shard="0/7")), 422, "shape-not-divisible")
    assert problem["object"] == "ints"
    problem = assert_problem(get(server, target("plain", "zt", match="ints", shard="0/2", axis=2)), 422, "slice-out-of-range")
    assert problem["object"] == "ints"
    problem = assert_problem(get(server, target("sparse", "zt", match="csr", shard="0/2")), 422, "not-representable")
    assert problem["object"] == "csr"


# --- refusals ---


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_an_object_that_the_target_cannot_hold_is_named(server, kind):
    problem = assert_problem(get(server, target("sparse", kind)), 422, "not-representable")
    assert problem["object"] == "csr"


def test_content_that_only_the_target_forbids_is_named(start_server, tmp_path):
    csr = Object(
        [2, 3],
        {
            "values": Component(pattern(8), "f32"),
            "indices": Component(struct.pack("<2Q", 2, 0), "u64"),
            "indptr": Component(struct.pack("<3Q", 0, 2, 2), "u64"),
        },
        "sparse_csr",
    )
    (tmp_path / "m.zt").write_bytes(zt1({"csr": csr}))
    server = start_server()
    assert export(server, "m", "zt").status == 200
    problem = assert_problem(get(server, target("m", "zt2")), 422, "not-representable")
    assert problem["object"] == "csr" and problem["rule"]


def test_an_unknown_encoding_is_named(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(BIG), "x": dense_encoded(b"12345678", b"????", "lz4")}))
    server = start_server()
    problem = assert_problem(get(server, target("m", "zt")), 422, "unsupported-encoding")
    assert (problem["object"], problem["component"]) == ("x", "data")
    assert export(server, "m", "zt", match="w").status == 200


def test_a_component_too_large_to_decode_is_named(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(SOURCES["zstd.zt"])
    server = start_server(environment={"ZTSERVE_LIMITS_DECODED_BYTES": "65536"})
    problem = assert_problem(get(server, target("m", "zt", match="z*")), 422, "unsupported-encoding")
    assert problem["object"] == "z0"
    assert export(server, "m", "zt", match="grid").status == 200


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("encoded", [False, True])
def test_corrupt_components_are_never_exported(start_server, tmp_path, kind, encoded):
    file = zt1({"a": dense(BIG), "b": zstd_dense(BIG) if encoded else dense(BIG), "c": dense(BIG)})
    (tmp_path / "m.zt").write_bytes(file.flipped("b", at=50))
    server = start_server()
    for options in ({}, {"match": "b"}, {"shard": "1/2"}):
        answer = get(server, target("m", kind, **options))
        problem = assert_problem(answer, 500, "corrupt-component")
        assert (problem["object"], problem["component"]) == ("b", "data")
    part = get(server, target("m", kind), Range="bytes=0-10")
    assert_problem(part, 500, "corrupt-component")
    assert export(server, "m", kind, match="[ac]").status == 200


@pytest.mark.parametrize("digest", ["sha256", None])
def test_a_stream_that_does_not_decode_is_reported_before_the_first_byte(start_server, tmp_path, digest):
    broken = dense_encoded(BIG, zstd_frame(BIG)[:-5], "zstd", digest=digest)
    # More than workers read before the header is sent.
    (tmp_path / "m.zt").write_bytes(zt1({"a": dense(bytes(80 << 20), digest=None), "b": broken}))
    server = start_server()
    for kind in FORMATS:
        problem = assert_problem(get(server, target("m", kind)), 500, "corrupt-component")
        assert problem["object"] == "b"


def test_a_component_found_corrupt_later_is_not_exported(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"a": dense(BIG), "b": dense(BIG)}).flipped("b"))
    server = start_server(None, "--verify", "off")
    for kind in FORMATS:
        export(server, "m", kind)
    assert verify(server, "m")["state"] == "failed"
    for kind in FORMATS:
        problem = assert_problem(get(server, target("m", kind)), 500, "corrupt-component")
        assert problem["object"] == "b"


def test_wrong_booleans_are_refused_as_convert_refuses_them(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"flags": dense(bytes([0, 2]), "bool", [2])}))
    problem = assert_problem(get(start_server(), target("m", "safetensors")), 422, "invalid-model")
    assert problem["object"] == "flags" and problem["rule"]


# --- at once ---


def test_many_at_once_share_one_plan_and_get_equal_bytes(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(SOURCES["zstd.zt"])
    server = start_server(root)
    wanted = {kind: converted(root / "m.zt", kind, tmp_path) for kind in FORMATS}
    kinds = FORMATS * 4
    with ThreadPoolExecutor(16) as pool:
        bodies = list(pool.map(lambda kind: get(server, target("m", kind)).body, kinds))
    assert all(body == wanted[kind] for kind, body in zip(kinds, bodies))


def bytes_read_by(server):
    """Bytes that the process has read, including those from caches."""
    with open(f"/proc/{server.process.pid}/io", encoding="ascii") as fields:
        return int(next(line for line in fields if line.startswith("rchar:")).split()[1])


@pytest.mark.parametrize("kind", ["zt", "zt2", "npz"])
def test_another_question_reads_nothing_again_for_its_digests(start_server, tmp_path, kind):
    large = b"".join([BIG] * 40)
    (tmp_path / "m.zt").write_bytes(zt1({"plain": dense(large, digest=None), "z": zstd_dense(large[::-1], digest=None)}))
    # Nothing is read in the background, and nothing is decoded again because it was not kept.
    server = start_server(environment={"ZTSERVE_LIMITS_DIGEST_PIECE_BYTES": "0"})
    wanted = export(server, "m", kind).body
    before = bytes_read_by(server)
    assert get(server, target("m", kind, match="*"), Range="bytes=0-0").status == 206
    assert bytes_read_by(server) - before < len(large) // 4
    assert export(server, "m", kind, match="*").body == wanted


def test_the_only_shard_is_the_whole_and_read_once(start_server, tmp_path):
    large = b"".join([BIG] * 40)
    for name in ("m", "n"):
        (tmp_path / f"{name}.zt").write_bytes(zt1({"plain": dense(large, digest=None)}))
    server = start_server(environment={"ZTSERVE_LIMITS_DIGEST_PIECE_BYTES": "0"})
    wanted = export(server, "n", "zt2", shard="0/1").body
    assert export(server, "m", "zt2").body == wanted
    before = bytes_read_by(server)
    assert get(server, target("m", "zt2", shard="0/1"), Range="bytes=0-0").status == 206
    assert bytes_read_by(server) - before < len(large) // 4
    assert export(server, "m", "zt2", shard="0/1").body == wanted


@pytest.mark.folder("sparse files larger than the memory of the tests")
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_clients_that_leave_end_the_hashing_and_others_are_served(start_server, tmp_path, reset):
    """Sparse files of 256 GiB take minutes to hash; no other request waits. A client that closed its socket looks
    for a while as if it waited."""
    header = b'{"w":{"dtype":"U8","shape":[274877906944],"data_offsets":[0,274877906944]}}'
    header += b" " * (-len(header) % 8)
    (tmp_path / "m.zt").write_bytes(zt1({"w": zstd_dense(BIG)}))
    server = start_server()
    clients = []
    for number in range(4):
        with open(tmp_path / f"huge-{number}.safetensors", "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + (1 << 38))
        eventually(lambda number=number: get(server, model_path(f"huge-{number}")).status == 200)
        clients.append(connect(server))
        path = target(f"huge-{number}", "npz")
        clients[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n".encode())
    idle = cpu_seconds(server)
    eventually(lambda: cpu_seconds(server) - idle > 0.2)
    begin = time.monotonic()
    assert get(server, component_path("m", "w")).body == BIG
    assert get(server, target("m", "zt")).status == 200
    assert time.monotonic() - begin < 60
    for client in clients:
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert_rests(server)


def test_a_server_that_ends_answers_or_ends_exports(start_server, tmp_path):
    large = b"".join([BIG] * 200)
    (tmp_path / "m.zt").write_bytes(zt1({f"w{number}": dense(large, digest=None) for number in range(4)}))
    server = start_server(environment={"ZTSERVE_DRAIN_S": "0"})
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(get, server, target("m", kind)) for kind in ("zt", "zt2", "npz", "zt")]
        assert server.stop() == 0
        for answer in asked:
            assert answer.exception() is not None or answer.result().status in (200, 503)
