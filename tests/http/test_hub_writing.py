"""Uploading as the Hub's clients do: what each of their requests gets, without any of them."""

import base64
import hashlib
import json
import os
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from wire import ask, connect, eventually, get, read_until_closed

REPO = "org/model"
MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


@pytest.fixture
def server(tmp_path, start_server):
    return start_server(tmp_path, "--writable")


def inline(path, content):
    return {"key": "file", "value": {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}}


def header(**members):
    return {"key": "header", "value": {"summary": "s", "description": "", **members}}


def removed(path):
    return {"key": "deletedFile", "value": {"path": path}}


def removed_folder(path):
    return {"key": "deletedFolder", "value": {"path": path}}


def body_of(*lines):
    return b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)


def commit(server, *lines, repo=REPO, revision="main", **fields):
    fields.setdefault("Content-Type", "application/x-ndjson")
    return ask(server, "POST", f"/api/models/{repo}/commit/{revision}", fields, body_of(*lines))


def post(server, path, body, **fields):
    return ask(server, "POST", path, {"Content-Type": "application/json", **fields}, json.dumps(body).encode())


def files_of(root, repo=REPO):
    folder = root / repo
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def leftovers(root):
    kept = root / ".ztserve-uploads"
    return list(kept.iterdir()) if kept.exists() else []


def assert_refused(answer, status, *words):
    assert answer.status == status, (answer.status, answer.body)
    message = answer["X-Error-Message"]
    for word in words:
        assert word in message, message
    assert answer.json()["error"]


# --- what works ---


