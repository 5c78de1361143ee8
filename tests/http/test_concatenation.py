"""/v1/resumable with Upload-Concat: the parts of a file, sent side by side, and the final upload that is made of them."""

import json
import signal
from pathlib import Path

import pytest

import mirror
from containers import dense, pattern, zt1
from tus import PIECE, TUS, begin_patch, create, head, kept_in, metadata, offset_of, patch, uploads_of
from uploads import OTHER, SMALL, Expiring, content_of, digest_field, files_of, put
from wire import ask, at_once, assert_problem, connect, eventually, get, model_path, read_head

LARGE = zt1({"w": dense(pattern(2 << 20))})
LIMIT = 64 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


def create_part(server, length, body=b"", **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    fields = {**TUS, "Upload-Concat": "partial", "Upload-Length": length, **(PIECE if body else {}), **fields}
    fields = {key: str(value) for key, value in fields.items() if value is not None}
    answer = ask(server, "POST", "/v1/resumable", fields, body)
    assert answer.status == 201, answer
    return answer["Location"]


def send_parts(server, pieces):
    return [create_part(server, len(piece), piece) for piece in pieces]


def split(content, count):
    size = len(content) // count
    return [content[index * size : (index + 1) * size if index + 1 < count else None] for index in range(count)]


def concat(server, name, parts, body=b"", **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    fields = {**TUS, "Upload-Metadata": metadata(name), "Upload-Concat": "final;" + " ".join(parts), **fields}
    return ask(server, "POST", "/v1/resumable", {key: value for key, value in fields.items() if value}, body)


def listed(server, parts):
    ids = {part.split("/")[-1] for part in parts}
    return [one for one in uploads_of(server, None) if one["id"] in ids]


def assert_used_up(server, folder, parts, lengths):
    """A client whose answer was lost asks whether its parts are complete, and asks for the final upload again."""
    for part, length in zip(parts, lengths, strict=True):
        shown = head(server, part)
        assert shown.status == 200 and shown["Upload-Offset"] == shown["Upload-Length"] == str(length)
        assert not shown["Location"] and not shown["Upload-Expires"]
        assert not any(path.endswith("/data") for path in kept_in(folder, part))
        assert_problem(ask(server, "DELETE", part, TUS), 404, "upload-not-found")


def assert_as_before(server, parts, pieces):
    for part, piece in zip(parts, pieces, strict=True):
        shown = head(server, part)
        assert shown.status == 200 and shown["Upload-Offset"] == str(len(piece)) and shown["Upload-Expires"]


# --- parts ---


def test_a_part_needs_no_name_and_becomes_no_model(server, folder):
    part = create_part(server, len(SMALL))
    shown = head(server, part)
    assert shown["Upload-Concat"] == "partial" and shown["Upload-Offset"] == "0" and not shown["Upload-Metadata"]
    assert patch(server, part, 0, SMALL[:100]).status == 204
    whole = patch(server, part, 100, SMALL[100:])
    assert whole.status == 204 and not whole["Location"] and not whole["Repr-Digest"] and not whole["ETag"]
    shown = head(server, part)
    assert shown["Upload-Offset"] == shown["Upload-Length"] == str(len(SMALL)) and not shown["Location"]
    (entry,) = listed(server, [part])
    assert entry["kind"] == "resumable" and entry["received"] == entry["length"] == len(SMALL)
    assert ask(server, "DELETE", part, TUS).status == 204
    assert head(server, part).status == 404 and kept_in(folder, part) == [] and listed(server, [part]) == []


def test_metadata_and_conditions_of_a_part_mean_nothing(server, name):
    """Clients send the same fields with all requests of an upload."""
    assert put(server, name, OTHER).status == 201
    fields = {"Upload_Metadata": metadata(name), "If_None_Match": "*", "Repr_Digest": "sha-256=:AAAA:"}
    part = create_part(server, len(SMALL), SMALL, **fields)
    assert head(server, part)["Upload-Metadata"] == metadata(name)
    assert content_of(server, name) == pattern(1000, seed=2)
    assert concat(server, name, [part]).status == 201
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize(
    "fields",
    [
        {"Upload-Metadata": "model b"},
        {"Upload-Defer-Length": "1"},
        {"Upload-Concat": "Partial"},
        {"Upload-Concat": ""},
        {"Upload-Length": str(LIMIT + 1)},
    ],
)
def test_a_bad_part_is_refused(server, fields):
    answer = ask(server, "POST", "/v1/resumable", {**TUS, "Upload-Concat": "partial", "Upload-Length": "10", **fields}, b"")
    too_large = fields.get("Upload-Length") == str(LIMIT + 1)
    assert_problem(answer, 413 if too_large else 400, "too-large" if too_large else "invalid-request")


# --- the final upload ---


@pytest.mark.parametrize("form", ["{}", "http://{host}{}", "HTTPS://models.example/behind/a/proxy{}", "resumable/{id}"])
def test_parts_become_a_model(server, folder, name, form):
    pieces = split(SMALL, 3)
    parts = send_parts(server, pieces)
    host = f"127.0.0.1:{server.port}"
    urls = [form.format(part, id=part.split("/")[-1], host=host) for part in parts]
    assert get(server, model_path(name)).status == 404
    answer = concat(server, name, urls)
    assert answer.status == 201 and answer["Upload-Offset"] == str(len(SMALL)), answer
    assert answer["Repr-Digest"] == digest_field("sha-256", SMALL)
    assert answer["ETag"] == get(server, model_path(name))["ETag"]
    assert content_of(server, name) == pattern(1000)
    shown = head(server, answer["Location"])
    assert shown["Upload-Concat"] == "final;" + " ".join(urls)
    assert shown["Upload-Offset"] == shown["Upload-Length"] == str(len(SMALL))
    assert shown["Location"] == model_path(name) and shown["Upload-Metadata"] == metadata(name)
    assert_used_up(server, folder, parts, [len(piece) for piece in pieces])
    assert uploads_of(server, name) == [] and listed(server, parts) == []


def test_below_a_path_the_locations_of_parts_are_what_the_list_takes(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_BASE_PATH": "/below"})
    parts = send_parts(server, split(SMALL, 2))
    assert all(part.startswith("/below/v1/resumable/") for part in parts)
    answer = concat(server, name, parts)
    assert answer.status == 201 and head(server, answer["Location"])["Location"] == "/below" + model_path(name)


def test_parts_sent_side_by_side_in_pieces_become_what_was_sent(server, name):
    pieces = split(LARGE, 4)
    parts = [create_part(server, len(piece)) for piece in pieces]

    def send(part, piece):
        for at in range(0, len(piece), 100_000):
            assert patch(server, part, at, piece[at : at + 100_000]).status == 204

    at_once(*(lambda pair=pair: send(*pair) for pair in zip(parts, pieces, strict=True)))
    answer = concat(server, name, parts, Repr_Digest=digest_field("sha-512", LARGE))
    assert answer.status == 201 and answer["Repr-Digest"] == digest_field("sha-256", LARGE), answer
    assert content_of(server, name) == pattern(2 << 20)


def test_a_part_may_be_empty_and_its_length_deferred_and_a_filename_names_the_model(server, name):
    first = create_part(server, None, Upload_Defer_Length="1")
    assert patch(server, first, 0, SMALL[:100], Upload_Length="100").status == 204
    parts = [create_part(server, 0), first, create_part(server, 0), *send_parts(server, [SMALL[100:]])]
    assert concat(server, name, parts, Upload_Metadata="filename ZmluYWwtZmlsZS56dA==").status == 201
    assert content_of(server, "final-file") == pattern(1000)


def test_asked_for_again_it_is_the_same_upload(server, name):
    parts = send_parts(server, split(SMALL, 2))
    first = concat(server, name, parts, If_None_Match="*")
    again = concat(server, name, [f"http://other.example{part}" for part in parts], If_None_Match="*")
    assert first.status == again.status == 201 and first["Location"] == again["Location"]
    for field in ("ETag", "Repr-Digest", "Upload-Offset"):
        assert first[field] == again[field] != ""
    assert_problem(concat(server, name, parts[::-1]), 400, "invalid-request")
    assert_problem(concat(server, name, parts[:1]), 400, "invalid-request")
    assert_problem(concat(server, f"{name}2", parts), 400, "invalid-request")


def test_it_takes_no_bytes(server, name):
    parts = send_parts(server, [SMALL])
    with connect(server) as connection:
        connection.sendall(
            f"POST /v1/resumable HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Metadata: {metadata(name)}\r\n"
            f"Upload-Concat: final;{parts[0]}\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert read_head(connection)[0] == 400
    fields = {"Content_Type": PIECE["Content-Type"], "Transfer_Encoding": "chunked"}
    assert_problem(concat(server, name, parts, b"1\r\nx\r\n0\r\n\r\n", **fields), 400, "invalid-request")
    assert_as_before(server, parts, [SMALL])
    final = concat(server, name, parts, b"0\r\n\r\n", **fields)
    assert final.status == 201
    assert_problem(patch(server, final["Location"], len(SMALL), b"x"), 403, "forbidden")
    assert_problem(patch(server, final["Location"], len(SMALL), b""), 403, "forbidden")
    assert content_of(server, name) == pattern(1000)


BAD_LISTS = {
    "none": "final;",
    "no list": "final",
    "an unknown part": "final;/v1/resumable/" + "0" * 32,
    "another path": "final;/v1/uploads/{0}",
    "a query": "final;/v1/resumable/{0}?x",
    "a part twice": "final;/v1/resumable/{0} /v1/resumable/{1} http://x/v1/resumable/{0}",
}


@pytest.mark.parametrize("field", BAD_LISTS.values(), ids=BAD_LISTS)
def test_a_bad_list_of_parts_is_400_and_changes_nothing(server, name, field):
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)
    field = field.format(*(part.split("/")[-1] for part in parts))
    assert_problem(concat(server, name, parts, Upload_Concat=field), 400, "invalid-request")
    assert_as_before(server, parts, pieces)
    assert concat(server, name, parts).status == 201


@pytest.mark.parametrize(
    "field",
    [{"Upload_Length": "100"}, {"Upload_Defer_Length": "1"}, {"Repr_Digest": "sha-256=x"}]
    + [{"Upload_Metadata": None}, {"Upload_Metadata": metadata("..")}],
)
def test_what_a_final_upload_may_not_state_is_400(server, name, field):
    parts = send_parts(server, [SMALL])
    assert concat(server, name, parts, **field).status == 400
    assert_as_before(server, parts, [SMALL])


def test_uploads_that_are_no_parts_are_400(server, name):
    whole = create(server, name, len(SMALL))
    assert_problem(concat(server, name, [whole]), 400, "invalid-request")
    final = concat(server, name, send_parts(server, [SMALL]))
    assert_problem(concat(server, name, [final["Location"]]), 400, "invalid-request")
    assert offset_of(server, whole) == 0


@pytest.mark.parametrize("length", [None, 10_000])
def test_parts_that_are_not_complete_are_409(server, name, length):
    fields = {"Upload_Defer_Length": "1"} if length is None else {}
    parts = [*send_parts(server, [SMALL[:100]]), create_part(server, length, SMALL[100:], **fields)]
    assert_problem(concat(server, name, parts), 409, "conflict")
    assert_as_before(server, parts, [SMALL[:100], SMALL[100:]])
    assert get(server, model_path(name)).status == 404
    if length is None:
        assert patch(server, parts[1], len(SMALL) - 100, b"", Upload_Length=str(len(SMALL) - 100)).status == 204
        assert concat(server, name, parts).status == 201


def test_a_part_that_is_being_sent_is_423(server, name):
    part = create_part(server, len(SMALL))
    with begin_patch(server, part, 0, len(SMALL)) as connection:
        connection.sendall(SMALL[:100])
        eventually(lambda: listed(server, [part])[0]["received"] == 100)
        answer = concat(server, name, [part])
        assert_problem(answer, 423, "conflict")
        assert int(answer["Retry-After"]) > 0
        connection.sendall(SMALL[100:])
        assert read_head(connection)[0] == 204
    assert concat(server, name, [part]).status == 201


def test_more_than_the_limit_in_all_is_413(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(len(SMALL) - 1)})
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)
    assert_problem(concat(server, name, parts), 413, "too-large")
    assert_as_before(server, parts, pieces)


@pytest.mark.folder("the space of a root's disk")
def test_without_room_for_the_whole_it_is_507_until_there_is(tmp_path, start_server, name):
    config, root = tmp_path / "config.json", tmp_path / "root"
    root.mkdir()
    config.write_text(json.dumps({"upload": {"reserve_bytes": 0}}))
    server = start_server(root, "--writable", "--config", config)
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)

    def reload(reserve):
        before = len(server.log_lines)
        config.write_text(json.dumps({"upload": {"reserve_bytes": reserve}}))
        server.signal(signal.SIGHUP)
        eventually(lambda: any("reloaded the configuration" in line for line in server.log_lines[before:]))

    reload(1 << 60)
    assert_problem(concat(server, name, parts), 507, "insufficient-storage")
    assert_as_before(server, parts, pieces)
    reload(0)
    assert concat(server, name, parts).status == 201


