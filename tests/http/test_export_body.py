"""QUERY and POST …/export: the bytes of the GET that asks for the same, without the objects that the client has, which the
file names; and all that a GET can do with ranges and conditions."""

import gzip
import hashlib
import json
import socket
import struct
import subprocess
from urllib.parse import quote

import numpy
import pytest

from clients import Client, write_tokens
from containers import Component, Object, dense, pattern, zstd_dense, zt1
from neighbours import safetensors
from server_process import PROGRAM
from test_export import FORMATS, SOURCES, read_npz, sharded, target
from wire import Connection, assert_problem, ask, connect, eventually, get, metrics, model_path, publish, read_head, unread_of

METHODS = ["QUERY", "POST"]
JSON = {"Content-Type": "application/json"}
LIMIT = 8 << 20
LAYERS = {f"layer.{number}.w": pattern(70_000 + number, seed=number) for number in range(6)}
HALVES = (numpy.frombuffer(pattern(2 * 64 * 48, seed=50), "<u2") & 0xBFFF).view("<f2").reshape(64, 48)
WORDS = numpy.frombuffer(pattern(4 * 64 * 32, seed=51), "<i4").reshape(64, 32)
STATED = {"format": "zt1", "by": "hand"}


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def server(folder, share_server):
    for file in ("plain.zt", "zstd.zt", "seekable.zt", "tensors.safetensors"):
        (folder / file).write_bytes(SOURCES[file])
    (folder / "two.zt").write_bytes(sharded(folder))
    (folder / "layers.zt").write_bytes(zt1({name: dense(data) for name, data in LAYERS.items()}, attributes=STATED))
    (folder / "numbers.zt").write_bytes(zt1({
        "half": dense(HALVES.tobytes(), "f16", [64, 48]),
        "words": zstd_dense(WORDS.tobytes(), "i32", [64, 32]),
        "csr": Object([2, 3], {
            "values": Component(pattern(8), "f32"),
            "indices": Component(struct.pack("<2h", 0, 2), "i16"),
            "indptr": Component(struct.pack("<3B", 0, 1, 2), "u8"),
        }, "sparse_csr"),
    }))  # fmt: skip
    return share_server(folder)


def path_of(model):
    return f"{model_path(model)}/export"


def query(server, model, method="QUERY", fields=None, **members):
    """members: those of the body."""
    return ask(server, method, path_of(model), {**JSON, **(fields or {})}, json.dumps(members).encode())


def export(server, model, method="QUERY", **members):
    answer = query(server, model, method, **members)
    assert answer.status == 200, answer
    assert int(answer["Content-Length"]) == len(answer.body)
    return answer


def read_header(data):
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def listing(file):
    """What `ztserve ls` says about a file that `ztserve verify` accepts."""
    subprocess.run([PROGRAM, "verify", file], check=True, capture_output=True)
    return json.loads(subprocess.run([PROGRAM, "ls", "--json", file], check=True, capture_output=True).stdout)


