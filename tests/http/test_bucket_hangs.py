"""Writes to a store that takes requests and never answers: the client hears in time, and afterwards nothing is left behind."""

import datetime
import email.utils
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
import tus
import writers
from containers import dense, pattern, zt1
from uploads import put
from wire import ask, assert_problem, eventually, get, model_path

# What a publication may ask of the store takes 25 s, whatever hangs.
ANSWERED_S = 32
# The least that every service takes.
PART_BYTES = 5 << 20
SMALL, OTHER = zt1({"w": dense(pattern(1000))}), zt1({"w": dense(pattern(1000, seed=2))})
LARGE = zt1({"w": dense(pattern(PART_BYTES + 1000))})


@pytest.fixture
def server(moto_bucket, meddler, serve_bucket):
    for name in ("deleted", "replaced"):
        moto_bucket.put(f"{name}.zt", SMALL)
    return serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)


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


@pytest.mark.parametrize("what", HANGING)
def test_writes_to_a_store_that_hangs_are_503_in_time_and_leave_nothing(moto_bucket, meddler, server, what):
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
    # A removal that may still be done keeps its claim until nobody can be harmed.
    for name in ("created", "replaced", "written", "resumed"):
        assert put(server, name, OTHER).status in (201, 204)
    if what != "models":
        assert ask(server, "DELETE", model_path("deleted")).status == 204
        eventually(lambda: is_clean(moto_bucket), within_s=60)
        assert get(server, model_path("created")).status == 200


def answered_never(request, handler):
    """The store does what it was asked, and nobody learns of it."""
    handler.forward(request)
    acts.hang(request, handler)


def aged(**seconds):
    """The list of uploads, in which those with certain beginnings of their ids are so old; the others are new."""

    def change(true):
        now = email.utils.parsedate_to_datetime(true.fields["Date"])

        def one(found):
            upload = re.search(rb"<UploadId>(.*?)</UploadId>", found[0])[1].decode()
            age_s = next((age_s for beginning, age_s in seconds.items() if upload.startswith(beginning)), 0)
            begun = (now - datetime.timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
            return re.sub(rb"<Initiated>.*?</Initiated>", b"<Initiated>" + begun + b"</Initiated>", found[0])

        return acts.replace(true, body=re.sub(rb"(?s)<Upload>.*?</Upload>", one, true.body))

    return acts.changed(change)


def is_list_of_uploads(request):
    return request.method == "GET" and "uploads" in request.query


def begin(bucket):
    answer = bucket.ask("POST", "m.zt", query=[("uploads", "")])
    return re.search(rb"<UploadId>(.*?)</UploadId>", answer.body)[1].decode()


def test_uploads_that_were_begun_without_an_answer_are_aborted_and_no_others(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__part_bytes=PART_BYTES)
    earlier, with_parts, young = (begin(moto_bucket) for _ in range(3))
    assert moto_bucket.ask("PUT", "m.zt", query=[("partNumber", "1"), ("uploadId", with_parts)], body=b"x").status == 200
    meddler.meddle(answered_never, "write", key="m.zt", when=lambda request: "uploads" in request.query)
    answer, took_s = timed(lambda: put(server, "m", LARGE))
    assert_problem(answer, 503, "store-unavailable")
    assert took_s < ANSWERED_S
    lost = {upload for _, upload in moto_bucket.uploads()} - {earlier, with_parts, young}
    assert len(lost) >= 1
    assert server.stop() == 0
    # It is not judged before two minutes are over; here ten.
    for note in (server.place / "cache" / "uploads" / "multipart").iterdir():
        os.utime(note, (time.time() - 600,) * 2)
    meddler.stop()
    ages = {earlier: 3600, with_parts: 500, young: 10, **dict.fromkeys(lost, 500)}
    meddler.meddle(aged(**ages), when=is_list_of_uploads)
    serve_bucket(moto_bucket, "--writable", place=server.place, endpoint=meddler.endpoint, s3__part_bytes=PART_BYTES)
    eventually(lambda: {upload for _, upload in moto_bucket.uploads()} == {earlier, with_parts, young}, within_s=30)


def test_completion_that_hangs_is_said_to_be_in_doubt(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__part_bytes=PART_BYTES)
    meddler.meddle(acts.hang, "write", when=lambda request: "uploadId" in request.query and request.method == "POST")
    answer, took_s = timed(lambda: put(server, "m", LARGE))
    assert_problem(answer, 503, "store-unavailable")
    assert "not known" in answer.json()["detail"]
    assert took_s < ANSWERED_S
