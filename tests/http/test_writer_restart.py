"""The streaming writer after a kill: exactly what was acknowledged survives."""

import random
import threading
import time

import pytest

from containers import pattern
from uploads import begin_put
from wire import NOTICED_S, assert_problem, component_path, eventually, get, model_path
from writers import assert_clean, begin, leftovers

# While bodies are being sent.
LONGEST_LIFE_S = 0.2
# How long an upload may be idle where that is tested.
EXPIRE_S = 3


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


@pytest.mark.folder("the files of uploads in a root")
def test_body_that_was_not_acknowledged_leaves_nothing(tmp_path, start_server, version):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, "m", version)
    upload.put("w", b"there")
    with begin_put(server, upload.component_path("x", dtype="u8", shape=600_000), 600_000) as connection:
        connection.sendall(b"SECRET" * 90_000)
        eventually(lambda: any((tmp_path / path).stat().st_size > 500_000 for path in leftovers(tmp_path)))
        server = restart(start_server, server, tmp_path)
    assert list(upload.at(server).status()["objects"]) == ["w"]
    upload.put("y", b"later")
    assert upload.commit().status == 201
    assert b"SECRET" not in assert_clean(tmp_path, "m")


def test_idle_upload_expires(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_EXPIRE_S": str(EXPIRE_S)})

    def is_kept_by_its_requests():
        """False if this process was not run for so long that all may have expired."""
        upload = begin(server, "m")
        upload.put("w", b"x")
        busy, last_s = begin(server, "n"), time.monotonic()
        deadline_s = last_s + NOTICED_S
        while get(server, upload.path).status == 200:
            assert last_s < deadline_s
            before_s, last_s = last_s, time.monotonic()
            answer = busy.put("w", b"x")
            if time.monotonic() - before_s > EXPIRE_S / 2:
                return False
            assert answer.status == 201
            time.sleep(0.2)
        assert_problem(get(server, upload.path), 404, "upload-not-found")
        answer = busy.commit()
        if time.monotonic() - last_s > EXPIRE_S / 2:
            return False
        assert answer.status == 201
        return True

    eventually(is_kept_by_its_requests)
    eventually(lambda: leftovers(tmp_path) == [])


@pytest.mark.parametrize("seed", range(4))
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
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))
        try:
            upload.commit()
        except OSError:
            pass

    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
    threads += [threading.Thread(target=commit)] if seed % 3 == 0 else []
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0, LONGEST_LIFE_S))
    server.kill()
    for thread in threads:
        thread.join()
    server = start_server(tmp_path, "--writable")
    assert upload.at(server).commit().status == 201
    assert get(server, model_path("m")).status == 200
    assert_clean(tmp_path, "m")
    for name, (_, data) in acknowledged.items():
        # An attempt that was whole, but whose acknowledgement the kill cut off, may have replaced it.
        assert get(server, component_path("m", name)).body in (data, attempts[name][-1]), name
