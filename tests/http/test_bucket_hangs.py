"""Writes to a store that takes requests and never answers: the client hears in time, and afterwards nothing is left behind.

Each of these takes as long as a client may have to wait, so all go side by side."""

import datetime
import email.utils
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import meddler as acts
import tus
import writers
from buckets import BucketServers
from containers import dense, pattern, zt1
from meddler import Meddler
from s3_client import Bucket
from uploads import put
from wire import ask, assert_problem, eventually, get, model_path

pytestmark = pytest.mark.waits

# What a publication may ask of the store takes 25 s, whatever hangs.
ANSWERED_S = 120
# The least that every service takes.
PART_BYTES = 5 << 20
SMALL, OTHER = zt1({"w": dense(pattern(1000))}), zt1({"w": dense(pattern(1000, seed=2))})
LARGE = zt1({"w": dense(pattern(PART_BYTES + 1000))})


@dataclass
class Place:
    """A bucket behind a meddler, and the folder of its server."""

    bucket: Bucket
    meddler: Meddler
    folder: Path
    serve_bucket: BucketServers

    def serve(self, **settings):
        return self.serve_bucket(self.bucket, "--writable", place=self.folder, endpoint=self.meddler.endpoint, **settings)


def is_clean(bucket):
    hidden = [key for key in bucket.keys(hidden=True) if key.startswith((".ztserve/claims/", ".ztserve/probe/"))]
    return hidden == [] and bucket.unfinished() == []


def timed(write):
    begun = time.monotonic()
    answer = write()
    return answer, time.monotonic() - begun


def is_of_a_claim(request):
    return request.key.startswith(".ztserve/claims/")


def is_of_a_model(request):
    return request.key.endswith(".zt") and request.method in ("PUT", "DELETE")


HANGING = {"everything": lambda request: True, "claims": is_of_a_claim, "models": is_of_a_model}


def write_while_it_hangs(place, what):
    """The server, when the store answers again."""
    server, meddler = place.serve(), place.meddler
    writer = writers.begin(server, "written")
    assert writer.put("w", pattern(1000)).status == 201
    location = tus.create(server, "resumed", len(SMALL))
    writes = {
        "created": lambda: put(server, "created", SMALL, If_None_Match="*"),
        "replaced": lambda: put(server, "replaced", OTHER),
        "deleted": lambda: ask(server, "DELETE", model_path("deleted")),
        "written": writer.commit,
        "resumed": lambda: tus.patch(server, location, 0, SMALL),
    }
    meddler.meddle(acts.hang, when=HANGING[what])
    with ThreadPoolExecutor(len(writes)) as pool:
        answers = dict(zip(writes, pool.map(timed, writes.values())))
    for name, (answer, took_s) in answers.items():
        assert_problem(answer, 503, "store-unavailable")
        assert int(answer["Retry-After"]) >= 1
        assert took_s < ANSWERED_S, (name, took_s)
    meddler.stop()
    meddler.go_away()
    meddler.come_back()
    return server


def hang_writes(place, what):
    for name in ("deleted", "replaced"):
        place.bucket.put(f"{name}.zt", SMALL)
    server = write_while_it_hangs(place, what)
    # A removal that may still be done keeps its claim until nobody can be harmed.
    for name in ("created", "replaced", "written", "resumed"):
        assert put(server, name, OTHER).status in (201, 204)
    if what != "models":
        assert ask(server, "DELETE", model_path("deleted")).status == 204
        eventually(lambda: is_clean(place.bucket), within_s=120)
        assert get(server, model_path("created")).status == 200


def answered_never(request, handler):
    """The store does what it was asked, and nobody learns of it."""
    handler.forward(request)
    acts.hang(request, handler)


# Of a key that XML cannot hold, as Ceph writes it.
UNREADABLE_UPLOAD = b"<Upload><Key>m.zt&#x01;\x02</Key><UploadId>other</UploadId></Upload><Upload>"


