"""Uploads to a bucket by every door: published whole and once, seen by the other replica, and nothing left behind.

Writers that race, and those that die, are in a file of their own.
"""

import base64
import hashlib

import pytest

import meddler as acts
import tus
import writers
from containers import dense, pattern, zt1, zt2
from uploads import digest_field, put
from wire import ask, assert_problem, component_path, eventually, get, head, model_path

MIB = 1 << 20
SMALL, OTHER = zt1({"w": dense(pattern(1000))}), zt2({"w": dense(pattern(1000, seed=2), digest="xxh3")})
# More than is published by one request, and no whole number of parts.
LARGE_DATA = pattern(37 * MIB + 4321, seed=3)
LARGE = zt1({"w": dense(LARGE_DATA)})
SEEN_S = 60


@pytest.fixture
def server(bucket, serve_bucket):
    return serve_bucket(bucket, "--writable")


@pytest.fixture
def replicas(bucket, serve_bucket):
    """Two, which learn of each other only by asking the store for what they miss."""
    return [serve_bucket(bucket, "--writable", s3__poll_s=3600) for _ in range(2)]


def assert_clean(bucket, *keys):
    """These objects, no claim, and no part of an upload; what is shared about versions may stay."""
    assert bucket.keys() == sorted(keys)
    hidden = [key for key in bucket.keys(hidden=True) if key.startswith(".ztserve/")]
    assert [key for key in hidden if not key.startswith(".ztserve/facts/")] == []
    assert bucket.unfinished() == []


def is_served(server, name, data):
    answer = get(server, component_path(name, "w"))
    return answer.status == 200 and answer.body == data


# --- whole files ---


def test_put_publishes_and_the_other_replica_sees_it(bucket, replicas):
    answer = put(replicas[0], "org/m", SMALL)
    assert answer.status == 201
    assert answer["Location"] == model_path("org/m")
    assert answer["Repr-Digest"] == digest_field("sha-256", SMALL)
    assert bucket.get("org/m.zt") == SMALL
    assert is_served(replicas[0], "org/m", pattern(1000))
    assert get(replicas[0], model_path("org/m"))["ETag"] == answer["ETag"]
    eventually(lambda: is_served(replicas[1], "org/m", pattern(1000)), within_s=SEEN_S)
    assert get(replicas[1], model_path("org/m"))["ETag"] == answer["ETag"]
    assert_clean(bucket, "org/m.zt")


def test_put_replaces_and_the_old_version_is_gone_everywhere(bucket, serve_bucket):
    replicas = [serve_bucket(bucket, "--writable") for _ in range(2)]
    assert put(replicas[0], "m", SMALL).status == 201
    eventually(lambda: is_served(replicas[1], "m", pattern(1000)), within_s=SEEN_S)
    answer = put(replicas[0], "m", OTHER)
    assert answer.status == 204
    assert is_served(replicas[0], "m", pattern(1000, seed=2))
    eventually(lambda: is_served(replicas[1], "m", pattern(1000, seed=2)), within_s=SEEN_S)
    assert get(replicas[1], model_path("m"))["ETag"] == answer["ETag"]
    assert_clean(bucket, "m.zt")


def test_large_file_is_published_in_parts(bucket, server, serve_bucket):
    answer = put(server, "m", LARGE)
    assert answer.status == 201
    assert answer["Repr-Digest"] == digest_field("sha-256", LARGE)
    assert bucket.get("m.zt") == LARGE
    assert_clean(bucket, "m.zt")
    assert is_served(server, "m", LARGE_DATA)
    assert put(server, "m", LARGE + b"", If_None_Match="*").status in (204, 412)
    assert is_served(serve_bucket(bucket), "m", LARGE_DATA)


@pytest.mark.waits
def test_bytes_on_their_way_are_checked_by_the_store(moto_bucket, meddler, serve_bucket):
    """Parts are signed with their SHA-256."""
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    tally = meddler.counting()
    assert put(server, "m", LARGE).status == 201
    assert put(server, "n", SMALL).status == 201
    sent = [one.request for one in tally.of("write") if one.request.method == "PUT" and one.request.body]
    assert len(sent) >= 4
    for request in sent:
        assert request.fields["x-amz-content-sha256"] == hashlib.sha256(request.body).hexdigest()


