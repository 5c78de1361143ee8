"""The rules of an in-toto statement (v1) with SLSA provenance (v1) that a release can break."""

import re

STATEMENT_FIELDS = {"_type", "subject", "predicateType", "predicate"}
DEFINITION_FIELDS = {"buildType", "externalParameters", "resolvedDependencies"}
URI = re.compile(r"[a-z][a-z0-9+.-]*:\S+")
DIGESTS = {"sha256": re.compile(r"[0-9a-f]{64}"), "gitCommit": re.compile(r"[0-9a-f]{40}")}


def digest_faults(described):
    """A subject or a dependency, which needs a digest of a kind that is known."""
    named = described.get("name") or described.get("uri")
    digests = described.get("digest") or {}
    if not digests:
        return [f"{named}: no digest"]
    return [f"{named}: {kind} {digest}" for kind, digest in digests.items() if not DIGESTS[kind].fullmatch(digest)]


def broken_rules(statement):
    """What is wrong with the statement, as lines; none if it is right."""
    if set(statement) != STATEMENT_FIELDS:
        return [f"fields {sorted(statement)}"]
    faults = []
    if statement["_type"] != "https://in-toto.io/Statement/v1":
        faults.append(f"type {statement['_type']}")
    if statement["predicateType"] != "https://slsa.dev/provenance/v1":
        faults.append(f"type of predicate {statement['predicateType']}")
    definition = statement["predicate"]["buildDefinition"]
    if set(definition) != DEFINITION_FIELDS:
        faults.append(f"fields of the definition {sorted(definition)}")
    names = [subject["name"] for subject in statement["subject"]]
    if not names or len(set(names)) != len(names):
        faults.append(f"subjects {names}")
    dependencies = definition["resolvedDependencies"]
    addresses = [definition["buildType"], statement["predicate"]["runDetails"]["builder"]["id"]]
    for address in [*addresses, *(dependency["uri"] for dependency in dependencies)]:
        if not URI.fullmatch(address):
            faults.append(f"not a URI: {address}")
    for described in [*statement["subject"], *dependencies]:
        faults += digest_faults(described)
    return faults