def aged(**seconds):
    """The list of uploads, in which those with certain beginnings of their ids are so old; the others are new."""

    def change(true):
        now = email.utils.parsedate_to_datetime(true.fields["Date"])

        def one(found):
            upload = re.search(rb"<UploadId>(.*?)</UploadId>", found[0])[1].decode()
            age_s = next((age_s for beginning, age_s in seconds.items() if upload.startswith(beginning)), 0)
            begun = (now - datetime.timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
            return re.sub(rb"<Initiated>.*?</Initiated>", b"<Initiated>" + begun + b"</Initiated>", found[0])

        body = re.sub(rb"(?s)<Upload>.*?</Upload>", one, true.body)
        return acts.replace(true, body=body.replace(b"<Upload>", UNREADABLE_UPLOAD, 1))

    return acts.changed(change)


def is_list_of_uploads(request):
    return request.method == "GET" and "uploads" in request.query


def begin(bucket):
    answer = bucket.ask("POST", "m.zt", query=[("uploads", "")])
    return re.search(rb"<UploadId>(.*?)</UploadId>", answer.body)[1].decode()


def hang_beginnings(place):
    bucket, meddler = place.bucket, place.meddler
    server = place.serve(s3__part_bytes=PART_BYTES)
    earlier, with_parts, young = (begin(bucket) for _ in range(3))
    assert bucket.ask("PUT", "m.zt", query=[("partNumber", "1"), ("uploadId", with_parts)], body=b"x").status == 200
    meddler.meddle(answered_never, "write", key="m.zt", when=lambda request: "uploads" in request.query)
    answer, took_s = timed(lambda: put(server, "m", LARGE))
    assert_problem(answer, 503, "store-unavailable")
    assert took_s < ANSWERED_S
    lost = {upload for _, upload in bucket.uploads()} - {earlier, with_parts, young}
    assert len(lost) >= 1
    assert server.stop() == 0
    # It is not judged before two minutes are over; here ten.
    for note in (server.place / "cache" / "uploads" / "multipart").iterdir():
        os.utime(note, (time.time() - 600,) * 2)
    meddler.stop()
    ages = {earlier: 3600, with_parts: 500, young: 10, **dict.fromkeys(lost, 500)}
    meddler.meddle(aged(**ages), when=is_list_of_uploads)
    place.serve(s3__part_bytes=PART_BYTES)
    eventually(lambda: {upload for _, upload in bucket.uploads()} == {earlier, with_parts, young}, within_s=120)


def hang_completion(place):
    server = place.serve(s3__part_bytes=PART_BYTES)
    place.meddler.meddle(acts.hang, "write", when=lambda request: "uploadId" in request.query and request.method == "POST")
    answer, took_s = timed(lambda: put(server, "m", LARGE))
    assert_problem(answer, 503, "store-unavailable")
    assert "unknown" in answer.json()["detail"]
    assert took_s < ANSWERED_S


SCENES = {
    **{what: (hang_writes, what) for what in HANGING},
    "beginnings": (hang_beginnings,),
    "completion": (hang_completion,),
}


@pytest.fixture(scope="module")
def scenes(moto, share_bucket_server):
    """What became of each."""
    meddlers = {name: Meddler(moto) for name in SCENES}
    with ThreadPoolExecutor(len(SCENES)) as pool:
        futures = {}
        for name, (play, *arguments) in SCENES.items():
            place = Place(moto.bucket(), meddlers[name], share_bucket_server.place(), share_bucket_server)
            futures[name] = pool.submit(play, place, *arguments)
        yield futures
    for meddler in meddlers.values():
        meddler.close()


@pytest.mark.parametrize("what", HANGING)
def test_writes_to_a_store_that_hangs_are_503_in_time_and_leave_nothing(scenes, what):
    scenes[what].result()


def test_uploads_that_were_begun_without_an_answer_are_aborted_and_no_others(scenes):
    scenes["beginnings"].result()


def test_completion_that_hangs_is_said_to_be_in_doubt(scenes):
    scenes["completion"].result()
