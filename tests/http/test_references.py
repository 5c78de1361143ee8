"""GET …/export?format=reference: where each array's bytes are, and how; read here as its readers do, by ranges."""

import io
import json
from urllib.parse import urlsplit

import numpy
import pytest
import zstandard

from containers import Component, Object, dense, dense_encoded, dense_in_shard, pattern, seekable, shard_entry
from containers import zstd_dense, zt1, zt2, zt2_data_shard
from onnx_messages import external, onnx, raw, tensor
from parts import gguf_model, safetensors_model
from wire import ask, assert_problem, get, head, model_path, talk

GRID = numpy.frombuffer(pattern(4 * 60, seed=3), "<i4").reshape(3, 4, 5)


def path_of(model, query=""):
    return f"{model_path(model)}/export?format=reference{query}"


def references(server, model="m", query="", **fields):
    answer = get(server, path_of(model, query), **fields)
    assert answer.status == 200, answer
    document = answer.json()
    assert list(document) == ["version", "refs"] and document["version"] == 1
    return document["refs"]


def metadata(refs, name):
    return json.loads(refs[f"{name}/zarr.json"])


def chunk_of(refs, name):
    key = f"{name}/c" + "/0" * len(metadata(refs, name)["shape"])
    url, offset, length = refs[key]
    return urlsplit(url), offset, length


def decode(stored, array):
    """The codecs that zarr undoes, last one first."""
    dtype, shape = numpy.dtype(array["data_type"]), array["shape"]
    order = list(range(len(shape)))
    for codec in reversed(array["codecs"]):
        if codec["name"] == "zstd":
            stored = zstandard.ZstdDecompressor().decompressobj().decompress(stored)
        elif codec["name"] == "bytes":
            endian = codec.get("configuration", {}).get("endian")
            assert (endian is None) == (dtype.itemsize == 1)
            dtype = dtype.newbyteorder(">" if endian == "big" else "<")
        else:
            assert codec["name"] == "transpose"
            order = codec["configuration"]["order"]
    stored_shape = [shape[axis] for axis in order]
    values = numpy.frombuffer(stored, dtype).reshape(stored_shape).transpose(numpy.argsort(order))
    return values.astype(dtype.newbyteorder("="))


def read(server, refs, name):
    array = metadata(refs, name)
    if 0 in array["shape"]:
        assert f"{name}/c" + "/0" * len(array["shape"]) not in refs
        return numpy.zeros(array["shape"], array["data_type"])
    url, offset, length = chunk_of(refs, name)
    target = url.path + (f"?{url.query}" if url.query else "")
    answer = get(server, target, Range=f"bytes={offset}-{offset + length - 1}")
    assert answer.status == 206 and len(answer.body) == length
    return decode(answer.body, array)


def arrays_of(refs):
    return sorted(key.removesuffix("/zarr.json") for key in refs
                  if key.endswith("/zarr.json") and json.loads(refs[key])["node_type"] == "array")  # fmt: skip


def assert_holds(server, expected, model="m", query=""):
    refs = references(server, model, query)
    assert arrays_of(refs) == sorted(expected)
    for name, values in expected.items():
        found = read(server, refs, name)
        assert found.dtype == values.dtype.newbyteorder("=") and found.shape == values.shape
        assert found.tobytes() == values.astype(found.dtype).tobytes(), name
    return refs


def npz(compressed, **arrays):
    file = io.BytesIO()
    (numpy.savez_compressed if compressed else numpy.savez)(file, **arrays)
    return file.getvalue()


# --- what it says ---


def test_an_array_is_one_chunk_of_its_file(tmp_path, start_server):
    content = zt1({"w": dense(GRID.tobytes(), "i32", [3, 4, 5], attributes={"x": 1})}, attributes={"made": "here"})
    (tmp_path / "m.zt").write_bytes(content)
    server = start_server(tmp_path)
    refs = references(server)
    assert refs == {
        "zarr.json": '{"zarr_format":3,"node_type":"group","attributes":{"made":"here"}}',
        "w/zarr.json": refs["w/zarr.json"],
        "w/c/0/0/0": [f"http://{server.host}:{server.port}/files/m.zt", content.offsets["w", "data"], 240],
    }
    assert metadata(refs, "w") == {
        "zarr_format": 3, "node_type": "array", "shape": [3, 4, 5], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 4, 5]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {"x": 1},
        "dimension_names": ["w[0]", "w[1]", "w[2]"]}  # fmt: skip


