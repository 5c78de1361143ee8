"""What a client whose token covers only some files learns of repositories, and what clients that leave cost."""

import os
import re
import socket
import urllib.parse

import pytest

from clients import Client, write_tokens
from uploads import fill
from wire import eventually, get

TEAM = Client("team", "read", "team/own/*", "team/mixed/sub/z")
FILES = {
    "org/secret/config.json": b"{}",
    "team/own/config.json": b"{}",
    "team/mixed/hidden.safetensors": b"x" * 100,
    "team/mixed/sub/a.json": b"1",
    "team/mixed/sub/z.json": b"2",
    "models--team--own2/snapshots/" + "a" * 40 + "/config.json": b"{}",
    "models--org--cached/snapshots/" + "a" * 40 + "/config.json": b"{}",
}
CACHED = Client("cached", "read", "org/cached/*")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory, share_server):
    fill(folder, FILES)
    (folder / "org" / "empty").mkdir()
    tokens = tmp_path_factory.mktemp("hub-rights") / "tokens"
    return share_server(folder, "--tokens", write_tokens(tokens, TEAM, CACHED))


def without_id(answer):
    return {key: value for key, value in answer.json().items() if key != "request_id"}


TARGETS = """
    /api/models/{} /api/models/{}/revision/none /api/models/{}/revision/0000000000000000000000000000000000000000
    /api/models/{}/tree/none /api/models/{}/refs /{}/resolve/main/config.json /{}/resolve/none/config.json
    /{}/raw/0000000000000000000000000000000000000000/config.json
""".split()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("repo", ["org/secret", "org/empty"])
def test_what_may_not_be_seen_is_as_what_is_not_there(server, target, repo):
    hidden, absent = (TEAM.get(server, target.format(name)) for name in (repo, "org/absent"))
    assert (hidden.status, hidden["X-Error-Code"]) == (404, "RepoNotFound")
    assert without_id(hidden) == without_id(absent)
    assert sorted(hidden.fields.keys()) == sorted(absent.fields.keys())


def test_unknown_revisions_of_what_may_be_seen(server):
    assert TEAM.get(server, "/api/models/team/own/revision/none")["X-Error-Code"] == "RevisionNotFound"


def test_a_folder_whose_first_file_is_hidden(server):
    entries = TEAM.get(server, "/api/models/team/mixed/tree/main").json()
    assert [entry["path"] for entry in entries] == ["sub"]
    entries = TEAM.get(server, "/api/models/team/mixed/tree/main?recursive=true").json()
    assert [entry["path"] for entry in entries] == ["sub", "sub/z.json"]
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = TEAM.ask(server, "POST", "/api/models/team/mixed/paths-info/main", form, b"paths=sub&paths=sub/a.json")
    assert [entry["path"] for entry in found.json()] == ["sub"]


def test_what_is_told_of_a_repository_is_of_the_files_that_are_seen(server):
    told = TEAM.get(server, "/api/models/team/mixed?blobs=true").json()
    assert [entry["rfilename"] for entry in told["siblings"]] == ["sub/z.json"]
    assert (told["usedStorage"], told["tags"]) == (1, [])


def test_the_list_has_what_is_seen(server):
    assert [told["id"] for told in TEAM.get(server, "/api/models").json()] == ["team/mixed", "team/own"]
    assert [told["id"] for told in CACHED.get(server, "/api/models").json()] == ["org/cached"]


# --- pages ---


@pytest.mark.folder("thousands of objects, which take a minute to make")
def test_folders_between_pages(tmp_path, start_server):
    """A folder stands where its files do: behind "a-…", although its name is before them."""
    files = {f"o/m/a-{number:04}": b"" for number in range(4999)} | {"o/m/a/b/c": b"", "o/m/b": b""}
    fill(tmp_path, files)
    server = start_server(tmp_path)
    seen, target = [], "/api/models/o/m/tree/main?recursive=true"
    for _ in range(3):
        page = get(server, target)
        seen += [entry["path"] for entry in page.json()]
        link = page["Link"]
        if link is None:
            break
        url = urllib.parse.urlsplit(re.fullmatch(r'<(.*)>; rel="next"', link)[1])
        target = f"{url.path}?{url.query}"
    assert seen == [f"a-{number:04}" for number in range(4999)] + ["a", "a/b", "a/b/c", "b"]


# --- clients that leave ---


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_clients_that_leave_while_a_file_is_opened(tmp_path, start_server):
    fill(tmp_path, {"o/m/config.json": b"{}"})
    server = start_server(tmp_path)
    commit = get(server, "/api/models/o/m").json()["sha"]
    target = f"/o/m/resolve/{commit}/config.json"
    assert get(server, target).status == 200
    before = descriptors(server)
    request = f"GET {target} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()
    for _ in range(300):
        with socket.create_connection((server.host, server.port)) as connection:
            connection.sendall(request)
    assert get(server, target).status == 200
    assert eventually(lambda: descriptors(server) <= before + 2)
