"""Several servers on one folder: only one of them writes, unless all writers share it; then conditions hold between them."""

import json
import threading

import pytest

import lfs
from containers import dense, pattern, zt1
from server_process import ServerProcess
from uploads import SMALL, content_of, put
from wire import ask, eventually, get, model_path

pytestmark = pytest.mark.folder("servers that write to one folder")

ROUNDS = 20


def file(number):
    return bytes(zt1({"w": dense(pattern(500, seed=number + 1))}))


def refused(root, *arguments):
    with pytest.raises(RuntimeError) as error:
        ServerProcess(root, "--writable", *arguments)
    return str(error.value)


def at_once(*calls):
    """What the calls return that begin at the same time."""
    results = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index):
        barrier.wait()
        results[index] = calls[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def pair(tmp_path, start_server):
    return [start_server(tmp_path, "--writable", "--shared") for _ in range(2)]


def test_a_second_writable_server_does_not_start(tmp_path, start_server):
    first = start_server(tmp_path, "--writable")
    message = refused(tmp_path)
    assert f"another server writes to the folder {tmp_path}" in message and "--shared" in message
    assert "another server writes" in refused(tmp_path, "--shared")
    assert put(first, "m", SMALL).status == 201


def test_a_server_that_writes_alone_does_not_start_beside_those_that_share(tmp_path, start_server):
    start_server(tmp_path, "--writable", "--shared")
    assert "another server writes" in refused(tmp_path)


def test_readers_start_beside_any_other(tmp_path, start_server):
    writer = start_server(tmp_path, "--writable")
    readers = [start_server(tmp_path), start_server(tmp_path, "--shared")]
    assert put(writer, "m", SMALL).status == 201
    for reader in readers:
        assert eventually(lambda reader=reader: content_of(reader, "m") == pattern(1000))


def test_the_folder_is_free_when_its_server_has_ended_or_was_killed(tmp_path, start_server):
    assert start_server(tmp_path, "--writable").stop() == 0
    start_server(tmp_path, "--writable").kill()
    assert put(start_server(tmp_path, "--writable"), "m", SMALL).status == 201


def test_a_folder_that_takes_the_place_of_the_root_is_kept_as_well(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, "--writable", environment={"ZTSERVE_SANDBOX": "false"})
    root.rename(tmp_path / "old")
    root.mkdir()
    (root / "n.zt").write_bytes(SMALL)
    assert eventually(lambda: content_of(server, "n") == pattern(1000))
    assert "another server writes" in refused(root)


def test_of_two_updates_of_one_version_one_wins(pair):
    assert put(pair[0], "m", file(0)).status == 201
    for number in range(ROUNDS):
        etag = get(pair[0], model_path("m"))["ETag"]
        assert eventually(lambda etag=etag: get(pair[1], model_path("m"))["ETag"] == etag)
        files = [file(2 * number + 10), file(2 * number + 11)]
        answers = at_once(*(lambda server=server, body=body: put(server, "m", body, If_Match=etag) for server, body in zip(pair, files, strict=True)))
        assert sorted(answer.status for answer in answers) == [204, 412], answers
        won = next(body for answer, body in zip(answers, files, strict=True) if answer.status == 204)
        assert get(pair[0], "/files/m.zt").body == won


def test_of_two_new_models_of_one_name_one_is_made_whatever_their_formats(pair):
    tensors = json.dumps({"w": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}).encode()
    other = len(tensors).to_bytes(8, "little") + tensors + b"abc"
    for number in range(ROUNDS):
        answers = at_once(
            lambda number=number: put(pair[0], f"n{number}", SMALL, If_None_Match="*"),
            lambda number=number: put(pair[1], f"n{number}", other, If_None_Match="*"),
        )
        assert sorted(answer.status for answer in answers) == [201, 412], answers


def test_of_two_commits_to_one_parent_one_is_made(pair):
    assert lfs.commit(pair[0], lfs.inline("a.txt", b"0")).status == 200
    for number in range(ROUNDS // 2):
        parent = get(pair[0], f"/api/models/{lfs.REPO}").json()["sha"]
        lines = [
            "\n".join(json.dumps(line) for line in (lfs.header(parentCommit=parent), lfs.inline("a.txt", f"{number} {one}".encode())))
            for one in range(2)
        ]
        fields = {"Content-Type": "application/x-ndjson"}
        answers = at_once(*(
            lambda server=server, body=body: ask(server, "POST", f"/api/models/{lfs.REPO}/commit/main", fields, body.encode())
            for server, body in zip(pair, lines, strict=True)
        ))  # fmt: skip
        assert sorted(answer.status for answer in answers) == [200, 412], [answer.body for answer in answers]
