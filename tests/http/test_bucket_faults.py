"""A bucket whose store misbehaves, is slow, goes away and comes back: never a wrong byte, and nothing needs a restart."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
from containers import dense, pattern, zt1
from wire import TIMEOUT_S, assert_problem, component_path, connect, eventually, get, head, model_path

MIB = 1 << 20
DATA = pattern(10 * MIB, seed=1)
OTHER = pattern(10 * MIB, seed=2)
MODEL, OTHER_MODEL = zt1({"w": dense(DATA)}), zt1({"w": dense(OTHER)})
# Without a digest only the answers' heads can tell that bytes are wrong.
BARE, OTHER_BARE = zt1({"w": dense(DATA, digest=None)}), zt1({"w": dense(OTHER, digest=None)})
TARGET = component_path("m", "w")
# Longer than all retries of a client's read.
SETTLED_S = 90
# Less than a request to a store that hangs takes to be given up.
AT_ONCE_S = 20


@pytest.fixture
def bucket(moto_bucket):
    moto_bucket.put("m.zt", BARE)
    return moto_bucket


@pytest.fixture
def server(bucket, meddler, serve_bucket):
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert get(server, model_path("m")).status == 200
    return server


def assert_unavailable(answer):
    assert_problem(answer, 503, "store-unavailable")
    assert int(answer["Retry-After"]) >= 1


def is_right(server, target=TARGET, data=DATA):
    answer = get(server, target)
    assert answer.status != 200 or answer.body == data
    return answer.status == 200


def sent_to(server, target=TARGET):
    """Status and what came of the body, also when the connection was cut."""
    with connect(server) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = bytearray()
        try:
            while chunk := connection.recv(1 << 20):
                received += chunk
        except ConnectionResetError:
            pass
    top, _, body = bytes(received).partition(b"\r\n\r\n")
    return int(top.split()[1]) if top else None, body


def assert_nothing_wrong(server, data=DATA):
    """What was sent is right as far as it goes, or an error."""
    status, body = sent_to(server)
    if status == 200:
        assert body == data[: len(body)]
        return len(body) == len(data)
    assert status == 503, (status, body[:300])
    return False


# --- answers that are not what was asked for ---

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
# What these say is believed: the object is another, or gone.
OF_A_LOST_VERSION = ("not there", "precondition failed", "range not satisfiable")


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_bytes_never_reach_a_client(bucket, server, meddler, lie):
    rule = meddler.meddle(LIES[lie], "read")
    assert not assert_nothing_wrong(server) or rule.used == 0
    assert rule.used > 0
    assert get(server, "/healthz").status == 200
    meddler.stop()
    eventually(lambda: is_right(server), within_s=SETTLED_S)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_now_and_then_costs_at_most_a_retry(bucket, server, meddler, lie):
    """The first two answers only: the client has the whole file in the end, without a wrong byte before."""
    meddler.meddle(LIES[lie], "read", times=2)
    eventually(lambda: assert_nothing_wrong(server), within_s=SETTLED_S)


@pytest.mark.parametrize("lie", LIES)
def test_lies_while_a_model_is_opened_do_not_stick(bucket, meddler, serve_bucket, lie):
    meddler.meddle(LIES[lie], "read", key="m.zt")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    answer = get(server, TARGET)
    assert answer.status != 200, answer
    assert get(server, "/healthz").status == 200
    meddler.stop()
    eventually(lambda: is_right(server), within_s=SETTLED_S)


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
    eventually(lambda: is_right(server), within_s=15)
    assert rule.used == 1


def test_other_bytes_under_a_true_head_are_a_corrupt_model(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", MODEL)
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert get(server, model_path("m")).status == 200
    meddler.meddle(acts.of_another_version(bytes(OTHER_MODEL)), "read", when=lambda request: request.range[0] >= MIB)
    for fields in ({}, {"Range": "bytes=0-9"}, {"Range": f"bytes={9 * MIB}-"}):
        assert_problem(get(server, TARGET, **fields), 500, "corrupt-component")


# --- slow, silent and busy stores ---


def test_store_that_says_slow_down_for_a_while_costs_time_only(server, meddler):
    rule = meddler.meddle(acts.slow_down(), "read", times=6)
    assert is_right(server)
    assert rule.used == 6


@pytest.mark.waits
def test_store_that_never_answers_is_503_in_time(server, meddler):
    meddler.meddle(acts.hang, "read")
    begun = time.monotonic()
    status, body = sent_to(server)
    assert status == 503 or body == DATA[: len(body)] and len(body) < len(DATA)
    assert time.monotonic() - begun < TIMEOUT_S
    meddler.stop()
    eventually(lambda: is_right(server), within_s=SETTLED_S)


@pytest.mark.waits
def test_store_that_stops_within_a_body_is_left(server, meddler):
    rule = meddler.meddle(acts.stall_after(1000), "read", times=1)
    assert is_right(server)
    assert rule.used == 1


@pytest.mark.waits
def test_waiting_for_the_store_holds_up_nobody_else(bucket, server, meddler):
    bucket.put("cached.zt", zt1({"w": dense(b"cached")}))
    eventually(lambda: is_right(server, component_path("cached", "w"), b"cached"))
    meddler.meddle(acts.hang, "read")
    # More than there are threads that may wait for a store.
    with ThreadPoolExecutor(100) as pool:
        waiting = [pool.submit(sent_to, server, f"{TARGET}?slice={number}:") for number in range(100)]
        time.sleep(0.5)
        for target in ("/healthz", "/v1/models", model_path("m"), component_path("cached", "w"), "/metrics"):
            begun = time.monotonic()
            assert get(server, target).status == 200
            assert time.monotonic() - begun < AT_ONCE_S, target
        meddler.stop()
        assert all(one.result()[0] in (200, 503) for one in waiting)


def test_many_clients_of_one_range_are_one_fetch(server, meddler):
    meddler.delay_s = 0.5
    tally = meddler.counting()
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: get(server, TARGET, Range=f"bytes={5 * MIB}-{5 * MIB + 999}"), range(30)))
    assert all(answer.body == DATA[5 * MIB : 5 * MIB + 1000] for answer in answers)
    assert tally.count("read") <= 2, tally


# --- lists ---


def entry(key, etag="d41d8cd98f00b204e9800998ecf8427e", size=9):
    return (
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>"
    )


def list_of(*entries, more=""):
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{''.join(entries)}</ListBucketResult>"
    )


BOMB = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 20}">' for i in range(8))
    + "]>"
    + list_of(entry("&i;.zt"))
)
BAD_LISTS = {
    "empty": b"",
    "not XML": b"hello",
    "cut": list_of(entry("other.zt")).encode()[:-30],
    "HTML": b"<html><body>It works!</body></html>",
    "an error": b"<Error><Code>InternalError</Code><Message>m</Message></Error>",
    "XML bomb": BOMB,
    "external entity": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + list_of(entry("&a;.zt")),
    "deep": "<a>" * 100_000,
    "truncated without a token": list_of(entry("other.zt"), more=" "),
    "the same page for ever": list_of(entry("other.zt"), more="<NextContinuationToken>x</NextContinuationToken>"),
    "endless key": list_of(entry("k" * 3_000_000)),
    "no size": list_of(entry("m.zt").replace("<Size>9</Size>", "")),
    "no number for a size": list_of(entry("m.zt", size="-1")),
    "no ETag": list_of(entry("m.zt", etag="")),
    "an ETag that is not UTF-8": list_of(entry("m.zt", etag="@")).encode().replace(b"@", b"\xff\xfe"),
}


@pytest.mark.parametrize("bad", BAD_LISTS)
def test_bad_lists_retire_nothing(bucket, server, meddler, bad):
    rule = meddler.meddle(acts.listing(BAD_LISTS[bad]), "list")
    eventually(lambda: rule.used >= 2, within_s=SETTLED_S)
    assert is_right(server)
    assert [one["name"] for one in get(server, "/v1/models").json()["models"]] == ["m"]
    meddler.stop()
    bucket.put("new.zt", zt1({"w": dense(b"new")}))
    eventually(lambda: is_right(server, component_path("new", "w"), b"new"), within_s=SETTLED_S)


@pytest.mark.parametrize("status, code", [(403, "AccessDenied"), (404, "NoSuchBucket"), (500, "InternalError"), (503, "SlowDown")])
def test_failed_lists_retire_nothing(server, meddler, status, code):
    rule = meddler.meddle(acts.store_error(status, code), "list")
    eventually(lambda: rule.used >= 2, within_s=SETTLED_S)
    assert is_right(server)


def test_key_that_xml_cannot_hold_blinds_nothing(bucket, meddler, serve_bucket):
    """As Ceph lists U+0001: a reference that no parser takes, unless keys are asked for in the encoding of URLs."""

    def act(request, handler):
        true = handler.forward(request)
        hostile = "bad%01.zt" if request.query.get("encoding-type") == "url" else "bad&#x01;.zt"
        return acts.replace(true, body=true.body.replace(b"</ListBucketResult>", f"{entry(hostile)}</ListBucketResult>".encode()))

    meddler.meddle(act, "list")
    bucket.put("later.zt", zt1({"w": dense(b"later")}))
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert {"m", "later"} <= {one["name"] for one in get(server, "/v1/models").json()["models"]}
    assert is_right(server)


HOSTILE_KEYS = [
    "../../etc/passwd.zt", "/etc/passwd.zt", "a//b.zt", "./a.zt", "a/../b.zt", "a/./b.zt", "..zt", ".zt", "x/.zt", "a\nb.zt",
    "a\\..\\b.zt", "%2e%2e/x.zt", "a%00b.zt", "k" * 1000 + ".zt", "&lt;script&gt;.zt", "a&#13;b.zt", "con.zt/", "/", "",
]  # fmt: skip


def test_hostile_keys_are_models_with_errors_or_nothing(bucket, meddler, serve_bucket):
    bad = list_of(*map(entry, HOSTILE_KEYS), entry("m.zt", bucket.etag("m.zt"), len(BARE)))
    meddler.meddle(acts.listing(bad), "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    names = {one["name"] for one in get(server, "/v1/models?limit=1000").json()["models"]}
    assert "m" in names
    parts = [part for name in names for part in name.split("/")]
    assert not [part for part in parts if part in ("", ".", "..") or part.startswith(".") or "\n" in part]
    for key in HOSTILE_KEYS:
        answer = get(server, "/files/" + key.replace("\n", "%0A").replace("&", "%26"))
        assert answer.status in (400, 404, 503) or b"<h1>Index of" in answer.body
    assert not list(server.place.rglob("passwd*"))


def test_key_listed_twice_is_one_model_at_most(bucket, meddler, serve_bucket):
    twice = [entry("m.zt", bucket.etag("m.zt"), len(BARE)), entry("m.zt", "0" * 32, 17), entry("m.zt", "0" * 32, 17)]
    meddler.meddle(acts.listing(list_of(*twice)), "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert [one["name"] for one in get(server, "/v1/models").json()["models"]] in ([], ["m"])
    eventually(lambda: assert_nothing_wrong(server) or get(server, TARGET).status in (404, 503, 422))


def test_key_listed_twice_is_what_a_head_tells(bucket, meddler, serve_bucket):
    twice = [entry("m.zt", bucket.etag("m.zt"), len(BARE)), entry("m.zt", "0" * 32, 17)]
    meddler.meddle(acts.listing(list_of(*twice)), "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    eventually(lambda: [one["name"] for one in get(server, "/v1/models").json()["models"]] == ["m"])
    assert get(server, model_path("m")).status == 200


# --- a store that is away ---


@pytest.fixture
def warm(server):
    """All of the model is in the cache, and verified."""
    assert is_right(server)
    return server


@pytest.mark.waits
@pytest.mark.parametrize("away", ["refuses", "resets", "hangs", "is busy"])
def test_store_that_goes_away_leaves_what_is_cached(bucket, meddler, warm, away):
    bucket.put("cold.zt", zt1({"w": dense(pattern(5 * MIB))}))
    eventually(lambda: get(warm, model_path("cold")).status == 200)
    if away == "refuses":
        meddler.go_away()
    else:
        meddler.meddle({"resets": acts.reset, "hangs": acts.hang, "is busy": acts.slow_down()}[away])
    assert is_right(warm)
    assert get(warm, model_path("m")).status == 200
    assert get(warm, "/healthz").status == 200
    assert get(warm, "/readyz").status == 200
    assert_unavailable(get(warm, component_path("cold", "w")))
    assert {one["name"] for one in get(warm, "/v1/models").json()["models"]} == {"m", "cold"}
    meddler.stop()
    if away == "refuses":
        meddler.come_back()
    eventually(lambda: is_right(warm, component_path("cold", "w"), pattern(5 * MIB)), within_s=SETTLED_S)


@pytest.mark.waits
def test_readiness_follows_the_store_if_so_configured(bucket, meddler, serve_bucket):
    server = serve_bucket(bucket, endpoint=meddler.endpoint, s3__ready_when_away=False)
    assert get(server, "/readyz").status == 200
    meddler.go_away()
    eventually(lambda: get(server, "/readyz").status == 503, within_s=SETTLED_S)
    assert get(server, "/healthz").status == 200
    meddler.come_back()
    eventually(lambda: get(server, "/readyz").status == 200, within_s=SETTLED_S)


@pytest.mark.waits
def test_log_tells_once_that_the_store_is_away_and_once_that_it_is_back(meddler, warm):
    meddler.go_away()
    lost = eventually(lambda: store_lines(warm, "away"), within_s=SETTLED_S)
    time.sleep(3)
    assert len(store_lines(warm, "away")) == len(lost) == 1
    meddler.come_back()
    eventually(lambda: store_lines(warm, "back"), within_s=SETTLED_S)


def store_lines(server, word):
    return [line for line in server.log_lines if "store" in line and word in line]


@pytest.mark.waits
def test_store_that_hangs_holds_no_reader_for_long_once_it_is_known_to(bucket, meddler, warm):
    for number in range(6):
        bucket.put(f"cold-{number}.zt", zt1({"w": dense(pattern(3 * MIB, number))}))
        eventually(lambda name=f"cold-{number}": get(warm, model_path(name)).status == 200)
    meddler.meddle(acts.hang)
    eventually(lambda: store_lines(warm, "away"), within_s=60)
    # One a second asks the store all the same.
    for number in range(6):
        begun = time.monotonic()
        assert_unavailable(get(warm, component_path(f"cold-{number}", "w")))
        assert time.monotonic() - begun < 12
        time.sleep(1)
    assert not [line for line in warm.log_lines if "cannot be checked" in line]


def test_store_that_is_away_at_start_is_waited_for(bucket, meddler, serve_bucket):
    meddler.go_away()
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert get(server, "/healthz").status == 200
    assert get(server, "/readyz").status == 503
    assert_unavailable(get(server, model_path("m")))
    meddler.come_back()
    eventually(lambda: get(server, "/readyz").status == 200, within_s=SETTLED_S)
    assert is_right(server)


def test_store_that_is_away_at_start_leaves_what_an_earlier_start_cached(bucket, meddler, serve_bucket):
    first = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert is_right(first)
    tag = head(first, TARGET)["ETag"]
    assert first.stop() == 0
    meddler.go_away()
    server = serve_bucket(bucket, endpoint=meddler.endpoint, place=first.place)
    assert get(server, "/readyz").status == 503
    assert is_right(server)
    assert head(server, TARGET)["ETag"] == tag
    meddler.come_back()
    eventually(lambda: get(server, "/readyz").status == 200, within_s=SETTLED_S)
    assert is_right(server)


def test_termination_while_the_store_hangs_takes_no_longer_than_drain(bucket, meddler, serve_bucket):
    server = serve_bucket(bucket, endpoint=meddler.endpoint, drain_s=2)
    assert get(server, model_path("m")).status == 200
    meddler.meddle(acts.hang)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(sent_to, server) for _ in range(4)]
        time.sleep(0.5)
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < AT_ONCE_S
        assert all(one.result()[1] in (b"", DATA) or one.result()[0] == 503 for one in waiting)
