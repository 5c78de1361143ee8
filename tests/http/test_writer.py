"""The streaming writer: components in any order, over several connections, become one whole file."""

import base64
import concurrent.futures
import hashlib
import random

import pytest
import zstandard

from containers import dense, pattern, zt1
from uploads import digest_field, put
from wire import (
    Connection,
    ask,
    assert_problem,
    component_path,
    connect,
    eventually,
    get,
    manifest,
    model_path,
    read_head,
)
from writers import assert_clean, begin, create, leftovers

VERSIONS = ["1.2.0", "2"]


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def repr_digest(data):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def content(server, model, name, role="data"):
    answer = get(server, component_path(model, name, role))
    assert answer.status == 200, answer
    return answer.body


def assert_committed(server, folder, upload, model, contents):
    """Commits, and reads everything back: by name, or by (name, role)."""
    answer = upload.commit()
    assert answer.status == 201, answer
    whole = assert_clean(folder, model)
    assert answer["Location"] == model_path(model)
    assert answer["ETag"] == get(server, model_path(model))["ETag"]
    assert answer["Repr-Digest"] == repr_digest(whole)
    for name, data in contents.items():
        name = name if isinstance(name, tuple) else (name, "data")
        assert content(server, model, *name) == data
    return whole


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


def test_version_is_1_2_without_a_body(server, folder, name):
    answer = ask(server, "POST", f"{model_path(name)}/uploads")
    assert answer.status == 201 and answer.json()["version"] == "1.2.0"


def test_eight_connections_at_once(server, folder, name, version):
    contents = {f"w{i}": random.Random(i).randbytes(3_000_000 + i) for i in range(8)}
    upload = begin(server, name, version)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda item: upload.put(*item), contents.items()))
    assert [answer.status for answer in answers] == [201] * 8
    assert_committed(server, folder, upload, name, contents)


