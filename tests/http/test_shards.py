"""zTensor 2 models over several files: where shards are found, the error while one is missing, and that what is
served is always of one version of all of them."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime

import pytest

from containers import Object, crc32c, dense, dense_in_shard, digest_text, in_shard, pattern, seekable, shard_entry, zt2, zt2_data_shard
from uploads import put
from wire import assert_problem, component_path, connect, eventually, get, manifest, model_path, publish, read_exactly, read_head
from wire import verification, verify

DATA = pattern(100_000, seed=21)
OWN = pattern(5_000, seed=22)
# More than the socket buffers of both ends hold, so that the server is still sending when the file is removed.
BIG_BYTES = 24 << 20


def model_of(shards, objects, **options):
    """A model; `shards` has each shard's file by its name."""
    return zt2(objects, fields={"shards": {name: shard_entry(file) for name, file in shards.items()}}, **options)


def pair(data=DATA, **options):
    """A data shard "w", and a model with one object in it and one of its own."""
    shard = zt2_data_shard(b"in front", data)
    inside = dense_in_shard("w", shard.offsets[1], data, **{"digest": "xxh3", **options})
    return shard, model_of({"w": shard}, {"in": inside, "own": dense(OWN)})


def content(server, model, name="in"):
    answer = get(server, component_path(model, name))
    return answer.body if answer.status == 200 else answer.status


def entry_of(server, name):
    found = [model for model in get(server, "/v1/models").json()["models"] if model["name"] == name]
    return found[0] if found else None


def is_missing(server, name, shard="w"):
    answer = get(server, model_path(name))
    return answer.status == 422 and f"shard {shard} is missing" in answer.json()["detail"]


@pytest.fixture
def server(start_server, tmp_path):
    return start_server(tmp_path)


@pytest.fixture
def writable(start_server, tmp_path):
    return start_server(tmp_path, "--writable")


def serve(start_server, folder, **files):
    """Writes files (`-` for `__`) and serves them."""
    for name, data in files.items():
        (folder / f"{name.replace('__', '-')}.zt").write_bytes(data)
    return start_server(folder)


def test_model_over_three_files_is_served_as_one(start_server, tmp_path):
    first, second = zt2_data_shard(DATA), zt2_data_shard(b"x", DATA[::-1])
    packed = seekable(DATA)
    third = zt2_data_shard(packed)
    objects = {
        "a": dense_in_shard("one", first.offsets[0], DATA),
        "b": dense_in_shard("t.w-o_2", second.offsets[1], DATA[::-1]),
        "c": Object([len(DATA)], {"data": in_shard("z", third.offsets[0], packed, encoding="zt.zstd-seekable/1", decoded=DATA)}),
    }
    files = {"one": first, "t.w-o_2": second, "z": third}
    for name, file in files.items():
        (tmp_path / f"m-{name}.zt").write_bytes(file)
    (tmp_path / "m.zt").write_bytes(model_of(files, objects))
    server = start_server(tmp_path)
    assert [content(server, "m", name) for name in "abc"] == [DATA, DATA[::-1], DATA]
    stored = get(server, component_path("m", "c") + "?representation=stored")
    assert stored.body == packed
    part = get(server, component_path("m", "a"), Range="bytes=99990-")
    assert (part.status, part.body) == (206, DATA[99_990:])
    shown = manifest(server, "m")["objects"]["b"]["components"]["data"]
    assert (shown["shard"], shown["offset"]) == ("t.w-o_2", second.offsets[1])


def test_shards_in_a_folder_are_found_there(start_server, tmp_path):
    shard, model = pair()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "m.zt").write_bytes(model)
    (tmp_path / "deep" / "m-w.zt").write_bytes(shard)
    (tmp_path / "m.zt").write_bytes(model)
    server = start_server(tmp_path)
    assert content(server, "deep/m") == DATA
    assert is_missing(server, "m")


