"""The streaming writer: components in any order, over several connections, become one whole file."""

import concurrent.futures
import hashlib
import random

import pytest
import zstandard

from containers import dense, pattern, zt1
from uploads import digest_field, put
from wire import Connection, ask, assert_problem, component_path, eventually, get, manifest, model_path
from writers import assert_committed, begin, repr_digest


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(params=["1.2.0", "2"])
def version(request):
    return request.param


# --- whole uploads ---


def test_components_in_any_order_become_a_model(server, folder, name, version):
    contents = {f"layer{i}": pattern(i * 1000, seed=i) for i in (7, 3, 9, 1, 5)}
    upload = begin(server, name, version, attributes={"framework": "x", "n": 3})
    for key, data in contents.items():
        answer = upload.put(key, data)
        assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(data), answer
    assert get(server, model_path(name)).status == 404
    assert_committed(server, folder, upload, name, contents)
    shown = manifest(server, name)
    assert shown["source"]["version"] == version
    assert shown["attributes"] == {"framework": "x", "n": 3}
    assert shown["objects"]["layer7"]["shape"] == [7000]


def test_version_decides_the_digests(server, name, version):
    upload = begin(server, name, version)
    upload.put("w", b"12345678", dtype="f32", shape=2)
    assert upload.commit().status == 201
    component = manifest(server, name)["objects"]["w"]["components"]["data"]
    assert component["digest"].split(":")[0] == ("sha256" if version == "1.2.0" else "xxh3")
    assert component["offset"] % (64 if version == "1.2.0" else 65536) == 0


def test_eight_connections_at_once(server, folder, name, version):
    contents = {f"w{i}": random.Random(i).randbytes(300_000 + i) for i in range(8)}
    upload = begin(server, name, version)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda item: upload.put(*item), contents.items()))
    assert [answer.status for answer in answers] == [201] * 8
    assert_committed(server, folder, upload, name, contents)


@pytest.mark.parametrize("level", [None, 19])
def test_compressed_on_the_way(server, folder, name, version, level):
    data = pattern(30_000) * 10
    upload = begin(server, name, version)
    query = {"level": level} if level else {}
    answer = upload.put("w", data, encoding="zstd", **query)
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(data)
    upload.put("raw", data[:1000], encoding="raw")
    assert_committed(server, folder, upload, name, {"w": data, "raw": data[:1000]})
    component = manifest(server, name)["objects"]["w"]["components"]["data"]
    assert component["encoding"] == ("zstd" if version == "1.2.0" else "zt.zstd-seekable/1")
    assert component["length"] < component["uncompressed_length"] == len(data)


@pytest.mark.parametrize("level", [9, 19])
def test_high_levels_take_little_memory(server, name, version, level):
    upload = begin(server, name, version)
    upload.put("w", pattern(30_000) * 100, encoding="zstd", level=level)
    assert upload.commit().status == 201
    stored = get(server, component_path(name, "w") + "?representation=stored").body
    assert zstandard.get_frame_parameters(stored).window_size <= 1 << 20


@pytest.mark.parametrize("chunked", [False, True])
def test_body_compressed_by_the_client(server, folder, name, version, chunked):
    data = pattern(20_000) * 10
    packed = zstandard.compress(data)
    upload = begin(server, name, version)
    with Connection(server) as connection:
        target = upload.component_path("w", dtype="u8", shape=len(data))
        fields = {"Content-Encoding": "zstd"} | ({} if chunked else {"Content-Length": str(len(packed))})
        connection.http.request("PUT", target, iter([packed]), fields, encode_chunked=chunked)
        answer = connection.receive()
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(data), answer
    assert_committed(server, folder, upload, name, {"w": data})
    component = manifest(server, name)["objects"]["w"]["components"]["data"]
    assert component["encoding"] == ("zstd" if version == "1.2.0" else "zt.zstd-seekable/1")
    if version == "1.2.0":
        stored = get(server, f"{component_path(name, 'w')}?representation=stored")
        assert component["length"] == len(packed)
        assert stored.status != 200 or stored.body in (packed, data)


