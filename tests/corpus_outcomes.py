"""The folders of $ZT_CORPUS whose formats this release reads, and what each states for its files."""

import json

READ_FOLDERS = ("onnx", "pt", "zt01-zt1", "zt2-conformance", "zt2-probe")
GOLDEN_FOLDER = "golden"


def ignored_folders(corpus):
    """Folders of formats that this release does not read; a later one may."""
    return sorted(path.name for path in corpus.iterdir() if path.is_dir() and path.name not in (*READ_FOLDERS, GOLDEN_FOLDER))


def rows(corpus):
    for folder in READ_FOLDERS:
        for line in (corpus / folder / "expected.tsv").read_text().splitlines():
            if line.strip() and not line.startswith(("#", "file\t")):
                name, *columns = line.split("\t")
                yield corpus / folder / name, columns


def corpus_files(corpus):
    """Every file that a server's folder takes: containers, and the data of others."""
    listed = {path for path, _ in rows(corpus)}
    return sorted(listed | set((corpus / GOLDEN_FOLDER).glob("v*/*.zt")))


def expected_outcomes(corpus):
    """(path, outcome) of every container that an expected.tsv lists."""
    for path, columns in rows(corpus):
        if columns[0] not in ("tensor", "data"):
            yield path, columns[0]


def expected_components(corpus, folder):
    """(file, object, component, dtype, type, shape, SHA-256 of the served bytes) of every component that is listed."""
    for line in (corpus / folder / "expected.tsv").read_text().splitlines():
        fields = line.split("\t")
        if fields[1] == "tensor":
            name, _, shown, component, dtype, kind, shape, sha256 = fields
            numbers = tuple(int(number) for number in shape.split(",")) if shape else ()
            yield name, json.loads(shown), component, dtype, kind, numbers, sha256