@pytest.mark.waits
def test_what_was_uploaded_is_read_without_the_store(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__poll_s=3600)
    assert put(server, "m", LARGE).status == 201
    tally = meddler.counting()
    assert is_served(server, "m", LARGE_DATA)
    assert tally.count("read") == 0, tally


def test_upload_is_found_after_a_restart_and_by_a_new_replica(bucket, serve_bucket):
    first = serve_bucket(bucket, "--writable")
    tag = put(first, "m", LARGE)["ETag"]
    assert first.stop() == 0
    for place in (first.place, None):
        server = serve_bucket(bucket, place=place)
        assert is_served(server, "m", LARGE_DATA)
        assert get(server, model_path("m"))["ETag"] == tag


def test_invalid_files_publish_nothing(bucket, server):
    assert_problem(put(server, "m", b"rubbish" * 100), 422, "invalid-model")
    assert_problem(put(server, "m", SMALL.flipped("w")), 422, "digest-mismatch")
    assert_problem(put(server, "m", SMALL, Repr_Digest=digest_field("sha-256", b"x")), 422, "digest-mismatch")
    resumable = tus.post(server, "m", 700, b"rubbish" * 100, Content_Type="application/offset+octet-stream")
    assert_problem(resumable, 422, "invalid-model")
    assert get(server, model_path("m")).status == 404
    assert_clean(bucket)


