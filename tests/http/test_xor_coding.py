"""?base=sha256:…&coding=xor-zstd: a component as its difference from another one, decoded here by python-zstandard."""

import hashlib
import json
import os
import random
import socket
import struct

import pytest
import zstandard

from clients import Client, write_tokens
from containers import dense, dense_encoded, pattern, seekable, zstd_dense, zt1, zt2
from joined import safetensors
from kept import component, head_of
from uploads import put
from wire import ask, assert_problem, at_once, component_path, cpu_seconds, eventually, get, head, metrics, publish, sha256_field, verify

BLOCK = 256 << 10
SIZE = 3 * BLOCK + 1234


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def changed(data, share=0.01, seed=1):
    """The same elements of two bytes, some with other low bits."""
    made = bytearray(data)
    chosen = random.Random(seed)
    for at in chosen.sample(range(0, len(data) - 1, 2), int(len(data) / 2 * share)):
        made[at] ^= 1 << chosen.randrange(4)
    return bytes(made)


def xor(one, other):
    assert len(one) == len(other)
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def frames_of(body):
    """The contents of the zstd frames that follow one another."""
    contents = []
    while body:
        decoder = zstandard.ZstdDecompressor(max_window_size=1 << 20).decompressobj()
        contents.append(decoder.decompress(body))
        assert decoder.eof
        body = decoder.unused_data
    return contents


def apply(body, base):
    return xor(b"".join(frames_of(body)), base)


BASE = pattern(SIZE, seed=60)
NEW = changed(BASE)
OTHER = pattern(SIZE, seed=61)
SMALL = pattern(1000, seed=62)


def difference(name, base, model="new", digest=None):
    return component_path(model, name) + f"?base=sha256:{digest or sha256(base)}&coding=xor-zstd"


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "old.zt").write_bytes(zt1({"w": dense(BASE), "small": dense(SMALL), "none": dense(b"")}))
    new = {
        "w": dense(NEW),
        "same": dense(BASE),
        "other": dense(OTHER),
        "small": dense(changed(SMALL)),
        "none": dense(b"", shape=[0]),
        "zstd": zstd_dense(NEW),
        "unlengthed": zstd_dense(NEW, states_length=False),
        "unknown": dense_encoded(b"12345678", b"????", "lz4", digest="sha256"),
    }
    (folder / "new.zt").write_bytes(zt1(new))
    return share_server(folder)


# --- the bytes ---


