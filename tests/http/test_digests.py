"""Repr-Digest and Content-Digest (RFC 9530) of answers: known, remembered, and computed on request."""

import socket

import pytest

from containers import dense, pattern, zstd_dense, zt1
from wire import Connection, assert_problem, assert_rests, component_path, connect, cpu_seconds, eventually, get, head, model_path
from wire import object_path, sha256_field

MIB = 1 << 20
DATA = {"none": b"", "small": pattern(1000, seed=1), "page": pattern(70_001, seed=2), "large": pattern(9 * MIB + 17, seed=3)}
WANTED = "sha-256=10"


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {name: dense(data) for name, data in DATA.items()}
    (folder / "m.zt").write_bytes(zt1({**objects, "packed": zstd_dense(DATA["page"])}))
    return share_server(folder)


def path_of(name):
    return component_path("m", name)


@pytest.mark.parametrize("name", ["small", "page", "large", "packed"])
def test_wanted_digest_of_the_whole(server, name):
    data = DATA.get(name, DATA["page"])
    answer = get(server, path_of(name), Want_Repr_Digest=WANTED, Want_Content_Digest=WANTED)
    asked = head(server, path_of(name), Want_Repr_Digest=WANTED, Want_Content_Digest=WANTED, Range="bytes=0-1")
    assert (answer.status, answer.body, asked.status, asked.body) == (200, data, 200, b"")
    for one in (answer, asked):
        assert one["Repr-Digest"] == one["Content-Digest"] == sha256_field(data) and one["Content-Length"] == str(len(data))


@pytest.mark.parametrize("value", ["bytes=0-0", f"bytes=1-{5 * MIB}", "bytes=5-9,100-70000,0-1"])
@pytest.mark.parametrize("name", ["page", "large", "packed"])
def test_content_digest_is_of_the_bytes_sent(server, name, value):
    answer = get(server, path_of(name), Range=value, Want_Content_Digest=WANTED)
    assert answer.status == 206
    assert answer["Content-Digest"] == sha256_field(answer.body)


def test_a_computed_digest_is_sent_to_every_client(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(zt1({"large": dense(DATA["large"])}))
    other = start_server(tmp_path, "--verify", "off")
    # A background run may have computed it already; then nothing is remembered.
    get(other, path_of("large"), Want_Repr_Digest=WANTED)
    for answer in (get(other, path_of("large")), head(other, path_of("large"))):
        assert answer["Repr-Digest"] == sha256_field(DATA["large"])
    part = get(other, path_of("large"), Range="bytes=0-9")
    assert part["Repr-Digest"] == sha256_field(DATA["large"])


# The grammar is in tests/unit/server/test_digest_fields.c.
@pytest.mark.parametrize("value", ["sha-256=0", "sha-256=11", "md5=10", ""])
def test_an_invalid_want_digest_is_ignored(server, value):
    answer = get(server, path_of("page"), Range="bytes=1-9", Want_Content_Digest=value)
    assert (answer.status, answer.body) == (206, DATA["page"][1:10])
    assert "Content-Digest" not in answer.fields


def test_wishes_may_come_in_several_fields(server):
    with Connection(server) as connection:
        connection.http.putrequest("GET", path_of("page"), skip_accept_encoding=True)
        connection.http.putheader("Range", "bytes=1-9")
        connection.http.putheader("Want-Content-Digest", "sha-512=3")
        connection.http.putheader("Want-Content-Digest", "sha-256=3")
        connection.http.endheaders()
        assert connection.receive()["Content-Digest"] == sha256_field(DATA["page"][1:10])


def test_empty_component_has_the_digest_of_nothing(server):
    answer = get(server, path_of("none"), Want_Content_Digest=WANTED, Want_Repr_Digest=WANTED)
    assert (answer.status, answer.body) == (200, b"")
    assert answer["Content-Digest"] == answer["Repr-Digest"] == sha256_field(b"")


@pytest.mark.parametrize("target", [model_path("m"), object_path("m", "page"), "/v1/models", "/version", "/files/m.zt"])
def test_json_and_files_have_digests_when_wanted(server, target):
    answer = get(server, target, Want_Content_Digest=WANTED, Want_Repr_Digest=WANTED)
    assert answer.status == 200
    assert answer["Content-Digest"] == answer["Repr-Digest"] == sha256_field(answer.body)
    plain = get(server, target)
    assert "Content-Digest" not in plain.fields


def test_answers_without_the_bytes_have_no_sha256_field(server):
    tag = get(server, path_of("page"))["ETag"]
    wishes = {"Want_Content_Digest": WANTED, "Want_Repr_Digest": WANTED}
    short = get(server, path_of("page"), If_None_Match=tag, **wishes)
    outside = get(server, path_of("page"), Range="bytes=99999999-", **wishes)
    assert short.status == 304
    assert_problem(outside, 416, "range-not-satisfiable")
    for answer in (short, outside):
        assert "Content-Digest" not in answer.fields
        assert "Repr-Digest" not in answer.fields


def test_corrupt_component_is_not_hashed(folder, server):
    image = bytearray(zt1({"page": dense(DATA["page"], digest=f"sha256:{'0' * 64}")}))
    (folder / "bad.zt").write_bytes(image)
    eventually(lambda: get(server, model_path("bad")).status == 200)
    answer = get(server, component_path("bad", "page"), Want_Repr_Digest=WANTED)
    assert_problem(answer, 500, "corrupt-component")
    assert "Repr-Digest" not in answer.fields


@pytest.mark.folder("sparse files larger than the memory of the tests")
def test_client_that_leaves_ends_the_hashing(start_server, tmp_path):
    """A sparse file of 64 GiB takes minutes to hash; no other request waits for it."""
    path = tmp_path / "m.zt"
    path.write_bytes(zt1({"w": dense(b"\0" * 4096)}))
    with open(tmp_path / "huge.zt", "wb") as file:
        file.truncate(1 << 36)
    other = start_server(tmp_path, "--verify", "off")
    request = b"GET /files/huge.zt HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\nWant-Repr-Digest: sha-256=10\r\n\r\n"
    clients = [connect(other) for _ in range(20)]
    idle = cpu_seconds(other)
    for client in clients:
        client.sendall(request)
    eventually(lambda: cpu_seconds(other) - idle > 0.2)
    # In the meantime other clients are served, and get their own digests.
    assert get(other, component_path("m", "w"), Want_Repr_Digest=WANTED)["Repr-Digest"] == sha256_field(b"\0" * 4096)
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert_rests(other)


@pytest.mark.folder("sparse files larger than the memory of the tests")
def test_server_ends_in_the_middle_of_hashing(start_server, tmp_path):
    with open(tmp_path / "huge.zt", "wb") as file:
        file.truncate(1 << 36)
    (tmp_path / "config.json").write_text('{"drain_s": 1}')
    other = start_server(tmp_path, "--verify", "off", "--config", str(tmp_path / "config.json"))
    client = connect(other)
    client.sendall(b"GET /files/huge.zt HTTP/1.1\r\nHost: x\r\nWant-Content-Digest: sha-256=10\r\n\r\n")
    eventually(lambda: cpu_seconds(other) > 0.2)
    assert other.stop() == 0
    client.close()
