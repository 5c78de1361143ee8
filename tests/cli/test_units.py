"""The units of systemd: accepted, hardened, and not narrower than what the program needs."""

import functools
import re
import shutil
import subprocess

import pytest

from server_process import PROGRAM, TOP

UNITS = TOP / "deploy" / "systemd"
# The scale ends at 10; services without any hardening are at 9.6.
EXPOSURE_MAX = 2.0

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="skipped: no systemd-analyze")


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def settings(text, name):
    """The values of a setting, in order."""
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


@pytest.fixture
def units(tmp_path):
    """The units, with the program that is tested in place of the installed one."""
    for unit in UNITS.iterdir():
        text = unit.read_text()
        (tmp_path / unit.name).write_text(text.replace("/usr/bin/ztserve", str(PROGRAM)))
    return tmp_path


def test_systemd_accepts_the_units(units):
    result = analyze("verify", "--man=no", units / "ztserve.service", units / "ztserve.socket")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_service_is_hardened(units):
    result = analyze("security", "--offline=true", "--no-pager", f"--threshold={int(EXPOSURE_MAX * 10)}", units / "ztserve.service")
    overall = re.search(r"Overall exposure level for ztserve.service: ([0-9.]+)", result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    assert float(overall.group(1)) <= EXPOSURE_MAX


@functools.cache
def group(name):
    """The system calls of a group, those of the groups within it included."""
    calls = set()
    for line in analyze("syscall-filter", "--no-pager", name).stdout.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            calls |= group(word) if word.startswith("@") else {word}
    return calls


def allowed_calls(text):
    calls = set()
    for value in settings(text, "SystemCallFilter"):
        words = value.removeprefix("~").split()
        named = set().union(*(group(word) if word.startswith("@") else {word} for word in words))
        calls = calls - named if value.startswith("~") else calls | named
    return calls


def test_every_system_call_that_the_program_leaves_itself_is_allowed():
    table = (TOP / "server/sandbox/system_calls.c").read_text().split("const allowed[] = {", 1)[1].split("};", 1)[0]
    needed = set(re.findall(r'"([a-z0-9_]+)"', table))
    assert len(needed) > 100
    known = group("@known")
    denied = needed & known - allowed_calls((UNITS / "ztserve.service").read_text())
    assert denied == set()


def test_the_service_starts_the_program_as_its_help_says(ztserve):
    (command,) = settings((UNITS / "ztserve.service").read_text(), "ExecStart")
    program, verb, option, file = command.split()
    assert (program, verb, file) == ("/usr/bin/ztserve", "serve", "/etc/ztserve/ztserve.json")
    assert option in ztserve("serve", "--help").output


def test_the_socket_stands_for_the_default_address(ztserve, tmp_path):
    (tmp_path / "empty.json").write_text("{}")
    default = re.search(r'"listen": "(.*?)"', ztserve("check-config", tmp_path / "empty.json").output).group(1)
    assert settings((UNITS / "ztserve.socket").read_text(), "ListenStream") == [default]
