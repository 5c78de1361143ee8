"""Commits, branches and tags of a server that keeps versions, as the Hub's clients see them."""

import threading

import pytest

from containers import dense, pattern, zt1
from history import (
    KEEP, api, assert_no_revision, branch, change, commits, escaped, paths, refs, resolved, sha, squash, tag, titles, unbranch, untag,
)  # fmt: skip
from lfs import (
    REPO, assert_refused, batch, commit_lines, entry, files_of, header, inline, lfs_file, objects_of, post, removed, removed_folder, stage,
)  # fmt: skip
from uploads import fill
from wire import Connection, ask, eventually, get

pytestmark = pytest.mark.folder("only a folder keeps versions")

ABSENT = "d" * 40
MODEL, OTHER_MODEL = (zt1({"w": dense(pattern(64, seed), dtype="u8")}) for seed in (1, 2))


@pytest.fixture
def server(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    return start_server(tmp_path / "root", *KEEP)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def lives(server, root, start_server):
    """The server, and then, after a restart, the next one."""

    def live():
        yield server
        assert server.stop() == 0
        yield start_server(root, *KEEP)

    return live


# --- commits ---


def test_a_replaced_file_is_served_at_its_commit(server, root, lives):
    first = change(server, inline("a.txt", b"one"), inline("sub/b.txt", b"b"))
    second = change(server, inline("a.txt", b"two"), removed("sub/b.txt"))
    for one in lives():
        assert sha(one) == second and sha(one, first) == first
        assert resolved(one, first, "a.txt").body == b"one"
        assert resolved(one, first, "a.txt", Range="bytes=1-1").body == b"n"
        assert resolved(one, first, "a.txt")["X-Repo-Commit"] == first
        assert resolved(one, second, "a.txt").body == b"two"
        assert paths(one, first) == ["a.txt", "sub/b.txt"]
        assert paths(one, second) == ["a.txt"]
        told = post(one, api(f"/paths-info/{first}"), {"paths": ["sub/b.txt"], "expand": True}).json()
        assert [entry["lastCommit"]["id"] for entry in told] == [first]
    assert files_of(root) == {"a.txt": b"two"}


def test_a_file_that_is_replaced_after_it_was_listed(server):
    """Clients list a commit first."""
    first = change(server, inline("a.txt", b"one"))
    assert paths(server, first) == ["a.txt"] and resolved(server, first, "a.txt").body == b"one"
    change(server, inline("a.txt", b"two"))
    assert resolved(server, first, "a.txt").body == b"one"


def test_a_file_in_a_folder_of_a_repository_of_one_part_stays_in_a_commit(server):
    """Without a config.json, the folder is a repository of its own for the history."""
    for content in (b"one", b"two", b"three"):
        change(server, inline("a.txt", content), inline("sub/b.txt", content + b" below"), repo="tiny")
    found = [one["id"] for one in commits(server, repo="tiny/sub").json()]
    assert [resolved(server, one, "b.txt", repo="tiny/sub").body for one in found] == [b"three below", b"two below", b"one below"]


def test_commits_of_a_deleted_repository_remain(server, lives):
    first = change(server, inline("a.txt", b"one"))
    assert tag(server, "v1").status == 200
    change(server, removed("a.txt"))
    for one in lives():
        assert resolved(one, first, "a.txt").body == b"one"
        assert resolved(one, "v1", "a.txt").body == b"one"


def test_the_log_states_titles_and_authors(server):
    change(server, inline("a.txt", b"1"), summary="first <b>", description="more & more")
    change(server, inline("a.txt", b"2"), summary="second")
    told = commits(server).json()
    assert [one["title"] for one in told] == ["second", "first <b>"]
    assert told[1]["message"] == "more & more" and "formatted" not in told[0]
    assert told[0]["date"].endswith("Z") and told[0]["authors"][0]["user"]
    assert told[0]["id"] == sha(server)
    assert [one["title"] for one in commits(server, told[1]["id"]).json()] == ["first <b>"]
    formatted = commits(server, query="?expand%5B%5D=formatted").json()[1]["formatted"]
    assert formatted == {"title": "first &lt;b&gt;", "message": "more &amp; more"}


def test_the_log_comes_in_pages(server):
    for number in range(5):
        change(server, inline("a.txt", b"%d" % number), summary=f"n{number}")
    seen, target = [], api("/commits/main?expand%5B%5D=formatted&limit=2")
    while target:
        page = get(server, target)
        seen += [one["formatted"]["title"] for one in page.json()]
        link = page["Link"]
        assert link is None or (link.startswith(f"<{server.url}/api/") and link.endswith('>; rel="next"')), link
        target = link and link[1:].split(">")[0].removeprefix(server.url)
    assert seen == ["n4", "n3", "n2", "n1", "n0"]


def test_a_title_that_is_too_long_is_cut_between_characters(server):
    change(server, inline("a.txt", b"1"), summary="ü" * 400)
    assert titles(server) == ["ü" * 127]


def test_files_of_other_programs_are_the_current_commit(server, root):
    first = change(server, inline("a.txt", b"1"), summary="first")
    fill(root / REPO, {"b.txt": b"by hand"})
    assert eventually(lambda: sha(server) != first)
    assert commits(server).json()[0]["id"] == sha(server)
    assert titles(server) in (["Current files", "first"], ["Found in the folder", "first"])
    assert tag(server, "v1").status == 200
    assert refs(server)[1]["v1"] == sha(server, "v1") == sha(server)
    assert len(titles(server)) == 2


def test_a_commit_is_listed_when_the_log_has_it(server):
    """A file is published before its commit is recorded."""
    change(server, inline("a.txt", b"first"))
    is_over, listed, unknown = threading.Event(), set(), set()

    def read():
        with Connection(server) as connection:
            while not is_over.is_set():
                first = connection.ask("GET", api("/commits/main")).json()[0]["id"]
                listed.add(first)
                if connection.ask("GET", f"/v1/models/{REPO}/x/revisions/{first}").status != 200:
                    unknown.add(first)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(90):
        assert ask(server, "PUT", f"/files/{REPO}/a.txt", {}, b"%d" % number).status == 204
    is_over.set()
    for reader in readers:
        reader.join()
    assert len(listed) > 1 and not unknown


# --- names of revisions ---


def test_every_name_of_a_revision_is_served(server):
    first = change(server, inline("a.txt", b"one"))
    assert tag(server, "v1.0").status == branch(server, "feature/x").status == 200
    second = change(server, inline("a.txt", b"two"))
    for name in ("v1.0", "refs/tags/v1.0", "feature/x", "refs/heads/feature/x", first):
        assert sha(server, name) == first and resolved(server, name, "a.txt").body == b"one", name
        assert commits(server, name).json()[0]["id"] == first
    for name in ("main", "HEAD", "refs/heads/main", second):
        assert sha(server, name) == second and resolved(server, name, "a.txt").body == b"two", name
    # Not escaped, as some clients send it.
    assert get(server, f"/{REPO}/resolve/refs/tags/v1.0/a.txt").status == 307
    assert get(server, api("/commits/feature/x")).json()[0]["id"] == first
    for name in ("v2", ABSENT, "refs/pr/1", "refs/tags/feature/x", "a..b"):
        assert_no_revision(get(server, api(f"/revision/{escaped(name)}")))
        assert_no_revision(commits(server, name))
        assert_no_revision(get(server, f"/{REPO}/resolve/{escaped(name)}/a.txt"))


def test_branches_and_tags_are_listed(server, lives):
    first = change(server, inline("a.txt", b"1"))
    assert tag(server, "v1", message="the first").status == branch(server, "dev").status == 200
    second = change(server, inline("a.txt", b"2"))
    for one in lives():
        assert refs(one) == ({"main": second, "dev": first}, {"v1": first})
        told = get(one, api("/refs?include_prs=1")).json()
        assert [one["ref"] for one in told["branches"] + told["tags"]] == ["refs/heads/main", "refs/heads/dev", "refs/tags/v1"]
        assert told["converts"] == told["pullRequests"] == []


# --- tags ---


def test_a_tag_is_made_once(server):
    first = change(server, inline("a.txt", b"1"))
    assert tag(server, "v1").status == 200
    change(server, inline("a.txt", b"2"))
    assert_refused(tag(server, "v1"), 409, "the tag v1 already exists")
    assert refs(server)[1] == {"v1": first}
    assert untag(server, "v1").status == 200
    assert_no_revision(untag(server, "v1"))
    assert_no_revision(get(server, api("/revision/v1")))
    assert tag(server, "v1", first).status == tag(server, "v2", "v1").status == tag(server, "v3", "refs/tags/v1").status == 200
    assert refs(server)[1] == dict.fromkeys(("v1", "v2", "v3"), first)


def test_tags_that_are_refused(server):
    change(server, inline("a.txt", b"1"))
    assert_no_revision(tag(server, "v1", ABSENT))
    assert_no_revision(tag(server, "v1", "nope"))
    for name in ("a b", "a..b", "x.lock", "", "HEAD", "a" * 40, "-v"):
        assert tag(server, name).status == 400, name
    assert post(server, api("/tag/main"), {}).status == post(server, api("/tag/main"), []).status == 400
    absent = tag(server, "v1", repo="org/none")
    assert (absent.status, absent["X-Error-Code"]) == (404, "RepoNotFound")
    assert refs(server)[1] == {}


# --- branches ---


def test_files_of_a_branch_are_not_in_the_folder(server, root, lives):
    first = change(server, inline("a.txt", b"1"), inline("b/c.txt", b"c"))
    assert branch(server, "dev").status == 200
    made = change(server, inline("a.txt", b"on dev"), inline("d.txt", b"d"), removed("b/c.txt"), branch="dev", summary="on dev")
    for one in lives():
        assert sha(one) == first and sha(one, "dev") == made != first
        assert paths(one, "dev") == ["a.txt", "d.txt"] and paths(one) == ["a.txt", "b/c.txt"]
        assert [resolved(one, name, "a.txt").body for name in ("dev", made, "main")] == [b"on dev", b"on dev", b"1"]
        assert len(titles(one, "dev")) == 2 and titles(one, "dev")[0] == "on dev"
    assert files_of(root) == {"a.txt": b"1", "b/c.txt": b"c"}


def test_a_branch_of_an_empty_repository(server):
    """As "hf upload --revision" does it."""
    assert post(server, "/api/repos/create", {"name": "model", "organization": "org"}).status == 200
    assert_no_revision(get(server, api("/revision/dev")))
    assert branch(server, "dev").status == 200
    change(server, inline("a.txt", b"1"), branch="dev")
    assert paths(server, "dev") == ["a.txt"] and paths(server) == []


def test_a_branch_that_begins_empty(server):
    change(server, inline("a.txt", b"1"))
    assert branch(server, "bare", emptyBranch=True).status == 200
    assert paths(server, "bare") == []
    assert_refused(branch(server, "bare", emptyBranch=True), 409, "already exists")


def test_branches_are_made_moved_and_deleted(server):
    first = change(server, inline("a.txt", b"1"))
    second = change(server, inline("a.txt", b"2"))
    assert branch(server, "dev", first).status == 200
    assert_refused(branch(server, "dev", second), 409, "the branch dev already exists")
    assert refs(server)[0]["dev"] == first
    assert branch(server, "dev", second, overwrite=True).status == 200
    assert refs(server)[0]["dev"] == second
    # Going back, by a client that cannot overwrite.
    assert unbranch(server, "dev").status == branch(server, "dev", first).status == 200
    assert resolved(server, "dev", "a.txt").body == b"1"
    assert unbranch(server, "refs/heads/dev").status == 200
    assert_no_revision(unbranch(server, "dev"))
    assert_no_revision(branch(server, "other", "nope"))
    assert branch(server, "a b").status == 400
    assert refs(server)[0] == {"main": second}


def test_main_is_neither_made_moved_nor_deleted(server):
    first = change(server, inline("a.txt", b"1"))
    second = change(server, inline("a.txt", b"2"))
    assert_refused(branch(server, "main", first), 409, "already exists")
    assert_refused(branch(server, "main", first, overwrite=True), 403, "main is the folder itself")
    assert_refused(unbranch(server, "main"), 403, "main cannot be deleted")
    assert sha(server) == second


def test_only_branches_take_commits(server, root):
    first = change(server, inline("a.txt", b"1"))
    assert tag(server, "v1").status == 200
    for name in ("nope", "v1", first, "refs/tags/v1"):
        assert_no_revision(commit_lines(server, header(), inline("a.txt", b"2"), revision=escaped(name)))
    for path in (api("/preupload/nope"), api("/preupload/" + ABSENT)):
        assert_no_revision(post(server, path, {"files": [{"path": "a", "size": 1}]}))
    assert_no_revision(get(server, api("/xet-write-token/nope")))
    assert get(server, api("/xet-write-token/main")).status == 200
    asked = commit_lines(server, header(), inline("a.txt", b"2"), revision="main?create_pr=1")
    assert_refused(asked, 501, "pull requests")
    absent = commit_lines(server, header(), inline("a.txt", b"2"), repo="org/none", revision="dev")
    assert (absent.status, absent["X-Error-Code"]) == (404, "RepoNotFound")
    assert files_of(root) == {"a.txt": b"1"} and not (root / "org/none").exists()


def test_the_parent_is_that_of_the_branch(server):
    first = change(server, inline("a.txt", b"1"))
    assert branch(server, "dev").status == 200
    second = change(server, inline("a.txt", b"2"), branch="dev", parentCommit=first)
    refused = commit_lines(server, header(parentCommit=first), inline("a.txt", b"3"), revision="dev")
    assert_refused(refused, 412, "parentCommit is no longer the commit of the branch")
    change(server, inline("a.txt", b"3"), branch="dev", parentCommit=second)
    assert len(titles(server, "dev")) == 3


def test_of_commits_with_one_parent_one_succeeds(server):
    first = change(server, inline("a.txt", b"1"))
    assert branch(server, "dev").status == 200
    statuses = []

    def send(number):
        line = inline("a.txt", b"by %d" % number)
        statuses.append(commit_lines(server, header(parentCommit=first), line, revision="dev").status)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 412, 412, 412]
    assert len(titles(server, "dev")) == 2


