"""Versions are on disk before the answer that promises them: the kept file before the new one replaces it, the list of files
before the entry of the log that names it.

A test that kills the server cannot see this, since the kernel keeps what was written; a power cut would show it.
"""

import random

import pytest

from histories import KEPT, Repository
from recorded_calls import Disk, environment_to_record, read_calls

pytestmark = [
    pytest.mark.folder("versions of a folder"),
    pytest.mark.plain("a preloaded library records calls"),
]


@pytest.fixture
def server(root, record, tmp_path, start_server):
    settings = {"ZTSERVE_UPLOAD_RESERVE_BYTES": "0", "ZTSERVE_STATE_DIR": str(tmp_path / "state")}
    return start_server(root, "--writable", "--keep-versions", "100", environment=settings | environment_to_record(record))


def test_answers_come_after_the_syncs_of_what_they_promise(server, root, record):
    repository = Repository("org/r", random.Random(3))
    for change in [Repository.commit, Repository.put_new, *Repository.CHANGES, *Repository.CHANGES]:
        assert repository.make(change, server)
        # Hidden names below the root and names in "removed" are scratch: a start removes them.
        faults = [
            fault
            for fault in Disk(root).follow(read_calls(record))
            if f"{root}/.ztserve-" not in fault and "/versions/removed/" not in fault
        ]
        assert faults == [], change.__name__


def test_a_put_keeps_then_replaces_then_records(server, root, record):
    repository = Repository("org/r", random.Random(3))
    assert repository.make(Repository.put_new, server)
    before = len(read_calls(record))
    assert repository.make(Repository.put_new, server)
    calls = [(made.call, made.path) for made in read_calls(record)[before:]]
    target = root / "org" / "r" / "c.txt"

    def after(number, *wanted):
        """The index of the next such call: its name, and a folder or the beginning of a path."""
        found = [at for at in range(number, len(calls)) if calls[at][0] in wanted[0] and calls[at][1].is_relative_to(wanted[1])]
        assert found, (wanted, calls)
        return found[0] + 1

    at = after(0, ("link", "rename"), root / KEPT / "objects")
    at = after(at, ("sync",), root / KEPT / "objects")
    at = after(at, ("rename",), target)
    at = after(at, ("sync",), target.parent)
    at = after(at, ("write",), root / KEPT / "repos")
    at = after(at, ("sync",), root / KEPT / "repos")
    assert any(path.name == "log" for call, path in calls[at:] if call == "sync"), calls
