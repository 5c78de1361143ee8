"""What versions cost on disk: one model, and the files that changed. ZT_CHECKPOINTS_MIB sets the size of the model."""

import os
import random

import pytest

import histories
import lfs
from histories import KEPT
from wire import ask, get

CHECKPOINTS = 100
FILES = 20
MODEL_BYTES = int(os.environ.get("ZT_CHECKPOINTS_MIB", "8")) << 20
WEIGHTS_BYTES = 8 << 20
REPO = "org/run"

pytestmark = pytest.mark.folder("versions of a folder")


@pytest.fixture
def server(tmp_path, start_server):
    return start_server(tmp_path, "--writable", "--keep-versions", "1000", environment=histories.SETTINGS)


def used_bytes(root):
    """Of all files once, however many names they have."""
    found = {}
    for place, _, names in os.walk(root):
        for name in names:
            facts = os.lstat(os.path.join(place, name))
            found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


def put(server, path, content):
    answer = ask(server, "PUT", f"/files/{REPO}/{path}", {}, content)
    assert answer.status in (201, 204), answer


def read(server, commit, path):
    answer = get(server, f"/files/{REPO}/{path}?revision={commit}")
    assert answer.status == 200, answer
    assert answer["ZT-Commit"] == commit
    return answer.body


def test_checkpoints_cost_what_changed(tmp_path, server):
    """A checkpoint has 5 % of its files changed."""
    generator = random.Random(5)
    paths = [f"part-{number:02}.bin" for number in range(FILES)]
    files = {path: generator.randbytes(MODEL_BYTES // FILES) for path in paths}
    for path, content in files.items():
        put(server, path, content)
    # Whole checkpoints; the hashes stand for the bytes.
    states = []
    for _ in range(CHECKPOINTS):
        changed = generator.choice(paths)
        files[changed] = generator.randbytes(MODEL_BYTES // FILES)
        put(server, changed, files[changed])
        states.append((changed, {path: histories.oid_of(content) for path, content in files.items()}))
    written = MODEL_BYTES + CHECKPOINTS * (MODEL_BYTES // FILES)
    assert used_bytes(tmp_path) <= 1.05 * written
    listed = histories.listed_commits(server, REPO)[-CHECKPOINTS:]
    assert listed == [histories.commit_of(oids) for _, oids in states]
    for number, (commit, (changed, oids)) in enumerate(zip(listed, states, strict=True)):
        for path in paths if number % 20 == 0 else [changed]:
            assert histories.oid_of(read(server, commit, path)) == oids[path], (number, path)


def test_a_rollback_costs_no_bytes(tmp_path, server):
    put(server, "weights.bin", random.Random(6).randbytes(WEIGHTS_BYTES))
    put(server, "weights.bin", random.Random(7).randbytes(WEIGHTS_BYTES))
    before, commit = used_bytes(tmp_path), histories.listed_commits(server, REPO)[0]
    answer = lfs.put(server, f"/v1/models/{REPO}/weights/revisions/main", f'{{"commit": "{commit}"}}'.encode())
    assert answer.status == 200, answer
    assert (tmp_path / REPO / "weights.bin").read_bytes() == random.Random(6).randbytes(WEIGHTS_BYTES)
    assert used_bytes(tmp_path) <= before + 0.01 * WEIGHTS_BYTES
    assert len(list((tmp_path / KEPT / "objects").glob("*/*"))) == 2
