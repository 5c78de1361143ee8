"""Files that are no models, below /files: every regular file that is not hidden, by any name."""

import json
import os
import signal
import socket
import time
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from wire import ask, assert_problem, eventually, get, head, sha256_field, talk

CONFIG = b'{"architectures": ["LlamaForCausalLM"]}\n'
BIG = pattern(300_000)
NAMES = ["READ ME.md", "a+b.txt", "_lead.jinja", "tokenizer.model", "größe ü 日本.txt", "no extension", "per%cent#hash?.txt",
         "sub/folder/a.json", "two..dots.json", "trailing."]  # fmt: skip


def write(root, name, data):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def target(name):
    return "/files/" + quote(name)


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name in NAMES:
        write(folder, f"org/model/{name}", name.encode())
    write(folder, "org/model/config.json", CONFIG)
    write(folder, "org/model/big.dat", BIG)
    write(folder, "org/model/empty.txt", b"")
    write(folder, "org/model/page.html", b"<script>alert(1)</script>")
    write(folder, "org/model/model.zt", zt1({"w": dense(pattern(64))}))
    write(folder, "top.json", b"{}")
    for name in (".hidden", ".git/config", "org/.git/config", "org/model/.cache/x.json", "org/model/ctrl\x01.txt"):
        write(folder, name, b"secret")
    return share_server(folder, "--writable")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_served(server, name):
    answer = get(server, target(f"org/model/{name}"))
    assert (answer.status, answer.body) == (200, name.encode())
    assert head(server, target(f"org/model/{name}"))["Content-Length"] == str(len(name.encode()))


def test_what_an_answer_says_of_the_file(server, folder):
    answer = get(server, target("org/model/config.json"))
    assert answer.body == CONFIG
    assert answer["Content-Type"] == "application/json"
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Cache-Control"] == "no-cache"
    assert answer["ETag"].startswith('"') and len(answer["ETag"]) == 34
    if not getattr(server, "mirror", None):
        modified = parsedate_to_datetime(answer["Last-Modified"]).timestamp()
        assert modified == int((folder / "org/model/config.json").stat().st_mtime)


def test_media_types_are_for_people_and_never_run(server):
    types = {
        "config.json": "application/json",
        "READ ME.md": "text/plain; charset=utf-8",
        "a+b.txt": "text/plain; charset=utf-8",
        "_lead.jinja": "text/plain; charset=utf-8",
        "page.html": "application/octet-stream",
        "tokenizer.model": "application/octet-stream",
        "no extension": "application/octet-stream",
    }
    for name, media_type in types.items():
        answer = get(server, target(f"org/model/{name}"))
        assert answer["Content-Type"] == media_type, name
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"].startswith("sandbox;")


def test_ranges(server):
    one = get(server, target("org/model/big.dat"), Range="bytes=1000-1999")
    assert (one.status, one.body, one["Content-Range"]) == (206, BIG[1000:2000], f"bytes 1000-1999/{len(BIG)}")
    assert get(server, target("org/model/big.dat"), Range="bytes=-5").body == BIG[-5:]
    assert get(server, target("org/model/big.dat"), Range=f"bytes={len(BIG)}-").status == 416
    several = get(server, target("org/model/big.dat"), Range="bytes=0-9,20-29")
    assert several.status == 206 and several["Content-Type"].startswith("multipart/byteranges")
    tag = one["ETag"]
    assert get(server, target("org/model/big.dat"), Range="bytes=0-9", If_Range=tag).status == 206
    assert get(server, target("org/model/big.dat"), Range="bytes=0-9", If_Range='"other"').body == BIG


def test_an_empty_file(server):
    answer = get(server, target("org/model/empty.txt"))
    assert (answer.status, answer.body, answer["Content-Length"]) == (200, b"", "0")
    assert get(server, target("org/model/empty.txt"), Range="bytes=0-0").status == 416


def test_digest_is_stated_once_it_is_found(server):
    for name, data in [("big.dat", BIG), ("config.json", CONFIG)]:
        get(server, target(f"org/model/{name}"))
        eventually(lambda name=name: head(server, target(f"org/model/{name}"))["Repr-Digest"])
        assert head(server, target(f"org/model/{name}"))["Repr-Digest"] == sha256_field(data)


