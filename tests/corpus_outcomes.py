"""The folders of $ZT_CORPUS whose formats this release reads, and the outcome that each states for its files."""

READ_FOLDERS = ("zt01-zt1", "zt2-conformance", "zt2-probe")
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
                yield corpus / folder / name, outcome
