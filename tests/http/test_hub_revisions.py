"""Commits whose files, folder or place in a cache are not as they were, or not all there."""

import os
import shutil

import pytest

from containers import dense, pattern, zt1
from lfs import assert_refused, commit, inline
from uploads import fill
from wire import eventually, get

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})
OLD, NEW = "d" * 40, "c" * 40
CACHED = "/api/models/org/cached"

pytestmark = pytest.mark.folder("a bucket has neither links nor times that are set")


def assert_no_revision(answer):
    assert answer.status == 404 and answer["X-Error-Code"] == "RevisionNotFound", answer


# --- a cache ---


def fill_snapshot(root, revision, content, age_s=0):
    """As "hf download --revision" leaves it: no refs/main."""
    repo = root / "models--org--cached"
    fill(repo, {f"blobs/{content.hex():0>40}": content})
    os.utime(repo / "blobs" / f"{content.hex():0>40}", (1_000_000 - age_s, 1_000_000 - age_s))
    (repo / "snapshots" / revision).mkdir(parents=True)
    (repo / "snapshots" / revision / "config.json").symlink_to(f"../../blobs/{content.hex():0>40}")


def test_the_only_snapshot_is_main(tmp_path, start_server):
    fill_snapshot(tmp_path, NEW, b"{}")
    server = start_server(tmp_path)
    assert [told["id"] for told in get(server, "/api/models").json()] == ["org/cached"]
    assert get(server, f"/org/cached/resolve/{NEW}/config.json").body == b"{}"
    assert get(server, f"{CACHED}/tree/{NEW}").json()[0]["path"] == "config.json"
    assert get(server, CACHED).json()["sha"] == NEW
    assert get(server, f"{CACHED}/refs").json()["branches"][0]["targetCommit"] == NEW


def test_a_pinned_snapshot_is_found_first(tmp_path, start_server):
    fill_snapshot(tmp_path, NEW, b"{}")
    server = start_server(tmp_path)
    assert get(server, f"{CACHED}/revision/{NEW}").json()["sha"] == NEW
    assert_no_revision(get(server, f"{CACHED}/revision/{OLD}"))


@pytest.mark.parametrize("youngest", [OLD, NEW])
def test_of_several_snapshots_the_youngest_is_main(tmp_path, start_server, youngest):
    fill_snapshot(tmp_path, OLD, b"[1]", age_s=0 if youngest == OLD else 5)
    fill_snapshot(tmp_path, NEW, b"[2]", age_s=0 if youngest == NEW else 5)
    server = start_server(tmp_path)
    assert get(server, CACHED).json()["sha"] == youngest
    assert get(server, f"/org/cached/resolve/{OLD}/config.json").body == b"[1]"
    assert get(server, f"/org/cached/resolve/{NEW}/config.json").body == b"[2]"


def test_a_main_whose_snapshot_has_gone(tmp_path, start_server):
    fill_snapshot(tmp_path, NEW, b"{}")
    fill(tmp_path, {"models--org--cached/refs/main": OLD.encode()})
    assert get(start_server(tmp_path), CACHED).json()["sha"] == NEW


def test_a_snapshot_without_blobs(tmp_path, start_server):
    fill(tmp_path, {f"models--org--cached/snapshots/{NEW}/config.json": b"{}", "models--org--cached/refs/main": NEW.encode()})
    server = start_server(tmp_path)
    assert get(server, f"/org/cached/resolve/{NEW}/config.json").body == b"{}"
    assert get(server, CACHED).json()["sha"] == NEW


def test_what_is_no_snapshot_is_no_repository(tmp_path, start_server):
    fill(tmp_path, {"models--org--cached/snapshots/other/config.json": b"{}", "models--org--cached/snapshots/file": b""})
    answer = get(start_server(tmp_path), CACHED)
    assert answer.status == 404 and answer["X-Error-Code"] == "RepoNotFound"


def test_a_cache_is_only_read(tmp_path, start_server):
    fill_snapshot(tmp_path, NEW, b"{}")
    server = start_server(tmp_path, "--writable")
    assert_refused(commit(server, inline("a", b"1"), repo="org/cached"), 409, "read-only")
    shutil.rmtree(tmp_path / "models--org--cached/blobs")
    (tmp_path / f"models--org--cached/snapshots/{NEW}/config.json").unlink()
    fill(tmp_path, {f"models--org--cached/snapshots/{NEW}/config.json": b"{}"})
    assert_refused(commit(server, inline("a", b"1"), repo="org/cached"), 409, "read-only")


# --- a folder ---


def test_a_removed_repository_has_no_commits(tmp_path, start_server):
    fill(tmp_path, {"org/m/config.json": b"{}"})
    server = start_server(tmp_path)
    pinned = get(server, "/api/models/org/m").json()["sha"]
    shutil.rmtree(tmp_path / "org/m")
    for target in (f"/api/models/org/m/tree/{pinned}", f"/api/models/org/m/revision/{pinned}"):
        assert eventually(lambda target=target: get(server, target).status == 404)
        assert_no_revision(get(server, target))
    fill(tmp_path, {"org/m/config.json": b"{}"})
    assert eventually(lambda: get(server, f"/api/models/org/m/tree/{pinned}").status == 200)


def test_a_commit_is_listed_after_its_files_have_changed(tmp_path, start_server):
    fill(tmp_path, {"org/m/config.json": b"{}"})
    server = start_server(tmp_path)
    pinned = get(server, "/api/models/org/m").json()["sha"]
    fill(tmp_path, {"org/m/config.json": b"[]"})
    eventually(lambda: get(server, "/api/models/org/m").json()["sha"] != pinned)
    assert get(server, f"/api/models/org/m/tree/{pinned}").status == 200
    assert_no_revision(get(server, f"/org/m/resolve/{pinned}/config.json"))


@pytest.mark.parametrize("size", [2, 3 << 20])
def test_a_touched_file_is_the_same(tmp_path, start_server, size):
    """The larger one is not hashed but for a request that waits for it."""
    content = pattern(size)
    fill(tmp_path, {"org/m/config.txt": content, "org/m/w.zt": MODEL})
    server = start_server(tmp_path)
    pinned = get(server, "/api/models/org/m").json()["sha"]
    view = get(server, f"/org/m/resolve/{pinned}/model.safetensors").body
    for number in range(3):
        os.utime(tmp_path / "org/m/config.txt", (1_000_000 + number, 1_000_000))
        os.utime(tmp_path / "org/m/w.zt", (1_000_000 + number, 1_000_000 + number))
        os.utime(tmp_path / "org/m/config.txt", (1_000_000 + number, 1_000_000 + number))
        assert get(server, f"/org/m/resolve/{pinned}/config.txt").body == content
        assert get(server, f"/org/m/resolve/{pinned}/model.safetensors").body == view


def test_a_touched_model_has_its_view_again(tmp_path, start_server):
    fill(tmp_path, {"org/m/w.zt": MODEL})
    server = start_server(tmp_path)
    pinned = get(server, "/api/models/org/m").json()["sha"]
    view = get(server, f"/org/m/resolve/{pinned}/model.safetensors").body
    os.utime(tmp_path / "org/m/w.zt", (1_000_000, 1_000_000))
    assert get(server, f"/org/m/resolve/{pinned}/model.safetensors").body == view
