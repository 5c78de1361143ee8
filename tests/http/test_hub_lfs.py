"""Files that are sent before the commit that names them (Git LFS): what each request gets, without any client of the Hub."""

import re

import pytest

from clients import Client, write_tokens
from containers import dense, pattern, zt1
from lfs import (
    REPO,
    address,
    assert_refused,
    batch,
    commit,
    entry,
    files_of,
    inline,
    lfs_file,
    objects_of,
    oid_of,
    places,
    post,
    put,
    removed,
    stage,
    staged,
    target_of,
)
from uploads import Expiring, begin_put
from wire import at_once, ask, connect, eventually, get, read_until_closed

SMALL = b"the bytes of a file\n"
LARGE = pattern(3 << 20, seed=5)
MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


# --- what works ---


@pytest.mark.parametrize("content", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
def test_an_object_is_sent_and_named_by_a_commit(tmp_path, server, content):
    stage(server, content)
    assert files_of(tmp_path) == {}
    answer = commit(server, lfs_file("sub/f.bin.x", content))
    assert answer.status == 200, answer
    assert files_of(tmp_path) == {"sub/f.bin.x": content}
    read = get(server, f"/{REPO}/resolve/{answer.json()['commitOid']}/sub/f.bin.x")
    assert (read.status, read.body, read["ETag"]) == (200, content, f'"{oid_of(content)}"')
    assert eventually(lambda: places(tmp_path) == [])


def test_addresses_are_absolute(server):
    (only,) = objects_of(batch(server, entry(SMALL)))
    upload, verify = only["actions"]["upload"], only["actions"]["verify"]
    assert upload["header"] == {}
    assert upload["href"].startswith(f"http://{server.host}:{server.port}/{REPO}.git/info/lfs/objects/{oid_of(SMALL)}?")
    assert verify["href"] == f"http://{server.host}:{server.port}/{REPO}.git/info/lfs/verify"


def test_addresses_name_the_base_path_and_the_proxy(tmp_path, start_server):
    environment = {"ZTSERVE_BASE_PATH": "/hub", "ZTSERVE_TRUSTED_PROXIES": "127.0.0.1"}
    server = start_server(tmp_path, "--writable", environment=environment)
    fields = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "models.example"}
    (only,) = objects_of(batch(server, entry(SMALL), fields=fields))
    href = only["actions"]["upload"]["href"]
    assert href.startswith(f"https://models.example/hub/{REPO}.git/info/lfs/objects/")
    assert put(server, target_of(href), SMALL).status == 200
    assert put(server, target_of(href).removeprefix("/hub"), SMALL).status == 200


@pytest.mark.parametrize("repo", ["name", "a.b/c_d-e"])
def test_repositories_have_one_part_or_two(tmp_path, server, repo):
    stage(server, SMALL, repo=repo)
    assert commit(server, lfs_file("f", SMALL), repo=repo).status == 200
    assert files_of(tmp_path, repo) == {"f": SMALL}


@pytest.fixture(scope="module")
def shared(folder, share_server):
    """For what leaves nothing behind."""
    return share_server(folder, "--writable")


@pytest.mark.parametrize(
    "algorithm, transfers", [("sha256", ["basic"]), ("sha_256", ["basic", "multipart", "xet"]), (None, ["xet"]), ("sha256", [])]
)
def test_basic_is_chosen_whatever_else_is_offered(shared, algorithm, transfers):
    answer = batch(shared, entry(SMALL), transfers=transfers, hash_algo=algorithm)
    assert objects_of(answer)[0]["actions"]["upload"]["href"]
    assert answer.json()["transfer"] == "basic"
    assert answer["Cache-Control"] == "no-store"


def test_what_is_there_is_not_asked_for(tmp_path, server):
    assert address(server, SMALL) is not None
    stage(server, SMALL)
    assert address(server, SMALL) is None
    assert address(server, SMALL, repo="org/other") is not None
    assert commit(server, lfs_file("f", SMALL)).status == 200
    assert address(server, SMALL) is None
    assert commit(server, removed("f")).status == 200
    assert address(server, SMALL) is not None


def test_one_object_has_several_paths(tmp_path, server):
    stage(server, LARGE)
    assert commit(server, *(lfs_file(path, LARGE) for path in ("z", "a", "m/n"))).status == 200
    assert files_of(tmp_path) == {"z": LARGE, "a": LARGE, "m/n": LARGE}
    assert eventually(lambda: places(tmp_path) == [])


