"""Upstream misbehaves or is away: complete files are served without asking, the rest fails in words, and nothing that was
fetched is lost by a restart or a kill."""

import threading
import time

import pytest

import meddler as acts
from pull_through import (
    MIB,
    REPO,
    begin_reading,
    download,
    eventually_downloaded,
    eventually_right,
    fetch,
    fetch_once,
    files_path,
    read_at_least,
    resolve_path,
    safetensors,
    v1_path,
)
from wire import assert_problem, eventually, get

FILE = safetensors(24 * MIB, seed=21)
FILES = {"model.safetensors": FILE, "config.json": b'{"a": 1}\n', "later.json": b"[]\n", "later.safetensors": safetensors(3 * MIB, seed=22)}
HERE = ("model.safetensors", "config.json")


def fill(server):
    for path in HERE:
        eventually_downloaded(server, REPO, path, FILES[path])


def assert_here_works(server):
    for path in HERE:
        got = download(server, REPO, path)
        assert (got.status, got.body, got.is_whole) == (200, FILES[path], True), got
        assert get(server, files_path(REPO, path)).body == FILES[path]
    assert get(server, f"/s3/models/{REPO}/model.safetensors", Range="bytes=5-9").body == FILE[5:10]
    described = get(server, v1_path(REPO, "model.safetensors"))
    assert sorted(described.json()["objects"]) == ["a", "b"]
    part = get(server, v1_path(REPO, "model.safetensors", "/objects/b/data?slice=0:10"))
    assert (part.status, len(part.body)) == (200, 10)
    assert get(server, v1_path(REPO, "model.safetensors", "/export?format=zt2")).status == 200
    listed = get(server, f"/api/models/{REPO}/tree/main?recursive=true").json()
    assert sorted(one["path"] for one in listed) == sorted(FILES)


def unavailable(got):
    """A client learns why, and when to try again."""
    assert got.status in (502, 503), got
    problem = got.json()
    assert problem["code"] == "upstream-unavailable", problem
    assert int(got.fields["Retry-After"]) >= 1
    return problem["detail"]


@pytest.fixture
def server(upstream, mirror_of):
    upstream.add(REPO, FILES)
    return mirror_of(upstream.endpoint, revalidate_s=1)


@pytest.mark.others
def test_with_upstream_stopped_everything_that_was_fetched_works(server, upstream, mirror_of):
    fill(server)
    upstream.go_away()
    assert_here_works(server)
    assert unavailable(download(server, REPO, "later.safetensors"))
    assert unavailable(download(server, "acme/other", "config.json"))
    for path in ("/healthz", "/readyz"):
        assert get(server, path).status == 200
    assert server.wait_for_line("up0")
    assert_here_works(server)
    # Also after a restart, and after a kill.
    assert server.stop() == 0
    server = mirror_of.again(server, upstream.endpoint, revalidate_s=1)
    assert get(server, "/readyz").status == 200
    assert_here_works(server)
    server.kill()
    server = mirror_of.again(server, upstream.endpoint, revalidate_s=1)
    assert_here_works(server)
    upstream.come_back()
    eventually_downloaded(server, REPO, "later.safetensors", FILES["later.safetensors"])
    eventually_downloaded(server, REPO, "later.json", FILES["later.json"])


def test_a_server_starts_without_its_upstream(upstream, mirror_of):
    upstream.add(REPO, FILES)
    upstream.go_away()
    server = mirror_of(upstream.endpoint)
    assert get(server, "/readyz").status == 200
    assert unavailable(download(server, REPO, "config.json"))
    upstream.come_back()
    fill(server)


def test_what_is_here_is_served_without_asking(server, upstream, mirror_of):
    fill(server)
    assert server.stop() == 0
    counted = upstream.counting()
    server = mirror_of.again(server, upstream.endpoint, revalidate_s=3600)
    assert_here_works(server)
    assert counted.requests <= 1, counted
    assert counted.sent_bytes() == 0


