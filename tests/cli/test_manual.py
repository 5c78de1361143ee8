"""The manual pages name every command, option and key, and nothing else; they have no fault that the formatter finds."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server_process import PROGRAM, TOP

BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
PAGES = ["ztserve.1", "ztserve.json.5"]


def page_text(name):
    """The page's source without fonts and escapes."""
    text = (BUILD / name).read_text()
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def words_of_help():
    """Commands and options, from the program's own help."""
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ztserve ([a-z][a-z-]*)", text, re.MULTILINE))
    options = set(re.findall(r"(--[a-z][a-z-]*)", text))
    return commands, options


def test_every_command_and_option_is_in_the_manual_and_no_other():
    commands, options = words_of_help()
    manual = page_text("ztserve.1")
    synopsis = manual.split(".SH SYNOPSIS")[1].split(".SH ")[0]
    assert set(re.findall(r"^ztserve ([a-z][a-z-]*)", synopsis, re.MULTILINE)) == commands
    entries = manual.split(".SH COMMANDS")[1].split(".SH ")[0]
    assert set(re.findall(r"^\.TP\n([a-z][a-z-]*)", entries, re.MULTILINE)) == commands
    listed = manual.split(".SH OPTIONS")[1].split(".SH ")[0]
    assert {option for line in re.findall(r"^\.TP\n(-.*)$", listed, re.MULTILINE) for option in re.findall(r"--[a-z-]+", line)} == options


def keys_of(schema, prefix=""):
    for name, member in schema["properties"].items():
        if "properties" in member:
            yield from keys_of(member, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", member


def test_every_key_is_in_the_manual_with_variable_meaning_and_default():
    schema = json.loads((TOP / "config/ztserve.schema.json").read_text())
    settings = page_text("ztserve.json.5").split(".SH SETTINGS")[1].split(".SH ")[0]
    shown = {key: (variable, text) for key, variable, text in re.findall(r"^\.TP\n(\S+) \((\w+)\)\n(.*)$", settings, re.MULTILINE)}
    expected = {}
    for key, member in keys_of(schema):
        default = member.get("default")
        text = member["description"] if default in (None, "") else f"{member['description']} Default: {shown_default(default)}."
        expected[key] = ("ZTSERVE_" + key.upper().replace(".", "_"), text)
    assert shown == expected


def shown_default(value):
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("page", PAGES)
def test_the_formatter_finds_no_fault(page):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", BUILD / page], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