def test_the_same_commit_again_changes_nothing(tmp_path, server):
    stage(server, SMALL)
    first = commit(server, lfs_file("f", SMALL), inline("g", b"1"))
    second = commit(server, lfs_file("f", SMALL), inline("g", b"1"))
    assert (first.status, second.status) == (200, 200)
    assert first.json()["commitOid"] == second.json()["commitOid"]


def test_a_model_is_served_as_one(tmp_path, server):
    stage(server, MODEL)
    assert commit(server, lfs_file("model.zt", MODEL)).status == 200
    assert get(server, "/v1/models/org%2Fmodel%2Fmodel/objects/w/data").body == pattern(64)


def test_an_object_may_be_sent_again_and_twice_at_once(tmp_path, server):
    target = address(server, LARGE)
    assert at_once(*[lambda: put(server, target, LARGE).status] * 3) == [200] * 3
    assert put(server, target, LARGE).status == 200
    assert commit(server, lfs_file("f", LARGE)).status == 200
    assert files_of(tmp_path) == {"f": LARGE}
    assert eventually(lambda: places(tmp_path) == [])


def answer_to(server, target, framing, body=b""):
    """To a PUT with this framing field, all of whose answer is read before anything more is sent."""
    with connect(server) as connection:
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\n{framing}\r\nConnection: close\r\n\r\n".encode() + body)
        return read_until_closed(connection)


def put_but_the_last_byte(server, target, content):
    connection = begin_put(server, target, len(content))
    connection.sendall(content[:-1])
    return connection


def chunked(*pieces):
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


def test_a_body_may_come_in_chunks(tmp_path, server):
    answer = answer_to(server, address(server, SMALL), "Transfer-Encoding: chunked", chunked(SMALL[:5], SMALL[5:]))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert commit(server, lfs_file("f", SMALL)).status == 200


def test_verification_says_what_has_arrived(server):
    path = f"/{REPO}.git/info/lfs/verify"
    assert_refused(post(server, path, entry(SMALL)), 404, "no object")
    stage(server, SMALL)
    assert post(server, path, entry(SMALL)).status == 200
    assert_refused(post(server, path, {**entry(SMALL), "size": 3}), 422, f"{len(SMALL)} bytes, not 3")
    assert_refused(post(server, "/org/other.git/info/lfs/verify", entry(SMALL)), 404)
    assert commit(server, lfs_file("f", SMALL)).status == 200
    assert post(server, path, entry(SMALL)).status == 200
    for wrong in ({}, {"oid": "x", "size": 1}, {"oid": oid_of(SMALL)}, {**entry(SMALL), "size": -1}):
        assert_refused(post(server, path, wrong), 400)


def test_what_is_staged_is_listed(server):
    stage(server, SMALL)
    (only,) = staged(server)
    assert (only["kind"], only["model"], only["received"]) == ("staged", REPO, len(SMALL))
    assert "expires" in only


# --- restarts ---


