"""A Hub that behaves like huggingface.co: large files are redirected to signed addresses of another host, small ones are git
objects, long lists have pages, and repositories can be private, gated, renamed or changed.

Hub and store are meddlers (meddler.py), so that each may misbehave and counts what it was asked for and what it sent. Kinds of
the hub's requests: "list", "info", "tree", "paths", "refs", "commits", "resolve", "raw", "read" (bytes of a small file); of the
store's: "read".
"""

import gzip
import hashlib
import hmac
import itertools
import json
import re
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from meddler import Handler, Meddler, Reply, Request

REPO = r"(?P<repo>[^/]+(?:/[^/]+)?)"
ROUTES = [
    ("list", r"/api/models"),
    ("read", rf"/api/resolve-cache/models/{REPO}/(?P<revision>[0-9a-f]{{40}})/(?P<path>.+)"),
    ("tree", rf"/api/models/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<path>.*))?"),
    ("paths", rf"/api/models/{REPO}/paths-info/(?P<revision>[^/]+)"),
    ("refs", rf"/api/models/{REPO}/refs"),
    ("commits", rf"/api/models/{REPO}/commits/(?P<revision>[^/]+)"),
    ("info", rf"/api/models/{REPO}(?:/revision/(?P<revision>[^/]+))?"),
    ("resolve", rf"/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"),
    ("raw", rf"/{REPO}/raw/(?P<revision>[^/]+)/(?P<path>.+)"),
    ("read", r"/repos/(?P<path>[0-9a-f]{64})"),
]
ROUTES = [(kind, re.compile(pattern)) for kind, pattern in ROUTES]
IN_LFS = re.compile(r"\.(safetensors|bin|gguf|onnx|zt|mag|npz|npy|pt|h5|zip|tar|parquet)$")
IN_LFS_BYTES = 10 << 20
PAGE = 1000
LINK_LIFE_S = 3600
XET_FIELDS = {"X-Xet-Hash": "ab" * 32, "Link": '<http://127.0.0.1:9/xet-read-token>; rel="xet-auth"'}


def is_true(text):
    return text is not None and text.lower() in ("true", "1")


@dataclass
class File:
    """The bytes, and what the Hub says of them; unless a test wants it to lie, that is the truth."""

    content: bytes
    is_lfs: bool = False
    size: int = -1
    sha256: str = ""
    oid: str = ""

    def __post_init__(self):
        self.size = len(self.content) if self.size < 0 else self.size
        self.sha256 = self.sha256 or hashlib.sha256(self.content).hexdigest()
        self.oid = self.oid or git_sha1(self.pointer if self.is_lfs else self.content)

    @property
    def pointer(self):
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @property
    def etag(self):
        return f'"{self.sha256 if self.is_lfs else self.oid}"'

    def entry(self, path, has_xet):
        entry = {"type": "file", "oid": self.oid, "size": self.size, "path": path}
        if self.is_lfs:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
            entry |= {"xetHash": "ab" * 32} if has_xet else {}
        return entry


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def file_of(path, content):
    if isinstance(content, File):
        return content
    return File(bytes(content), bool(IN_LFS.search(path)) or len(content) > IN_LFS_BYTES)


@dataclass
class Commit:
    id: str
    files: dict
    modified: str


@dataclass
class Repository:
    """private: only known tokens see it; gated: they see its lists, but its files only as members."""

    name: str
    commits: dict = field(default_factory=dict)
    branches: dict = field(default_factory=dict)
    is_private: bool = False
    is_gated: bool = False

    def find(self, revision):
        revision = revision or "main"
        revision = "main" if revision == "HEAD" else revision.removeprefix("refs/heads/")
        return self.commits.get(self.branches.get(revision, revision))

    @property
    def main(self):
        return self.commits[self.branches["main"]]


class HubRequest(Request):
    """`kind` is one of the module's; `key` is the path in the repository, unescaped."""

    @property
    def route(self):
        raw = urlsplit(self.target).path
        for kind, pattern in ROUTES:
            if match := pattern.fullmatch(raw):
                return kind, {name: unquote(part) for name, part in match.groupdict().items() if part is not None}
        return "other", {}

    @property
    def kind(self):
        return self.route[0]

    @property
    def repo(self):
        return self.route[1].get("repo")

    @property
    def key(self):
        return self.route[1].get("path", "")

    @property
    def token(self):
        return self.fields.get("authorization", "").removeprefix("Bearer ") or None