def tensors_of(data):
    """A safetensors file: the bytes of each tensor."""
    header, rest = read_header(data)
    return {name: rest[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def left_out_of(data):
    return json.loads(read_header(data)[0]["__metadata__"]["ztserve.left_out"])


# --- the same as GET ---


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [*FORMATS, "reference"])
@pytest.mark.parametrize(
    "model, members",
    [
        ("plain", {}),
        ("two", {}),
        ("seekable", {"prefix": "g"}),
        ("zstd", {"match": ["z[12]", "grid"]}),
        ("plain", {"match": "grid", "shard": "1/4", "axis": ["*:1"]}),
        ("zstd", {"match": "grid", "shard": "1/2", "axis": 1}),
        ("numbers", {"match": ["half", "words"], "dtype": "f32"}),
        ("tensors", {}),
    ],
    ids=str,
)
def test_a_body_gives_the_bytes_and_the_tag_of_the_get_that_means_the_same(server, model, members, kind, method):
    parameters = [
        f"&{name}={quote(str(value))}" for name, given in members.items() for value in (given if isinstance(given, list) else [given])
    ]
    wanted = get(server, target(model, kind) + "".join(parameters))
    answer = query(server, model, method, format=kind, **members)
    if wanted.status != 200:
        assert (answer.status, answer.json()["code"]) == (wanted.status, wanted.json()["code"])
        return
    assert (answer.status, answer.body) == (200, wanted.body)
    for field in ("ETag", "Content-Type", "Content-Disposition", "Last-Modified", "Cache-Control", "Accept-Ranges"):
        assert answer[field] == wanted[field]
    assert "ZT-Left-Out" not in answer.fields


def test_safetensors_is_the_default(server):
    assert export(server, "layers").body == get(server, target("layers", "safetensors")).body


def test_objects_are_named_exactly_and_in_addition_to_globs(server):
    names = ["layer.4.w", "layer.1.w", "layer.1.w"]
    assert set(tensors_of(export(server, "layers", objects=names).body)) == set(names)
    both = export(server, "layers", objects=["layer.0.w"], match=["*.[23].w"])
    assert set(tensors_of(both.body)) == {"layer.0.w", "layer.2.w", "layer.3.w"}
    assert both.body == get(server, target("layers", "safetensors") + "&match=*.[023].w").body
    assert_problem(query(server, "layers", objects=["layer.0.w", "layer.?.w"]), 422, "object-not-found")
    assert_problem(query(server, "layers", objects=["layer.0.w"], prefix="layer.1"), 422, "object-not-found")


def test_more_names_than_an_address_holds_select_their_objects(start_server, tmp_path):
    names = [f"a.rather.long.name.of.a.tensor.{number:05}" for number in range(4000)]
    (tmp_path / "m.zt").write_bytes(zt1({name: dense(b"%05d" % number) for number, name in enumerate(names)}))
    answer = export(start_server(), "m", objects=names[::2])
    assert set(tensors_of(answer.body)) == set(names[::2])


# --- what the client has ---


@pytest.mark.parametrize("method", METHODS)
def test_objects_whose_bytes_the_client_has_are_left_out_and_named(server, method):
    have = [sha256(LAYERS["layer.5.w"]), sha256(LAYERS["layer.1.w"]), sha256(b"something else")]
    answer = export(server, "layers", method, have=have)
    assert tensors_of(answer.body) == {name: data for name, data in LAYERS.items() if name not in ("layer.1.w", "layer.5.w")}
    assert left_out_of(answer.body) == ["layer.1.w", "layer.5.w"]
    assert read_header(answer.body)[0]["__metadata__"].items() >= STATED.items()
    assert answer["ZT-Left-Out"] == "2"


def test_the_rest_is_the_file_of_a_selection(server):
    left = export(server, "layers", format="npz", have=[sha256(LAYERS["layer.1.w"])])
    assert left.body == get(server, target("layers", "npz") + "&match=*.[!1].w").body
    assert left["ZT-Left-Out"] == "1"


def test_digests_may_have_upper_case_and_repetitions_and_any_order(server):
    have = [sha256(LAYERS[name]) for name in ("layer.0.w", "layer.2.w")]
    wanted = export(server, "layers", have=have)
    again = export(server, "layers", have=[*reversed(have), "sha256:" + have[0][7:].upper()])
    assert (again.body, again["ETag"]) == (wanted.body, wanted["ETag"])


@pytest.mark.parametrize("kind", ["zt", "zt2"])
def test_zt_files_name_what_was_left_out_in_an_attribute(server, tmp_path, kind):
    answer = export(server, "layers", format=kind, have=[sha256(data) for data in LAYERS.values()][:3])
    (tmp_path / "made.zt").write_bytes(answer.body)
    listed = listing(tmp_path / "made.zt")
    assert listed["attributes"] == {**STATED, "ztserve.left_out": ["layer.0.w", "layer.1.w", "layer.2.w"]}
    assert set(listed["objects"]) == {"layer.3.w", "layer.4.w", "layer.5.w"}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_client_that_has_everything_gets_a_valid_file_without_tensors(server, tmp_path, kind):
    answer = export(server, "layers", format=kind, have=[sha256(data) for data in LAYERS.values()])
    assert answer["ZT-Left-Out"] == str(len(LAYERS))
    if kind == "npz":
        assert read_npz(answer.body) == {}
        return
    if kind == "safetensors":
        assert left_out_of(answer.body) == sorted(LAYERS) and not tensors_of(answer.body)
    file = tmp_path / f"made.{'zt' if kind == 'zt2' else kind}"
    file.write_bytes(answer.body)
    assert listing(file)["objects"] == {}


def test_an_object_is_sent_whole_if_one_of_its_components_is_missing(server):
    values, indices, indptr = pattern(8), struct.pack("<2Q", 0, 2), struct.pack("<3Q", 0, 1, 2)
    # zTensor 1.2 has indices of 64 bits: the digests are those of the exported bytes.
    part = export(server, "numbers", format="zt", match="csr", have=[sha256(values), sha256(indices)])
    assert part["ZT-Left-Out"] == "0"
    whole = export(server, "numbers", format="zt", match="csr", have=[sha256(values), sha256(indices), sha256(indptr)])
    assert whole["ZT-Left-Out"] == "1"


@pytest.mark.parametrize("model", ["zstd", "seekable", "two", "tensors"])
def test_digests_are_those_of_the_decoded_bytes(server, model):
    tensors = tensors_of(export(server, model).body)
    for name, data in list(tensors.items())[:3]:
        rest = export(server, model, have=[sha256(data)])
        same = {other for other, bytes_of_other in tensors.items() if bytes_of_other == data}
        assert tensors_of(rest.body) == {other: tensors[other] for other in tensors.keys() - same}, name
        assert set(left_out_of(rest.body)) == same


def test_digests_are_those_of_the_converted_bytes(server):
    wide = sha256(HALVES.astype("<f4").tobytes())
    options = {"match": ["half", "words"], "dtype": "f32"}
    assert set(tensors_of(export(server, "numbers", **options, have=[wide]).body)) == {"words"}
    assert set(tensors_of(export(server, "numbers", **options, have=[sha256(HALVES.tobytes())]).body)) == {"half", "words"}


@pytest.mark.parametrize("kind", ["safetensors", "zt"])
def test_digests_are_those_of_the_part_that_is_cut(server, kind):
    part = numpy.split(WORDS, 4, 1)[2].tobytes()
    options = {"format": kind, "match": ["half", "words"], "shard": "2/4", "axis": ["half:0", 1]}
    assert export(server, "numbers", **options, have=[sha256(part)])["ZT-Left-Out"] == "1"
    assert export(server, "numbers", **options, have=[sha256(WORDS.tobytes())])["ZT-Left-Out"] == "0"


def test_parts_without_what_each_rank_has_make_the_model(server):
    for rank in range(4):
        half, words = (numpy.split(array, 4, axis)[rank].tobytes() for array, axis in ((HALVES, 0), (WORDS, 1)))
        options = {"match": ["half", "words"], "shard": f"{rank}/4", "axis": ["words:1"]}
        assert tensors_of(export(server, "numbers", **options).body) == {"half": half, "words": words}
        assert tensors_of(export(server, "numbers", **options, have=[sha256(half)]).body) == {"words": words}


def test_an_empty_list_is_said_in_the_file(server):
    answer = export(server, "layers", have=[])
    assert left_out_of(answer.body) == [] and answer["ZT-Left-Out"] == "0"
    assert tensors_of(answer.body) == LAYERS
    assert answer["ETag"] != export(server, "layers")["ETag"]


def test_a_file_that_was_itself_made_so_names_only_what_is_left_out_now(start_server, tmp_path):
    (tmp_path / "m.safetensors").write_bytes(safetensors(b"12345", metadata={"ztserve.left_out": '["old"]', "other": "x"}))
    answer = export(start_server(), "m", have=[sha256(b"12345")])
    assert read_header(answer.body)[0]["__metadata__"] == {"other": "x", "ztserve.left_out": '["w"]'}


def test_digests_are_found_although_the_server_did_not_know_them(start_server, tmp_path):
    large = pattern(3 << 20)
    (tmp_path / "m.zt").write_bytes(zt1({
        "plain": dense(large, digest=None), "z": zstd_dense(large[::-1], digest=None), "rest": dense(b"1234"),
    }))  # fmt: skip
    server = start_server(environment={"ZTSERVE_LIMITS_DIGEST_PIECE_BYTES": "0"})
    answer = export(server, "m", have=[sha256(large), sha256(large[::-1])])
    assert left_out_of(answer.body) == ["plain", "z"] and tensors_of(answer.body) == {"rest": b"1234"}


def test_other_requests_are_answered_while_digests_are_computed(start_server, tmp_path):
    """On one loop: a sparse file of 64 GiB takes longer to hash than the test waits."""
    with open(tmp_path / "m.npy", "wb") as file:
        head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % (64 << 30)
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117) + b"\n")
        file.truncate(128 + (64 << 30))
    (tmp_path / "small.zt").write_bytes(SOURCES["plain.zt"])
    server = start_server(None, "--threads", "1")
    with Connection(server) as waiting:
        waiting.send("QUERY", path_of("m"), JSON, json.dumps({"have": [sha256(b"x")]}).encode())
        eventually(lambda: metrics(server)["ztserve_http_requests_in_progress"] >= 2)
        assert export(server, "small", have=[sha256(b"x")]).status == 200
        waiting.http.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting.http.sock.recv(1, socket.MSG_PEEK)
    assert server.stop() == 0


