"""Uploading as the Hub's clients do: what each of their requests gets, without any of them."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from lfs import REPO, assert_refused, body_of, commit, commit_lines, files_of, header, inline, places, post, removed, removed_folder
from wire import ask, connect, eventually, get, read_until_closed

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


# --- what works ---


def test_a_commit_of_several_files(tmp_path, server):
    files = {"config.json": b'{"a": 1}', "README.md": b"# x\n", "empty.txt": b"", "sub/model.zt": MODEL, "b": pattern(200_000)}
    answer = commit(server, *(inline(path, content) for path, content in files.items()))
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
    assert eventually(lambda: places(tmp_path) == [])


def test_files_are_replaced_and_removed(tmp_path, server):
    first = commit(server, inline("a", b"1"), inline("b", b"2"), inline("d/x", b"3"), inline("d/e/y", b"4"), inline("dd", b"5"))
    assert first.status == 200, first.body
    parent = first.json()["commitOid"]
    second = commit_lines(server, header(parentCommit=parent), inline("a", b"new"), removed("b"), removed_folder("d/"))
    assert second.status == 200, second.body
    assert files_of(tmp_path) == {"a": b"new", "dd": b"5"}
    assert second.json()["commitOid"] != parent


def test_the_last_file_may_be_removed(tmp_path, server):
    assert commit(server, inline("a", b"1")).status == 200
    answer = commit(server, removed("a"))
    assert answer.status == 200, answer.body
    assert len(answer.json()["commitOid"]) == 40
    assert files_of(tmp_path) == {}


def object_of(path):
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": "0" * 64, "size": 3}}


def test_files_of_git_are_left_out(tmp_path, server):
    git = [".gitattributes", "sub/.gitattributes", ".gitignore", "a b/c/.gitignore"]
    sent = [line for path in git for line in (inline(path, b"*.bin lfs\n"), object_of(path), removed(path))]
    answer = commit(server, inline("f", b"first"), *sent, inline("g", b"2"), *sent, inline("h", b"the third"))
    assert answer.status == 200, answer.body
    assert files_of(tmp_path) == {"f": b"first", "g": b"2", "h": b"the third"}
    assert not (tmp_path / REPO / "sub").exists()
    assert eventually(lambda: places(tmp_path) == [])


def test_a_commit_of_nothing_but_files_of_git(tmp_path, server):
    answer = commit(server, inline(".gitattributes", b"x"))
    assert answer.status == 200, answer.body
    assert not (tmp_path / REPO).exists()
    first = commit(server, inline("f", b"1")).json()["commitOid"]
    assert commit(server, removed(".gitignore")).json()["commitOid"] == first


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
    answer = commit(server, line)
    assert answer.status == 200, answer.body
    assert files_of(tmp_path) == {"f": b"hi"}


def test_base64_of_any_length(tmp_path, server):
    files = {f"f{length}": bytes((byte * 37 + 255) % 256 for byte in range(length)) for length in range(7)}
    assert commit(server, *(inline(path, content) for path, content in files.items())).status == 200
    assert files_of(tmp_path) == files


def test_slashes_in_the_content_may_be_escaped(tmp_path, server):
    line = json.dumps(inline("f", b"\xff\xff\xff\xff\xff\xff")).replace("/", "\\/").encode()
    assert b"\\/" in line
    assert commit(server, line).status == 200
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
    "no path": ([{"key": "file", "value": {"content": "", "encoding": "base64"}}], 400, ["line 2", "path"]),
    "no content": ([{"key": "file", "value": {"path": "f", "encoding": "base64"}}], 400, ["line 2", "content"]),
    "another encoding": ([{"key": "file", "value": {"path": "f", "content": "aGk=", "encoding": "utf-8"}}], 400, ["line 2", "base64"]),
    "no encoding": ([{"key": "file", "value": {"path": "f", "content": "aGk="}}], 400, ["line 2", "base64"]),
    "not base64": ([{"key": "file", "value": {"path": "f", "content": "a*k=", "encoding": "base64"}}], 400, ["line 2", "base64"]),
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
    "hidden": ([inline(".git/config", b"1")], 400, ["line 2"]),
    "hidden, though git's": ([inline(".gitmodules", b"1")], 400, ["line 2"]),
    "below what is git's": ([inline(".gitignore/f", b"1")], 400, ["line 2"]),
    "git's, in a hidden folder": ([inline(".a/.gitignore", b"1")], 400, ["line 2"]),
    "a folder of git's": ([removed_folder(".gitignore")], 400, ["line 2"]),
    "absolute": ([inline("/etc/f", b"1")], 400, ["line 2"]),
    "no name": ([inline("", b"1")], 400, ["line 2"]),
    "control characters": ([inline("a\nb", b"1")], 400, ["line 2"]),
    "the whole repository": ([removed_folder("/")], 400, ["line 2"]),
    "a broken JSON file": ([inline("f", b"1"), inline("sub/x.json", b"{")], 422, ["line 3: sub/x.json: "]),
    "a broken model": ([inline("f", b"1"), inline("m.zt", MODEL[:-9])], 422, ["line 3: m.zt: "]),
    "a model of another format": ([inline("m.gguf", MODEL)], 422, ["line 2: m.gguf: "]),
    "a stale parent": ([header(parentCommit="0" * 40), inline("f", b"1")], 412, ["line 1", "parentCommit"]),
    "a strange parent": ([header(parentCommit="main"), inline("f", b"1")], 412, ["line 1", "parentCommit"]),
    "a long line": ([{"key": "x", "value": {"summary": "x" * (1 << 20)}}], 413, ["line 2"]),
    "a second header": ([inline("f", b"1"), header()], 400, ["line 3", "line 1"]),
    "a second header over a stale parent": ([header(parentCommit="0" * 40), inline("f", b"1"), header()], 400, ["line 3", "line 1"]),
}


NO_NAMES = {
    "dots", "hidden", "hidden, though git's", "below what is git's", "git's, in a hidden folder", "a folder of git's",
    "absolute", "no name", "control characters", "the whole repository",
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(folder, share_server):
    """A server whose repository no test changes."""
    server = share_server(folder, "--writable")
    assert commit(server, *(inline(path, content) for path, content in KEEP.items())).status == 200
    return server


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_line_changes_nothing(folder, kept, case):
    lines, status, words = REFUSED[case]
    own_header = isinstance(lines[0], dict) and lines[0].get("key") == "header"
    answer = commit_lines(kept, *([] if own_header else [header()]), *lines)
    assert_refused(answer, status, *words)
    assert answer["X-Error-Code"] == ("EntryNotFound" if case in NO_NAMES or status == 404 else None)
    assert files_of(folder) == KEEP
    assert [path for path in folder.rglob("*") if path.is_file() and path.name in ("f", "g")] == []
    assert eventually(lambda: places(folder) == [])


@pytest.mark.parametrize("paths", [["a", "a-b", "a/b"], ["p/q", "p-", "p"], ["x", "x.y", "x/y/z"]])
def test_a_file_and_a_folder_of_one_name_change_nothing(folder, kept, paths):
    assert_refused(commit(kept, *(inline(path, b"1") for path in paths)), 409, "line ", "needs a folder")
    assert files_of(folder) == KEEP


def make_unlisted(root):
    """What no list shows."""
    (root / "empty/folder").mkdir(parents=True)
    (root / "secret").mkdir()
    (root / "secret/.hidden").write_bytes(b"s")
    (root / "out").symlink_to("/etc")
    (root / "nowhere").symlink_to("missing")
    os.mkfifo(root / "pipe")


@pytest.mark.folder("links and folders")
def test_what_is_in_the_way_changes_nothing(tmp_path, server):
    assert commit(server, inline("kept", b"1")).status == 200
    make_unlisted(tmp_path / REPO)
    for path in ("empty", "empty/folder", "secret", "out", "out/f", "nowhere", "nowhere/f", "pipe", "pipe/f"):
        answer = commit(server, inline("new", b"1"), inline(path, b"2"))
        assert_refused(answer, 409, "line 3")
        assert answer["X-Error-Code"] == (None if path in ("empty", "empty/folder", "secret") else "EntryNotFound"), path
        assert not (tmp_path / REPO / "new").exists(), path
    assert not Path("/etc/f").exists()


@pytest.mark.folder("links and folders")
def test_folders_that_are_there_are_no_obstacle(tmp_path, server):
    assert commit(server, inline("kept", b"1")).status == 200
    make_unlisted(tmp_path / REPO)
    (tmp_path / REPO / "link").symlink_to("secret")
    (tmp_path / REPO / "alias").symlink_to("kept")
    paths = ["empty/f", "empty/folder/g", "secret/h", "link/i", "alias", "new/folder/j"]
    assert commit(server, *(inline(path, b"2") for path in paths)).status == 200
    assert get(server, f"/{REPO}/resolve/main/secret/i").status == 307


@pytest.mark.parametrize("lines", [[], [b""], [b" ", b"\r", b""]])
def test_nothing_is_no_commit(server, lines):
    assert commit(server, inline("f", b"1")).status == 200
    assert_refused(commit_lines(server, *lines), 400, "the body of a commit is empty")


def test_lines_may_be_long(tmp_path, server):
    long = header(description="d" * 1_000_000)
    for lines in ([long, inline("f", b"1"), inline("g", b"2")], [inline("f", b"1"), inline("g", b"2"), long]):
        assert commit_lines(server, *lines).status == 200
    line = {**inline("f", pattern(3 << 20)), "more": "x" * 1_000_000}
    assert commit(server, line, inline("g", b"2"), line | inline("h", b"3")).status == 200
    assert files_of(tmp_path) == {"f": pattern(3 << 20), "g": b"2", "h": b"3"}


@pytest.mark.parametrize("lines", [[inline("f", b"1")], [inline("f", b"1"), header()]])
def test_the_header_may_be_absent_or_last(tmp_path, server, lines):
    assert commit_lines(server, *lines).status == 200
    assert files_of(tmp_path) == {"f": b"1"}


def test_members_that_are_null_are_absent(tmp_path, server):
    assert commit_lines(server, header(parentCommit=None, description=None, summary=None), inline("f", b"1")).status == 200
    assert files_of(tmp_path) == {"f": b"1"}
    assert_refused(commit_lines(server, header(parentCommit=1)), 400, "line 1", "parentCommit")


def test_empty_lines_count(server):
    assert_refused(commit(server, b"", b"  ", b"no"), 400, "line 4")


def test_too_large_a_file(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": "1000"})
    assert commit(server, inline("a", bytes(1000)), inline("b", bytes(1000))).status == 200
    assert_refused(commit(server, inline("a", bytes(1001))), 413, "line 2")


def test_other_revisions(server):
    answer = commit_lines(server, header(), inline("f", b"1"), revision="other")
    assert (answer.status, answer["X-Error-Code"]) == (404, "RevisionNotFound")


@pytest.mark.parametrize("repo", ["org/.model", "org/a--b", "org/model.git", "-a", "v1/m"])
def test_names_that_no_repository_has(tmp_path, server, repo):
    asked = {"files": []}, {"operation": "upload", "objects": []}
    answers = [
        commit(server, inline("f", b"1"), repo=repo),
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
    assert_refused(commit(server, inline("f", b"1")), 403, "turned off")
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
    assert commit(server, inline("small", small), inline("large", large)).status == 200

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


def test_what_no_commit_takes_is_ignored(folder, kept):
    paths = ["../x", "a/..", "a/.b", "a//b", "/a", "a/", "", "a\nb", "x" * 256, "x/" * 600 + "x", ".gitignore", "s/.gitattributes"]
    files = [{"path": path, "size": 1} for path in [*paths, "a..b/c..d"]]
    told = post(kept, f"/api/models/{REPO}/preupload/main", {"files": files}).json()["files"]
    assert {file["path"]: file["shouldIgnore"] for file in told} == {**dict.fromkeys(paths, True), "a..b/c..d": False}
    for path in paths:
        if ".git" not in path:
            assert_refused(commit(kept, inline(path, b"1")), 400, "line 2")


@pytest.mark.parametrize("body", [{}, [], {"files": {}}, {"files": [{"path": "x"}]}, {"files": [1]}, {"files": [{"path": "x", "size": 1}] * 1001}])
def test_asking_wrongly(kept, body):
    assert_refused(post(kept, f"/api/models/{REPO}/preupload/main", body), 400)
