"""main moves upstream, and with it here; clients that pinned an earlier commit keep it; what is here works offline."""

import pytest

import meddler as acts
from pull_through import MIB, REPO, download, eventually_downloaded, fetch, files_path, resolve_path, safetensors, v1_path
from wire import eventually, get

KEPT = safetensors(3 * MIB, seed=11)
BEFORE = safetensors(2 * MIB, seed=12)
AFTER = safetensors(2 * MIB, seed=13)
OLD = {"kept.safetensors": KEPT, "changed.safetensors": BEFORE, "config.json": b'{"v": 1}\n', "removed.txt": b"old\n"}
NEW = {"kept.safetensors": KEPT, "changed.safetensors": AFTER, "config.json": b'{"v": 2}\n', "added.txt": b"new\n"}


def fetch_all(server, files, revision="main"):
    for path, content in files.items():
        eventually_downloaded(server, REPO, path, content, revision)


def commit_here(server):
    return get(server, f"/api/models/{REPO}").json()["sha"]


def test_main_is_believed_for_a_while_and_then_moves(upstream, mirror_of):
    old = upstream.add(REPO, OLD)
    believing = mirror_of(upstream.endpoint, revalidate_s=3600)
    looking = mirror_of(upstream.endpoint, revalidate_s=1)
    for server in (believing, looking):
        fetch_all(server, OLD)
    new = upstream.add(REPO, NEW)
    counted = upstream.counting()
    assert eventually(lambda: commit_here(looking) == new)
    assert (commit_here(believing), counted.count("tree")) == (old, 1)
    # Only the changed bytes are fetched, from upstream and for the reader.
    fetch_all(looking, NEW)
    changed = sum(len(content) for path, content in NEW.items() if OLD.get(path) != content)
    assert counted.sent_bytes() <= changed, counted
    assert download(looking, REPO, "removed.txt").status == 404
    assert get(looking, files_path(REPO, "config.json")).body == NEW["config.json"]
    assert get(looking, files_path(REPO, "removed.txt")).status == 404
    # Whoever pinned the old commit keeps it.
    fetch_all(looking, OLD, old)
    pinned = download(looking, REPO, "config.json", old)
    assert (pinned.body, pinned.fields["X-Repo-Commit"]) == (OLD["config.json"], old)
    fetch_all(believing, OLD)


def test_bytes_that_stay_keep_their_tag_and_date_when_main_moves(upstream, mirror_of):
    upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    before = {path: eventually_downloaded_from_files(server, path, OLD[path]) for path in ("kept.safetensors", "changed.safetensors")}
    new = upstream.add(REPO, NEW)
    assert eventually(lambda: commit_here(server) == new)
    after = {path: eventually_downloaded_from_files(server, path, NEW[path]) for path in before}
    kept = "kept.safetensors"
    for field in ("ETag", "Last-Modified"):
        assert after[kept].fields[field] == before[kept].fields[field]
    assert after["changed.safetensors"].fields["ETag"] != before["changed.safetensors"].fields["ETag"]
    tag = before[kept].fields["ETag"]
    assert get(server, files_path(REPO, kept), If_None_Match=tag).status == 304


def eventually_downloaded_from_files(server, path, content):
    got = eventually(lambda: (found := fetch(server, files_path(REPO, path))).is_right and found)
    assert got.body == content
    return got


@pytest.mark.others
def test_main_moves_only_when_the_whole_list_has_been_read(upstream, mirror_of):
    """The second page of the new list cannot be had: until it can, main is what it was."""
    upstream.page = 2
    old = upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    fetch_all(server, OLD)
    new = upstream.add(REPO, NEW)
    failing = upstream.meddle(acts.reply(500, b"broken"), "tree", when=lambda request: "cursor" in request.query)

    def looked_again():
        assert commit_here(server) == old
        assert download(server, REPO, "config.json").body == OLD["config.json"]
        return failing.used >= 2

    eventually(looked_again)
    upstream.stop(failing)
    assert eventually(lambda: commit_here(server) == new)
    fetch_all(server, NEW)


def test_a_commit_that_was_never_main_here(upstream, mirror_of):
    old = upstream.add(REPO, OLD)
    new = upstream.add(REPO, NEW)
    server = mirror_of(upstream.endpoint)
    fetch_all(server, OLD, old)
    got = download(server, REPO, "config.json", old)
    assert got.fields["X-Repo-Commit"] == old
    assert commit_here(server) == new
    fetch_all(server, NEW)