def test_a_corrupt_component_is_never_taken_for_what_the_client_has(start_server, tmp_path):
    data = bytearray(zt1({"w": dense(pattern(5000)), "v": dense(b"12")}))
    at = bytes(data).index(pattern(5000))
    data[at] ^= 1
    (tmp_path / "m.zt").write_bytes(data)
    changed = bytes(data[at : at + 5000])
    for have in (pattern(5000), changed):
        assert_problem(query(start_server(), "m", have=[sha256(have)]), 500, "corrupt-component")


# --- the base ---


@pytest.mark.parametrize("quoted", [True, False, None], ids=["etag", "bare etag", "main"])
def test_a_client_with_the_current_revision_gets_no_tensors(server, quoted):
    tag = get(server, model_path("layers"), Accept_Encoding="identity")["ETag"]
    answer = export(server, "layers", base="main" if quoted is None else tag if quoted else tag.strip('"'))
    assert left_out_of(answer.body) == sorted(LAYERS) and not tensors_of(answer.body)
    assert export(server, "layers", base="main", match="*.1.*")["ZT-Left-Out"] == "1"


def test_other_revisions_are_refused_in_words(server):
    other = get(server, model_path("plain"))["ETag"]
    for base in ("v1.0", other, "0" * 40, "x" * 1000, 'main"'):
        answer = query(server, "layers", base=base)
        assert_problem(answer, 404, "revision-not-found")
        assert "use the ETag of its manifest" in answer.json()["detail"]