def test_read_only_server_writes_nothing_into_the_bucket(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", SMALL)
    tally = meddler.counting()
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert_problem(put(server, "n", SMALL), 403, "read-only")
    assert_problem(ask(server, "DELETE", model_path("m")), 403, "read-only")
    get(server, component_path("m", "w"), Want_Repr_Digest="sha-256=10")
    assert server.stop() == 0
    assert [one for one in tally.seen if one.request.kind in ("write", "delete")] == []


# --- preconditions, of what any replica has seen ---


def test_creating_only_fails_at_the_other_replica_too(bucket, replicas):
    assert put(replicas[0], "m", SMALL, If_None_Match="*").status == 201
    # Whoever repeats a PUT whose answer was lost learns by 412 that the model is there, also with the same bytes.
    for server, body in ((replicas[1], OTHER), (replicas[1], SMALL), (replicas[0], OTHER)):
        assert_problem(put(server, "m", body, If_None_Match="*"), 412, "precondition-failed")
    assert bucket.get("m.zt") == SMALL
    assert_clean(bucket, "m.zt")


def test_replacing_one_version_only_fails_once_the_other_replica_replaced_it(bucket, replicas):
    first = put(replicas[0], "m", SMALL)["ETag"]
    eventually(lambda: is_served(replicas[1], "m", pattern(1000)), within_s=SEEN_S)
    answer = put(replicas[1], "m", OTHER, If_Match=first)
    assert answer.status == 204
    third = zt1({"w": dense(b"third")})
    assert_problem(put(replicas[0], "m", third, If_Match=first), 412, "precondition-failed")
    assert bucket.get("m.zt") == OTHER
    assert put(replicas[0], "m", third, If_Match=answer["ETag"]).status == 204
    assert bucket.get("m.zt") == third
    assert_clean(bucket, "m.zt")


def test_large_replacement_is_conditional_too(bucket, replicas):
    first = put(replicas[0], "m", LARGE)["ETag"]
    assert put(replicas[0], "m", SMALL, If_Match=first).status == 204
    assert_problem(put(replicas[1], "m", LARGE, If_Match=first), 412, "precondition-failed")
    assert_problem(put(replicas[1], "m", LARGE, If_None_Match="*"), 412, "precondition-failed")
    assert bucket.get("m.zt") == SMALL
    # Its parts are removed behind the answer.
    eventually(lambda: bucket.unfinished() == [])
    assert_clean(bucket, "m.zt")


def test_object_that_a_stranger_wrote_meanwhile_is_not_overwritten(bucket, serve_bucket):
    """By another program, unknown to the server, which has listed the bucket before."""
    server = serve_bucket(bucket, "--writable", s3__poll_s=3600)
    bucket.put("m.zt", SMALL)
    assert_problem(put(server, "m", OTHER, If_None_Match="*"), 412, "precondition-failed")
    tag = eventually(lambda: get(server, model_path("m")).fields["ETag"], within_s=SEEN_S)
    bucket.put("m.zt", zt1({"w": dense(b"a stranger's")}))
    assert_problem(put(server, "m", OTHER, If_Match=tag), 412, "precondition-failed")
    assert bucket.get("m.zt") == zt1({"w": dense(b"a stranger's")})


# --- deleting ---


def test_delete_is_seen_by_the_other_replica(bucket, serve_bucket):
    replicas = [serve_bucket(bucket, "--writable") for _ in range(2)]
    put(replicas[0], "m", SMALL)
    eventually(lambda: is_served(replicas[1], "m", pattern(1000)), within_s=SEEN_S)
    assert ask(replicas[1], "DELETE", model_path("m")).status == 204
    assert_problem(get(replicas[1], model_path("m")), 404, "model-not-found")
    eventually(lambda: get(replicas[0], model_path("m")).status == 404, within_s=SEEN_S)
    assert_problem(ask(replicas[1], "DELETE", model_path("m")), 404, "model-not-found")
    assert_clean(bucket)
    assert put(replicas[1], "m", OTHER, If_None_Match="*").status == 201


def test_delete_of_another_version_fails(bucket, replicas):
    first = put(replicas[0], "m", SMALL)["ETag"]
    put(replicas[0], "m", OTHER)
    assert_problem(ask(replicas[1], "DELETE", model_path("m"), {"If-Match": first}), 412, "precondition-failed")
    assert bucket.get("m.zt") == OTHER
    assert_clean(bucket, "m.zt")


# --- the streaming writer ---


def test_writer_publishes(bucket, server, serve_bucket):
    upload = writers.begin(server, "org/m", "2")
    data = {"w": pattern(3 * MIB, seed=5), "v": pattern(18 * MIB, seed=6)}
    for name, content in data.items():
        assert upload.put(name, content).status == 201
    assert bucket.keys() == []
    answer = upload.commit()
    assert answer.status == 201
    assert answer["Repr-Digest"] == digest_field("sha-256", bucket.get("org/m.zt"))
    for one in (server, serve_bucket(bucket)):
        for name, content in data.items():
            assert get(one, component_path("org/m", name)).body == content
        assert get(one, model_path("org/m"))["ETag"] == answer["ETag"]
    again = upload.commit()
    assert (again.status, again["ETag"]) == (201, answer["ETag"])
    assert_clean(bucket, "org/m.zt")


def test_writer_whose_name_another_replica_took_fails_and_stays_open(bucket, replicas):
    upload = writers.begin(replicas[0], "m", If_None_Match="*")
    assert upload.put("w", b"mine").status == 201
    assert put(replicas[1], "m", SMALL).status == 201
    assert_problem(upload.commit(), 412, "precondition-failed")
    assert bucket.get("m.zt") == SMALL
    assert upload.status()
    assert ask(replicas[1], "DELETE", model_path("m")).status == 204
    assert upload.commit().status == 201
    assert_clean(bucket, "m.zt")


def test_uploads_of_another_replica_are_unknown(replicas):
    upload = writers.begin(replicas[0], "m")
    assert_problem(get(replicas[1], upload.path), 404, "upload-not-found")
    assert upload.delete().status == 204


def test_dropped_uploads_leave_nothing(bucket, server):
    upload = writers.begin(server, "m")
    assert upload.put("w", pattern(MIB)).status == 201
    assert upload.delete().status == 204
    location = tus.create(server, "n", 1000)
    assert ask(server, "DELETE", location, tus.TUS).status == 204
    assert_clean(bucket)
    assert [path for path in server.place.rglob("*") if path.is_file() and path.stat().st_size >= MIB] == []


# --- resumable ---


def test_resumable_goes_on_after_a_kill(bucket, serve_bucket):
    first = serve_bucket(bucket, "--writable")
    location = tus.create(first, "m", len(LARGE))
    assert tus.patch(first, location, 0, LARGE[: 20 * MIB]).status == 204
    assert bucket.keys() == []
    first.kill()
    second = serve_bucket(bucket, "--writable", place=first.place)
    offset = tus.offset_of(second, location)
    assert offset == 20 * MIB
    assert tus.patch(second, location, offset, LARGE[offset:]).status == 204
    assert bucket.get("m.zt") == LARGE
    assert_clean(bucket, "m.zt")


# --- shards, and files behind files ---


def test_other_extension_replaces_the_models_own_file(bucket, server):
    assert put(server, "m", SMALL).status == 201
    header = b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    tensors = len(header).to_bytes(8, "little") + header + b"abcd"
    assert put(server, "m", tensors).status == 204
    assert bucket.keys() == ["m.safetensors"]
    assert is_served(server, "m", b"abcd")


def test_delete_of_a_model_takes_its_own_object_only(bucket, serve_bucket):
    bucket.put("m.zt", SMALL)
    bucket.put("m.bin", b"not the model's")
    bucket.put("m", b"nor this")
    server = serve_bucket(bucket, "--writable")
    assert ask(server, "DELETE", model_path("m")).status == 204
    assert bucket.keys() == ["m", "m.bin"]


# --- stores that fail, or cannot ---


@pytest.mark.waits
@pytest.mark.parametrize(
    "act, data",
    [(acts.slow_down(), SMALL), (acts.reset, LARGE), *((acts.store_error(403, "AccessDenied"), data) for data in (SMALL, LARGE))],
    ids=["busy", "reset within a large file", "forbidden", "forbidden within a large file"],
)
def test_store_that_takes_no_writes_is_an_error_and_nothing_is_published(moto_bucket, meddler, serve_bucket, act, data):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    meddler.meddle(act, "write")
    answer = put(server, "m", data)
    assert answer.status in (403, 500, 503), answer
    # Nothing can be said of a name while the store is taken to be away.
    assert get(server, model_path("m")).status in (404, 503)
    meddler.stop()
    eventually(lambda: get(server, model_path("m")).status == 404)
    assert put(server, "m", data).status in (201, 204)
    assert moto_bucket.get("m.zt") == data
    eventually(lambda: moto_bucket.unfinished() == [] or None, within_s=SEEN_S)


@pytest.mark.waits
@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_write_whose_answer_was_lost_is_found_out(moto_bucket, meddler, serve_bucket, data):
    """The store did it, and nobody said so: the client is told the truth."""
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)

    def act(request, handler):
        handler.forward(request)
        handler.reset()

    def publishes(request):
        is_part = "partNumber" in request.query
        return ".ztserve/" not in request.key and not is_part and request.query.get("uploads") is None

    rule = meddler.meddle(act, "write", when=publishes, times=1)
    answer = put(server, "m", data, If_None_Match="*")
    assert rule.used == 1
    assert answer.status == 201, answer
    assert moto_bucket.get("m.zt") == data
    assert is_served(server, "m", pattern(1000) if data is SMALL else LARGE_DATA)
    assert_clean(moto_bucket, "m.zt")