class HubHandler(Handler):
    def forward(self, request):
        """The true answer."""
        return self.server.meddler.true_answer(request)


class HubServer(Meddler):
    request_class, handler_class = HubRequest, HubHandler

    def __init__(self):
        super().__init__(None)


def problem(status, code, message, **fields):
    made = {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json; charset=utf-8"}
    made = {name: text for name, text in made.items() if text}
    return Reply(status, {**made, **fields}, json.dumps({"error": message}).encode())


def as_json(value, **fields):
    return Reply(200, {"Content-Type": "application/json; charset=utf-8", **fields}, json.dumps(value).encode())


def with_body(request, content, fields):
    """All of it, or the range that is asked for."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.fields.get("range", ""))
    fields = {"Accept-Ranges": "bytes", **fields}
    if not match or match.groups() == ("", ""):
        if "gzip" in request.fields.get("accept-encoding", "") and fields["Content-Type"].startswith("text/"):
            return Reply(200, {**fields, "Content-Encoding": "gzip"}, gzip.compress(content))
        return whole(request, 200, fields, content)
    first, last = match.groups()
    if first == "":
        begin, end = max(0, len(content) - int(last)), len(content)
    else:
        begin, end = int(first), min(len(content), int(last) + 1 if last else len(content))
    if begin >= end:
        return Reply(416, {"Content-Range": f"bytes */{len(content)}"})
    return whole(request, 206, {**fields, "Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}, content[begin:end])


def whole(request, status, fields, content):
    return Reply(status, fields, b"" if request.method == "HEAD" else content, len(content) if request.method == "HEAD" else None)


class Store(HubServer):
    """Has the large files, by SHA-256. Its addresses are signed; a token beside the signature is refused."""

    def __init__(self):
        super().__init__()
        self.files, self.key, self.ids = {}, b"first key", itertools.count()
        # Another origin by its name as well.
        self.endpoint = f"http://localhost:{self.port}"

    def sign(self, sha256, expires):
        return hmac.new(self.key, f"{sha256} {expires}".encode(), "sha256").hexdigest()

    def address(self, file):
        self.files[file.sha256] = file.content
        expires = int(time.time()) + LINK_LIFE_S
        query = {"X-Amz-Expires": expires, "X-Amz-Signature": self.sign(file.sha256, expires), "x-id": next(self.ids)}
        return f"{self.endpoint}/repos/{file.sha256}?{urlencode(query)}"

    def expire(self):
        """No address that was given out works any more."""
        self.key = hashlib.sha256(self.key).digest()

    def true_answer(self, request):
        sha256, query = request.key, request.query
        if "authorization" in request.fields:
            return Reply(400, {"Content-Type": "application/xml"}, b"<Error><Code>InvalidArgument</Code></Error>")
        signature = self.sign(sha256, query.get("X-Amz-Expires", "0"))
        is_live = int(query.get("X-Amz-Expires", "0")) > time.time()
        if not is_live or not hmac.compare_digest(signature, query.get("X-Amz-Signature", "")):
            return Reply(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
        if sha256 not in self.files:
            return Reply(404, {"Content-Type": "application/xml"}, b"<Error><Code>NoSuchKey</Code></Error>")
        content = self.files[sha256]
        fields = {"Content-Type": "binary/octet-stream", "ETag": f'"cdn-{sha256[:32]}"', "X-Cache": "Hit"}
        return with_body(request, content, fields)


class MockHub(HubServer):
    """`endpoint` is its address, for HF_ENDPOINT; `store` has the large files. tokens: those it knows; members: those of them
    that may read gated repositories."""

    def __init__(self, page=PAGE, has_xet=True):
        super().__init__()
        self.store = Store()
        self.repositories, self.renamed = {}, {}
        self.tokens, self.members = set(), set()
        self.page, self.has_xet = page, has_xet
        self.clock = itertools.count(1)

    def go_away(self):
        super().go_away()
        if hasattr(self, "store"):
            self.store.go_away()

    def come_back(self):
        super().come_back()
        if hasattr(self, "store"):
            self.store.come_back()

    def close(self):
        super().close()
        self.store.close()

    # --- what it has ---

    def add(self, repo, files, branch="main", **options):
        """Moves a branch to a new commit with these files ({path: bytes or File}); gives the commit's id."""
        repository = self.repositories.setdefault(repo, Repository(repo))
        for name, value in options.items():
            setattr(repository, name, value)
        made = {path: file_of(path, content) for path, content in files.items()}
        number = next(self.clock)
        stated = json.dumps([repo, number, sorted((path, file.oid) for path, file in made.items())])
        modified = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_793_000_000 + 60 * number))
        commit = Commit(hashlib.sha1(stated.encode()).hexdigest(), made, modified)
        repository.commits[commit.id] = commit
        repository.branches[branch] = commit.id
        return commit.id

    def rename(self, old, new):
        self.repositories[new] = self.repositories.pop(old)
        self.repositories[new].name = new
        self.renamed[old] = new

    def change_bytes(self, repo, path, content):
        """Other bytes under the same commit and the same statements, as after damage or a rewritten history."""
        file = self.repositories[repo].main.files[path]
        file.content = content
        self.store.files[file.sha256] = content

    # --- counting ---

    def counting(self):
        """Tallies of the hub and of its store, from now on."""
        return HubTally(super().counting(), self.store.counting())

    def seen_with(self, text):
        """Requests to either that have a text in their target or fields."""
        every = self.seen + self.store.seen
        return [one.request for one in every if text in one.request.target or text in str(one.request.fields)]

    # --- answers ---

    def true_answer(self, request):
        kind, parts = request.route
        if request.token and request.token not in self.tokens:
            return problem(401, None, "Invalid credentials in Authorization header")
        if kind == "list":
            return as_json([self.info(repository, False) for repository in self.repositories.values()])
        if kind == "other":
            return problem(404, None, "Sorry, we can't find the page you are looking for.")
        if parts["repo"] in self.renamed:
            moved = request.target.replace(parts["repo"], self.renamed[parts["repo"]], 1)
            return Reply(307, {"Location": moved, "Content-Type": "text/plain"}, b"Temporary Redirect")
        repository = self.repositories.get(parts["repo"])
        if repository is None or (repository.is_private and not request.token):
            if request.token:
                return problem(404, "RepoNotFound", "Repository not found")
            # As there, a name that does not exist looks like one that needs a token.
            challenge = {"WWW-Authenticate": 'Bearer realm="Authentication required"'}
            return problem(401, "RepoNotFound", "Invalid username or password.", **challenge)
        commit = repository.find(parts.get("revision"))
        if commit is None:
            return problem(404, "RevisionNotFound", f"Invalid rev id: {parts.get('revision')}")
        return getattr(self, f"answer_{kind}")(request, repository, commit, parts.get("path"))

    def info(self, repository, blobs, commit=None):
        commit = commit or repository.main
        siblings = []
        for path, file in sorted(commit.files.items()):
            siblings.append({"rfilename": path})
            if blobs:
                siblings[-1] |= {"size": file.size, "blobId": file.oid}
                if file.is_lfs:
                    siblings[-1]["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": len(file.pointer)}
        gated = "auto" if repository.is_gated else False
        return {
            "_id": "0" * 24, "id": repository.name, "modelId": repository.name, "private": repository.is_private,
            "gated": gated, "disabled": False, "downloads": 7, "likes": 1, "tags": ["safetensors"], "sha": commit.id,
            "lastModified": commit.modified, "createdAt": "2026-11-01T00:00:00.000Z", "siblings": siblings,
        }  # fmt: skip

    def answer_info(self, request, repository, commit, path):
        return as_json(self.info(repository, is_true(request.query.get("blobs")), commit))

    def answer_refs(self, request, repository, commit, path):
        branches = [{"name": name, "ref": f"refs/heads/{name}", "targetCommit": id} for name, id in repository.branches.items()]
        return as_json({"branches": branches, "tags": [], "converts": []})

    def answer_commits(self, request, repository, commit, path):
        shown = {"id": commit.id, "title": "a commit", "message": "", "authors": [{"user": "u"}], "date": commit.modified}
        return as_json([shown])

    def entries(self, commit):
        """All files and folders, by path."""
        found = {path: file.entry(path, self.has_xet) for path, file in commit.files.items()}
        for path in commit.files:
            for at in (match.start() for match in re.finditer("/", path)):
                folder = path[:at]
                found[folder] = {"type": "directory", "oid": git_sha1(folder.encode()), "size": 0, "path": folder}
        return found

    def answer_tree(self, request, repository, commit, path):
        entries, query = self.entries(commit), request.query
        top = f"{path.strip('/')}/" if path and path.strip("/") else ""
        if top and top[:-1] not in entries:
            return problem(404, "EntryNotFound", f"{top[:-1]} does not exist", **{"X-Repo-Commit": commit.id})
        inside = sorted(name for name in entries if name.startswith(top))
        if not is_true(query.get("recursive")):
            inside = [name for name in inside if "/" not in name[len(top) :]]
        page = min(self.page, int(query.get("limit", self.page)))
        begin = int(query.get("cursor", "0"))
        shown = [entries[name] for name in inside[begin : begin + page]]
        fields = {"X-Repo-Commit": commit.id}
        if begin + page < len(inside):
            again = parse_qsl(urlsplit(request.target).query)
            again = [(name, text) for name, text in again if name != "cursor"] + [("cursor", begin + page)]
            raw = urlsplit(request.target).path
            fields["Link"] = f'<http://{request.fields["host"]}{raw}?{urlencode(again)}>; rel="next"'
        return as_json(shown, **fields)

    def answer_paths(self, request, repository, commit, path):
        text = request.body.decode()
        in_a_form = [value for name, value in parse_qsl(text) if name == "paths"]
        asked = json.loads(text)["paths"] if text.startswith("{") else in_a_form
        entries = self.entries(commit)
        return as_json([entries[one] for one in asked if one in entries])

    def answer_resolve(self, request, repository, commit, path):
        if repository.is_gated and request.token not in self.members:
            status = 403 if request.token else 401
            return problem(status, "GatedRepo", f"Access to model {repository.name} is restricted.")
        file = commit.files.get(path)
        fields = {"X-Repo-Commit": commit.id, "Content-Type": "text/plain; charset=utf-8"}
        if file is None:
            return problem(404, "EntryNotFound", "Entry not found", **{"X-Repo-Commit": commit.id})
        fields |= {"ETag": file.etag, "X-Linked-ETag": file.etag, "X-Linked-Size": str(file.size), "Accept-Ranges": "bytes"}
        if file.is_lfs:
            fields |= XET_FIELDS if self.has_xet else {}
            return Reply(302, {**fields, "Location": self.store.address(file)}, b"Found. Redirecting")
        location = f"/api/resolve-cache/models/{repository.name}/{commit.id}/{quote(path)}?etag={quote(file.etag)}"
        return Reply(307, {**fields, "Location": location}, b"Temporary Redirect. Redirecting")

    def answer_read(self, request, repository, commit, path):
        """Of a small file; compressed for clients that accept it."""
        file = commit.files[path]
        fields = {"X-Repo-Commit": commit.id, "ETag": file.etag, "Content-Type": "text/plain; charset=utf-8"}
        return with_body(request, file.content, fields)

    def answer_raw(self, request, repository, commit, path):
        file = commit.files.get(path)
        if file is None:
            return problem(404, "EntryNotFound", "Entry not found")
        fields = {"X-Repo-Commit": commit.id, "ETag": f'"{file.oid}"', "Content-Type": "text/plain; charset=utf-8"}
        return with_body(request, file.pointer if file.is_lfs else file.content, fields)


class HubTally:
    """What a hub and its store were asked for since a moment."""

    def __init__(self, hub, store):
        self.hub, self.store = hub, store

    @property
    def requests(self):
        """All of them."""
        return len(self.hub.seen) + len(self.store.seen)

    def sent_bytes(self):
        """Of files."""
        return self.hub.sent_bytes("read") + self.store.sent_bytes("read")

    def reads(self, key=None):
        """Requests for bytes of files; key: the path of a small file or the SHA-256 of a large one."""
        every = self.hub.of("read") + self.store.of("read")
        return [one for one in every if key is None or one.request.key == key]

    def count(self, *kinds):
        return self.hub.count(*kinds)

    def __repr__(self):
        return f"{self.hub}\n{self.store}"
