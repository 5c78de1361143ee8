"""Objects that are sent in parts before the commit that names them (Git LFS, the transfer "multipart")."""

import random

import pytest

from containers import pattern
from lfs import assert_refused, batch, commit, entry, files_of, lfs_file, objects_of, oid_of, places, post, put, staged, target_of
from uploads import begin_put
from wire import at_once, connect, eventually, read_head, read_until_closed

PART = 100_000
WHOLE = pattern(950_001, seed=9)
COUNT = 10


def started(tmp_path, start_server, **settings):
    environment = {"ZTSERVE_HUB_PART_BYTES": str(PART), **{name: str(value) for name, value in settings.items()}}
    return start_server(tmp_path, "--writable", environment=environment)


@pytest.fixture
def server(tmp_path, start_server):
    return started(tmp_path, start_server)


@pytest.fixture(scope="module")
def shared(folder, share_server):
    """For what leaves nothing behind."""
    return started(folder, share_server)


class Parts:
    """Where to send the parts of an object, and where to end it."""

    def __init__(self, server, content=WHOLE, **members):
        self.server, self.content = server, content
        answer = batch(server, entry(content), **members)
        (only,) = objects_of(answer)
        upload = only["actions"]["upload"]
        self.transfer, self.header, self.end = answer.json()["transfer"], dict(upload["header"]), target_of(upload["href"])
        self.size = int(self.header.pop("chunk_size", 0))
        self.targets = [target_of(self.header[key]) for key in sorted(self.header)]

    def bytes_of(self, part):
        return self.content[part * self.size : (part + 1) * self.size]

    def send(self, part, content=None, **fields):
        return put(self.server, self.targets[part], self.bytes_of(part) if content is None else content, **fields)

    def send_all(self, *, but=()):
        for part in random.Random(1).sample(range(len(self.targets)), len(self.targets)):
            if part not in but:
                assert self.send(part).status == 200

    def complete(self, **members):
        listed = [{"partNumber": part + 1, "etag": f'"{part + 1}"'} for part in range(len(self.targets))]
        return post(self.server, self.end, {"oid": oid_of(self.content), "parts": listed, **members})


# --- what works ---


def test_parts_come_in_any_order(tmp_path, server):
    parts = Parts(server)
    assert parts.transfer == "multipart" and parts.size == PART
    assert sorted(parts.header) == [f"{number:05}" for number in range(1, COUNT + 1)]
    parts.send_all()
    assert_refused(commit(server, lfs_file("f", WHOLE)), 400, "no object with this oid")
    assert parts.complete().status == 200
    assert commit(server, lfs_file("f", WHOLE)).status == 200
    assert files_of(tmp_path) == {"f": WHOLE}
    assert eventually(lambda: places(tmp_path) == [])


def test_parts_come_side_by_side(tmp_path, server):
    parts = Parts(server)
    answers = at_once(*(lambda part=part: parts.send(part) for part in range(COUNT)))
    assert [answer.status for answer in answers] == [200] * COUNT
    assert len({answer["ETag"] for answer in answers}) == COUNT
    (only,) = staged(server)
    assert (only["received"], only["length"]) == (len(WHOLE), len(WHOLE))
    assert parts.complete().status == 200
    assert commit(server, lfs_file("f", WHOLE)).status == 200
    assert files_of(tmp_path) == {"f": WHOLE}


@pytest.mark.parametrize("transfers", [["basic"], ["basic", "xet"], []])
def test_only_those_who_can_send_parts(server, transfers):
    parts = Parts(server, transfers=transfers)
    assert parts.transfer == "basic" and parts.targets == []
    assert put(server, parts.end, WHOLE).status == 200


@pytest.mark.parametrize("length, count", [(PART, 0), (PART + 1, 2), (2 * PART, 2)])
def test_only_what_is_larger_than_a_part(server, length, count):
    assert len(Parts(server, pattern(length)).targets) == count


