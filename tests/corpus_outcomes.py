"""The folders of $ZT_CORPUS whose formats this release reads, and the outcome that each states for its files."""

import json

READ_FOLDERS = ("pt", "zt01-zt1", "zt2-conformance", "zt2-probe")
GOLDEN_FOLDER = "golden"


def ignored_folders(corpus):
    """Folders of formats that this release does not read; a later one may."""
    return sorted(path.name for path in corpus.iterdir() if path.is_dir() and path.name not in (*READ_FOLDERS, GOLDEN_FOLDER))


def expected_outcomes(corpus):
    """(path, outcome) of every container that an expected.tsv lists."""
    for folder in READ_FOLDERS:
        for line in (corpus / folder / "expected.tsv").read_text().splitlines():
            if line.strip() and not line.startswith(("#", "file\t")):
                name, outcome = line.split("\t")[:2]
                if outcome != "tensor":
                    yield corpus / folder / name, outcome


def expected_components(corpus, folder):
    """(file, object, component, dtype, type, shape, SHA-256 of the served bytes) of every component that is listed."""
    for line in (corpus / folder / "expected.tsv").read_text().splitlines():
        fields = line.split("\t")
        if fields[1] == "tensor":
            name, _, shown, component, dtype, kind, shape, sha256 = fields
            numbers = tuple(int(number) for number in shape.split(",")) if shape else ()
            yield name, json.loads(shown), component, dtype, kind, numbers, sha256
