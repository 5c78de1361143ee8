"""What a mirror says of bytes, and what it makes of them, before they are verified and after they turned out to be wrong."""

import base64
import hashlib
import shutil

from containers import dense, zt1
from pull_through import (
    MIB,
    REPO,
    begin_reading,
    download,
    download_in_pieces,
    eventually_downloaded,
    eventually_right,
    fetch,
    flip_at,
    noise,
    read_at_least,
    resolve_path,
    resumed_download,
    safetensors,
    v1_path,
)
from wire import ask, eventually, get, segment

FILE = safetensors(3 * MIB, seed=7)
TARGET = resolve_path(REPO, "model.safetensors")
PART = {"Range": "bytes=0-999", "Want-Repr-Digest": "sha-256=10"}


def said(answer):
    return answer.fields.get("ZT-Verified"), "Repr-Digest" in answer.fields


def cache_folders(server):
    """Where the mirror keeps bytes, but not its index."""
    return [path for path in server.root.rglob("mirror/up0") if path.is_dir()]


def test_bytes_that_left_the_cache_are_not_verified_when_they_come_again(upstream, mirror_of):
    upstream.add(REPO, {"model.safetensors": FILE})
    server = mirror_of(upstream.endpoint)
    eventually_downloaded(server, REPO, "model.safetensors", FILE)
    eventually(lambda: said(fetch(server, TARGET, PART)) == (None, True))
    assert server.stop() == 0
    (folder,) = cache_folders(server)
    shutil.rmtree(folder)
    # The catalog reads the header at the start.
    flip_at(upstream, 500, times=1000)
    server = mirror_of.again(server, upstream.endpoint)
    part = fetch(server, TARGET, PART)
    assert part.status == 206 and said(part) == ("no", False), part
    assert part.body != FILE[:1000]
    assert not download(server, REPO, "model.safetensors").is_right


def test_a_copy_has_no_wrong_bytes(upstream, mirror_of):
    """The copy would be a file of this server, which vouches for it."""
    upstream.add(REPO, {"model.safetensors": FILE})
    server = mirror_of(upstream.endpoint, arguments=["--writable"])
    flip_at(upstream, 1 * MIB + 5)
    source = {"x-amz-copy-source": f"models/{REPO}/model.safetensors"}
    copied = ask(server, "PUT", "/s3/models/mine/copy.safetensors", source)
    made = get(server, "/files/mine/copy.safetensors")
    assert copied.status != 200 or made.body == FILE, copied
    assert made.status == 404 or made.body == FILE

    def copy_again():
        return ask(server, "PUT", "/s3/models/mine/copy.safetensors", source).status == 200

    eventually(copy_again)
    assert get(server, "/files/mine/copy.safetensors").body == FILE


def component_path(file, name):
    return v1_path(REPO, file, f"/objects/{segment(name)}/data")


def test_wrong_bytes_of_a_component_are_fetched_again(upstream, mirror_of):
    """Its own digest shows that they are wrong, although no client asks for the rest of the file."""
    data = noise(2 * MIB, seed=3)
    model = bytes(zt1({"v": dense(noise(24 * MIB, seed=4)), "w": dense(data)}))
    upstream.add(REPO, {"model.zt": model})
    server = mirror_of(upstream.endpoint)
    flip_at(upstream, model.index(data[:64]) + MIB)
    target = component_path("model.zt", "w")
    got = fetch(server, target)
    assert not (got.is_right and got.body != data), got
    eventually_right(server, target, data)


def test_no_digest_is_computed_of_bytes_that_are_not_verified(upstream, mirror_of):
    """Only what was verified is vouched for; a restart reads what was computed before."""
    large = safetensors(24 * MIB, seed=8)
    first = 8 + int.from_bytes(large[:8], "little")
    right = large[first : first + 12 * MIB]
    upstream.add(REPO, {"model.safetensors": large})
    server = mirror_of(upstream.endpoint)
    flip_at(upstream, 1 * MIB + 5)
    target, wants = component_path("model.safetensors", "a"), {"Want-Repr-Digest": "sha-256=10"}
    for _ in range(20):
        got = fetch(server, target, wants)
        assert got.status == 200 and got.body != right and said(got) == ("no", False), got
    eventually_downloaded(server, REPO, "model.safetensors", large)

    def has_digest():
        got = eventually_right(server, target, right, wants)
        return got if "Repr-Digest" in got.fields else None

    digest = base64.b64encode(hashlib.sha256(right).digest()).decode()
    assert eventually(has_digest).fields["Repr-Digest"] == f"sha-256=:{digest}:"


def test_wrong_bytes_of_an_earlier_process_are_not_completed_although_the_file_is_verified_by_now(upstream, mirror_of):
    """Another client had it verified meanwhile."""
    large = safetensors(24 * MIB, seed=9)
    upstream.add(REPO, {"model.safetensors": large})
    server = mirror_of(upstream.endpoint)
    flip_at(upstream, 1000)
    connection, _, _, body = begin_reading(server, TARGET)
    with connection:
        have = read_at_least(connection, 10 * MIB, body)[: 10 * MIB]
        server.wait_for_line("the bytes are dropped")
    assert server.stop() == 0
    server = mirror_of.again(server, upstream.endpoint)
    eventually_downloaded(server, REPO, "model.safetensors", large)
    assert have != large[: 10 * MIB]
    assert resumed_download(server, TARGET, len(large), have=have) == large


def test_a_piece_is_not_joined_with_wrong_ones_from_before_a_restart(upstream, mirror_of):
    """Clients that fetch pieces side by side fetch the one again that was cut."""
    large = safetensors(24 * MIB, seed=10)
    upstream.add(REPO, {"model.safetensors": large})
    server = mirror_of(upstream.endpoint)
    flip_at(upstream, 1000)
    pieces = download_in_pieces(server, TARGET, len(large))
    assert pieces[0].is_right and pieces[0].body != large[: 10 * MIB]
    server.wait_for_line("the bytes are dropped")
    assert server.stop() == 0
    server = mirror_of.again(server, upstream.endpoint)
    eventually_downloaded(server, REPO, "model.safetensors", large)
    again = fetch(server, TARGET, {"Range": f"bytes={20 * MIB}-{len(large) - 1}"})
    assert (again.status, again.body) == (200, large)
