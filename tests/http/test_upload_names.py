"""PUT and names: which are valid, which of several writers wins, and what happens to files of another format."""

import concurrent.futures
import io
import os
import stat
import threading

import numpy
import pytest

import tus
import writers
from containers import dense, pattern, zt1, zt2_data_shard
from uploads import OTHER, SMALL, content_of, digest_field, files_of, put
from wire import TIMEOUT_S, ask, assert_problem, component_path, connect, eventually, get, manifest, model_path, read_head


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


def test_nested_name_makes_its_folders(server, folder):
    answer = put(server, "org/deep/er/m", SMALL)
    assert answer.status == 201
    assert answer["Location"] == "/v1/models/org%2Fdeep%2Fer%2Fm"
    assert (folder / "org" / "deep" / "er" / "m.zt").read_bytes() == SMALL
    assert manifest(server, "org/deep/er/m")["name"] == "org/deep/er/m"


def test_read_only_server_refuses_every_write(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(SMALL)
    server = start_server(tmp_path)
    for model in ("m", "new", "-no name-"):
        assert_problem(put(server, model, OTHER), 403, "read-only")
    assert content_of(server, "m") == pattern(1000)
    assert files_of(tmp_path) == ["m.zt"]


@pytest.mark.parametrize("name", [".hidden", "..", "x" * 256, "ü"])
def test_names_that_no_model_can_have_are_refused(server, folder, name):
    before = files_of(folder)
    problem = assert_problem(put(server, name, SMALL), 400, "invalid-name")
    assert "begin with a letter or digit" in problem["detail"]
    assert files_of(folder) == before


def npy(array):
    made = io.BytesIO()
    numpy.save(made, array)
    return made.getvalue()


@pytest.mark.parametrize(
    "name, url",
    [
        ("NEW.NPY", "/v1/models/NEW"),
        ("org/my-model.Npz", "/v1/models/org%2Fmy-model"),
        ("v1.5.npy.zt", "/v1/models/v1.5"),
        ("m.safetensors.index.json", "/v1/models/m"),
        ("pytorch_model.bin", "/v1/models/pytorch_model"),
    ],
)
def test_names_with_the_extension_that_the_server_adds_are_refused(server, folder, name, url):
    before = files_of(folder)
    refused = [put(server, name, SMALL), tus.post(server, name, len(SMALL)), ask(server, "POST", f"{model_path(name)}/uploads")]
    for answer in refused:
        assert_problem(answer, 400, "invalid-name")
        assert answer.json()["detail"].endswith(f" {url}"), answer
    assert files_of(folder) == before


def test_what_only_looks_like_an_extension_is_part_of_a_name(server, folder, name):
    for tail in (".5", ".h5", ".npy2", ".npy-2"):
        assert put(server, name + tail, SMALL).status == 201
        assert (folder / f"{name}{tail}.zt").exists()
    assert put(server, name, npy(numpy.arange(3))).status == 201
    assert (folder / f"{name}.npy").exists()


def test_of_a_name_that_a_shard_may_have_the_body_decides(server, folder, name):
    whole, shard = f"{name}-whole.ZT", f"{name}-shard.zt"
    assert_problem(ask(server, "POST", f"{model_path(whole)}/uploads"), 400, "invalid-name")
    refused = put(server, whole, SMALL)
    assert_problem(refused, 400, "invalid-name")
    assert refused.json()["detail"].endswith(f" {model_path(name)}-whole")
    assert put(server, shard, zt2_data_shard()).status == 201
    assert [path.name for path in folder.glob(f"{name}*")] == [f"{shard}.zt"]
    upload = tus.create(server, whole, len(SMALL))
    assert_problem(tus.patch(server, upload, 0, SMALL), 400, "invalid-name")
    assert [path.name for path in folder.glob(f"{name}*")] == [f"{shard}.zt"]


def test_files_that_have_an_extension_twice_are_read_and_removed(server, folder, name):
    (folder / f"{name}.npy.npy").write_bytes(npy(numpy.arange(3)))
    assert eventually(lambda: get(server, model_path(f"{name}.npy")).status == 200)
    assert_problem(put(server, f"{name}.npy", SMALL), 400, "invalid-name")
    assert ask(server, "DELETE", model_path(f"{name}.npy")).status == 204
    assert not (folder / f"{name}.npy.npy").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_of_writers_with_one_precondition_one_wins(server, name, is_there):
    """That create a model, or replace one version of it."""
    files = [zt1({"w": dense(pattern(100_000, seed=index))}) for index in range(4)]
    for round_number in range(3):
        model, barrier = f"{name}-{round_number}", threading.Barrier(4)
        condition = {"If_Match": put(server, model, SMALL)["ETag"]} if is_there else {"If_None_Match": "*"}

        def write(file, model=model, barrier=barrier, condition=condition):
            barrier.wait()
            return put(server, model, file, **condition).status

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(write, files))
        succeeded = 204 if is_there else 201
        assert sorted(statuses) == [succeeded, 412, 412, 412]
        assert content_of(server, model) == pattern(100_000, seed=statuses.index(succeeded))