# --- as GET ---


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", FORMATS)
def test_ranges_of_the_same_body_make_the_file(server, method, kind):
    members = {"format": kind, "have": [sha256(LAYERS["layer.3.w"])]}
    whole = export(server, "layers", method, **members)
    middle = len(whole.body) // 3
    parts = []
    for value in (f"bytes=0-{middle - 1}", f"bytes={middle}-"):
        part = query(server, "layers", method, {"Range": value, "If-Range": whole["ETag"]}, **members)
        assert (part.status, part["ETag"]) == (206, whole["ETag"])
        assert part["Content-Range"].endswith(f"/{len(whole.body)}")
        parts.append(part.body)
    assert b"".join(parts) == whole.body
    several = query(server, "layers", method, {"Range": "bytes=0-1,9-10"}, **members)
    assert several.status == 206 and several["Content-Type"].startswith("multipart/byteranges")
    assert_problem(query(server, "layers", method, {"Range": f"bytes={len(whole.body)}-"}, **members), 416, "range-not-satisfiable")


def test_a_range_of_another_body_gets_the_whole_file(server):
    tag = export(server, "layers", have=[sha256(LAYERS["layer.3.w"])])["ETag"]
    answer = query(server, "layers", fields={"Range": "bytes=5-", "If-Range": tag}, have=[sha256(LAYERS["layer.2.w"])])
    assert answer.status == 200 and left_out_of(answer.body) == ["layer.2.w"]


