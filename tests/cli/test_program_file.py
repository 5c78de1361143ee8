"""The program is the same whichever folder it is built in (tests/interop/test_release.py compares the bytes of two builds)."""

import os
import re

import pytest

from server_process import PROGRAM


@pytest.mark.plain("sanitizers report places in files by their paths")
def test_the_program_contains_no_path_of_its_build():
    cache = (PROGRAM.parent / "CMakeCache.txt").read_text()
    if "CMAKE_BUILD_TYPE:STRING=Release\n" not in cache:
        pytest.skip("only releases are reproducible")
    content = PROGRAM.read_bytes()
    sources = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE).group(1)
    for folder in (sources, str(PROGRAM.parent)):
        found = re.findall(b"[ -~]*" + re.escape(os.fsencode(folder)) + b"/[ -~]*", content)
        assert found == [], folder
