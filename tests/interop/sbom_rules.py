"""The rules of SPDX 2.3 (JSON) that a document of packages and relations can break, and those of package URLs."""

import re
import sys

from server_process import TOP

sys.path.insert(0, str(TOP / "deploy/image"))

from sbom import SPDX_NAMES  # noqa: E402

DOCUMENT_FIELDS = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "relationships"}
PACKAGE_FIELDS = {"SPDXID", "name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"}
OPTIONAL_FIELDS = {
    "filesAnalyzed",
    "supplier",
    "sourceInfo",
    "externalRefs",
    "licenseComments",
    "primaryPackagePurpose",
}
ELEMENT = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PURL = re.compile(r"pkg:deb/debian/[a-z0-9][a-z0-9+.%-]*@[A-Za-z0-9.%~_-]+\?arch=[a-z0-9]+&distro=debian-[a-z0-9]+")
GNU = re.compile(r"A?(L?GPL)-[123]\.[01]-(only|or-later)")
RELATIONS = {"DESCRIBES", "DEPENDS_ON", "CONTAINS"}


def is_expression(text):
    """Whether it is made of identifiers of SPDX, AND, OR and brackets that match."""
    if text == "NOASSERTION":
        return True
    operand = r"[A-Za-z0-9.-]+"
    shape = re.sub(rf"\({operand}( (AND|OR) {operand})*\)", "X", text)
    if not re.fullmatch(rf"{operand}( (AND|OR) {operand})*", shape):
        return False
    names = set(re.findall(operand, text)) - {"AND", "OR"}
    return all(name in SPDX_NAMES.values() or GNU.fullmatch(name) for name in names)


def package_faults(package):
    where = package.get("name")
    missing = PACKAGE_FIELDS - set(package)
    unknown = set(package) - PACKAGE_FIELDS - OPTIONAL_FIELDS
    faults = [f"{where}: missing {name}" for name in missing] + [f"{where}: unknown {name}" for name in unknown]
    if missing:
        return faults
    if not ELEMENT.fullmatch(package["SPDXID"]):
        faults.append(f"{where}: identifier {package['SPDXID']}")
    for name in ("licenseConcluded", "licenseDeclared"):
        if not is_expression(package[name]):
            faults.append(f"{where}: {name} {package[name]}")
    if not re.match(r"(Organization|Person|Tool): \S|NOASSERTION$", package.get("supplier", "NOASSERTION")):
        faults.append(f"{where}: supplier")
    for reference in package.get("externalRefs", []):
        kind = (reference["referenceCategory"], reference["referenceType"])
        if kind != ("PACKAGE-MANAGER", "purl") or not PURL.fullmatch(reference["referenceLocator"]):
            faults.append(f"{where}: reference {reference['referenceLocator']}")
    return faults


def broken_rules(document):
    """What is wrong with the document, as lines; none if it is right."""
    faults = [f"missing {name}" for name in DOCUMENT_FIELDS - set(document)]
    if faults:
        return faults
    if (document["spdxVersion"], document["dataLicense"]) != ("SPDX-2.3", "CC0-1.0"):
        faults.append("version or licence of the document")
    if document["SPDXID"] != "SPDXRef-DOCUMENT" or not re.fullmatch(r"[a-z]+:[^#\s]+", document["documentNamespace"]):
        faults.append("identifier or name space of the document")
    creation = document["creationInfo"]
    if not TIME.fullmatch(creation["created"]) or not all(": " in creator for creator in creation["creators"]):
        faults.append("creation")
    identifiers = [package.get("SPDXID") for package in document["packages"]]
    if len(set(identifiers)) != len(identifiers):
        faults.append("an identifier is used twice")
    for package in document["packages"]:
        faults += package_faults(package)
    known = {"SPDXRef-DOCUMENT", *identifiers}
    for relation in document["relationships"]:
        if not {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known:
            faults.append(f"relation to an unknown element: {relation}")
        if relation["relationshipType"] not in RELATIONS:
            faults.append(f"unknown relation: {relation}")
    if not any(relation["relationshipType"] == "DESCRIBES" for relation in document["relationships"]):
        faults.append("it describes nothing")
    return faults
