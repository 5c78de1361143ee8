"""Uploads by Git LFS, as the Hub's clients do them: a batch, the bytes at the addresses that it answers, a commit."""

import base64
import hashlib
import json
from urllib.parse import urlsplit

from wire import ask, get

REPO = "org/model"


def oid_of(content):
    return hashlib.sha256(content).hexdigest()


def entry(content):
    return {"oid": oid_of(content), "size": len(content)}


def post(server, path, value, **fields):
    return ask(server, "POST", path, {"Content-Type": "application/json", **fields}, json.dumps(value).encode())


def batch(server, *objects, repo=REPO, fields=None, **members):
    value = {"operation": "upload", "transfers": ["basic", "multipart", "xet"], "objects": list(objects), "hash_algo": "sha256", **members}
    return post(server, f"/{repo}.git/info/lfs/objects/batch", value, **(fields or {}))


def objects_of(answer):
    assert answer.status == 200, answer
    return answer.json()["objects"]


def target_of(href):
    parts = urlsplit(href)
    return f"{parts.path}?{parts.query}"


def address(server, content, **options):
    """Where to send an object; None if it is not to be sent."""
    (only,) = objects_of(batch(server, entry(content), **options))
    assert (only["oid"], only["size"]) == (oid_of(content), len(content)) and "error" not in only
    return target_of(only["actions"]["upload"]["href"]) if "actions" in only else None


def put(server, target, content, **fields):
    return ask(server, "PUT", target, fields, content)


def stage(server, content, **options):
    answer = put(server, address(server, content, **options), content)
    assert answer.status == 200, answer


def header(**members):
    return {"key": "header", "value": {"summary": "s", "description": "", **members}}


def inline(path, content):
    return {"key": "file", "value": {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}}


def lfs_file(path, content, /, **members):
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", **entry(content), **members}}


def removed(path):
    return {"key": "deletedFile", "value": {"path": path}}


def removed_folder(path):
    return {"key": "deletedFolder", "value": {"path": path}}


def body_of(*lines):
    return b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)


def commit_lines(server, *lines, repo=REPO, revision="main", fields=None):
    """A commit of just these lines, which may be bytes."""
    fields = {"Content-Type": "application/x-ndjson", **(fields or {})}
    return ask(server, "POST", f"/api/models/{repo}/commit/{revision}", fields, body_of(*lines))


def commit(server, *lines, repo=REPO, fields=None):
    return commit_lines(server, header(), *lines, repo=repo, fields=fields)


def files_of(root, repo=REPO):
    folder = root / repo
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def places(root):
    kept = root / ".ztserve-uploads"
    return list(kept.iterdir()) if kept.exists() else []


def staged(server):
    """What the server lists as staged, whether it has arrived or not."""
    return [one for one in get(server, "/v1/uploads").json()["uploads"] if one["kind"] == "staged"]


def assert_refused(answer, status, *words):
    assert answer.status == status, answer
    message = answer["X-Error-Message"]
    for word in words:
        assert word in message, message
