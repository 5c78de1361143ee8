"""Reads while servers are killed, their caches are damaged and the store's disk stands still: never a wrong byte, and what
failed is there when it is asked for again.

A short run; ZT_S3_READS=10000 and ZT_S3_STOP_S=60 make it a long one.
"""

import http.client
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers import dense, pattern, zt1
from test_bucket_cache import DAMAGES, cache_files
from wire import component_path, eventually, get, model_path

pytestmark = pytest.mark.waits

READS = int(os.environ.get("ZT_S3_READS", "500"))
STOP_S = float(os.environ.get("ZT_S3_STOP_S", "8"))
READERS = 4
# How often a server is killed at least, whatever the number of reads.
KILLS = 4
# Longer than a start, and than all retries of a read.
MENDED_S = 60
MIB = 1 << 20
# More than one extent of the cache in all; half of them have no digest that would tell.
SIZES = {f"m{number}": size for number, size in enumerate([1000, MIB - 1, 3 * MIB, 5 * MIB + 77, 9 * MIB, 24 * MIB])}
DATA = {name: pattern(size, seed=size) for name, size in SIZES.items()}
FILES = {name: zt1({"w": dense(data, digest=("sha256", None)[size % 2])}) for (name, data), size in zip(DATA.items(), range(6))}


def kinds_of_reads(chance):
    """A target, fields, and the bytes that are right."""
    name = chance.choice(list(DATA))
    data, file = DATA[name], bytes(FILES[name])
    first = chance.randrange(len(data))
    last = min(first + chance.choice([0, 100, 70_000, 2 * MIB]), len(data) - 1)
    part = {"Range": f"bytes={first}-{last}"}
    return chance.choice(
        [
            (component_path(name, "w"), part, data[first : last + 1]),
            (component_path(name, "w"), part, data[first : last + 1]),
            (f"{component_path(name, 'w')}?slice={first}:{last + 1}", {}, data[first : last + 1]),
            (f"/files/{name}.zt", part, file[first : last + 1]),
            (component_path(name, "w"), {}, data),
        ]
    )


def is_read(server, target, fields, right):
    """Whether it was answered in full. What comes in part, or under 200, must be right."""
    try:
        answer = get(server, target, **fields)
    except http.client.IncompleteRead as cut:
        assert right.startswith(cut.partial), (target, fields)
        return False
    except (OSError, http.client.HTTPException):
        return False
    if answer.status == 503:
        return False
    assert answer.status == (206 if fields else 200), (target, fields, answer)
    assert answer.body == right, (target, fields)
    return True


class Replicas:
    """Two servers of one bucket. One at a time is killed, has its cache damaged, and is started again at its place."""

    def __init__(self, bucket, serve):
        self.bucket, self.serve = bucket, serve
        self.servers = [serve(bucket) for _ in range(2)]
        self.kills, self.chance = Counter(), random.Random(3)

    def kill_and_damage(self):
        which, damage = self.chance.randrange(2), DAMAGES[sum(self.kills.values()) % len(DAMAGES)]
        victim = self.servers[which]
        victim.kill()
        # It may have had no time to read anything.
        if cache_files(victim):
            damage(victim)
        self.servers[which] = self.serve(self.bucket, place=victim.place)
        self.kills[damage.__name__] += 1


@pytest.fixture
def replicas(bucket, serve_bucket):
    for name, file in FILES.items():
        bucket.put(f"{name}.zt", file)
    return Replicas(bucket, serve_bucket)


def test_reads_are_right_whoever_is_killed_and_whatever_becomes_of_its_cache(replicas):
    left, lock, failed, over = [READS], threading.Lock(), [], threading.Event()

    def take():
        with lock:
            left[0] -= 1
            return not over.is_set() and (left[0] >= 0 or sum(replicas.kills.values()) < KILLS)

    def read(number):
        chance = random.Random(number)
        while take():
            what = kinds_of_reads(chance)
            if not is_read(replicas.servers[chance.randrange(2)], *what):
                failed.append(what[0])
                eventually(lambda: is_read(replicas.servers[chance.randrange(2)], *what), within_s=MENDED_S)

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read, number) for number in range(READERS)]
        try:
            while not all(reader.done() for reader in readers):
                time.sleep(replicas.chance.uniform(0, 0.2))
                replicas.kill_and_damage()
        finally:
            over.set()
    for reader in readers:
        reader.result()
    print(f"{READS - left[0]} reads, {sum(replicas.kills.values())} kills, {len(failed)} asked for again: {replicas.kills}")


# --- a disk that stands still ---


class Tally:
    """What came of reads, and how long the longest of each outcome took."""

    def __init__(self):
        self.counts, self.longest_s = Counter(), Counter()

    def read(self, kind, server, *what):
        begun = time.monotonic()
        outcome = kind, is_read(server, *what)
        self.counts[outcome] += 1
        self.longest_s[outcome] = max(self.longest_s[outcome], time.monotonic() - begun)
        return outcome[1]


def test_disk_that_stands_still_is_lived_through_without_a_restart(ceph, serve_bucket):
    bucket = ceph.bucket()
    for name, file in FILES.items():
        bucket.put(f"{name}.zt", file)
    server, tally, chance = serve_bucket(bucket), Tally(), random.Random(5)
    warm, cold = "m3", "m5"
    assert get(server, component_path(warm, "w")).body == DATA[warm]
    assert get(server, model_path(cold)).status == 200
    over = threading.Event()

    def read(kind, name):
        while not over.wait(0.01):
            first = chance.randrange(SIZES[name] - 1000)
            fields = {"Range": f"bytes={first}-{first + 999}"}
            tally.read(kind, server, component_path(name, "w"), fields, DATA[name][first : first + 1000])

    with ThreadPoolExecutor(8) as pool:
        ceph.stop_disk()
        try:
            readers = [pool.submit(read, kind, name) for kind, name in [("warm", warm)] * 3 + [("cold", cold)] * 5]
            until = time.monotonic() + STOP_S
            while time.monotonic() < until:
                assert get(server, "/healthz").status == 200
                assert get(server, model_path(warm)).status == 200
                time.sleep(0.2)
            ceph.continue_disk()
            # Nobody has to do anything: what was absent comes, and what is new is noticed.
            eventually(lambda: is_read(server, component_path(cold, "w"), {}, DATA[cold]), within_s=MENDED_S)
            bucket.put("new.zt", FILES["m0"])
            eventually(lambda: is_read(server, "/files/new.zt", {}, bytes(FILES["m0"])), within_s=MENDED_S)
        finally:
            ceph.continue_disk()
            over.set()
    for reader in readers:
        reader.result()
    assert tally.counts["warm", True] > 0 and tally.counts["warm", False] == 0, tally.counts
    assert server.process.poll() is None
    print({kind: (count, round(tally.longest_s[kind], 2)) for kind, count in tally.counts.items()})
