"""The manual pages name every command, option and key, and nothing else, and say what the help says; they have no fault that the formatter finds."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server_process import PROGRAM, TOP

BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))


def page_text(name):
    """The page's source without fonts and escapes."""
    text = (BUILD / name).read_text()
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def help_of(*arguments):
    return subprocess.run([PROGRAM, *arguments, "--help"], capture_output=True, text=True, check=True).stdout


COMMANDS = re.findall(r"^  ([a-z][a-z-]*) ", help_of(), re.MULTILINE)
PAGES = ["ztserve.1", "ztserve.json.5", *(f"manual/ztserve-{command}.1" for command in COMMANDS)]


def test_every_command_is_in_the_manual_and_no_other():
    entries = page_text("ztserve.1").split(".SH COMMANDS")[1].split(".SH ")[0]
    assert re.findall(r"^\.TP\n([a-z][a-z-]*)\n.*: ztserve-([a-z-]+)\(1\)\.$", entries, re.MULTILINE) == [
        (command, command) for command in COMMANDS
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_a_command_says_what_its_help_says(command):
    page, shown = page_text(f"manual/ztserve-{command}.1"), help_of(command)
    assert f".B ztserve {command}" in page
    listed = page.split(".SH OPTIONS")[1].split(".SH ")[0]
    options = re.findall(r"^\.TP\n\.B (-.*)$", listed, re.MULTILINE)
    assert options == re.findall(r"^  (-.*?)(?:  .*)?$", shown.split("\nOptions:")[1].split("\nExamples:")[0], re.MULTILINE)
    examples = re.findall(r"^\.TP\n\.B (.*)$", page.split(".SH EXAMPLES")[1], re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        plain = example.replace("\\(cq", "'").replace("\\(ti", "~").replace("\\(ga", "`")
        assert f"\n  {plain}\n" in shown


def test_every_page_is_installed():
    made = {path.name for path in (BUILD / "manual").glob("ztserve-*.1")}
    assert made == {f"ztserve-{command}.1" for command in COMMANDS}


def keys_of(schema, prefix=""):
    for name, member in schema.get("properties", {}).items():
        if "properties" in member:
            yield from keys_of(member, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", member
            yield from keys_of(member.get("items", {}), f"{prefix}{name}[].")


def test_every_key_is_in_the_manual_with_variable_meaning_and_default():
    schema = json.loads((TOP / "config/ztserve.schema.json").read_text())
    settings = page_text("ztserve.json.5").split(".SH SETTINGS")[1].split(".SH ")[0]
    shown = {key: (variable, text) for key, variable, text in re.findall(r"^\.TP\n(\S+)(?: \((\w+)\))?\n(.*)$", settings, re.MULTILINE)}
    expected = {}
    for key, member in keys_of(schema):
        default = member.get("default")
        text = member["description"] if default in (None, "") else f"{member['description']} Default: {shown_default(default)}."
        expected[key] = ("" if "[]" in key else "ZTSERVE_" + key.upper().replace(".", "_"), text)
    assert shown == expected


def shown_default(value):
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("page", PAGES)
def test_the_formatter_finds_no_fault(page):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", BUILD / page], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
