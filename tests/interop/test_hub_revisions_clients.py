"""The Hub's clients, unchanged, with branches, tags and earlier commits: they make them, list them, and download from them."""

from pathlib import Path

import pytest

from hub_clients import OLDEST, Raised, files_below
from hub_repositories import write_files, zt_weights
from lfs import commit, inline

REPO = "org/model"


@pytest.fixture
def hub(root, start_server):
    return start_server(root, "--writable", "--keep-versions", "1000")


@pytest.fixture
def client(new_client, hub):
    made = new_client(hub.url)
    made.call("create", REPO)
    return made


@pytest.fixture
def upload(client, tmp_path):
    """Uploads a text as a file; gives the commit."""

    def send(path, text, **options):
        (tmp_path / "sent").write_text(text)
        return client.call("upload_file", REPO, str(tmp_path / "sent"), path, **options)

    return send


def read(client, revision, path="a.txt"):
    return Path(client.call("download", REPO, path, revision=revision)).read_text()


def raised_by(client, function, *arguments, **options):
    with pytest.raises(Raised) as raised:
        client.call(function, *arguments, **options)
    return raised.value


def test_what_a_revision_names_is_downloaded(client, upload, new_client, hub):
    first = upload("a.txt", "one")
    client.call("create_tag", REPO, "v1.0", tag_message="the first")
    client.call("create_branch", REPO, "feature/x", revision=first)
    second = upload("a.txt", "two")
    for revision, text in ((first, "one"), ("v1.0", "one"), ("refs/tags/v1.0", "one"), ("feature/x", "one"), (second, "two"), ("main", "two")):
        assert read(client, revision) == text
        assert client.call("model_info", REPO, revision=revision)["sha"] == (first if text == "one" else second)
    other = new_client(hub.url)
    assert Path(other.call("snapshot", REPO, revision="v1.0")).name == first
    assert files_below(other.call("snapshot", REPO, revision="feature/x")) == {"a.txt": b"one"}
    assert client.call("tree", REPO, revision="v1.0").keys() == {"a.txt"}
    assert client.call("paths_info", REPO, ["a.txt"], revision=first, expand=True)["a.txt"]["commit"] == first
    assert "RevisionNotFoundError" in raised_by(client, "download", REPO, "a.txt", revision="v2").classes


def test_branches_and_tags_are_made_listed_and_deleted(client, upload):
    first = upload("a.txt", "one")
    client.call("create_tag", REPO, "v1")
    client.call("create_tag", REPO, "v1", exist_ok=True)
    client.call("create_branch", REPO, "dev")
    client.call("create_branch", REPO, "dev", exist_ok=True)
    for function, name in (("create_tag", "v1"), ("create_branch", "dev")):
        assert "409" in raised_by(client, function, REPO, name).message
    second = upload("a.txt", "two")
    assert client.call("targets", REPO) == [{"main": second, "dev": first}, {"v1": first}]
    client.call("delete_tag", REPO, "v1")
    client.call("delete_branch", REPO, "dev")
    assert client.call("targets", REPO) == [{"main": second}, {}]
    assert "RevisionNotFoundError" in raised_by(client, "delete_tag", REPO, "v1").classes
    assert "RevisionNotFoundError" in raised_by(client, "create_tag", REPO, "v2", revision="nope").classes
    assert "main cannot be deleted" in raised_by(client, "delete_branch", REPO, "main").message
    assert "RepositoryNotFoundError" in raised_by(client, "create_tag", "org/none", "v1").classes


def test_a_branch_is_filled_and_moved_back(client, upload, root):
    first = upload("a.txt", "one")
    client.call("create_branch", REPO, "dev")
    on_dev = upload("a.txt", "on dev", revision="dev", commit_message="work")
    assert read(client, "dev") == "on dev" and read(client, "main") == "one"
    assert files_below(root / REPO) == {"a.txt": b"one"}
    client.call("commit", REPO, {"b.txt": "b"}, ["a.txt"], revision="dev", parent_commit=on_dev)
    assert client.call("list_files", REPO, revision="dev") == ["b.txt"]
    assert "412" in raised_by(client, "commit", REPO, {"c.txt": "c"}, revision="dev", parent_commit=on_dev).message
    assert [one["title"] for one in client.call("log", REPO, revision="dev")][:2] == ["several changes", "work"]
    client.call("delete_branch", REPO, "dev")
    client.call("create_branch", REPO, "dev", revision=on_dev)
    assert read(client, "dev") == "on dev"
    assert "RevisionNotFoundError" in raised_by(client, "commit", REPO, {"c": "c"}, revision="nope").classes
    assert client.call("model_info", REPO)["sha"] == first