def test_digest_is_computed_for_who_wants_it(server, folder):
    data = pattern(5_000_000, seed=7)
    write(folder, "org/model/wanted.dat", data)
    eventually(lambda: head(server, target("org/model/wanted.dat")).status == 200)
    answer = get(server, target("org/model/wanted.dat"), Want_Repr_Digest="sha-256=1")
    assert (answer["Repr-Digest"], answer.body) == (sha256_field(data), data)
    part = get(server, target("org/model/wanted.dat"), Want_Content_Digest="sha-256=1", Range="bytes=5-99")
    assert part["Content-Digest"] == sha256_field(data[5:100])


def test_digest_of_a_models_file_is_found_for_who_asks_for_all_of_it(tmp_path, start_server):
    model = bytes(zt1({"w": dense(pattern(64, seed=5))}))
    (tmp_path / "model.zt").write_bytes(model)
    server = start_server(tmp_path)
    time.sleep(0.2)
    assert get(server, "/files/model.zt", Range="bytes=0-7")["Repr-Digest"] is None
    time.sleep(0.2)
    assert get(server, "/files/model.zt", Range="bytes=0-7")["Repr-Digest"] is None
    assert get(server, "/files/model.zt").body == model
    assert eventually(lambda: get(server, "/files/model.zt", Range="bytes=0-7")["Repr-Digest"] == sha256_field(model))


def test_digest_of_a_models_file_is_stated_once_the_index_had_it_found(server, folder):
    data = (folder / "org/model/model.zt").read_bytes()
    get(server, "/files/org/model/", Accept="application/json")
    eventually(lambda: head(server, "/files/org/model/model.zt")["Repr-Digest"])
    assert head(server, "/files/org/model/model.zt")["Repr-Digest"] == sha256_field(data)


@pytest.mark.parametrize("path", [
    ".hidden", "org/.git/config", "org/model/ctrl%01.txt", "org/../top.json", "org/%2e%2e/top.json", "org/model/./config.json",
    "org%2Fmodel%2Fconfig.json", "org/model/config.json/more", "nowhere/config.json", "%2eztserve/x", "x" * 300,
])  # fmt: skip
def test_what_is_not_served_is_not_found(server, path):
    assert_problem(get(server, f"/files/{path}"), 404, "not-found")


