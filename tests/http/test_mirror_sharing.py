"""Upstream sends each byte once, however many clients want it, and readers get bytes as they arrive."""

import contextlib
import functools
import hashlib
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
from pull_through import (
    BLOCK,
    MIB,
    REPO,
    begin_reading,
    covered,
    download,
    eventually_downloaded,
    fetch,
    files_path,
    read_at_least,
    resolve_path,
    safetensors,
    sha256,
    v1_path,
)
from wire import at_once, eventually, get, read_exactly

MEDIUM = safetensors(24 * MIB, seed=3)
# For a measurement: ZT_MIRROR_MIB=1024 ZT_MIRROR_CLIENTS=100.
LARGE_SIZE = int(os.environ.get("ZT_MIRROR_MIB", 64)) * MIB
CLIENTS = int(os.environ.get("ZT_MIRROR_CLIENTS", 30))
WAITING = 200
# Beyond the bytes of the files themselves.
ONCE = 1.01


@functools.cache
def large():
    return safetensors(LARGE_SIZE)


def digest_of_download(server, target):
    """Of all that comes: a thousandth of the memory that the bytes would take in so many clients."""
    connection, status, fields, body = begin_reading(server, target)
    with connection:
        digest, length = hashlib.sha256(body), len(body)
        while length < int(fields["content-length"]) and (piece := connection.recv(1 << 20)):
            digest.update(piece)
            length += len(piece)
    return status, length, digest.hexdigest()


@pytest.mark.others
def test_many_clients_at_once_cost_upstream_one_download(upstream, mirror_of):
    upstream.add(REPO, {"large.safetensors": large()})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    target = resolve_path(REPO, "large.safetensors")
    got = at_once(*[lambda: digest_of_download(server, target)] * CLIENTS)
    print(f"{CLIENTS} clients, {len(large())} bytes: upstream sent {counted.sent_bytes()} bytes")
    assert got == [(200, len(large()), sha256(large()))] * CLIENTS
    assert counted.sent_bytes() <= ONCE * len(large()), counted
    # Its list was asked for once, too.
    assert counted.count("tree") == 1 and counted.count("info") <= 2, counted
    assert digest_of_download(server, target)[2] == sha256(large())
    assert counted.sent_bytes() <= ONCE * len(large())


def test_ranges_faces_and_whole_reads_share_what_they_fetch(upstream, mirror_of):
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    targets = [resolve_path(REPO, "medium.safetensors"), files_path(REPO, "medium.safetensors"), f"/s3/models/{REPO}/medium.safetensors"]
    chance = random.Random(28)

    def read_some(target):
        for _ in range(6):
            first = chance.randrange(len(MEDIUM))
            last = min(len(MEDIUM), first + chance.choice([1, 5000, 3 * MIB])) - 1
            got = fetch(server, target, {"Range": f"bytes={first}-{last}"})
            assert (got.status, got.body) == (206, MEDIUM[first : last + 1]), got

    def read_all(target):
        got = fetch(server, target)
        assert got.is_right and got.body == MEDIUM, got

    at_once(*[lambda act=act, target=target: act(target) for act in (read_some, read_all) for target in targets])
    assert counted.sent_bytes() <= ONCE * len(MEDIUM) + BLOCK, counted


def test_the_first_bytes_come_while_upstream_still_sends(upstream, mirror_of):
    """Less than a block of them."""
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    goes_on = threading.Event()
    upstream.store.meddle(acts.paused_after(150_000, goes_on), "read")
    server = mirror_of(upstream.endpoint)
    connection, status, fields, body = begin_reading(server, resolve_path(REPO, "medium.safetensors"))
    with connection:
        try:
            assert (status, int(fields["content-length"])) == (200, len(MEDIUM))
            body = read_at_least(connection, 100_000, body)
            assert not goes_on.is_set()
        finally:
            goes_on.set()
        assert read_exactly(connection, len(MEDIUM), body) == MEDIUM


def test_a_body_that_comes_in_drops_is_passed_on_drop_by_drop(upstream, mirror_of):
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    steps = [threading.Event() for _ in range(4)]

    def in_steps(request, handler):
        true = handler.forward(request)
        handler.seen.status = true.status
        handler.send(request, acts.replace(true, body=true.body[:10_000], length=len(true.body)), handler.seen)
        for at, step in enumerate(steps):
            step.wait(600)
            handler.write_body(true.body[10_000 * (at + 1) : 10_000 * (at + 2)], handler.seen)
        handler.write_body(true.body[10_000 * (len(steps) + 1) :], handler.seen)
        handler.wfile.flush()
        handler.close_connection = False

    upstream.store.meddle(in_steps, "read", when=lambda request: (request.range or (0,))[0] == 0)
    server = mirror_of(upstream.endpoint)
    connection, _, _, body = begin_reading(server, resolve_path(REPO, "medium.safetensors"))
    with connection:
        try:
            for at, step in enumerate(steps):
                # A few bytes may still be under way to be sent together with the next.
                body = read_at_least(connection, 10_000 * (at + 1) - 4096, body)
                step.set()
        finally:
            for step in steps:
                step.set()
        assert read_exactly(connection, len(MEDIUM), body) == MEDIUM


