"""Writers of one model on two servers over one bucket: of those that may not both win exactly one does, also when a server is
killed in between, and nothing is left behind.

A few rounds; ZT_S3_ROUNDS=100 runs so many of each kind.
"""

import contextlib
import datetime
import email.utils
import hashlib
import http.client
import os
import random
import threading
import time

import pytest

import meddler as acts
from containers import dense, pattern, zt1
from uploads import put
from wire import assert_problem, eventually, get, model_path

ROUNDS = int(os.environ.get("ZT_S3_ROUNDS", "2"))
WRITERS = 6
# The least that every service takes; what is longer is published in parts.
PART_BYTES = 5 << 20
SIZES = (1000, 10000, PART_BYTES + 4321)
# A dead writer's claim is taken over after a minute, and swept soon after.
SWEPT_S = 120
# Every so many rounds a server is killed.
KILL_EVERY = 3
CREATED = {"If_None_Match": "*"}
SUCCESS, REFUSED = (201, 204), 412
SMALL = zt1({"w": dense(pattern(1000))})


class Replicas:
    """Two servers, either of which may be killed and started again at its place."""

    def __init__(self, bucket, serve):
        self.bucket, self.serve = bucket, serve
        self.servers = [self.start() for _ in range(2)]

    def start(self, place=None):
        return self.serve(self.bucket, "--writable", place=place, s3__part_bytes=PART_BYTES)

    def kill_and_restart(self, which):
        victim = self.servers[which]
        victim.kill()
        self.servers[which] = self.start(victim.place)


def contents(name, size):
    """One for each writer, all different."""
    return [zt1({"w": dense(pattern(size, seed=hash((name, writer)) % 100000))}) for writer in range(WRITERS)]


def put_until_decided(replicas, writer, name, body, fields):
    """Repeats what was not decided: another writer holds the name, the store is away, the server was killed."""
    until = time.monotonic() + SWEPT_S
    while time.monotonic() < until:
        try:
            status = put(replicas.servers[writer % 2], name, body, **fields).status
        except (OSError, http.client.HTTPException):
            status = None
        if status not in (None, 409, 503):
            return status
        time.sleep(0.2)
    raise AssertionError(f"writer {writer} of {name} was never answered")


def race(replicas, name, bodies, fields, kill_after_s=None):
    """The statuses of all writers, who begin together."""
    statuses = [None] * len(bodies)
    barrier = threading.Barrier(len(bodies))

    def write(writer):
        barrier.wait()
        statuses[writer] = put_until_decided(replicas, writer, name, bodies[writer], fields)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(len(bodies))]
    for thread in threads:
        thread.start()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        replicas.kill_and_restart(random.randrange(2))
    for thread in threads:
        thread.join()
    return statuses


def assert_one_won(replicas, name, bodies, statuses, killed):
    """What was acknowledged is there, on both servers. A server that was killed may have published without an answer."""
    winners = [writer for writer, status in enumerate(statuses) if status in SUCCESS]
    assert all(status in (*SUCCESS, REFUSED) for status in statuses), statuses
    assert len(winners) <= 1 if killed else len(winners) == 1, statuses
    stored = replicas.bucket.get(f"{name}.zt")
    assert stored in ([bodies[winner] for winner in winners] or bodies), statuses
    tags = []
    for server in replicas.servers:
        eventually(lambda server=server: get(server, f"/files/{name}.zt").body == stored)
        tags.append(get(server, model_path(name))["ETag"])
    assert tags[0] == tags[1]
    return tags[0]


def is_swept(bucket):
    """No claim, no probe."""
    return not any(key.startswith((".ztserve/claims/", ".ztserve/probe/")) for key in bucket.keys(hidden=True))


def is_clean(bucket):
    """And no part of an upload."""
    return is_swept(bucket) and bucket.unfinished() == []


def noted(replicas):
    """What the servers know of uploads that they have yet to abort."""
    journals = (server.place / "cache" / "uploads" / "multipart" for server in replicas.servers)
    return b"".join(path.read_bytes() for journal in journals for path in journal.iterdir())


def forgets_no_parts(replicas):
    """What was begun in the moment of a kill, before its id was noted, may stay: empty. What may be completing is aborted later."""
    bucket, known = replicas.bucket, noted(replicas)
    return all(bucket.parts(key, upload) == [] or upload.encode() in known for key, upload in bucket.uploads())


@pytest.fixture
def replicas(bucket, serve_bucket):
    return Replicas(bucket, serve_bucket)


def test_one_of_many_creates_and_one_of_many_replaces(replicas):
    for number in range(ROUNDS):
        name, size = f"org/m{number}", SIZES[number % len(SIZES)]
        bodies = contents(f"{name}-1", size)
        statuses = race(replicas, name, bodies, CREATED)
        tag = assert_one_won(replicas, name, bodies, statuses, killed=False)
        bodies = contents(f"{name}-2", SIZES[-1 - number % len(SIZES)])
        statuses = race(replicas, name, bodies, {"If_Match": tag})
        assert assert_one_won(replicas, name, bodies, statuses, killed=False) != tag
    # What losers sent is removed behind their answers.
    eventually(lambda: is_clean(replicas.bucket), within_s=120)


