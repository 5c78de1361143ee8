#!/usr/bin/env python3
"""sbom.py ROOT VERSION: writes the SPDX 2.3 document of an image: ztserve, and the Debian packages whose control data are in
ROOT/var/lib/dpkg/status.d, with the licences that their copyright files state in Debian's machine-readable form.

SOURCE_DATE_EPOCH sets the time in the document, which is then the same for the same content.
"""

import datetime
import hashlib
import json
import os
import re
import sys
import uuid
from pathlib import Path
from urllib.parse import quote

# Debian's short names of licences (DEP 5) that SPDX lists under another name, or under the same.
SPDX_NAMES = {
    "apache-2.0": "Apache-2.0",
    "artistic": "Artistic-1.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "expat": "MIT",
    "mit": "MIT",
    "isc": "ISC",
    "zlib": "Zlib",
    "cc0-1.0": "CC0-1.0",
    "gfdl-1.3": "GFDL-1.3-only",
    "gfdl-1.3+": "GFDL-1.3-or-later",
    "unicode": "Unicode-DFS-2016",
}
GNU = re.compile(r"(A?GPL|LGPL)-([123](?:\.[01])?)(\+?)")


def spdx_name(name):
    """The SPDX identifier of one licence of a copyright file, or None."""
    gnu = GNU.fullmatch(name.upper())
    if gnu:
        family, version, later = gnu.groups()
        version = version if "." in version else f"{version}.0"
        return f"{family}-{version}-{'or-later' if later else 'only'}"
    return SPDX_NAMES.get(name.lower())


def stated_licences(copyright_file):
    """The licence expressions of its paragraphs, in order and once each; none if it is not machine-readable."""
    text = copyright_file.read_text(errors="replace") if copyright_file.is_file() else ""
    if not text.lstrip().startswith("Format:"):
        return []
    return list(dict.fromkeys(re.findall(r"^License:[ \t]*(\S.*?)\s*$", text, re.MULTILINE)))


def spdx_expression(stated):
    """The licences, all of which apply, as one SPDX expression; NOASSERTION if one of them has no SPDX identifier."""
    parts = []
    for expression in stated:
        words = re.split(r"\s+(and|or)\s+", expression.replace(",", ""))
        names = [word.upper() if word in ("and", "or") else spdx_name(word) for word in words]
        if None in names:
            return "NOASSERTION"
        parts.append(" ".join(names) if len(names) == 1 else f"({' '.join(names)})")
    return " AND ".join(dict.fromkeys(parts)) or "NOASSERTION"


def control_fields(path):
    """The fields of a control file, without their continuation lines."""
    return dict(re.findall(r"^([A-Za-z-]+): (.*)$", path.read_text(), re.MULTILINE))


def element_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def debian_package(path, root, release):
    fields = control_fields(path)
    name, version = fields["Package"], fields["Version"]
    stated = stated_licences(root / "usr/share/doc" / name / "copyright")
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={fields['Architecture']}&distro={release}"
    shown = {
        "SPDXID": element_id(name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "sourceInfo": f"source package: {fields.get('Source', name)}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": spdx_expression(stated),
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        ],
    }
    if stated:
        shown["licenseComments"] = "stated in its copyright file: " + "; ".join(stated)
    return shown


def own_package(version):
    return {
        "SPDXID": element_id("ztserve"),
        "name": "ztserve",
        "versionInfo": version,
        "primaryPackagePurpose": "APPLICATION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "MIT",
        "licenseDeclared": "MIT",
        "copyrightText": "NOASSERTION",
    }


def release_of(root):
    values = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', (root / "etc/os-release").read_text(), re.MULTILINE))
    return f"debian-{values.get('VERSION_ID', 'unstable')}"


def creation_time():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.timezone.utc)
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else now
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def document(root, version):
    own = own_package(version)
    files = sorted((root / "var/lib/dpkg/status.d").iterdir())
    packages = [debian_package(path, root, release_of(root)) for path in files]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], "DEPENDS_ON", package["SPDXID"]) for package in packages]
    content = hashlib.sha256(json.dumps([own, packages]).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"ztserve-{version}",
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, content).urn,
        "creationInfo": {"created": creation_time(), "creators": ["Tool: ztserve-sbom"]},
        "packages": [own, *packages],
        "relationships": [
            {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
            for element, kind, related in relations
        ],
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    json.dump(document(Path(sys.argv[1]), sys.argv[2]), sys.stdout, indent=2)
    print()