def test_preconditions_hold(server, folder, name):
    parts = send_parts(server, split(SMALL, 2))
    etag = put(server, name, OTHER)["ETag"]
    assert_problem(concat(server, name, parts, If_None_Match="*"), 412, "precondition-failed")
    assert_problem(concat(server, name, parts, If_Match='"x"'), 412, "precondition-failed")
    assert_as_before(server, parts, split(SMALL, 2))
    assert concat(server, name, parts, If_Match=etag).status == 201
    assert content_of(server, name) == pattern(1000)


def test_what_cannot_be_published_leaves_its_parts(server, folder, name):
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)
    before = files_of(folder)
    assert_problem(concat(server, name, parts[::-1]), 422, "invalid-model")
    assert_problem(concat(server, name, parts, Repr_Digest=digest_field("sha-256", OTHER)), 422, "digest-mismatch")
    assert files_of(folder) == before and uploads_of(server, name) == []
    assert_as_before(server, parts, pieces)
    if not mirror.wanted:  # a bucket has no folders
        (folder / f"{name}.zt").mkdir()
        assert_problem(concat(server, name, parts), 409, "conflict")
        assert files_of(folder) == before and uploads_of(server, name) == []
        assert_as_before(server, parts, pieces)
        (folder / f"{name}.zt").rmdir()
    assert concat(server, name, parts).status == 201
    assert content_of(server, name) == pattern(1000)


