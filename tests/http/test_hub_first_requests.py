"""The first answers of a server that has just been started: they name the commit that stays."""

import hashlib
import json
import select
import threading
import time

import pytest

from containers import dense, pattern, zt1
from test_hub_reading import commit_of, fill
from wire import Connection, at_once, eventually, get, head

REPO = "org/model"
LARGE = 8 << 20

pytestmark = pytest.mark.folder("bytes that lie elsewhere are not brought here for a first answer")


@pytest.fixture(scope="module", autouse=True)
def without_views():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZTSERVE_HUB_VIEWS", "false")
        yield


@pytest.fixture(scope="module")
def files():
    return {f"{name}.bin": pattern(LARGE, seed) for seed, name in enumerate("abc", 1)} | {"config.json": b"{}"}


@pytest.mark.parametrize(
    "path", [f"/api/models/{REPO}", f"/api/models/{REPO}/tree/main", f"/{REPO}/resolve/main/a.bin", f"/api/models/{REPO}/refs"]
)
def test_the_first_answer_names_the_commit_that_stays(tmp_path, start_server, files, path):
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    answer, final = get(server, path), commit_of(files)
    if path.endswith("a.bin"):
        assert (answer.status, answer["X-Repo-Commit"]) == (307, final)
        assert answer["ETag"] == f'"{hashlib.sha256(files["a.bin"]).hexdigest()}"'
    elif path.endswith("tree/main"):
        assert all(entry["lfs"]["oid"] == hashlib.sha256(files[entry["path"]]).hexdigest() for entry in answer.json())
    else:
        assert final in json.dumps(answer.json())


def test_a_commit_that_a_client_knows_from_before(tmp_path, start_server, files):
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    answer = head(server, f"/{REPO}/resolve/{commit_of(files)}/b.bin")
    assert (answer.status, answer["X-Repo-Commit"]) == (200, commit_of(files))
    assert get(server, f"/{REPO}/resolve/{'0' * 40}/b.bin")["X-Error-Code"] == "RevisionNotFound"


def test_all_first_clients_are_told_the_same(tmp_path, start_server, files):
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    assert at_once(*[lambda: get(server, f"/api/models/{REPO}").json()["sha"]] * 24) == [commit_of(files)] * 24


def test_a_file_that_is_new(tmp_path, start_server, files):
    fill(tmp_path, files={"config.json": b"{}"})
    server = start_server(tmp_path)
    assert get(server, f"/api/models/{REPO}").json()["sha"] == commit_of({"config.json": b"{}"})
    fill(tmp_path, files={"a.bin": files["a.bin"]})
    both = {name: files[name] for name in ("a.bin", "config.json")}
    assert eventually(lambda: get(server, f"/api/models/{REPO}").json()["sha"] == commit_of(both))


@pytest.mark.parametrize(
    "sizes", [[65], [60, 60, 60, 60, 60]], ids=["a file above 64 MiB", "more than 256 MiB in all"]
)
def test_nobody_waits_for_more_than_that(tmp_path, start_server, sizes):
    (tmp_path / REPO).mkdir(parents=True)
    for number, size in enumerate(sizes):
        with open(tmp_path / REPO / f"{number}.bin", "wb") as file:
            file.truncate(size << 20)
    server = start_server(tmp_path)
    entries = get(server, f"/api/models/{REPO}/tree/main").json()
    assert any(not entry.get("lfs") for entry in entries)


def test_others_are_answered_meanwhile(tmp_path, start_server, monkeypatch):
    """Many repositories at a time that have to be hashed first; small requests of all kinds do not wait for them."""
    monkeypatch.setenv("ZTSERVE_WORKERS", "4")
    for number in range(24):
        (tmp_path / f"org/r{number}").mkdir(parents=True)
        for name in "abcd":
            with open(tmp_path / f"org/r{number}/{name}.bin", "wb") as file:
                file.truncate(60 << 20)
    fill(tmp_path, "org/small", {"config.json": b"{}", "m.zt": zt1({"w": dense(pattern(8))})})
    server = start_server(tmp_path)

    def answered_before(numbers):
        """How many of the others have their answers when the small requests have theirs."""
        waiting = [Connection(server) for _ in numbers]
        for number, connection in zip(numbers, waiting):
            connection.send("GET", f"/api/models/org/r{number}")
        for path in ("/api/models/org/small", "/files/org/small/config.json", "/v1/models/org%2Fsmall%2Fm"):
            assert get(server, path).status == 200
        answered, _, _ = select.select([one.http.sock for one in waiting], [], [], 0)
        assert all(connection.receive().status == 200 for connection in waiting)
        return len(answered)

    # Behind the work of the others they would come when half of it is done. A busy machine may let them wait once.
    assert any(answered_before(range(first, first + 8)) < 4 for first in (0, 8, 16))


def test_a_file_that_is_replaced_all_the_time_is_served(tmp_path, start_server, files):
    """It is never old enough to be hashed."""
    fill(tmp_path, files=files)
    server = start_server(tmp_path)
    ended = threading.Event()

    def replace():
        turn = 0
        while not ended.wait(0.04):
            turn += 1
            (tmp_path / ".new").write_text(json.dumps({"turn": turn}))
            (tmp_path / ".new").rename(tmp_path / REPO / "config.json")

    writer = threading.Thread(target=replace)
    writer.start()
    served = {}
    deadline = time.monotonic() + 60
    try:
        while len(served) <= 5 and time.monotonic() < deadline:
            pinned = get(server, f"/{REPO}/resolve/main/config.json")["Location"]
            if pinned is None:
                continue
            answer = get(server, pinned)
            assert answer.status == 200 or answer["X-Error-Code"] == "RevisionNotFound"
            if answer.status == 200:
                assert served.setdefault(pinned, answer.body) == answer.body
    finally:
        ended.set()
        writer.join()
    assert len(served) > 5
