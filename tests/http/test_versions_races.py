"""Readers of earlier commits while writers replace files, commits are forgotten and their files are removed."""

import random
import threading

import pytest

import histories
import lfs
from histories import Repository
from wire import Connection, ask, eventually, get

KEEP = 3
REPOSITORIES = 2
READERS = 2

pytestmark = pytest.mark.folder("versions of a folder")


@pytest.fixture
def server(tmp_path, start_server):
    return start_server(tmp_path, "--writable", "--keep-versions", str(KEEP), environment=histories.SETTINGS)


class Reader:
    """Reads files of listed commits: each answer has the right bytes, or says that the commit is forgotten."""

    def __init__(self, server, repo, is_over):
        self.server, self.repo, self.is_over = server, repo, is_over
        self.read, self.forgotten, self.error = 0, 0, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            with Connection(self.server) as connection:
                while not self.is_over.is_set():
                    self.read_commits(connection)
        except AssertionError as error:
            self.error = error

    def read_commits(self, connection):
        answer = connection.ask("GET", f"/v1/models/{self.repo}/a/revisions")
        for commit in [one["commit"] for one in answer.json()["revisions"]]:
            tree = connection.ask("GET", f"/api/models/{self.repo}/tree/{commit}?recursive=true")
            if tree.status == 404:
                self.forgotten += 1
                continue
            assert tree.status == 200, tree
            for entry in tree.json():
                self.read_file(connection, commit, entry["path"], entry["lfs"]["oid"])

    def read_file(self, connection, commit, path, oid):
        answer = connection.ask("GET", f"/files/{self.repo}/{path}?revision={commit}")
        if answer.status == 404:
            assert connection.ask("GET", f"/v1/models/{self.repo}/a/revisions/{commit}").status == 404, (answer, path)
            self.forgotten += 1
            return
        assert answer.status == 200 and histories.oid_of(answer.body) == oid, (answer, path)
        self.read += 1


def test_readers_of_commits_that_are_forgotten(tmp_path, server):
    is_over = threading.Event()
    repositories = [Repository(f"org/r{number}", random.Random(number), KEEP) for number in range(REPOSITORIES)]
    for repository in repositories:
        assert repository.make(Repository.put_new, server)
    readers = [Reader(server, repository.name, is_over) for repository in repositories for _ in range(READERS)]
    changes = [Repository.put_new, Repository.put_new, Repository.put_model, Repository.put_file, Repository.delete_file, Repository.commit]
    removed = set()
    seen = set()
    # Several passes of the collector.
    while len(removed) < 60:
        for repository in repositories:
            assert repository.make(repository.generator.choice(changes), server)
        kept = histories.kept_files(tmp_path)
        removed |= seen - kept
        seen |= kept
    is_over.set()
    for reader in readers:
        reader.thread.join(120)
        assert reader.error is None, reader.error
        assert reader.read > 0
    for repository in repositories:
        repository.check(server)


# More than a collection removes before it pauses (server/serve/collection.c).
FORGOTTEN = 300


def test_file_that_comes_back_during_a_collection_stays(tmp_path, server):
    """Collections remove files in the order of their digests; this one pauses before the last."""
    repo = "org/many"
    files = {f"{number}.txt": b"%d" % number for number in range(FORGOTTEN)}
    last = max(files.values(), key=histories.oid_of)
    assert lfs.commit(server, *(lfs.inline(path, content) for path, content in files.items()), repo=repo).status == 200
    assert lfs.commit(server, lfs.inline("c.txt", b"first"), *map(lfs.removed, files), repo=repo).status == 200
    for number in range(KEEP):
        assert ask(server, "PUT", f"/files/{repo}/c.txt", {}, b"c%d" % number).status == 204
    eventually(lambda: len(histories.kept_files(tmp_path)) < FORGOTTEN)
    answers = [ask(server, "PUT", f"/files/{repo}/c.txt", {}, content) for content in (last, b"next")]
    assert [answer.status for answer in answers] == [204, 204]
    # The next collection is over when the files of c.txt alone are kept.
    eventually(lambda: len(histories.kept_files(tmp_path)) <= KEEP)
    answer = get(server, f"/files/{repo}/c.txt?revision={answers[0]['ZT-Commit']}")
    assert (answer.status, answer.body) == (200, last)