@pytest.mark.parametrize("method", METHODS)
def test_conditions_hold_as_for_get(server, method):
    members = {"have": [sha256(LAYERS["layer.3.w"])], "match": "*"}
    tag = export(server, "layers", method, **members)["ETag"]
    unchanged = query(server, "layers", method, {"If-None-Match": tag}, **members)
    assert (unchanged.status, unchanged.body, unchanged["ETag"]) == (304, b"", tag)
    assert_problem(query(server, "layers", method, {"If-Match": '"other"'}, **members), 412, "precondition-failed")
    assert query(server, "layers", method, {"If-None-Match": tag}).status == 200


def test_a_tag_survives_a_restart_and_changes_with_the_file(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(zt1({name: dense(data) for name, data in LAYERS.items()}))
    members = {"have": [sha256(LAYERS["layer.3.w"])]}
    first = start_server(root)
    tag = export(first, "m", **members)["ETag"]
    assert first.stop() == 0
    second = start_server(root)
    assert query(second, "m", fields={"If-None-Match": tag}, **members).status == 304
    publish(root / "m.zt", zt1({"layer.3.w": dense(b"new"), "other": dense(LAYERS["layer.3.w"])}))
    changed = eventually(lambda: (answer := query(second, "m", fields={"If-None-Match": tag}, **members)).status == 200 and answer)
    assert left_out_of(changed.body) == ["other"]


@pytest.mark.parametrize("method", METHODS)
def test_digests_of_the_answer_can_be_asked_for(server, method):
    answer = query(server, "layers", method, {"Want-Repr-Digest": "sha-256=1"}, have=[])
    field = answer["Repr-Digest"]
    assert field.startswith("sha-256=:") and len(field) == 54


def test_every_body_has_a_tag_of_its_own(server):
    some = sha256(LAYERS["layer.0.w"])
    bodies = [
        {}, {"have": []}, {"have": [some]}, {"have": [sha256(b"")]}, {"base": "main"}, {"base": "main", "have": [some]},
        {"objects": ["layer.0.w"]}, {"objects": ["layer.0.w"], "have": []}, {"objects": ["layer.0.w", "layer.1.w"]}, {"match": "layer.0.w"},
    ]  # fmt: skip
    assert len({export(server, "layers", **body)["ETag"] for body in bodies}) == len(bodies)


# --- refusals ---


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "the body must be JSON"),
        (b"[]", "the body must be a JSON object"),
        (b"{}x", "line 1, column 3"),
        (b'{"have": [], "have": []}', "duplicate"),
        (b'{"prefix": "\xff"}', "unable to decode byte 0xff"),
        (b'{"hav": []}', "/hav: unknown member; did you mean have?"),
        (b'{"limit": 5}', "/limit: unknown member"),
        (b'{"format": "gguf"}', "/format: must be"),
        (b'{"format": "reference", "have": []}', "/format: a reference contains no tensors"),
        (b'{"format": "reference", "shard": "0/2"}', "/format: a reference contains no tensors"),
        (b'{"have": ["sha256:12"]}', "/have/0: must be"),
        (b'{"match": ["a", "["]}', "/match/1: must be a glob"),
        (b'{"match": []}', "/match: must not be empty"),
        (b'{"axis": 0}', "/axis: needs shard"),
        (b'{"match": %s' % (b"[" * 100_000), "too many values"),
    ],
)
def test_mistakes_in_a_body_are_named(server, method, body, words):
    answer = ask(server, method, path_of("layers"), JSON, body)
    assert_problem(answer, 400, "invalid-request")
    assert words in answer.json()["detail"], answer.json()["detail"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "media_type, status",
    [
        (None, 415), ("", 415), ("text/plain", 415), ("application/jsonl", 415), ("application/x-www-form-urlencoded", 415),
        ("application/json", 200), ("Application/JSON;charset=utf-8", 200), ("application/json ; x=y", 200),
    ],
)  # fmt: skip
def test_only_json_is_taken(server, method, media_type, status):
    answer = ask(server, method, path_of("layers"), {} if media_type is None else {"Content-Type": media_type}, b"{}")
    assert answer.status == status
    assert answer["Accept-Query"] == "application/json"
    if status == 415:
        assert_problem(answer, 415, "unsupported-media-type")


