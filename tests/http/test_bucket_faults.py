"""A bucket whose store is slow, goes away and comes back: no request waits too long, and nothing needs a restart."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
from bare_bucket import DATA, MIB, SETTLED_S, TARGET, bucket, is_right, sent_to, server
from containers import dense, pattern, zt1
from wire import TIMEOUT_S, assert_problem, component_path, eventually, get, head, metrics, model_path

# How many objects of each kind.
NEIGHBOURS = {"busy": 2, "hanging": 4, "good": 16}
NEIGHBOUR_BYTES = 3 * MIB
# Less than a request to a store that hangs takes to be given up.
AT_ONCE_S = 20


def in_progress(server):
    """Requests, with the one that asks for this."""
    return metrics(server)["ztserve_http_requests_in_progress"]


def assert_unavailable(answer):
    assert_problem(answer, 503, "store-unavailable")
    assert int(answer["Retry-After"]) >= 1


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
    hanging = meddler.meddle(acts.hang, "read")
    # More than there are threads that may wait for a store.
    with ThreadPoolExecutor(100) as pool:
        waiting = [pool.submit(sent_to, server, f"{TARGET}?slice={number}:") for number in range(100)]
        eventually(lambda: hanging.used > 0 and in_progress(server) > 100)
        for target in ("/healthz", "/v1/models", model_path("m"), component_path("cached", "w"), "/metrics"):
            begun = time.monotonic()
            assert get(server, target).status == 200
            assert time.monotonic() - begun < AT_ONCE_S, target
        meddler.stop()
        assert all(one.result()[0] in (200, 503) for one in waiting)


@pytest.fixture
def neighbours(moto_bucket, meddler, serve_bucket):
    """A server of good objects beside busy and hanging ones, all of which have been opened."""
    names = [f"{kind}-{number}" for kind, count in NEIGHBOURS.items() for number in range(count)]
    for number, name in enumerate(names):
        moto_bucket.put(f"{name}.zt", zt1({"w": dense(pattern(NEIGHBOUR_BYTES, number), digest=None)}))
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint, s3__poll_s=3600)
    for name in names:
        eventually(lambda name=name: get(server, model_path(name)).status == 200)
    return server


def assert_good_objects_come_soon(server, pool, numbers):
    def read(number):
        begun = time.monotonic()
        return get(server, component_path(f"good-{number}", "w")), time.monotonic() - begun

    for answer, took_s in pool.map(read, numbers):
        assert answer.status == 200
        assert took_s < AT_ONCE_S


@pytest.mark.waits
@pytest.mark.parametrize("act", [acts.hang, acts.trickle])
def test_busy_and_hanging_objects_hold_up_no_good_ones(neighbours, meddler, act):
    busy = meddler.meddle(acts.slow_down(), "read", key="busy-")
    hanging = meddler.meddle(act, "read", key="hanging-")
    with ThreadPoolExecutor(64) as pool:
        for number in range(NEIGHBOURS["hanging"]):
            for part in range(3):
                pool.submit(sent_to, neighbours, component_path(f"hanging-{number}", "w") + f"?slice={part << 20}:")
        for number in range(NEIGHBOURS["busy"]):
            pool.submit(sent_to, neighbours, component_path(f"busy-{number}", "w"))
        # Later refusals halve what is in flight down to the least.
        eventually(lambda: busy.used >= 6 and hanging.used >= 4)
        assert_good_objects_come_soon(neighbours, pool, range(NEIGHBOURS["good"]))
        meddler.close()


@pytest.mark.waits
def test_object_that_stays_busy_does_not_make_the_store_away(neighbours, meddler):
    meddler.meddle(acts.slow_down(), "read", key="busy-")
    assert_unavailable(get(neighbours, component_path("busy-0", "w")))
    with ThreadPoolExecutor(NEIGHBOURS["good"]) as pool:
        assert_good_objects_come_soon(neighbours, pool, range(NEIGHBOURS["good"]))
    assert not store_lines(neighbours, "unreachable")


def test_many_clients_of_one_range_are_one_fetch(server, meddler):
    meddler.delay_s = 0.5
    tally = meddler.counting()
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: get(server, TARGET, Range=f"bytes={5 * MIB}-{5 * MIB + 999}"), range(30)))
    assert all(answer.body == DATA[5 * MIB : 5 * MIB + 1000] for answer in answers)
    assert tally.count("read") <= 2, tally


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
    lost = eventually(lambda: store_lines(warm, "unreachable"), within_s=SETTLED_S)
    # Also whoever asks for what is not cached finds it away.
    for number in range(5):
        get(warm, model_path(f"unknown-{number}"))
    assert len(store_lines(warm, "unreachable")) == len(lost) == 1
    meddler.come_back()
    eventually(lambda: store_lines(warm, "reachable again"), within_s=SETTLED_S)


def store_lines(server, word):
    return [line for line in server.log_lines if "store" in line and word in line]


@pytest.mark.waits
def test_store_that_hangs_holds_no_reader_for_long_once_it_is_known_to(bucket, meddler, warm):
    for number in range(3):
        bucket.put(f"cold-{number}.zt", zt1({"w": dense(pattern(3 * MIB, number))}))
        eventually(lambda name=f"cold-{number}": get(warm, model_path(name)).status == 200)
    hanging = meddler.meddle(acts.hang)
    eventually(lambda: store_lines(warm, "unreachable"), within_s=120)
    # One a second asks the store all the same.
    for number in range(3):
        asked, begun = hanging.used, time.monotonic()
        assert_unavailable(get(warm, component_path(f"cold-{number}", "w")))
        assert time.monotonic() - begun < AT_ONCE_S
        eventually(lambda asked=asked: hanging.used > asked)
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
    hanging = meddler.meddle(acts.hang, "read")
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(sent_to, server) for _ in range(4)]
        eventually(lambda: hanging.used > 0 and in_progress(server) > 4)
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < AT_ONCE_S
        assert all(one.result()[1] in (b"", DATA) or one.result()[0] == 503 for one in waiting)