def test_a_download_in_progress_keeps_its_commit_when_main_moves(upstream, mirror_of):
    """Its bytes are all of the file that it began."""
    upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    old = commit_here(server)
    first = fetch(server, resolve_path(REPO, "changed.safetensors"), {"Range": f"bytes=0-{MIB - 1}"})
    assert first.fields["X-Repo-Commit"] == old
    new = upstream.add(REPO, NEW)
    assert eventually(lambda: commit_here(server) == new)
    rest = fetch(server, resolve_path(REPO, "changed.safetensors", old), {"Range": f"bytes={MIB}-"})
    assert rest.status == 206 and first.body + rest.body == BEFORE


def test_a_changed_model_is_another_one(upstream, mirror_of):
    """Manifest and tensors of a model are never of two versions."""
    upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    before = get(server, v1_path(REPO, "changed.safetensors", "/objects/a/data")).body
    assert before in BEFORE
    upstream.add(REPO, NEW)
    after = eventually(
        lambda: (found := get(server, v1_path(REPO, "changed.safetensors", "/objects/a/data"))).body != before and found
    )
    assert after.status == 200 and after.body in AFTER


def test_a_repository_that_upstream_removed_is_still_served(upstream, mirror_of):
    upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    fetch_all(server, OLD)
    upstream.repositories.clear()
    counted = upstream.counting()
    eventually(lambda: download(server, REPO, "config.json").body == OLD["config.json"] and counted.requests)
    fetch_all(server, OLD)


def test_offline_serves_what_is_here_and_asks_nothing(upstream, mirror_of):
    old = upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint)
    eventually_downloaded(server, REPO, "kept.safetensors", KEPT)
    assert server.stop() == 0
    counted = upstream.counting()
    server = mirror_of.again(server, upstream.endpoint, offline=True, revalidate_s=1)
    assert commit_here(server) == old
    eventually_downloaded(server, REPO, "kept.safetensors", KEPT)
    assert get(server, v1_path(REPO, "kept.safetensors")).status == 200
    for missing in (download(server, REPO, "changed.safetensors"), download(server, "acme/other", "config.json")):
        assert missing.status in (404, 503), missing
    assert sorted(one["rfilename"] for one in get(server, f"/api/models/{REPO}").json()["siblings"]) == sorted(OLD)
    assert counted.requests == 0, counted


@pytest.mark.others
def test_more_commits_than_are_remembered(upstream, mirror_of):
    """The oldest may have to be looked up again; none is ever wrong."""
    commits = [upstream.add(REPO, {"n.json": b"%d\n" % number}) for number in range(20)]
    server = mirror_of(upstream.endpoint)
    for number, commit in enumerate(commits):
        assert download(server, REPO, "n.json", commit).body == b"%d\n" % number
    for number, commit in enumerate(commits):
        got = download(server, REPO, "n.json", commit)
        assert (got.status, got.body, got.fields["X-Repo-Commit"]) == (200, b"%d\n" % number, commit)


def test_model_and_file_are_read_at_a_commit_that_is_not_current(upstream, mirror_of):
    old = upstream.add(REPO, OLD)
    server = mirror_of(upstream.endpoint, revalidate_s=1)
    fetch_all(server, OLD)
    new = upstream.add(REPO, NEW)
    assert eventually(lambda: commit_here(server) == new)
    fetch_all(server, NEW)
    name = f"{REPO}/changed"
    manifests = {}
    for revision, commit, content in ((old, old, BEFORE), (new, new, AFTER), ("main", new, AFTER)):
        answer = eventually(lambda: found(get(server, f"/v1/models/{name}@{revision}")))
        assert answer["ZT-Commit"] == commit
        manifests[revision] = answer.json()
        assert get(server, manifests[revision]["source"]["href"]).body == content
        file = get(server, f"{files_path(REPO, 'changed.safetensors')}?revision={revision}")
        assert (file.body, file["ZT-Commit"]) == (content, commit)
    assert get(server, f"/v1/models/{name}@none").json()["code"] == "revision-not-found"
    listed = get(server, f"/v1/models/{name}/revisions").json()["revisions"]
    assert [entry["commit"] for entry in listed] == [new]


def found(answer):
    return answer if answer.status == 200 else None