def test_encoded_bodies_are_refused(server):
    answer = ask(server, "QUERY", path_of("layers"), {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b"{}"))
    assert_problem(answer, 415, "unsupported-media-type")


def test_refusals_of_a_selection_are_those_of_get(server):
    assert_problem(query(server, "none"), 404, "model-not-found")
    assert_problem(query(server, "layers", prefix="x"), 404, "object-not-found")
    assert_problem(query(server, "layers", match=["*", "x"]), 422, "object-not-found")
    assert_problem(query(server, "numbers", have=[sha256(b"")]), 422, "not-representable")
    assert_problem(query(server, "layers", shard="0/4", have=[]), 422, "shape-not-divisible")


def test_parameters_belong_into_the_body(server):
    answer = ask(server, "QUERY", path_of("layers") + "?format=zt", JSON, b"{}")
    assert_problem(answer, 400, "invalid-request")
    assert ask(server, "QUERY", path_of("layers") + "?timing=1", JSON, b"{}").status in (200, 400)


def test_other_methods_name_these(server):
    for method in ("PUT", "DELETE", "PATCH"):
        answer = ask(server, method, path_of("layers"), JSON, b"{}")
        assert_problem(answer, 405, "method-not-allowed")
        assert answer["Allow"] == "GET, HEAD, POST, QUERY, OPTIONS"
        assert answer["Accept-Query"] == "application/json"
    assert ask(server, "OPTIONS", path_of("layers"))["Allow"] == "GET, HEAD, POST, QUERY, OPTIONS"
    assert get(server, target("layers", "zt"))["Accept-Query"] == "application/json"
    assert_problem(ask(server, "QUERY", model_path("layers"), JSON, b"{}"), 405, "method-not-allowed")


# --- long and slow bodies ---


def test_as_many_digests_as_the_limit_are_taken(server):
    have = [sha256(b"%d" % number) for number in range(65_535)] + [sha256(LAYERS["layer.0.w"])]
    answer = export(server, "layers", have=have)
    assert left_out_of(answer.body) == ["layer.0.w"]
    refused = query(server, "layers", have=[*have, sha256(b"")])
    assert_problem(refused, 400, "invalid-request")
    assert "/have: at most 65536" in refused.json()["detail"]


