"""The cache of a bucket: what is in it needs no store; full, read-only, removed and damaged folders cost fetches, never a
wrong byte."""

import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
import writers
from containers import dense, pattern, zt1
from uploads import put
from wire import assert_problem, component_path, eventually, get, metrics, model_path

MIB = 1 << 20
DATA = pattern(6 * MIB + 123, seed=1)
TARGET = component_path("m", "w")
SMALLEST = 64 * MIB
# Without a digest, which could be checked against the file itself: only the cache can tell.
BARE = zt1({"w": dense(DATA, digest=None)})


@pytest.fixture
def bucket(moto_bucket):
    moto_bucket.put("m.zt", BARE)
    return moto_bucket


def assert_right(server, target=TARGET, data=DATA):
    answer = get(server, target)
    assert answer.status == 200, answer
    assert answer.body == data


def assert_all_right(server):
    """By range, slice, whole file and export as well."""
    assert_right(server)
    part = get(server, TARGET, Range=f"bytes={MIB - 3}-{2 * MIB + 5}")
    assert (part.status, part.body) == (206, DATA[MIB - 3 : 2 * MIB + 6])
    assert get(server, f"{TARGET}?slice=100:{3 * MIB}").body == DATA[100 : 3 * MIB]
    assert get(server, "/files/m.zt").body == server.bucket.get("m.zt")


def cache_files(server):
    return sorted(path for path in (server.place / "cache").rglob("*") if path.is_file())


def largest(server):
    """The image of the model."""
    return max(cache_files(server), key=lambda path: path.stat().st_size)


def used_bytes(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


# --- what is there needs no store ---


def test_warm_reads_make_no_request(bucket, meddler, serve_bucket):
    server = serve_bucket(bucket, endpoint=meddler.endpoint, s3__poll_s=3600)
    assert_all_right(server)
    tally = meddler.counting()
    for _ in range(3):
        assert_all_right(server)
    assert get(server, model_path("m")).status == 200
    assert tally.seen == []


def test_cold_reads_fetch_each_byte_once(bucket, meddler, serve_bucket):
    tally = meddler.counting()
    server = serve_bucket(bucket, endpoint=meddler.endpoint, s3__poll_s=3600)
    assert_all_right(server)
    assert tally.sent_bytes("read") == len(bucket.get("m.zt"))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_restart_keeps_the_cache(bucket, meddler, serve_bucket, end):
    first = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert_all_right(first)
    assert getattr(first, end)() in (0, None)
    tally = meddler.counting()
    second = serve_bucket(bucket, endpoint=meddler.endpoint, place=first.place)
    assert_all_right(second)
    assert tally.count("read") == 0, tally


def test_metrics_count_hits_and_misses(bucket, serve_bucket):
    server = serve_bucket(bucket)
    assert_right(server)
    cold = metrics(server)
    assert cold['ztserve_cache_reads_total{result="miss"}'] > 0
    assert cold["ztserve_cache_fetched_bytes_total"] == len(bucket.get("m.zt"))
    assert_right(server)
    warm = metrics(server)
    assert warm["ztserve_cache_fetched_bytes_total"] == cold["ztserve_cache_fetched_bytes_total"]
    assert warm['ztserve_cache_reads_total{result="hit"}'] > cold['ztserve_cache_reads_total{result="hit"}']
    assert warm["ztserve_cache_used_bytes"] >= len(DATA)


def test_replaced_version_is_not_served_from_the_cache(bucket, serve_bucket):
    server = serve_bucket(bucket)
    assert_right(server)
    other = pattern(6 * MIB, seed=9)
    bucket.put("m.zt", zt1({"w": dense(other)}))
    eventually(lambda: get(server, TARGET).body == other)
    assert get(server, TARGET, Range="bytes=-100").body == other[-100:]


def test_equal_keys_of_different_buckets_do_not_share_blocks(moto, serve_bucket):
    """The same cache folder, one server after another."""
    place = serve_bucket.place()
    for seed in (1, 2):
        bucket = moto.bucket()
        bucket.put("m.zt", zt1({"w": dense(pattern(2 * MIB, seed=seed), digest=None)}))
        server = serve_bucket(bucket, place=place)
        assert_right(server, data=pattern(2 * MIB, seed=seed))
        assert server.stop() == 0


def test_two_servers_do_not_share_a_cache_folder(bucket, serve_bucket):
    first = serve_bucket(bucket)
    with pytest.raises(RuntimeError, match="cache"):
        serve_bucket(bucket, place=first.place, state__dir=first.place / "other-state")
    assert_right(first)


# --- little room ---


def test_small_cache_serves_models_that_do_not_fit(bucket, serve_bucket):
    large = pattern(80 * MIB, seed=5)
    bucket.put("n.zt", zt1({"w": dense(large)}))
    server = serve_bucket(bucket, cache__max_bytes=SMALLEST)
    for _ in range(2):
        assert_all_right(server)
        assert_right(server, component_path("n", "w"), large)


def test_cache_stays_below_its_limit(moto_bucket, serve_bucket):
    limit = 80 * MIB
    for number in range(8):
        moto_bucket.put(f"m{number}.zt", zt1({"w": dense(pattern(20 * MIB, seed=number), digest=None)}))
    server = serve_bucket(moto_bucket, cache__max_bytes=limit)
    for number in range(8):
        assert_right(server, component_path(f"m{number}", "w"), pattern(20 * MIB, seed=number))
        assert used_bytes(server.place / "cache") <= limit + 8 * MIB
    found = metrics(server)
    assert found["ztserve_cache_evicted_bytes_total"] > 0
    assert found["ztserve_cache_limit_bytes"] == limit
    assert found["ztserve_cache_used_bytes"] <= limit
    # What was read last is still there.
    fetched = found["ztserve_cache_fetched_bytes_total"]
    assert_right(server, component_path("m7", "w"), pattern(20 * MIB, seed=7))
    assert metrics(server)["ztserve_cache_fetched_bytes_total"] == fetched


def test_readers_side_by_side_in_a_small_cache_get_right_bytes(moto_bucket, serve_bucket):
    """Blocks are evicted while others are read: a hole would be zeros."""
    files = {f"m{number}": pattern(20 * MIB, seed=number) for number in range(6)}
    for name, data in files.items():
        moto_bucket.put(f"{name}.zt", zt1({"w": dense(data, digest=None)}))
    server = serve_bucket(moto_bucket, cache__max_bytes=SMALLEST)

    def read(seed):
        order = random.Random(seed)
        for _ in range(25):
            name = order.choice(list(files))
            first = order.randrange(20 * MIB)
            last = min(20 * MIB - 1, first + order.choice([0, 1000, MIB, 4 * MIB]))
            answer = get(server, component_path(name, "w"), Range=f"bytes={first}-{last}")
            assert answer.status == 206, answer
            assert answer.body == files[name][first : last + 1], (name, first, last)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, range(6))) == [None] * 6


