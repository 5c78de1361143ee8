"""PUT and DELETE /files/{path}: any file, checked by what its name says."""

import hashlib
import os
import socket
import struct
import threading
import urllib.parse

import pytest

from containers import dense, pattern, zt1
from uploads import digest_field
from wire import Connection, ask, assert_problem, eventually, get, head

MODEL = zt1({"w": dense(pattern(16), dtype="u8")})


@pytest.fixture(scope="module")
def shared(folder, share_server):
    """For what is refused."""
    return share_server(folder, "--writable")


def put(server, path, body, **fields):
    return ask(server, "PUT", f"/files/{urllib.parse.quote(path)}", {k.replace("_", "-"): v for k, v in fields.items()}, body)


def delete(server, path, **fields):
    return ask(server, "DELETE", f"/files/{urllib.parse.quote(path)}", {k.replace("_", "-"): v for k, v in fields.items()})


def leftovers(root):
    return [path.name for path in root.iterdir() if path.name.startswith(".ztserve-upload") or path.name.startswith(".ztserve-publish")]


ANY_NAME = {
    "org/model/config.json": b'{"a": [1, 2.5e3, null, true, "\\u00fc"]}\n',
    "org/model/generation.json": b'{"temperature": NaN}',
    "org/model/README.md": b"# text\n",
    "org/model/with space+@.txt": b"x",
    "org/model/_leading": b"",
    "org/ünï/日本語.txt": b"y",
    "deep/" * 20 + "file": b"z",
    "org/model/training_args.bin": b"\x80\x04not of torch at all",
}


def test_a_file_of_any_name(tmp_path, server):
    for path, content in ANY_NAME.items():
        created = put(server, path, content)
        assert created.status == 201, created
        assert created["Location"] == f"/files/{urllib.parse.quote(path)}"
        assert created["Repr-Digest"] == digest_field("sha-256", content), path
        assert (tmp_path / path).read_bytes() == content, path
        read = get(server, created["Location"])
        assert (read.status, read.body, read["ETag"]) == (200, content, created["ETag"]), path
        assert read["Repr-Digest"] == digest_field("sha-256", content), path
        assert put(server, path, content).status == 204, path
        assert delete(server, path).status == 204, path
        assert not (tmp_path / path).exists() and get(server, created["Location"]).status == 404, path
    assert leftovers(tmp_path) == []


def test_a_long_path_that_ends_in_two_extensions_is_refused(server):
    path = "/".join(letter * 200 for letter in "abc") + ".zt.zt"
    assert_problem(put(server, path, MODEL), 400, "invalid-name")


def test_a_tensor_file_is_a_model_at_once(tmp_path, server):
    created = put(server, "org/model/weights.zt", MODEL)
    assert created.status == 201 and get(server, "/files/org/model/weights.zt")["ETag"] == created["ETag"]
    assert put(server, "org/model/weights.zt", MODEL, If_None_Match="*").status == 412
    assert put(server, "org/model/weights.zt", MODEL, If_Match=created["ETag"]).status == 204
    assert get(server, "/v1/models/org%2Fmodel%2Fweights").json()["objects"]["w"]["shape"] == [16]
    assert delete(server, "org/model/weights.zt").status == 204
    assert_problem(get(server, "/v1/models/org%2Fmodel%2Fweights"), 404, "model-not-found")


def test_files_of_one_name_lie_beside_each_other(tmp_path, server):
    header = b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    other = struct.pack("<Q", len(header)) + header + b"abcd"
    assert put(server, "m.safetensors", other).status == 201
    assert put(server, "m.zt", MODEL).status == 201
    assert (tmp_path / "m.safetensors").read_bytes() == other
    assert delete(server, "m.zt").status == 204
    assert get(server, "/files/m.safetensors").body == other


@pytest.mark.parametrize(
    "path, content",
    [
        ("a.zt", MODEL[:-1]),
        ("a.safetensors", MODEL),
        ("a.GGUF", MODEL),
        ("b.JSON", b"{"),
        ("a.json", b'{"a": 1} trailing'),
        ("a.json", b""),
        ("a.json", b'"\xff"'),
        ("a.json", b"[" * 100 + b"]" * 100),
        ("model.safetensors.index.json", b'{"weight_map": 1}'),
        ("a.pt", MODEL[:-1]),
    ],
)
def test_what_is_not_what_its_name_says(folder, shared, path, content):
    answer = put(shared, path, content)
    assert answer.status == 422, answer
    assert answer.json()["code"] in ("invalid-model", "digest-mismatch")
    assert not (folder / path).exists()
    assert leftovers(folder) == []


