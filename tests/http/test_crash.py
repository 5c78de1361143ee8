"""Killed at any moment and started again: acknowledged uploads are there, listed models are right, nothing else is left."""

import os
import random
import time

import pytest

import interrupted
from server_process import ServerProcess
from wire import ask, get

ROUNDS = int(os.environ.get("ZT_CRASH_ROUNDS", "50"))
# About the duration of three uploads on an idle machine.
LONGEST_LIFE_S = 0.12


def start(root):
    return ServerProcess(root, "--writable", environment={"ZTSERVE_UPLOAD_RESERVE_BYTES": "0"})


def listed(server):
    return {model["name"]: model for model in get(server, "/v1/models?limit=1000").json()["models"]}


def check_promises(server, uploads):
    there = listed(server)
    for upload in uploads:
        assert upload.refusal is None, upload.refusal
        if upload.is_published:
            assert upload.name in there, f"{upload.name} was acknowledged ({type(upload).__name__})"
        if upload.name in there:
            assert "error" not in there[upload.name], there[upload.name]
            upload.assert_whole(server)


def finish(server, uploads):
    for upload in uploads:
        if not upload.is_published:
            upload.resume(server)
        upload.assert_whole(server)
        assert ask(server, "DELETE", f"/v1/models/{upload.name}").status == 204


def check_leftovers(server, root):
    """Only files of uploads that are listed, and can therefore be continued, may be left."""
    assert interrupted.hidden_files(root) <= interrupted.uploads_in_progress(server)


def run_round(number, server, root, generator):
    uploads = [
        kind(f"m{number}-{index}", generator)
        for index, kind in enumerate(generator.choices(interrupted.KINDS, k=3))
    ]
    for upload in uploads:
        upload.start(server)
    time.sleep(generator.uniform(0, LONGEST_LIFE_S))
    server.kill()
    for upload in uploads:
        upload.join()
    server = start(root)
    try:
        check_promises(server, uploads)
        check_leftovers(server, root)
        finish(server, uploads)
    except BaseException:
        server.kill()
        raise
    return server


@pytest.mark.folder("rounds that take a minute each where claims outlive a killed server: see test_bucket_races.py")
@pytest.mark.timeout(900)
def test_what_was_acknowledged_survives_being_killed_at_any_moment(tmp_path):
    generator = random.Random(2026)
    server = start(tmp_path)
    for number in range(ROUNDS):
        server = run_round(number, server, tmp_path, generator)
    assert server.stop() == 0
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
