"""A folder as the Hub's clients read it: what each of their requests gets, without any of them."""

import hashlib
import json
import os
import re
import time
import urllib.parse

import pytest

import uploads
from containers import dense, pattern, zt1
from wire import ask, eventually, get, head

REPO = "org/model"
WEIGHTS = zt1({"w": dense(pattern(64), dtype="u8")})
FILES = {
    "config.json": b'{"architectures": []}',
    "README.md": b"# a model\n",
    "empty.txt": b"",
    "onnx/model.txt": b"in a folder",
    "onnx/deep/er.txt": b"deeper",
    "onnx-other.txt": b"sorts before the folder",
    "with space.txt": b"blank",
    "a+b@c.txt": b"plus",
    "100%.txt": b"percent",
    "ünï.txt": b"umlauts",
    "ü 50% off%2.txt": b"what npm does not escape, beside what it does",
    "_leading": b"underscore",
    "model.zt": WEIGHTS,
}


def fill(root, repo=REPO, files=FILES):
    uploads.fill(root / repo, files)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def commit_of(files):
    """SHA-1 over all paths and SHA-256s, in the order of the paths' bytes."""
    digest = hashlib.sha1()
    for name in sorted(files, key=lambda name: name.encode()):
        digest.update(name.encode() + b"\0" + sha256(files[name]).encode() + b"\0")
    return digest.hexdigest()


def pointer_oid(content):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(content)}\nsize {len(content)}\n"
    return hashlib.sha1(f"blob {len(pointer)}\0{pointer}".encode()).hexdigest(), len(pointer)


def escaped(name):
    return urllib.parse.quote(name)


@pytest.fixture(scope="module", autouse=True)
def without_views():
    """The files alone: test_hub_views.py has the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZTSERVE_HUB_VIEWS", "false")
        yield


@pytest.fixture(scope="module")
def server(folder, share_server):
    fill(folder)
    (folder / REPO / ".hidden").write_bytes(b"secret")
    (folder / REPO / ".git").mkdir()
    (folder / REPO / ".git" / "config").write_bytes(b"secret")
    (folder / "outside-link").symlink_to("/etc")
    (folder / REPO / "passwd").symlink_to("/etc/passwd")
    fill(folder, "single", {"model.zt": WEIGHTS})
    (folder / "loose.zt").write_bytes(WEIGHTS)
    return share_server(folder)


@pytest.fixture(scope="module")
def commit(server):
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of(FILES))
    return commit_of(FILES)


def assert_absent(answer, code):
    assert answer.status == 404, answer.body
    assert answer["X-Error-Code"] == code
    if answer.body:
        assert answer.json()["error"] == answer["X-Error-Message"]


# --- files ---


@pytest.mark.parametrize("route", ["resolve", "raw"])
def test_a_file_of_a_commit(server, commit, route):
    for name, content in FILES.items():
        target = f"/{REPO}/{route}/{commit}/{escaped(name)}"
        whole, described = get(server, target), head(server, target)
        assert (whole.status, whole.body, whole["Accept-Ranges"]) == (200, content, "bytes"), name
        assert (described.status, described["Content-Length"]) == (200, str(len(content))), name
        for answer in (whole, described):
            assert (answer["X-Repo-Commit"], answer["ETag"]) == (commit, f'"{sha256(content)}"'), name


def test_a_name_whose_percent_signs_are_not_escaped(server, commit):
    answer = get(server, f"/{REPO}/resolve/{commit}/%C3%BC%2050%%20off%2.txt")
    assert (answer.status, answer.body) == (200, FILES["ü 50% off%2.txt"])


@pytest.mark.parametrize("revision", ["main", "HEAD", "refs%2Fheads%2Fmain", "refs/heads/main"])
def test_names_of_what_is_there_now(server, commit, revision):
    answer = get(server, f"/{REPO}/resolve/{revision}/config.json")
    if answer.status == 307:
        assert answer["Location"].endswith(f"/{REPO}/resolve/{commit}/config.json")
        assert answer["X-Linked-Size"] == str(len(FILES["config.json"]))
    else:
        assert (answer.status, answer.body) == (200, FILES["config.json"])
    assert answer["X-Repo-Commit"] == commit
    assert answer["ETag"] == f'"{sha256(FILES["config.json"])}"'


def test_a_range(server, commit):
    answer = get(server, f"/{REPO}/resolve/{commit}/config.json", Range="bytes=2-5")
    assert (answer.status, answer.body) == (206, FILES["config.json"][2:6])
    assert answer["Content-Range"] == f"bytes 2-5/{len(FILES['config.json'])}"
    assert answer["X-Repo-Commit"] == commit


def test_the_first_byte_of_an_empty_file(server, commit):
    answer = get(server, f"/{REPO}/resolve/{commit}/empty.txt", Range="bytes=0-0")
    assert (answer.status, answer.body) == (206, b"")
    assert answer["Content-Range"] == "bytes 0-0/0"
    assert answer["Content-Length"] == "0"
    assert get(server, f"/{REPO}/resolve/{commit}/empty.txt", Range="bytes=1-2").status == 416


def test_what_would_lead_to_another_server_is_absent(server, commit):
    answer = get(
        server, f"/{REPO}/resolve/{commit}/config.json", Accept="application/vnd.xet-fileinfo+json"
    )
    assert answer["X-Xet-Hash"] is None
    assert answer["Link"] is None
    assert answer["Content-Type"] != "application/vnd.xet-fileinfo+json"


NO_FILES = """
    nope.json onnx .hidden .git/config passwd ../single/model.zt %2e%2e/single/model.zt ..%2Fsingle%2Fmodel.zt onnx/../config.json
    config.json/ /config.json onnx//model.txt //