@pytest.mark.parametrize("over, status", [(0, 200), (1, 413)])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_length_of_a_body_is_limited_to_the_byte(server, over, status, chunked):
    body = b'{"prefix": "layer"}'.ljust(LIMIT + over)
    if not chunked:
        answer = ask(server, "QUERY", path_of("layers"), JSON, body)
        assert answer.status == status, answer
        return
    with connect(server) as connection:
        connection.sendall(f"QUERY {path_of('layers')} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode())
        connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert read_head(connection)[0] == status


def test_a_long_body_is_refused_before_it_is_sent(server):
    with connect(server) as connection:
        head = f"POST {path_of('layers')} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {LIMIT + 1}\r\n\r\n"
        connection.sendall(head.encode())
        assert read_head(connection)[0] == 413


def test_a_slow_body_is_taken_piece_by_piece(server):
    body = json.dumps({"have": [sha256(LAYERS["layer.0.w"])]}).encode()
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"QUERY {path_of('layers')} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        for byte in head.encode():
            connection.sendall(bytes([byte]))
        for at in range(0, len(body), 10):
            connection.sendall(body[at : at + 10])
            eventually(lambda: unread_of(connection) == 0)
        status, fields, _ = read_head(connection)
    assert (status, fields["zt-left-out"]) == (200, "1")


def test_a_body_that_never_ends_is_given_up(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(SOURCES["plain.zt"])
    server = start_server(environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "1"})
    with connect(server) as connection:
        connection.sendall(f"QUERY {path_of('m')} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n".encode())
        connection.sendall(b"{")
        assert connection.recv(1000)[9:12] in (b"408", b"")
    assert query(server, "m").status == 200


def test_a_connection_is_kept_after_a_body(server):
    body = json.dumps({"have": [sha256(LAYERS["layer.0.w"])]}).encode()
    with Connection(server) as connection:
        first = connection.ask("QUERY", path_of("layers"), JSON, body)
        socket_before = connection.http.sock
        assert connection.ask("POST", path_of("layers"), JSON, body).body == first.body
        assert socket_before is not None and connection.http.sock is socket_before


# --- rights ---


def test_reading_suffices(start_server, tmp_path):
    root = tmp_path / "root"
    (root / "team").mkdir(parents=True)
    for name in ("team/own", "secret"):
        (root / f"{name}.zt").write_bytes(zt1({"w": dense(b"12")}))
    reader = Client("reader", "read", "team/*")
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", reader))
    for method in METHODS:
        own, secret = (path_of(name) for name in ("team/own", "secret"))
        assert_problem(ask(server, method, own, JSON, b"{}"), 401, "unauthorized")
        answer = reader.ask(server, method, own, JSON, b"{}")
        assert answer.status == 200 and answer["Cache-Control"] == "private, no-cache"
        assert_problem(reader.ask(server, method, secret, JSON, b"{}"), 403, "forbidden")
        assert_problem(reader.ask(server, method, path_of("none"), JSON, b"{}"), 403, "forbidden")


def test_pages_may_use_it_as_they_may_use_get(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(SOURCES["plain.zt"])
    page = "https://page.example"
    server = start_server(environment={"ZTSERVE_CORS_ORIGINS": page})
    preflight = {"Origin": page, "Access-Control-Request-Method": "QUERY", "Access-Control-Request-Headers": "content-type"}
    allowed = ask(server, "OPTIONS", path_of("m"), preflight)
    assert "QUERY" in allowed["Access-Control-Allow-Methods"].split(", ")
    assert allowed["Access-Control-Allow-Headers"] == "content-type"
    for method in METHODS:
        answer = query(server, "m", method, {"Origin": page}, have=[])
        assert answer.status == 200 and answer["Access-Control-Allow-Origin"] == page
        assert {"Accept-Query", "ZT-Left-Out"} <= set(answer["Access-Control-Expose-Headers"].split(", "))
        foreign = query(server, "m", method, {"Origin": "https://evil.example"})
        assert foreign.status == 200 and "Access-Control-Allow-Origin" not in foreign.fields


def test_requests_are_counted_and_logged_with_their_method(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(SOURCES["plain.zt"])
    server = start_server(None, "--log-format", "json")
    for method in METHODS:
        assert query(server, "m", method).status == 200
        name = f'ztserve_http_requests_total{{route="/v1/models/{{model}}/export",method="{method}",status="200"}}'
        eventually(lambda name=name: metrics(server).get(name) == 1)
        eventually(lambda method=method: any(f'"method":"{method}"' in line for line in server.log_lines))