@pytest.mark.parametrize(
    "target", ["/files/.hidden", "/files/a/.git/config", "/files/a/..%2Fb", "/files/..", "/files/a/%2e%2e/b", "/files/a%01b", "/files/" + "x" * 300]
)
def test_paths_that_no_file_may_have(folder, shared, target):
    before = sorted(path.name for path in folder.rglob("*"))
    for method in ("PUT", "DELETE"):
        assert ask(shared, method, target, {}, b"x" if method == "PUT" else None).status in (400, 404)
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.folder("a bucket has no links")
def test_a_link_out_of_the_root_is_not_followed(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"mine")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "outside")
    server = start_server(tmp_path / "root", "--writable")
    assert put(server, "out/new", b"x").status >= 400
    assert put(server, "out/file", b"x").status >= 400
    assert delete(server, "out/file").status == 404
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["file"]
    assert (tmp_path / "outside" / "file").read_bytes() == b"mine"


def test_preconditions(server):
    assert put(server, "a.txt", b"1", If_Match='"nothing"').status == 412
    created = put(server, "a.txt", b"1", If_None_Match="*")
    assert created.status == 201
    assert put(server, "a.txt", b"2", If_None_Match="*").status == 412
    assert put(server, "a.txt", b"1", If_None_Match="*", Repr_Digest=digest_field("sha-256", b"1")).status == 204
    assert put(server, "a.txt", b"2", If_Match='"other"').status == 412
    replaced = put(server, "a.txt", b"22", If_Match=created["ETag"])
    assert replaced.status == 204 and replaced["ETag"] != created["ETag"]
    assert delete(server, "a.txt", If_Match=created["ETag"]).status == 412
    assert get(server, "/files/a.txt").body == b"22"
    assert delete(server, "a.txt", If_Match=replaced["ETag"]).status == 204
    assert delete(server, "a.txt").status == 404


@pytest.mark.parametrize("target", ["/files/a.zt", "/files/a.txt", "/v1/models/a"])
def test_of_two_equal_attempts_at_once_both_succeed(server, target):
    fields = {"If-None-Match": "*", "Repr-Digest": digest_field("sha-256", MODEL), "Content-Length": str(len(MODEL))}
    with Connection(server) as slow, Connection(server) as other:
        slow.send("PUT", target, fields)
        slow.http.send(MODEL[:10])
        # Begun before the other one has ended.
        eventually(lambda: get(server, "/v1/uploads").json()["uploads"])
        first = other.ask("PUT", target, fields, MODEL)
        assert first.status == 201
        slow.http.send(MODEL[10:])
        second = slow.receive()
        assert (second.status, second["ETag"]) == (204, first["ETag"])
        # Without what it sends being stated, the second is refused.
        slow.send("PUT", target, {name: value for name, value in fields.items() if name != "Repr-Digest"})
        slow.http.send(MODEL)
        assert slow.receive().status == 412


def test_digests_of_the_request(tmp_path, server):
    assert put(server, "a.txt", b"1", Content_Digest=digest_field("sha-256", b"1"), Repr_Digest=digest_field("sha-256", b"1")).status == 201
    assert_problem(put(server, "b.txt", b"1", Repr_Digest=digest_field("sha-256", b"2")), 422, "digest-mismatch")
    assert_problem(put(server, "b.txt", b"1", Repr_Digest="sha-256=x"), 400, "invalid-request")
    assert not (tmp_path / "b.txt").exists()


@pytest.fixture
def first_status(tmp_path, start_server):
    """The status that a PUT to /files/PATH gets before its body; of at most 1,000 bytes, and there is a file `there`."""
    config = tmp_path / "config.json"
    config.write_text('{"upload": {"max_bytes": 1000}}')
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(b"x")
    server = start_server(root, "--writable", "--config", str(config))

    def first_line(path, *fields):
        with socket.create_connection((server.host, server.port)) as connection:
            head = "\r\n".join([f"PUT {path} HTTP/1.1", "Host: x", "Expect: 100-continue", *fields])
            connection.sendall(f"{head}\r\n\r\n".encode())
            return int(connection.recv(4096).split()[1])

    return first_line