def test_a_branch_takes_large_files(server, root):
    """Sent before the commit; of main, and so not sent; and removed with their folder."""
    large, mains = pattern(70_000), pattern(80_000)
    change(server, inline("main.bin.txt", mains))
    assert branch(server, "dev").status == 200
    stage(server, large)
    assert ["actions" in one for one in objects_of(batch(server, entry(mains)))] == [False]
    change(server, lfs_file("sub/large.bin.txt", large), lfs_file("sub/copy.bin.txt", mains), lfs_file("x/again.txt", large), branch="dev")
    assert resolved(server, "dev", "sub/large.bin.txt").body == resolved(server, "dev", "x/again.txt").body == large
    assert resolved(server, "dev", "sub/copy.bin.txt").body == mains
    told = post(server, api("/preupload/dev"), {"files": [{"path": "main.bin.txt", "size": len(mains)}, {"path": "y", "size": 1}]})
    assert ["oid" in one for one in told.json()["files"]] == [True, False]
    change(server, removed_folder("sub"), branch="dev")
    assert paths(server, "dev") == ["main.bin.txt", "x/again.txt"]
    assert files_of(root) == {"main.bin.txt": mains}


def test_a_commit_to_a_branch_is_checked_like_any_other(server):
    change(server, inline("a.txt", b"1"), inline("f/x", b"x"))
    assert branch(server, "dev").status == 200
    for lines, status, words in (
        ([inline("w.safetensors", b"no model")], 422, "line 3: w.safetensors"),
        ([inline("c.json", b"{")], 422, "line 3: c.json"),
        ([removed("nope")], 404, "no file nope"),
        ([inline("a.txt/b", b"")], 409, "a.txt is a file"),
        ([inline("f", b"")], 409, "f is a folder"),
        ([inline("../x", b"")], 400, "path"),
        ([lfs_file("l", b"never sent")], 400, "no object with this oid"),
    ):
        refused = commit_lines(server, header(), inline("new", b"n"), *lines, revision="dev")
        assert refused.status == status and words in refused["X-Error-Message"], refused
    assert paths(server, "dev") == ["a.txt", "f/x"] and len(titles(server, "dev")) == 1


