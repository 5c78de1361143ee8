"""Folders in commits: what removals leave empty ends with them, and is in nobody's way."""

import os

import pytest

from containers import dense, pattern, zt1
from lfs import REPO, assert_refused, commit, files_of, inline, lfs_file, removed, removed_folder
from wire import ask, at_once, eventually, get

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})
CONTENT = pattern(100_000, seed=2)


def put_files(server, *paths):
    answer = commit(server, *(inline(path, b"1") for path in paths))
    assert answer.status == 200, answer


# --- what is left of folders ---


def test_an_emptied_folder_is_gone(tmp_path, server):
    put_files(server, "kept", "sub/a", "sub/deep/er/b", "other/c")
    assert commit(server, removed_folder("sub"), removed("other/c")).status == 200
    assert files_of(tmp_path) == {"kept": b"1"}
    assert b"sub" not in get(server, f"/files/{REPO}/").body
    put_files(server, "sub", "other")
    assert files_of(tmp_path) == {"kept": b"1", "sub": b"1", "other": b"1"}


def test_a_folder_with_something_in_it_stays(tmp_path, server):
    put_files(server, "sub/a", "sub/deep/b", "x/y/z", "x/w")
    assert commit(server, removed("sub/a"), removed("x/y/z")).status == 200
    assert files_of(tmp_path) == {"sub/deep/b": b"1", "x/w": b"1"}


@pytest.mark.folder("folders")
def test_a_folder_with_something_that_no_list_shows_stays(tmp_path, server):
    put_files(server, "kept", "hidden/a", "empty/a", "linked/a", "piped/a")
    root = tmp_path / REPO
    (root / "hidden/.secret").write_bytes(b"s")
    (root / "empty/inner").mkdir()
    (root / "linked/out").symlink_to("/etc")
    os.mkfifo(root / "piped/pipe")
    folders = ["hidden", "empty", "linked", "piped"]
    assert commit(server, *(removed_folder(folder) for folder in folders)).status == 200
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == sorted(
        ["kept", *folders, "hidden/.secret", "empty/inner", "linked/out", "piped/pipe"]
    )


@pytest.mark.folder("folders")
@pytest.mark.parametrize("repo", [REPO, "alone"])
def test_the_folder_of_the_repository_stays(tmp_path, server, repo):
    assert commit(server, inline("a", b"1"), inline("sub/a", b"1"), repo=repo).status == 200
    assert commit(server, removed("a"), removed_folder("sub"), repo=repo).status == 200
    assert list((tmp_path / repo).iterdir()) == []


@pytest.mark.folder("links")
def test_a_link_to_a_folder_stays(tmp_path, server):
    put_files(server, "real/deep/a", "kept")
    (tmp_path / REPO / "link").symlink_to("real/deep")
    assert eventually(lambda: commit(server, removed("link/a")).status == 200)
    assert (tmp_path / REPO / "link").is_dir()
    assert list((tmp_path / REPO / "real/deep").iterdir()) == []


@pytest.mark.folder("folders")
def test_a_refused_commit_leaves_folders(tmp_path, server):
    put_files(server, "sub/a")
    (tmp_path / REPO / "empty").mkdir()
    assert_refused(commit(server, removed("sub/a"), removed("none")), 404, "line 3")
    assert files_of(tmp_path) == {"sub/a": b"1"}
    assert commit(server, removed("sub/a")).status == 200
    assert [path.name for path in (tmp_path / REPO).iterdir()] == ["empty"]


@pytest.mark.folder("folders")
def test_files_are_removed_without_their_folder(tmp_path, server):
    put_files(server, "sub/a")
    assert ask(server, "DELETE", f"/files/{REPO}/sub/a", {}).status == 204
    assert (tmp_path / REPO / "sub").is_dir()


@pytest.mark.folder("folders")
def test_what_comes_into_a_folder_that_ends_is_published(server):
    """A commit empties the folders again and again that files are put into."""
    statuses = []

    def remove():
        for number in range(60):
            statuses.append(commit(server, inline("a/b/c/x", b"%d" % number)).status)
            statuses.append(commit(server, removed("a/b/c/x")).status)

    def publish(name):
        for _ in range(60):
            answer = ask(server, "PUT", f"/files/{REPO}/a/b/c/{name}", {}, b"1")
            statuses.append(answer.status if answer.status != 201 else 200)
            statuses.append(commit(server, removed(f"a/b/c/{name}")).status)

    at_once(remove, lambda: publish("y"), lambda: publish("z"))
    assert set(statuses) == {200} and len(statuses) == 360


