"""URLs of a Hub as its clients and others write them: every name that a file may have, and what must look as if it were not
there."""

import hashlib
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from hub_repositories import ODD_NAMES, SECRET, make_model

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))
from wire import ask, get, head  # noqa: E402


@pytest.fixture(scope="module")
def served(folder):
    (folder / "outside.txt").write_bytes(SECRET)
    (folder / ".hidden").mkdir()
    (folder / ".hidden/model").mkdir()
    (folder / ".hidden/model/config.json").write_bytes(SECRET)
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server):
    return share_server(folder)


@pytest.fixture(scope="module")
def commit(hub):
    return get(hub, "/api/models/org/model").json()["sha"]


def url(path, revision="main", kind="resolve"):
    return f"/org/model/{kind}/{revision}/{path}"


def fetch(hub, target, method="GET", **fields):
    """A branch may lead to its commit, which answers itself."""
    answer = ask(hub, method, target, fields)
    if answer.status == 307 and "/main" in target.replace("%2F", "/"):
        assert answer["X-Repo-Commit"] and answer["ETag"]
        answer = ask(hub, method, answer["Location"], fields)
    return answer


def assert_missing(answer, code, commit=None):
    assert (answer.status, answer.fields.get("X-Error-Code")) == (404, code), answer
    assert SECRET not in (answer.body or b"")
    if commit:
        assert answer["X-Repo-Commit"] == commit


@pytest.mark.parametrize("name", [*ODD_NAMES, "empty.txt", "onnx/config.json"])
def test_every_name(hub, served, commit, name):
    for written in (quote(name), quote(name, safe="")):
        for revision in ("main", "refs%2Fheads%2Fmain", "refs/heads/main", commit):
            for kind in ("resolve", "raw"):
                answer = fetch(hub, url(written, revision, kind))
                assert (answer.status, answer.body) == (200, served[name]), (written, revision, kind)
                assert answer["X-Repo-Commit"] == commit
                assert answer["ETag"] == f'"{hashlib.sha256(served[name]).hexdigest()}"'
    found = get(hub, f"/api/models/org/model/tree/main/{quote(name.rpartition('/')[0], safe='')}").json()
    assert name in [entry["path"] for entry in found]


@pytest.mark.parametrize("path", [
    "../../../outside.txt", "..%2f..%2foutside.txt", "%2e%2e/%2e%2e/outside.txt", "sub/../config.json", "sub/%2e%2e/config.json",
    "./config.json", "%2e/config.json", "config.json/", "config.json%2f", ".hidden.json",
    "%2ehidden.json", ".git/config", "sub/.cache/file.txt", "link.txt", "sub", "nope.json", "..%5coutside.txt",
])  # fmt: skip
def test_nothing_there(hub, commit, path):
    for kind in ("resolve", "raw"):
        assert_missing(get(hub, url(path, kind=kind)), "EntryNotFound", commit)
        answer = head(hub, url(path, commit, kind))
        assert (answer.status, answer["X-Error-Code"]) == (404, "EntryNotFound")


@pytest.mark.parametrize("path", [
    "config.json%00", "config.json%00.txt", "%c0%ae%c0%ae/outside.txt", "%zz", "/config.json", "sub//x.txt",
])  # fmt: skip
def test_what_no_file_can_be_called(hub, path):
    for kind in ("resolve", "raw"):
        answer = get(hub, url(path, kind=kind))
        assert answer.status in (400, 404) and SECRET not in answer.body


@pytest.mark.parametrize("repository", ["org/none", "none", "org/%2e%2e", "%2e%2e/outside", ".hidden/model", "org/model.git", "org/-model"])
def test_no_repository(hub, repository):
    assert_missing(get(hub, f"/{repository}/resolve/main/config.json"), "RepoNotFound")
    for below in ("", "/revision/main", "/tree/main", "/refs", "/commits/main"):
        assert_missing(get(hub, f"/api/models/{repository}{below}"), "RepoNotFound")


@pytest.mark.parametrize("revision", ["v1", "0" * 40, "0" * 39, "refs%2Fpr%2F1", "Main", "%2e%2e"])
def test_no_revision(hub, revision):
    assert_missing(get(hub, url("config.json", revision)), "RevisionNotFound")
    for kind in ("revision", "tree", "commits"):
        assert_missing(get(hub, f"/api/models/org/model/{kind}/{revision}"), "RevisionNotFound")


def test_an_error_says_what_is_missing(hub):
    answer = get(hub, url("nope.json"))
    assert answer["X-Error-Message"] and answer.json()["error"]


def test_ranges(hub, served, commit):
    content = served["model.safetensors"]
    for asked, begin, end in (("bytes=0-0", 0, 1), ("bytes=100-", 100, None), ("bytes=5-9", 5, 10), ("bytes=-7", -7, None)):
        answer = ask(hub, "GET", url("model.safetensors", commit), {"Range": asked})
        assert (answer.status, answer.body) == (206, content[begin:end])
        assert answer["Content-Range"].endswith(f"/{len(content)}")
        assert answer["X-Repo-Commit"] == commit and answer["ETag"]
    beyond = ask(hub, "GET", url("model.safetensors", commit), {"Range": f"bytes={len(content)}-"})
    assert beyond.status == 416


@pytest.mark.parametrize("asked", ["bytes=0-0", "bytes=0-"])
def test_the_first_byte_of_an_empty_file(hub, commit, asked):
    """416 ends npm's and Rust's downloads, and 200 npm's; here only."""
    answer = ask(hub, "GET", url("empty.txt", commit), {"Range": asked})
    assert (answer.status, answer.body, answer["Content-Range"]) == (206, b"", "bytes 0-0/0")
    assert answer["X-Repo-Commit"] == commit


def test_files_are_sent_uncoded_and_without_words_of_xet(hub):
    for accept in ("gzip, deflate", "", "identity"):
        answer = fetch(hub, url("config.json"), **{"Accept-Encoding": accept})
        assert "Content-Encoding" not in answer.fields
        assert not [name for name in answer.fields if "xet" in name.lower()]
        assert "xet" not in answer.fields.get("Link", "")
    answer = fetch(hub, url("config.json"), Accept="application/vnd.xet-fileinfo+json")
    assert (answer.status, "xet" in answer["Content-Type"]) == (200, False)


def test_head_is_enough(hub, served, commit):
    answer = fetch(hub, url("model.safetensors"), "HEAD", **{"Accept-Encoding": "identity"})
    assert answer.status == 200
    assert (answer["X-Repo-Commit"], answer["Accept-Ranges"]) == (commit, "bytes")
    assert int(answer["Content-Length"]) == len(served["model.safetensors"])
