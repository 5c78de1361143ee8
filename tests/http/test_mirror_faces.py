"""The first request for a repository of an upstream makes it a repository of this server, for every face."""

import json
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

import pytest

from containers import dense, zt1
from mock_hub import git_sha1
from pull_through import (
    BLOCK,
    MIB,
    REPO,
    download,
    eventually_downloaded,
    fetch,
    files_path,
    noise,
    resolve_path,
    safetensors,
    sha256,
    v1_path,
)
from wire import ask, assert_problem, get, head

TINY = safetensors(3 * MIB)
LARGE = safetensors(24 * MIB, seed=2)
TENSORS = zt1({"w": dense(noise(MIB)), "v": dense(noise(5 * MIB, seed=2))})
FILES = {
    "config.json": b'{"model_type": "llama"}\n',
    "README.md": b"# A model\n" * 300,
    "empty.txt": b"",
    "sub/deep/a b+c#d%.txt": b"an odd name\n",
    "sub/\u00fcmlaut.txt": b"another\n",
    "model.safetensors": TINY,
    "sub/tensors.zt": TENSORS,
}
NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


@pytest.fixture(scope="module")
def commit(shared_upstream):
    # Its lists have several pages.
    shared_upstream.page = 3
    return shared_upstream.add(REPO, FILES)


@pytest.fixture(scope="module")
def server(commit, shared_upstream, share_mirror_of):
    return share_mirror_of(shared_upstream.endpoint)


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_downloaded_with_the_commit_and_digest_of_upstream(server, commit, shared_upstream, path):
    got = download(server, REPO, path)
    assert (got.status, got.body, got.is_whole) == (200, FILES[path], True)
    stated = shared_upstream.repositories[REPO].main.files[path]
    assert got.fields["X-Repo-Commit"] == commit
    assert got.fields["ETag"] == stated.etag
    assert "X-Xet-Hash" not in got.fields and "xet" not in str(got.fields.get("Link"))
    again = fetch(server, resolve_path(REPO, path, commit), method="HEAD")
    assert (again.status, again.fields["ETag"]) == (200, stated.etag)
    assert int(again.fields["Content-Length"]) == len(FILES[path])


def test_lists_are_those_of_upstream(server, commit, shared_upstream):
    info = get(server, f"/api/models/{REPO}").json()
    assert info["sha"] == commit
    assert sorted(one["rfilename"] for one in info["siblings"]) == sorted(FILES)
    stated = shared_upstream.repositories[REPO].main.files
    entries, target = {}, f"/api/models/{REPO}/tree/main?recursive=true"
    listed = get(server, target).json()
    entries = {one["path"]: one for one in listed if one["type"] == "file"}
    assert sorted(entries) == sorted(FILES)
    for path, entry in entries.items():
        assert entry["size"] == len(FILES[path])
        assert (entry.get("lfs") or {}).get("oid") in (sha256(FILES[path]), None)
        assert entry["oid"] == stated[path].oid, path
        assert "xetHash" not in entry
    assert {path for path, entry in entries.items() if entry.get("lfs")} >= {"model.safetensors", "sub/tensors.zt"}
    assert {one["path"] for one in listed if one["type"] == "directory"} == {"sub", "sub/deep"}


def test_paths_and_refs(server, commit):
    body = json.dumps({"paths": ["config.json", "sub", "nope"]}).encode()
    answer = ask(server, "POST", f"/api/models/{REPO}/paths-info/main", {"Content-Type": "application/json"}, body)
    assert {one["path"]: one["type"] for one in answer.json()} == {"config.json": "file", "sub": "directory"}
    refs = get(server, f"/api/models/{REPO}/refs").json()
    assert ("main", commit) in [(one["name"], one["targetCommit"]) for one in refs["branches"]]


@pytest.mark.parametrize(("revision", "code"), [("nope", "RevisionNotFound"), ("0" * 40, "RevisionNotFound")])
def test_revisions_that_upstream_does_not_have(server, commit, revision, code):
    for target in (resolve_path(REPO, "config.json", revision), f"/api/models/{REPO}/revision/{revision}"):
        answer = get(server, target)
        assert (answer.status, answer["X-Error-Code"]) == (404, code), answer


