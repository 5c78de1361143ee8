"""A store that answers with something else than what was asked for: never a wrong byte, and nothing sticks."""

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
from bare_bucket import BARE, DATA, MIB, OTHER, OTHER_BARE, SETTLED_S, TARGET, assert_nothing_wrong, bucket, is_right, server
from containers import dense, pattern, zt1
from meddler import Meddler
from wire import assert_problem, component_path, eventually, get, model_path

MODEL, OTHER_MODEL = zt1({"w": dense(DATA)}), zt1({"w": dense(OTHER)})

TRUE_ETAG_OTHER_BYTES = acts.of_another_version(OTHER_BARE, etag="0123456789abcdef0123456789abcdef")
LIES = {
    "bytes of another version under its own tag": TRUE_ETAG_OTHER_BYTES,
    "another tag": acts.with_fields(ETag='"0123456789abcdef0123456789abcdef"'),
    "no tag": acts.with_fields(ETag=None),
    "weak tag of another": acts.with_fields(ETag='W/"x"'),
    "a body that ends early": acts.short_body(100),
    "fewer bytes than asked for": acts.shorter_answer(100),
    "more bytes than asked for": acts.longer_answer(100),
    "an empty body": acts.changed(lambda true: acts.Reply(true.status, true.fields, b"")),
    "the whole object instead of a range": acts.whole_instead_of_range(bytes(BARE)),
    "another object whole": acts.whole_instead_of_range(bytes(OTHER_BARE)),
    "another range": acts.with_fields(Content_Range=f"bytes 0-99/{len(BARE)}"),
    "a range of a longer object": acts.changed(
        lambda true: true.with_fields(Content_Range=true.fields.get("Content-Range", "").replace(str(len(BARE)), "999999999"))
    ),
    "no Content-Range": acts.with_fields(Content_Range=None),
    "a Content-Range that is none": acts.with_fields(Content_Range="bytes */*"),
    "numbers past 64 bits": acts.with_fields(Content_Range="bytes 18446744073709551616-18446744073709551715/1"),
    "an error under 200": acts.store_error(200, "InternalError"),
    "an error under 206": acts.store_error(206, "InternalError"),
    "a page of HTML": acts.reply(200, b"<html>log in</html>" * 100, Content_Type="text/html"),
    "another host": acts.reply(307, b"", Location="http://127.0.0.1:1/m.zt"),
    "another place": acts.reply(301, b"", Location="/elsewhere/m.zt"),
    "no content": acts.reply(204),
    "not modified": acts.reply(304),
    "not there": acts.store_error(404, "NoSuchKey"),
    "precondition failed": acts.store_error(412, "PreconditionFailed"),
    "range not satisfiable": acts.store_error(416, "InvalidRange"),
    "forbidden": acts.store_error(403, "AccessDenied"),
    "an unknown status": acts.reply(299, b"x"),
    "teapot": acts.reply(418, b"x"),
    "internal error": acts.store_error(500, "InternalError"),
    "slow down": acts.slow_down(),
    "reset at once": acts.reset,
    "reset within the body": acts.reset_after(1000),
}


def tell(lie, bucket, meddler, serve, place):
    """While one object is opened, whenever another is read, and in the first two answers about a third: the client may get an
    error, but no wrong byte, and once the store says the truth, the whole file."""
    opened, read, once = (component_path(name, "w") for name in ("opened", "read", "once"))
    for name in ("opened", "read", "once"):
        bucket.put(f"{name}.zt", BARE)
    try:
        meddler.meddle(LIES[lie], "read", key="opened.zt")
        server = serve(bucket, endpoint=meddler.endpoint, place=place)
        assert get(server, opened).status != 200
        assert get(server, "/healthz").status == 200
        meddler.stop()
        eventually(lambda: is_right(server, opened), within_s=SETTLED_S)
        eventually(lambda: get(server, model_path("read")).status == get(server, model_path("once")).status == 200, within_s=SETTLED_S)
        rule = meddler.meddle(LIES[lie], "read", key="read.zt")
        assert not assert_nothing_wrong(server, read)
        assert rule.used > 0
        assert get(server, "/healthz").status == 200
        meddler.stop()
        eventually(lambda: is_right(server, read), within_s=SETTLED_S)
        meddler.meddle(LIES[lie], "read", key="once.zt", times=2)
        eventually(lambda: assert_nothing_wrong(server, once), within_s=SETTLED_S)
        assert server.stop() == 0
    finally:
        meddler.close()


@pytest.fixture(scope="module")
def told(moto, share_bucket_server):
    """What became of each: they wait more than they compute, so several go side by side."""
    with ThreadPoolExecutor(8) as pool:
        serve = share_bucket_server
        yield {lie: pool.submit(tell, lie, moto.bucket(), Meddler(moto), serve, serve.place()) for lie in LIES}


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_bytes_never_reach_a_client_and_do_not_stick(told, lie):
    told[lie].result()


def test_coding_that_an_object_is_said_to_have_changes_nothing(server, meddler):
    """What its writer noted about it is not undone."""
    meddler.meddle(acts.with_fields(Content_Encoding="gzip"), "read")
    assert is_right(server)


def test_flipped_bits_under_a_true_head_are_found_by_the_digest(moto_bucket, meddler, serve_bucket):
    """No head tells; the file's own digest does. A second fetch is right."""
    moto_bucket.put("m.zt", MODEL)
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert get(server, model_path("m")).status == 200
    rule = meddler.meddle(acts.flipped(MIB // 2), "read", when=lambda request: request.range[0] >= MIB, times=1)
    eventually(lambda: is_right(server), within_s=120)
    assert rule.used == 1


def test_other_bytes_under_a_true_head_are_a_corrupt_model(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", MODEL)
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert get(server, model_path("m")).status == 200
    meddler.meddle(acts.of_another_version(bytes(OTHER_MODEL)), "read", when=lambda request: request.range[0] >= MIB)
    for fields in ({}, {"Range": "bytes=0-9"}, {"Range": f"bytes={9 * MIB}-"}):
        assert_problem(get(server, TARGET, **fields), 500, "corrupt-component")


def test_digest_of_a_view_is_not_kept_for_other_bytes_under_the_same_tag(moto_bucket, meddler, serve_bucket):
    """After a restart without the cache, the store gives another model of the same length, time and tag."""
    small, other = (zt1({name: dense(pattern(64), dtype="f32")}) for name in ("w", "x"))
    moto_bucket.put("org/model/m.zt", small)
    place = serve_bucket.place()
    server = serve_bucket(moto_bucket, place=place)

    def view_of(server):
        return next(entry for entry in get(server, "/api/models/org/model/tree/main").json() if entry["path"] == "model.safetensors")

    assert eventually(lambda: view_of(server)["lfs"], within_s=120)
    old = view_of(server)["lfs"]["oid"]
    assert server.stop() == 0
    shutil.rmtree(place / "cache")
    meddler.meddle(acts.of_another_version(other), "read", key="org/model/m.zt")
    server = serve_bucket(moto_bucket, place=place, endpoint=meddler.endpoint)
    commit = get(server, "/api/models/org/model").json()["sha"]
    answer = get(server, f"/org/model/resolve/{commit}/model.safetensors")
    digest = hashlib.sha256(answer.body).hexdigest()
    assert (answer.status, digest != old) == (200, True)
    assert answer["ETag"] != f'"{old}"'
    assert eventually(lambda: (view_of(server)["lfs"] or {}).get("oid") == digest, within_s=120)