def test_data_shards_are_files_but_no_models(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    assert [entry["name"] for entry in get(server, "/v1/models").json()["models"]] == ["m"]
    assert get(server, model_path("m-w")).status == 404
    assert get(server, "/files/m-w.zt").body == shard
    assert get(server, "/files/m.zt").body == model


def test_shard_with_a_manifest_is_a_model_too(start_server, tmp_path):
    whole = zt2({"w": dense(DATA)})
    model = model_of({"w": whole}, {"in": dense_in_shard("w", whole.offsets["w", "data"], DATA)})
    server = serve(start_server, tmp_path, m=model, m__w=whole)
    assert [entry["name"] for entry in get(server, "/v1/models").json()["models"]] == ["m", "m-w"]
    assert content(server, "m") == content(server, "m-w", "w") == DATA


@pytest.mark.folder("shards that are found by their content")
def test_tables_of_shards_in_shards_are_not_followed(start_server, tmp_path):
    """A file whose own shards are missing is still a container."""
    whole = zt2({"w": dense(DATA), "x": dense_in_shard("gone", 4096, b"1")}, fields={
        "shards": {"gone": {"size": 5000, "digest": "xxh3:0000000000000000"}},
    })  # fmt: skip
    model = model_of({"w": whole}, {"in": dense_in_shard("w", whole.offsets["w", "data"], DATA)})
    server = serve(start_server, tmp_path, m=model, other=whole)
    assert content(server, "m") == DATA
    assert is_missing(server, "other", "gone")


# --- missing ones ---


def test_missing_shard_is_named_and_the_file_is_served(start_server, tmp_path):
    model = pair()[1]
    server = serve(start_server, tmp_path, m=model)
    problem = assert_problem(get(server, model_path("m")), 422, "invalid-model")
    assert problem["detail"] == "shard w is missing"
    assert_problem(get(server, component_path("m", "own")), 422, "invalid-model")
    entry = entry_of(server, "m")
    assert entry["error"] == {"code": "invalid-model", "detail": "shard w is missing"}
    assert entry["objects"] is None and entry["version"] is None
    assert get(server, "/files/m.zt").body == model


def test_shard_that_is_copied_in_later_makes_the_model_readable(server, tmp_path):
    shard, model = pair()
    publish(tmp_path / "m.zt", model)
    eventually(lambda: is_missing(server, "m"))
    before = entry_of(server, "m")["etag"]
    shutil.copyfile(publish_aside(tmp_path, shard), tmp_path / "m-w.zt")
    eventually(lambda: content(server, "m") == DATA)
    assert entry_of(server, "m")["etag"] != before
    assert "error" not in entry_of(server, "m")


def publish_aside(folder, data):
    aside = folder / ".aside"
    aside.write_bytes(data)
    return aside


@pytest.mark.parametrize("order", [("m-w", "m"), ("m", "m-w")])
def test_files_may_be_put_in_any_order(writable, order):
    shard, model = pair()
    files = {"m": model, "m-w": shard}
    assert [put(writable, name, files[name]).status for name in order] == [201, 201]
    # At once: an upload takes effect before its answer.
    assert content(writable, "m") == DATA


def test_put_of_a_model_says_no_tag_that_lasts_past_its_shards(writable):
    shard, model = pair()
    tag = put(writable, "m", model)["ETag"]
    assert put(writable, "m-w", shard).status == 201
    assert get(writable, model_path("m"))["ETag"] != tag


def test_removed_shard_makes_the_model_unreadable(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    assert content(server, "m") == DATA
    (tmp_path / "m-w.zt").unlink()
    eventually(lambda: is_missing(server, "m"))
    publish(tmp_path / "m-w.zt", shard)
    eventually(lambda: content(server, "m") == DATA)


def test_more_shards_than_are_served_are_reported(start_server, tmp_path):
    entry = {"size": 48, "digest": "xxh3:0000000000000000"}
    model = zt2({"own": dense(OWN)}, fields={"shards": {f"s{number}": entry for number in range(1025)}})
    problem = assert_problem(get(serve(start_server, tmp_path, m=model), model_path("m")), 422, "invalid-model")
    assert problem["detail"].startswith("1025 shards are more than the 1024")


@pytest.mark.folder("times of files")
def test_date_is_that_of_the_file_that_changed_last(start_server, tmp_path):
    shard, model = pair()
    (tmp_path / "m.zt").write_bytes(model)
    (tmp_path / "m-w.zt").write_bytes(shard)
    os.utime(tmp_path / "m.zt", (1_700_000_000, 1_700_000_000))
    os.utime(tmp_path / "m-w.zt", (1_700_086_400, 1_700_086_400))
    server = start_server(tmp_path)
    date = get(server, component_path("m", "in"))["Last-Modified"]
    assert parsedate_to_datetime(date).timestamp() == 1_700_086_400
    asked = "Tue, 14 Nov 2023 23:00:00 GMT"
    assert get(server, component_path("m", "in"), If_Modified_Since=asked).status == 200
    assert get(server, component_path("m", "in"), If_Modified_Since=date).status == 304


# --- wrong ones ---


def test_shard_of_another_size_is_refused(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, m__w=zt2_data_shard(DATA + bytes(5000)))
    problem = assert_problem(get(server, model_path("m")), 422, "invalid-model")
    assert problem["rule"] == "zt2 §9 ShardIdentity"
    assert problem["detail"].startswith("shard w has ")
    assert "error" in entry_of(server, "m")
    publish(tmp_path / "m-w.zt", shard)
    eventually(lambda: content(server, "m") == DATA)


def test_shard_that_is_not_a_container_is_refused(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, m__w=shard[:-1] + b"x")
    problem = assert_problem(get(server, model_path("m")), 422, "invalid-model")
    assert problem["rule"] == "zt2 §1 FooterMagic"
    assert problem["detail"].startswith("shard w: the file is cut off, or something was appended")


def test_wrong_bytes_in_a_shard_of_the_right_size_are_never_served(start_server, tmp_path):
    shard, model = pair()
    damaged = shard.with_bit_flipped(shard.offsets[1] + 50_000)
    server = serve(start_server, tmp_path, m=model, m__w=damaged)
    assert_problem(get(server, component_path("m", "in")), 500, "corrupt-component")
    assert_problem(get(server, component_path("m", "in"), Range="bytes=0-9"), 500, "corrupt-component")
    assert content(server, "m", "own") == OWN
    known = verify(server, "m")
    assert known["state"] == "failed"
    assert known["components"] == {"total": 2, "verified": 1, "failed": 1, "unsupported": 0, "undigested": 0}
    assert [failure["object"] for failure in known["failures"]] == ["in"]
    publish(tmp_path / "m-w.zt", shard)
    eventually(lambda: content(server, "m") == DATA)


def test_part_without_a_digest_is_believed_only_in_the_right_shard(start_server, tmp_path):
    """The shard's own digest covers it."""
    shard, model = pair(digest=None)
    server = serve(start_server, tmp_path, m=model, m__w=shard.with_bit_flipped(shard.offsets[0]))
    assert_problem(get(server, component_path("m", "in")), 500, "corrupt-component")
    assert_problem(get(server, component_path("m", "in") + "?representation=stored"), 500, "corrupt-component")
    assert content(server, "m", "own") == OWN
    for known in (verification(server, "m"), verify(server, "m"), verify(server, "m")):
        assert known["state"] == "failed"
        assert known["components"]["failed"] == 1 and known["components"]["undigested"] == 0
        (failure,) = known["failures"]
        assert failure["object"] == "in" and failure["expected"] and failure["actual"] is None
    publish(tmp_path / "m-w.zt", shard)
    eventually(lambda: content(server, "m") == DATA)
    assert verify(server, "m")["components"]["undigested"] == 1
    assert verification(server, "m")["state"] == "verified"


def test_part_without_a_digest_in_a_wrong_shard_fails_before_anybody_asks_for_it(start_server, tmp_path):
    shard, model = pair(digest=None)
    server = serve(start_server, tmp_path, m=model, m__w=shard.with_bit_flipped(shard.offsets[0]))
    known = verify(server, "m")
    assert known["components"]["failed"] == 1
    # Saved behind the answer; the failure is in the file as text.
    stated = known["failures"][0]["expected"].encode()
    eventually(lambda: any(stated in path.read_bytes() for path in (tmp_path / ".ztserve").rglob("verified/[!.]*")))
    server.kill()
    server = start_server(tmp_path)
    known = verification(server, "m")
    assert known["state"] == "failed" and known["components"]["failed"] == 1, known
    assert_problem(get(server, component_path("m", "in")), 500, "corrupt-component")


def test_part_without_a_digest_is_served_unchecked_if_nothing_is_verified(start_server, tmp_path):
    shard, model = pair(digest=None)
    (tmp_path / "m.zt").write_bytes(model)
    (tmp_path / "m-w.zt").write_bytes(shard.with_bit_flipped(shard.offsets[0]))
    assert content(start_server(tmp_path, "--verify", "off"), "m") == DATA


def test_simultaneous_requests_wait_for_one_check_of_the_shard(start_server, tmp_path):
    data = pattern(BIG_BYTES, seed=24)
    shard = zt2_data_shard(data)
    names = [f"t{number}" for number in range(16)]
    at = shard.offsets[0]
    parts = {name: dense_in_shard("w", at, data, digest=None) for name in names}
    server = serve(start_server, tmp_path, m=model_of({"w": shard}, parts), m__w=shard)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda name: get(server, component_path("m", name), Range="bytes=0-9"), names))
    assert {(answer.status, answer.body) for answer in answers} == {(206, data[:10])}