# --- squashing ---


def test_a_squashed_branch_has_one_commit(server, lives):
    for number in range(3):
        change(server, inline("a.txt", b"%d" % number))
    assert branch(server, "dev").status == 200
    change(server, inline("b.txt", b"b"), branch="dev")
    before = sha(server, "dev")
    assert squash(server, "dev", "one\nmore").status == 200
    assert [one["title"] for one in commits(server, "dev").json()] == ["one\nmore"] or titles(server, "dev") == ["one"]
    assert sha(server, "dev") == before and len(titles(server)) == 3
    assert squash(server, "main").status == 200
    for one in lives():
        assert titles(one) == ["squashed"]
        assert resolved(one, "main", "a.txt").body == b"2" and resolved(one, "dev", "b.txt").body == b"b"
    assert_no_revision(squash(one, "nope"))


# --- views of models ---


def test_a_commit_with_a_view_is_served_as_long_as_its_files(server, lives):
    first = change(server, inline("w.zt", MODEL))
    view = resolved(server, first, "model.safetensors").body
    assert paths(server, first) == ["model.safetensors", "w.zt"] and tag(server, "v1", first).status == 200
    second = change(server, inline("w.zt", OTHER_MODEL))
    for one in lives():
        assert resolved(one, first, "model.safetensors").body == view != resolved(one, second, "model.safetensors").body
        assert resolved(one, first, "w.zt").body == MODEL
        assert paths(one, first) == paths(one, "v1") == ["model.safetensors", "w.zt"]
        assert sha(one, "v1") == first and resolved(one, "v1", "model.safetensors").body == view
        assert commits(one, first).json()[0]["id"] == first
        assert tag(one, f"again-{one.url[-4:]}", first).status == 200