def test_a_commit_of_several_files(tmp_path, server):
    files = {"config.json": b'{"a": 1}', "README.md": b"# x\n", "empty.txt": b"", "sub/model.zt": MODEL, "b": pattern(200_000)}
    answer = commit(server, header(), *(inline(path, content) for path, content in files.items()))
    assert answer.status == 200, answer.body
    told = answer.json()
    assert told["success"] is True and told["pullRequestUrl"] is None
    assert answer["X-Repo-Commit"] == told["commitOid"]
    assert told["commitUrl"].endswith(f"/{REPO}/commit/{told['commitOid']}")
    assert told["commitUrl"].startswith("http://")
    assert files_of(tmp_path) == files
    for path, content in files.items():
        read = get(server, f"/{REPO}/resolve/{told['commitOid']}/{path}")
        assert (read.status, read.body) == (200, content)
        assert read["ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert get(server, f"/api/models/{REPO}").json()["sha"] == told["commitOid"]
    assert eventually(lambda: leftovers(tmp_path) == [])


def test_files_are_replaced_and_removed(tmp_path, server):
    first = commit(server, header(), inline("a", b"1"), inline("b", b"2"), inline("d/x", b"3"), inline("d/e/y", b"4"), inline("dd", b"5"))
    assert first.status == 200, first.body
    parent = first.json()["commitOid"]
    second = commit(server, header(parentCommit=parent), inline("a", b"new"), removed("b"), removed_folder("d/"))
    assert second.status == 200, second.body
    assert files_of(tmp_path) == {"a": b"new", "dd": b"5"}
    assert second.json()["commitOid"] != parent


def test_the_last_file_may_be_removed(tmp_path, server):
    assert commit(server, header(), inline("a", b"1")).status == 200
    answer = commit(server, header(), removed("a"))
    assert answer.status == 200, answer.body
    assert len(answer.json()["commitOid"]) == 40
    assert files_of(tmp_path) == {}


def object_of(path):
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": "0" * 64, "size": 3}}


def test_files_of_git_are_left_out(tmp_path, server):
    git = [".gitattributes", "sub/.gitattributes", ".gitignore", "a b/c/.gitignore"]
    sent = [line for path in git for line in (inline(path, b"*.bin lfs\n"), object_of(path), removed(path))]
    answer = commit(server, header(), inline("f", b"first"), *sent, inline("g", b"2"), *sent, inline("h", b"the third"))
    assert answer.status == 200, answer.body
    assert files_of(tmp_path) == {"f": b"first", "g": b"2", "h": b"the third"}
    assert not (tmp_path / REPO / "sub").exists()
    assert eventually(lambda: leftovers(tmp_path) == [])


def test_a_commit_of_nothing_but_files_of_git(tmp_path, server):
    answer = commit(server, header(), inline(".gitattributes", b"x"))
    assert answer.status == 200, answer.body
    assert not (tmp_path / REPO).exists()
    first = commit(server, header(), inline("f", b"1")).json()["commitOid"]
    assert commit(server, header(), removed(".gitignore")).json()["commitOid"] == first


@pytest.mark.parametrize(
    "line",
    [
        b'{"value":{"content":"aGk=","encoding":"base64","path":"f"},"key":"file"}',
        b'{"value":{"encoding":"base64","path":"f","content":"aGk="},"key":"file"}',
        b'  { "key" : "file" , "value" : { "path" : "f" , "content" : "aGk=" , "encoding" : "base64" } } \r',
        b'{"key":"file","value":{"path":"f","x":["content",{"content":"?"}],"content":"\\u0061Gk\\u003d","encoding":"base64"}}',
    ],
)
def test_members_in_any_order(tmp_path, server, line):
    answer = commit(server, header(), line)
    assert answer.status == 200, answer.body
    assert files_of(tmp_path) == {"f": b"hi"}


@pytest.mark.parametrize("length", range(7))
def test_base64_of_any_length(tmp_path, server, length):
    content = bytes((byte * 37 + 255) % 256 for byte in range(length))
    assert commit(server, header(), inline("f", content)).status == 200
    assert files_of(tmp_path) == {"f": content}


def test_slashes_in_the_content_may_be_escaped(tmp_path, server):
    line = json.dumps(inline("f", b"\xff\xff\xff\xff\xff\xff")).replace("/", "\\/").encode()
    assert b"\\/" in line
    assert commit(server, header(), line).status == 200
    assert files_of(tmp_path) == {"f": b"\xff" * 6}


def test_a_body_that_comes_byte_by_byte(tmp_path, server):
    files = {"config.json": b'{"a": [1, 2]}', "model.zt": MODEL, "t": b"\xfb\xff" * 50}
    body = body_of(header(), *(inline(path, content) for path, content in files.items())) + b"\n"
    with connect(server) as connection:
        connection.sendall(
            f"POST /api/models/{REPO}/commit/main HTTP/1.1\r\nHost: {connection.getpeername()[0]}\r\n"
            "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        for byte in body:
            connection.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        answer = read_until_closed(connection)
    assert b" 200 " in answer.split(b"\r\n")[0], answer
    assert files_of(tmp_path) == files


# --- what is refused: nothing changes, and the line is named ---

KEEP = {"kept.json": b"{}", "d/inner": b"x"}

REFUSED = {
    "no JSON": ([b"{"], 400, ["line 2"]),
    "no object": ([b"[1]"], 400, ["line 2"]),
    "a line break in a content": ([b'{"key":"file","value":{"path":"f","content":"aGk', b'="}}'], 400, ["line 2"]),
    "no key": ([{"value": {}}], 400, ["line 2"]),
    "another key": ([{"key": "copyFile", "value": {"path": "f"}}], 400, ["line 2", "key"]),
    "no value": ([{"key": "file"}], 400, ["line 2"]),
    "no path": ([{"key": "file", "value": {"content": "", "encoding": "base64"}}], 400, ["line 2", "path"]),
    "no content": ([{"key": "file", "value": {"path": "f", "encoding": "base64"}}], 400, ["line 2", "content"]),
    "another encoding": ([{"key": "file", "value": {"path": "f", "content": "aGk=", "encoding": "utf-8"}}], 400, ["line 2", "base64"]),
    "no encoding": ([{"key": "file", "value": {"path": "f", "content": "aGk="}}], 400, ["line 2", "base64"]),
    "not base64": ([{"key": "file", "value": {"path": "f", "content": "a*k=", "encoding": "base64"}}], 400, ["line 2", "base64"]),
    "cut base64": ([{"key": "file", "value": {"path": "f", "content": "aGk", "encoding": "base64"}}], 400, ["line 2", "base64"]),
    "padding inside": ([{"key": "file", "value": {"path": "f", "content": "aG==aG==", "encoding": "base64"}}], 400, ["line 2", "base64"]),
    "bits in padding": ([{"key": "file", "value": {"path": "f", "content": "aGl=", "encoding": "base64"}}], 400, ["line 2", "base64"]),
    "two contents": ([b'{"key":"file","value":{"path":"f","content":"","content":"","encoding":"base64"}}'], 400, ["line 2"]),
    "a name that no field can hold": ([removed("Größe.txt")], 404, ["there is no file Gr??e.txt to remove"]),
    "content of a removal": ([{"key": "deletedFile", "value": {"path": "kept.json", "content": ""}}], 400, ["line 2"]),
    "twice": ([inline("f", b"1"), inline("g", b""), inline("f", b"2")], 400, ["line 4", "line 2"]),
    "written and removed": ([inline("kept.json", b"[]"), removed("kept.json")], 400, ["line 3", "line 2"]),
    "a file as a folder": ([inline("f", b"1"), inline("f/g", b"2")], 409, ["line 3"]),
    "below a file": ([inline("kept.json/g", b"2")], 409, ["line 2"]),
    "a folder as a file": ([inline("d", b"2")], 409, ["line 2"]),
    "removing nothing": ([inline("f", b"1"), removed("none")], 404, ["line 3", "none"]),
    "removing a folder as a file": ([removed("d")], 404, ["line 2"]),
    "removing no folder": ([removed_folder("none")], 404, ["line 2"]),
    "dots": ([inline("../other/f", b"1")], 400, ["line 2"]),
    "dots inside": ([inline("a/../../f", b"1")], 400, ["line 2"]),
    "hidden": ([inline(".git/config", b"1")], 400, ["line 2"]),
    "hidden inside": ([inline("a/.b", b"1")], 400, ["line 2"]),
    "hidden, though git's": ([inline(".gitmodules", b"1")], 400, ["line 2"]),
    "below what is git's": ([inline(".gitignore/f", b"1")], 400, ["line 2"]),
    "git's, in a hidden folder": ([inline(".a/.gitignore", b"1")], 400, ["line 2"]),
    "git's, elsewhere": ([inline("../.gitignore", b"1")], 400, ["line 2"]),
    "git's, in no folder": ([inline("a//.gitignore", b"1")], 400, ["line 2"]),
    "a folder of git's": ([removed_folder(".gitignore")], 400, ["line 2"]),
    "absolute": ([inline("/etc/f", b"1")], 400, ["line 2"]),
    "no name": ([inline("", b"1")], 400, ["line 2"]),
    "control characters": ([inline("a\nb", b"1")], 400, ["line 2"]),
    "no folder's name": ([removed_folder("..")], 400, ["line 2"]),
    "the whole repository": ([removed_folder("/")], 400, ["line 2"]),
    "a broken JSON file": ([inline("f", b"1"), inline("sub/x.json", b"{")], 422, ["line 3: sub/x.json: "]),
    "one in capitals": ([inline("f", b"1"), inline("x.JSON", b"{")], 422, ["line 3: x.JSON: "]),
    "a broken model": ([inline("f", b"1"), inline("m.zt", MODEL[:-9])], 422, ["line 3: m.zt: "]),
    "a model of another format": ([inline("m.gguf", MODEL)], 422, ["line 2: m.gguf: "]),
    "a stale parent": ([header(parentCommit="0" * 40), inline("f", b"1")], 412, ["line 1", "parentCommit"]),
    "a strange parent": ([header(parentCommit="main"), inline("f", b"1")], 412, ["line 1", "parentCommit"]),
    "a long line": ([{"key": "x", "value": {"summary": "x" * (1 << 20)}}], 413, ["line 2"]),
    "a second header": ([inline("f", b"1"), header()], 400, ["line 3", "line 1"]),
    "a second header over a stale parent": ([header(parentCommit="0" * 40), inline("f", b"1"), header()], 400, ["line 3", "line 1"]),
}


NO_NAMES = {
    "dots", "dots inside", "hidden", "hidden inside", "hidden, though git's", "below what is git's", "git's, in a hidden folder", "git's, elsewhere",
    "git's, in no folder", "a folder of git's", "absolute", "no name", "control characters", "the whole repository", "no folder's name",
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_line_changes_nothing(tmp_path, server, case):
    lines, status, words = REFUSED[case]
    assert commit(server, header(), *(inline(path, content) for path, content in KEEP.items())).status == 200
    own_header = isinstance(lines[0], dict) and lines[0].get("key") == "header"
    answer = commit(server, *([] if own_header else [header()]), *lines)
    assert_refused(answer, status, *words)
    assert answer["X-Error-Code"] == ("EntryNotFound" if case in NO_NAMES or status == 404 else None)
    assert files_of(tmp_path) == KEEP
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name in ("f", "g")] == []
    assert eventually(lambda: leftovers(tmp_path) == [])


@pytest.mark.parametrize("paths", [["a", "a-b", "a/b"], ["p/q", "p-", "p"], ["x", "x.y", "x/y/z"]])
def test_a_file_and_a_folder_of_one_name_change_nothing(tmp_path, server, paths):
    assert_refused(commit(server, header(), *(inline(path, b"1") for path in paths)), 409, "line ", "folder of")
    assert files_of(tmp_path) == {}


def make_odd(root):
    """What no list shows."""
    (root / "empty/folder").mkdir(parents=True)
    (root / "secret").mkdir()
    (root / "secret/.hidden").write_bytes(b"s")
    (root / "out").symlink_to("/etc")
    (root / "nowhere").symlink_to("missing")
    os.mkfifo(root / "pipe")


@pytest.mark.folder("links and folders")
@pytest.mark.parametrize("path", ["empty", "empty/folder", "secret", "out", "out/f", "nowhere", "nowhere/f", "pipe", "pipe/f"])
def test_what_is_in_the_way_changes_nothing(tmp_path, server, path):
    assert commit(server, header(), inline("kept", b"1")).status == 200
    make_odd(tmp_path / REPO)
    answer = commit(server, header(), inline("new", b"1"), inline(path, b"2"))
    assert_refused(answer, 409, "line 3")
    assert answer["X-Error-Code"] == (None if path in ("empty", "empty/folder", "secret") else "EntryNotFound")
    assert not (tmp_path / REPO / "new").exists()
    assert not Path("/etc/f").exists()


@pytest.mark.folder("links and folders")
def test_folders_that_are_there_are_no_obstacle(tmp_path, server):
    assert commit(server, header(), inline("kept", b"1")).status == 200
    make_odd(tmp_path / REPO)
    (tmp_path / REPO / "link").symlink_to("secret")
    (tmp_path / REPO / "alias").symlink_to("kept")
    paths = ["empty/f", "empty/folder/g", "secret/h", "link/i", "alias", "new/folder/j"]
    assert commit(server, header(), *(inline(path, b"2") for path in paths)).status == 200
    assert get(server, f"/{REPO}/resolve/main/secret/i").status == 307


@pytest.mark.parametrize("lines", [[], [b""], [b" ", b"\r", b""]])
def test_nothing_is_no_commit(server, lines):
    assert commit(server, header(), inline("f", b"1")).status == 200
    assert_refused(commit(server, *lines), 400, "the body of a commit is empty")


def test_lines_may_be_long(tmp_path, server):
    long = header(description="d" * 1_000_000)
    for lines in ([long, inline("f", b"1"), inline("g", b"2")], [inline("f", b"1"), inline("g", b"2"), long]):
        assert commit(server, *lines).status == 200
    line = {**inline("f", pattern(3 << 20)), "more": "x" * 1_000_000}
    assert commit(server, header(), line, inline("g", b"2"), line | inline("h", b"3")).status == 200
    assert files_of(tmp_path) == {"f": pattern(3 << 20), "g": b"2", "h": b"3"}


@pytest.mark.parametrize("lines", [[inline("f", b"1")], [inline("f", b"1"), header()]])
def test_the_header_may_be_absent_or_last(tmp_path, server, lines):
    assert commit(server, *lines).status == 200
    assert files_of(tmp_path) == {"f": b"1"}


def test_members_that_are_null_are_absent(tmp_path, server):
    assert commit(server, header(parentCommit=None, description=None, summary=None), inline("f", b"1")).status == 200
    assert files_of(tmp_path) == {"f": b"1"}
    assert_refused(commit(server, header(parentCommit=1)), 400, "line 1", "parentCommit")


def test_empty_lines_count(server):
    assert_refused(commit(server, header(), b"", b"  ", b"no"), 400, "line 4")


def test_too_large_a_file(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": "1000"})
    assert commit(server, header(), inline("a", bytes(1000)), inline("b", bytes(1000))).status == 200
    assert_refused(commit(server, header(), inline("a", bytes(1001))), 413, "line 2")


def test_other_revisions(server):
    answer = commit(server, header(), inline("f", b"1"), revision="other")
    assert (answer.status, answer["X-Error-Code"]) == (404, "RevisionNotFound")


@pytest.mark.parametrize("repo", ["org/.model", "org/a--b", "org/model.git", "-a", "v1/m"])
def test_names_that_no_repository_has(tmp_path, server, repo):
    asked = {"files": []}, {"operation": "upload", "objects": []}
    answers = [
        commit(server, header(), inline("f", b"1"), repo=repo),
        post(server, f"/api/models/{repo}/preupload/main", asked[0]),
        post(server, f"/{repo}.git/info/lfs/objects/batch", asked[1]),
    ]
    for answer in answers:
        assert_refused(answer, 400, "repository")
        assert answer["X-Error-Code"] == "RepoNotFound"
    assert list(path for path in tmp_path.iterdir() if not path.name.startswith(".")) == []


def test_pull_requests(server):
    answer = ask(server, "POST", f"/api/models/{REPO}/commit/main?create_pr=1", {}, body_of(header(), inline("f", b"1")))
    assert_refused(answer, 501, "pull request")


def test_a_server_that_only_reads(tmp_path, start_server):
    server = start_server(tmp_path)
    assert_refused(commit(server, header(), inline("f", b"1")), 403, "turned off")
    assert_refused(post(server, "/api/repos/create", {"name": "x"}), 403, "turned off")
    assert_refused(post(server, f"/api/models/{REPO}/preupload/main", {"files": []}), 403, "turned off")


# --- before a commit ---


def test_metadata(server):
    answer = post(server, "/api/validate-yaml", {"repoType": "model", "content": "---\nlicense: mit\n---\n"})
    assert (answer.status, answer.json()) == (200, {"errors": [], "warnings": []})


def git_sha1(content):
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def test_what_need_not_be_sent(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_HUB_REGULAR_BYTES": "1000"})
    small, large = b"small", pattern(5000)
    assert commit(server, header(), inline("small", small), inline("large", large)).status == 200

    def asked(*files):
        answer = post(server, f"/api/models/{REPO}/preupload/main", {"files": [{"path": path, "size": size, "sample": ""} for path, size in files]})
        assert answer.status == 200, answer.body
        return answer.json()["files"]

    assert asked(("small", 5), ("large", 5000), ("new", 1000), ("new2", 1001), ("small", 6), (".gitattributes", 3)) == [
        {"path": "small", "uploadMode": "regular", "shouldIgnore": False, "oid": git_sha1(small)},
        {"path": "large", "uploadMode": "lfs", "shouldIgnore": False, "oid": hashlib.sha256(large).hexdigest()},
        {"path": "new", "uploadMode": "regular", "shouldIgnore": False},
        {"path": "new2", "uploadMode": "lfs", "shouldIgnore": False},
        {"path": "small", "uploadMode": "regular", "shouldIgnore": False},
        {"path": ".gitattributes", "uploadMode": "regular", "shouldIgnore": True},
    ]


@pytest.mark.parametrize(
    "path", ["../x", "a/../b", "..", "a/..", ".hid/x", "a/.b", "a//b", "/a", "a/", "", "a\nb", "x" * 256, "x/" * 600 + "x", ".gitignore", "s/.gitattributes"]
)
def test_what_no_commit_takes_is_ignored(server, path):
    assert commit(server, header(), inline("f", b"1")).status == 200
    answer = post(server, f"/api/models/{REPO}/preupload/main", {"files": [{"path": path, "size": 1}, {"path": "a..b/c..d", "size": 1}]})
    assert [(file["path"], file["shouldIgnore"]) for file in answer.json()["files"]] == [(path, True), ("a..b/c..d", False)]
    if ".git" not in path:
        assert_refused(commit(server, header(), inline(path, b"1")), 400, "line 2")


@pytest.mark.parametrize("body", [{}, [], {"files": {}}, {"files": [{"path": "x"}]}, {"files": [1]}, {"files": [{"path": "x", "size": 1}] * 1001}])
def test_asking_wrongly(server, body):
    assert commit(server, header(), inline("f", b"1")).status == 200
    assert_refused(post(server, f"/api/models/{REPO}/preupload/main", body), 400)
