"""push leaves nothing on the server that nobody will take up, and says what it waits for."""

import json
import shutil
import urllib.request

import meddler as meddling
import pytest
from containers import dense, pattern, zt1

SIZE = 3_000_000
MODEL = zt1({"a": dense(pattern(SIZE, seed=23), digest="sha256")})


def kept(tmp_path):
    return list((tmp_path / "state/ztserve/push").iterdir())


def uploads_of(server):
    with urllib.request.urlopen(server.url + "/v1/uploads") as answer:
        return json.load(answer)["uploads"]


def is_creation(request):
    return request.method == "POST"


def is_piece(request):
    return request.method == "PATCH"


def test_an_upload_that_is_refused_at_its_end_for_now_is_taken_up_by_the_next_push(server, between, root, push, model, tmp_path):
    (root / "m.zt").mkdir()
    first = push(model, between.endpoint + "/m")
    second = push(model, between.endpoint + "/m")
    assert (first.status, second.status) == (1, 1) and "409" in first.errors and "409" in second.errors
    assert len(uploads_of(server)) == 1 and len(kept(tmp_path)) == 1
    shutil.rmtree(root / "m.zt")
    sent = between.meddle(meddling.hang, when=lambda request: is_piece(request) or is_creation(request))
    third = push(model, between.endpoint + "/m")
    assert (third.status, third.errors, sent.used) == (0, "", 0)
    assert f"{len(MODEL)} of them received earlier" in third.output
    assert (root / "m.zt").read_bytes() == MODEL
    assert kept(tmp_path) == []


def test_an_upload_that_is_given_up_does_not_stay_on_the_server(server, between, push, model, tmp_path):
    between.meddle(meddling.reply(400), when=is_piece)
    result = push(model, between.endpoint + "/m")
    assert result.status == 1 and "400" in result.errors
    assert uploads_of(server) == [] and kept(tmp_path) == []


@pytest.mark.waits
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_server_with_too_many_uploads_is_waited_for_and_a_line_says_so(between, root, push, model, quiet):
    act = between.meddle(meddling.reply(429, Retry_After="1"), when=is_creation, times=2)
    result = push(model, between.endpoint + "/m", *quiet)
    assert (result.status, act.used) == (0, 2)
    assert len(result.error_lines) == (0 if quiet else 1) and (quiet or "m.zt: waiting for the server: " in result.errors)
    assert (root / "m.zt").read_bytes() == MODEL
