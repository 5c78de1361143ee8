"""Branches, tags and commits as the Hub's clients ask for them, on a server that keeps versions."""

from urllib.parse import quote

from lfs import REPO, commit_lines, header, post
from wire import ask, get

KEEP = ("--writable", "--keep-versions", "100")


def api(rest, repo=REPO):
    return f"/api/models/{repo}{rest}"


def escaped(revision):
    return quote(revision, safe="")


def change(server, *lines, branch="main", repo=REPO, fields=None, **members):
    """A commit that must succeed; gives its name."""
    answer = commit_lines(server, header(**members), *lines, repo=repo, revision=escaped(branch), fields=fields)
    assert answer.status == 200, (answer, server.log)
    return answer.json()["commitOid"]


def tag(server, name, revision="main", repo=REPO, fields=None, **members):
    return post(server, api(f"/tag/{escaped(revision)}", repo), {"tag": name, **members}, **(fields or {}))


def untag(server, name, repo=REPO, fields=None):
    return ask(server, "DELETE", api(f"/tag/{escaped(name)}", repo), fields or {})


def branch(server, name, revision=None, repo=REPO, fields=None, **members):
    value = {**({"startingPoint": revision} if revision else {}), **members}
    return post(server, api(f"/branch/{escaped(name)}", repo), value, **(fields or {}))


def unbranch(server, name, repo=REPO, fields=None):
    return ask(server, "DELETE", api(f"/branch/{escaped(name)}", repo), fields or {})


def squash(server, name, message="squashed", repo=REPO, fields=None):
    return post(server, api(f"/super-squash/{escaped(name)}", repo), {"message": message}, **(fields or {}))


def commits(server, revision="main", query="", repo=REPO, **fields):
    return get(server, api(f"/commits/{escaped(revision)}{query}", repo), **fields)


def titles(server, revision="main"):
    return [one["title"] for one in commits(server, revision).json()]


def refs(server, repo=REPO):
    """({branch: commit}, {tag: commit})."""
    told = get(server, api("/refs", repo)).json()
    return tuple({one["name"]: one["targetCommit"] for one in told[kind]} for kind in ("branches", "tags"))


def sha(server, revision="main", repo=REPO):
    answer = get(server, api(f"/revision/{escaped(revision)}", repo))
    assert answer.status == 200, answer
    return answer.json()["sha"]


def resolved(server, revision, path, repo=REPO, **fields):
    """A file as clients read it, who follow to the commit."""
    answer = get(server, f"/{repo}/resolve/{escaped(revision)}/{path}", **fields)
    return get(server, answer["Location"], **fields) if answer.status == 307 else answer


def paths(server, revision="main", repo=REPO):
    answer = get(server, api(f"/tree/{escaped(revision)}?recursive=true", repo))
    assert answer.status == 200, answer
    return [one["path"] for one in answer.json() if one["type"] == "file"]


def assert_no_revision(answer):
    assert (answer.status, answer["X-Error-Code"]) == (404, "RevisionNotFound"), answer