@pytest.mark.folder("links, special files and names that a file system cannot hold")
@pytest.mark.parametrize("name", ["file.zt/below", "taken", "link/x"])
def test_names_that_the_folder_has_no_room_for_are_a_conflict(server, folder, tmp_path, name):
    if not (folder / "taken.zt").exists():
        (folder / "taken.zt").mkdir()
        (folder / "file.zt").write_bytes(SMALL)
        (folder / "link").symlink_to(tmp_path)
    before = files_of(folder)
    assert_problem(put(server, name, SMALL), 409, "conflict")
    assert files_of(folder) == before
    assert list(tmp_path.iterdir()) == []


def by_put(server, name):
    return put(server, name, SMALL)


def by_tus(server, name):
    return tus.post(server, name, len(SMALL), SMALL, Content_Type="application/offset+octet-stream")


def by_writer(server, name):
    return writers.begin(server, name).commit()


OTHER_THINGS = {
    "fifo": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "link out of the root": lambda path: path.symlink_to("/etc/hostname"),
    "dead link": lambda path: path.symlink_to("nowhere"),
}


def unread(path):
    """What a write would change, but not a read."""
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@pytest.mark.folder("links, special files and names that a file system cannot hold")
@pytest.mark.parametrize("upload", [by_put, by_tus, by_writer], ids=lambda upload: upload.__name__)
@pytest.mark.parametrize("kind", OTHER_THINGS)
def test_what_is_no_model_is_not_replaced(server, folder, kind, upload, name):
    path = folder / f"{name}.zt"
    OTHER_THINGS[kind](path)
    before = unread(path)
    problem = assert_problem(upload(server, name), 409, "conflict")
    assert "a link out of the store" in problem["detail"] and path.name in problem["detail"]
    assert_problem(put(server, name, SMALL, If_None_Match="*"), 412, "precondition-failed")
    assert unread(path) == before
    assert get(server, model_path(name)).status == 404
    path.unlink()
    assert put(server, name, SMALL).status == 201


@pytest.mark.folder("links, special files and names that a file system cannot hold")
def test_file_name_that_is_too_long_for_the_disk_is_refused(server, folder):
    assert put(server, "n" * 252, SMALL).status == 201
    assert_problem(put(server, "n" * 253, SMALL), 400, "invalid-name")
    assert put(server, "/".join(["part" * 15] * 4), SMALL).status == 201