@pytest.mark.waits
def test_completion_that_says_error_under_200_is_no_success(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    completes = lambda request: "uploadId" in request.query and request.method == "POST"  # noqa: E731
    meddler.meddle(acts.store_error(200, "InternalError"), "write", when=completes)
    answer = put(server, "m", LARGE)
    assert answer.status in (500, 503), answer
    assert moto_bucket.get("m.zt") is None
    assert get(server, model_path("m")).status == 404


def without_conditions(request, handler):
    """As of a store that ignores conditions of writes."""
    plain = {name: value for name, value in request.fields.items() if name not in ("if-match", "if-none-match")}
    return handler.forward(acts.replace(request, fields=plain))


def test_store_without_conditional_writes_is_501(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", SMALL)
    meddler.meddle(without_conditions, "write")
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    problem = assert_problem(put(server, "n", SMALL), 501, "not-implemented")
    assert "single_writer" in problem["detail"]
    assert_problem(ask(server, "DELETE", model_path("m")), 501, "not-implemented")
    assert_problem(writers.create(server, "n"), 501, "not-implemented")
    assert tus.post(server, "n", 10).status == 501
    assert is_served(server, "m", pattern(1000))
    assert moto_bucket.keys() == ["m.zt"]


@pytest.mark.waits
def test_single_writer_needs_no_conditional_writes(moto_bucket, meddler, serve_bucket):
    meddler.meddle(without_conditions, "write")
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__single_writer=True)
    assert put(server, "m", SMALL).status == 201
    assert put(server, "m", LARGE).status == 204
    assert_problem(put(server, "m", SMALL, If_None_Match="*"), 412, "precondition-failed")
    assert is_served(server, "m", LARGE_DATA)
    assert ask(server, "DELETE", model_path("m")).status == 204
    assert_clean(moto_bucket)


def test_claims_may_be_in_another_bucket(engine, bucket, serve_bucket):
    claims = engine.bucket()
    server = serve_bucket(bucket, "--writable", s3__claims_bucket=claims.name)
    assert put(server, "m", SMALL).status == 201
    assert put(server, "m", OTHER).status == 204
    assert_clean(bucket, "m.zt")
    assert claims.keys() == []


@pytest.mark.waits
def test_name_that_another_writer_holds_is_409(moto_bucket, meddler, serve_bucket):
    """A claim that its holder keeps renewing is waited for, but not for ever."""
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    meddler.meddle(acts.store_error(412, "PreconditionFailed"), "write", key=".ztserve/claims/")

    def held(request, handler):
        true = handler.forward(request)
        fields = {**true.fields, "Last-Modified": true.fields["Date"], "Etag": '"held"'}
        return acts.Reply(200, fields, b"", 20) if request.method == "HEAD" else acts.Reply(200, fields, b"held" * 5)

    meddler.meddle(held, "head", key=".ztserve/claims/")
    meddler.meddle(lambda request, handler: held(request, handler), "read", key=".ztserve/claims/")
    answer = put(server, "m", SMALL)
    assert_problem(answer, 409, "conflict")
    assert get(server, model_path("m")).status == 404
    meddler.stop()
    assert put(server, "m", SMALL).status == 201


UNDER_CLAIMS = "published under claims, with conditional writes and partly conditional completion of large files"


@pytest.mark.parametrize(
    "settings, acts_on_writes, level, words",
    [
        ({"writable": True}, None, "info", UNDER_CLAIMS),
        ({"writable": True, "s3__single_writer": True}, None, "info", "published by this server alone (s3.single_writer), with"),
        ({"writable": True}, "ignored", "error", "the bucket does not honour conditional writes: set s3.claims_bucket or"),
        ({"writable": True}, "denied", "error", "the credentials do not give access"),
        ({}, None, "info", "this server does not accept uploads"),
    ],
    ids=["under claims", "single writer", "conditions ignored", "writes denied", "read-only"],
)
def test_log_and_readiness_say_how_uploads_are_published(moto_bucket, meddler, serve_bucket, settings, acts_on_writes, level, words):
    meddling = {"ignored": without_conditions, "denied": acts.store_error(403, "AccessDenied")}
    if acts_on_writes:
        meddler.meddle(meddling[acts_on_writes], "write")
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint, **settings)
    said = get(server, "/readyz").json()["uploads"]
    assert said.startswith(words)
    lines = [line for line in server.log_lines if "uploads: " in line]
    assert len(lines) == 1, lines
    assert f"uploads: {said}" in lines[0] and f" {level}" in lines[0].lower(), lines


def test_store_that_was_away_at_the_start_is_probed_and_logged_later(moto_bucket, meddler, serve_bucket):
    rule = meddler.meddle(acts.reset)
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint, writable=True)
    assert [line for line in server.log_lines if "uploads: how uploads are published is unknown" in line]
    meddler.stop(rule)
    eventually(lambda: [line for line in server.log_lines if "uploads: published under claims" in line], within_s=120)


def test_hidden_keys_cannot_be_written_or_read(bucket, server):
    for name in (".ztserve/claims/x", "a/.ztserve/x"):
        assert put(server, name, SMALL).status == 400
    bucket.put(".ztserve/facts/x", b"secret")
    for target in ("/files/.ztserve/facts/x", "/files/%2Eztserve/facts/x"):
        assert get(server, target).status in (400, 404)
    assert base64.b64encode(b"secret") not in get(server, "/v1/models").body
    assert head(server, model_path(".ztserve/facts/x")).status == 400
