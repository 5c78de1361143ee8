"""Reading from a bucket: as from a folder, from each replica alike, with few requests to the store; and changes that others
make to the bucket."""

import http.client
import shutil
import time

import numpy
import pytest

from containers import (
    dense, dense_encoded, dense_in_shard, pattern, seekable, shard_entry, zstd_dense, zt01, zt1, zt10, zt2, zt2_data_shard,
)  # fmt: skip
from corpus_outcomes import corpus_files, expected_outcomes
from wire import (
    Connection, assert_problem, component_path, connect, eventually, get, model_path, read_exactly, read_head, verification, verify,
)  # fmt: skip

MIB = 1 << 20
GRID = numpy.frombuffer(pattern(8 * 12 * 16 * 4, seed=32), "<f4").reshape(8, 12, 16)
LONG = pattern(3 * MIB + 17, seed=33)
# What names a representation, and describes it; Date and the like differ between any two answers.
TELLING = ("Content-Type", "Content-Length", "Content-Range", "Content-Encoding", "ZT-Dtype", "ZT-Shape")
# More than a server reads ahead and the buffers of sockets hold: it has still to fetch when its object is replaced.
BIG_BYTES = 96 * MIB
SMALLEST_CACHE = 64 * MIB


def models():
    """Files by key: each version, each encoding, shards, a broken one and one whose bytes are wrong."""
    grid = dense(GRID.tobytes(), "f32", list(GRID.shape))
    shard = zt2_data_shard(b"in front", LONG)
    two = {"in": dense_in_shard("w", shard.offsets[1], LONG, digest="xxh3"), "own": dense(pattern(5000))}
    frames = dense_encoded(LONG, seekable(LONG), "zt.zstd-seekable/1", digest="xxh3")
    one = zt1({"grid": grid, "long": dense(LONG), "packed": zstd_dense(LONG)}, attributes={"a": [1, 2]})
    return {
        "one.zt": one,
        "org/old-one.zt": zt01({"grid": grid}),
        "org/deep/er.zt": zt10({"grid": grid}),
        "version-2.zt": zt2({"grid": dense(GRID.tobytes(), "f32", list(GRID.shape), digest="xxh3"), "frames": frames}),
        "two.zt": zt2(two, fields={"shards": {"w": shard_entry(shard)}}),
        "two-w.zt": shard,
        "wrong.zt": one.flipped("long", at=2 * MIB),
        "broken.zt": bytes(one[:-20]),
        # A name that is read, though it could not be uploaded.
        "日本語 + (1) %=&.zt": zt1({"grid": grid}),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    for key, data in models().items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def copied(shared_bucket, folder):
    return shared_bucket.below("copied").put_folder(folder)


@pytest.fixture(scope="module")
def local(share_server, folder, tmp_path_factory):
    return share_server(folder, environment={"ZTSERVE_STATE_DIR": str(tmp_path_factory.mktemp("state"))})


@pytest.fixture(scope="module")
def replicas(share_bucket_server, copied):
    return [share_bucket_server(copied), share_bucket_server(copied)]


def listed(server):
    return {one["name"]: one for one in get(server, "/v1/models?limit=1000").json()["models"]}


def without_versions(shown):
    """A model as listed or shown, less what tells one copy of a file from another."""
    source = {key: value for key, value in shown.get("source", {}).items() if key not in ("etag", "modified")}
    rest = {key: value for key, value in shown.items() if key not in ("etag", "modified", "source")}
    return {**rest, "source": source}


def test_listing_is_that_of_the_folder(local, replicas):
    wanted = {name: without_versions(one) for name, one in listed(local).items()}
    assert len(wanted) == 8
    for server in replicas:
        assert {name: without_versions(one) for name, one in listed(server).items()} == wanted


def test_manifests_are_those_of_the_folder_and_equal_on_each_replica(local, replicas):
    for name, one in listed(local).items():
        wanted, *answers = [get(server, model_path(name)) for server in (local, *replicas)]
        for answer in answers:
            assert answer.status == wanted.status == (422 if "error" in one else 200)
        if wanted.status == 200:
            assert without_versions(answers[0].json()) == without_versions(wanted.json())
            assert answers[0].body == answers[1].body
            assert answers[0]["ETag"] == answers[1]["ETag"]
            assert answers[0]["Last-Modified"] == answers[1]["Last-Modified"]


TARGETS = [
    ("one", "grid", ""),
    ("one", "grid", "?slice=2:5,:,3"),
    ("one", "grid", "?slice=-1"),
    ("one", "grid", "?shard=1/4"),
    ("one", "grid", "?shard=2/3&axis=1"),
    ("one", "grid", "?format=npy"),
    ("one", "grid", "?slice=20"),
    ("one", "long", ""),
    ("one", "packed", ""),
    ("one", "packed", "?representation=stored"),
    ("org/old-one", "grid", ""),
    ("org/deep/er", "grid", ""),
    ("version-2", "grid", ""),
    ("version-2", "frames", ""),
    ("two", "in", ""),
    ("two", "own", ""),
]
RANGES = [None, "bytes=-1", f"bytes={MIB - 1}-{MIB}", "bytes=5-9,1000-1999"]


def assert_same_answer(local, replicas, target, fields):
    wanted, *answers = [get(server, target, **fields) for server in (local, *replicas)]
    for answer in answers:
        assert answer.status == wanted.status, (target, fields, answer)
        if wanted.status >= 400:
            continue
        if not wanted["Content-Type"].startswith("multipart/"):
            assert answer.body == wanted.body, (target, fields)
            assert {name: answer.fields[name] for name in TELLING} == {name: wanted.fields[name] for name in TELLING}
            # Known once the bytes have been hashed, which is not at the same time everywhere.
            digests = {one.fields["Repr-Digest"] for one in (wanted, answer) if "Repr-Digest" in one.fields}
            assert len(digests) <= 1
        assert answer["ETag"] == answers[0]["ETag"]


@pytest.mark.parametrize("model, name, rest", TARGETS)
def test_answers_are_those_of_the_folder(local, replicas, model, name, rest):
    for value in RANGES:
        assert_same_answer(local, replicas, component_path(model, name) + rest, {"Range": value} if value else {})


@pytest.mark.parametrize("form", ["safetensors", "zt", "zt2", "npz"])
@pytest.mark.parametrize("model, more", [("one", "&match=[gl]*"), ("one", "&match=grid&shard=1/2"), ("two", ""), ("version-2", "")])
def test_exports_are_those_of_the_folder(local, replicas, model, more, form):
    target = f"{model_path(model)}/export?format={form}{more}"
    for fields in ({}, {"Range": "bytes=100-5000"}, {"Range": "bytes=-3000"}):
        assert_same_answer(local, replicas, target, fields)


def test_files_are_the_objects_bytes(replicas, folder):
    for server in replicas:
        for key in ("one.zt", "two-w.zt", "wrong.zt", "broken.zt"):
            data = (folder / key).read_bytes()
            answer = get(server, f"/files/{key}")
            assert (answer.status, answer.body) == (200, data)
            part = get(server, f"/files/{key}", Range=f"bytes=10-{len(data) - 5}")
            assert (part.status, part.body) == (206, data[10:-4])


def test_tag_of_one_replica_revalidates_at_the_other(replicas):
    for target in (model_path("one"), component_path("one", "long"), f"{model_path('one')}/export?format=npz&match=grid"):
        tag = get(replicas[0], target)["ETag"]
        assert get(replicas[1], target, If_None_Match=tag).status == 304
        assert get(replicas[1], target, If_Range=tag, Range="bytes=0-9").status == 206


def test_blob_is_found_by_its_digest(local, replicas):
    digest = get(local, model_path("one")).json()["objects"]["long"]["components"]["data"]["digest"].removeprefix("sha256:")
    for server in replicas:
        assert get(server, f"/v1/blobs/sha256/{digest}").body == LONG


def test_wrong_bytes_are_never_served(replicas):
    for server in replicas:
        target = component_path("wrong", "long")
        for answer in (get(server, target), get(server, target, Range="bytes=0-9"), get(server, f"{target}?slice=0:9")):
            assert_problem(answer, 500, "corrupt-component")
        assert verify(server, "wrong")["state"] == "failed"
        assert get(server, component_path("wrong", "grid")).body == GRID.tobytes()


def test_right_bytes_verify(replicas):
    for server in replicas:
        for name in ("one", "two", "version-2"):
            assert verify(server, name)["state"] == "verified"


def test_prefix_bounds_what_is_served(bucket, serve_bucket):
    for key in ("m.zt", "a/m.zt", "ab/m.zt", "b.zt"):
        bucket.put(key, zt1({"w": dense(key.encode())}))
    server = serve_bucket(bucket.below("a"))
    assert list(listed(server)) == ["m"]
    assert get(server, component_path("m", "w")).body == b"a/m.zt"


# --- the corpus ---


@pytest.fixture(scope="module")
def corpus_servers(corpus, shared_bucket, share_server, share_bucket_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for path in [*corpus_files(corpus), *corpus.glob("*/**/*.mag")]:
        # A bucket's listing knows models only, so external data of ONNX is not found in one.
        if path.name.startswith("onnx1.23-external"):
            continue
        target = folder / path.relative_to(corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    state = {"ZTSERVE_STATE_DIR": str(tmp_path_factory.mktemp("state"))}
    bucket = shared_bucket.below("corpus").put_folder(folder)
    return share_server(folder, environment=state), share_bucket_server(bucket)


def test_every_file_of_the_corpus_lists_the_same(corpus_servers):
    local, server = corpus_servers
    wanted = {name: without_versions(one) for name, one in listed(local).items()}
    assert len(wanted) > 90
    assert {name: without_versions(one) for name, one in listed(server).items()} == wanted


def test_every_file_of_the_corpus_has_the_same_bytes(corpus_servers):
    compared = 0
    with Connection(corpus_servers[0]) as local, Connection(corpus_servers[1]) as server:
        for name in listed(corpus_servers[0]):
            wanted, answer = [one.ask("GET", model_path(name)) for one in (local, server)]
            assert answer.status == wanted.status, name
            if wanted.status != 200:
                assert answer.json()["detail"] == wanted.json()["detail"]
                continue
            assert without_versions(answer.json()) == without_versions(wanted.json())
            for shown in wanted.json()["objects"].values():
                for component in shown["components"].values():
                    one, other = [each.ask("GET", component["href"]) for each in (local, server)]
                    assert one.status == other.status, component
                    assert one.status != 200 or one.body == other.body
                    compared += one.status == 200
    assert compared > 100


def test_every_outcome_of_the_corpus_is_the_stated_one(corpus, corpus_servers):
    for path, outcome in expected_outcomes(corpus):
        name = str(path.relative_to(corpus).with_suffix(""))
        answer = get(corpus_servers[1], model_path(name))
        if outcome == "reject":
            assert_problem(answer, 422, "invalid-model")
        elif outcome == "verify-fails":
            assert verify(corpus_servers[1], name)["state"] == "failed"
        elif outcome == "data-shard":
            assert_problem(answer, 404, "model-not-found")


# --- requests to the store ---


def test_opening_takes_at_most_three_reads(moto_bucket, meddler, serve_bucket):
    large = {f"t{number}": dense(pattern(MIB, seed=number)) for number in range(20)}
    for key, data in (("v1.zt", zt1(large)), ("v2.zt", zt2(large))):
        bucket = moto_bucket.below(key)
        bucket.put(key, data)
        tally = meddler.counting()
        server = serve_bucket(bucket, endpoint=meddler.endpoint)
        assert len(get(server, model_path(key.removesuffix(".zt"))).json()["objects"]) == 20
        assert 1 <= tally.count("read") <= 3, tally
        assert tally.count("head") == 0, tally
        assert all(one.request.range for one in tally.of("read")), tally
        assert tally.sent_bytes("read") <= 3 * MIB


def test_reading_a_part_fetches_little_more_than_the_part(moto_bucket, meddler, serve_bucket):
    # Without a digest nothing else must be read to know that the part is right.
    bucket = moto_bucket
    data = pattern(40 * MIB, seed=3)
    bucket.put("m.zt", zt1({"w": dense(data, digest=None)}))
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    get(server, model_path("m"))
    tally = meddler.counting()
    answer = get(server, component_path("m", "w"), Range=f"bytes={20 * MIB + 5}-{20 * MIB + 104}")
    assert answer.body == data[20 * MIB + 5 : 20 * MIB + 105]
    assert tally.sent_bytes("read") <= 2 * MIB, tally


def test_every_read_names_the_version_it_wants(moto_bucket, meddler, serve_bucket):
    etag = moto_bucket.put("m.zt", zt1({"w": dense(pattern(10 * MIB))}))
    tally = meddler.counting()
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert get(server, component_path("m", "w")).body == pattern(10 * MIB)
    reads = tally.of("read")
    assert reads
    assert {one.request.fields.get("if-match") for one in reads} <= {f'"{etag}"', etag}


@pytest.mark.waits
def test_a_thousand_small_models_are_listed_and_read(engine, serve_bucket):
    bucket = engine.bucket()
    for number in range(1000):
        bucket.put(f"part-{number // 100}/m{number}.zt", zt1({"w": dense(str(number).encode())}))
    server = serve_bucket(bucket)
    names = eventually(lambda: found if len(found := listed(server)) == 1000 else None)
    assert all("error" not in one for one in names.values())
    with Connection(server) as connection:
        for number in range(0, 1000, 37):
            answer = connection.ask("GET", component_path(f"part-{number // 100}/m{number}", "w"))
            assert answer.body == str(number).encode()


# --- changes that others make ---


def is_served(server, model, data):
    """Not yet, if the download is of a version that the store has lost meanwhile: it is cut off."""
    try:
        answer = get(server, component_path(model, "w"))
    except http.client.IncompleteRead:
        return False
    return answer.status == 200 and answer.body == data


def version_of(data, **options):
    return zt1({"w": dense(data, **options)})


def test_new_changed_and_removed_objects_are_noticed(bucket, serve_bucket):
    bucket.put("stays.zt", version_of(b"stays"))
    bucket.put("changes.zt", version_of(b"first"))
    bucket.put("goes.zt", version_of(b"goes"))
    server = serve_bucket(bucket)
    before = get(server, model_path("stays"))["ETag"]
    bucket.put("new.zt", version_of(b"new"))
    bucket.put("changes.zt", version_of(b"other"))
    bucket.delete("goes.zt")
    eventually(lambda: list(listed(server)) == ["changes", "new", "stays"])
    assert is_served(server, "new", b"new")
    eventually(lambda: is_served(server, "changes", b"other"))
    assert_problem(get(server, model_path("goes")), 404, "model-not-found")
    assert get(server, model_path("stays"))["ETag"] == before


def test_unknown_name_is_looked_for_long_before_the_next_list(bucket, serve_bucket):
    server = serve_bucket(bucket, s3__poll_s=3600)
    assert get(server, model_path("org/new")).status == 404
    bucket.put("org/new.zt", version_of(b"new"))
    eventually(lambda: is_served(server, "org/new", b"new"))


def test_asking_for_unknown_names_does_not_flood_the_store(moto_bucket, meddler, serve_bucket):
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint, s3__poll_s=3600)
    tally, begun = meddler.counting(), time.monotonic()
    with Connection(server) as connection:
        for number in range(200):
            assert connection.ask("GET", model_path(f"no{number % 3}")).status == 404
    assert tally.count("list") <= 20 + 2 * (time.monotonic() - begun), tally


def test_unchanged_objects_are_not_opened_again(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", version_of(b"same"))
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint)
    assert is_served(server, "m", b"same")
    tally = meddler.counting()
    eventually(lambda: tally.count("list") >= 3)
    assert tally.count("read", "head") == 0, tally


def begin_download(server, target):
    connection = connect(server, receive_buffer=4096)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("how", ["replaced", "deleted"])
@pytest.mark.parametrize("target", [component_path("m", "w"), "/files/m.zt"])
def test_download_of_a_lost_version_is_whole_or_cut_never_mixed(bucket, serve_bucket, how, target):
    old, new = pattern(BIG_BYTES, seed=1), pattern(BIG_BYTES, seed=2)
    bucket.put("m.zt", version_of(old, digest=None))
    server = serve_bucket(bucket, cache__max_bytes=SMALLEST_CACHE)
    expected = old if target.startswith("/v1") else bytes(version_of(old, digest=None))
    with begin_download(server, target) as connection:
        status, fields, body = read_head(connection)
        assert status == 200
        if how == "replaced":
            bucket.put("m.zt", version_of(new, digest=None))
        else:
            bucket.delete("m.zt")
        body = read_exactly(connection, int(fields["content-length"]), body)
    assert body == expected[: len(body)]
    if how == "replaced":
        eventually(lambda: is_served(server, "m", new))
    else:
        eventually(lambda: get(server, model_path("m")).status == 404)


def test_answers_after_a_replacement_are_of_one_version_each(bucket, serve_bucket):
    """Whatever was sent is one of the versions, whole; a lost one is 503 with the time after which to ask again."""
    versions = [pattern(3 * MIB, seed=seed) for seed in range(4)]
    bucket.put("m.zt", version_of(versions[0]))
    server = serve_bucket(bucket)
    for data in versions[1:]:
        assert get(server, component_path("m", "w")).status == 200
        bucket.put("m.zt", version_of(data))
        eventually(lambda: one_version(server, versions) == data)


def one_version(server, versions):
    answer = get(server, component_path("m", "w"))
    if answer.status == 503:
        assert_problem(answer, 503, "store-unavailable")
        assert int(answer["Retry-After"]) >= 1
        return None
    assert answer.status == 200
    assert answer.body in versions
    return answer.body


def test_reads_of_an_old_version_that_is_not_cached_fail_and_the_new_one_is_there(bucket, serve_bucket):
    old, new = pattern(8 * MIB, seed=1), pattern(8 * MIB, seed=2)
    bucket.put("m.zt", version_of(old, digest=None))
    # No list will tell of the change: the read itself must notice it.
    server = serve_bucket(bucket, s3__poll_s=3600)
    assert get(server, component_path("m", "w"), Range="bytes=0-99").body == old[:100]
    bucket.put("m.zt", version_of(new, digest=None))
    eventually(lambda: part_of(server, old, new, 5 * MIB) == "new")
    assert get(server, component_path("m", "w")).body == new


def part_of(server, old, new, at):
    answer = get(server, component_path("m", "w"), Range=f"bytes={at}-{at + 99}")
    if answer.status == 503:
        return None
    assert answer.body in (old[at : at + 100], new[at : at + 100])
    return "new" if answer.body == new[at : at + 100] else "old"


def test_names_that_are_no_models_are_left_out(bucket, serve_bucket):
    for key in ("a.zt", ".hidden.zt", "x/.hidden/m.zt", "notes.txt", "x/\ty.zt", ".ztserve/claims/abc.zt"):
        bucket.put(key, version_of(key.encode()))
    server = serve_bucket(bucket)
    assert list(listed(server)) == ["a"]
    assert get(server, "/files/.ztserve/claims/abc.zt").status in (400, 403, 404)
    assert get(server, model_path(".ztserve/claims/abc")).status == 400


def test_list_and_verification_need_no_read_of_the_store(moto_bucket, meddler, serve_bucket):
    moto_bucket.put("m.zt", version_of(b"m"))
    server = serve_bucket(moto_bucket, endpoint=meddler.endpoint, s3__poll_s=3600)
    assert is_served(server, "m", b"m")
    tally = meddler.counting()
    for _ in range(20):
        assert list(listed(server)) == ["m"]
        assert verification(server, "m")["state"] in ("unverified", "verified")
        assert get(server, model_path("m")).status == 200
    assert tally.seen == []