def test_interleaved_bodies_do_not_mix(server, folder, name):
    upload = begin(server, name)
    parts = {f"w{i}": bytes([i]) * 300_000 for i in range(4)}
    connections = []
    for key in parts:
        connection = connect(server)
        target = upload.component_path(key, dtype="u8", shape=300_000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n".encode())
        connections.append(connection)
    for at in range(0, 300_000, 50_000):
        for connection, data in zip(connections, parts.values(), strict=True):
            connection.sendall(data[at : at + 50_000])
    assert [read_head(connection)[0] for connection in connections] == [201] * 4
    for connection in connections:
        connection.close()
    assert_committed(server, folder, upload, name, parts)


def test_chunked_body_is_as_good(server, folder, name, version):
    data = pattern(200_001)
    upload = begin(server, name, version)
    with Connection(server) as connection:
        chunks = iter([data[:7], data[7:100_000], data[100_000:]])
        connection.http.request("PUT", upload.component_path("w", dtype="u8", shape=len(data)), chunks)
        assert connection.receive().status == 201
    assert_committed(server, folder, upload, name, {"w": data})


@pytest.mark.parametrize("level", [None, 1, 19])
def test_compressed_on_the_way(server, folder, name, version, level):
    data = pattern(30_000) * 100
    upload = begin(server, name, version)
    query = {"level": level} if level else {}
    answer = upload.put("w", data, encoding="zstd", **query)
    assert answer.status == 201 and answer["Repr-Digest"] == repr_digest(data)
    upload.put("raw", data[:1000], encoding="raw")
    assert_committed(server, folder, upload, name, {"w": data, "raw": data[:1000]})
    component = manifest(server, name)["objects"]["w"]["components"]["data"]
    assert component["encoding"] == ("zstd" if version == "1.2.0" else "zt.zstd-seekable/1")
    assert component["length"] < component["uncompressed_length"] == len(data)


def test_compressed_chunked_body(server, folder, name, version):
    data = pattern(2_500_000)
    upload = begin(server, name, version)
    with Connection(server) as connection:
        target = upload.component_path("w", dtype="u8", shape=len(data), encoding="zstd")
        connection.http.request("PUT", target, iter([data[:1_000_000], data[1_000_000:]]))
        assert connection.receive().status == 201
    assert_committed(server, folder, upload, name, {"w": data})


@pytest.mark.parametrize("chunked", [False, True])
def test_body_compressed_by_the_client(server, folder, name, version, chunked):
    data = pattern(20_000) * 100
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


def test_body_compressed_by_the_client_can_be_stored_raw(server, folder, name, version):
    data = pattern(100_000)
    upload = begin(server, name, version)
    answer = upload.put(
        "w", zstandard.compress(data), fields={"Content-Encoding": "zstd"}, shape=len(data), encoding="raw"
    )
    assert answer.status == 201
    assert_committed(server, folder, upload, name, {"w": data})
    assert manifest(server, name)["objects"]["w"]["components"]["data"]["encoding"] == "raw"


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


def test_upload_without_components(server, folder, name, version):
    upload = begin(server, name, version)
    assert_committed(server, folder, upload, name, {})


def test_upload_of_nothing_but_an_empty_tensor(server, folder, name, version):
    upload = begin(server, name, version)
    upload.put("none", b"", shape=0)
    assert_committed(server, folder, upload, name, {"none": b""})


# --- replacing, failing, abandoning ---


def test_component_sent_again_replaces_the_first(server, folder, name, version):
    upload = begin(server, name, version)
    secret, data = b"SECRET" * 1000, pattern(9000)
    assert upload.put("w", secret).status == 201
    upload.put("v", b"other")
    assert upload.put("w", data, shape="90,100").status == 201
    whole = assert_committed(server, folder, upload, name, {"w": data, "v": b"other"})
    assert b"SECRET" not in whole


def test_replaced_last_component_leaves_no_byte(server, folder, name, version):
    upload = begin(server, name, version)
    upload.put("w", b"first")
    upload.put("x", b"SECRET" * 100_000)
    upload.put("x", b"short")
    whole = assert_committed(server, folder, upload, name, {"w": b"first", "x": b"short"})
    assert b"SECRET" not in whole


def test_place_of_a_replaced_component_is_used_again(server, folder, name):
    upload = begin(server, name)
    for seed in range(4):
        assert upload.put("w", pattern(100_000, seed=seed)).status == 201
    assert_committed(server, folder, upload, name, {"w": pattern(100_000, seed=3)})


def test_space_of_what_failed_is_given_back(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"x" * 3_000_000)
    upload.put("w", b"small")
    wrong = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("v", b"x" * 3_000_000, fields=wrong), 422, "digest-mismatch")
    (data,) = (folder / path for path in leftovers(folder) if upload.id in path and path.endswith("data"))
    eventually(lambda: data.stat().st_blocks * 512 < 100_000)


def test_failed_attempt_keeps_the_earlier_one(server, folder, name, version):
    upload = begin(server, name, version)
    data = pattern(5000)
    assert upload.put("w", data).status == 201
    wrong = b"SECRET" * 1000
    fields = {"Content-Digest": digest_field("sha-256", b"else")}
    assert_problem(upload.put("w", wrong, fields=fields), 422, "digest-mismatch")
    assert_problem(upload.put("w", wrong, digest=f"sha256:{'0' * 64}"), 422, "digest-mismatch")
    whole = assert_committed(server, folder, upload, name, {"w": data})
    assert b"SECRET" not in whole


@pytest.mark.parametrize("query", [{}, {"encoding": "zstd"}])
def test_connection_cut_in_a_body_leaves_the_earlier_one(server, folder, name, version, query):
    upload = begin(server, name, version)
    data = pattern(5000)
    upload.put("w", data)
    with connect(server) as connection:
        target = upload.component_path("w", dtype="u8", shape=600_000, **query)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n".encode())
        connection.sendall(b"SECRET" * 50_000)
    whole = assert_committed(server, folder, upload, name, {"w": data})
    assert b"SECRET" not in whole


