"""Makes torch's wheel import on a machine without CUDA: `FOLDER`, that of the installed package.

For Linux on x86-64, PyPI has torch built with CUDA only, and the packages of CUDA's libraries take gigabytes. The loader
wants those libraries to be there and to have the functions that torch names, versions included; here each such function
answers "no device". Nothing of torch's work on the processor calls them.
"""

import re
import subprocess
import sys
from pathlib import Path

LIBRARY = r"lib(?:cu|nv|nccl)"
# Some of CUDA's libraries have no versions of their functions.
UNVERSIONED = r"cu[A-Z]|cu[a-z]+[A-Z]|nccl|nv"
NO_DEVICE = 100


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def missing_libraries(libraries):
    """By name: the versions that torch's libraries want of it."""
    here = {path.name for path in libraries}
    missing = {}
    for path in libraries:
        for name in re.findall(rf"NEEDED\).*\[({LIBRARY}.*)\]", run("readelf", "-d", path)):
            if name not in here:
                missing.setdefault(name, set())
    for path in libraries:
        for name, lines in re.findall(r"File: (\S+) +Cnt.*\n((?: +0x\w+: +Name: .*\n)*)", run("readelf", "-VW", path)):
            if name in missing:
                missing[name].update(re.findall(r"Name: (\S+)", lines))
    return missing


def wanted_functions(libraries):
    """By version, or "" for none."""
    wanted = {}
    for path in libraries:
        for line in run("nm", "-D", "--undefined-only", path).splitlines():
            name, _, version = line.split()[-1].partition("@")
            wanted.setdefault(version, set()).add(name)
    return wanted


def make_library(path, functions):
    """functions: names by version."""
    code = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in sorted(set().union(*functions.values())))
    lists = {version: " ".join(f"{name};" for name in sorted(named)) for version, named in functions.items() if version}
    versions = "".join(f"{version} {{ {names} }};\n" for version, names in lists.items())
    script = path.with_name(path.name + ".versions")
    script.write_text(versions or "{ *; };\n")
    options = ["-shared", "-fPIC", "-nostdlib", "-fno-builtin"]
    options += [f"-Wl,-soname,{path.name}", f"-Wl,--version-script={script}"]
    subprocess.run(["gcc", *options, "-o", path, "-x", "c", "-"], input=code, text=True, check=True)


def main(package):
    libraries = [*(package / "lib").glob("lib*.so*"), *package.glob("_C.*.so")]
    wanted = wanted_functions(libraries)
    unversioned = {name for name in wanted.get("", ()) if re.match(UNVERSIONED, name)}
    # They are in all of them: which library each belongs to is not known.
    for name, versions in missing_libraries(libraries).items():
        make_library(package / "lib" / name, {"": unversioned, **{version: wanted.get(version, set()) for version in versions}})


main(Path(sys.argv[1]))