def test_files_that_upstream_does_not_have(server, commit):
    answer = get(server, resolve_path(REPO, "nope.json", commit))
    assert (answer.status, answer["X-Error-Code"]) == (404, "EntryNotFound")
    assert answer["X-Repo-Commit"] == commit
    assert get(server, files_path(REPO, "nope.json")).status == 404


@pytest.mark.parametrize("path", ["model.safetensors", "config.json", "empty.txt", "sub/deep/a b+c#d%.txt"])
def test_files_are_served(server, commit, path):
    got = fetch(server, files_path(REPO, path))
    assert (got.status, got.body, got.is_whole) == (200, FILES[path], True)
    part = fetch(server, files_path(REPO, path), {"Range": "bytes=1-3"})
    if FILES[path]:
        assert (part.status, part.body) == (206, FILES[path][1:4])


def test_a_model_is_described_and_its_tensors_are_read(server, commit):
    described = get(server, v1_path(REPO, "model.safetensors"))
    assert sorted(described.json()["objects"]) == ["a", "b"]
    data = noise(3 * MIB)
    assert get(server, v1_path(REPO, "model.safetensors", "/objects/b/data")).body == data[3 * MIB // 2 :]
    assert get(server, v1_path(REPO, "sub/tensors.zt", "/objects/w/data?slice=10:30")).body == noise(MIB)[10:30]


def test_an_export(server, commit):
    answer = get(server, v1_path(REPO, "sub/tensors.zt", "/export?format=safetensors"))
    assert answer.status == 200
    assert noise(5 * MIB, seed=2) in answer.body and noise(MIB) in answer.body


def test_statistics_for_the_viewer(server, commit):
    answer = get(server, v1_path(REPO, "sub/tensors.zt", "/objects/w/data/statistics"))
    assert answer.status == 200, answer
    assert answer.json()["count"] == MIB


def test_s3(server, commit):
    key = f"/s3/models/{quote(f'{REPO}/model.safetensors')}"
    answer = get(server, key)
    assert (answer.status, answer.body) == (200, TINY)
    assert int(head(server, key)["Content-Length"]) == len(TINY)
    part = get(server, key, Range=f"bytes=-{MIB}")
    assert (part.status, part.body) == (206, TINY[-MIB:])
    listed = get(server, f"/s3/models?list-type=2&prefix={quote(f'{REPO}/')}")
    keys = [one.text for one in ElementTree.fromstring(listed.body).iter(NAMESPACE + "Key")]
    # A model that was opened has views there, as any model.
    views = {f"{REPO}/sub/tensors.safetensors"}
    assert set(keys) - views == {f"{REPO}/{path}" for path in FILES}


def test_only_models_that_were_asked_for_are_listed(upstream, mirror_of):
    upstream.add(REPO, {"first.safetensors": TINY, "second.safetensors": safetensors(MIB, seed=4)})
    upstream.add("acme/other", {"third.safetensors": TINY})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    assert get(server, "/v1/models").json()["models"] == []
    assert counted.requests == 0
    assert get(server, v1_path(REPO, "first.safetensors")).status == 200
    assert [one["name"] for one in get(server, "/v1/models").json()["models"]] == [f"{REPO}/first"]
    assert [one["id"] for one in get(server, "/api/models").json()] == [REPO]


def test_parts_of_a_model_fetch_only_the_blocks_that_they_need(upstream, mirror_of):
    upstream.add(REPO, {"large.safetensors": LARGE})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    assert get(server, v1_path(REPO, "large.safetensors")).status == 200
    assert counted.sent_bytes() <= 2 * BLOCK, counted
    counted = upstream.counting()
    data = noise(24 * MIB, seed=2)[12 * MIB :]
    part = get(server, v1_path(REPO, "large.safetensors", f"/objects/b/data?slice={3 * MIB}:{3 * MIB + 1000}"))
    assert part.body == data[3 * MIB : 3 * MIB + 1000]
    part = get(server, v1_path(REPO, "large.safetensors", "/objects/b/data"), Range="bytes=7000000-7000999")
    assert part.body == data[7_000_000:7_001_000]
    assert counted.sent_bytes() <= 4 * BLOCK, counted


def test_repositories_with_one_name_and_renamed_ones(upstream, mirror_of):
    upstream.add("single", {"config.json": b"{}\n"})
    commit = upstream.add("old/name", {"config.json": b"[]\n", "w.bin": b"w" * 100})
    upstream.rename("old/name", "new/name")
    server = mirror_of(upstream.endpoint)
    assert download(server, "single", "config.json").body == b"{}\n"
    for repo in ("old/name", "new/name"):
        got = download(server, repo, "config.json")
        assert (got.status, got.body, got.fields["X-Repo-Commit"]) == (200, b"[]\n", commit)
        assert download(server, repo, "w.bin").body == b"w" * 100


def test_a_branch(upstream, mirror_of):
    main = upstream.add(REPO, {"config.json": b"main\n"})
    dev = upstream.add(REPO, {"config.json": b"dev\n", "w.bin": b"w" * 1000}, branch="refs/pr/1")
    assert dev != main
    server = mirror_of(upstream.endpoint)
    got = download(server, REPO, "config.json", "refs/pr/1")
    assert (got.status, got.body, got.fields["X-Repo-Commit"]) == (200, b"dev\n", dev)
    assert download(server, REPO, "w.bin", "refs/pr/1").body == b"w" * 1000
    got = download(server, REPO, "config.json")
    assert (got.body, got.fields["X-Repo-Commit"]) == (b"main\n", main)
    assert download(server, REPO, "w.bin").status == 404


def test_what_is_here_is_not_looked_up(upstream, mirror_of):
    upstream.add("acme/here", {"config.json": b"upstream's\n", "more.txt": b"upstream's\n"})
    root = mirror_of.new_root()
    (root / "acme/here").mkdir(parents=True)
    (root / "acme/here/config.json").write_bytes(b"ours\n")
    server = mirror_of(upstream.endpoint, root=root)
    counted = upstream.counting()
    assert download(server, "acme/here", "config.json").body == b"ours\n"
    assert download(server, "acme/here", "more.txt").status == 404
    assert get(server, files_path("acme/here", "more.txt")).status == 404
    assert counted.requests == 0, counted


NEVER_ASKED = [
    "/api/models/acme/.hidden", "/api/models/acme/..%2f..%2fetc", "/api/models/http:%2F%2F127.0.0.1/x", "/api/models/a%20b/c",
    "/api/models/acme/x%00y", "/api/models/acme/a--b", "/api/models/models--acme--x", "/acme/x%0d%0aHost:%20y/resolve/main/f",
    "/acme/x%3Fy/resolve/main/f", "/acme/x@127.0.0.1/resolve/main/f", "/files/.hidden/x/y", "/files/..%2f..%2fx",
    "/v1/models/acme%2F%2E%2E%2Fx", "/api/datasets/acme/x", f"/api/models/{'x' * 97}/y", "/files/acme/x%5Cy/z", "/api/models/-a/b",
    "/v1/models", "/files/", "/api/models?search=acme", "/s3/models?list-type=2", "/v1/models/.ztserve%2Fx%2Fy",
]  # fmt: skip


@pytest.mark.parametrize("target", NEVER_ASKED)
def test_names_that_no_hub_has_are_not_looked_up(server, shared_upstream, target):
    counted = shared_upstream.counting()
    assert get(server, target).status in (200, 400, 404), target
    # Bytes of a file that an earlier test asked for may still be on their way.
    asked = [one.request.target for one in counted.hub.seen if one.request.kind not in ("resolve", "read")]
    assert not asked, asked


def test_only_repositories_that_match_are_looked_up_and_in_the_first_upstream(upstream, shared_upstream, mirror_of, tmp_path):
    upstream.add("acme/both", {"config.json": b"first\n"})
    shared_upstream.add("acme/both", {"config.json": b"second\n"})
    shared_upstream.add("other/second", {"config.json": b"second\n"})
    upstream.add("other/first", {"config.json": b"never\n"})
    first = {"name": "first", "url": upstream.endpoint, "match": ["acme/*"]}
    second = {"name": "second", "url": shared_upstream.endpoint, "match": ["other/*", "acme/*"]}
    server = mirror_of(top={"upstreams": [first, second]})
    assert download(server, "acme/both", "config.json").body == b"first\n"
    assert download(server, "other/second", "config.json").body == b"second\n"
    counted, others = upstream.counting(), shared_upstream.counting()
    assert download(server, "third/x", "config.json").status == 404
    assert (counted.requests, others.requests) == (0, 0)
    assert download(server, "other/first", "config.json").status == 404
    assert counted.requests == 0


def test_hidden_files_are_left_out_as_those_of_a_folder(upstream, mirror_of):
    upstream.add(REPO, {".gitattributes": b"*.bin filter=lfs\n", "sub/.hidden/x": b"x\n", "config.json": b"{}\n"})
    server = mirror_of(upstream.endpoint)
    assert [one["rfilename"] for one in get(server, f"/api/models/{REPO}").json()["siblings"]] == ["config.json"]
    for path in (".gitattributes", "sub/.hidden/x"):
        assert download(server, REPO, path).status == 404
        assert get(server, files_path(REPO, path)).status == 404


WRITES = {
    "PUT of a model": ("PUT", v1_path(REPO, "new.zt"), {}, bytes(TENSORS)),
    "PUT over a mirrored model": ("PUT", v1_path(REPO, "model.safetensors"), {}, bytes(TENSORS)),
    "DELETE of a model": ("DELETE", v1_path(REPO, "model.safetensors"), {}, None),
    "a streaming writer": ("POST", v1_path(REPO, "new.zt", "/uploads"), {"Content-Type": "application/json"}, b'{"version":"2"}'),
    "PUT of a file": ("PUT", files_path(REPO, "new.json"), {}, b"{}"),
    "DELETE of a file": ("DELETE", files_path(REPO, "config.json"), {}, None),
    "a commit": (
        "POST", f"/api/models/{REPO}/commit/main", {"Content-Type": "application/x-ndjson"},
        b'{"key":"header","value":{"summary":"x"}}\n{"key":"file","value":{"path":"x.txt","content":"eA==","encoding":"base64"}}\n',
    ),
    "S3 PUT": ("PUT", f"/s3/models/{REPO}/new.json", {}, b"{}"),
    "S3 DELETE": ("DELETE", f"/s3/models/{REPO}/config.json", {}, None),
    "S3 multipart": ("POST", f"/s3/models/{REPO}/new.json?uploads", {}, b""),
}  # fmt: skip


@pytest.fixture(scope="module")
def writable(commit, shared_upstream, share_mirror_of):
    server = share_mirror_of(shared_upstream.endpoint, arguments=["--writable"])
    assert download(server, REPO, "config.json").status == 200
    return server


@pytest.mark.parametrize("kind", WRITES)
def test_writes_are_refused_in_words(writable, kind):
    method, target, fields, body = WRITES[kind]
    answer = ask(writable, method, target, fields, body)
    if answer.status == 405:
        pytest.skip("no such route here")
    assert answer.status == 409, answer
    assert f"{REPO} is mirrored from http://".encode() in answer.body, answer.body
    assert download(writable, REPO, "config.json").body == FILES["config.json"]


def test_other_repositories_are_written_to_beside_a_mirror(writable):
    target = "/v1/models/mine%2Fmodel%2Fw"
    assert ask(writable, "PUT", target, {}, bytes(TENSORS)).status == 201
    assert get(writable, target).status == 200
    assert_problem(get(writable, "/v1/models/mine%2Fmodel%2Fnope"), 404, "model-not-found")


def test_small_files_are_checked_as_git_objects(upstream, mirror_of):
    """A file that is another than its object's name says is never served whole."""
    upstream.add(REPO, {"config.json": b'{"a": 1}\n', "other.json": b"{}\n"})
    upstream.change_bytes(REPO, "config.json", b'{"a": 2}\n')
    server = mirror_of(upstream.endpoint)
    got = download(server, REPO, "config.json")
    assert not got.is_right and b'"a"' not in got.body, got
    upstream.change_bytes(REPO, "config.json", b'{"a": 1}\n')
    assert download(server, REPO, "other.json").body == b"{}\n"
    got = eventually_downloaded(server, REPO, "config.json", b'{"a": 1}\n')
    assert got.fields["ETag"] == f'"{git_sha1(got.body)}"'
