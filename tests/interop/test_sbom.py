"""The SBOM of the image, from a folder made by hand."""

import json
import subprocess
import sys

import pytest

from sbom_rules import broken_rules
from server_process import TOP

SBOM = TOP / "deploy/image/sbom.py"
HEADER = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
# Paragraphs of a copyright file, and the expression that they come to.
LICENCES = {
    "one": (HEADER + "Files: *\nLicense: Expat\n", "MIT"),
    "twice": (HEADER + "Files: *\nLicense: BSD-3-clause\n\nLicense: BSD-3-clause\n text\n", "BSD-3-Clause"),
    "several": (HEADER + "Files: *\nLicense: LGPL-2.1+\n\nFiles: a\nLicense: GPL-3\n", "LGPL-2.1-or-later AND GPL-3.0-only"),
    "choice": (HEADER + "Files: *\nLicense: GPL-2+ or Zlib\n", "(GPL-2.0-or-later OR Zlib)"),
    "unknown": (HEADER + "Files: *\nLicense: Expat\n\nFiles: a\nLicense: own-terms\n", "NOASSERTION"),
    "exception": (HEADER + "Files: *\nLicense: GPL-3+ with GCC exception\n", "NOASSERTION"),
    "prose": ("This package was made by hand.\nLicense: Expat\n", "NOASSERTION"),
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    packages = tmp_path / "var/lib/dpkg/status.d"
    packages.mkdir(parents=True)
    for name, (text, _) in LICENCES.items():
        control = f"Package: lib{name}\nSource: {name} (1:2)\nVersion: 1:2.0+deb13~1\nArchitecture: amd64\nDescription: x\n Package: no\n"
        (packages / f"lib{name}").write_text(control)
        documents = tmp_path / "usr/share/doc" / f"lib{name}"
        documents.mkdir(parents=True)
        (documents / "copyright").write_text(text)
    return tmp_path


def make(root, environment=None):
    shown = subprocess.run([sys.executable, SBOM, root, "1.2.3"], capture_output=True, text=True, check=True, env=environment)
    return json.loads(shown.stdout)


def test_licences_become_expressions_of_spdx(root):
    declared = {package["name"]: package["licenseDeclared"] for package in make(root)["packages"]}
    assert declared == {"ztserve": "MIT", **{f"lib{name}": wanted for name, (_, wanted) in LICENCES.items()}}


def test_packages_have_versions_sources_and_urls(root):
    shown = next(package for package in make(root)["packages"] if package["name"] == "libone")
    assert (shown["versionInfo"], shown["sourceInfo"]) == ("1:2.0+deb13~1", "source package: one (1:2)")
    url = "pkg:deb/debian/libone@1%3A2.0%2Bdeb13~1?arch=amd64&distro=debian-13"
    assert [reference["referenceLocator"] for reference in shown["externalRefs"]] == [url]


def test_the_same_content_and_time_give_the_same_document(root):
    environment = {"SOURCE_DATE_EPOCH": "1700000000"}
    document = make(root, environment)
    assert document == make(root, environment)
    assert document["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    (root / "var/lib/dpkg/status.d/libone").unlink()
    assert make(root, environment)["documentNamespace"] != document["documentNamespace"]


def test_it_keeps_the_rules(root):
    assert broken_rules(make(root)) == []
