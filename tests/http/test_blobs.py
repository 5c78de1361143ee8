"""GET /v1/blobs/sha256/{hex}: stored bytes by their SHA-256, as a file states it or as it was found."""

import base64
import hashlib
import os
import shutil

import pytest

from containers import dense, pattern, zstd_dense, zt1, zt2
from wire import assert_problem, ask, component_path, eventually, get, head, verify

ONE = pattern(70_000, seed=41)
TWO = pattern(3_000_000, seed=42)
THREE = pattern(5000, seed=43)
FOUR = pattern(50_000, seed=44)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def blob_path(data):
    return f"/v1/blobs/sha256/{sha256(data)}"


def repr_digest(data):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "m.zt").write_bytes(zt1({"one": dense(ONE), "two": dense(TWO, digest="crc32c"), "z": zstd_dense(FOUR)}))
    (folder / "v2.zt").write_bytes(zt2({"three": dense(THREE, digest="xxh3")}))
    (folder / "none.zt").write_bytes(zt1({"n": dense(pattern(900, seed=45), digest=None)}))
    return share_server(folder)


def stored_zstd(server):
    answer = get(server, component_path("m", "z") + "?representation=stored")
    assert answer.status == 200
    return answer.body


def test_a_stated_digest_is_a_name(server):
    answer = get(server, blob_path(ONE))
    assert answer.status == 200 and answer.body == ONE
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["ETag"] == f'"{sha256(ONE)}"'
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Repr-Digest"] == repr_digest(ONE)
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Last-Modified"] is None


def test_stored_bytes_are_given_as_they_are(server):
    stored = stored_zstd(server)
    answer = get(server, blob_path(stored), Accept_Encoding="zstd")
    assert answer.status == 200 and answer.body == stored and stored != FOUR
    assert answer["Content-Encoding"] is None
    assert_problem(get(server, blob_path(FOUR)), 404, "not-found")


def test_heads_ranges_and_conditions(server):
    whole, without_body = get(server, blob_path(ONE)), head(server, blob_path(ONE))
    for answer in (whole, without_body):
        del answer.fields["X-Request-Id"], answer.fields["Date"]
    assert without_body.status == 200 and without_body.body == b"" and without_body.fields.items() == whole.fields.items()
    part = get(server, blob_path(ONE), Range="bytes=100-199", If_Range=f'"{sha256(ONE)}"')
    assert part.status == 206 and part.body == ONE[100:200] and part["Repr-Digest"] == repr_digest(ONE)
    assert get(server, blob_path(ONE), If_None_Match=f'"{sha256(ONE)}"').status == 304
    assert_problem(get(server, blob_path(ONE), If_Match='"other"'), 412, "precondition-failed")
    assert_problem(get(server, blob_path(ONE), Range="bytes=70000-"), 416, "range-not-satisfiable")


@pytest.mark.parametrize("model, name, data", [("m", "two", TWO), ("v2", "three", THREE)])
def test_a_component_gets_a_blob_name_once_it_is_read(server, model, name, data):
    assert_problem(get(server, blob_path(data)), 404, "not-found")
    assert get(server, component_path(model, name), Range="bytes=0-0").status == 206
    answer = eventually(lambda: (found := get(server, blob_path(data))).status == 200 and found)
    assert answer.body == data and answer["Repr-Digest"] == repr_digest(data)


def test_verification_finds_digests_that_the_file_does_not_state(server):
    data = pattern(900, seed=45)
    verify(server, "none")
    assert eventually(lambda: get(server, blob_path(data)).status == 200)
    assert get(server, blob_path(data)).body == data


@pytest.mark.parametrize(
    "name", [sha256(ONE).upper(), sha256(ONE)[:-1], sha256(ONE) + "0", "g" * 64, "..", "%2e", sha256(ONE)[:-1] + "%00"]
)
def test_other_names_are_invalid(server, name):
    assert_problem(get(server, f"/v1/blobs/sha256/{name}"), 400, "invalid-name")


def test_other_paths_are_not_there(server):
    for path in ("/v1/blobs", "/v1/blobs/sha256", f"/v1/blobs/sha512/{sha256(ONE)}", blob_path(ONE) + "/"):
        assert_problem(get(server, path), 404, "not-found")
    answer = ask(server, "PUT", blob_path(ONE))
    assert_problem(answer, 405, "method-not-allowed")
    assert answer["Allow"] == "GET, HEAD, OPTIONS"