@pytest.mark.folder("links, devices and FIFOs are of folders")
def test_links_lead_no_further_than_the_root_and_devices_are_not_opened(server, folder, tmp_path):
    (tmp_path / "outside.json").write_bytes(b"outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.json").write_bytes(b"outside")
    for name, to in [
        ("inside.json", "org/model/config.json"),
        ("absolute.json", folder / "org/model/config.json"),
        ("outside.json", tmp_path / "outside.json"),
        ("outside", tmp_path / "outside"),
        ("passwd.txt", "/etc/passwd"),
        ("broken.txt", "nowhere"),
        ("null.txt", "/dev/null"),
        ("loop.txt", "loop.txt"),
    ]:
        (folder / name).symlink_to(to)
    os.mkfifo(folder / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket.txt"))
    assert get(server, "/files/inside.json").body == CONFIG
    assert get(server, "/files/absolute.json").body == CONFIG
    for name in ("outside.json", "outside/x.json", "outside", "outside/", "passwd.txt", "broken.txt", "null.txt", "loop.txt", "fifo.txt", "socket.txt"):
        assert_problem(get(server, f"/files/{name}"), 404, "not-found")
    shown = {entry["name"] for entry in get(server, "/files/", Accept="application/json").json()["entries"]}
    assert {"inside.json", "absolute.json"} <= shown
    assert not shown & {"outside.json", "outside", "passwd.txt", "broken.txt", "null.txt", "loop.txt", "fifo.txt", "socket.txt"}


def test_a_replaced_file_has_another_tag_and_digest(server, folder):
    path = write(folder, "org/model/changing.json", b'{"a": 1}')
    eventually(lambda: head(server, target("org/model/changing.json")).status == 200)
    before = get(server, target("org/model/changing.json"))
    eventually(lambda: head(server, target("org/model/changing.json"))["Repr-Digest"] == sha256_field(b'{"a": 1}'))
    path.write_bytes(b'{"b": 2}')
    eventually(lambda: get(server, target("org/model/changing.json")).body == b'{"b": 2}')
    after = get(server, target("org/model/changing.json"))
    assert after["ETag"] != before["ETag"]
    assert after["Repr-Digest"] in (None, sha256_field(b'{"b": 2}'))
    eventually(lambda: head(server, target("org/model/changing.json"))["Repr-Digest"] == sha256_field(b'{"b": 2}'))
    path.unlink()
    eventually(lambda: get(server, target("org/model/changing.json")).status == 404)


@pytest.mark.folder("a file in a bucket is not written to in its place")
def test_a_file_that_is_cut_while_it_is_sent_gives_no_other_bytes(server, folder):
    data = pattern(64 << 20, seed=3)
    path = write(folder, "org/model/cut.dat", data)
    with socket.create_connection((server.host, server.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(b"GET /files/org/model/cut.dat HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = bytearray()
        while len(received) < 1 << 20:
            received += connection.recv(65536)
        with path.open("r+b") as file:
            file.write(bytes(len(data)))
        try:
            while piece := connection.recv(1 << 20):
                received += piece
        except ConnectionResetError:
            pass
    body = received.partition(b"\r\n\r\n")[2]
    assert len(body) < len(data), "the connection ends early"
    path.unlink()


# --- the server's own ---


WRITER = Client("writer", "write")


def test_other_methods_on_a_folder_are_not_allowed(server):
    assert_problem(ask(server, "PUT", "/files/org/model/", body=b""), 405, "method-not-allowed")
    assert_problem(ask(server, "DELETE", "/files/org/model/"), 405, "method-not-allowed")


@pytest.mark.folder("a bucket has none of the server's own files")
def test_own_files_in_the_root_are_withheld(tmp_path, start_server):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    tokens = write_tokens(root / "etc" / "tokens.txt", ALL, WRITER)
    write(root, "etc/other.txt", b"other")
    state = root / "state"
    (root / "etc" / "config.json").write_text(json.dumps({"root": str(root), "listen": "127.0.0.1:0", "auth": {"tokens": str(tokens)}, "state": {"dir": str(state)}}))
    server = start_server(root, "--config", root / "etc" / "config.json", "--writable")
    assert ALL.get(server, "/files/etc/other.txt").body == b"other"
    for path in ("etc/tokens.txt", "etc/config.json", "state/", "state", "state/hashes/", "etc/tokens.txt/"):
        assert_problem(ALL.get(server, f"/files/{path}"), 404, "not-found")
    before = tokens.read_bytes()
    for path in ("etc/tokens.txt", "etc/config.json", "state/new.txt"):
        assert WRITER.ask(server, "PUT", f"/files/{path}", body=b"{}").status in (400, 404, 409), path
        assert WRITER.ask(server, "DELETE", f"/files/{path}").status == 404, path
    assert WRITER.ask(server, "PUT", "/files/etc/free.txt", body=b"{}").status == 201
    assert WRITER.ask(server, "DELETE", "/files/etc/free.txt").status == 204
    assert tokens.read_bytes() == before and not (state / "new.txt").exists()
    for path, shown in [("", ["etc"]), ("etc/", ["other.txt"])]:
        entries = ALL.get(server, f"/files/{path}", {"Accept": "application/json"}).json()["entries"]
        assert [entry["name"] for entry in entries] == shown


@pytest.mark.folder("a bucket has none of the server's own files")
def test_own_files_are_withheld_whatever_leads_to_them(tmp_path, start_server):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    tokens = write_tokens(root / "etc" / "tokens.npz", ALL, Client("linked", "write", "x/*", "self/*", "absolute/*", "state*", "hard*"), WRITER)
    write(root, "etc/other.txt", b"other")
    config, key = root / "etc" / "config.json", tmp_path / "outside" / "jwks.json"
    key.write_text('{"keys": []}')
    config.write_text(json.dumps({"root": str(root), "listen": "127.0.0.1:0", "auth": {"tokens": str(tokens)}}))
    for name, to in [("x", "etc"), ("self", "."), ("absolute", root / "etc"), ("state", ".ztserve"), ("one.npz", "etc/tokens.npz")]:
        (root / name).symlink_to(to)
    os.link(tokens, root / "hard.npz")
    os.link(config, root / "etc" / "hard.json")
    server = start_server(root, "--config", config, "--writable")
    (root / "key.bin").symlink_to(".ztserve/lfs-key")
    (root / ".ztserve" / "lfs-key").stat()
    os.link(root / ".ztserve" / "lfs-key", root / "key.npz")
    before = tokens.read_bytes()
    folders = ("x", "self/etc", "self/self/x", "absolute")
    hidden = [f"{folder}/{name}" for folder in folders for name in ("tokens.npz", "config.json", "hard.json")]
    hidden += ["state/lfs-key", "self/state/lfs-key", "state/hashes", "one.npz", "hard.npz", "self/hard.npz", "key.bin", "key.npz", "etc/hard.json"]
    for path in hidden:
        assert ALL.get(server, f"/files/{path}").status == 404, path
        assert ALL.get(server, f"/v1/models/{path.partition('.')[0].replace('/', '%2F')}").status == 404, path
        assert ALL.get(server, f"/{path.partition('/')[0]}/resolve/main/{path.partition('/')[2]}").status == 404, path
    for path in [*hidden, "state/new.npz", "state/deeper/new.npz", "self/state/new.npz"]:
        assert WRITER.ask(server, "PUT", f"/files/{path}", body=b"{}").status in (400, 404, 409, 422), path
        assert WRITER.ask(server, "DELETE", f"/files/{path}").status == 404, path
    for path in ("x/tokens", "self/etc/tokens", "hard", "one", "state/new"):
        model = path.replace("/", "%2F")
        assert WRITER.ask(server, "PUT", f"/v1/models/{model}", body=bytes(zt1({"w": dense(pattern(64))}))).status in (201, 204, 400, 404, 409), path
    assert tokens.read_bytes() == before and sorted(path.name for path in (root / "etc").glob("tokens*")) in (["tokens.npz"], ["tokens.npz", "tokens.zt"])
    assert not list((root / ".ztserve").rglob("new.*")) and not (root / ".ztserve" / "deeper").exists()
    for path, shown in [("etc/", {"other.txt"}), ("x/", {"other.txt"}), ("self/etc/", {"other.txt"})]:
        entries = ALL.get(server, f"/files/{path}", {"Accept": "application/json"}).json()["entries"]
        assert {entry["name"] for entry in entries} - {"tokens.zt"} == shown
    assert ALL.get(server, "/files/state/").status == 404 and ALL.get(server, "/files/self/state/").status == 404
    assert ALL.get(server, "/files/x/other.txt").body == b"other"
    listed = {model["name"] for model in ALL.get(server, "/v1/models").json()["models"]}
    assert not {name for name in listed if "key" in name}


@pytest.mark.folder("a bucket has none of the server's own files")
def test_a_file_that_has_replaced_an_own_one_is_withheld_at_once(tmp_path, start_server):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    tokens = write_tokens(root / "etc" / "tokens.txt", ALL)
    (root / "x").symlink_to("etc")
    server = start_server(root, "--tokens", tokens)
    other = root / "etc" / "new.txt"
    other.write_bytes(tokens.read_bytes() + b"# new\n")
    assert ALL.get(server, "/files/x/new.txt").status == 200
    os.link(other, root / "hard.txt")
    other.rename(tokens)
    for path in ("etc/tokens.txt", "x/tokens.txt", "hard.txt"):
        assert ALL.get(server, f"/files/{path}").status == 404, path


@pytest.mark.folder("a bucket has none of the server's own files")
def test_own_files_that_changed_settings_name_are_withheld(tmp_path, start_server):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "x").symlink_to("etc")
    first, second = write_tokens(root / "etc" / "first.txt", ALL), write_tokens(root / "etc" / "second.txt", ALL)
    config = tmp_path / "config.json"

    def settings(tokens):
        config.write_text(json.dumps({"root": str(root), "listen": "127.0.0.1:0", "auth": {"tokens": str(tokens)}}))

    settings(first)
    server = start_server(root, "--config", config)
    assert ALL.get(server, "/files/x/second.txt").status == 200
    settings(second)
    server.signal(signal.SIGHUP)
    eventually(lambda: any("reloaded" in line for line in server.log_lines))
    for path in ("etc/first.txt", "x/first.txt", "etc/second.txt", "x/second.txt"):
        assert ALL.get(server, f"/files/{path}").status == 404, path


@pytest.mark.folder("a bucket has none of the server's own files")
def test_own_files_are_withheld_where_a_changed_link_leads(tmp_path, start_server):
    root = tmp_path / "root"
    for version in ("1", "2"):
        (root / version).mkdir(parents=True)
        write_tokens(root / version / "tokens.txt", ALL)
    (root / "now").symlink_to("1")
    server = start_server(root, "--tokens", root / "now" / "tokens.txt")
    assert ALL.get(server, "/files/2/tokens.txt").status == 200
    (root / "next").symlink_to("2")
    (root / "next").rename(root / "now")
    for path in ("1/tokens.txt", "2/tokens.txt", "now/tokens.txt"):
        assert ALL.get(server, f"/files/{path}").status == 404, path


# --- what is remembered ---


@pytest.mark.folder("over a bucket the state is in the cache's folder, which each server has for itself")
def test_digests_outlive_the_server_and_not_the_version(tmp_path, start_server):
    root = tmp_path / "root"
    path = write(root, "a.dat", pattern(2_000_000))
    write(root, "b.dat", pattern(1_000, seed=2))
    first = start_server(root)
    get(first, "/files/", Accept="application/json")
    for name in ("a.dat", "b.dat"):
        eventually(lambda name=name: head(first, f"/files/{name}")["Repr-Digest"])
    assert first.stop() == 0
    stamp = path.stat()
    with path.open("r+b") as file:
        file.write(b"another beginning")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    second = start_server(root)
    assert head(second, "/files/b.dat")["Repr-Digest"] == sha256_field(pattern(1_000, seed=2)), "known at once"
    assert head(second, "/files/a.dat")["Repr-Digest"] in (None, sha256_field(path.read_bytes()))
    eventually(lambda: head(second, "/files/a.dat")["Repr-Digest"] == sha256_field(path.read_bytes()))


# --- who may see what ---

READER = Client("reader", "read", "org/*")
EXACT = Client("exact", "read", "org/model/config")
OTHER = Client("other", "read", "else*")
ALL = Client("all", "read")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("guarded")
    write(root, "org/model/config.json", CONFIG)
    write(root, "org/model/README", b"read")
    write(root, "org/model/model.zt", zt1({"w": dense(pattern(64))}))
    write(root, "secret/config.json", CONFIG)
    write(root, "top.json", b"{}")
    return share_server(root, "--tokens", write_tokens(tmp_path_factory.mktemp("tokens") / "tokens", READER, EXACT, OTHER, ALL))


def test_a_client_sees_the_files_of_its_globs(guarded):
    def status(client, path):
        return client.ask(guarded, "GET", f"/files/{path}").status

    assert get(guarded, "/files/org/model/config.json").status == 401
    assert get(guarded, "/files/org/").status == 401
    expected = {
        "org/model/config.json": {READER, EXACT, ALL},
        "org/model/README": {READER, ALL},
        "org/model/model.zt": {READER, ALL},
        "secret/config.json": {ALL},
        "top.json": {ALL},
        "org/model/": {READER, EXACT, ALL},
        "org/": {READER, EXACT, ALL},
        "secret/": {ALL},
        "": {READER, EXACT, OTHER, ALL},
    }
    for path, who in expected.items():
        for client in (READER, EXACT, OTHER, ALL):
            assert status(client, path) == (200 if client in who else 404), (client.name, path)
    assert status(READER, "secret") == 404
    assert status(ALL, "secret") == 308
    assert status(READER, "org/model") == 308


def test_an_index_shows_a_client_what_it_may_see(guarded):
    def shown(client, path=""):
        return [e["name"] for e in client.ask(guarded, "GET", f"/files/{path}", {"Accept": "application/json"}).json()["entries"]]

    assert shown(READER) == ["org"]
    assert shown(OTHER) == []
    assert shown(ALL) == ["org", "secret", "top.json"]
    assert shown(EXACT, "org/model/") == ["config.json"]
    assert shown(READER, "org/model/") == ["README", "config.json", "model.zt"]


def test_target_with_raw_dot_segments(server):
    """Not even a client that leaves them as they are gets out."""
    for path in (b"/files/../../../etc/passwd", b"/files/org/../../etc/passwd", b"/files/..", b"/files/../"):
        answer = talk(server, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404 "), path
