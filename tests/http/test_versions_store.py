"""versions.keep: every write becomes a commit, and the files that it replaced or removed stay readable under
REPOSITORY@COMMIT."""

import hashlib
import json
import os
import re
import signal
from pathlib import Path
from xml.etree import ElementTree

import pytest

import joined
import lfs
import tus
import writers
from containers import dense, pattern, zt2
from kept import revisions, set_revision
from uploads import content_of, fill, put
from wire import ask, assert_problem, component_path, connect, eventually, get, metrics, model_path, read_exactly, read_head

REPO = "org/model"
FIRST, SECOND, THIRD = (zt2({"w": dense(pattern(1000, seed=seed), digest="xxh3")}) for seed in (1, 2, 3))


@pytest.fixture
def server(root, start_server):
    return start_server(root, "--writable", "--keep-versions", "100")


def commit_of(answer):
    assert answer.status in (200, 201, 204), answer
    commit = answer["ZT-Commit"]
    assert commit is not None and len(commit) == 40, answer
    return commit


def put_file(server, path, content, **fields):
    return commit_of(ask(server, "PUT", f"/files/{path}", fields, content))


def delete_file(server, path):
    return commit_of(ask(server, "DELETE", f"/files/{path}"))


def at(commit, path, repo=REPO):
    return f"/files/{repo}@{commit}/{path}"


def read(server, commit, path, repo=REPO, **fields):
    answer = get(server, at(commit, path, repo), **fields)
    assert answer.status in (200, 206), answer
    return answer.body


def weights(commit, repo=REPO):
    return f"{repo}@{commit}/weights"


def metrics_of(server):
    lines = get(server, "/metrics").body.decode().splitlines()
    return {key: int(value) for key, value in (line.split() for line in lines if line.startswith("ztserve_versions_"))}


def commit_count(server):
    return metrics_of(server)["ztserve_versions_commits"]


def keys_of(answer):
    return [element.text for element in ElementTree.fromstring(answer.body).iter() if element.tag.endswith("}Key")]


def test_replaced_file_is_read_at_its_commit(server):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    second = put_file(server, f"{REPO}/notes.txt", b"second")
    third = put_file(server, f"{REPO}/other.txt", b"other")
    assert len({first, second, third}) == 3
    assert read(server, first, "notes.txt") == b"first"
    assert read(server, second, "notes.txt") == read(server, third, "notes.txt") == b"second"
    assert get(server, at(second, "other.txt")).status == 404
    assert read(server, third, "other.txt") == b"other"
    assert get(server, f"/files/{REPO}/notes.txt").body == b"second"


def test_commit_of_the_same_files_is_the_same(server):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    put_file(server, f"{REPO}/notes.txt", b"second")
    assert put_file(server, f"{REPO}/notes.txt", b"first") == first


