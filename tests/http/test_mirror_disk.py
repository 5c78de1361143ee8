"""What a mirror keeps on the disk: no more than `keep` and what leaves the reserve, and damage to it costs a fetch, no more."""

import os
import random
import shutil

import pytest

from pull_through import MIB, REPO, download, eventually_downloaded, fetch, resolve_path, safetensors
from small_disk import small_disk
from wire import eventually, get

KEEP = 128 * MIB
SIZE = 24 * MIB
COUNT = 10
# What the index and other small files may take, and a file system for its own lists.
RECORDS = 4 * MIB


def file_of(number):
    return safetensors(SIZE, seed=100 + number)


def used_bytes(folder):
    """On the disk: the cache's files are sparse."""
    found = 0
    for top, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(top, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return found


@pytest.mark.others
@pytest.mark.folder("counts the bytes on the disk")
def test_no_more_is_kept_than_may_be_and_the_most_recent_stays(upstream, mirror_of):
    for number in range(COUNT):
        upstream.add(f"acme/m{number}", {"model.safetensors": file_of(number)})
    server = mirror_of(upstream.endpoint, keep=KEEP)
    most = 0
    for number in range(COUNT):
        eventually_downloaded(server, f"acme/m{number}", "model.safetensors", file_of(number))
        most = max(most, used_bytes(server.root))
    assert most <= KEEP + RECORDS, most >> 20
    counted = upstream.counting()
    eventually_downloaded(server, f"acme/m{COUNT - 1}", "model.safetensors", file_of(COUNT - 1))
    assert counted.sent_bytes() == 0
    # What was evicted is fetched again, and checked again.
    eventually_downloaded(server, "acme/m0", "model.safetensors", file_of(0))
    assert 0 < counted.sent_bytes() <= 1.01 * SIZE
    assert used_bytes(server.root) <= KEEP + RECORDS


@pytest.mark.others
def test_a_file_larger_than_what_may_be_kept_is_served_all_the_same(upstream, mirror_of):
    large = safetensors(200 * MIB, seed=99)
    upstream.add(REPO, {"model.safetensors": large})
    server = mirror_of(upstream.endpoint, keep=KEEP)
    got = download(server, REPO, "model.safetensors")
    # It is whole and right, or refused; but not wrong.
    assert got.is_right == (got.body == large)
    assert used_bytes(server.root) <= KEEP + RECORDS
    part = fetch(server, resolve_path(REPO, "model.safetensors"), {"Range": "bytes=100000000-100000099"})
    assert part.body == large[100_000_000:100_000_100]


@pytest.mark.folder("mounts a small disk for the root")
def test_a_full_disk_costs_fetches_and_no_wrong_byte(upstream, mirror_of, tmp_path):
    files = {number: safetensors(10 * MIB, seed=number) for number in range(6)}
    for number, content in files.items():
        upstream.add(f"acme/m{number}", {"model.safetensors": content, "config.json": b"%d\n" % number})
    with small_disk(tmp_path / "disk", 64 * MIB) as disk:
        root = disk.path / "root"
        root.mkdir()
        server = mirror_of(upstream.endpoint, root=root, top={"upload": {"reserve_bytes": 24 * MIB}})
        assert server.wait_for_line("no room beyond its reserve, so mirrored files are not kept")
        with disk.watched():
            for number, content in files.items():
                for _ in range(2):
                    got = download(server, f"acme/m{number}", "model.safetensors")
                    assert not got.is_right or got.body == content
                    assert got.is_right or got.status in (0, 200, 503, 507), got
                got = download(server, f"acme/m{number}", "config.json")
                assert got.body == b"%d\n" % number or got.status in (503, 507), got
        assert get(server, "/readyz").status == 200
        ballast = disk.fill_to(64 << 10)
        got = download(server, "acme/m0", "model.safetensors")
        assert not got.is_right or got.body == files[0]
        ballast.unlink()
        eventually_downloaded(server, "acme/m3", "model.safetensors", files[3])
        assert server.stop() == 0


def mirror_files(root):
    """Those in which the mirror keeps its index and its bytes."""
    found = [path for path in sorted(root.rglob("*")) if path.is_file() and "mirror" in path.relative_to(root).parts]
    assert found, list(root.rglob("*"))
    return found


def cut(path, generator):
    os.truncate(path, generator.randrange(path.stat().st_size + 1))


def flip(path, generator):
    content = bytearray(path.read_bytes())
    for _ in range(1 + len(content) // MIB):
        if content:
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    path.write_bytes(content)


def empty(path, generator):
    path.write_bytes(b"")


def other(path, generator):
    path.write_bytes(generator.randbytes(path.stat().st_size or 100))


def remove(path, generator):
    path.unlink()


DAMAGES = [cut, flip, empty, other, remove]
# What the names of the damaged files have in common.
PARTS = {"everything": "", "blocks": ".blocks", "indexes": ".index", "lists": "/repositories/"}


@pytest.mark.folder("damages files below the root")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("part", PARTS)
def test_damage_costs_fetches_and_no_wrong_byte(upstream, mirror_of, damage, part):
    generator = random.Random(f"{damage.__name__} {part}")
    files = {f"acme/m{number}": {"model.safetensors": safetensors(3 * MIB, seed=number), "config.json": b"%d\n" % number} for number in range(3)}
    for repo, content in files.items():
        upstream.add(repo, content)
    server = mirror_of(upstream.endpoint)
    for repo in files:
        for path, content in files[repo].items():
            eventually_downloaded(server, repo, path, content)
    assert server.stop() == 0
    damaged = [path for path in mirror_files(server.root) if PARTS[part] in str(path)]
    assert damaged
    for path in damaged:
        damage(path, generator)
    server = mirror_of.again(server, upstream.endpoint)
    for repo in files:
        for path, content in files[repo].items():
            got = download(server, repo, path)
            assert not got.is_right or got.body == content
            eventually_downloaded(server, repo, path, content)


@pytest.mark.folder("removes a folder below the root")
def test_the_folder_is_removed_while_the_server_runs(upstream, mirror_of):
    upstream.add(REPO, {"model.safetensors": file_of(1), "config.json": b"{}\n"})
    server = mirror_of(upstream.endpoint)
    eventually_downloaded(server, REPO, "config.json", b"{}\n")
    (folder,) = [path for path in server.root.rglob("mirror") if path.is_dir()]
    eventually(lambda: shutil.rmtree(folder, ignore_errors=True) or not folder.exists())  # the server may be writing
    got = eventually(lambda: (found := download(server, REPO, "model.safetensors")).status in (200, 503, 507) and found)
    assert not got.is_right or got.body == file_of(1)
    assert server.stop() == 0
    server = mirror_of.again(server, upstream.endpoint)
    eventually_downloaded(server, REPO, "model.safetensors", file_of(1))