def test_parts_count_toward_the_limit_of_their_client_and_the_final_upload_does_not(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"})
    parts = send_parts(server, split(SMALL, 2))
    fields = {**TUS, "Upload-Concat": "partial", "Upload-Length": "1"}
    assert_problem(ask(server, "POST", "/v1/resumable", fields, b""), 429, "rate-limited")
    assert concat(server, name, parts).status == 201
    send_parts(server, split(SMALL, 2))


def test_idle_parts_expire(tmp_path, start_server):
    expiring = Expiring(start_server, tmp_path)
    server = expiring.server
    parts = send_parts(server, split(SMALL, 2))
    expiring.expire()
    eventually(lambda: listed(server, parts) == [])
    assert all(head(server, part).status == 404 for part in parts)
    eventually(lambda: files_of(expiring.root) == [])
    assert_problem(concat(server, "m", parts), 400, "invalid-request")


def test_a_client_that_is_gone_gets_its_model(server, name):
    parts = send_parts(server, split(LARGE, 2))
    with connect(server) as connection:
        connection.sendall(
            f"POST /v1/resumable HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Metadata: {metadata(name)}\r\n"
            f"Upload-Concat: final;{' '.join(parts)}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        eventually(lambda: uploads_of(server, name) != [] or get(server, model_path(name)).status == 200)
    eventually(lambda: concat(server, name, parts).status == 201)
    assert content_of(server, name) == pattern(2 << 20)


# --- restarts ---


def test_parts_and_the_outcome_survive_a_kill(tmp_path, start_server, name):
    pieces = split(LARGE, 3)
    server = start_server(tmp_path, "--writable")
    parts = [create_part(server, len(piece), piece[:200_000]) for piece in pieces]
    server.kill()
    server = start_server(tmp_path, "--writable")
    assert len(listed(server, parts)) == 3
    for part, piece in zip(parts, pieces, strict=True):
        assert head(server, part)["Upload-Concat"] == "partial"
        assert patch(server, part, 200_000, piece[200_000:]).status == 204
    server.kill()
    server = start_server(tmp_path, "--writable")
    first = concat(server, name, parts, If_None_Match="*")
    assert first.status == 201, first
    server.kill()
    server = start_server(tmp_path, "--writable")
    assert_used_up(server, tmp_path, parts, [len(piece) for piece in pieces])
    shown = head(server, first["Location"])
    assert shown["Upload-Offset"] == str(len(LARGE)) and shown["Upload-Concat"] == "final;" + " ".join(parts)
    again = concat(server, name, parts, If_None_Match="*")
    assert again.status == 201 and again["Location"] == first["Location"]
    assert again["Repr-Digest"] == digest_field("sha-256", LARGE)
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE
    assert get(server, "/v1/uploads").json()["uploads"] == []


@pytest.mark.folder("the files of uploads in a root")
def test_killed_after_the_publication_it_is_asked_for_again(tmp_path, start_server, name):
    """The parts still have their bytes: the kill came before they were removed."""
    server = start_server(tmp_path, "--writable")
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)
    kept = {path: (tmp_path / path).read_bytes() for part in parts for path in kept_in(tmp_path, part)}
    first = concat(server, name, parts, If_None_Match="*")
    assert first.status == 201
    server.kill()
    for path, content in kept.items():
        (tmp_path / path).write_bytes(content)
    server = start_server(tmp_path, "--writable")
    assert_as_before(server, parts, pieces)
    again = concat(server, name, parts, If_None_Match="*")
    assert again.status == 201 and again["Location"] == first["Location"]


@pytest.mark.folder("the files of uploads in a root")
def test_killed_before_the_publication_its_parts_are_as_they_were(tmp_path, start_server, name):
    """What a kill leaves of a final upload, none of whose clients knows it: its place, with some of the bytes."""
    server = start_server(tmp_path, "--writable")
    pieces = split(SMALL, 2)
    parts = send_parts(server, pieces)
    final = concat(server, name, parts)
    assert final.status == 201
    place = tmp_path / ".ztserve-uploads" / final["Location"].split("/")[-1]
    left = {path.name: path.read_bytes() for path in place.iterdir()}
    assert ask(server, "DELETE", model_path(name)).status == 204
    parts = send_parts(server, pieces)
    server.kill()
    (place / "data").write_bytes(SMALL[:300])
    (place / "state").write_bytes(left["state"][:58])
    server = start_server(tmp_path, "--writable")
    assert head(server, final["Location"]).status == 404 and not place.exists()
    assert get(server, model_path(name)).status == 404
    assert_as_before(server, parts, pieces)
    assert concat(server, name, parts).status == 201
    assert content_of(server, name) == pattern(1000)


@pytest.mark.folder("hundreds of uploads, which a store takes long for")
def test_every_outcome_is_kept_and_outlives_a_restart(tmp_path, start_server, name):
    """However many there are, and without a descriptor each."""
    server = start_server(tmp_path, "--writable")
    whole = {**TUS, **PIECE, "Upload-Length": str(len(SMALL)), "Upload-Metadata": metadata(name)}
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    idle = len(list(descriptors.iterdir()))
    finished = [ask(server, "POST", "/v1/resumable", whole, SMALL)["Location"] for _ in range(150)]
    parts = send_parts(server, split(SMALL, 2))
    final = concat(server, name, parts)
    assert final.status == 201
    uploads = [*finished, *parts, final["Location"]]
    assert {head(server, upload).status for upload in uploads} == {200}
    assert concat(server, name, parts)["Location"] == final["Location"]
    # Connections of earlier requests, and files that are being hashed, may still be open.
    eventually(lambda: len(list(descriptors.iterdir())) < idle + 50)
    server.kill()
    server = start_server(tmp_path, "--writable")
    assert {head(server, upload)["Upload-Offset"] for upload in finished} == {str(len(SMALL))}
    assert {head(server, upload).status for upload in uploads} == {200}
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    eventually(lambda: len(list(descriptors.iterdir())) < idle + 50)
    assert concat(server, name, parts)["Location"] == final["Location"]
    assert content_of(server, name) == pattern(1000)
