#!/usr/bin/env python3
"""Writes the provenance of a release into its folder, and prints the file's path: an in-toto statement (v1) with a predicate of
SLSA (https://slsa.dev/provenance/v1), which names each file of the release, the commit, and every Debian package that was
installed where it was built. It has no times, so that the same files give the same statement.

It is not signed: that is a step of its own (sign.py).
"""

import argparse
import hashlib
import json
import re
from pathlib import Path
from urllib.parse import quote

TOP = Path(__file__).resolve().parents[2]
BUILD_TYPE = "https://ztserve.example/deploy/release.sh/v1"


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def dependency(line, release):
    """The description of one package, of which a line of the materials has name, version, architecture and SHA-256."""
    name, version, architecture, digest = line.split()
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={architecture}&distro={release}"
    return {"uri": purl, "digest": {"sha256": digest}}


def statement(folder, commit, mirror, builder, materials):
    targets = sorted(path.stem for path in materials)
    packages = {}
    for path in materials:
        release = "-".join(path.stem.split("-")[:2])
        for line in path.read_text().splitlines():
            found = dependency(line, release)
            packages[found["uri"]] = found
    source = {"uri": "git+https://ztserve.example/ztserve", "digest": {"gitCommit": commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest_of(path)}} for path in sorted(folder.iterdir())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"source": source, "targets": targets, "mirror": mirror},
                "resolvedDependencies": [source, *(packages[uri] for uri in sorted(packages))],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("commit", "mirror", "builder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("folder", type=Path)
    parser.add_argument("materials", type=Path, nargs="+")
    given = parser.parse_args()
    version = re.search(r"project\(ztserve VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text()).group(1)
    written = statement(given.folder, given.commit, given.mirror, given.builder, given.materials)
    path = given.folder / f"ztserve-{version}.provenance.json"
    path.write_text(json.dumps(written, indent=2) + "\n")
    print(path)


if __name__ == "__main__":
    main()