CASES = {
    "w": (BASE, NEW), "same": (BASE, BASE), "other": (BASE, OTHER), "small": (SMALL, changed(SMALL)), "zstd": (BASE, NEW),
    "unlengthed": (BASE, NEW), "none": (b"", b""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_base_and_difference_give_the_component(server, name):
    base, result = CASES[name]
    answer = get(server, difference(name, base))
    assert answer.status == 200 and apply(answer.body, base) == result
    assert answer["Content-Type"] == "application/zstd" and answer["Content-Encoding"] is None
    assert answer["Content-Length"] == str(len(answer.body))
    assert answer["ZT-Base"] == f"sha256:{sha256(base)}"
    assert answer["Repr-Digest"] == sha256_field(result)
    assert answer["Accept-Ranges"] == "bytes" and answer["Vary"] is None


def test_each_frame_holds_one_block(server):
    assert [len(one) for one in frames_of(get(server, difference("w", BASE)).body)] == [BLOCK] * 3 + [1234]
    assert frames_of(get(server, difference("none", b"")).body) == [b""]


def test_a_percent_of_changed_elements_costs_less_than_two_percent_of_the_bytes(server):
    assert len(get(server, difference("w", BASE)).body) < SIZE / 50


def test_equal_blocks_cost_nothing(server):
    assert len(get(server, difference("same", BASE)).body) < SIZE / 10_000


# --- the base ---


def test_a_computed_digest_identifies_a_base(tmp_path, start_server):
    (tmp_path / "a.safetensors").write_bytes(safetensors({"another name": BASE}))
    (tmp_path / "b.safetensors").write_bytes(safetensors({"w": NEW}))
    server = start_server(tmp_path)
    asked = difference("w", BASE, "b")
    assert_problem(get(server, asked), 404, "base-not-found")
    verify(server, "a")
    answer = eventually(lambda: (found := get(server, asked)).status == 200 and found)
    assert apply(answer.body, BASE) == NEW
    assert answer["Repr-Digest"] == sha256_field(NEW)


def test_a_tensor_of_the_same_name_is_hashed_to_find_the_base(tmp_path, start_server):
    (tmp_path / "a.safetensors").write_bytes(safetensors({"w": BASE}))
    (tmp_path / "b.safetensors").write_bytes(safetensors({"w": NEW}))
    (tmp_path / "c.safetensors").write_bytes(safetensors({"w": OTHER}))
    server = start_server(tmp_path)
    assert apply(get(server, difference("w", BASE, "b")).body, BASE) == NEW
    assert apply(get(server, difference("w", NEW, "c")).body, NEW) == OTHER


def test_no_base_is_hashed_for_a_client_that_has_left(tmp_path, start_server):
    """The files are holes that take at least four seconds of a processor to hash."""
    length = 8 << 30
    head_of_file = json.dumps({"w": {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}}).encode()
    for name in ("old", "new"):
        with open(tmp_path / f"{name}.safetensors", "wb") as file:
            file.write(len(head_of_file).to_bytes(8, "little") + head_of_file)
            file.truncate(8 + len(head_of_file) + length)
    server = start_server(tmp_path)
    running = 'ztserve_worker_jobs_running{kind="long"}'
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(f"GET {difference('w', b'')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        eventually(lambda: metrics(server)[running] > 0)
        # Leaves with a reset: a client that only closes its side may still read.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually(lambda: metrics(server)[running] == 0, 120)
    assert cpu_seconds(server) < 2


def test_a_compressed_component_is_a_base_by_its_decoded_bytes(tmp_path, start_server):
    (tmp_path / "a.zt").write_bytes(zt2({"w": dense_encoded(BASE, seekable(BASE), "zt.zstd-seekable/1", digest="sha256")}))
    (tmp_path / "b.zt").write_bytes(zt1({"w": dense(NEW)}))
    server = start_server(tmp_path)
    assert apply(get(server, difference("w", BASE, "b")).body, BASE) == NEW


def test_unknown_bases_are_not_found(server):
    answer = get(server, difference("w", b"nobody has this"))
    assert_problem(answer, 404, "base-not-found")
    assert "digest" in answer.json()["detail"]


def test_bases_of_another_length_are_not_found(server):
    answer = get(server, difference("w", SMALL))
    assert_problem(answer, 404, "base-not-found")
    assert "length" in answer.json()["detail"]
    assert_problem(get(server, difference("unlengthed", SMALL)), 404, "base-not-found")


def test_a_damaged_base_is_not_used(tmp_path, start_server):
    damaged = zt1({"w": dense(BASE)}).flipped("w", at=1000)
    (tmp_path / "a.zt").write_bytes(damaged)
    (tmp_path / "b.zt").write_bytes(zt1({"w": dense(NEW)}))
    server = start_server(tmp_path)
    assert_problem(get(server, difference("w", BASE, "b")), 404, "base-not-found")
    publish(tmp_path / "c.zt", zt1({"w": dense(BASE)}))
    answer = eventually(lambda: (found := get(server, difference("w", BASE, "b"))).status == 200 and found)
    assert apply(answer.body, BASE) == NEW


def test_a_damaged_component_is_not_sent(tmp_path, start_server):
    (tmp_path / "a.zt").write_bytes(zt1({"w": dense(BASE)}))
    (tmp_path / "b.zt").write_bytes(zt1({"w": dense(NEW)}).flipped("w", at=1000))
    server = start_server(tmp_path, "--verify", "lazy")
    assert_problem(get(server, difference("w", BASE, "b")), 500, "corrupt-component")


def test_a_base_disappears_with_its_model(tmp_path, start_server):
    (tmp_path / "a.zt").write_bytes(zt1({"w": dense(BASE)}))
    (tmp_path / "b.zt").write_bytes(zt1({"w": dense(NEW)}))
    server = start_server(tmp_path)
    assert get(server, difference("w", BASE, "b")).status == 200
    (tmp_path / "a.zt").unlink()
    eventually(lambda: get(server, difference("w", BASE, "b")).status == 404)


def test_clients_cannot_use_bases_that_they_may_not_read(tmp_path, start_server):
    everybody, team = Client("everybody", "read"), Client("team", "read", "team/*")
    root = tmp_path / "root"
    (root / "team").mkdir(parents=True)
    (root / "a.zt").write_bytes(zt1({"w": dense(BASE)}))
    (root / "team/b.zt").write_bytes(zt1({"w": dense(NEW)}))
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", everybody, team))
    asked = difference("w", BASE, "team/b")
    for _ in range(2):
        hidden, unknown = (team.get(server, one) for one in (asked, difference("w", b"x", "team/b")))
        assert_problem(hidden, 404, "base-not-found")
        assert hidden.json()["detail"] == unknown.json()["detail"]
        # Afterwards the difference is in the cache.
        assert everybody.get(server, asked).status == 200


# --- the query ---


GOOD = f"coding=xor-zstd&base=sha256:{sha256(BASE)}"
MEANINGLESS = {
    "no algorithm": f"coding=xor-zstd&base={sha256(BASE)}",
    "upper case": f"coding=xor-zstd&base=sha256:{sha256(BASE).upper()}",
    "short digest": "coding=xor-zstd&base=sha256:00",
    "no base": "coding=xor-zstd",
    "no coding": f"base=sha256:{sha256(BASE)}",
    "unknown coding": f"coding=bsdiff&base=sha256:{sha256(BASE)}",
    "twice": GOOD + "&coding=xor-zstd",
    **{more: f"{GOOD}&{more}" for more in ("slice=0:8", "shard=0/2", "format=npy", "representation=stored", "dtype=f32")},
}


@pytest.mark.parametrize("query", MEANINGLESS)
def test_meaningless_queries_are_refused(server, query):
    assert_problem(get(server, component_path("new", "w") + "?" + MEANINGLESS[query]), 400, "invalid-request")


def test_components_of_unknown_encodings_have_no_difference(server):
    assert_problem(get(server, difference("unknown", BASE)), 422, "unsupported-encoding")


# --- as any representation ---


def test_ranges_address_the_difference(server):
    whole = get(server, difference("w", BASE))
    assert apply(whole.body, BASE) == NEW
    answer = get(server, difference("w", BASE), Range="bytes=100-299")
    assert answer.status == 206 and answer.body == whole.body[100:300]
    assert answer["Content-Range"] == f"bytes 100-299/{len(whole.body)}"
    again = get(server, difference("w", BASE), Range="bytes=-50", If_Range=whole["ETag"])
    assert again.status == 206 and again.body == whole.body[-50:]
    assert get(server, difference("w", BASE), Range="bytes=0-9", If_Range='"other"').body == whole.body


def test_tags_identify_component_and_base(server):
    asked = [difference("w", BASE), difference("w", OTHER), difference("same", BASE), component_path("new", "w")]
    answers = [get(server, one) for one in asked]
    tags = [answer["ETag"] for answer in answers]
    assert len(set(tags)) == 4
    assert apply(answers[0].body, BASE) == apply(answers[1].body, OTHER) == NEW
    assert get(server, asked[0], If_None_Match=tags[0]).status == 304
    assert get(server, asked[1], If_None_Match=tags[0]).status == 200


def test_head_states_what_get_sends(server):
    answer, whole = head(server, difference("w", BASE)), get(server, difference("w", BASE))
    assert answer.status == 200 and answer.body == b""
    for name in ("Content-Length", "ETag", "Repr-Digest", "ZT-Base", "Content-Type", "ZT-Dtype"):
        assert answer[name] == whole[name], name


def test_content_digests_are_of_the_difference(server):
    wanted = {"Want_Content_Digest": "sha-256=10", "Want_Repr_Digest": "sha-256=10"}
    for fields in ({}, {"Range": "bytes=10-20"}):
        answer = get(server, difference("w", BASE), **wanted, **fields)
        assert answer["Content-Digest"] == sha256_field(answer.body)
        assert answer["Repr-Digest"] == sha256_field(NEW)


# --- the cache ---


def test_requests_at_once_get_the_same_difference(server):
    asked = difference("w", OTHER)
    assert len({answer.body for answer in at_once(*[lambda: get(server, asked)] * 8)}) == 1


def test_differences_are_the_same_after_a_restart(tmp_path, start_server):
    for name, data in (("a", BASE), ("b", NEW)):
        (tmp_path / f"{name}.zt").write_bytes(zt1({"w": dense(data)}))
    first = start_server(tmp_path)
    before = get(first, difference("w", BASE, "b"))
    first.stop()
    after = get(start_server(tmp_path), difference("w", BASE, "b"))
    assert (before.body, before["ETag"]) == (after.body, after["ETag"])


def test_a_long_difference_is_kept_in_a_file(tmp_path, start_server):
    """Above 4 MiB; its bytes are sent from the file by ranges."""
    base, new = os.urandom(6 << 20), os.urandom(6 << 20)
    for name, data in (("a", base), ("b", new)):
        (tmp_path / f"{name}.zt").write_bytes(zt1({"w": dense(data)}))
    server = start_server(tmp_path)
    asked = difference("w", base, "b")
    whole = get(server, asked).body
    assert apply(whole, base) == new
    assert get(server, asked, Range="bytes=5000000-5000099").body == whole[5000000:5000100]


# --- earlier commits ---


@pytest.mark.parametrize("make", [lambda data: zt1({"w": dense(data)}), lambda data: safetensors({"w": data})], ids=["stated", "computed"])
def test_an_earlier_commit_has_the_base(tmp_path, start_server, make):
    server = start_server(tmp_path, "--writable", "--keep-versions", "10")
    versions = [changed(BASE, seed=seed) for seed in range(3)]
    for version in versions:
        assert ask(server, "PUT", "/v1/models/org/model/w", {}, make(version)).status in (201, 204)
    for base in versions:
        answer = get(server, difference("w", base, "org/model/w"))
        assert answer.status == 200 and apply(answer.body, base) == versions[-1]
    assert_problem(get(server, difference("w", BASE, "org/model/w")), 404, "base-not-found")


def publish_versions(server, name, versions, make):
    """The commits."""
    commits = []
    for version in versions:
        assert put(server, name, make(version)).status in (201, 204)
        commits.append(head_of(server, name))
    return commits


def as_safetensors(data):
    return safetensors({"w": data})


@pytest.mark.parametrize("name", ["w", "org/model/w"])
@pytest.mark.parametrize("at, base", [(1, 0), (0, 1), (1, 2), (1, 20), (20, 19)])
def test_the_base_of_a_pinned_commit_is_found(tmp_path, start_server, name, at, base):
    """Also if it is old. The digests of kept files are unknown after a restart."""
    versions = [changed(SMALL, seed=seed) for seed in range(21)]
    first = start_server(tmp_path, "--writable", "--keep-versions", "30")
    commits = publish_versions(first, name, versions, as_safetensors)
    first.stop()
    server = start_server(tmp_path, "--writable", "--keep-versions", "30")
    answer = get(server, component(name, commits[at]) + f"?base=sha256:{sha256(versions[base])}&coding=xor-zstd")
    assert answer.status == 200 and apply(answer.body, versions[base]) == versions[at]


def test_a_request_hashes_a_few_commits_and_the_next_one_goes_on(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", "--keep-versions", "30")
    versions = [changed(SMALL, seed=seed) for seed in range(12)]
    publish_versions(server, "org/model/w", versions, as_safetensors)
    asked = difference("w", versions[0], "org/model/w")
    busy = get(server, asked)
    assert_problem(busy, 503, "overloaded")
    assert busy["Retry-After"] == "1"
    answer = get(server, asked)
    assert answer.status == 200 and apply(answer.body, versions[0]) == versions[-1]
    # All digests are known now.
    assert_problem(get(server, difference("w", BASE[:1000], "org/model/w")), 404, "base-not-found")


def test_commits_with_the_same_file_are_hashed_once(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", "--keep-versions", "30")
    versions = [SMALL, changed(SMALL)]
    publish_versions(server, "org/model/w", versions, as_safetensors)
    publish_versions(server, "org/model/other", [changed(SMALL, seed=seed) for seed in range(10)], as_safetensors)
    answer = get(server, difference("w", SMALL, "org/model/w"))
    assert answer.status == 200 and apply(answer.body, SMALL) == versions[-1]
