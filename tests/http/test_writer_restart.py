"""The streaming writer after a kill: exactly what was acknowledged survives."""

import random
import threading
import time

import pytest

from containers import pattern
from wire import NOTICED_S, assert_problem, component_path, connect, eventually, get, model_path
from writers import assert_clean, begin, leftovers


@pytest.fixture(params=["1.2.0", "2"])
def version(request):
    return request.param


def restart(start_server, server, folder, **options):
    server.kill()
    return start_server(folder, "--writable", **options)


def test_acknowledged_components_are_there_after_a_kill(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m", version, attributes={"a": 1}, If_None_Match="*")
    upload.declare("w", shape=[10, 100], attributes={"b": [2]})
    upload.put("w", pattern(1000), shape="10,100")
    upload.put("z", pattern(500) * 100, encoding="zstd")
    upload.put("r", b"old", shape=3)
    upload.put("r", b"newer", shape=5)
    before = upload.status()
    server = restart(start_server, server, tmp_path)
    after = upload.at(server).status()
    assert {**after, "expires": 0} == {**before, "expires": 0}
    assert upload.put("late", pattern(77)).status == 201
    assert upload.commit().status == 201
    assert_clean(tmp_path, "m")
    for name, data in {"w": pattern(1000), "z": pattern(500) * 100, "r": b"newer", "late": pattern(77)}.items():
        assert get(server, component_path("m", name)).body == data


def test_preconditions_survive(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    uploads = [begin(server, "m", If_None_Match="*") for _ in range(2)]
    for upload in uploads:
        upload.put("w", b"x")
    server = restart(start_server, server, tmp_path)
    assert [upload.at(server).commit().status for upload in uploads] == [201, 412]


def test_an_upload_survives_a_failed_commit(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m", version)
    upload.put("w", b"there")
    upload.put("x", b"y" * 300_000)
    upload.put("x", b"")
    assert upload.commit(If_Match='"nothing"').status == 412
    server = restart(start_server, server, tmp_path)
    assert upload.at(server).commit().status == 201
    assert_clean(tmp_path, "m")


def begin_with_hole(server, version):
    """An upload whose commit has to copy the components into another file, because a replaced one left a hole."""
    upload = begin(server, "m", version)
    upload.put("a", b"a" * 200_000)
    upload.put("b", b"b" * 300)
    assert upload.put("a", b"A" * 100).status == 201
    return upload


def assert_goes_on(server, folder, upload):
    objects = upload.status()["objects"]
    assert [objects[name]["components"]["data"]["length"] for name in "ab"] == [100, 300]
    assert upload.commit().status == 201
    assert_clean(folder, "m")
    assert get(server, component_path("m", "a")).body == b"A" * 100


def test_upload_with_holes_survives_a_commit_that_failed_its_preconditions(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin_with_hole(server, version)
    assert upload.commit(If_Match='"nothing"').status == 412
    server = restart(start_server, server, tmp_path)
    assert_goes_on(server, tmp_path, upload.at(server))


def test_upload_with_holes_survives_a_commit_that_made_no_valid_model(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    upload = begin_with_hole(server, "2")
    upload.declare("s", shape=[2, 3], format="zt.sparse_csr/1")
    upload.put("s", b"\x01\x02", "values", dtype="u8", shape=2)
    upload.put("s", b"\x09" * 16, "indices", dtype="u64", shape=2)
    upload.put("s", b"\0" * 24, "indptr", dtype="u64", shape=3)
    assert upload.commit().status == 422
    server = restart(start_server, server, tmp_path)
    upload.at(server)
    assert upload.commit().status == 422
    upload.declare("s", shape=[2], format="dense")
    assert upload.status()["state"] == "open"


def test_declaration_after_a_failed_commit_survives(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin_with_hole(server, version)
    assert upload.commit(If_Match='"nothing"').status == 412
    assert upload.declare("b", shape=[300], attributes={"x": 1}).status == 201
    server = restart(start_server, server, tmp_path)
    assert upload.at(server).status()["objects"]["b"]["attributes"] == {"x": 1}
    assert_goes_on(server, tmp_path, upload)


def drop_last_record(folder, length):
    """Takes a record of so many bytes, its head with them, off the end of the one journal in the folder."""
    (path,) = (folder / path for path in leftovers(folder) if path.endswith("journal"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 4 - length])
    return path.parent


@pytest.mark.folder("the files of uploads in a root")
def test_failed_commit_that_the_journal_does_not_withdraw_removes_nothing(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin_with_hole(server, version)
    assert upload.commit(If_Match='"nothing"').status == 412
    server.kill()
    drop_last_record(tmp_path, 9)
    server = start_server(tmp_path, "--writable")
    assert_goes_on(server, tmp_path, upload.at(server))


@pytest.mark.folder("the files of uploads in a root")
def test_commit_cut_off_after_publication_is_found_out(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin_with_hole(server, version)
    first = upload.commit()
    server.kill()
    place = drop_last_record(tmp_path, 9 + 32 + 8 + 8 + len(first["ETag"]) + 8)
    (place / "data").write_bytes(b"old")
    server = start_server(tmp_path, "--writable")
    again = upload.at(server).commit()
    assert (again.status, again["Repr-Digest"]) == (201, first["Repr-Digest"])
    assert not (place / "data").exists()


@pytest.mark.folder("the files of uploads in a root")
def test_body_that_was_not_acknowledged_leaves_nothing(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m", version)
    upload.put("w", b"there")
    with connect(server) as connection:
        target = upload.component_path("x", dtype="u8", shape=600_000)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n".encode())
        connection.sendall(b"SECRET" * 90_000)
        eventually(lambda: any((tmp_path / path).stat().st_size > 500_000 for path in leftovers(tmp_path)))
        server = restart(start_server, server, tmp_path)
    assert list(upload.at(server).status()["objects"]) == ["w"]
    upload.put("y", b"later")
    assert upload.commit().status == 201
    assert b"SECRET" not in assert_clean(tmp_path, "m")


def test_commit_again_after_a_restart_says_the_same(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m", version)
    upload.put("w", b"replaced")
    upload.put("w", b"x")
    first = upload.commit()
    server = restart(start_server, server, tmp_path)
    again = upload.at(server).commit()
    assert (first.status, again.status) == (201, 201)
    assert (first["ETag"], first["Repr-Digest"]) == (again["ETag"], again["Repr-Digest"])


@pytest.mark.folder("the files of uploads in a root")
def test_a_journal_cut_at_any_byte_keeps_its_whole_records(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m")
    for number in range(3):
        upload.put(f"w{number}", pattern(100 + number))
    server.kill()
    (path,) = (tmp_path / path for path in leftovers(tmp_path) if path.endswith("journal"))
    whole = path.read_bytes()
    counts = []
    for length in sorted(random.Random(1).sample(range(len(whole) - 4), 12), reverse=True):
        path.write_bytes(whole[:length])
        server = start_server(tmp_path, "--writable")
        answer = get(server, upload.path)
        counts.append(len(answer.json()["objects"]) if answer.status == 200 else -1)
        server.kill()
        if counts[-1] < 0:
            break
    assert counts == sorted(counts, reverse=True) and counts[0] in (2, 3)


JOURNAL_MAX_BYTES = 1 << 30
END_BYTES = 4


def declare_at_length(upload, number):
    return upload.declare("w", shape=[1], attributes={"number": number, "long": "a" * 4_000_000}).status


@pytest.mark.folder("how much of the state folder a session may take")
def test_upload_is_found_again_however_often_it_was_declared(tmp_path, start_server):
    """Up to the last byte that a journal may have; most of it is made here, since to send a gigabyte takes a minute."""
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m")
    upload.put("w", b"x")
    (journal,) = (tmp_path / path for path in leftovers(tmp_path) if path.endswith("journal"))
    begun = journal.stat().st_size
    assert declare_at_length(upload, 0) == 201
    server.kill()
    # Behind the last record is an end, which the next one overwrites.
    record = journal.read_bytes()[begun - END_BYTES : -END_BYTES]
    with journal.open("r+b") as file:
        file.seek(-END_BYTES, 2)
        for _ in range((JOURNAL_MAX_BYTES - begun) // len(record) - 2):
            file.write(record)
        file.write(bytes(END_BYTES))
    server = start_server(tmp_path, "--writable")
    upload.at(server)
    statuses = []
    while len(statuses) < 9 and statuses[-1:] != [413]:
        statuses.append(declare_at_length(upload, 1 + len(statuses)))
    assert statuses == [204, 204, 413], statuses
    server = restart(start_server, server, tmp_path)
    assert upload.at(server).status()["objects"]["w"]["attributes"]["number"] == 2
    assert upload.commit().status == 201


@pytest.mark.folder("the files of uploads in a root")
def test_place_without_a_session_is_removed(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m")
    server.kill()
    for path in leftovers(tmp_path):
        if path.endswith("journal"):
            (tmp_path / path).write_bytes(b"\x05\0\0\0nothing of ours")
    server = start_server(tmp_path, "--writable")
    assert_problem(get(server, upload.path), 404, "upload-not-found")
    assert leftovers(tmp_path) == []


def test_idle_upload_expires(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_EXPIRE_S": "4"})
    upload = begin(server, "m")
    upload.put("w", b"x")
    busy = begin(server, "n")
    deadline = time.monotonic() + NOTICED_S
    while time.monotonic() < deadline and get(server, upload.path).status == 200:
        assert busy.put("w", b"x").status == 201
        time.sleep(0.2)
    assert_problem(get(server, upload.path), 404, "upload-not-found")
    assert busy.commit().status == 201
    eventually(lambda: leftovers(tmp_path) == [])


def test_expiry_counts_on_after_a_restart(tmp_path, start_server):
    short = {"ZTSERVE_UPLOAD_EXPIRE_S": "1"}
    server = start_server(tmp_path, "--writable")
    begin(server, "m")
    restart(start_server, server, tmp_path, environment=short)
    eventually(lambda: leftovers(tmp_path) == [])


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_a_random_moment(tmp_path, start_server, seed):
    """Several writers at work; whatever was acknowledged is there after the kill, and commits cleanly."""
    chance = random.Random(seed)
    server = start_server(tmp_path, "--writable")
    version = chance.choice(["1.2.0", "2"])
    upload = begin(server, "m", version)
    acknowledged = {}
    attempts = {}

    def send(worker):
        own = random.Random(seed * 100 + worker)
        for number in range(100):
            name = f"w{worker}-{own.randrange(4)}"
            data = own.randbytes(own.choice([0, 10, 70_000, 400_000]))
            attempts.setdefault(name, []).append(data)
            query = own.choice([{}, {}, {"encoding": "zstd", "level": 1}])
            try:
                if upload.put(name, data, **query).status != 201:
                    return
            except OSError:
                return
            acknowledged[name] = (number, data)

    def commit():
        time.sleep(chance.random())
        try:
            upload.commit()
        except OSError:
            pass

    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
    threads += [threading.Thread(target=commit)] if seed % 3 == 0 else []
    for thread in threads:
        thread.start()
    time.sleep(chance.random())
    server.kill()
    for thread in threads:
        thread.join()
    server = start_server(tmp_path, "--writable")
    status = get(server, upload.at(server).path)
    if status.status == 200 and status.json()["state"] == "open":
        assert upload.commit().status == 201
    else:
        assert upload.commit().status == 201, status
    assert get(server, model_path("m")).status == 200
    assert_clean(tmp_path, "m")
    for name, (_, data) in acknowledged.items():
        # An attempt that was whole, but whose acknowledgement the kill cut off, may have replaced it.
        assert get(server, component_path("m", name)).body in (data, attempts[name][-1]), name
