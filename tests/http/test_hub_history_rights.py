"""What clients may see of commits, branches and tags, and change, by their tokens."""

import pytest

from clients import Client, write_tokens
from history import KEEP, api, assert_no_revision, branch, change, commits, escaped, resolved, squash, tag, unbranch, untag
from lfs import REPO, assert_refused, commit_lines, files_of, header, inline
from containers import dense, pattern, zt1
from wire import get

pytestmark = pytest.mark.folder("only a folder keeps versions")

OWNER = Client("owner", "write")
WHOLE = Client("whole", "write", f"{REPO}/*")
PART = Client("part", "write", f"{REPO}/open/*")
READER = Client("reader", "read", f"{REPO}/*")
OTHER = Client("other", "write", "elsewhere/*")
MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


@pytest.fixture
def server(tmp_path_factory, tmp_path, start_server):
    tokens = tmp_path_factory.mktemp("history-rights") / "tokens"
    server = start_server(tmp_path, *KEEP, "--tokens", write_tokens(tokens, OWNER, WHOLE, PART, READER, OTHER))
    change(server, inline("open/a.txt", b"1"), inline("closed/b.txt", b"b"), inline("closed/m.zt", MODEL), fields=OWNER.fields)
    assert tag(server, "v1", fields=OWNER.fields).status == branch(server, "dev", fields=OWNER.fields).status == 200
    return server


def test_the_author_is_the_token(server):
    assert [one["authors"] for one in commits(server, **READER.fields).json()] == [[{"user": "owner"}]]


def test_who_sees_a_file_sees_it_at_every_revision(server):
    for name in ("v1", "dev", "main"):
        assert resolved(server, name, "open/a.txt", **PART.fields).body == b"1"
        assert resolved(server, name, "closed/b.txt", **PART.fields)["X-Error-Code"] == "EntryNotFound"
        assert resolved(server, name, "closed/m.safetensors", **PART.fields)["X-Error-Code"] == "EntryNotFound"
        assert resolved(server, name, "closed/m.safetensors", **READER.fields).status == 200
        told = get(server, api(f"/tree/{name}?recursive=1"), **PART.fields).json()
        assert [one["path"] for one in told] == ["open", "open/a.txt"]


def test_others_learn_nothing(server):
    for path in ("/refs", "/commits/main", "/commits/v1", "/revision/v1", "/revision/nope", "/tree/dev"):
        answer = get(server, api(path), **OTHER.fields)
        assert (answer.status, answer["X-Error-Code"]) == (404, "RepoNotFound"), answer


@pytest.mark.parametrize("client", [READER, PART, OTHER], ids=lambda client: client.name)
def test_branches_and_tags_need_rights_for_the_whole_repository(server, client):
    for answer in (
        tag(server, "v2", fields=client.fields),
        untag(server, "v1", fields=client.fields),
        branch(server, "b2", fields=client.fields),
        branch(server, "dev", "main", overwrite=True, fields=client.fields),
        unbranch(server, "dev", fields=client.fields),
        squash(server, "main", fields=client.fields),
    ):
        assert answer.status == 403, answer
    assert get(server, api("/refs"), **OWNER.fields).json()["tags"][0]["name"] == "v1"


def test_with_these_rights_they_are_made(server):
    for answer in (tag(server, "v2", fields=WHOLE.fields), branch(server, "b2", fields=WHOLE.fields), squash(server, "main", fields=WHOLE.fields)):
        assert answer.status == 200, answer


def test_commits_to_a_branch_need_rights_for_their_files(server, tmp_path):
    change(server, inline("open/new.txt", b"n"), branch="dev", fields=PART.fields)
    refused = commit_lines(server, header(), inline("closed/x.txt", b"x"), revision="dev", fields=PART.fields)
    assert_refused(refused, 403, "may not use a file of this name")
    assert resolved(server, "dev", "closed/b.txt", **OWNER.fields).body == b"b"
    assert "open/new.txt" not in files_of(tmp_path)
    assert_no_revision(get(server, api(f"/revision/{escaped('a/b')}"), **PART.fields))