def test_writers_without_conditions_all_succeed_and_one_is_left(replicas):
    bodies = contents("m", SIZES[0])
    statuses = race(replicas, "m", bodies, {})
    assert sorted(statuses) == [201] + [204] * (WRITERS - 1)
    assert replicas.bucket.get("m.zt") in bodies
    eventually(lambda: is_clean(replicas.bucket), within_s=120)


def test_killed_servers_lose_nothing_and_leave_nothing(replicas):
    for number in range(max(1, ROUNDS // KILL_EVERY)):
        name, size = f"m{number}", SIZES[-1 - number % len(SIZES)]
        bodies = contents(f"{name}-1", size)
        statuses = race(replicas, name, bodies, CREATED, kill_after_s=random.uniform(0.02, 0.2))
        tag = assert_one_won(replicas, name, bodies, statuses, killed=True)
        bodies = contents(f"{name}-2", size)
        statuses = race(replicas, name, bodies, {"If_Match": tag}, kill_after_s=random.uniform(0.02, 0.2))
        assert_one_won(replicas, name, bodies, statuses, killed=True)
    eventually(lambda: is_swept(replicas.bucket), within_s=SWEPT_S)
    eventually(lambda: forgets_no_parts(replicas), within_s=SWEPT_S)


@pytest.mark.waits
def test_parts_that_a_killed_server_sent_are_removed_at_the_next_start(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__part_bytes=PART_BYTES)
    held = meddler.meddle(acts.hang, "write", when=lambda request: request.query.get("partNumber") == "2")
    body = zt1({"w": dense(pattern(2 * PART_BYTES))})
    threading.Thread(target=put_unanswered, args=(server, "m", body), daemon=True).start()
    eventually(lambda: held.used > 0)
    stranger = moto_bucket.ask("POST", "m.zt", query=[("uploads", "")])
    assert stranger.status == 200
    assert moto_bucket.unfinished() == ["m.zt"] * 2
    server.kill()
    meddler.stop()
    server = serve_bucket(moto_bucket, "--writable", place=server.place, endpoint=meddler.endpoint)
    eventually(lambda: moto_bucket.unfinished() == ["m.zt"])
    assert put(server, "m", body).status == 201


@pytest.mark.waits
def test_upload_that_may_be_completing_is_not_aborted_at_the_next_start(moto_bucket, meddler, serve_bucket):
    """Ceph may do both at once, and then removes bytes of the object."""
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint, s3__part_bytes=PART_BYTES)
    held = meddler.meddle(acts.hang, "write", when=lambda request: request.method == "POST" and "uploadId" in request.query)
    body = zt1({"w": dense(pattern(2 * PART_BYTES))})
    threading.Thread(target=put_unanswered, args=(server, "m", body), daemon=True).start()
    eventually(lambda: held.used > 0, within_s=120)
    server.kill()
    meddler.stop()
    tally = meddler.counting()
    server = serve_bucket(moto_bucket, "--writable", place=server.place, endpoint=meddler.endpoint)
    eventually(lambda: "later, as it may be completing" in server.log, within_s=120)
    assert put(server, "n", SMALL).status == 201
    aborted = [one for one in tally.seen if one.request.method == "DELETE" and one.request.key == "m.zt"]
    assert (aborted, moto_bucket.unfinished()) == ([], ["m.zt"])


def put_unanswered(server, name, body):
    with contextlib.suppress(OSError, http.client.HTTPException):
        put(server, name, body)


def claim_key(bucket, name):
    return ".ztserve/claims/" + hashlib.sha256(f"{bucket.name}/{bucket.prefix}{name}".encode()).hexdigest()[:32]


def long_ago(request, handler):
    """What the store answers, but the object is two minutes old by the store's own clock."""
    true = handler.forward(request)
    made = email.utils.parsedate_to_datetime(true.fields["Date"]) - datetime.timedelta(minutes=2)
    return true.with_fields(**{"Last-Modified": email.utils.format_datetime(made, usegmt=True)})


@pytest.mark.waits
def test_claim_of_a_dead_writer_is_taken_over(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    moto_bucket.put(claim_key(moto_bucket, "m"), b"f" * 32)
    assert_problem(put(server, "m", SMALL, If_None_Match="*"), 409, "conflict")
    meddler.meddle(long_ago, "read", key=".ztserve/claims/")
    assert put(server, "m", SMALL, If_None_Match="*").status == 201
    eventually(lambda: is_clean(moto_bucket), within_s=120)


@pytest.mark.waits
def test_claims_of_dead_writers_are_swept_and_no_others(moto_bucket, meddler, serve_bucket):
    keys = [f".ztserve/claims/{letter * 32}" for letter in "01"]
    for key in keys:
        moto_bucket.put(key, b"f" * 32)
    meddler.meddle(long_ago, "read", key=keys[0])
    serve_bucket(moto_bucket, "--writable", endpoint=meddler.endpoint)
    eventually(lambda: moto_bucket.keys(hidden=True) == keys[1:], within_s=SWEPT_S)