def test_an_object_survives_a_kill(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    stage(server, LARGE)
    server.kill()
    server = start_server(tmp_path, "--writable")
    assert address(server, LARGE) is None
    assert commit(server, lfs_file("f", LARGE)).status == 200
    assert files_of(tmp_path) == {"f": LARGE}
    assert eventually(lambda: places(tmp_path) == [])


@pytest.mark.folder("the key lies in the state folder of a root")
def test_addresses_hold_as_long_as_the_key_which_its_owner_alone_can_read(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    key = tmp_path / ".ztserve" / "lfs-key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    target = address(server, SMALL)
    server.stop()
    server = start_server(tmp_path, "--writable")
    assert put(server, target, SMALL).status == 200
    server.stop()
    key.write_bytes(b"short")
    server = start_server(tmp_path, "--writable")
    assert_refused(put(server, target, SMALL), 403, "not signed by this server")
    assert put(server, address(server, LARGE), LARGE).status == 200


def test_a_body_that_a_kill_cuts_leaves_nothing(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    target = address(server, LARGE)
    with put_but_the_last_byte(server, target, LARGE):
        assert eventually(lambda: staged(server))
        server.kill()
    server = start_server(tmp_path, "--writable")
    assert eventually(lambda: places(tmp_path) == [])
    assert address(server, LARGE) is not None
    assert_refused(commit(server, lfs_file("f", LARGE)), 400, "line 2: f: no object with this oid")
    assert files_of(tmp_path) == {}


def test_a_body_that_its_client_cuts_leaves_nothing(tmp_path, server):
    target = address(server, LARGE)
    with put_but_the_last_byte(server, target, LARGE):
        assert eventually(lambda: staged(server))
    assert eventually(lambda: staged(server) == [] and places(tmp_path) == [])


def test_an_object_expires(tmp_path, start_server):
    expiring = Expiring(start_server, tmp_path)
    server = expiring.server
    stage(server, SMALL)
    expiring.expire()
    assert eventually(lambda: staged(server) == [] and places(expiring.root) == [])
    assert_refused(commit(server, lfs_file("f", SMALL)), 400, "has expired")


# --- addresses that are no permits ---


def change(target, **parameters):
    for name, value in parameters.items():
        target = re.sub(rf"\b{name}=[^&]*", f"{name}={value}", target)
    return target


@pytest.mark.parametrize(
    "forge",
    [
        lambda target: change(target, signature="0" * 64),
        lambda target: re.sub(r"&signature=.*", "", target),
        lambda target: target[:-1] + ("0" if target[-1] != "0" else "1"),
        lambda target: change(target, size=str(len(SMALL) + 1)),
        lambda target: change(target, expires="99999999999"),
        lambda target: change(target, client="61"),
        lambda target: change(target, client="00" * 300),
        lambda target: change(target, size="1" * 30),
        lambda target: target.replace(REPO, "org/other"),
        lambda target: target.replace(oid_of(SMALL), oid_of(LARGE)),
        lambda target: target.replace(oid_of(SMALL), oid_of(SMALL).upper()),
        lambda target: target.replace(oid_of(SMALL), "x"),
    ],
)
def test_a_forged_address_is_refused_before_the_body(folder, shared, forge):
    target = forge(address(shared, SMALL))
    assert answer_to(shared, target, f"Content-Length: {len(SMALL)}").startswith(b"HTTP/1.1 403 ")
    assert places(folder) == []


def test_an_address_is_no_permit_for_long(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_EXPIRE_S": "1"})
    target = address(server, SMALL)
    assert eventually(lambda: put(server, target, SMALL).status == 403)
    assert_refused(put(server, target, SMALL), 403, "has expired")


def test_an_address_of_another_server_is_none(tmp_path, start_server):
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
    one, other = (start_server(root, "--writable") for root in (one, other))
    assert_refused(put(other, address(one, SMALL), SMALL), 403, "not signed by this server")


# --- bodies that are not what they are called ---


@pytest.mark.parametrize(
    "framing, body",
    [(f"Content-Length: {length}", b"") for length in (0, len(SMALL) - 1, len(SMALL) + 1, 1 << 40)]
    + [("Transfer-Encoding: chunked", chunked(content)) for content in (SMALL[:-1], SMALL + b"x", b"")],
)
def test_another_length_is_refused(folder, shared, framing, body):
    """Before the body, if it is stated."""
    answer = answer_to(shared, address(shared, SMALL), framing, body)
    assert answer.startswith(b"HTTP/1.1 422 ") and b"this address is for 20 bytes" in answer
    assert eventually(lambda: places(folder) == [])


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_other_bytes_are_refused(tmp_path, server, content):
    target = address(server, content)
    assert_refused(put(server, target, content[:-1] + b"!"), 422, "does not match the SHA-256")
    assert eventually(lambda: places(tmp_path) == [])
    assert_refused(commit(server, lfs_file("f", content)), 400)
    assert put(server, target, content).status == 200


@pytest.mark.parametrize(
    "fields, status",
    [
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Range": "bytes 0-1/2"}, 400),
        ({"Content-Digest": "sha-256=:x:"}, 400),
        ({"Repr-Digest": "sha-256=:" + "A" * 43 + "=:"}, 422),
    ],
)
def test_forms_that_no_upload_may_have(folder, shared, fields, status):
    assert put(shared, address(shared, SMALL), SMALL, **fields).status == status
    assert eventually(lambda: places(folder) == [])


def test_no_body_at_all_is_refused(shared):
    assert ask(shared, "PUT", address(shared, SMALL)).status == 411


def test_an_object_is_no_larger_than_the_limit(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(len(SMALL) - 1)})
    (only,) = objects_of(batch(server, entry(SMALL)))
    assert "actions" not in only and only["error"]["code"] == 413


def test_a_disk_that_is_too_small_is_known_before_the_body(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(1 << 52)})
    size = 1 << 52
    (only,) = objects_of(batch(server, {"oid": oid_of(b"much"), "size": size}))
    target = target_of(only["actions"]["upload"]["href"])
    assert answer_to(server, target, f"Content-Length: {size}").startswith(b"HTTP/1.1 507 ")
    assert eventually(lambda: places(tmp_path) == [])


def test_a_client_has_only_so_many_objects(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_HUB_STAGED_PER_CLIENT": "2"})
    for content in (b"1", b"2"):
        stage(server, content)
    assert_refused(put(server, address(server, b"3"), b"3"), 429, "hub.staged_per_client")
    assert commit(server, lfs_file("f", b"1")).status == 200
    stage(server, b"3")


def test_a_client_sends_only_so_many_at_once(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "1"})
    first, second = address(server, LARGE), address(server, SMALL)
    with put_but_the_last_byte(server, first, LARGE):
        assert eventually(lambda: staged(server))
        assert_refused(put(server, second, SMALL), 429, "upload.open_per_client")


# --- batches ---


@pytest.mark.parametrize(
    "members, status, word",
    [
        ({"operation": "download"}, 501, "/resolve/main/"),
        ({"operation": "delete"}, 501, ""),
        ({"operation": 1}, 400, "operation"),
        ({"hash_algo": "sha1"}, 400, "SHA-256"),
        ({"objects": {}}, 400, "needs a list"),
        ({"objects": ["x"]}, 400, "object 0"),
        ({"objects": [{"oid": "A" * 64, "size": 1}]}, 400, "object 0"),
        ({"objects": [entry(SMALL), {"oid": oid_of(SMALL)}]}, 400, "object 1"),
        ({"objects": [entry(SMALL)] * 1001}, 400, "at most 1000"),
    ],
)
def test_batches_that_make_no_sense(shared, members, status, word):
    assert_refused(batch(shared, **members), status, word)


def test_batches_that_are_no_json(shared):
    path = f"/{REPO}.git/info/lfs/objects/batch"
    for body in (b"", b"[]", b"{", b"\xff"):
        assert ask(shared, "POST", path, {}, body).status == 400
    assert ask(shared, "POST", path, {}, b" " * (5 << 20)).status == 413


def test_an_empty_batch_and_the_same_object_twice(server):
    assert objects_of(batch(server)) == []
    stage(server, SMALL)
    assert ["actions" in one for one in objects_of(batch(server, entry(SMALL), entry(LARGE), entry(SMALL)))].count(True) == 1


def test_a_wrong_size_of_what_is_there_is_an_error(server):
    stage(server, SMALL)
    (only,) = objects_of(batch(server, {**entry(SMALL), "size": 3}))
    assert only["error"]["code"] == 422 and "actions" not in only


@pytest.mark.parametrize("path", ["info/lfs/objects/batch", "info/lfs/verify"])
@pytest.mark.parametrize("repo", ["org/-x", "org/a..b", "org/x.git", "..", "org/.git"])
def test_repositories_that_cannot_be_named(shared, repo, path):
    answer = post(shared, f"/{repo}.git/{path}", {"operation": "upload", "objects": []})
    assert answer.status in (400, 404), answer


def test_nothing_is_taken_where_nothing_is_written(tmp_path, start_server):
    server = start_server(tmp_path)
    assert batch(server, entry(SMALL)).status == 403
    assert put(server, f"/{REPO}.git/info/lfs/objects/{oid_of(SMALL)}", SMALL).status == 403
    assert post(server, f"/{REPO}.git/info/lfs/verify", entry(SMALL)).status == 403


def test_reading_by_lfs_is_not_there(shared):
    assert get(shared, f"/{REPO}.git/info/lfs/objects/{oid_of(SMALL)}").status == 405
    assert get(shared, f"/{REPO}.git/info/lfs/locks").status == 404


# --- commits ---


def test_an_unknown_object_is_refused_by_its_line_and_nothing_changes(tmp_path, server):
    stage(server, SMALL)
    answer = commit(server, lfs_file("a", SMALL), inline("b", b"1"), lfs_file("c", LARGE))
    assert_refused(answer, 400, "line 4: c: no object with this oid was sent to this server")
    assert files_of(tmp_path) == {}
    assert commit(server, lfs_file("a", SMALL)).status == 200


def test_an_object_of_another_repository_is_unknown(tmp_path, server):
    stage(server, SMALL, repo="org/other")
    assert_refused(commit(server, lfs_file("a", SMALL)), 400, "line 2")
    assert commit(server, lfs_file("a", SMALL), repo="org/other").status == 200
    assert_refused(commit(server, lfs_file("a", SMALL)), 400, "line 2")


@pytest.mark.parametrize(
    "members, word",
    [
        ({"algo": "sha1"}, "algo"),
        ({"oid": oid_of(SMALL).upper()}, "oid"),
        ({"oid": 5}, "oid"),
        ({"size": "20"}, "size"),
        ({"path": None}, "path"),
        ({"path": "../a"}, "path"),
        ({"content": "aGk="}, "only a file may have content"),
    ],
)
def test_lines_that_name_no_object(folder, shared, members, word):
    answer = commit(shared, inline("b", b"1"), lfs_file("a", SMALL, **members))
    assert answer.status in (400, 422)
    assert_refused(answer, answer.status, "line 3", word)
    assert files_of(folder) == {}


@pytest.mark.parametrize("path, content", [("model.zt", SMALL), ("model.safetensors", SMALL), ("config.json", SMALL)])
def test_what_a_name_says_is_checked(tmp_path, server, path, content):
    stage(server, content)
    answer = commit(server, inline("b", b"1"), lfs_file(path, content))
    assert_refused(answer, 422, "line 3")
    assert files_of(tmp_path) == {}
    assert commit(server, lfs_file("other.txt", content)).status == 200


@pytest.mark.parametrize("attempt", range(4))
def test_commits_of_one_object_at_once(tmp_path, server, attempt):
    stage(server, LARGE)
    paths = "abcdef"
    answers = at_once(*(lambda path=path: commit(server, lfs_file(path, LARGE)) for path in paths))
    assert {answer.status for answer in answers} <= {200, 409}
    for path in paths:
        assert commit(server, lfs_file(path, LARGE)).status == 200
    assert files_of(tmp_path) == dict.fromkeys(paths, LARGE)


# --- preupload ---


def test_large_files_are_to_be_sent_before(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_HUB_REGULAR_BYTES": "1000"})
    stage(server, LARGE)
    assert commit(server, lfs_file("there", LARGE)).status == 200
    files = [{"path": "s", "size": 1000}, {"path": "l", "size": 1001}, {"path": "there", "size": len(LARGE)}]
    told = post(server, f"/api/models/{REPO}/preupload/main", {"files": files}).json()["files"]
    assert [one["uploadMode"] for one in told] == ["regular", "lfs", "lfs"]
    assert "oid" not in told[1] and told[2]["oid"] == oid_of(LARGE)


# --- tokens ---

WRITER = Client("writer", "write", "org/*")
READER = Client("reader", "read", "org/*")
STRANGER = Client("stranger", "write", "team/*")


@pytest.fixture
def guarded(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    return start_server(root, "--writable", "--tokens", write_tokens(tmp_path / "tokens", WRITER, READER, STRANGER))


def test_the_address_alone_is_the_permit_for_the_bytes(guarded):
    assert batch(guarded, entry(SMALL)).status == 401
    assert batch(guarded, entry(SMALL), fields=READER.fields).status == 403
    assert batch(guarded, entry(SMALL), fields=STRANGER.fields).status == 403
    target = address(guarded, SMALL, fields=WRITER.fields)
    assert put(guarded, target, SMALL).status == 200
    assert put(guarded, change(target, signature="0" * 64), SMALL, **WRITER.fields).status == 403
    assert post(guarded, f"/{REPO}.git/info/lfs/verify", entry(SMALL)).status == 401
    assert post(guarded, f"/{REPO}.git/info/lfs/verify", entry(SMALL), **STRANGER.fields).status == 403
    assert post(guarded, f"/{REPO}.git/info/lfs/verify", entry(SMALL), **WRITER.fields).status == 200
    assert commit(guarded, lfs_file("f", SMALL)).status == 401
    assert commit(guarded, lfs_file("f", SMALL), fields=WRITER.fields).status == 200


def test_objects_count_toward_the_limit_of_who_asked_for_the_address(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    other = Client("other", "write", "org/*")
    tokens = write_tokens(tmp_path / "tokens", WRITER, other)
    server = start_server(tmp_path / "root", "--writable", "--tokens", tokens, environment={"ZTSERVE_HUB_STAGED_PER_CLIENT": "1"})
    stage(server, b"1", fields=WRITER.fields)
    assert put(server, address(server, b"2", fields=WRITER.fields), b"2").status == 429
    stage(server, b"2", fields=other.fields)