# --- one commit that removes and makes ---

REPLACED = {
    "a folder by a file": (["sub/a", "sub/deep/b"], [removed_folder("sub"), inline("sub", b"2")], {"sub": b"2"}),
    "the file first": (["sub/a", "sub/deep/b"], [inline("sub", b"2"), removed_folder("sub")], {"sub": b"2"}),
    "file by file": (["sub/a", "sub/b"], [removed("sub/a"), inline("sub", b"2"), removed("sub/b")], {"sub": b"2"}),
    "a file by a folder": (["a"], [removed("a"), inline("a/x", b"2"), inline("a/y/z", b"3")], {"a/x": b"2", "a/y/z": b"3"}),
    "the folder first": (["a"], [inline("a/x", b"2"), removed("a")], {"a/x": b"2"}),
    "an inner folder": (["s/d/a", "s/b"], [removed_folder("s/d"), inline("s/d", b"2")], {"s/d": b"2", "s/b": b"1"}),
    "two that change places": (["a", "b/c"], [removed("a"), removed("b/c"), inline("a/c", b"2"), inline("b", b"3")], {"a/c": b"2", "b": b"3"}),
    "names that only begin so": (["sub/a", "sub-b", "sub.c/d"], [removed_folder("sub"), inline("sub", b"2")], {"sub": b"2", "sub-b": b"1", "sub.c/d": b"1"}),
}  # fmt: skip


def test_what_is_removed_is_no_obstacle(tmp_path, server):
    for number, (case, (before, lines, after)) in enumerate(REPLACED.items()):
        repo = f"org/r{number}"
        assert commit(server, *(inline(path, b"1") for path in before), repo=repo).status == 200
        answer = commit(server, *lines, repo=repo)
        assert answer.status == 200, (case, answer)
        assert files_of(tmp_path, repo) == after, case
        listed = get(server, f"/api/models/{repo}").json()
        assert {one["rfilename"] for one in listed["siblings"]} == set(after), case
        assert listed["sha"] == answer.json()["commitOid"], case


def test_a_file_moves_to_where_its_folder_was(tmp_path, server):
    assert commit(server, inline("sub/a", CONTENT), inline("m/model.zt", MODEL)).status == 200
    answer = commit(server, removed("sub/a"), lfs_file("sub", CONTENT), removed_folder("m"), lfs_file("m", MODEL))
    assert answer.status == 200, answer
    assert files_of(tmp_path) == {"sub": CONTENT, "m": MODEL}


STILL_THERE = {
    "another file": ([removed("sub/a"), inline("sub", b"2")], "line 3: sub is a folder"),
    "another folder": ([removed_folder("sub/deep"), inline("sub", b"2")], "line 3: sub is a folder"),
    "a file that is new": ([removed_folder("sub"), inline("sub/new", b"2"), inline("sub", b"2")], "line 3: line 4 adds a file"),
    "another file above": ([removed("sub/a"), inline("file/x", b"2")], "line 3: file is a file"),
    "a file made again": ([removed("file"), inline("file/x", b"2"), inline("file", b"2")], "line 2"),
    "a file above one": ([removed("file"), inline("file/x", b"2"), inline("file/x/y", b"2")], "line 4: line 3 adds a file"),
    "nothing to remove": ([removed("none"), inline("none/x", b"2")], "line 2: there is no file none"),
}


def test_what_stays_is_in_the_way(tmp_path, server):
    put_files(server, "sub/a", "sub/deep/b", "file")
    before = files_of(tmp_path)
    for case, (lines, words) in STILL_THERE.items():
        answer = commit(server, *lines)
        assert answer.status in (400, 404, 409), (case, answer)
        assert words in answer["X-Error-Message"], case
        assert files_of(tmp_path) == before, case


@pytest.mark.folder("folders")
def test_what_no_list_shows_is_in_the_way(tmp_path, server):
    unlisted = {
        "hidden": lambda folder: (folder / "deep/.hidden").write_bytes(b"s"),
        "empty": lambda folder: (folder / "deep/empty").mkdir(),
        "link": lambda folder: (folder / "out").symlink_to("/etc"),
    }
    for name, make in unlisted.items():
        put_files(server, f"{name}/a", f"{name}/deep/b")
        make(tmp_path / REPO / name)
        before = files_of(tmp_path)
        assert_refused(commit(server, removed_folder(name), inline(name, b"2")), 409, "line 3", f"{name} is a folder")
        assert files_of(tmp_path) == before
