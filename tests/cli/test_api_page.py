"""docs/api.md is true: its lines work one after the other as they stand, and each route has a line and a table row."""

import json
import re
import subprocess

import pytest

from server_process import PROGRAM, TOP

PAGE = (TOP / "docs" / "api.md").read_text()
STRICT_CURL = 'curl() { command curl --fail-with-body --silent --show-error "$@"; }'
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.strip().splitlines()]
COMMANDS = [line for line in LINES if not line.startswith("#")]


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "models"
    root.mkdir()
    subprocess.run([PROGRAM.parent / "ztserve-example", root / "example.zt"], check=True)
    return start_server(root, "--writable")


def run(command, folder):
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {STRICT_CURL}; {command}"], cwd=folder, capture_output=True, text=True
    )


def test_every_line_works(server, tmp_path):
    for command in COMMANDS:
        result = run(command.replace("http://127.0.0.1:8080", server.url), tmp_path)
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    assert (tmp_path / "rows.npy").read_bytes().startswith(b"\x93NUMPY")
    assert (tmp_path / "part.bin").stat().st_size == 256 * 64 * 4 // 4
    assert (tmp_path / "stored.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    assert (tmp_path / "ids.bin").stat().st_size == 2048
    assert "import" in (tmp_path / "app.js").read_text()


def test_every_line_says_what_it_does():
    assert all(before.startswith("#") for before, line in zip(LINES, LINES[1:]) if not line.startswith("#"))


def pattern_of(path):
    """A regular expression that finds the path of a route among the URLs of the page."""
    name = r"[^?']+" if path.endswith("/{path}") or re.search("/(resolve|raw)/", path) else r"[^/?']+"
    parts = [re.escape(part) for part in re.split(r"\{[a-z]+\}", path)]
    pattern = name.join(parts).replace("/api/models/" + name, "/api/models/" + name + "(/[^/?']+)??").replace(r"/v1/models/" + name, r"/v1/models/[^/?' ]+(/(?!(objects|export|verification|uploads)\b)[^/?' ]+)*", 1)
    return re.compile(re.escape("http://127.0.0.1:8080") + pattern + r"(\?|'|\s|$)")


def method_of(command):
    for method in ("POST", "PATCH", "DELETE"):
        if f" -X {method} " in command:
            return method.lower()
    return "put" if " -T " in command else "get"


def test_every_route_that_may_succeed_has_its_line(server):
    described = json.loads(run(f"curl {server.url}/openapi.json", TOP).stdout)["paths"]
    missing = [
        f"{method} {path}"
        for path, operations in described.items()
        for method, operation in operations.items()
        if any(status < "400" for status in operation["responses"])
        and not any(pattern_of(path).search(command) and method_of(command) == method for command in COMMANDS)
    ]
    assert missing == []


def test_every_route_is_in_the_table(server):
    described = json.loads(run(f"curl {server.url}/openapi.json", TOP).stdout)["paths"]
    table = PAGE.split("## All routes", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"`(GET|PUT|POST|PATCH|DELETE) (/[^`]*)`", table))
    assert listed == {(method.upper(), path) for path, operations in described.items() for method in operations}
