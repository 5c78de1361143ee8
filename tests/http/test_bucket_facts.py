"""Digests that one replica has found out are kept in the bucket, and the others know them without reading the models."""

import datetime
import email.utils
import re

import meddler as acts
from containers import dense, pattern, zt1
from wire import component_path, eventually, get, head, metrics

MIB = 1 << 20
DATA = pattern(6 * MIB + 123, seed=5)
TARGET = component_path("m", "w")
FACTS = ".ztserve/facts/"


def facts(bucket):
    return [key for key in bucket.keys(hidden=True) if key.startswith(FACTS)]


def digest(server, target=TARGET):
    return head(server, target)["Repr-Digest"]


def fetched(server):
    return metrics(server)["ztserve_cache_fetched_bytes_total"]


def put_model(bucket, data=DATA):
    """Nothing in the file says what its bytes are: the servers find out."""
    bucket.put("m.zt", zt1({"w": dense(data, digest=None)}))


def find(server):
    """Has a server read the model, and tells the digest that it found."""
    assert digest(server) is None
    assert get(server, TARGET).body == DATA
    eventually(lambda: digest(server) is not None)
    return digest(server)


def test_what_one_found_the_next_knows_without_reading(bucket, serve_bucket):
    put_model(bucket)
    found = find(serve_bucket(bucket, writable=True))
    eventually(lambda: len(facts(bucket)) == 1)
    other = serve_bucket(bucket, writable=True)
    eventually(lambda: digest(other) == found)
    # What opening reads, and not the component.
    assert fetched(other) <= 3 * MIB
    assert get(other, TARGET).body == DATA


def test_server_that_takes_no_uploads_reads_facts_and_writes_none(bucket, serve_bucket):
    put_model(bucket)
    found = find(serve_bucket(bucket))
    assert facts(bucket) == []
    find(serve_bucket(bucket, writable=True))
    eventually(lambda: len(facts(bucket)) == 1)
    other = serve_bucket(bucket)
    eventually(lambda: digest(other) == found)


def test_facts_are_of_one_version(bucket, serve_bucket):
    put_model(bucket)
    found = find(serve_bucket(bucket, writable=True))
    eventually(lambda: len(facts(bucket)) == 1)
    changed = bytes(reversed(DATA))
    put_model(bucket, changed)
    other = serve_bucket(bucket, writable=True)
    assert digest(other) is None
    assert get(other, TARGET).body == changed
    eventually(lambda: digest(other) is not None)
    assert digest(other) != found


def spoilt(text):
    """What may be in the bucket in place of a fact: cut, flipped, empty, something else, much too long."""
    middle = len(text) // 2
    flipped = text[:middle] + bytes([text[middle] ^ 1]) + text[middle + 1 :]
    return [text[:-1], flipped, b"", b"<xml/>", text + b"more", bytes(len(text)), b"\xff" * (17 * MIB)]


def test_spoilt_facts_are_not_believed(moto_bucket, serve_bucket):
    bucket = moto_bucket
    put_model(bucket)
    found = find(serve_bucket(bucket, writable=True))
    eventually(lambda: len(facts(bucket)) == 1)
    (key,) = facts(bucket)
    for text in spoilt(bucket.get(key)):
        bucket.put(key, text)
        other = serve_bucket(bucket)
        for _ in range(3):
            assert digest(other) in (None, found)
        assert get(other, TARGET).body == DATA
        other.stop()


def as_if_old(key):
    """Lists in which an object is two hours old."""

    def change(true):
        now = email.utils.parsedate_to_datetime(true.fields["Date"])
        made = (now - datetime.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()

        def one(found):
            fits = key.encode() in found[0]
            return re.sub(rb"(?<=<LastModified>)[^<]*", made, found[0]) if fits else found[0]

        return acts.replace(true, body=re.sub(rb"(?s)<Contents>.*?</Contents>", one, true.body))

    return acts.changed(change)


def test_facts_of_versions_that_are_gone_are_swept(moto_bucket, meddler, serve_bucket):
    gone, young = (f"{FACTS}{digit * 32}.digests-1048576" for digit in "ab")
    strange = f"{FACTS}alike"
    for key in (gone, young, strange):
        moto_bucket.put(key, b"x")
    meddler.meddle(as_if_old(FACTS + "a"), "list")
    serve_bucket(moto_bucket, writable=True, endpoint=meddler.endpoint)
    eventually(lambda: facts(moto_bucket) == sorted([young, strange]), within_s=120)


def test_facts_of_a_version_that_is_there_stay_however_old(moto_bucket, meddler, serve_bucket):
    put_model(moto_bucket)
    find(serve_bucket(moto_bucket, writable=True))
    eventually(lambda: len(facts(moto_bucket)) == 1)
    kept = facts(moto_bucket)
    gone = f"{FACTS}{'a' * 32}.digests-1048576"
    moto_bucket.put(gone, b"x")
    meddler.meddle(as_if_old(FACTS), "list")
    serve_bucket(moto_bucket, writable=True, endpoint=meddler.endpoint)
    eventually(lambda: facts(moto_bucket) == kept, within_s=120)


def test_last_of_a_burst_is_shared_too(moto_bucket, serve_bucket):
    """One after another, so that what comes last is too little to be written at once."""
    names = [f"w{number}" for number in range(12)]
    data = {name: pattern(2 * MIB, seed=number) for number, name in enumerate(names)}
    moto_bucket.put("m.zt", zt1({name: dense(data[name], digest=None) for name in names}))
    server = serve_bucket(moto_bucket, writable=True)
    for name in names:
        target = component_path("m", name)
        assert get(server, target).body == data[name]
        eventually(lambda target=target: digest(server, target) is not None)
    eventually(lambda: facts(moto_bucket) != [])

    def other_knows_all():
        other = serve_bucket(moto_bucket)
        # It reads the facts beside the first response.
        eventually(lambda: digest(other, component_path("m", names[0])) is not None)
        known = [digest(other, component_path("m", name)) for name in names]
        assert other.stop() == 0
        return None not in known

    eventually(other_knows_all, within_s=120)