def test_the_log(client, upload):
    for number in range(3):
        upload("a.txt", str(number), commit_message=f"<{number}>", commit_description=f"more of {number}")
    told = client.call("log", REPO, formatted=True)
    assert [(one["title"], one["message"], one["formatted"]) for one in told] == [
        (f"<{number}>", f"more of {number}", f"&lt;{number}&gt;") for number in (2, 1, 0)
    ]
    assert all(one["authors"] for one in told)
    ids = [one["id"] for one in client.call("commits", REPO)]
    assert client.call("commits", REPO, revision=ids[1])[0]["id"] == ids[1]
    client.call("squash", REPO, commit_message="all of it")
    assert client.call("commits", REPO) == [{"id": ids[0], "title": "all of it"}]


def test_a_long_log_is_listed_whole(client, hub):
    """The server's pages have 100 commits."""
    for number in range(103):
        assert commit(hub, inline("a.txt", b"%d" % number)).status == 200
    assert len(client.call("commits", REPO)) == 103


def test_a_folder_is_uploaded_to_a_new_branch(client, tmp_path, root):
    """As well to a repository that has no files yet; the command makes the branch."""
    write_files(tmp_path / "source", {"config.json": b"{}", "sub/large.txt": bytes(range(256)) * 300})
    client.expect_hf("upload", REPO, tmp_path / "source", "--revision", "dev")
    assert files_below(client.call("snapshot", REPO, revision="dev")) == files_below(tmp_path / "source")
    assert files_below(root / REPO) == {}
    client.expect_hf("upload", REPO, tmp_path / "source", "--revision", "dev")
    assert len(client.call("commits", REPO, revision="dev")) == 2


def test_large_files_go_to_a_branch(release, new_client, root, start_server, tmp_path):
    """By Git LFS or Xet, as the release does it."""
    server = start_server(root, "--writable", "--keep-versions", "10", environment={"ZTSERVE_HUB_REGULAR_BYTES": "1000"})
    client = new_client(server.url)
    large = bytes(range(256)) * 400
    (tmp_path / "large").write_bytes(large)
    client.call("create", REPO)
    client.call("create_branch", REPO, "dev")
    client.call("upload_file", REPO, str(tmp_path / "large"), "large.txt", revision="dev")
    assert Path(client.call("download", REPO, "large.txt", revision="dev")).read_bytes() == large
    client.call("copy", REPO, "large.txt", "copy.txt", revision="dev")
    assert Path(client.call("download", REPO, "copy.txt", revision="dev")).read_bytes() == large
    assert files_below(root / REPO) == {}


def test_a_model_of_another_format_is_loaded_from_its_commit(client, root, tmp_path):
    """Its safetensors view too, after it was replaced."""
    (tmp_path / "w").write_bytes(zt_weights())
    first = client.call("upload_file", REPO, str(tmp_path / "w"), "w.zt")
    client.call("create_tag", REPO, "v1")
    view = Path(client.call("download", REPO, "model.safetensors", revision=first)).read_bytes()
    client.call("delete_file", REPO, "w.zt")
    for revision in (first, "v1"):
        assert Path(client.call("download", REPO, "model.safetensors", revision=revision, force_download=True)).read_bytes() == view


def test_the_command_lists_and_makes_tags(client, upload, release):
    if release == OLDEST:
        pytest.skip("its command has another form")
    upload("a.txt", "one")
    client.expect_hf("repos", "tag", "create", REPO, "v1", "-m", "the first")
    assert "v1" in client.expect_hf("repos", "tag", "list", REPO)
    client.expect_hf("repos", "branch", "create", REPO, "dev")
    assert "already exists" in client.refused_hf("repos", "tag", "create", REPO, "v1")
    client.expect_hf("repos", "tag", "delete", REPO, "v1", "--yes")
    assert client.call("targets", REPO)[1] == {}
    assert read(client, "dev") == "one"