def test_the_commit_of_the_stored_files_has_no_views(server):
    """Another version of the server might make other bytes."""
    first = change(server, inline("w.zt", MODEL))
    assert tag(server, "v1").status == 200
    change(server, inline("w.zt", OTHER_MODEL))
    stored = refs(server)[1]["v1"]
    assert stored != first and stored[:16] == first[:16]
    assert paths(server, stored) == ["w.zt"] and resolved(server, stored, "w.zt").body == MODEL
    assert resolved(server, stored, "w.zt")["X-Repo-Commit"] == stored
    assert resolved(server, stored, "model.safetensors")["X-Error-Code"] == "EntryNotFound"


# --- without versions ---


def test_without_versions_there_is_only_main(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    first = change(server, inline("a.txt", b"1"))
    change(server, inline("a.txt", b"2"))
    assert_no_revision(resolved(server, first, "a.txt"))
    assert refs(server) == ({"main": sha(server)}, {}) and titles(server) == ["Current files"]
    for answer in (tag(server, "v1"), branch(server, "dev"), unbranch(server, "dev"), untag(server, "v1"), squash(server, "main")):
        assert_refused(answer, 403, "this server")
    assert_no_revision(commit_lines(server, header(), inline("a.txt", b"3"), revision="dev"))


def test_read_only_servers_serve_what_was_kept(server, root, start_server):
    first = change(server, inline("a.txt", b"1"))
    assert tag(server, "v1").status == 200
    change(server, inline("a.txt", b"2"))
    assert server.stop() == 0
    reader = start_server(root, "--keep-versions", "100")
    assert resolved(reader, "v1", "a.txt").body == resolved(reader, first, "a.txt").body == b"1"
    assert ask(reader, "DELETE", api("/tag/v1")).status == tag(reader, "v2").status == 403
    assert sorted(refs(reader)[1]) == ["v1"]