@pytest.mark.parametrize("log", [23, 24])
def test_body_whose_window_is_above_8_mib_is_415(server, folder, name, version, log):
    data = pattern(100_000)
    parameters = zstandard.ZstdCompressionParameters(window_log=log)
    large = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    # Behind a frame that is in order too.
    packed = zstandard.compress(data[:1000]) + large.compress(data[1000:]) + large.flush()
    upload = begin(server, name, version)
    answer = upload.put("w", packed, fields={"Content-Encoding": "zstd"}, shape=len(data))
    if log > 23:
        assert "8 MiB" in assert_problem(answer, 415, "unsupported-media-type")["detail"]
        upload.put("w", data)
    else:
        assert answer.status == 201, answer
    assert_committed(server, folder, upload, name, {"w": data})


def test_objects_of_every_layout(server, folder, name, version):
    upload = begin(server, name, version)
    layout = "sparse_csr" if version == "1.2.0" else "zt.sparse_csr/1"
    parts = {
        "values": (b"\0\0\x80?\0\0\0@", "f32", "2"),
        "indices": ((0).to_bytes(8, "little") + (2).to_bytes(8, "little"), "u64", "2"),
        "indptr": b"".join(n.to_bytes(8, "little") for n in (0, 1, 2)),
    }
    assert upload.put("s", parts["values"][0], "values", dtype="f32", shape=2).status == 201
    answer = upload.declare("s", shape=[2, 3], format=layout, attributes={"note": "ä"})
    assert answer.status == 201, answer
    assert upload.put("s", parts["indptr"], "indptr", dtype="u64", shape=3).status == 201
    assert upload.put("s", parts["indices"][0], "indices", dtype="u64", shape=2).status == 201
    assert upload.declare("s", shape=[2, 3], format=layout, attributes={"note": "ö"}).status == 204
    assert_committed(server, folder, upload, name, {("s", "values"): parts["values"][0]})
    shown = manifest(server, name)["objects"]["s"]
    assert (shown["shape"], shown["format"], shown["attributes"]) == ([2, 3], layout, {"note": "ö"})


def test_types_and_shapes(server, folder, name, version):
    upload = begin(server, name, version)
    assert upload.put("scalar", b"12345678", dtype="f64", shape="").status == 201
    assert upload.put("f8", b"123456", type="f8_e4m3fn", shape="2,3").status == 201
    assert upload.put("c", b"1" * 48, dtype="f32", type="complex64", shape="6").status == 201
    assert upload.put("flags", b"\0\1\1", dtype="bool", shape="3").status == 201
    assert upload.put("none", b"", dtype="f32", shape="0,5").status == 201
    assert upload.put("a/b %2F ü", b"x").status == 201
    assert_committed(server, folder, upload, name, {"scalar": b"12345678", "none": b"", "a/b %2F ü": b"x"})
    objects = manifest(server, name)["objects"]
    assert objects["scalar"]["shape"] == [] and objects["f8"]["shape"] == [2, 3]
    assert objects["f8"]["components"]["data"]["type"] == "f8_e4m3fn"
    assert objects["flags"]["components"]["data"]["type"] == "bool"
    assert objects["none"]["shape"] == [0, 5]


# --- bytes that the server holds already ---


def test_a_component_is_accepted_by_its_digest(server, folder, name, version):
    data = random.Random(name).randbytes(70_000)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = begin(server, name, version)
    assert_problem(upload.put("w", b"", shape=len(data), digest=digest), 404, "component-not-found")
    assert put(server, f"{name}-held", zt1({"w": dense(data)})).status == 201
    answer = upload.put("w", b"", shape=len(data), digest=digest)
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(data), answer
    assert upload.put("packed", b"", shape=len(data), digest=digest, encoding="zstd").status == 201
    assert_problem(upload.put("v", b"", shape=5, digest=digest), 422, "size-mismatch")
    assert_committed(server, folder, upload, name, {"w": data, "packed": data})


def test_a_digest_that_no_model_holds_brings_nothing(server, folder, name, version):
    digest = f"sha256:{hashlib.sha256(b'').hexdigest()}"
    upload = begin(server, name, version)
    answer = upload.put("none", b"", shape=0, digest=digest)
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(b""), answer
    assert upload.put("packed", b"", shape="3,0", digest=digest, encoding="zstd").status == 201
    assert_problem(upload.put("w", b"", shape=5, digest=digest), 422, "size-mismatch")
    upload.put("w", b"12345")
    assert_committed(server, folder, upload, name, {"none": b"", "packed": b"", "w": b"12345"})