def test_the_last_block_waits_until_everything_is_verified(upstream, mirror_of):
    """Most of it has arrived, but as long as the rest is missing, the whole cannot be checked."""
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    goes_on, place = threading.Event(), len(MEDIUM) - 1000
    assert place % BLOCK > 1000

    def pause(request, handler):
        return acts.paused_after(place - (request.range or (0,))[0], goes_on)(request, handler)

    pausing = upstream.store.meddle(pause, "read", when=lambda request: (request.range or (0, place))[1] >= place)
    server = mirror_of(upstream.endpoint)
    # The last block has a few bytes only, and those before `place` have come.
    held = min(place, (len(MEDIUM) - 1) // BLOCK * BLOCK)
    connection, status, fields, body = begin_reading(server, resolve_path(REPO, "medium.safetensors"))
    with connection:
        try:
            assert status == 200 and fields["zt-verified"] == "no"
            body = read_at_least(connection, held, body)
            eventually(lambda: pausing.used)
            connection.settimeout(0.2)
            for _ in range(5):
                with contextlib.suppress(TimeoutError):
                    body += connection.recv(1 << 20)
            assert len(body) == held
        finally:
            goes_on.set()
        connection.settimeout(180)
        assert read_exactly(connection, len(MEDIUM), body) == MEDIUM
    got = download(server, REPO, "medium.safetensors")
    assert got.body == MEDIUM and "ZT-Verified" not in got.fields


def test_bytes_of_a_file_that_is_not_verified_say_so(upstream, mirror_of):
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    server = mirror_of(upstream.endpoint)
    targets = [resolve_path(REPO, "medium.safetensors"), files_path(REPO, "medium.safetensors"), f"/s3/models/{REPO}/medium.safetensors"]
    for target in targets:
        got = fetch(server, target, {"Range": "bytes=100-199"})
        assert (got.body, got.fields.get("ZT-Verified")) == (MEDIUM[100:200], "no"), target
        assert "Repr-Digest" not in got.fields
    eventually_downloaded(server, REPO, "medium.safetensors", MEDIUM)
    for target in targets:
        got = fetch(server, target, {"Range": "bytes=100-199"})
        assert (got.body, got.fields.get("ZT-Verified")) == (MEDIUM[100:200], None), target


def test_strict_ranges_wait_for_the_whole_file(upstream, mirror_of):
    upstream.add(REPO, {"medium.safetensors": MEDIUM})
    goes_on = threading.Event()
    upstream.store.meddle(acts.paused_after(1000, goes_on), "read", when=lambda request: (request.range or (0,))[0] > 2 * MIB)
    server = mirror_of(upstream.endpoint, strict=True)
    with ThreadPoolExecutor(1) as pool:
        try:
            answer = pool.submit(fetch, server, resolve_path(REPO, "medium.safetensors"), {"Range": "bytes=100-199"})
            eventually(lambda: upstream.store.seen)
            eventually(lambda: any((one.request.range or (0,))[0] > 2 * MIB for one in upstream.store.seen))
            assert not answer.done()
        finally:
            goes_on.set()
        got = answer.result()
    assert (got.status, got.body, got.fields.get("ZT-Verified")) == (206, MEDIUM[100:200], None)


@pytest.mark.others
def test_clients_that_wait_for_upstream_hold_up_no_others(upstream, mirror_of):
    """However many: local files, files that are here, and other repositories are served meanwhile."""
    upstream.add(REPO, {"medium.safetensors": MEDIUM, "config.json": b"{}\n"})
    upstream.add("acme/other", {"config.json": b"other\n", "w.bin": pattern_of(3 * MIB)})
    root = mirror_of.new_root()
    (root / "mine").mkdir()
    (root / "mine/config.json").write_bytes(b"mine\n")
    goes_on = threading.Event()
    hanging = upstream.store.meddle(acts.paused_after(100, goes_on), "read", when=lambda request: request.key == sha256(MEDIUM))
    server = mirror_of(upstream.endpoint, root=root)
    assert download(server, REPO, "config.json").body == b"{}\n"
    waiting = [begin_reading(server, resolve_path(REPO, "medium.safetensors"))[0] for _ in range(WAITING)]
    try:
        eventually(lambda: hanging.used)
        assert get(server, files_path("mine", "config.json")).body == b"mine\n"
        assert download(server, REPO, "config.json").body == b"{}\n"
        assert download(server, "acme/other", "config.json").body == b"other\n"
        assert download(server, "acme/other", "w.bin").body == pattern_of(3 * MIB)
        assert get(server, "/healthz").status == 200
        assert not goes_on.is_set()
    finally:
        goes_on.set()
        for connection in waiting:
            connection.close()


def pattern_of(size):
    return safetensors(size, seed=9)


@pytest.mark.others
def test_a_reader_that_stops_reading_does_not_stop_the_download_of_others(upstream, mirror_of):
    upstream.add(REPO, {"large.safetensors": large()})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    target = resolve_path(REPO, "large.safetensors")
    slow, _, _, _ = begin_reading(server, target)
    with slow:
        assert digest_of_download(server, target) == (200, len(large()), sha256(large()))
    assert counted.sent_bytes() <= ONCE * len(large())


@pytest.mark.others
def test_reading_ahead_is_bounded(upstream, mirror_of):
    """A client that reads a little of a large file does not have all of it fetched."""
    upstream.add(REPO, {"large.safetensors": large()})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    got = fetch(server, resolve_path(REPO, "large.safetensors"), {"Range": "bytes=0-99"})
    assert got.body == large()[:100]
    assert counted.sent_bytes() <= 8 * MIB + BLOCK, covered(counted, len(large()))
    assert get(server, v1_path(REPO, "large.safetensors")).status == 200