TYPES = ["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]


def test_types_have_their_names_in_zarr(tmp_path, start_server):
    arrays = {name: numpy.arange(6).astype(name[0] + str(int(name[1:]) // 8)).reshape(2, 3) for name in TYPES}
    arrays |= {"b": numpy.array([True, False]), "c": numpy.array([1 + 2j], "c8"), "d": numpy.array([[3j]], "c16")}
    (tmp_path / "m.npz").write_bytes(npz(False, **arrays))
    refs = assert_holds(start_server(tmp_path), arrays)
    for name in TYPES:
        fill = metadata(refs, name)["fill_value"]
        assert fill == 0 and isinstance(fill, float if name[0] == "f" else int), name
    assert [metadata(refs, name)["fill_value"] for name in "bcd"] == [False, [0.0, 0.0], [0.0, 0.0]]


def test_scalars_have_one_chunk_and_empty_tensors_none(tmp_path, start_server):
    arrays = {"s": numpy.array(2.5), "none": numpy.zeros((0, 4), "f4"), "e": numpy.zeros((3, 0), "i1")}
    (tmp_path / "m.npz").write_bytes(npz(False, **arrays))
    refs = assert_holds(start_server(tmp_path), arrays)
    assert "s/c" in refs
    assert metadata(refs, "none")["chunk_grid"]["configuration"]["chunk_shape"] == [1, 4]


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
def test_other_orders_are_undone_by_the_reader_or_the_server(tmp_path, start_server, compressed):
    arrays = {"big": GRID.astype(">i4"), "fortran": numpy.asfortranarray(GRID), "plain": GRID,
              "both": numpy.asfortranarray(GRID.astype(">i8")), "vector": numpy.asfortranarray(GRID[0, 0])}  # fmt: skip
    (tmp_path / "m.npz").write_bytes(npz(compressed, **arrays))
    refs = assert_holds(start_server(tmp_path), arrays)
    paths = {chunk_of(refs, name)[0].path for name in arrays}
    if compressed:
        assert paths == {f"{model_path('m')}/objects/{name}/data" for name in arrays}
    else:
        assert paths == {"/files/m.npz"}
        assert [len(metadata(refs, name)["codecs"]) for name in ("fortran", "both", "vector", "plain")] == [2, 2, 1, 1]


def test_zstd_is_decoded_by_the_reader_seekable_zstd_by_the_server(tmp_path, start_server):
    data = bytes(50_000)
    values = numpy.frombuffer(data, "u1")
    (tmp_path / "m.zt").write_bytes(zt1({"known": zstd_dense(data), "unknown": zstd_dense(data, states_length=False)}))
    (tmp_path / "s.zt").write_bytes(zt2({"w": dense_encoded(data, seekable(data, 5000), "zt.zstd-seekable/1")}))
    server = start_server(tmp_path)
    refs = assert_holds(server, {"known": values, "unknown": values})
    assert chunk_of(refs, "known")[0].path == "/files/m.zt" and chunk_of(refs, "known")[2] < 1000
    assert metadata(refs, "known")["codecs"][-1] == {"name": "zstd", "configuration": {"level": 0, "checksum": False}}
    refs = assert_holds(server, {"w": values}, "s")
    assert chunk_of(refs, "w")[0].path.startswith("/v1/")


def test_chunks_are_in_the_file_that_holds_them(tmp_path, start_server):
    held = pattern(500)
    shard = zt2_data_shard(b"in front", held)
    (tmp_path / "m-w.zt").write_bytes(shard)
    objects = {"in": dense_in_shard("w", shard.offsets[1], held, digest="xxh3"), "own": dense(pattern(50))}
    (tmp_path / "m.zt").write_bytes(zt2(objects, fields={"shards": {"w": shard_entry(shard)}}))
    refs = assert_holds(start_server(tmp_path), {"in": numpy.frombuffer(held, "u1"), "own": numpy.frombuffer(pattern(50), "u1")})
    assert [chunk_of(refs, name)[0].path for name in ("in", "own")] == ["/files/m-w.zt", "/files/m.zt"]


@pytest.mark.parametrize("make", [safetensors_model, gguf_model])
def test_chunks_of_parts(tmp_path, start_server, make):
    parts = [[("a", pattern(96)), ("c", pattern(64, 2))], [("b", pattern(32, 3))]]
    (tmp_path / "a dir").mkdir()
    for name, content in make("m", parts).items():
        (tmp_path / "a dir" / name).write_bytes(content)
    kind = "i1" if make is gguf_model else "u1"
    arrays = {name: numpy.frombuffer(data, kind) for part in parts for name, data in part}
    refs = references(server := start_server(tmp_path), "a dir/m")
    for name, values in arrays.items():
        assert read(server, refs, name).tobytes() == values.tobytes()
        assert chunk_of(refs, name)[0].path.startswith("/files/a%20dir/m-0000" + ("2" if name == "b" else "1"))


def test_what_files_does_not_serve_is_read_from_the_component(tmp_path, start_server):
    (tmp_path / "w.bin").write_bytes(pattern(400))
    (tmp_path / "m.onnx").write_bytes(onnx(tensor("w", 1, [50], external("w.bin", offset=100, length=200)), tensor("o", 3, [4], raw(b"1234"))))
    values = numpy.frombuffer(pattern(400)[100:300], "<f4")
    refs = assert_holds(start_server(tmp_path), {"w": values, "o": numpy.frombuffer(b"1234", "i1")})
    assert chunk_of(refs, "w")[0].path == f"{model_path('m')}/objects/w/data"


# --- names ---


def test_slashes_make_groups(tmp_path, start_server):
    names = ["a/b/c", "a/b/d", "a/e", "a-", "f.g"]
    (tmp_path / "m.zt").write_bytes(zt1({name: dense(name.encode()) for name in names}))
    refs = assert_holds(start_server(tmp_path), {name: numpy.frombuffer(name.encode(), "u1") for name in names})
    groups = [key for key in refs if key.endswith("zarr.json") and json.loads(refs[key])["node_type"] == "group"]
    assert sorted(groups) == ["a/b/zarr.json", "a/zarr.json", "zarr.json"]
    consolidated = json.loads(refs["zarr.json"])["consolidated_metadata"]
    assert (consolidated["kind"], consolidated["must_understand"]) == ("inline", False)
    assert consolidated["metadata"] == {key.removesuffix("/zarr.json"): json.loads(value)
                                        for key, value in refs.items() if key.endswith("/zarr.json")}  # fmt: skip
    assert metadata(refs, "a/b/c")["dimension_names"] == ["c[0]"]


def test_odd_names_are_keys_as_they_are(tmp_path, start_server):
    names = ["a b", "50%", "ü", "#", "?", '"', "{{x}}", "..a", "a..", "_", "_a", "c", "a__", "zarr.json.x", "\u0001", "a:b", "[0]"]
    (tmp_path / "m.npz").write_bytes(npz(True, **{f"n{i}": numpy.array([i]) for i in range(2)}))
    (tmp_path / "o.zt").write_bytes(zt1({name: dense(name.encode()) for name in names}))
    assert_holds(start_server(tmp_path), {name: numpy.frombuffer(name.encode(), "u1") for name in names}, "o")


REFUSED = {
    "a//b": "empty", "/a": "empty", "a/": "empty", "": "empty", ".": "dots", "a/../b": "dots", "...": "dots", "__a": "reserved",
    "x/__a": "reserved", "zarr.json": "zarr.json", "a/zarr.json": "zarr.json", "a\\b": "backslash",
}  # fmt: skip


def test_names_that_zarr_does_not_have_are_refused(tmp_path, start_server):
    for number, name in enumerate(REFUSED):
        (tmp_path / f"m{number}.zt").write_bytes(zt1({name: dense(b"1"), "other": dense(b"2")}))
    server = start_server(tmp_path)
    for number, (name, why) in enumerate(REFUSED.items()):
        problem = assert_problem(get(server, path_of(f"m{number}")), 422, "not-representable")
        assert problem["object"] == name and why in problem["detail"]
        assert arrays_of(references(server, f"m{number}", "&match=other")) == ["other"]


def test_no_array_is_inside_another(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"a": dense(b"1"), "a/b": dense(b"2"), "a-b": dense(b"3")}))
    server = start_server(tmp_path)
    answer = get(server, path_of("m"))
    assert_problem(answer, 422, "not-representable")
    assert answer.json()["object"] == "a/b" and "inside that one" in answer.json()["detail"]
    assert arrays_of(references(server, query="&match=a/*")) == ["a/b"]
    assert arrays_of(references(server, query="&match=a&match=a-b")) == ["a", "a-b"]


# --- what zarr does not have ---


def bf16(values):
    return (numpy.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")


def test_types_that_zarr_lacks_are_refused_or_widened(tmp_path, start_server):
    values = numpy.array([1.5, -2, 0.25], "<f4")
    (tmp_path / "m.zt").write_bytes(zt1({"b": dense(bf16(values).tobytes(), "bf16"), "i": dense(b"12")}))
    server = start_server(tmp_path)
    answer = get(server, path_of("m"))
    assert_problem(answer, 422, "not-representable")
    assert answer.json()["object"] == "b" and "dtype=f32" in answer.json()["detail"]
    refs = assert_holds(server, {"b": values, "i": numpy.frombuffer(b"12", "u1")}, query="&dtype=f32")
    assert chunk_of(refs, "b")[0].query == "dtype=f32" and chunk_of(refs, "i")[0].path == "/files/m.zt"


# --- the query ---


def test_objects_that_are_not_dense_are_refused(tmp_path, start_server):
    parts = {"values": Component(bytes(8), "f32"), "indices": Component(bytes(16), "u64"), "indptr": Component(bytes(24), "u64")}
    (tmp_path / "m.zt").write_bytes(zt1({"s": Object([2, 2], parts, "sparse_csr"), "w": dense(b"1")}))
    server = start_server(tmp_path)
    for query in ("", "&dtype=f32"):
        answer = get(server, path_of("m", query))
        assert_problem(answer, 422, "not-representable")
        assert answer.json()["object"] == "s"
    assert arrays_of(references(server, query="&match=w")) == ["w"]


@pytest.fixture(scope="module")
def server(share_server, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    objects = {f"{group}.{index}": dense(pattern(10, index)) for group in "abc" for index in range(40)}
    (root / "m.zt").write_bytes(zt1(objects))
    return share_server(root, environment={"ZTSERVE_TRUSTED_PROXIES": "127.0.0.1"})


def test_match_and_prefix_select(server):
    assert arrays_of(references(server, query="&prefix=b.1")) == sorted(["b.1", *(f"b.1{i}" for i in range(10))])
    assert arrays_of(references(server, query="&match=c.0&match=c.?&prefix=c")) == [f"c.{i}" for i in range(10)]
    assert_problem(get(server, path_of("m", "&match=x*")), 404, "object-not-found")


@pytest.mark.parametrize("query", ["&shard=0/2", "&axis=0", "&shard=0/2&axis=0", "&dtype=f16", "&match=[", "&format=zt"])
def test_other_parameters_are_refused(server, query):
    assert_problem(get(server, path_of("m", query)), 400, "invalid-request")


def test_the_text_is_a_representation(server):
    whole = get(server, path_of("m"))
    assert whole["Content-Type"] == "application/json" and whole["Content-Disposition"] == 'attachment; filename="m.reference.json"'
    assert {"X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded"} <= {one.strip() for one in whole["Vary"].split(",")}
    assert get(server, path_of("m")).body == whole.body
    part = get(server, path_of("m"), Range="bytes=10-99", If_Range=whole["ETag"])
    assert (part.status, part.body) == (206, whole.body[10:100])
    assert get(server, path_of("m"), If_None_Match=whole["ETag"]).status == 304
    assert int(head(server, path_of("m"))["Content-Length"]) == len(whole.body)
    assert get(server, path_of("m"), Want_Repr_Digest="sha-256=10")["Repr-Digest"].startswith("sha-256=:")
    tags = {get(server, path_of("m", query))["ETag"] for query in ("", "&prefix=a", "&match=a*", "&match=*a", "&dtype=f32")}
    assert len(tags) == 5


# --- addresses ---


def get_from(server, host, target):
    """The request's only Host is the test's."""
    head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    status, _, rest = talk(server, head.encode()).partition(b"\r\n")
    fields, _, body = rest.partition(b"\r\n\r\n")
    return int(status.split()[1]), fields.decode(), json.loads(body)


def urls_of(refs):
    return {url.split("/files/")[0] for url, *_ in (value for value in refs.values() if isinstance(value, list))}


def test_addresses_are_those_that_the_client_used(server):
    status, fields, plain = get_from(server, "models.example:8080", path_of("m"))
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "models.example"}
    proxied = ask(server, "GET", path_of("m"), forwarded)
    assert status == 200 and urls_of(plain["refs"]) == {"http://models.example:8080"}
    assert urls_of(proxied.json()["refs"]) == {"https://models.example"}
    assert f"ETag: {proxied['ETag']}" not in fields and "ETag: " in fields


def test_a_request_must_name_the_server(server):
    answer = talk(server, f"GET {path_of('m')} HTTP/1.0\r\n\r\n".encode())
    assert answer.split()[1] == b"400" and b"must have a Host" in answer


def test_what_is_no_proxy_says_nothing(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(b"1")}))
    server = start_server(tmp_path)
    refs = references(server, X_Forwarded_Proto="https", X_Forwarded_Host="evil.example", Forwarded="host=evil.example;proto=https")
    assert urls_of(refs) == {f"http://{server.host}:{server.port}"}


def test_addresses_begin_with_the_base_path(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(b"1"), "z": dense_encoded(b"1" * 99, seekable(b"1" * 99), "zstd")}))
    server = start_server(tmp_path, environment={"ZTSERVE_BASE_PATH": "/some/models"})
    refs = assert_holds(server, {"w": numpy.frombuffer(b"1", "u1"), "z": numpy.frombuffer(b"1" * 99, "u1")})
    assert chunk_of(refs, "w")[0].path == "/some/models/files/m.zt"
