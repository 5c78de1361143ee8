"""The README is true: its lines work as they stand, its tables say what the program says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from server_process import PROGRAM, TOP

README = (TOP / "README.md").read_text()
# Fails where curl would print an error page and be content; says what it was.
STRICT_CURL = 'curl() { command curl --fail-with-body --silent --show-error "$@"; }'


def shell_lines(heading):
    section = README.split(f"## {heading}", 1)[1]
    return re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1).strip().splitlines()


@pytest.fixture
def example_root(tmp_path):
    root = tmp_path / "models"
    root.mkdir()
    subprocess.run([PROGRAM.parent / "ztserve-example", root / "example.zt"], check=True)
    return root


def test_the_lines_to_try_work_as_they_stand(example_root, start_server, tmp_path):
    server = start_server(example_root, "--writable")
    lines = shell_lines("Five lines to try")
    assert len(lines) == 5
    for line in lines:
        command = line.replace("http://127.0.0.1:8080", server.url)
        result = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {STRICT_CURL}; {command}"], cwd=tmp_path, capture_output=True, text=True
        )
        assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
    assert (example_root / "my" / "copy.zt").read_bytes() == (example_root / "example.zt").read_bytes()


def test_the_commands_to_start_with_are_there():
    for line in shell_lines("Start"):
        program = Path(TOP / line.split()[0])
        assert program.is_file() and program.stat().st_mode & 0o100


def keys_of(configuration, prefix=""):
    for key, value in configuration.items():
        if isinstance(value, dict):
            yield from keys_of(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_the_configuration_table_has_every_key_with_its_default():
    defaults = json.loads((TOP / "config" / "ztserve.json").read_text())
    table = dict(re.findall(r"^\| `([a-z_.]+)` \| (\S+) \|", README, re.MULTILINE))
    shown = {key: "—" if value is None else f"`{json.dumps(value).strip(chr(34))}`" for key, value in keys_of(defaults)}
    assert table == shown


def section(heading):
    return README.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]


def test_every_command_is_told(ztserve):
    told = set(re.findall(r"^\| `ztserve ([a-z-]+)", section("Commands"), re.MULTILINE))
    assert told == set(re.findall(r"^  ztserve ([a-z-]+) ", ztserve("--help").output, re.MULTILINE)) - {"--help"}


def test_every_format_that_is_converted_to_is_told(ztserve):
    described = re.search(r"^  --to FORMAT +(.*)$", ztserve("--help").output, re.MULTILINE).group(1)
    names = re.split(r", | or ", re.sub(r" \(.*?\)", "", described))
    assert re.search(r"--to (\S+?)`", section("Commands")).group(1).split(r"\|") == names


def test_the_packages_of_the_tests_are_told_by_version():
    pinned = re.findall(r'"([a-z]+)==([0-9.]+)"', (TOP / "tests" / "interop" / "environments.py").read_text())
    told = section("How it is tested, and how fast it is")
    assert pinned
    assert [name for name, release in pinned if f"`{name}`" not in told or release not in told] == []


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (TOP / target).exists(), target
