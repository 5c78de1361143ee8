"""Servers that keep earlier versions, and models whose bytes say which version they are."""

import json

from containers import dense, pattern, zt1
from uploads import put
from wire import ask, get, segment

KEEPS = {"ZTSERVE_VERSIONS_KEEP": "1000"}
SIZE = 1000


def content(seed):
    return pattern(SIZE, seed=seed)


def model(seed):
    return zt1({"w": dense(content(seed))})


def publish(server, name, seed, fields=None):
    """A new version; its commit."""
    answer = put(server, name, model(seed), **(fields or {}))
    assert answer.status in (201, 204), answer
    return head_of(server, name, fields)


def revisions_path(name, *revision):
    return "/".join([f"/v1/models/{segment(name)}/revisions", *map(segment, revision)])


def revisions(server, name, query="", fields=None):
    answer = ask(server, "GET", revisions_path(name) + query, fields)
    assert answer.status == 200, answer
    return answer.json()["revisions"]


def head_of(server, name, fields=None):
    return revisions(server, name, "?limit=1", fields)[0]["commit"]


def set_revision(server, name, revision, commit, kind="tag", fields=None, **members):
    body = json.dumps({"commit": commit, "kind": kind, **members}).encode()
    return ask(server, "PUT", revisions_path(name, revision), fields, body)


def component(name, revision=None):
    return f"/v1/models/{segment(name)}{'' if revision is None else '@' + segment(revision)}/objects/w/data"


def assert_content(server, target, seed):
    answer = get(server, target)
    assert (answer.status, answer.body) == (200, content(seed)), answer