# --- by content ---


@pytest.mark.folder("shards that are found by their content")
def test_shard_of_any_name_is_found_by_size_and_digest(start_server, tmp_path):
    shard, model = pair()
    decoy = shard.with_bit_flipped(shard.offsets[1])
    server = serve(start_server, tmp_path, m=model, a__decoy=decoy, other=shard, zz=decoy)
    assert content(server, "m") == DATA


@pytest.mark.folder("shards that are found by their content")
@pytest.mark.parametrize("digest, found", [("sha256", True), ("xxh3", True), ("crc32c", False)])
def test_shard_is_not_found_by_a_digest_that_could_be_guessed(start_server, tmp_path, digest, found):
    shard = zt2_data_shard(b"in front", DATA)
    inside = dense_in_shard("w", shard.offsets[1], DATA, digest="xxh3")
    text = digest_text(digest, shard).lower() if digest != "crc32c" else f"crc32c:{crc32c(shard):08x}"
    model = zt2({"in": inside}, fields={"shards": {"w": {"size": len(shard), "digest": text}}})
    server = serve(start_server, tmp_path, m=model, other=shard)
    assert is_missing(server, "m") != found
    (tmp_path / "other.zt").rename(tmp_path / "m-w.zt")
    eventually(lambda: content(server, "m") == DATA)