def test_there_are_never_too_many_parts(tmp_path, start_server):
    server = started(tmp_path, start_server, ZTSERVE_HUB_PART_BYTES=1, ZTSERVE_UPLOAD_MAX_BYTES=1 << 50)
    parts = Parts(server, pattern(10_001))
    assert parts.size == 11 and len(parts.targets) == 910
    many = objects_of(batch(server, *({"oid": f"{number:064x}", "size": 1 << 40} for number in range(1000))))
    assert sum(len(one["actions"]["upload"]["header"]) for one in many) <= 4000 + 1000
    assert all(one["actions"]["upload"]["href"] for one in many)


def test_a_part_may_be_sent_again(tmp_path, server):
    parts = Parts(server)
    assert parts.send(3, b"x" * PART).status == 200
    parts.send_all()
    assert parts.send(9).status == 200
    assert parts.complete().status == 200
    assert commit(server, lfs_file("f", WHOLE)).status == 200
    assert files_of(tmp_path) == {"f": WHOLE}


def test_the_end_may_be_asked_for_again(server):
    parts = Parts(server)
    parts.send_all()
    assert [parts.complete().status for _ in range(3)] == [200] * 3


def test_an_object_of_parts_survives_a_kill_when_it_is_whole(tmp_path, start_server):
    server = started(tmp_path, start_server)
    parts = Parts(server)
    parts.send_all()
    assert parts.complete().status == 200
    server.kill()
    server = started(tmp_path, start_server)
    assert commit(server, lfs_file("f", WHOLE)).status == 200
    assert files_of(tmp_path) == {"f": WHOLE}


# --- what does not ---


def raw_answer(server, target, framing, body=b""):
    with connect(server) as connection:
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\n{framing}\r\nConnection: close\r\n\r\n".encode() + body)
        return read_until_closed(connection)


def begin_part(parts, number, begun):
    """The server has accepted the part when it asks for its bytes."""
    connection = begin_put(parts.server, parts.targets[number], PART, "Expect: 100-continue")
    assert read_head(connection)[0] == 100
    connection.sendall(begun)
    return connection


def test_the_end_without_all_parts_is_refused(tmp_path, server):
    parts = Parts(server)
    assert_refused(parts.complete(), 404, "no part of this object")
    parts.send_all(but=[4, 7])
    assert_refused(parts.complete(), 409, "2 of the 10 parts")
    assert parts.send(4).status == 200
    with begin_part(parts, 7, parts.bytes_of(7)[:-1]):
        assert eventually(lambda: parts.complete().status == 409 and "still arriving" in parts.complete()["X-Error-Message"])
    assert eventually(lambda: "1 of the 10" in parts.complete()["X-Error-Message"])
    assert parts.send(7).status == 200
    assert parts.complete().status == 200


def test_a_part_that_is_cut_off_when_it_comes_again_is_missing(server):
    parts = Parts(server)
    parts.send_all()
    with begin_part(parts, 7, b"x" * 1000):
        assert eventually(lambda: parts.complete().status == 409)
    assert eventually(lambda: "1 of the 10" in parts.complete()["X-Error-Message"])


def test_parts_with_another_sum_are_refused_and_removed(tmp_path, server):
    parts = Parts(server)
    parts.send_all()
    assert parts.send(5, b"x" * PART).status == 200
    assert_refused(parts.complete(), 422, "do not match the SHA-256")
    assert eventually(lambda: places(tmp_path) == [] and staged(server) == [])
    assert_refused(commit(server, lfs_file("f", WHOLE)), 400)
    assert_refused(parts.complete(), 404)
    parts.send_all()
    assert parts.complete().status == 200


@pytest.mark.parametrize("length", [0, PART - 1, PART + 1, 1 << 40])
def test_a_part_of_another_length_is_refused_before_its_bytes(folder, shared, length):
    parts = Parts(shared)
    assert raw_answer(shared, parts.targets[0], f"Content-Length: {length}").startswith(b"HTTP/1.1 422 ")
    assert staged(shared) == [] and places(folder) == []


