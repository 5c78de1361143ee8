"""Uploads of every kind expire by how long they were idle, whatever is done to the clock."""

import time
from email.utils import parsedate_to_datetime

import pytest

import faulty
import lfs
import tus
import writers
import xet
from containers import pattern
from uploads import SMALL, content_of
from wire import eventually, get, metrics

DAY_S = 24 * 3600

pytestmark = [
    pytest.mark.folder("a clock that is set"),
    pytest.mark.plain("a preloaded library sets the clock"),
]


def kinds_of(server):
    return {one["kind"] for one in get(server, "/v1/uploads").json()["uploads"]}


def looks_at(server):
    """How often the server has looked for expired uploads: once a second, when it has nothing else to do."""
    return metrics(server)['ztserve_worker_jobs_total{kind="idle"}']


def test_no_upload_expires_when_the_clock_jumps_ahead(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    control = faulty.Control(tmp_path / "control")
    server = faulty.start(root, control)
    begun = tus.create(server, "m", len(SMALL))
    finished = tus.create(server, "n", len(SMALL))
    assert tus.patch(server, finished, 0, SMALL).status == 204
    writer = writers.begin(server, "w")
    assert writer.put("w", pattern(100)).status == 201
    committed = writers.begin(server, "v")
    assert committed.put("w", pattern(100)).status == 201
    answer = committed.commit()
    lfs.stage(server, b"staged")
    session = xet.Session(server, "org/chunks")
    xorb, _ = xet.whole(pattern(1000))
    assert session.send(xorb).status == 200
    assert kinds_of(server) == {"resumable", "writer", "staged", "xet"}

    control.set_clock_ahead(400 * DAY_S)
    looks = looks_at(server)
    eventually(lambda: looks_at(server) >= looks + 2)
    assert kinds_of(server) == {"resumable", "writer", "staged", "xet"}
    expires = parsedate_to_datetime(tus.head(server, begun)["Upload-Expires"]).timestamp()
    assert expires > time.time() + 400 * DAY_S
    assert tus.offset_of(server, finished) == len(SMALL)
    assert committed.commit()["Repr-Digest"] == answer["Repr-Digest"]
    assert tus.patch(server, begun, 0, SMALL).status == 204 and content_of(server, "m") == pattern(1000)
    assert writer.commit().status == 201
    assert lfs.commit(server, lfs.lfs_file("staged.bin", b"staged")).status == 200
    assert server.stop() == 0, server.log
