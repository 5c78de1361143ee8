"""docs/api.md is complete: each route has a line and a table row."""

import json
import re

import pytest
import requests

from server_process import TOP

PAGE = (TOP / "docs" / "api.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.strip().splitlines()]
OPENAPI = json.loads((TOP / "server" / "api" / "openapi.json").read_text())
# The resources of a model: their words end its name in a path.
RESOURCES = sorted({path.split("/")[4] for path in OPENAPI["paths"] if path.startswith("/v1/models/{model}/")})
COMMANDS = [line for line in LINES if not line.startswith("#")]


@pytest.fixture
def described(tmp_path, start_server):
    return requests.get(f"{start_server(tmp_path).url}/openapi.json").json()["paths"]


def test_every_line_says_what_it_does():
    assert all(before.startswith("#") for before, line in zip(LINES, LINES[1:]) if not line.startswith("#"))


def pattern_of(path):
    """A regular expression that finds the path of a route among the URLs of the page."""
    name = r"[^?']+" if path.endswith("/{path}") or re.search("/(resolve|raw)/", path) else r"[^/?']+"
    parts = [re.escape(part) for part in re.split(r"\{[a-z]+\}", path)]
    pattern = name.join(parts).replace("/api/models/" + name, "/api/models/" + name + "(/[^/?']+)??").replace(r"/v1/models/" + name, rf"/v1/models/[^/?' ]+(/(?!({'|'.join(RESOURCES)})\b)[^/?' ]+)*", 1)
    return re.compile(re.escape("http://127.0.0.1:8080") + pattern + r"(\?|'|\s|$)")


def method_of(command):
    for method in ("POST", "PATCH", "DELETE"):
        if f" -X {method} " in command:
            return method.lower()
    return "put" if " -T " in command else "get"


def test_every_route_that_may_succeed_has_its_line(described):
    missing = [
        f"{method} {path}"
        for path, operations in described.items()
        for method, operation in operations.items()
        if any(status < "400" for status in operation["responses"])
        and not any(pattern_of(path).search(command) and method_of(command) == method for command in COMMANDS)
    ]
    assert missing == []


def test_every_route_is_in_the_table(described):
    table = PAGE.split("## All routes", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"`(GET|PUT|POST|PATCH|DELETE) (/[^`]*)`", table))
    assert listed == {(method.upper(), path) for path, operations in described.items() for method in operations}


@pytest.mark.parametrize(
    "path, words",
    [
        ("server/store/store_path.c", r"resources\[\] = \{(.*?)\}"),
        ("server/web/snippets.js", r"const ENDS = new Set\(\[(.*?)\]\)"),
        ("docs/api.md", r"up to the first (.*?)\. "),
    ],
)
def test_every_list_of_resources_has_those_of_the_routes(path, words):
    listed = re.search(words, (TOP / path).read_text(), re.DOTALL)[1]
    assert sorted(re.findall(r"[\"`](\w+)[\"`]", listed)) == RESOURCES
