"""Digests are checked before the first byte is sent; wrong bytes are never served, in any form.

Lazy (the default), eager and no verification, POST, what is remembered, and the state as JSON.
"""

import os
import shutil

import pytest

from containers import Component, Object, dense, dense_encoded, digest_text, impossible_digests, pattern, seekable, zstd_dense, zt01, zt1
from containers import zt10, zt2
from wire import ask, assert_problem, component_path, eventually, get, manifest, model_path, sha256_field, verification, verify

DATA = pattern(200_000, seed=9)
MAKERS = {
    "v01-crc32c": lambda: zt01({"w": dense(DATA, digest="crc32c")}),
    "v01-sha256": lambda: zt01({"w": dense(DATA, digest="sha256")}),
    "v01-big": lambda: zt01({"w": dense(DATA, "f32", digest="crc32c", fields={"data_endianness": "big"})}),
    "v10-crc32c": lambda: zt10({"w": dense(DATA, digest="crc32c")}),
    "v11-sha256": lambda: zt1({"w": dense(DATA)}, version="1.1.0"),
    "v12-sha256": lambda: zt1({"w": dense(DATA)}),
    "v12-crc32c": lambda: zt1({"w": dense(DATA, digest="crc32c")}),
    "v12-zstd": lambda: zt1({"w": zstd_dense(DATA, digest="crc32c")}),
    "v2-xxh3": lambda: zt2({"w": dense(DATA, digest="xxh3")}),
    "v2-sha256": lambda: zt2({"w": dense(DATA, digest="sha256")}),
    "v2-seekable": lambda: zt2({"w": dense_encoded(DATA, seekable(DATA), "zt.zstd-seekable/1", digest="xxh3")}),
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name, make in MAKERS.items():
        built = make()
        (folder / f"{name}.good.zt").write_bytes(built)
        (folder / f"{name}.bad.zt").write_bytes(built.flipped("w", at=1000))
    return share_server(folder)


def bad(name, query=""):
    return component_path(f"{name}.bad", "w") + query


def assert_never_served(answer):
    assert_problem(answer, 500, "corrupt-component")
    assert len(answer.body) < 2000


@pytest.mark.parametrize("name", MAKERS)
def test_right_bytes_are_served(server, name):
    answer = get(server, component_path(f"{name}.good", "w"), Range="bytes=4-7")
    assert answer.status == 206
    whole = get(server, component_path(f"{name}.good", "w"))
    assert whole.status == 200 and len(whole.body) == len(DATA)
    if name != "v01-big":
        assert whole.body == DATA


@pytest.mark.parametrize("name", MAKERS)
def test_flipped_bit_is_an_error_and_never_the_bytes(server, name):
    assert_never_served(get(server, bad(name)))
    for value in ("bytes=0-0", "bytes=1000-1000"):
        assert_never_served(get(server, bad(name), Range=value))
    tag = get(server, component_path(f"{name}.good", "w"))["ETag"]
    assert_never_served(get(server, bad(name), If_Range=tag, Range="bytes=0-0"))
    assert ask(server, "HEAD", bad(name)).status == 500
    if name != "v2-seekable":
        assert_never_served(get(server, bad(name, "?representation=stored")))
        assert_never_served(get(server, bad(name, "?representation=stored"), Range="bytes=0-0"))


def test_other_components_of_a_corrupt_file_are_served(start_server, tmp_path):
    built = zt1({"w": dense(DATA), "x": dense(pattern(100))})
    (tmp_path / "m.zt").write_bytes(built.flipped("w"))
    server = start_server(tmp_path)
    assert_never_served(get(server, component_path("m", "w")))
    assert get(server, component_path("m", "x")).body == pattern(100)
    assert manifest(server, "m")["objects"]
    assert get(server, "/files/m.zt").body == built.flipped("w")
    eventually(lambda: any("corrupt" in line or "digest" in line for line in server.log_lines))


def test_state_of_a_model_before_and_after(start_server, tmp_path):
    objects = {
        "good": dense(pattern(1000)),
        "none": dense(pattern(100), digest=None),
        "unknown": dense(pattern(10), digest="md5:00112233445566778899aabbccddeeff"),
        "wrong": dense(pattern(500), digest="crc32c:0x00000000"),
    }
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    server = start_server(tmp_path)
    assert verification(server, "m")["state"] == "unverified"
    state = verify(server, "m")
    assert state == {
        "state": "failed",
        "components": {"total": 4, "verified": 1, "failed": 1, "unsupported": 1, "undigested": 1},
        "bytes": {"total": state["bytes"]["hashed"], "hashed": state["bytes"]["hashed"]},
        "failures": [
            {"object": "wrong", "component": "data", "expected": "crc32c:0x00000000", "actual": digest_text("crc32c", pattern(500))}
        ],
    }
    assert 1500 <= state["bytes"]["hashed"] <= 1610
    assert get(server, component_path("m", "unknown")).body == pattern(10)
    assert get(server, component_path("m", "none")).body == pattern(100)
    assert_never_served(get(server, component_path("m", "wrong")))


def test_post_finds_every_wrong_one_of_many_components(start_server, tmp_path):
    """Several are hashed at once: long beside short, right beside wrong, SHA-256 beside others."""
    data = {f"o{i:02}": pattern([300, 70_000, 400_000, 1_500_000][i % 4] + i) for i in range(60)}
    wrong = [f"o{i:02}" for i in (0, 7, 18, 19, 20, 43, 59)]
    kinds = ["sha256", "sha256", "sha256", "crc32c", "xxh3"]
    objects = {name: dense(part, digest=digest_text(kinds[i % 5], part + b"x" * (name in wrong))) for i, (name, part) in enumerate(data.items())}
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    server = start_server(tmp_path)
    for _ in range(2):
        state = verify(server, "m")
        assert state["components"] == {"total": 60, "verified": 53, "failed": 7, "unsupported": 0, "undigested": 0}
        assert state["bytes"]["hashed"] == state["bytes"]["total"]
        found = {failure["object"]: failure["actual"] for failure in state["failures"]}
        assert found == {name: digest_text(kinds[int(name[1:]) % 5], data[name]) for name in wrong}
    for name, part in data.items():
        answer = get(server, component_path("m", name))
        assert answer.status == 500 if name in wrong else answer.body == part


@pytest.mark.parametrize("name", MAKERS)
def test_post_finds_the_wrong_components(server, name):
    assert verify(server, f"{name}.good")["state"] == "verified"
    state = verify(server, f"{name}.bad")
    assert state["state"] == "failed"
    assert state["components"] == {"total": 1, "verified": 0, "failed": 1, "unsupported": 0, "undigested": 0}
    (failure,) = state["failures"]
    assert (failure["object"], failure["component"]) == ("w", "data")
    assert failure["expected"] == manifest(server, f"{name}.bad")["objects"]["w"]["components"]["data"]["digest"]


def test_post_of_a_missing_or_unreadable_model(server, folder):
    assert_problem(ask(server, "POST", f"{model_path('none')}/verification"), 404, "model-not-found")
    assert_problem(get(server, f"{model_path('none')}/verification"), 404, "model-not-found")


def test_digest_over_bytes_that_cannot_be_decoded_is_unsupported(start_server, tmp_path):
    part = Component(b"12345678", encoding="x.future/1", decoded=b"1234", digest="xxh3")
    (tmp_path / "m.zt").write_bytes(zt2({"w": Object([4], {"data": part})}))
    server = start_server(tmp_path)
    components = verify(server, "m")["components"]
    assert (components["verified"], components["failed"], components["unsupported"]) == (0, 0, 1)
    assert get(server, component_path("m", "w") + "?representation=stored").body == b"12345678"


def test_with_verification_off_any_bytes_are_served(start_server, tmp_path):
    built = MAKERS["v12-sha256"]()
    (tmp_path / "m.zt").write_bytes(built.flipped("w"))
    server = start_server(tmp_path, "--verify", "off")
    answer = get(server, component_path("m", "w"))
    assert answer.status == 200
    assert answer.body == bytes([DATA[0] ^ 1]) + DATA[1:]
    assert verification(server, "m")["state"] == "unverified"


def test_off_states_no_digest_that_was_not_checked(start_server, tmp_path):
    """Neither Repr-Digest nor Content-Digest; one that the client wants is computed from the bytes."""
    sent = bytes([DATA[0] ^ 1]) + DATA[1:]
    (tmp_path / "v12.zt").write_bytes(MAKERS["v12-sha256"]().flipped("w"))
    (tmp_path / "v2.zt").write_bytes(MAKERS["v2-sha256"]().flipped("w"))
    server = start_server(tmp_path, "--verify", "off")
    right = sha256_field(sent)
    for model in ("v12", "v2"):
        plain = get(server, component_path(model, "w"))
        assert plain.body == sent and "Repr-Digest" not in plain.fields, model
        stored = get(server, component_path(model, "w") + "?representation=stored")
        assert stored.body == sent and "Repr-Digest" not in stored.fields, model
        wanted = get(server, component_path(model, "w"), Want_Repr_Digest="sha-256=10", Want_Content_Digest="sha-256=10")
        assert (wanted.body, wanted["Repr-Digest"], wanted["Content-Digest"]) == (sent, right, right), model


def test_eager_verifies_from_load_on(start_server, tmp_path):
    (tmp_path / "good.zt").write_bytes(MAKERS["v12-sha256"]())
    (tmp_path / "bad.zt").write_bytes(MAKERS["v2-xxh3"]().flipped("w"))
    server = start_server(tmp_path, "--verify", "eager")
    eventually(lambda: get(server, "/readyz").status == 200)
    assert verification(server, "good")["state"] == "verified"
    assert verification(server, "bad")["state"] == "failed"
    assert_never_served(get(server, component_path("bad", "w")))
    (tmp_path / "late.zt").write_bytes(MAKERS["v12-crc32c"]())
    eventually(lambda: get(server, model_path("late")).status == 200)
    eventually(lambda: verification(server, "late")["state"] == "verified")


def test_result_is_remembered_across_restarts(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(MAKERS["v12-sha256"]())
    (tmp_path / "bad.zt").write_bytes(MAKERS["v12-sha256"]().flipped("w"))
    first = start_server(tmp_path)
    state, wrong = verify(first, "m"), verify(first, "bad")
    assert first.stop() == 0
    second = start_server(tmp_path)
    again = verification(second, "m")
    assert (again["state"], again["components"]) == (state["state"], state["components"])
    assert_never_served(get(second, component_path("bad", "w")))
    assert wrong["state"] == "failed"


@pytest.mark.folder("state in a folder of its own")
def test_result_is_kept_in_the_folder_for_state(start_server, tmp_path):
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "m.zt").write_bytes(MAKERS["v12-sha256"]())
    environment = {"ZTSERVE_STATE_DIR": str(state)}
    first = start_server(root, environment=environment)
    verify(first, "m")
    assert first.stop() == 0
    assert [entry.name for entry in root.iterdir()] == ["m.zt"]
    second = start_server(root, environment=environment)
    assert verification(second, "m")["state"] == "verified"
    assert second.stop() == 0
    shutil.rmtree(state)
    assert verification(start_server(root, environment=environment), "m")["state"] == "unverified"


def change_behind_the_back(path):
    """Turns one bit and sets the times back: size, mtime and inode are as before."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    at = data.index(DATA[:16])
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([data[at] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("name", ["v12-sha256", "v2-xxh3"])
def test_change_with_the_old_mtime_is_found_after_a_restart(start_server, tmp_path, name):
    path = tmp_path / "m.zt"
    path.write_bytes(MAKERS[name]())
    first = start_server(tmp_path)
    assert verify(first, "m")["state"] == "verified"
    assert first.stop() == 0
    change_behind_the_back(path)
    second = start_server(tmp_path)
    assert verification(second, "m")["state"] == "unverified"
    assert_never_served(get(second, component_path("m", "w")))


def refused_and_never_changed(server):
    """Whether the component is refused; until then it is the old bytes or nothing."""
    answer = get(server, component_path("m", "w"))
    assert answer.status == 500 or answer.body == DATA
    return answer.status == 500


@pytest.mark.parametrize("read_before", [True, False])
def test_change_with_the_old_mtime_is_found_while_serving(start_server, tmp_path, read_before):
    path = tmp_path / "m.zt"
    path.write_bytes(MAKERS["v12-sha256"]())
    server = start_server(tmp_path)
    if read_before:
        assert get(server, component_path("m", "w")).body == DATA
    change_behind_the_back(path)
    eventually(lambda: refused_and_never_changed(server))


def test_content_rules_fail_verification(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt2({"flags": dense(b"\x00\x02", "u8", [2], type="bool", digest="xxh3")}))
    server = start_server(tmp_path)
    assert verify(server, "m")["state"] == "failed"
    state = verify(server, "m")
    assert state["components"] == {"total": 1, "verified": 0, "failed": 1, "unsupported": 0, "undigested": 0}
    assert [failure["component"] for failure in state["failures"]] == ["data"]
    assert get(server, component_path("m", "flags")).body == b"\x00\x02"
    assert server.stop() == 0
    again = verification(start_server(tmp_path), "m")
    assert (again["state"], again["components"], again["failures"]) == (state["state"], state["components"], state["failures"])


def test_digest_that_no_bytes_can_have_is_a_mismatch(start_server, tmp_path):
    cases = impossible_digests()
    for number, (build, digest) in enumerate(cases):
        (tmp_path / f"m{number}.zt").write_bytes(build({"w": dense(b"1", digest=digest)}))
    server = start_server(tmp_path)
    for number, (_, digest) in enumerate(cases):
        name = f"m{number}"
        fresh = verification(server, name)
        assert fresh["components"] == {"total": 1, "verified": 0, "failed": 0, "unsupported": 0, "undigested": 0}
        assert_never_served(get(server, component_path(name, "w")))
        state = verify(server, name)
        assert state["state"] == "failed"
        assert state["components"]["failed"] == 1
        (failure,) = state["failures"]
        assert failure["expected"] == digest
        assert failure["actual"] == digest_text(digest.split(":")[0], b"1")


@pytest.mark.parametrize("digest", ["xxh3:0000000000000000", "md5:00", None])
def test_component_that_fails_in_two_ways_is_counted_once(start_server, tmp_path, digest):
    objects = {"flags": dense(b"\x00\x02", "u8", [2], type="bool", digest=digest), "good": dense(b"1", digest="xxh3")}
    (tmp_path / "m.zt").write_bytes(zt1(objects))
    server = start_server(tmp_path)
    for _ in range(2):
        state = verify(server, "m")
        assert state["components"] == {"total": 2, "verified": 1, "failed": 1, "unsupported": 0, "undigested": 0}
        assert {failure["object"] for failure in state["failures"]} == {"flags"}