def test_a_part_of_another_length_in_chunks_is_refused(server):
    parts = Parts(server)
    for length in (PART - 1, PART + 1, 0):
        body = (b"%x\r\n%b\r\n" % (length, b"x" * length) if length else b"") + b"0\r\n\r\n"
        assert raw_answer(server, parts.targets[0], "Transfer-Encoding: chunked", body).startswith(b"HTTP/1.1 422 "), length
    assert_refused(parts.complete(), 409, "10 of the 10")


@pytest.mark.parametrize("change", [("/1?", "/2?"), ("/1?", "/0?"), ("/1?", "/11?"), ("/1?", "/x?"), ("/1?", "?"), ("part_size=1", "part_size=2")])
def test_a_forged_part_is_refused(shared, change):
    target = Parts(shared).targets[0]
    assert change[0] in target
    assert put(shared, target.replace(*change), b"x" * PART).status == 403


@pytest.fixture(scope="module")
def whole(tmp_path_factory, share_server):
    parts = Parts(started(tmp_path_factory.mktemp("whole"), share_server))
    parts.send_all()
    return parts


@pytest.mark.parametrize(
    "members",
    [
        {"oid": oid_of(b"other")},
        {"oid": None},
        {"parts": []},
        {"parts": None},
        {"parts": [{"partNumber": 1, "etag": "x"}] * (COUNT + 1)},
        {"parts": [{"partNumber": 0, "etag": "x"}] * COUNT},
        {"parts": [{"partNumber": COUNT + 1, "etag": "x"}] * COUNT},
        {"parts": [{"partNumber": part, "etag": '"x"'} for part in range(1, COUNT + 1)]},
        {"parts": [{"partNumber": part, "etag": f'"{COUNT + 1 - part}"'} for part in range(1, COUNT + 1)]},
        {"parts": [{"partNumber": 1}] * COUNT},
        {"parts": [1] * COUNT},
    ],
)
def test_an_end_that_names_other_parts(whole, members):
    assert_refused(whole.complete(**members), 400, "parts")


@pytest.mark.parametrize("form", ["{}", 'W/"{}"'])
def test_tags_in_other_forms(whole, form):
    listed = [{"partNumber": part, "etag": form.format(part)} for part in range(1, COUNT + 1)]
    assert whole.complete(parts=listed).status == 200


def test_an_object_that_comes_as_a_whole_has_no_end(server):
    parts = Parts(server, transfers=["basic"])
    assert_refused(parts.complete(), 400, "sent whole")
    assert post(server, parts.end.split("?")[0], {}).status == 403


def test_parts_end_with_the_server(tmp_path, start_server):
    server = started(tmp_path, start_server)
    parts = Parts(server)
    parts.send_all()
    server.kill()
    parts.server = server = started(tmp_path, start_server)
    assert_refused(parts.complete(), 404)
    assert places(tmp_path) == []
    assert parts.send(0).status == 200
    assert_refused(parts.complete(), 409, "9 of the 10")
    parts.send_all(but=[0])
    assert parts.complete().status == 200


def test_parts_expire(tmp_path, start_server):
    server = started(tmp_path, start_server, ZTSERVE_UPLOAD_EXPIRE_S=2)

    def begun():
        """On a busy machine the addresses may have expired before the first part is sent."""
        parts = Parts(server)
        return parts if parts.send(0).status == 200 else None

    parts = eventually(begun)
    assert eventually(lambda: staged(server) == [] and places(tmp_path) == [])
    assert eventually(lambda: parts.complete().status == 403)
    assert_refused(parts.complete(), 403, "has expired")


def test_parts_count_as_one_object(tmp_path, start_server):
    server = started(tmp_path, start_server, ZTSERVE_HUB_STAGED_PER_CLIENT=1)
    parts = Parts(server)
    parts.send_all()
    assert_refused(Parts(server, WHOLE[1:]).send(0), 429, "hub.staged_per_client")
    assert_refused(put(server, Parts(server, b"small").end, b"small"), 429)
    assert parts.complete().status == 200