def test_model_of_a_commit_has_all_routes_of_a_model(server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    second = commit_of(put(server, f"{REPO}/weights", SECOND))
    name = weights(first)
    for commit, seed in ((first, 1), (second, 2)):
        assert content_of(server, weights(commit)) == pattern(1000, seed=seed)
    assert get(server, component_path(name, "w"), Range="bytes=10-19").body == pattern(1000, seed=1)[10:20]
    assert get(server, component_path(name, "w") + "?slice=0:100").body == pattern(1000, seed=1)[:100]
    manifest = get(server, model_path(name))
    assert manifest.status == 200 and manifest["ETag"]
    assert get(server, model_path(name) + "/export?format=safetensors").body.endswith(pattern(1000, seed=1))
    assert read(server, first, "weights.zt") == FIRST
    assert get(server, at(first, "weights.zt"), Range="bytes=3-9").body == FIRST[3:10]
    digest = get(server, at(first, "weights.zt"), Want_Repr_Digest="sha-256=9")["Repr-Digest"]
    assert digest == writers.repr_digest(FIRST)


def test_model_of_a_commit_keeps_its_tag_when_its_file_moves(server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    name = weights(first)
    tag = get(server, model_path(name))["ETag"]
    file_tag = get(server, at(first, "weights.zt"))["ETag"]
    put(server, f"{REPO}/weights", SECOND)
    assert get(server, model_path(name), If_None_Match=tag).status == 304
    assert get(server, at(first, "weights.zt"), If_None_Match=file_tag).status == 304


def test_removed_model_is_read_at_its_commit(server, root):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    second = commit_of(ask(server, "DELETE", model_path(f"{REPO}/weights")))
    assert get(server, model_path(f"{REPO}/weights")).status == 404
    assert content_of(server, weights(first)) == pattern(1000, seed=1)
    assert get(server, model_path(weights(second))).status == 404
    assert not (root / REPO / "weights.zt").exists()


def test_removed_file_is_read_at_its_commit(server):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    put_file(server, f"{REPO}/other.txt", b"other")
    last = delete_file(server, f"{REPO}/notes.txt")
    assert read(server, first, "notes.txt") == b"first"
    assert read(server, last, "other.txt") == b"other"
    assert get(server, at(last, "notes.txt")).status == 404


def test_model_in_the_root_has_commits(server):
    first = commit_of(put(server, "tiny", FIRST))
    put(server, "tiny", SECOND)
    put(server, "another", THIRD)
    assert content_of(server, f"tiny@{first}/tiny") == pattern(1000, seed=1)
    assert get(server, f"/files/tiny@{first}/another.zt").status == 404


def test_replaced_format_is_read_at_its_commit(server, root):
    first = commit_of(put(server, f"{REPO}/weights", joined.safetensors({"w": b"12345678"})))
    second = commit_of(put(server, f"{REPO}/weights", SECOND))
    assert sorted(os.listdir(root / REPO)) == ["weights.zt"]
    assert content_of(server, weights(first)) == b"12345678"
    assert content_of(server, weights(second)) == pattern(1000, seed=2)


@pytest.mark.parametrize("files", [joined.files_with_index, joined.files_of_split])
def test_model_in_parts_is_read_at_its_commit(server, root, files):
    made = files(f"{REPO}/big", [bytes([number]) * 32 for number in range(1, 4)])
    commits = [put_file(server, path, content) for path, content in made.items()]
    eventually(lambda: get(server, model_path(f"{REPO}/big")).status == 200)
    assert commit_of(ask(server, "DELETE", model_path(f"{REPO}/big")))
    assert os.listdir(root / REPO) == []
    name = f"{REPO}@{commits[-1]}/big"
    for number in range(1, 4):
        answer = eventually(lambda: (found := get(server, component_path(name, f"w{number}"))).status == 200 and found)
        assert answer.body == bytes([number]) * 32


def test_replacing_a_model_in_parts_is_one_commit(server):
    made = joined.files_with_index(f"{REPO}/weights", [bytes([number]) * 32 for number in range(1, 4)])
    before = [put_file(server, path, content) for path, content in made.items()][-1]
    eventually(lambda: get(server, model_path(f"{REPO}/weights")).status == 200)
    count = commit_count(server)
    after = commit_of(put(server, f"{REPO}/weights", FIRST))
    assert commit_count(server) == count + 1
    for path, content in made.items():
        name = path.removeprefix(f"{REPO}/")
        assert read(server, before, name) == content
        assert get(server, at(after, name)).status == 404


def test_files_found_in_the_folder_have_a_commit(root, start_server):
    fill(root, {f"{REPO}/notes.txt": b"before", f"{REPO}/weights.zt": FIRST})
    server = start_server(root, "--writable", "--keep-versions", "100")
    second = put_file(server, f"{REPO}/notes.txt", b"after")
    (root / REPO / "new.txt").write_bytes(b"by hand")
    os.replace(root / REPO / "new.txt", root / REPO / "placed.txt")
    third = put_file(server, f"{REPO}/notes.txt", b"last")
    assert read(server, second, "weights.zt") == FIRST
    assert read(server, third, "placed.txt") == b"by hand"
    assert read(server, second, "notes.txt") == b"after"


def test_file_replaced_by_hand_is_gone_from_its_commit(server, root):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    (root / "new.txt").write_bytes(b"other")
    os.replace(root / "new.txt", root / REPO / "notes.txt")
    assert get(server, at(first, "notes.txt")).status == 404
    second = put_file(server, f"{REPO}/more.txt", b"more")
    assert read(server, second, "notes.txt") == b"other"
    put_file(server, f"{REPO}/notes.txt", b"first")
    assert read(server, first, "notes.txt") == b"first"
    assert read(server, second, "notes.txt") == b"other"


def test_model_replaced_by_hand_is_gone_from_its_commit(server, root):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    (root / "new.zt").write_bytes(SECOND)
    (root / "new.zt").rename(root / REPO / "weights.zt")
    second = put_file(server, f"{REPO}/more.txt", b"more")
    assert get(server, model_path(weights(first))).status == 404
    assert content_of(server, weights(second)) == pattern(1000, seed=2)


def test_commits_survive_a_restart(server, root, start_server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    put(server, f"{REPO}/weights", SECOND)
    server.stop()
    for again in (["--writable", "--keep-versions", "100"], ["--keep-versions", "100"]):
        server = start_server(root, *again)
        assert content_of(server, weights(first)) == pattern(1000, seed=1)
        assert content_of(server, f"{REPO}/weights") == pattern(1000, seed=2)
        server.stop()


def test_commits_are_not_listed(server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    put(server, f"{REPO}/weights", SECOND)
    assert content_of(server, weights(first)) == pattern(1000, seed=1)
    names = [model["name"] for model in get(server, "/v1/models").json()["models"]]
    assert names == [f"{REPO}/weights"]
    assert "@" not in get(server, "/files/org/", Accept="application/json").body.decode()
    assert keys_of(get(server, "/s3/models?list-type=2")) == [f"{REPO}/weights.safetensors", f"{REPO}/weights.zt"]
    listed = get(server, f"/files/{REPO}@{first}/", Accept="application/json").json()
    assert [entry["name"] for entry in listed["entries"]] == ["weights.zt"]


def test_commits_cannot_be_written(server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    assert put(server, weights(first), SECOND).status in (400, 409)
    assert ask(server, "PUT", at(first, "notes.txt"), {}, b"x").status == 409
    assert ask(server, "DELETE", at(first, "weights.zt")).status == 409
    assert ask(server, "DELETE", model_path(weights(first))).status == 409
    assert ask(server, "PUT", f"/s3/models/{REPO}@{first}/notes.txt", {}, b"x").status == 409
    assert content_of(server, weights(first)) == pattern(1000, seed=1)


def test_unknown_commits_and_files_are_not_found(server):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    unknown = hashlib.sha1(b"unknown").hexdigest()
    assert get(server, at(unknown, "weights.zt")).status == 404
    assert get(server, model_path(weights(unknown))).status == 404
    assert get(server, model_path(f"{REPO}@{first}/absent")).status == 404
    assert get(server, at(first, "absent.txt")).status == 404
    assert get(server, model_path(f"org/other@{first}/weights")).status == 404
    assert get(server, at(first, "../model/weights.zt")).status in (400, 404)


def test_refused_write_makes_no_commit(server):
    put(server, f"{REPO}/weights", FIRST)
    count = commit_count(server)
    refused = put(server, f"{REPO}/weights", SECOND, If_Match='"other"')
    assert refused.status == 412 and refused["ZT-Commit"] is None
    assert commit_count(server) == count


def test_every_face_makes_a_commit(server):
    commits = {}
    commits[b"s3"] = commit_of(ask(server, "PUT", f"/s3/models/{REPO}/notes.txt", {}, b"s3"))
    upload = tus.create(server, f"{REPO}/weights", len(FIRST))
    resumable = commit_of(tus.patch(server, upload, 0, FIRST))
    writer = writers.begin(server, f"{REPO}/weights")
    writer.put("w", b"written")
    written = commit_of(writer.commit())
    assert lfs.commit(server, lfs.inline("notes.txt", b"hub")).status == 200
    last = commit_of(ask(server, "DELETE", f"/s3/models/{REPO}/notes.txt"))
    assert read(server, commits[b"s3"], "notes.txt") == b"s3"
    assert content_of(server, weights(resumable)) == pattern(1000, seed=1)
    assert content_of(server, weights(written)) == b"written"
    assert read(server, written, "notes.txt") == b"s3"
    assert get(server, at(last, "notes.txt")).status == 404


def test_hub_commit_is_one_commit(server):
    put_file(server, f"{REPO}/removed.txt", b"removed")
    before = put_file(server, f"{REPO}/notes.txt", b"before")
    count = commit_count(server)
    answer = lfs.commit(server, lfs.inline("notes.txt", b"after"), lfs.inline("sub/new.txt", b"new"), lfs.removed("removed.txt"))
    commit = answer.json()["commitOid"]
    assert commit_of(answer) == commit and commit_count(server) == count + 1
    assert read(server, before, "notes.txt") == b"before" and read(server, before, "removed.txt") == b"removed"
    assert read(server, commit, "notes.txt") == b"after" and read(server, commit, "sub/new.txt") == b"new"
    assert get(server, at(commit, "removed.txt")).status == 404


def test_s3_deletions_of_one_request_are_one_commit(server):
    for name in "abc":
        before = put_file(server, f"{REPO}/{name}.txt", name.encode())
    document = "<Delete>" + "".join(f"<Object><Key>{REPO}/{name}.txt</Key></Object>" for name in "ab") + "</Delete>"
    count = commit_count(server)
    assert ask(server, "POST", "/s3/models?delete", {}, document.encode()).status == 200
    assert commit_count(server) == count + 1
    after = put_file(server, f"{REPO}/c.txt", b"c")
    assert [read(server, before, f"{name}.txt") for name in "abc"] == [b"a", b"b", b"c"]
    assert [get(server, at(after, f"{name}.txt")).status for name in "abc"] == [404, 404, 200]


def test_download_in_progress_ends_with_the_replaced_file(server):
    data = pattern(24 << 20)
    put(server, f"{REPO}/weights", zt2({"w": dense(data)}))
    with connect(server, receive_buffer=4096) as connection:
        connection.sendall(f"GET {component_path(f'{REPO}/weights', 'w')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        _, _, first = read_head(connection)
        assert put(server, f"{REPO}/weights", SECOND).status == 204
        assert read_exactly(connection, len(data), first) == data


def test_kept_files_are_links(server, root):
    put_file(server, f"{REPO}/notes.txt", b"first")
    inode = (root / REPO / "notes.txt").stat().st_ino
    put_file(server, f"{REPO}/notes.txt", b"second")
    kept = [path for path in (root / ".ztserve/versions").rglob("*") if path.is_file() and path.stat().st_ino == inode]
    assert len(kept) == 1 and kept[0].read_bytes() == b"first"


def test_file_replaced_by_the_same_bytes_is_not_kept(server, root):
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    assert commit_of(put(server, f"{REPO}/weights", FIRST)) == first
    assert metrics_of(server)["ztserve_versions_kept_files"] == 0
    assert content_of(server, weights(first)) == pattern(1000, seed=1)


def test_old_commits_are_forgotten_and_their_files_removed(root, start_server):
    server = start_server(root, "--writable", "--keep-versions", "2")
    commits = [put_file(server, f"{REPO}/notes.txt", bytes([65 + number]) * 100) for number in range(5)]
    assert read(server, commits[3], "notes.txt") == b"D" * 100
    eventually(lambda: metrics_of(server)["ztserve_versions_removed_files_total"] == 3)
    found = metrics_of(server)
    assert found["ztserve_versions_repositories"] == 1 and found["ztserve_versions_commits"] == 2
    assert found["ztserve_versions_kept_files"] == 1 and found["ztserve_versions_kept_bytes"] == 100
    assert [get(server, at(commit, "notes.txt")).status for commit in commits] == [404, 404, 404, 200, 200]


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_files_of_a_removed_reference_are_removed(root, start_server, kind):
    """Without another change."""
    server = start_server(root, "--writable", "--keep-versions", "1")
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    path = f"/v1/models/{REPO.replace('/', '%2F')}%2Fx/revisions/v1"
    assert ask(server, "PUT", path, body=json.dumps({"commit": first, "kind": kind}).encode()).status == 201
    put_file(server, f"{REPO}/notes.txt", b"second")
    assert read(server, first, "notes.txt") == b"first"
    put_file(server, f"{REPO}/notes.txt", b"third")
    eventually(lambda: metrics_of(server)["ztserve_versions_removed_files_total"] == 1)
    assert ask(server, "DELETE", path).status == 204
    assert get(server, at(first, "notes.txt")).status == 404
    eventually(lambda: metrics_of(server)["ztserve_versions_kept_files"] == 0)


def test_commits_are_forgotten_when_they_become_too_old(root, tmp_path, start_server):
    """Without another change."""
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"versions": {"keep": 100, "keep_s": 3}}))
    server = start_server(root, "--writable", "--config", settings)
    first, second = (put_file(server, f"{REPO}/notes.txt", content) for content in (b"first", b"second"))
    eventually(lambda: get(server, at(first, "notes.txt")).status == 404)
    assert read(server, second, "notes.txt") == b"second"


def test_page_describes_the_metrics(server):
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    assert set(re.findall(r"`(ztserve_versions_[a-z_]+)`", page)) == set(metrics_of(server))


def test_forgotten_model_is_gone(root, start_server):
    server = start_server(root, "--writable", "--keep-versions", "2")
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    put(server, f"{REPO}/weights", SECOND)
    assert content_of(server, weights(first)) == pattern(1000, seed=1)
    put(server, f"{REPO}/weights", THIRD)
    eventually(lambda: get(server, model_path(weights(first))).status == 404)


def test_limits_reload_but_versions_do_not_end_without_a_restart(root, tmp_path, start_server):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"versions": {"keep": 100}}))
    server = start_server(root, "--writable", "--config", settings)
    commits = [put_file(server, f"{REPO}/notes.txt", bytes([65 + number])) for number in range(3)]
    settings.write_text(json.dumps({"versions": {"keep": 2}}))
    server.signal(signal.SIGHUP)
    eventually(lambda: any("reloaded" in line for line in server.log_lines))
    commits.append(put_file(server, f"{REPO}/notes.txt", b"last"))
    assert [get(server, at(commit, "notes.txt")).status for commit in commits] == [404, 404, 200, 200]
    settings.write_text(json.dumps({"versions": {"keep": 0}}))
    server.signal(signal.SIGHUP)
    eventually(lambda: any("versions.keep was changed to or from 0" in line for line in server.log_lines))
    put_file(server, f"{REPO}/notes.txt", b"later")
    assert read(server, commits[3], "notes.txt") == b"last"