def test_a_component_is_copied_from_the_same_upload(server, folder, name, version):
    data = random.Random(name).randbytes(70_000)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = begin(server, name, version)
    assert upload.put("a", data, encoding="zstd").status == 201
    assert upload.put("b", b"", shape=len(data), digest=digest).status == 201
    assert upload.put("c", data, digest=digest).status == 201
    assert_committed(server, folder, upload, name, {"a": data, "b": data, "c": data})


@pytest.mark.parametrize("sent, size", [("by the server", 300_000), ("by the client", 300_000), ("by the client", 100)])
def test_a_compressed_component_is_known_by_its_decoded_bytes(server, folder, name, version, sent, size):
    data = random.Random(name).randbytes(size // 2) * 2
    first = begin(server, f"{name}-first", version)
    if sent == "by the server":
        first.put("w", data, encoding="zstd")
    else:
        first.put("w", zstandard.ZstdCompressor().compress(data), shape=size, fields={"Content-Encoding": "zstd"})
    assert first.commit().status == 201
    assert get(server, component_path(f"{name}-first", "w"))["Repr-Digest"] == repr_digest(data)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = begin(server, name, version)
    assert upload.put("w", b"", shape=size, digest=digest).status == 201
    assert upload.put("packed", b"", shape=size, digest=digest, encoding="zstd").status == 201
    assert_problem(upload.put("v", b"", shape=5, digest=digest), 422, "size-mismatch")
    assert_committed(server, folder, upload, name, {"w": data, "packed": data})


def test_a_damaged_component_is_not_copied(server, folder, name):
    data = random.Random(name).randbytes(70_000)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    (folder / f"{name}-held.zt").write_bytes(zt1({"w": dense(data)}).flipped("w"))
    eventually(lambda: get(server, model_path(f"{name}-held")).status == 200)
    upload = begin(server, name)
    assert_problem(upload.put("w", b"", shape=len(data), digest=digest), 404, "component-not-found")


# --- status and digests ---


def test_the_status_shows_received_components(server, name, version):
    upload = begin(server, name, version, attributes={"a": [1, {"b": None}]})
    upload.declare("w", shape=[2, 2], attributes={"x": 1})
    upload.put("w", b"1234", shape="2,2")
    upload.put("z", b"5" * 1000, "values", encoding="zstd")
    status = upload.status()
    assert (status["id"], status["model"], status["version"], status["state"]) == (upload.id, name, version, "open")
    assert status["attributes"] == {"a": [1, {"b": None}]}
    assert status["received"] == 1004 and status["created"] < status["expires"]
    shown = status["objects"]["w"]
    assert (shown["shape"], shown["format"], shown["attributes"]) == ([2, 2], "dense", {"x": 1})
    component = shown["components"]["data"]
    assert (component["dtype"], component["shape"], component["encoding"]) == ("u8", [2, 2], "raw")
    assert component["sha256"] == hashlib.sha256(b"1234").hexdigest()
    packed = status["objects"]["z"]["components"]["values"]
    assert packed["uncompressed_length"] == 1000 > packed["length"]
    assert [one["id"] for one in get(server, "/v1/uploads").json()["uploads"]].count(upload.id) == 1
    head = ask(server, "HEAD", upload.path)
    assert head.status == 200 and head.body == b""


def test_digest_fields_of_a_compressed_body(server, name, version):
    upload = begin(server, name, version)
    data = pattern(3000)
    packed = zstandard.compress(data)
    coded = {"Content-Encoding": "zstd"}
    for field, value, status in (
        ("Content-Digest", packed, 201),
        ("Content-Digest", data, 422),
        ("Repr-Digest", packed, 201),
        ("Repr-Digest", data, 201),
        ("Repr-Digest", b"else", 422),
    ):
        fields = coded | {field: digest_field("sha-512", value)}
        assert upload.put("w", packed, fields=fields, shape=3000).status == status, field
