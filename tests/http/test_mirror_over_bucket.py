"""Mirrors over one bucket share what they have fetched, and trust none of it."""

import meddler as acts
import pytest

from pull_through import MIB, REPO, download, eventually_downloaded, fetch, resolve_path, safetensors, sha256
from wire import eventually, get

MODEL = safetensors(9 * MIB, seed=51)
SMALL = b'{"hidden_size": 8}'


def shared_key(content):
    return f".ztserve/shared/{sha256(content)}"


@pytest.fixture
def mirror(moto_bucket, upstream, serve_bucket):
    """Starts servers over the same bucket; each has a disk of its own."""
    upstream.add(REPO, {"model.safetensors": MODEL, "config.json": SMALL})

    def start(*arguments, **settings):
        return serve_bucket(moto_bucket, "--upstream", upstream.endpoint, *arguments, **settings)

    return start


@pytest.mark.parametrize("part_mib", [5, 64], ids=["in parts", "whole"])
def test_a_second_server_fetches_nothing_that_the_first_has_verified(mirror, moto_bucket, upstream, part_mib):
    first = mirror("--writable", s3__part_bytes=part_mib * MIB)
    eventually_downloaded(first, REPO, "model.safetensors", MODEL)
    assert eventually(lambda: moto_bucket.get(shared_key(MODEL)) == MODEL)
    second = mirror()
    tally = upstream.counting()
    got = download(second, REPO, "model.safetensors")
    assert got.is_right and got.body == MODEL
    assert download(second, REPO, "config.json").body == SMALL
    assert tally.store.of("read") == []
    assert eventually(lambda: "ZT-Verified" not in download(second, REPO, "model.safetensors").fields)
    # Neither a file nor a model of the bucket.
    assert get(first, f"/files/{shared_key(MODEL)}").status == 404
    assert all(".ztserve" not in model["name"] for model in get(first, "/v1/models").json()["models"])


def test_wrong_bytes_in_the_bucket_are_found_and_replaced(mirror, moto_bucket, upstream):
    wrong = bytearray(MODEL)
    wrong[4 * MIB] ^= 1
    moto_bucket.put(shared_key(MODEL), bytes(wrong))
    server = mirror("--writable")
    assert not download(server, REPO, "model.safetensors").is_right
    eventually_downloaded(server, REPO, "model.safetensors", MODEL)
    assert eventually(lambda: moto_bucket.get(shared_key(MODEL)) == MODEL)


def test_a_bucket_that_fails_costs_a_fetch_from_upstream(mirror, moto_bucket, upstream, meddler):
    moto_bucket.put(shared_key(MODEL), MODEL)
    meddler.meddle(acts.reply(500), "read", when=lambda request: "/.ztserve/shared/" in request.path)
    server = mirror(endpoint=meddler.endpoint)
    tally = upstream.counting()
    eventually_downloaded(server, REPO, "model.safetensors", MODEL)
    assert tally.store.of("read") != []


def test_a_file_that_could_not_be_kept_is_offered_again(mirror, moto_bucket, upstream, meddler):
    rule = meddler.meddle(acts.reply(403), "write", when=lambda request: "/.ztserve/shared/" in request.path)
    server = mirror("--writable", endpoint=meddler.endpoint)
    eventually_downloaded(server, REPO, "model.safetensors", MODEL)
    assert server.wait_for_line("is not kept for other servers")
    meddler.stop(rule)
    assert eventually(lambda: download(server, REPO, "model.safetensors").is_right and moto_bucket.get(shared_key(MODEL)) == MODEL)


def test_files_of_an_earlier_process_are_offered_when_they_are_opened(mirror, moto_bucket, upstream):
    first = mirror()
    eventually_downloaded(first, REPO, "model.safetensors", MODEL)
    assert eventually(lambda: "ZT-Verified" not in download(first, REPO, "model.safetensors").fields)
    first.stop()
    assert moto_bucket.get(shared_key(MODEL)) is None
    second = mirror("--writable", place=first.place)
    assert fetch(second, resolve_path(REPO, "model.safetensors"), method="HEAD").status == 200
    assert eventually(lambda: moto_bucket.get(shared_key(MODEL)) == MODEL)
