"""Repositories whose history a test knows: what was acknowledged, and what may have happened when the server was killed.

The identity of a commit is the SHA-1 over its paths and SHA-256s. So a commit that is listed, whose files have the stated
hashes, and whose identity is that of these hashes, is right to the last byte.
"""

import hashlib
import http.client
import os
from pathlib import Path

import lfs
from containers import pattern
from joined import safetensors
from wire import ask, get

KEPT = Path(".ztserve", "versions")
SETTINGS = {"ZTSERVE_UPLOAD_RESERVE_BYTES": "0"}


def oid_of(content):
    return hashlib.sha256(content).hexdigest()


def commit_of(oids):
    """The identity of a commit, of SHA-256s by path."""
    ordered = sorted((path.encode(), oid.encode()) for path, oid in oids.items())
    return hashlib.sha1(b"".join(path + b"\0" + oid + b"\0" for path, oid in ordered)).hexdigest()


def commit_of_files(files):
    return commit_of({path: oid_of(content) for path, content in files.items()})


def listed_commits(server, repo, revision="main"):
    """The recorded commits, the oldest first."""
    answer = get(server, f"/v1/models/{repo}/a/revisions?limit=1000&revision={revision}")
    if answer.status == 404:
        return []
    assert answer.status == 200 and answer.json()["next"] is None, answer
    return [commit["commit"] for commit in answer.json()["revisions"]][::-1]


def listed_refs(server, repo):
    """Commits of tags and of branches, by name."""
    answer = get(server, f"/api/models/{repo}/refs")
    assert answer.status in (200, 404), answer
    refs = answer.json() if answer.status == 200 else {"tags": [], "branches": []}
    return [{ref["name"]: ref["targetCommit"] for ref in refs[kind]} for kind in ("tags", "branches")]


def oids_of_commit(server, repo, commit):
    answer = get(server, f"/api/models/{repo}/tree/{commit}?recursive=true")
    if answer.status == 404 and commit == commit_of({}):
        return {}
    assert answer.status == 200, answer
    return {entry["path"]: entry["lfs"]["oid"] for entry in answer.json() if entry["type"] == "file"}


def check_commit(server, repo, commit):
    """All of its files are right. Returns their hashes."""
    oids = oids_of_commit(server, repo, commit)
    assert commit_of(oids) == commit, (repo, commit, oids)
    for path, oid in oids.items():
        answer = get(server, f"/{repo}/resolve/{commit}/{path}")
        assert answer.status == 200, (repo, commit, path, answer)
        assert oid_of(answer.body) == oid, (repo, commit, path)
    return set(oids.values())


def kept_files(root):
    """The SHA-256s of the files that are kept."""
    folder = root / KEPT / "objects"
    return {path.parent.name + path.name for path in folder.glob("*/*")} if folder.exists() else set()


def temporary_files(root):
    """Files that only a killed server leaves, and that the next one has to remove."""
    folder = root / KEPT
    found = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    return [path for path in found if path.name.endswith(".new") or "removed" in path.relative_to(folder).parts]