""".split()


@pytest.mark.parametrize("path", [*NO_FILES, "x" * 300])
def test_what_is_no_file_of_it(server, commit, path):
    answer = get(server, f"/{REPO}/resolve/{commit}/{path}")
    assert_absent(answer, "EntryNotFound")
    assert answer["X-Repo-Commit"] == commit


@pytest.mark.parametrize("revision", ["dev", "v1.0", "0" * 40, "refs%2Fpr%2F1", "refs/pr/1", "MAIN"])
def test_other_revisions(server, revision):
    assert_absent(get(server, f"/{REPO}/resolve/{revision}/config.json"), "RevisionNotFound")
    assert_absent(head(server, f"/{REPO}/resolve/{revision}/config.json"), "RevisionNotFound")
    assert_absent(get(server, f"/api/models/{REPO}/tree/{revision}"), "RevisionNotFound")
    assert_absent(get(server, f"/api/models/{REPO}/revision/{revision}"), "RevisionNotFound")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_empty_segment(server, method):
    assert_absent(ask(server, method, f"/{REPO}/resolve/main//config.json"), "EntryNotFound")
    assert_absent(ask(server, method, f"/{REPO}/raw/main/onnx//model.txt"), "EntryNotFound")
    assert_absent(ask(server, method, f"/{REPO}/resolve//config.json"), "RevisionNotFound")
    assert ask(server, method, f"/org//model/resolve/main/config.json").status == 400
    assert ask(server, method, f"//{REPO}/resolve/main/config.json").status == 400


@pytest.mark.parametrize("repo", ["org/none", "none/model", "org", "loose", "-a/b", "a/b.git", "a--b/c", "outside-link"])
def test_other_repositories(server, repo):
    assert_absent(get(server, f"/{repo}/resolve/main/config.json"), "RepoNotFound")
    assert_absent(get(server, f"/api/models/{repo}"), "RepoNotFound")
    assert_absent(get(server, f"/api/models/{repo}/tree/main"), "RepoNotFound")
    assert_absent(get(server, f"/api/models/{repo}/refs"), "RepoNotFound")


def test_folders_whose_addresses_are_others_are_no_repositories(tmp_path, start_server):
    owners = ["api", "files", "ui", "datasets", "spaces", "kernels"]
    for owner in [*owners, "org"]:
        fill(tmp_path, f"{owner}/model", {"config.json": b"{}"})
    server = start_server(tmp_path, "--writable")
    assert ids(get(server, "/api/models")) == ["org/model"]
    for owner in owners:
        assert_absent(get(server, f"/api/models/{owner}/model"), "RepoNotFound")
        assert ask(server, "POST", f"/api/models/{owner}/new/commit/main", {}, b"{}").status == 400


# --- descriptions ---


@pytest.mark.parametrize("rest", ["", "/revision/main", "/revision/HEAD", "?expand=sha&expand[]=likes"])
def test_a_repository(server, commit, rest):
    told = get(server, f"/api/models/{REPO}{rest}").json()
    assert (told["id"], told["sha"]) == (REPO, commit)
    assert [entry["rfilename"] for entry in told["siblings"]] == sorted(FILES, key=str.encode)
    assert told["private"] is False and told["gated"] is False
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["lastModified"])
    assert "ztensor" in told["tags"]


@pytest.mark.parametrize("value", ["true", "True", "1"])
def test_a_repository_with_blobs(server, commit, value):
    told = get(server, f"/api/models/{REPO}/revision/{commit}?blobs={value}").json()
    for entry in told["siblings"]:
        content = FILES[entry["rfilename"]]
        oid, pointer = pointer_oid(content)
        assert (entry["size"], entry["blobId"]) == (len(content), oid)
        assert entry["lfs"]["sha256"] == sha256(content)
        assert (entry["lfs"]["size"], entry["lfs"]["pointerSize"]) == (len(content), pointer)


def test_a_repository_of_one_segment(server):
    told = get(server, "/api/models/single").json()
    assert (told["id"], [entry["rfilename"] for entry in told["siblings"]]) == ("single", ["model.zt"])
    answer = get(server, f"/single/resolve/{told['sha']}/model.zt")
    assert (answer.status, answer.body) == (200, WEIGHTS)


def test_branches_and_commits(server, commit):
    refs = get(server, f"/api/models/{REPO}/refs").json()
    assert refs["branches"] == [{"name": "main", "ref": "refs/heads/main", "targetCommit": commit}]
    assert (refs["tags"], refs["converts"]) == ([], [])
    commits = get(server, f"/api/models/{REPO}/commits/main").json()
    assert [told["id"] for told in commits] == [commit]
    assert {"title", "message", "authors", "date"} <= set(commits[0])


def tree(server, path, **query):
    target = f"/api/models/{REPO}/tree/{path}"
    return get(server, target + ("?" + urllib.parse.urlencode(query) if query else ""))


def test_all_files_and_folders(server, commit):
    entries = {entry["path"]: entry for entry in tree(server, commit, recursive="true").json()}
    assert set(entries) == set(FILES) | {"onnx", "onnx/deep"}
    for name, content in FILES.items():
        oid, pointer = pointer_oid(content)
        assert entries[name] == {
            "type": "file",
            "path": name,
            "size": len(content),
            "oid": oid,
            "lfs": {"oid": sha256(content), "sha256": sha256(content), "size": len(content), "pointerSize": pointer},
        }
    for name in ("onnx", "onnx/deep"):
        assert (entries[name]["type"], entries[name]["size"]) == ("directory", 0)
        assert re.fullmatch("[0-9a-f]{40}", entries[name]["oid"])


@pytest.mark.parametrize(
    "path, names",
    [
        ("main", {name for name in FILES if "/" not in name} | {"onnx"}),
        ("main/onnx", {"onnx/model.txt", "onnx/deep"}),
        ("main/onnx%2Fdeep", {"onnx/deep/er.txt"}),
        ("main/onnx/deep", {"onnx/deep/er.txt"}),
        ("refs%2Fheads%2Fmain/onnx/deep", {"onnx/deep/er.txt"}),
        ("refs/heads/main/onnx", {"onnx/model.txt", "onnx/deep"}),
    ],
)
def test_one_level(server, commit, path, names):
    assert {entry["path"] for entry in tree(server, path).json()} == names


def test_a_folder_that_is_not_there(server, commit):
    answer = tree(server, "main/additional_chat_templates", recursive="false", expand="false")
    assert_absent(answer, "EntryNotFound")
    assert answer["X-Repo-Commit"] == commit


def test_the_last_commit_of_each_entry(server, commit):
    for entry in tree(server, "main", recursive="True", expand="True").json():
        assert entry["lastCommit"]["id"] == commit
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["lastCommit"]["date"])


def paths_info(server, body, media_type, revision="main"):
    return ask(server, "POST", f"/api/models/{REPO}/paths-info/{revision}", {"Content-Type": media_type}, body)


def test_listed_paths(server, commit):
    wanted = ["config.json", "onnx", "nope", "with space.txt", "a+b@c.txt", "onnx/deep/er.txt", "onn", ""]
    form = urllib.parse.urlencode([("paths", path) for path in wanted] + [("expand", "false")])
    by_form = paths_info(server, form.encode(), "application/x-www-form-urlencoded")
    assert by_form.status == 200, by_form.body
    found = ["config.json", "onnx", "with space.txt", "a+b@c.txt", "onnx/deep/er.txt"]
    assert [entry["path"] for entry in by_form.json()] == found
    body = json.dumps({"paths": wanted, "expand": True}).encode()
    by_json = paths_info(server, body, "application/json", commit)
    assert [entry["path"] for entry in by_json.json()] == found
    assert {entry["lastCommit"]["id"] for entry in by_json.json()} == {commit}
    assert all("lastCommit" not in entry for entry in by_form.json())


@pytest.mark.parametrize(
    "body, media_type",
    [
        (b"{", "application/json"),
        (b'{"paths": "a"}', "application/json"),
        (b'{"paths": [1]}', "application/json"),
        (b"paths=%zz", "application/x-www-form-urlencoded"),
        pytest.param(b"&".join([b"paths=a"] * 10001), "application/x-www-form-urlencoded", id="too many"),
    ],
)
def test_malformed_lists_of_paths(server, body, media_type):
    answer = paths_info(server, body, media_type)
    assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
    assert "paths" in answer.json()["error"]
    assert answer["X-Error-Message"] == answer.json()["error"].replace("\N{HORIZONTAL ELLIPSIS}", "?")


# --- changes ---


def test_a_pinned_commit_never_gives_other_bytes(tmp_path, start_server):
    files = {"config.json": b"{}", "a.txt": b"old"}
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of(files))
    old = commit_of(files)
    (tmp_path / REPO / "new").write_bytes(b"new")
    os.replace(tmp_path / REPO / "new", tmp_path / REPO / "a.txt")
    assert_absent(get(server, f"/{REPO}/resolve/{old}/a.txt"), "RevisionNotFound")
    kept = get(server, f"/{REPO}/resolve/{old}/config.json")
    assert (kept.status, kept.body, kept["X-Repo-Commit"]) == (200, b"{}", old)
    files["a.txt"] = b"new"
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of(files))
    assert get(server, f"/{REPO}/resolve/{commit_of(files)}/a.txt").body == b"new"
    assert get(server, f"/{REPO}/resolve/{old}/config.json").body == b"{}"
    listed = {entry["path"]: entry for entry in get(server, f"/api/models/{REPO}/tree/{old}").json()}
    assert listed["a.txt"]["lfs"]["oid"] == sha256(b"old")


def test_a_file_that_changes_in_place(tmp_path, start_server):
    fill(tmp_path, files={"a.txt": b"old"})
    server = start_server(tmp_path)
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of({"a.txt": b"old"}))
    time.sleep(0.02)
    (tmp_path / REPO / "a.txt").write_bytes(b"new")
    assert_absent(get(server, f"/{REPO}/resolve/{commit_of({'a.txt': b'old'})}/a.txt"), "RevisionNotFound")


def test_the_same_files_are_the_same_commit(tmp_path, start_server):
    fill(tmp_path / "one")
    fill(tmp_path / "two")
    servers = [start_server(tmp_path / name) for name in ("one", "two")]
    for server in servers:
        assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of(FILES))


@pytest.mark.folder("sparse files larger than the memory of the tests")
def test_before_the_bytes_are_read(tmp_path, start_server):
    """A file that takes a while to hash: there is a commit at once, and it stays valid."""
    fill(tmp_path, files={"config.json": b"{}"})
    with open(tmp_path / REPO / "large.bin", "wb") as large:
        large.truncate(1 << 30)
    server = start_server(tmp_path)
    first = get(server, f"/api/models/{REPO}").json()["sha"]
    entries = {entry["path"]: entry for entry in get(server, f"/api/models/{REPO}/tree/{first}").json()}
    assert "lfs" in entries["config.json"]
    assert re.fullmatch("[0-9a-f]{40}", entries["large.bin"]["oid"])
    described = head(server, f"/{REPO}/resolve/{first}/large.bin")
    assert (described.status, described["Content-Length"]) == (200, str(1 << 30))
    assert re.fullmatch('"[A-Za-z0-9-]+"', described["ETag"])
    zeros = hashlib.sha256()
    for _ in range(1 << 10):
        zeros.update(bytes(1 << 20))
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] != first, within_s=200)
    final = head(server, f"/{REPO}/resolve/main/large.bin")
    assert final["ETag"] == f'"{zeros.hexdigest()}"'
    assert head(server, f"/{REPO}/resolve/{first}/large.bin").status == 200


# --- a folder that the Hub's own clients have filled ---


@pytest.mark.folder("a bucket has no links")
def test_a_cache_states_commit_and_etags(tmp_path, start_server):
    stated, older = "c" * 40, "d" * 40
    blobs = {"a" * 64: b"large", "b" * 40: b'{"small": 1}'}
    repo = tmp_path / "models--org--cached"
    for name, content in blobs.items():
        (repo / "blobs").mkdir(parents=True, exist_ok=True)
        (repo / "blobs" / name).write_bytes(content)
    for revision in (stated, older):
        (repo / "snapshots" / revision / "sub").mkdir(parents=True)
        (repo / "snapshots" / revision / "config.json").symlink_to(f"../../blobs/{'b' * 40}")
        (repo / "snapshots" / revision / "sub" / "w.bin").symlink_to(f"../../../blobs/{'a' * 64}")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(stated)
    server = start_server(tmp_path)
    assert get(server, "/api/models/org/cached").json()["sha"] == stated
    described = head(server, f"/org/cached/resolve/{stated}/sub/w.bin")
    assert (described["ETag"], described["X-Repo-Commit"]) == (f'"{"a" * 64}"', stated)
    assert get(server, f"/org/cached/resolve/{stated}/config.json").body == b'{"small": 1}'
    entries = {entry["path"]: entry for entry in get(server, "/api/models/org/cached/tree/main?recursive=true").json()}
    assert entries["sub/w.bin"]["lfs"]["oid"] == "a" * 64
    assert entries["config.json"]["oid"] == "b" * 40 and "lfs" not in entries["config.json"]
    assert get(server, f"/org/cached/resolve/{older}/config.json")["X-Repo-Commit"] == older
    assert [told["id"] for told in get(server, "/api/models").json()] == ["org/cached"]
    assert get(server, "/api/models/org/cached").json()["sha"] == stated


# --- listings ---


def ids(answer):
    assert answer.status == 200, answer.body
    return [told["id"] for told in answer.json()]


def test_the_list(server):
    assert ids(get(server, "/api/models")) == ["org/model", "single"]
    assert ids(get(server, "/api/models?author=org")) == ["org/model"]
    assert ids(get(server, "/api/models?author=or")) == []
    assert ids(get(server, "/api/models?search=MOD")) == ["org/model"]
    assert ids(get(server, "/api/models?filter=ztensor")) == ["org/model", "single"]
    assert ids(get(server, "/api/models?filter=ztensor,gguf")) == []


def test_pages_of_the_list(server):
    first = get(server, "/api/models?limit=1&filter=ztensor")
    assert ids(first) == ["org/model"]
    url, relation = re.fullmatch(r"<(.*)>; (.*)", first["Link"]).groups()
    assert relation == 'rel="next"'
    assert url.startswith(f"http://{server.host}:{server.port}/api/models?") or url.startswith("http://")
    second = get(server, url[url.index("/api/") :])
    assert (ids(second), second["Link"]) == (["single"], None)


@pytest.mark.folder("thousands of objects, which take a minute to make")
def test_pages_of_a_tree(tmp_path, start_server):
    names = [f"file-{i:05}.txt" for i in range(5002)]
    fill(tmp_path, files={name: b"" for name in names})
    server = start_server(tmp_path)
    first = get(server, f"/api/models/{REPO}/tree/main?recursive=true")
    url = re.fullmatch(r'<(http://.*)>; rel="next"', first["Link"]).group(1)
    second = get(server, url[url.index("/api/") :])
    assert [entry["path"] for entry in first.json() + second.json()] == names
    assert second["Link"] is None


# --- who ---


def test_nobody_is_known_without_a_token(server):
    assert get(server, "/api/whoami-v2").status == 401
    told = get(server, "/api/whoami-v2", Authorization="Bearer hf_anything").json()
    assert told["type"] == "user" and told["auth"]["accessToken"]["role"] == "read"


def test_tokens_limit_what_is_seen(tmp_path, start_server):
    fill(tmp_path, "org/mine", {"config.json": b"{}", "model.zt": WEIGHTS})
    fill(tmp_path, "org/other", {"config.json": b"{}"})
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"alice read {sha256(b'hf_secret')} org/mine/*\nroot admin {sha256(b'hf_root')}\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    mine = {"Authorization": "Bearer hf_secret"}
    assert get(server, "/org/mine/resolve/main/config.json").status == 401
    assert get(server, "/org/mine/resolve/main/config.json", Authorization="Bearer no").status == 401
    assert get(server, "/api/models/org/mine", **mine).status == 200
    assert_absent(get(server, "/api/models/org/other", **mine), "RepoNotFound")
    assert ids(get(server, "/api/models", **mine)) == ["org/mine"]
    assert ids(get(server, "/api/models", Authorization="Bearer hf_root")) == ["org/mine", "org/other"]
    told = get(server, "/api/whoami-v2", **mine).json()
    assert (told["name"], told["auth"]["accessToken"]["role"]) == ("alice", "read")


# --- raw ---


def follow(server, target, method=get, **fields):
    """The answer behind the redirect from main to the commit."""
    answer = method(server, target, **fields)
    return method(server, answer["Location"], **fields) if answer.status == 307 else answer


def test_raw_gives_the_pointer_of_an_lfs_file(tmp_path, start_server):
    names = ["model.safetensors", "sub/W.GGUF", "pytorch_model.bin", "onnx/model.onnx", "onnx/model.onnx_data", "tokenizer.model"]
    files = {name: pattern(5000, seed) for seed, name in enumerate(names)} | {"big.json": pattern(11 << 20)}
    fill(tmp_path, files={**files, "config.json": b"{}"})
    server = start_server(tmp_path)
    for name, content in files.items():
        target = f"/{REPO}/raw/main/{name}"
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(content)}\nsize {len(content)}\n".encode()
        assert eventually(lambda: follow(server, target).body == pointer), name
        answer = follow(server, target)
        assert answer["ETag"] == f'"{pointer_oid(content)[0]}"' and answer["Content-Type"].startswith("text/plain"), name
        assert follow(server, target, head)["Content-Length"] == str(len(pointer)), name
        assert follow(server, target, If_None_Match=answer["ETag"]).status == 304, name
        assert get(server, target)["X-Linked-Size"] is None, name
        for byte_range, expected in (("bytes=0-", content), ("bytes=0-99", content[:100]), ("bytes=100-199", content[100:200])):
            part = follow(server, target, Range=byte_range)
            assert (part.status, part.body) == (206, expected), (name, byte_range)
        assert follow(server, f"/{REPO}/resolve/main/{name}").body == content, name


def test_raw_gives_other_files_as_they_are(tmp_path, start_server):
    names = ["config.json", "README.md", "model.safetensors.index.json", "tokenizer.json", "vocab.txt"]
    files = {**dict.fromkeys(names, b'{"weight_map": {}}'), "empty.txt": b""}
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    for name, content in files.items():
        answer = follow(server, f"/{REPO}/raw/main/{name}")
        assert (answer.status, answer.body) == (200, content), name