def test_a_kill_in_the_middle_of_a_download_loses_nothing_of_it(server, upstream, mirror_of):
    goes_on = threading.Event()
    upstream.store.meddle(acts.paused_after(MIB // 2, goes_on), "read", when=lambda request: (request.range or (0,))[0] >= 8 * MIB)
    counted = upstream.counting()
    connection, _, _, body = begin_reading(server, resolve_path(REPO, "model.safetensors"))
    with connection:
        read_at_least(connection, 8 * MIB, body)
        # Clients may have bytes a little before they are on disk.
        eventually(lambda: get(server, "/v1/upstreams").json()["upstreams"][0]["cache_used_bytes"] >= 8 * MIB)
        server.kill()
    goes_on.set()
    upstream.store.stop()
    again = upstream.counting()
    server = mirror_of.again(server, upstream.endpoint, revalidate_s=1)
    eventually_downloaded(server, REPO, "model.safetensors", FILE)
    early = [one.request.range for one in again.reads() if (one.request.range or (0,))[0] < 8 * MIB]
    assert not early, early
    assert again.sent_bytes() <= len(FILE) - 8 * MIB, (counted, again)


@pytest.mark.others
@pytest.mark.parametrize("moment", range(6))
def test_kills_at_any_moment(server, upstream, mirror_of, moment):
    """While lists are read and files fetched, verified and recorded: afterwards everything is right."""
    readers = [threading.Thread(target=fetch, args=(server, resolve_path(REPO, path))) for path in FILES]
    for reader in readers:
        reader.start()
    eventually(lambda: len(upstream.seen) + len(upstream.store.seen) > 3 * moment or not any(one.is_alive() for one in readers))
    server.kill()
    for reader in readers:
        reader.join()
    server = mirror_of.again(server, upstream.endpoint, revalidate_s=1)
    for path, content in FILES.items():
        eventually_downloaded(server, REPO, path, content)
    upstream.go_away()
    for path, content in FILES.items():
        got = download(server, REPO, path)
        assert got.is_right and got.body == content


REFUSALS = {
    "401": (acts.reply(401, b"{}", X_Error_Message="Invalid credentials in Authorization header"), (404, 502)),
    "403": (acts.reply(403, b"{}", X_Error_Code="GatedRepo", X_Error_Message="Access to this model is restricted"), (403, 502)),
    "404": (acts.reply(404, b"{}", X_Error_Code="RepoNotFound"), (404,)),
    "500": (acts.reply(500, b"oops"), (502, 503)),
    "502": (acts.reply(502, b"<html>bad gateway</html>"), (502, 503)),
    "503": (acts.reply(503, b"busy", Retry_After="1"), (503,)),
    "504": (acts.reply(504, b""), (502, 503)),
    "418": (acts.reply(418, b"teapot"), (502, 503)),
    "a reset": (acts.reset, (502, 503)),
    "a page": (acts.reply(200, b"<html>log in</html>", Content_Type="text/html"), (502, 503)),
    "an empty body": (acts.reply(200, b"", Content_Type="application/json"), (502, 503)),
    "half of a document": (acts.changed(lambda true: acts.replace(true, body=true.body[: len(true.body) // 2])), (502, 503)),
    "a short body": (acts.short_body(3), (502, 503)),
    "an array": (acts.reply(200, b"[[[[]]]]", Content_Type="application/json"), (502, 503)),
    "deep nesting": (acts.reply(200, b"[" * 100_000, Content_Type="application/json"), (502, 503)),
    "a commit that is none": (
        acts.changed(lambda true: acts.replace(true, body=true.body.replace(b'"sha": "', b'"sha": "../../'))), (502, 503),
    ),
}  # fmt: skip


@pytest.mark.others
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refused_look_up_is_told_in_words(server, upstream, kind):
    act, statuses = REFUSALS[kind]
    fill(server)
    # A refusal is remembered for its repository.
    repos = {"info": "acme/unknown"} if kind == "a commit that is none" else {"info": "acme/unknown", "tree": "acme/unlisted"}
    for request, repo in repos.items():
        rule = upstream.meddle(act, request, when=lambda request, repo=repo: repo in request.target)
        upstream.add(repo, {"config.json": b"{}\n"})
        got = download(server, repo, "config.json")
        assert rule.used and got.status in statuses, got
        if got.status in (502, 503):
            assert unavailable(got)
        assert_here_works(server)
        upstream.stop(rule)
    if 404 not in statuses and kind != "403":
        for repo in repos.values():
            eventually_downloaded(server, repo, "config.json", b"{}\n")


def test_a_gated_repository_is_told_in_words(upstream, mirror_of):
    upstream.add("acme/gated", {"config.json": b"{}\n"}, is_gated=True)
    server = mirror_of(upstream.endpoint)
    got = download(server, "acme/gated", "config.json")
    assert got.status == 502 and "restricts access" in unavailable(got), got
    # It is remembered for a minute, and so long there is no use in asking.
    assert 5 < int(got.fields["Retry-After"]) <= 60


def test_what_upstream_does_not_have_is_remembered_for_a_while(upstream, mirror_of):
    server = mirror_of(upstream.endpoint)
    for repo in ("acme/none", "none"):
        counted = upstream.counting()
        for target in (resolve_path(repo, "config.json"), f"/api/models/{repo}", files_path(repo, "config.json")) * 3:
            assert get(server, target).status == 404, target
        assert counted.requests <= 1, counted
    got = get(server, resolve_path("acme/none", "config.json"))
    assert got["X-Error-Code"] == "RepoNotFound"


def test_a_short_wait_that_upstream_asks_for_is_obeyed(server, upstream):
    """The client does not notice."""
    wait_s = 2
    upstream.meddle(acts.reply(429, b"{}", Retry_After=str(wait_s)), "info", times=1)
    assert download(server, REPO, "config.json").body == FILES["config.json"]
    (limited,) = [one for one in upstream.seen if one.status == 429]
    assert min(one.at for one in upstream.seen if one.at > limited.at) - limited.at >= wait_s - 0.1


def test_a_long_wait_that_upstream_asks_for_is_passed_on(upstream, mirror_of):
    """To all who ask meanwhile, without asking again."""
    server = mirror_of(upstream.endpoint)
    upstream.add(REPO, FILES)
    upstream.meddle(acts.reply(429, b"{}", Retry_After="3600"), "info", times=1)
    waits = []
    for target in (resolve_path(REPO, "config.json"), resolve_path("acme/other", "config.json"), v1_path(REPO, "model.safetensors")):
        got = fetch_once(server, target)
        assert got.status == 503 and "limits requests" in unavailable(got), got
        waits.append(int(got.fields["Retry-After"]))
    # No longer than 30 s, and what is left of it.
    assert 30 >= waits[0] >= waits[1] >= waits[2] >= 1 and waits[0] > 10, waits
    shown = get(server, "/v1/upstreams").json()["upstreams"][0]
    assert waits[2] >= shown["retry_after_s"] >= 1
    assert len(upstream.seen) == 1


def test_an_upstream_that_is_set_offline_is_named(upstream, mirror_of):
    """Whether a repository exists is not known, so it is not said."""
    upstream.add(REPO, FILES)
    server = mirror_of(upstream.endpoint, offline=True)
    targets = [resolve_path(REPO, "config.json"), files_path(REPO, "config.json"), f"/files/{REPO}/", f"/api/models/{REPO}", v1_path(REPO, "model.safetensors")]
    for target in targets:
        got = fetch_once(server, target)
        assert got.status == 503 and "offline" in unavailable(got), got
    got = fetch_once(server, f"/s3/models/{REPO}/config.json")
    assert got.status == 503 and b"offline" in got.body, got
    shown = get(server, "/v1/upstreams").json()["upstreams"][0]
    assert (shown["state"], "offline" in shown["reason"]) == ("offline", True), shown
    assert server.wait_for_line("offline")
    assert not upstream.seen


def test_a_store_that_asks_for_a_wait_is_obeyed_while_a_client_reads(server, upstream):
    wait_s = 2
    upstream.store.meddle(acts.reply(429, b"", Retry_After=str(wait_s)), "read", times=1)
    eventually_downloaded(server, REPO, "model.safetensors", FILE)
    at = [one.at for one in upstream.store.seen if one.status == 429][0]
    began = [one.at for one in upstream.store.seen if at < one.at]
    # Requests that were under way beside it had begun before its answer was there.
    assert max(began) - at >= wait_s - 0.1


def test_signed_addresses_that_expire_are_asked_for_again(server, upstream):
    got = fetch(server, resolve_path(REPO, "model.safetensors"), {"Range": "bytes=0-99"})
    assert got.body == FILE[:100]
    for offset in (9 * MIB, 15 * MIB, 21 * MIB):
        upstream.store.expire()
        part = eventually_right(server, resolve_path(REPO, "model.safetensors"), FILE[offset : offset + 100], {"Range": f"bytes={offset}-{offset + 99}"})
        assert part.status == 206
    eventually_downloaded(server, REPO, "model.safetensors", FILE)


def test_signed_addresses_are_used_for_more_than_one_request(server, upstream):
    counted = upstream.counting()
    eventually_downloaded(server, REPO, "model.safetensors", FILE)
    for part in range(8):
        fetch(server, resolve_path(REPO, "model.safetensors"), {"Range": f"bytes={part * MIB}-{part * MIB + 9}"})
    assert len(counted.store.seen) >= 2
    assert counted.count("resolve") <= 2, counted


# By how many bytes of the body are sent before.
HANGS = {
    "does not answer": lambda length: acts.hang,
    "trickles its head": lambda length: acts.trickle,
    "stops within the body": acts.stall_after,
    "trickles its body": acts.drip_after,
}


@pytest.mark.others
@pytest.mark.waits
@pytest.mark.parametrize("kind", HANGS)
def test_a_read_does_not_wait_for_ever_while_upstream(server, upstream, kind):
    """It ends by itself, cut or with a reason, while everything else works."""
    eventually_downloaded(server, REPO, "config.json", FILES["config.json"])
    hanging = upstream.store.meddle(HANGS[kind](100_000), "read")
    got = []
    reader = threading.Thread(target=lambda: got.append(fetch(server, resolve_path(REPO, "model.safetensors"))))
    reader.start()
    eventually(lambda: hanging.used)
    assert download(server, REPO, "config.json").body == FILES["config.json"]
    eventually(lambda: not reader.is_alive(), within_s=300)
    assert not got[0].is_right
    if got[0].status == 200:
        assert got[0].body == FILE[: len(got[0].body)]
    else:
        assert unavailable(got[0])
    upstream.store.stop()
    eventually_downloaded(server, REPO, "model.safetensors", FILE)


@pytest.mark.others
@pytest.mark.waits
@pytest.mark.parametrize("kind", HANGS)
def test_a_look_up_does_not_wait_for_ever_while_upstream(server, upstream, kind):
    fill(server)
    upstream.add("acme/new", {"config.json": b"{}\n"})
    hanging = upstream.meddle(HANGS[kind](10), "info", "tree", when=lambda request: "acme/new" in request.target)
    got = fetch_once(server, resolve_path("acme/new", "config.json"))
    assert hanging.used
    assert unavailable(got)
    assert_here_works(server)
    upstream.stop()
    eventually_downloaded(server, "acme/new", "config.json", b"{}\n")


@pytest.mark.others
def test_main_that_cannot_be_looked_at_again_is_served_as_it_was(server, upstream):
    """Without waiting for upstream each time."""
    fill(server)
    hanging = upstream.meddle(acts.hang, "info", "tree")
    eventually(lambda: download(server, REPO, "config.json").body == FILES["config.json"] and hanging.used)
    for _ in range(20):
        assert download(server, REPO, "config.json").body == FILES["config.json"]


def test_an_upstream_that_is_away_is_asked_seldom(server, upstream):
    """By one request a second, whoever waits; all others learn at once that it is away."""
    fill(server)
    broken = upstream.meddle(acts.reset)
    began = time.monotonic()
    for number in range(60):
        got = download(server, f"acme/n{number}", "config.json")
        assert got.status == 503, got
    # A request that is under way when others find it away may have tried four times; one may ask for main again beside it.
    assert broken.used <= 2 * (time.monotonic() - began) + 10, (broken.used, time.monotonic() - began)


def test_the_state_of_upstream_is_reported(server, upstream):
    fill(server)
    (shown,) = get(server, "/v1/upstreams").json()["upstreams"]
    assert (shown["name"], shown["kind"], shown["state"]) == ("up0", "hub", "reached")
    upstream.go_away()
    assert unavailable(download(server, "acme/other", "config.json"))
    assert get(server, "/readyz").status == 200
    (shown,) = get(server, "/v1/upstreams").json()["upstreams"]
    assert shown["state"] == "away" and shown["reason"]


def test_problems_have_their_shape(server, upstream):
    upstream.go_away()
    answer = get(server, f"/v1/models/{REPO.replace('/', '%2F')}%2Fmodel")
    assert_problem(answer, 503, "upstream-unavailable")
    assert int(answer["Retry-After"]) >= 1