@pytest.mark.folder("a bucket is asked for a file's version behind the body")
def test_a_precondition_is_refused_before_the_body_and_before_its_length(first_status):
    assert first_status("/files/there", "Content-Length: 1001", "If-None-Match: *") == 412


def test_refusals_before_the_body(first_status):
    assert first_status("/files/a", "Content-Length: 1001") == 413
    assert first_status("/files/.a", "Content-Length: 1001") in (400, 404)
    assert first_status("/files/a", "Content-Length: 1", "Content-Encoding: gzip") == 415
    assert first_status("/files/a", "Content-Length: 1", "Content-Range: bytes 0-0/2") == 400
    assert first_status("/files/a", "Content-Length: 1") == 100


def test_the_digest_stays_with_its_bytes(tmp_path, server):
    """Another program that puts its file in the place of what was just published does not get the digest of that."""
    path, other = tmp_path / "config.json", tmp_path / ".other"

    def replace():
        while path.stat().st_ino == before and not ended.is_set():
            continue
        os.replace(other, path)

    for number in range(30):
        path.write_bytes(b"[]")
        other.write_bytes(b'{"from": "another program"}')
        before, ended = path.stat().st_ino, threading.Event()
        replacing = threading.Thread(target=replace)
        replacing.start()
        assert put(server, "config.json", b'{"put": %d}' % number).status in (201, 204)
        ended.set()
        replacing.join()
        found = get(server, "/files/config.json")
        assert found["Repr-Digest"] in (None, digest_field("sha-256", found.body)), found


def test_a_body_that_is_cut_off_leaves_nothing(tmp_path, server):
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"PUT /files/a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    assert eventually(lambda: leftovers(tmp_path) == [])
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.folder("a folder in the place of a file")
def test_a_name_that_is_taken_by_something_else(tmp_path, server):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    assert put(server, "folder", b"x").status == 409
    assert put(server, "file/below", b"x").status in (409, 404)
    assert delete(server, "folder").status == 404
    assert (tmp_path / "folder").is_dir() and (tmp_path / "file").read_bytes() == b"x"


def test_a_server_that_only_reads(tmp_path, start_server):
    (tmp_path / "there").write_bytes(b"x")
    server = start_server(tmp_path)
    assert_problem(put(server, "a", b"x"), 403, "read-only")
    assert_problem(delete(server, "there"), 403, "read-only")


def test_scopes_and_globs(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    tokens = tmp_path / "tokens"
    sha = hashlib.sha256
    tokens.write_text(f"w write {sha(b'w').hexdigest()} org/mine/*\nr read {sha(b'r').hexdigest()} org/*\n")
    server = start_server(root, "--writable", "--tokens", str(tokens))
    assert put(server, "org/mine/config.json", b"{}").status == 401
    assert put(server, "org/mine/config.json", b"{}", Authorization="Bearer r").status == 403
    assert put(server, "org/mine/config.json", b"{}", Authorization="Bearer w").status == 201
    assert put(server, "org/other/config.json", b"{}", Authorization="Bearer w").status == 403
    assert delete(server, "org/other/config.json", Authorization="Bearer w").status == 403
    assert delete(server, "org/mine/config.json", Authorization="Bearer r").status == 403
    assert delete(server, "org/mine/config.json", Authorization="Bearer w").status == 204


def test_the_hub_sees_it_at_once(server):
    for i in range(5):
        assert put(server, "org/model/config.json", b'{"i": %d}' % i).status in (201, 204)
        told = get(server, "/api/models/org/model").json()
        answer = get(server, f"/org/model/resolve/{told['sha']}/config.json")
        assert (answer.status, answer.body) == (200, b'{"i": %d}' % i)
        described = head(server, f"/org/model/resolve/{told['sha']}/config.json")
        assert described["ETag"] == f'"{hashlib.sha256(answer.body).hexdigest()}"'
