"""A commit names one set of bytes: replaced files are never given under an old one, and whoever serves the same files names
them alike."""

import os
import time
from pathlib import Path

import pytest

from hub_clients import Raised, files_below
from hub_repositories import make_model, write_files

NOTICED_S = 180
HUGE = 60 * 10**9


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def repository(root):
    return root / "org/model"


def commit_of(client, revision=None):
    return client.call("model_info", "org/model", revision=revision)["sha"]


def settled_commit(client):
    """The commit once the server knows every hash."""
    deadline = time.monotonic() + NOTICED_S
    while not all(one["sha256"] for one in client.call("model_info", "org/model", files_metadata=True)["siblings"].values()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return commit_of(client)


def replace(path, content):
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    new.rename(path)


def wait_for_another_commit(client, old):
    deadline = time.monotonic() + NOTICED_S
    while (found := commit_of(client)) == old:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def test_a_file_replaced_between_list_and_download(root, repository, start_server, new_client):
    served = make_model(repository)
    client = new_client(start_server(root).url)
    old = commit_of(client)
    replace(repository / "config.json", b'{"replaced": true}\n')
    # Pinned, as clients pin: at once, before the server says that anything changed.
    with pytest.raises(Raised) as raised:
        client.call("download", "org/model", "config.json", revision=old)
    assert "RevisionNotFoundError" in raised.value.classes, raised.value
    new = wait_for_another_commit(client, old)
    assert Path(client.call("download", "org/model", "tokenizer.json", revision=old)).read_bytes() == served["tokenizer.json"]
    got = Path(client.call("snapshot", "org/model"))
    assert got.name == new
    assert files_below(got) == {**served, "config.json": b'{"replaced": true}\n'}


def test_what_the_cache_has_of_an_old_commit_stays(root, repository, start_server, new_client):
    served = make_model(repository)
    client = new_client(start_server(root).url)
    old = Path(client.call("snapshot", "org/model"))
    replace(repository / "README.md", b"# Another text\n")
    wait_for_another_commit(client, old.name)
    new = Path(client.call("snapshot", "org/model"))
    assert files_below(old) == served
    assert (new / "README.md").read_bytes() == b"# Another text\n"
    assert (new / "model.safetensors").resolve() == (old / "model.safetensors").resolve()


@pytest.mark.parametrize("release", ["hub-2.4.0"], indirect=True)
def test_two_servers_name_one_commit(root, repository, start_server, new_client, tmp_path):
    """Also of a copy with other times, and after a restart."""
    served = make_model(repository)
    copy = tmp_path / "copy"
    write_files(copy / "org/model", dict(reversed(served.items())))
    servers = [start_server(root), start_server(root), start_server(copy)]
    commits = [settled_commit(new_client(server.url)) for server in servers]
    assert len(set(commits)) == 1
    servers[0].stop()
    assert settled_commit(new_client(start_server(root).url)) == commits[0]


@pytest.mark.parametrize("release", ["hub-2.4.0"], indirect=True)
def test_a_commit_stays_valid_while_hashes_are_found(root, repository, start_server, new_client):
    served = make_model(repository)
    client = new_client(start_server(root).url)
    first = commit_of(client)
    settled_commit(client)
    assert commit_of(client, revision=first) == first
    got = Path(client.call("snapshot", "org/model", revision=first))
    assert (got.name, files_below(got)) == (first, served)


def test_a_file_of_60_gb_answers_at_once(root, repository, start_server, new_client):
    """Nobody hashes it in the ten seconds that clients wait."""
    write_files(repository, {"config.json": b"{}\n"})
    with (repository / "huge.bin").open("wb") as file:
        os.truncate(file.fileno(), HUGE)
        file.seek(HUGE - 3)
        file.write(b"end")
    client = new_client(start_server(root).url)
    tree = client.call("tree", "org/model")
    assert tree["huge.bin"]["size"] == HUGE
    found = client.call("file_metadata", "org/model", "huge.bin")
    # By its length clients would refuse to download it.
    assert found["size"] is None
    assert client.call("file_metadata", "org/model", "huge.bin")["etag"] == found["etag"]
    assert bytes.fromhex(client.call("read_part", "org/model/huge.bin", HUGE - 5, 5)) == b"\0\0end"
    assert Path(client.call("download", "org/model", "config.json")).read_bytes() == b"{}\n"