def test_versions_beside_a_mirror(upstream, mirror_of):
    upstream.add("acme/tiny", {"notes.txt": b"mirrored"})
    server = mirror_of(upstream.endpoint, arguments=["--writable", "--keep-versions", "100"])
    first = commit_of(put(server, f"{REPO}/weights", FIRST))
    put(server, f"{REPO}/weights", SECOND)
    counted = upstream.counting()
    assert content_of(server, weights(first)) == pattern(1000, seed=1)
    assert read(server, first, "weights.zt") == FIRST
    assert counted.requests == 0
    assert get(server, "/files/acme/tiny/notes.txt").body == b"mirrored"
    assert ask(server, "PUT", at(first, "notes.txt"), {}, b"x").status == 409
    assert ask(server, "PUT", "/files/acme/tiny/notes.txt", {}, b"x").status == 409
    assert sorted(os.listdir(server.root)) == [".ztserve", "org"]


def test_unused_model_of_a_commit_is_closed(server, root):
    (root / "stays.zt").write_bytes(THIRD)
    eventually(lambda: get(server, model_path("stays")).status == 200)
    first = commit_of(put(server, f"{REPO}/weights", FIRST))

    def open_files():
        return metrics(server)["ztserve_model_files_open"]

    before = open_files()
    assert content_of(server, weights(first)) == pattern(1000, seed=1)
    assert open_files() == before + 1

    def is_closed():
        server.signal(signal.SIGHUP)
        return open_files() == before

    eventually(is_closed)
    assert content_of(server, weights(first)) == pattern(1000, seed=1)


