#!/usr/bin/env python3
"""Prints figures of the product code's style: sizes of functions, files and folders, structs, parameters, assertions,
repetition. Of all folders together, fails if a figure is outside its bound in style.json; bounds follow figures that
improve, never the other way.

Needs universal-ctags for the figures of functions, and leaves these out without it.

  tests/figures/style.py [FOLDER...]     default: core config server
"""

import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
BOUNDS = json.loads((pathlib.Path(__file__).parent / "style.json").read_text())
# A block is repeated when this many lines of code in a row stand in two places.
BLOCK_LINES = 6
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.DOTALL)
# libmicrohttpd declares the callbacks that take these parameters.
GIVEN_SIGNATURES = {"handler_on_request"}
# A struct that a reader of another file may have to know.
STRUCT = re.compile(r"^(?:typedef )?struct (\w+)\s*\{", re.MULTILINE)
ASSERTION = re.compile(r"(?<![a-zA-Z_])assert\(")
# Lines that only assert are wanted, so the bound on lines does not count them.
ASSERTING = re.compile(r"^ +assert\([^;]*\);\n", re.MULTILINE)


def source_files(folders):
    return sorted(path for folder in folders for path in (TOP / folder).rglob("*.[ch]"))


def code_lines(text):
    """(line number, text without layout) of the lines that hold code."""
    without = COMMENT.sub(lambda found: found.group(1) or "\n" * found.group(0).count("\n"), text)
    lines = ((number, " ".join(line.split())) for number, line in enumerate(without.splitlines(), 1))
    return [(number, line) for number, line in lines if line]


def functions(paths):
    """(file, name, lines, parameters) of each function that is defined."""
    command = ["ctags", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f", "--fields=+neS", "--sort=no", "-f", "-", *paths]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = []
    for entry in listed.splitlines():
        fields = dict(re.findall(r"\t(line|end|signature):([^\t]*)", entry))
        if "end" in fields:
            name, path = entry.split("\t")[:2]
            length = int(fields["end"]) - int(fields["line"]) + 1
            found.append((path, name, length, count_parameters(fields.get("signature", "()"))))
    return found


def count_parameters(signature):
    """Parameters of (…), where a comma inside a function pointer's own brackets separates none."""
    inside, depth, commas = signature.strip()[1:-1].strip(), 0, 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        commas += letter == "," and depth == 0
    return 0 if inside in ("", "void") else commas + 1


def repeated_lines(codes):
    """Lines that belong to a block standing in more than one place."""
    places = collections.defaultdict(list)
    for path, lines in codes.items():
        for first in range(len(lines) - BLOCK_LINES + 1):
            block = tuple(line for _, line in lines[first : first + BLOCK_LINES])
            if not all(line.startswith("#include") for line in block):
                places[block].append((path, first))
    repeated = {
        (path, first + offset)
        for found in places.values()
        if len(found) > 1
        for path, first in found
        for offset in range(BLOCK_LINES)
    }
    return len(repeated)


def spread(values):
    ordered = sorted(values)
    return f"median {statistics.median(ordered):g}, 95th percentile {ordered[int(len(ordered) * 0.95)]}, most {ordered[-1]}"


def print_functions(found, assertions):
    """Returns the figures that have bounds."""
    lengths = [length for _, _, length, _ in found]
    own = [function for function in found if function[1] not in GIVEN_SIGNATURES]
    parameters = [count for _, _, _, count in own]
    longest = max(found, key=lambda function: function[2])
    widest = max(own, key=lambda function: function[3])
    rate = round(100 * assertions / len(found), 1)
    print(f"functions               {len(found)}")
    print(f"lines per function      {spread(lengths)} ({longest[1]})")
    print(f"parameters              {spread(parameters)} ({widest[1]}), {sum(count > 6 for count in parameters)} functions with more than 6")
    print(f"assertions              {assertions}, {rate} per 100 functions")
    return {"functions with more than 6 parameters": sum(count > 6 for count in parameters), "assertions per 100 functions": rate}


def print_files(texts, code):
    """Returns the figures that have bounds."""
    sizes = {path: text.count("\n") for path, text in texts.items() if path.suffix == ".c"}
    rooms = collections.Counter(path.parent.relative_to(TOP) for path in texts)
    fullest = rooms.most_common(1)[0]
    lines = sum(text.count("\n") for text in texts.values())
    asserting = sum(found.count("\n") for text in texts.values() for found in ASSERTING.findall(text))
    structs = {name for path, text in texts.items() if path.suffix == ".h" for name in STRUCT.findall(text)}
    print(f"files                   {len(texts)} ({len(sizes)} .c)")
    print(f"lines                   {lines}, of which code {code}; {asserting} only assert")
    print(f"lines per .c file       {spread(sizes.values())} ({max(sizes, key=sizes.get).relative_to(TOP)})")
    print(f"files per folder        {spread(rooms.values())} ({fullest[0]})")
    print(f"structs in headers      {len(structs)}")
    return {"lines that do not assert": lines - asserting, "lines of a .c file": max(sizes.values()), "files in a folder": fullest[1], "structs in headers": len(structs)}


def print_tests():
    """Returns the figure that has a bound."""
    lines = sum(path.read_text().count("\n") for suffix in ("py", "c", "h", "sh") for path in (TOP / "tests").rglob(f"*.{suffix}"))
    print(f"lines of test code      {lines}")
    return {"lines of test code": lines}


def check(figures):
    """Compares with the bounds: assertions are to be many, all else is to be little."""
    slipped = 0
    for name, figure in figures.items():
        bound = BOUNDS[name]
        if figure < bound if name.startswith("assertions") else figure > bound:
            print(f"error: {name}: {figure}, and the bound in style.json is {bound}")
            slipped = 1
    return slipped


def main():
    folders = sys.argv[1:] or ["core", "config", "server"]
    texts = {path: path.read_text() for path in source_files(folders)}
    codes = {path: code_lines(text) for path, text in texts.items()}
    code = sum(map(len, codes.values()))
    figures = print_files(texts, code)
    found = functions(list(texts))
    if found:
        without_comments = ("\n".join(line for _, line in lines) for lines in codes.values())
        figures |= print_functions(found, sum(len(ASSERTION.findall(text)) for text in without_comments))
    else:
        print("functions               not counted: universal-ctags is not installed")
    repeated = repeated_lines(codes)
    print(f"repeated blocks         {repeated} lines in blocks of {BLOCK_LINES} or more, {100 * repeated / code:.1f} %")
    return check(figures | print_tests()) if folders == ["core", "config", "server"] else 0


if __name__ == "__main__":
    sys.exit(main())
