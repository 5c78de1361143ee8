"""Uploads that wait hold no descriptors, and those that arrive leave enough for everybody else."""

import contextlib
import os

import pytest

import lfs
import tus
import writers
import xet
from containers import pattern
from uploads import SMALL, begin_put, content_of, put
from wire import Connection, assert_problem, eventually, get, model_path, read_head

pytestmark = pytest.mark.folder("counts the descriptors of a server")
FEW = 96


@pytest.fixture
def server(tmp_path, start_server):
    environment = {"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "0", "ZTSERVE_HUB_STAGED_PER_CLIENT": "0", "ZTSERVE_HUB_PART_BYTES": "4"}
    return start_server(tmp_path, "--writable", environment=environment, launcher=("prlimit", f"--nofile={FEW}:{FEW}"))


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def assert_serves(server):
    assert put(server, "another", SMALL).status in (201, 204)
    assert content_of(server, "another") is not None


def assert_rests_at(server, before):
    """One descriptor holds the locks of all places."""
    eventually(lambda: open_files(server) <= before + 3)
    assert_serves(server)


def test_staged_objects_hold_none(server):
    xet.create(server, lfs.REPO)
    assert_serves(server)
    before = open_files(server)
    contents = [b"%d" % at for at in range(FEW - 16)]
    told = lfs.objects_of(lfs.batch(server, *map(lfs.entry, contents), transfers=["basic"]))
    by_oid = {lfs.oid_of(content): content for content in contents}
    with Connection(server) as connection:
        for one in told:
            href = lfs.target_of(one["actions"]["upload"]["href"])
            assert connection.ask("PUT", href, {}, by_oid[one["oid"]]).status == 200
    assert len(lfs.staged(server)) == len(contents)
    assert_rests_at(server, before)
    assert lfs.commit(server, *(lfs.lfs_file(f"{at}", content) for at, content in enumerate(contents))).status == 200


def test_objects_of_which_parts_are_missing_hold_none(server):
    xet.create(server, lfs.REPO)
    assert_serves(server)
    before = open_files(server)
    contents = [b"%08d" % at for at in range(FEW // 2)]
    told = lfs.objects_of(lfs.batch(server, *map(lfs.entry, contents)))
    by_oid = {lfs.oid_of(content): content for content in contents}

    def send(part):
        with Connection(server) as connection:
            for one in told:
                href = lfs.target_of(one["actions"]["upload"]["header"][f"{part:05}"])
                assert connection.ask("PUT", href, {}, by_oid[one["oid"]][4 * (part - 1) : 4 * part]).status == 200

    send(2)
    assert_rests_at(server, before)
    send(1)
    parts = [{"partNumber": part, "etag": f'"{part}"'} for part in (1, 2)]
    for one in told:
        ended = lfs.post(server, lfs.target_of(one["actions"]["upload"]["href"]), {"oid": one["oid"], "parts": parts})
        assert ended.status == 200, ended
    assert_rests_at(server, before)


def test_resumable_uploads_hold_none_until_they_continue(server, tmp_path):
    assert_serves(server)
    before = open_files(server)
    uploads = [tus.create(server, f"m{at}", len(SMALL)) for at in range(FEW // 3)]
    for upload in uploads:
        assert tus.patch(server, upload, 0, SMALL[:100]).status == 204
    assert_rests_at(server, before)
    assert {tus.offset_of(server, upload) for upload in uploads} == {100}
    for upload in uploads:
        assert tus.patch(server, upload, 100, SMALL[100:]).status == 204
    assert_rests_at(server, before + FEW // 3)


def test_resumable_uploads_hold_none_after_a_restart(server, tmp_path, start_server):
    uploads = [tus.create(server, f"m{at}", len(SMALL)) for at in range(FEW // 3)]
    for upload in uploads:
        assert tus.patch(server, upload, 0, SMALL[:100]).status == 204
    server.stop()
    again = start_server(tmp_path, "--writable", launcher=("prlimit", f"--nofile={FEW}:{FEW}"))
    assert_serves(again)
    assert tus.offset_of(again, uploads[0]) == 100
    assert tus.patch(again, uploads[-1], 100, SMALL[100:]).status == 204
    assert open_files(again) < FEW // 2


def test_an_upload_that_was_cut_holds_none_and_keeps_its_bytes(server):
    assert_serves(server)
    before = open_files(server)
    upload = tus.create(server, "m", len(SMALL))
    with tus.begin_patch(server, upload, 0, len(SMALL)) as connection:
        connection.sendall(SMALL[:300])
        eventually(lambda: tus.uploads_of(server, "m")[0]["received"] == 300)
    assert_rests_at(server, before)
    assert tus.offset_of(server, upload) == 300
    assert tus.patch(server, upload, 300, SMALL[300:]).status == 204


def test_an_upload_by_xet_holds_none_between_its_requests(server):
    assert_serves(server)
    before = open_files(server)
    sessions = [xet.Session(server, lfs.REPO) for _ in range(FEW // 2)]
    xorb, entry = xet.whole(b"content")
    for session in sessions:
        xet.assert_accepted(session.send(xorb))
    assert_rests_at(server, before)
    for session in sessions:
        xet.assert_accepted(session.describe(xet.shard(entry)))


def test_uploads_of_the_streaming_writer_that_wait_leave_enough_for_others(server):
    assert_serves(server)
    before = open_files(server)
    uploads = [writers.begin(server, f"w{at}") for at in range(FEW // 2)]
    for upload in uploads:
        assert upload.put("w", pattern(100)).status == 201
    # A few keep their journals open as long as that disturbs nobody.
    eventually(lambda: open_files(server) <= before + 16)
    assert_serves(server)
    for upload in uploads:
        assert upload.commit().status == 201


def test_more_bodies_than_there_are_descriptors_for_are_503(server):
    """Connections may have half of all descriptors, bodies a quarter of the rest."""
    assert_serves(server)
    with contextlib.ExitStack() as stack:
        bodies = [stack.enter_context(begin_put(server, model_path(f"m{at}"), len(SMALL))) for at in range(FEW // 3)]
        eventually(lambda: len(get(server, "/v1/uploads").json()["uploads"]) == FEW // 2 // 4 // 2)
        refused = put(server, "one-more", SMALL)
        assert_problem(refused, 503, "overloaded")
        assert refused["Retry-After"] == "1"
        assert get(server, "/v1/models").status == 200 and content_of(server, "another") is not None
        statuses = []
        for body in bodies:
            body.sendall(SMALL)
            statuses.append(read_head(body)[0])
        assert set(statuses) == {201, 503} and statuses.count(201) == FEW // 2 // 4 // 2
    eventually(lambda: put(server, "one-more", SMALL).status == 201)
