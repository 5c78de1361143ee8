"""The README and the pages it was divided into are true: their tables match the program."""

import re
import subprocess
from pathlib import Path

import pytest

from server_process import PROGRAM, TOP

README = (TOP / "README.md").read_text()
COMMANDS = (TOP / "docs" / "commands.md").read_text()
DEPLOYMENT = (TOP / "docs" / "deployment.md").read_text()
DEVELOPMENT = (TOP / "docs" / "internals" / "development.md").read_text()


def section(heading, page=README):
    return page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def shell_lines(heading, page=README):
    return re.search(r"```sh\n(.*?)```", section(heading, page), re.DOTALL).group(1).strip().splitlines()


@pytest.mark.parametrize("command", re.findall(r"^\| `(\S+?/\S+)", DEVELOPMENT, re.MULTILINE))
def test_the_scripts_exist(command):
    program = Path(TOP / command.strip("`").split()[0])
    assert program.is_file() and program.stat().st_mode & 0o100


def test_the_quickstart_prints_its_usage_before_it_builds(tmp_path):
    """Without any program to build with."""
    quickstart = TOP / "deploy" / "quickstart.sh"
    for option in ("--help", "-h"):
        told = subprocess.run(["/bin/bash", quickstart, option], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.startswith("usage: deploy/quickstart.sh ") and "--listen 127.0.0.1:9000" in told.stdout


def linked_libraries():
    listed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[lib([a-z0-9]+)", listed)


def test_the_packages_to_deploy_with_bring_every_library():
    packages = " ".join(shell_lines("The program alone", DEPLOYMENT)).replace("libssl", "libcrypto").replace("zlib", "libz")
    system = {"c", "m", "asan", "ubsan", "tsan", "gcc"}
    assert [name for name in linked_libraries() if name not in system and f"lib{name}" not in packages] == []


def test_every_command_is_listed(ztserve):
    pattern = re.compile(r"^\| `ztserve ([a-z-]+)", re.MULTILINE)
    commands = set(re.findall(r"^  ([a-z-]+) ", ztserve("--help").output, re.MULTILINE))
    assert set(pattern.findall(COMMANDS)) == commands
    assert set(pattern.findall(README)) < commands


def test_every_format_that_can_be_written_is_listed(ztserve):
    described = re.search(r"^  --to FORMAT +(.*?)^  -", ztserve("convert", "--help").output, re.MULTILINE | re.DOTALL).group(1)
    names = re.split(r", | or ", re.sub(r" \(.*?\)", "", " ".join(described.split())))
    assert re.search(r"--to (\S+?)`", COMMANDS).group(1).split(r"\|") == names


def test_the_packages_of_the_tests_are_listed_by_version():
    pinned = re.findall(r'"([a-z]+)==([0-9.]+)"', (TOP / "tests" / "interop" / "environments.py").read_text())
    assert pinned
    assert [name for name, release in pinned if f"`{name}`" not in DEVELOPMENT or release not in DEVELOPMENT] == []