def test_shard_elsewhere_than_in_the_folder_is_not_found(start_server, tmp_path):
    shard, model = pair()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.zt").write_bytes(shard)
    server = serve(start_server, tmp_path, m=model)
    assert is_missing(server, "m")


@pytest.mark.folder("shards that are found by their content")
def test_shard_found_by_content_that_changes_is_no_longer_it(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, other=shard)
    assert content(server, "m") == DATA
    publish(tmp_path / "other.zt", shard.with_bit_flipped(shard.offsets[1]))
    eventually(lambda: is_missing(server, "m"))


# --- versions ---


@pytest.mark.folder("times of files")
def test_replaced_shard_is_served_under_a_new_tag(start_server, tmp_path):
    shard, model = pair(digest=None)
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    before = get(server, component_path("m", "in"))
    tag = get(server, model_path("m"))["ETag"]
    # The same bytes in another file: the model is as valid as before.
    publish(tmp_path / "m-w.zt", shard)
    eventually(lambda: get(server, model_path("m"))["ETag"] != tag)
    after = get(server, component_path("m", "in"))
    assert after.body == before.body == DATA
    assert after["ETag"] != before["ETag"]
    assert get(server, component_path("m", "in"), If_None_Match=before["ETag"]).status == 200


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_shard_that_changes_under_a_download_does_not_show(start_server, tmp_path, how):
    data = pattern(BIG_BYTES, seed=23)
    shard, model = pair(data)
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    assert get(server, component_path("m", "in"), Range="bytes=0-0").status == 206
    with connect(server, receive_buffer=1 << 16) as connection:
        connection.sendall(f"GET {component_path('m', 'in')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        status, _, begun = read_head(connection)
        assert status == 200
        if how == "replaced":
            publish(tmp_path / "m-w.zt", zt2_data_shard(b"in front", data[::-1]))
        else:
            (tmp_path / "m-w.zt").unlink()
        eventually(lambda: content(server, "m") in (500, 422))
        assert read_exactly(connection, BIG_BYTES, begun) == data


def test_verdicts_on_shards_are_remembered_until_they_change(start_server, tmp_path):
    shard, model = pair()
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    assert verify(server, "m")["state"] == "verified"
    assert verification(server, "m")["bytes"] == {"total": len(DATA) + len(OWN), "hashed": len(DATA) + len(OWN)}
    server.stop()
    server = start_server(tmp_path)
    assert verification(server, "m")["state"] == "verified"
    server.stop()
    publish(tmp_path / "m-w.zt", shard.with_bit_flipped(shard.offsets[1]))
    server = start_server(tmp_path)
    assert verification(server, "m")["state"] == "unverified"
    assert content(server, "m") == 500


# --- other things of zTensor 2 ---


def test_leftovers_of_an_earlier_generation_are_ignored(start_server, tmp_path):
    """Appending writes blobs, a manifest and a footer behind the old footer; only the last ones count."""
    first = zt2({"old": dense(DATA, digest="sha256:" + "0" * 64), "w": dense(b"first")})
    second = zt2({"w": dense(b"second"), "x": dense(OWN)}, after=first)
    third = zt2({"w": dense(b"third")}, after=second)
    server = serve(start_server, tmp_path, m=second, n=third)
    assert sorted(manifest(server, "m")["objects"]) == ["w", "x"]
    assert content(server, "m", "w") == b"second"
    assert content(server, "m", "old") == 404
    assert content(server, "n", "w") == b"third"
    assert verify(server, "m")["components"]["total"] == 2
    assert verification(server, "m")["state"] == "verified"


def test_file_appended_to_while_it_is_served_is_noticed(start_server, tmp_path):
    first = zt2({"w": dense(DATA)})
    server = serve(start_server, tmp_path, m=first)
    assert content(server, "m", "w") == DATA
    whole = zt2({"x": dense(OWN)}, after=first)
    with (tmp_path / "m.zt").open("ab") as file:
        file.write(whole[len(first) :])
    eventually(lambda: content(server, "m", "x") == OWN)
    assert content(server, "m", "w") == 404


def test_parts_that_share_a_blob_are_each_served_and_verified(start_server, tmp_path):
    shard = zt2_data_shard(DATA)
    inside = {name: dense_in_shard("w", shard.offsets[0], DATA, digest="xxh3") for name in ("a", "b")}
    first = zt2({"c": dense(OWN)})
    alias = dense(OWN)
    alias.components["data"].fields["blob"] = [first.offsets["c", "data"], len(OWN)]
    model = model_of({"w": shard}, {"c": dense(OWN), "d": alias, **inside})
    server = serve(start_server, tmp_path, m=model, m__w=shard)
    assert [content(server, "m", name) for name in "abcd"] == [DATA, DATA, OWN, OWN]
    known = verify(server, "m")
    assert known["components"] == {"total": 4, "verified": 4, "failed": 0, "unsupported": 0, "undigested": 0}
    tags = {get(server, component_path("m", name))["ETag"] for name in "abcd"}
    assert len(tags) == 4
