"""The released program is built so that a bug in it is hard to use: read from the ELF file with readelf."""

import os
import re
import shutil
from pathlib import Path

import pytest

from bare_root import run_checked
from server_process import PROGRAM, TOP

BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
# What the compiler puts in place of these where it knows the size of the buffer.
FORTIFIED = ("memcpy", "snprintf", "vsnprintf", "fprintf", "vfprintf", "read", "pread")


def cached(name):
    match = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return match.group(1) if match else ""


@pytest.fixture(scope="module")
def readelf():
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    if cached("ZT_SANITIZE") or cached("CMAKE_BUILD_TYPE") != "Release":
        pytest.skip("not a release build")
    return lambda option: run_checked(["readelf", "--wide", option, PROGRAM])


def test_it_can_be_loaded_at_any_address(readelf):
    assert re.search(r"Type:\s+DYN", readelf("--file-header"))
    assert re.search(r"FLAGS_1.*\bPIE\b", readelf("--dynamic"))


def test_tables_of_addresses_are_read_only_once_it_runs(readelf):
    assert "GNU_RELRO" in readelf("--program-headers")
    assert re.search(r"FLAGS_1.*\bNOW\b", readelf("--dynamic"))


def test_nothing_is_both_writable_and_executable(readelf):
    segments = re.findall(r"^\s+(\w+)\s+(?:0x\w+\s+){5}([RWE ]{3})", readelf("--program-headers"), re.MULTILINE)
    flags = dict(segments)
    assert "E" not in flags["GNU_STACK"]
    assert [name for name, held in segments if "W" in held and "E" in held] == []


def test_the_stack_is_guarded_and_calls_are_fortified(readelf):
    symbols = readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert any(f"__{name}_chk" in symbols for name in FORTIFIED)


def test_no_folder_is_searched_for_libraries_but_the_system_s(readelf):
    assert not re.search(r"R(UN)?PATH", readelf("--dynamic"))