def test_readers_beside_writers_see_whole_versions_only(server, name):
    """Each answer is one version from first to last byte, and each tag stands for one version."""
    files = [zt1({"w": dense(bytes([65 + seed]) * 50_000)}) for seed in range(8)]
    put(server, name, files[0])
    seen, done = set(), threading.Event()

    def read():
        while not done.is_set():
            answer = get(server, component_path(name, "w"))
            seen.add((answer.status, answer["ETag"], answer.body[:1], len(set(answer.body)), len(answer.body)))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    statuses = {put(server, name, files[turn % 8]).status for turn in range(30)}
    done.set()
    for reader in readers:
        reader.join(TIMEOUT_S)
    assert statuses == {204}
    assert {(status, kinds, length) for status, _, _, kinds, length in seen} == {(200, 1, 50_000)}
    assert len({tag for _, tag, _, _, _ in seen}) == len({(tag, first) for _, tag, first, _, _ in seen})


def test_nothing_is_replaced_while_yet_another_file_has_the_name(server, folder, name):
    (folder / f"{name}.safetensors").write_bytes(b"whatever")
    (folder / f"{name}.npz").write_bytes(b"someone's")
    problem = assert_problem(put(server, name, SMALL), 409, "conflict")
    assert f"{name}.npz" in problem["detail"]
    assert (folder / f"{name}.npz").read_bytes() == b"someone's"
    assert [path for path in files_of(folder) if path.startswith(name)] == [f"{name}.npz", f"{name}.safetensors"]
    (folder / f"{name}.npz").unlink()
    assert put(server, name, SMALL).status == 204
    assert [path for path in files_of(folder) if path.startswith(name)] == [f"{name}.zt"]


def test_a_file_that_came_otherwise_is_compared_too(server, folder, name):
    """Its SHA-256 is found when it is first asked for."""
    (folder / f"{name}.zt").write_bytes(SMALL)
    eventually(lambda: get(server, model_path(name)).status == 200)
    same = {"If_None_Match": "*", "Repr_Digest": digest_field("sha-256", SMALL)}
    eventually(lambda: put(server, name, SMALL, **same).status == 204)
    other = {**same, "Repr_Digest": digest_field("sha-256", OTHER)}
    assert_problem(put(server, name, OTHER, **other), 412, "precondition-failed")
    assert content_of(server, name) == pattern(1000)


def test_a_retry_after_a_lost_answer_is_a_success(server, folder, name):
    fields = {"If_None_Match": "*", "Repr_Digest": digest_field("sha-256", SMALL)}
    first = put(server, name, SMALL, **fields)
    again = put(server, name, SMALL, **fields)
    assert (first.status, again.status) == (201, 204)
    for field in ("ETag", "Location", "Repr-Digest"):
        assert again[field] == first[field]
    assert put(server, name, SMALL, If_Match='"other"', Repr_Digest=digest_field("sha-256", SMALL)).status == 204
    assert_problem(put(server, name, SMALL, If_None_Match="*"), 412, "precondition-failed")
    other = {**fields, "Repr_Digest": digest_field("sha-256", OTHER)}
    assert_problem(put(server, name, OTHER, **other), 412, "precondition-failed")
    assert content_of(server, name) == pattern(1000)


def test_a_retry_after_a_restart_is_a_success(start_server, tmp_path):
    fields = {"If_None_Match": "*", "Repr_Digest": digest_field("sha-256", SMALL)}
    server = start_server(tmp_path, "--writable")
    first = put(server, "m", SMALL, **fields)
    assert first.status == 201 and server.stop() == 0
    server = start_server(tmp_path, "--writable")
    eventually(lambda: get(server, "/readyz").status == 200)
    with connect(server) as connection:
        # Answered before the body.
        lines = [f"{key.replace('_', '-')}: {value}" for key, value in {"Host": "x", "Content-Length": len(SMALL), **fields}.items()]
        connection.sendall("\r\n".join(["PUT /v1/models/m HTTP/1.1", *lines, "", ""]).encode())
        status, again, _ = read_head(connection)
    assert status == 204
    for field in ("ETag", "Location", "Repr-Digest"):
        assert again[field.lower()] == first[field]
    assert server.stop() == 0
    (tmp_path / "m.zt").write_bytes(SMALL[:-1] + b"\xff")
    server = start_server(tmp_path, "--writable")
    assert_problem(put(server, "m", SMALL, **fields), 412, "precondition-failed")
