"""The README is true: its lines work as they stand, and its tables agree with the program."""

import re
import subprocess
from pathlib import Path

import pytest

from server_process import PROGRAM, TOP

README = (TOP / "README.md").read_text()
# Fails on an error answer, and shows it.
STRICT_CURL = 'curl() { command curl --fail-with-body --silent --show-error "$@"; }'


def section(heading):
    return README.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]


def shell_lines(heading):
    return re.search(r"```sh\n(.*?)```", section(heading), re.DOTALL).group(1).strip().splitlines()


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


@pytest.mark.parametrize("command", shell_lines("Start") + re.findall(r"^\| `(\S+?/\S+)", section("Development"), re.MULTILINE))
def test_the_scripts_exist(command):
    program = Path(TOP / command.strip("`").split()[0])
    assert program.is_file() and program.stat().st_mode & 0o100


def linked_libraries():
    listed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[lib([a-z0-9]+)", listed)


def test_the_packages_to_deploy_with_bring_every_library():
    packages = " ".join(shell_lines("Deployment")).replace("libssl", "libcrypto").replace("zlib", "libz")
    system = {"c", "m", "asan", "ubsan", "tsan", "gcc"}
    assert [name for name in linked_libraries() if name not in system and f"lib{name}" not in packages] == []


def test_every_command_is_listed(ztserve):
    listed = set(re.findall(r"^\| `ztserve ([a-z-]+)", section("Commands"), re.MULTILINE))
    assert listed == set(re.findall(r"^  ([a-z-]+) ", ztserve("--help").output, re.MULTILINE))


def test_every_format_that_can_be_written_is_listed(ztserve):
    described = re.search(r"^  --to FORMAT +(.*?)^  -", ztserve("convert", "--help").output, re.MULTILINE | re.DOTALL).group(1)
    names = re.split(r", | or ", re.sub(r" \(.*?\)", "", " ".join(described.split())))
    assert re.search(r"--to (\S+?)`", section("Commands")).group(1).split(r"\|") == names


def test_the_packages_of_the_tests_are_listed_by_version():
    pinned = re.findall(r'"([a-z]+)==([0-9.]+)"', (TOP / "tests" / "interop" / "environments.py").read_text())
    listed = section("Development")
    assert pinned
    assert [name for name, release in pinned if f"`{name}`" not in listed or release not in listed] == []