def test_commit_does_not_wait_for_a_body_that_stalls(server, folder, name):
    upload = begin(server, name)
    upload.put("w", b"there")
    with connect(server) as connection:
        target = upload.component_path("x", dtype="u8", shape=600_000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n".encode())
        connection.sendall(b"SECRET" * 50_000)
        whole = assert_committed(server, folder, upload, name, {"w": b"there"})
        assert b"SECRET" not in whole
        connection.sendall(b"SECRET" * 50_000)
        assert read_head(connection)[0] == 409
    assert assert_clean(folder, name) == whole


def test_chunked_body_of_another_size_is_refused(server, name):
    upload = begin(server, name)
    for size in (99, 101):
        with Connection(server) as connection:
            connection.http.request("PUT", upload.component_path("w", dtype="u8", shape=100), iter([b"x" * size]))
            assert_problem(connection.receive(), 422, "size-mismatch")
    assert upload.status()["objects"] == {}


@pytest.mark.parametrize("size", [999, 1001])
def test_compressed_body_of_another_decoded_size_is_refused(server, name, version, size):
    upload = begin(server, name, version)
    packed = zstandard.compress(b"x" * size)
    answer = upload.put("w", packed, fields={"Content-Encoding": "zstd"}, shape=1000)
    assert_problem(answer, 422, "size-mismatch")
    assert upload.status()["objects"] == {}


def test_body_that_is_not_zstd_is_refused(server, name, version):
    upload = begin(server, name, version)
    answer = upload.put("w", b"not zstd at all" * 10, fields={"Content-Encoding": "zstd"}, shape=1000)
    assert answer.status == 422, answer
    assert upload.status()["objects"] == {}


def test_deleted_upload_leaves_nothing(server, folder, name):
    before = leftovers(folder)
    upload = begin(server, name)
    upload.put("w", b"x" * 100_000)
    assert len(leftovers(folder)) > len(before)
    assert upload.delete().status == 204
    assert leftovers(folder) == before
    assert_problem(get(server, upload.path), 404, "upload-not-found")
    assert_problem(upload.put("w", b"x"), 404, "upload-not-found")
    assert_problem(upload.commit(), 404, "upload-not-found")
    assert_problem(upload.delete(), 404, "upload-not-found")


def test_body_that_goes_on_after_a_delete_is_refused(server, name):
    upload = begin(server, name)
    with connect(server) as connection:
        target = upload.component_path("x", dtype="u8", shape=1000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode() + b"x" * 500)
        eventually(lambda: get(server, upload.path).status == 200)
        assert upload.delete().status == 204
        connection.sendall(b"x" * 500)
        assert read_head(connection)[0] in (404, 409)


# --- commit ---


def test_commit_again_says_the_same(server, name):
    upload = begin(server, name)
    upload.put("w", b"x")
    first, again = upload.commit(), upload.commit()
    assert (first.status, again.status) == (201, 201)
    assert [first[key] for key in ("Location", "ETag", "Repr-Digest")] == [
        again[key] for key in ("Location", "ETag", "Repr-Digest")
    ]
    assert_problem(upload.put("w", b"y"), 409, "conflict")
    assert_problem(upload.declare("w", shape=[1]), 409, "conflict")
    assert upload.status()["state"] == "committed"


def test_commits_at_once_publish_once(server, name):
    upload = begin(server, name)
    upload.put("w", b"x" * 1_000_000)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        statuses = [answer.status for answer in pool.map(lambda _: upload.commit(), range(6))]
    assert set(statuses) <= {201, 409} and 201 in statuses


def test_missing_component_is_named_and_can_still_be_sent(server, folder, name, version):
    upload = begin(server, name, version)
    layout = "sparse_coo" if version == "1.2.0" else "zt.sparse_coo/1"
    upload.declare("s", shape=[4], format=layout)
    upload.put("s", b"1234", "values", dtype="f32", shape=1)
    problem = assert_problem(upload.commit(), 422, "invalid-model")
    assert problem["object"] == "s" and "coords" in problem["detail"]
    assert upload.put("s", (3).to_bytes(8, "little"), "coords", dtype="u64", shape=1).status == 201
    assert_committed(server, folder, upload, name, {("s", "values"): b"1234"})


def test_declared_object_without_components_is_refused(server, name):
    upload = begin(server, name)
    upload.declare("w", shape=[4])
    assert assert_problem(upload.commit(), 422, "invalid-model")["object"] == "w"


def test_content_that_breaks_a_rule_is_refused(server, folder, name):
    upload = begin(server, name)
    upload.put("flags", b"\0\1\2", dtype="bool", shape="3")
    assert_problem(upload.commit(), 422, "invalid-model")
    upload.put("flags", b"\0\1\1", dtype="bool", shape="3")
    assert_committed(server, folder, upload, name, {"flags": b"\0\1\1"})


def test_preconditions_of_the_beginning_hold_at_commit(server, folder, name, version):
    upload = begin(server, name, version, If_None_Match="*")
    upload.put("w", b"mine")
    assert put(server, name, zt1({"w": dense(b"theirs")})).status == 201
    assert_problem(upload.commit(), 412, "precondition-failed")
    assert upload.status()["state"] == "open"
    assert content(server, name, "w") == b"theirs"
    assert ask(server, "DELETE", model_path(name)).status in (204, 405)


def test_commit_after_a_failed_one_with_more_components(server, folder, name, version):
    upload = begin(server, name, version, attributes={"SECRET": "y" * 100})
    upload.put("w", b"one")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    upload.put("x", b"two")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    whole = assert_committed(server, folder, upload, name, {"w": b"one", "x": b"two"})
    assert whole.count(b"SECRET") == 1


def test_empty_commit_that_fails_leaves_no_byte_behind(server, folder, name, version):
    upload = begin(server, name, version)
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    upload.put("w", b"one")
    assert_committed(server, folder, upload, name, {"w": b"one"})


def test_failed_commit_can_be_repeated_as_it_is(server, folder, name, version):
    upload = begin(server, name, version)
    upload.put("w", b"one")
    assert_problem(upload.commit(If_Match='"nothing"'), 412, "precondition-failed")
    assert_committed(server, folder, upload, name, {"w": b"one"})


def test_preconditions_are_checked_when_it_begins(server, name):
    assert put(server, name, zt1({"w": dense(b"theirs")})).status == 201
    etag = get(server, model_path(name))["ETag"]
    assert_problem(create(server, name, If_None_Match="*"), 412, "precondition-failed")
    assert_problem(create(server, name, If_Match='"other"'), 412, "precondition-failed")
    upload = begin(server, name, If_Match=etag)
    upload.put("w", b"mine")
    assert upload.commit().status == 201
    assert content(server, name, "w") == b"mine"


def test_two_that_only_create_one_wins(server, name):
    uploads = [begin(server, name, If_None_Match="*") for _ in range(2)]
    for number, upload in enumerate(uploads):
        upload.put("w", bytes([number]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda upload: upload.commit(), uploads))
    assert statuses == [201, 412]


# --- bytes that the server holds already ---


def test_component_is_taken_by_its_digest(server, folder, name, version):
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


def test_component_is_taken_from_the_same_upload(server, folder, name, version):
    data = random.Random(name).randbytes(70_000)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = begin(server, name, version)
    assert upload.put("a", data, encoding="zstd").status == 201
    assert upload.put("b", b"", shape=len(data), digest=digest).status == 201
    assert upload.put("c", data, digest=digest).status == 201
    assert_committed(server, folder, upload, name, {"a": data, "b": data, "c": data})


def test_damaged_component_is_not_taken(server, folder, name):
    data = random.Random(name).randbytes(70_000)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    (folder / f"{name}-held.zt").write_bytes(zt1({"w": dense(data)}).flipped("w"))
    eventually(lambda: get(server, model_path(f"{name}-held")).status == 200)
    upload = begin(server, name)
    assert_problem(upload.put("w", b"", shape=len(data), digest=digest), 404, "component-not-found")


# --- status and digests ---


def test_status_tells_what_has_arrived(server, name, version):
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


@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
@pytest.mark.parametrize("field", ["Content-Digest", "Repr-Digest"])
def test_digest_fields_are_checked(server, name, algorithm, field):
    upload = begin(server, name)
    data = pattern(3000)
    assert upload.put("w", data, fields={field: digest_field(algorithm, data)}).status == 201
    answer = upload.put("w", data, fields={field: digest_field(algorithm, b"else")})
    assert_problem(answer, 422, "digest-mismatch")


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