def test_server_without_versions_makes_no_commits(root, start_server):
    server = start_server(root, "--writable")
    answer = put(server, f"{REPO}/weights", FIRST)
    assert answer.status == 201 and answer["ZT-Commit"] is None
    assert put(server, f"{REPO}/weights", SECOND)["ZT-Commit"] is None
    assert not (root / ".ztserve/versions").exists()
    assert "ztserve_versions" not in get(server, "/metrics").body.decode()


def kept_path(root, content):
    digest = hashlib.sha256(content).hexdigest()
    return root / ".ztserve/versions/objects" / digest[:2] / digest[2:]


def test_kept_file_that_a_program_wrote_into_is_refused(server, root):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    put_file(server, f"{REPO}/notes.txt", b"second")
    # As after going back to the commit, when the folder has a second name for the kept file.
    os.link(kept_path(root, b"first"), root / REPO / "again.txt")
    (root / REPO / "again.txt").write_bytes(b"wrong")
    assert get(server, at(first, "notes.txt")).status == 500


def test_equal_bytes_that_were_stored_twice_are_read(server, root):
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    again = root / REPO / "new"
    again.write_bytes(b"first")
    os.utime(again, ns=(10**18, 10**18))
    again.rename(root / REPO / "notes.txt")
    put_file(server, f"{REPO}/notes.txt", b"second")
    assert kept_path(root, b"first").stat().st_mtime_ns == 10**18
    assert read(server, first, "notes.txt") == b"first"
    assert restore(server, first).status == 200
    assert get(server, f"/files/{REPO}/notes.txt").body == b"first"


