#!/usr/bin/env python3
"""Checks the rooms of rooms.txt: no include points upward, no room holds too many files, and each
header has one room. Test files have one name each, since pytest imports them by it."""

import pathlib
import re
import sys

FILES_MAX = 40
TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# Where the names in an #include of a layer begin.
ROOTS = {"core": ["core/include", "core/src"], "config": ["."], "server": ["server", "core/src", "core/include", "."]}


def read_rooms():
    """The level of each room, and the room of each public header."""
    rooms, public, beside, level = {}, {}, False, 0
    for line in (TOP / "tests/lint/rooms.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        level += not (beside and line.startswith("="))
        beside = line.startswith("=")
        room, *headers = line.removeprefix("=").split()
        rooms[room] = level
        public.update({f"core/include/zt/{header}.h": room for header in headers})
    return rooms, public


def source_files():
    for layer in ROOTS:
        for path in sorted((TOP / layer).rglob("*.[ch]")):
            yield path.relative_to(TOP)


def resolve(name, layer):
    for root in ROOTS[layer]:
        path = pathlib.Path(root) / name
        if (TOP / path).is_file():
            return path
    return None


def room_of(path, public):
    return public.get(str(path), str(path.parent))


def check_file(path, rooms, public):
    """One complaint for each include of path that is unknown or points upward."""
    room = room_of(path, public)
    if room not in rooms:
        yield f"{path}: rooms.txt has no room for it"
        return
    for name in INCLUDE.findall((TOP / path).read_text()):
        target = resolve(name, path.parts[0])
        if target is None:
            yield f'{path}: "{name}" is not found from the root of its layer'
        elif (owner := room_of(target, public)) not in rooms:
            yield f"{target}: rooms.txt has no room for it"
        elif rooms[owner] > rooms[room]:
            yield f"{path}: {room} is below {owner}, which {name} belongs to"
        elif rooms[owner] == rooms[room] and owner != room:
            yield f"{path}: {room} is next to {owner}, which {name} belongs to"


def namesakes():
    """Headers that the server would find in both base rooms, which share one prefix."""
    core, server = ({path.name for path in (TOP / layer / "base").glob("*.h")} for layer in ("core/src", "server"))
    return sorted(core & server)


def test_files_of_one_name():
    names = [path.name for path in (TOP / "tests").rglob("test_*.py")]
    return sorted({name for name in names if names.count(name) > 1})


def main():
    rooms, public = read_rooms()
    complaints, sizes = [], {}
    for path in source_files():
        complaints += check_file(path, rooms, public)
        sizes[str(path.parent)] = sizes.get(str(path.parent), 0) + 1
    complaints += [f"core/src/base and server/base both have a {name}" for name in namesakes()]
    complaints += [f"tests: more than one file is called {name}" for name in test_files_of_one_name()]
    complaints += [f"{room}: {count} files, more than {FILES_MAX}"
                   for room, count in sizes.items() if count > FILES_MAX]
    for complaint in dict.fromkeys(complaints):
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