def test_corrupt_bytes_are_refused_and_a_sound_copy_takes_their_place(tmp_path, start_server):
    built = zt1({"w": dense(ONE)})
    (tmp_path / "bad.zt").write_bytes(built.flipped("w", at=1000))
    server = start_server(tmp_path)
    for _ in range(2):
        assert_problem(get(server, blob_path(ONE)), 500, "corrupt-component")
    for name in ("good-1", "good-2"):
        (tmp_path / f"{name}.zt").write_bytes(built)
        eventually(lambda name=name: get(server, component_path(name, "w")).status == 200)
        assert get(server, blob_path(ONE)).body == ONE
    (tmp_path / "worse.zt").write_bytes(built.flipped("w", at=2000))
    eventually(lambda: get(server, component_path("worse", "w")).status == 500)
    assert get(server, blob_path(ONE)).body == ONE


def test_candidates_are_tried_in_turn(tmp_path, start_server):
    """None is checked yet when the blob is asked for: whichever comes first, the sound one is found."""
    built = zt1({"w": dense(ONE)})
    for index in range(6):
        (tmp_path / f"m{index}.zt").write_bytes(built if index == 3 else built.flipped("w", at=100 + index))
    server = start_server(tmp_path)
    answer = get(server, blob_path(ONE))
    assert answer.status == 200 and answer.body == ONE


@pytest.mark.folder("changes to a file that are seen at once")
def test_removed_and_replaced_models_leave(tmp_path, start_server):
    other = zt1({"w": dense(TWO)})
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(ONE)}))
    server = start_server(tmp_path)
    assert get(server, blob_path(ONE)).status == 200
    (tmp_path / "new").write_bytes(other)
    os.replace(tmp_path / "new", tmp_path / "m.zt")
    assert get(server, blob_path(ONE)).status == 404
    eventually(lambda: get(server, blob_path(TWO)).status == 200)
    os.remove(tmp_path / "m.zt")
    assert get(server, blob_path(TWO)).status == 404


def test_found_digests_are_known_after_a_restart(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(TWO, digest="crc32c")}))
    first = start_server(tmp_path)
    assert get(first, component_path("m", "w")).status == 200
    eventually(lambda: get(first, blob_path(TWO)).status == 200)
    assert first.stop() == 0
    second = start_server(tmp_path)
    assert get(second, blob_path(TWO)).body == TWO


@pytest.mark.folder("changes to a file that are seen at once")
def test_a_file_written_to_in_place_is_another(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(THREE, digest=None)}))
    server = start_server(tmp_path)
    verify(server, "m")
    eventually(lambda: get(server, blob_path(THREE)).status == 200)
    with open(tmp_path / "m.zt", "r+b") as file:
        file.seek(64)
        file.write(b"other")
    assert get(server, blob_path(THREE)).status == 404


def test_eager_servers_find_everything(tmp_path, start_server):
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(THREE, digest=None), "x": dense(TWO, digest="crc32c")}))
    shutil.copy(tmp_path / "m.zt", tmp_path / "n.zt")
    server = start_server(tmp_path, "--verify", "eager")
    for data in (TWO, THREE):
        assert eventually(lambda data=data: get(server, blob_path(data)).status == 200)


def test_blobs_are_checked_though_verify_is_off(tmp_path, start_server):
    """Whoever has them keeps them for a year under their digest."""
    (tmp_path / "bad.zt").write_bytes(zt1({"w": dense(ONE)}).flipped("w", at=1000))
    (tmp_path / "good.zt").write_bytes(zt1({"w": dense(FOUR)}))
    server = start_server(tmp_path, "--verify", "off")
    for fields in ({}, {"Range": "bytes=0-9"}):
        answer = get(server, blob_path(ONE), **fields)
        assert_problem(answer, 500, "corrupt-component")
        assert "immutable" not in answer.fields.get("Cache-Control", "")
    assert head(server, blob_path(ONE)).status == 500
    answer = get(server, blob_path(FOUR))
    assert (answer.body, answer["Repr-Digest"]) == (FOUR, repr_digest(FOUR))
    (tmp_path / "copy.zt").write_bytes(zt1({"w": dense(ONE)}))
    assert eventually(lambda: get(server, blob_path(ONE)).status == 200)
    assert get(server, blob_path(ONE)).body == ONE