@pytest.fixture
def small_disk(tmp_path):
    """A file system of few bytes of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("skipped: file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_is_read_past(bucket, serve_bucket, small_disk):
    (small_disk / "filler").write_bytes(bytes(2 * MIB))
    server = serve_bucket(bucket, cache__dir=small_disk / "cache")
    for _ in range(2):
        assert_all_right(server)


def test_folder_that_cannot_be_made_is_read_past(bucket, serve_bucket, tmp_path):
    (tmp_path / "file").write_bytes(b"not a folder")
    server = serve_bucket(bucket, cache__dir=tmp_path / "file" / "cache")
    for _ in range(2):
        assert_all_right(server)
    assert [line for line in server.log_lines if "cache" in line]


def test_folder_that_cannot_be_written_to_is_read_past(bucket, serve_bucket):
    folder = serve_bucket.place()
    (folder / "cache").mkdir(parents=True)
    # Only this stops root.
    locked = shutil.which("chattr") and subprocess.run(["chattr", "+i", folder / "cache"], capture_output=True).returncode == 0
    if not locked:
        pytest.skip("skipped: no way here to keep root from writing")
    try:
        server = serve_bucket(bucket, place=folder)
        for _ in range(2):
            assert_all_right(server)
    finally:
        subprocess.run(["chattr", "-i", folder / "cache"], check=True)


def test_folder_removed_while_running_costs_fetches(bucket, serve_bucket):
    server = serve_bucket(bucket)
    assert_right(server)
    shutil.rmtree(server.place / "cache")
    assert_all_right(server)
    bucket.put("n.zt", zt1({"w": dense(pattern(3 * MIB, seed=5))}))
    eventually(lambda: get(server, component_path("n", "w")).body == pattern(3 * MIB, seed=5))


def test_uploads_after_the_folder_was_removed_lack_storage_and_are_not_forbidden(moto_bucket, serve_bucket):
    server = serve_bucket(moto_bucket, "--writable")
    model = zt1({"w": dense(pattern(1000))})
    assert put(server, "before", model).status == 201
    shutil.rmtree(server.place / "cache")
    answer = put(server, "after", model)
    assert_problem(answer, 507, "insufficient-storage")
    assert "folder of uploads" in answer.json()["detail"]
    assert_problem(writers.create(server, "written"), 507, "insufficient-storage")
    assert moto_bucket.get("after.zt") is None
    assert get(server, component_path("before", "w")).body == pattern(1000)


# --- damage between two starts ---


def overwrite(path, offset, data):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        value = file.read(1)
        file.seek(offset)
        file.write(bytes([value[0] ^ 0x40]))


def flip_some(server):
    """A byte of every 4 KiB page in one image, at its beginning, end or between."""
    image, order = largest(server), random.Random(5)
    for page in range(0, image.stat().st_size - 4096, 4096 * 7):
        flip(image, page + order.choice([0, 4095, order.randrange(4096)]))


def zero_a_block(server):
    overwrite(largest(server), 2 * MIB, bytes(MIB))


def zero_all(server):
    overwrite(largest(server), 0, bytes(largest(server).stat().st_size))


def cut_image(server):
    os.truncate(largest(server), 3 * MIB + 5)


def empty_image(server):
    os.truncate(largest(server), 0)


def lengthen_image(server):
    os.truncate(largest(server), largest(server).stat().st_size + 5 * MIB)


def remove_image(server):
    largest(server).unlink()


def others(server):
    """All but the images of models."""
    return [path for path in cache_files(server) if path.stat().st_size < MIB]


def empty_index(server):
    for path in others(server):
        os.truncate(path, 0)


def cut_index(server):
    for path in others(server):
        os.truncate(path, path.stat().st_size * 2 // 3 - 1 if path.stat().st_size > 3 else 0)


def flip_index(server):
    for path in others(server):
        for offset in range(0, path.stat().st_size, 5):
            flip(path, offset)


def fill_index(server):
    for path in others(server):
        path.write_bytes(random.Random(7).randbytes(10_000))


def remove_index(server):
    for path in others(server):
        path.unlink()


def swap_images(server):
    """Two images change places, their indexes do not."""
    images = sorted(cache_files(server), key=lambda path: path.stat().st_size)[-2:]
    aside = images[0].with_name("aside")
    images[0].rename(aside)
    images[1].rename(images[0])
    aside.rename(images[1])


def make_folders(server):
    for path in cache_files(server):
        path.unlink()
        path.mkdir()


def make_links(server):
    for path in cache_files(server):
        path.unlink()
        path.symlink_to("/etc/passwd")


DAMAGES = [
    flip_some, zero_a_block, zero_all, cut_image, empty_image, lengthen_image, remove_image, empty_index, cut_index,
    flip_index, fill_index, remove_index, swap_images, make_folders, make_links,
]  # fmt: skip


# Where the file has a digest too, some of each kind suffice.
WITH_DIGEST = [flip_some, cut_image, flip_index, swap_images]


@pytest.mark.parametrize("damage, digest", [*((damage, None) for damage in DAMAGES), *((damage, "sha256") for damage in WITH_DIGEST)])
def test_damage_between_starts_costs_at_most_fetches(moto_bucket, serve_bucket, damage, digest):
    bucket, other = moto_bucket, pattern(6 * MIB, seed=4)
    bucket.put("m.zt", zt1({"w": dense(DATA, digest=digest)}))
    bucket.put("n.zt", zt1({"w": dense(other, digest=None)}))
    first = serve_bucket(bucket)
    assert_all_right(first)
    assert_right(first, component_path("n", "w"), other)
    assert first.stop() == 0
    passwd = open("/etc/passwd", "rb").read()
    damage(first)
    second = serve_bucket(bucket, place=first.place)
    for _ in range(2):
        assert_all_right(second)
        assert_right(second, component_path("n", "w"), other)
    assert open("/etc/passwd", "rb").read() == passwd


def test_every_part_of_a_block_is_covered_by_its_checksum(bucket, serve_bucket):
    """One flip a start, at each kind of place: first and last byte of file, block and page."""
    server = serve_bucket(bucket)
    size = len(BARE)
    assert_all_right(server)
    for offset in (64, 4095, 4096, MIB - 1, MIB, 2 * MIB + 1234, 6 * MIB - 1, 6 * MIB + 1, size - 200, size - 1):
        assert server.stop() == 0
        flip(largest(server), offset)
        server = serve_bucket(bucket, place=server.place)
        assert_all_right(server)


def test_damaged_blocks_are_503_while_the_store_is_away(bucket, meddler, serve_bucket):
    first = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert_all_right(first)
    assert first.stop() == 0
    zero_a_block(first)
    meddler.meddle(acts.slow_down(), "read")
    second = serve_bucket(bucket, endpoint=meddler.endpoint, place=first.place)
    answer = get(second, TARGET, Range=f"bytes={2 * MIB + 500}-{2 * MIB + 599}")
    assert answer.status == 503, answer
    assert get(second, TARGET, Range="bytes=0-99").body == DATA[:100]
    meddler.stop()
    eventually(lambda: get(second, TARGET).body == DATA)


@pytest.mark.parametrize("left", [0, 3 * MIB + 5])
def test_image_cut_while_it_is_served_costs_fetches(bucket, serve_bucket, left):
    server = serve_bucket(bucket)
    assert_all_right(server)
    for _ in range(2):
        os.truncate(largest(server), left)
        assert_all_right(server)
    fetched = metrics(server)["ztserve_cache_fetched_bytes_total"]
    assert_all_right(server)
    assert metrics(server)["ztserve_cache_fetched_bytes_total"] == fetched
    assert "was truncated" in server.log


@pytest.mark.parametrize("damage", [zero_all, cut_image, remove_image])
def test_damage_to_a_running_cache_with_digests_is_no_wrong_byte_after_a_restart(moto_bucket, serve_bucket, damage):
    moto_bucket.put("m.zt", zt1({"w": dense(DATA)}))
    first = serve_bucket(moto_bucket)
    assert_right(first)
    damage(first)
    first.kill()
    second = serve_bucket(moto_bucket, place=first.place)
    assert_all_right(second)