class Repository:
    """A repository that one thread changes, a random change after another, until it is cut off."""

    def __init__(self, name, generator, keep=1000):
        self.name, self.generator, self.keep = name, generator, keep
        self.files = {}
        self.commits = []  # acknowledged, of main, the oldest first
        self.states = {}  # the files of commits
        self.branches, self.tags = {}, {}
        self.doubtful = None  # the change that was not acknowledged
        self.error = None
        self.named = set()

    # --- changes: each makes one request, and notes what was acknowledged ---

    def _acknowledge(self, answer, files):
        assert answer.status in (200, 201, 204), (self.name, self.doubtful, answer)
        if files != self.files or not self.commits:
            self.commits.append(commit_of_files(files))
            self.states[self.commits[-1]] = files
        self.files = files

    def _content(self):
        """One of few, so that files come back, and repositories have the same ones."""
        return pattern(self.generator.choice([1, 5000, 70_000]), seed=self.generator.randrange(4))

    def put_model(self, server):
        name, content = self.generator.choice("ab"), safetensors({"w": self._content()})
        answer = ask(server, "PUT", f"/v1/models/{self.name}/{name}", {}, content)
        self._acknowledge(answer, self.files | {f"{name}.safetensors": content})

    def put_file(self, server):
        name, content = self.generator.choice("cd"), self._content()
        answer = ask(server, "PUT", f"/files/{self.name}/{name}.txt", {}, content)
        self._acknowledge(answer, self.files | {f"{name}.txt": content})

    def put_new(self, server):
        """A content that no commit has."""
        content = self.generator.randbytes(1000)
        answer = ask(server, "PUT", f"/files/{self.name}/c.txt", {}, content)
        self._acknowledge(answer, self.files | {"c.txt": content})

    def delete_file(self, server):
        # A folder without files is no repository.
        if len(self.files) < 2:
            return self.put_file(server)
        path = self.generator.choice(sorted(self.files))
        answer = ask(server, "DELETE", f"/files/{self.name}/{path}")
        return self._acknowledge(answer, {other: self.files[other] for other in self.files if other != path})

    def commit(self, server):
        new = {f"{name}.txt": self._content() for name in self.generator.sample("cdef", 3)}
        answer = lfs.commit(server, *(lfs.inline(path, content) for path, content in new.items()), repo=self.name)
        self._acknowledge(answer, self.files | new)
        assert answer.json()["commitOid"] == self.commits[-1]

    def roll_back(self, server):
        if not self.states:
            return self.commit(server)
        commit = self.generator.choice(sorted(self.states))
        answer = lfs.put(server, f"/v1/models/{self.name}/a/revisions/main", f'{{"commit": "{commit}"}}'.encode())
        return self._acknowledge(answer, self.states[commit])

    def tag(self, server):
        if not self.commits:
            return self.commit(server)
        name, commit = f"t{self.generator.randrange(3)}", self.generator.choice(self.commits)
        if name in self.tags:
            answer = ask(server, "DELETE", f"/api/models/{self.name}/tag/{name}")
            assert answer.status in (200, 204), answer
            del self.tags[name]
        else:
            answer = lfs.post(server, f"/api/models/{self.name}/tag/{commit}", {"tag": name})
            assert answer.status in (200, 201), answer
            self.tags[name] = commit
        return None

    def commit_to_branch(self, server):
        if not self.commits:
            return self.commit(server)
        if "side" not in self.branches:
            answer = lfs.post(server, f"/api/models/{self.name}/branch/side", {"startingPoint": self.commits[-1]})
            assert answer.status in (200, 201), answer
            self.branches["side"] = self.commits[-1]
            return None
        content = self._content()
        lines = [lfs.header(), lfs.inline("side.txt", content)]
        answer = lfs.commit_lines(server, *lines, repo=self.name, revision="side")
        assert answer.status == 200, answer
        oids = oids_of_commit(server, self.name, answer.json()["commitOid"])
        assert oids["side.txt"] == oid_of(content)
        self.branches["side"] = commit_of(oids)
        assert answer.json()["commitOid"] == self.branches["side"]
        return None

    CHANGES = [put_model, put_file, delete_file, commit, roll_back, tag, commit_to_branch]

    def make(self, change, server):
        """Makes one change. Returns False if it was cut off."""
        self.doubtful = change.__name__
        try:
            change(self, server)
        except (OSError, http.client.HTTPException):
            return False
        self.doubtful = None
        return True

    def run(self, server):
        try:
            while self.make(self.generator.choice(self.CHANGES), server):
                pass
        except AssertionError as error:
            self.error = error

    # --- after the next start ---

    def check(self, server):
        """Notes the SHA-256s of all files of all commits."""
        if self.error:
            raise self.error
        listed = listed_commits(server, self.name)
        rest = iter(listed)
        lost = [commit for commit in self.commits[-self.keep :] if commit not in rest]
        assert not lost, f"{self.name}: {lost} of {self.commits} were acknowledged, but these are listed: {listed}"
        tags, branches = listed_refs(server, self.name)
        if self.doubtful != "tag":
            assert tags == self.tags, self.name
        if self.doubtful != "commit_to_branch":
            assert {name: branches.get(name) for name in self.branches} == self.branches, self.name
        side = listed_commits(server, self.name, "side") if "side" in branches else []
        commits = {*listed, *side, *tags.values(), *branches.values()}
        self.named = set().union(*(check_commit(server, self.name, commit) for commit in commits))

    def settle(self, server, root):
        """Goes on from what there is, whatever became of the change that was cut off."""
        folder = root / self.name
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
        self.commits = listed_commits(server, self.name)
        self.tags, branches = listed_refs(server, self.name)
        self.branches = {name: branches[name] for name in branches if name != "main"}
        self.doubtful = None