def restore(server, commit):
    return set_revision(server, f"{REPO}/weights", "main", commit, "branch")


@pytest.fixture
def damaged(server, root):
    """The first commit of notes.txt, whose kept file another program has written into, after a rollback."""
    first = put_file(server, f"{REPO}/notes.txt", b"first")
    put_file(server, f"{REPO}/notes.txt", b"second")
    assert restore(server, first).status == 200
    with open(root / REPO / "notes.txt", "r+b") as file:
        file.write(b"wrong")
    assert kept_path(root, b"first").read_bytes() == b"wrong"
    return first


def test_good_file_is_kept_in_place_of_a_damaged_one(server, damaged):
    good = put_file(server, "org/other/notes.txt", b"first")
    put_file(server, "org/other/notes.txt", b"second")
    assert read(server, good, "notes.txt", "org/other") == b"first"
    assert read(server, damaged, "notes.txt") == b"first"
    assert restore(server, damaged).status == 200
    assert get(server, f"/files/{REPO}/notes.txt").body == b"first"


def test_damaged_file_is_not_restored(server, damaged):
    put_file(server, f"{REPO}/notes.txt", b"second")
    put_file(server, f"{REPO}/other.txt", b"other")
    before = revisions(server, f"{REPO}/weights")
    for answer in (restore(server, damaged), get(server, at(damaged, "notes.txt"))):
        assert "written into the kept file notes.txt" in assert_problem(answer, 500, "internal")["detail"]
    assert revisions(server, f"{REPO}/weights") == before
    assert get(server, f"/files/{REPO}/notes.txt").body == b"second"
    assert get(server, f"/files/{REPO}/other.txt").body == b"other"


def test_damaged_file_is_restored_from_another_file_with_its_bytes(server, damaged):
    put_file(server, f"{REPO}/copy.txt", b"first")
    assert restore(server, damaged).status == 200
    assert get(server, f"/files/{REPO}/notes.txt").body == b"first"
    assert get(server, f"/files/{REPO}/copy.txt").status == 404
