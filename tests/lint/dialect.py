#!/usr/bin/env python3
"""Checks what clang-format leaves alone: lines of comments up to 100 columns, parentheses after sizeof, and no line that
holds only the end of a comment."""

import pathlib
import re
import sys

COLUMNS_MAX = 100
TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["core", "config", "server", "tests", "deploy", "docs"]
BARE_SIZEOF = re.compile(r"\bsizeof\b(?!\()")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"')


def complaints_of(line):
    # clang-format lines up the values of macros and lets them grow past its limit.
    if len(line) > COLUMNS_MAX and not line.startswith("#define"):
        yield f"{len(line)} columns, more than {COLUMNS_MAX}"
    if line.strip() in ("*/", "* */"):
        yield "the comment ends on a line of its own"
    code = LITERAL.sub('""', line)
    if BARE_SIZEOF.search(code) and not code.lstrip().startswith(("*", "/*")):
        yield "sizeof without parentheses"


def main():
    found = 0
    paths = (path for folder in FOLDERS for path in sorted((TOP / folder).rglob("*.[ch]")))
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for complaint in complaints_of(line):
                print(f"{path.relative_to(TOP)}:{number}: {complaint}", file=sys.stderr)
                found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
