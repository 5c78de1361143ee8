"""DELETE /v1/models/{model}: which files go, which stay because others need them, and which requests go on."""

import os

import pytest

from containers import dense, dense_in_shard, pattern, shard_entry, zt2, zt2_data_shard
from uploads import OTHER, SMALL, content_of, files_of, put
from wire import at_once, ask, assert_problem, component_path, connect, get, model_path, read_exactly, read_head

# More than the socket buffers of both ends hold, so that the server is still sending when the file is removed.
BIG = 24 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


def delete(server, name, **fields):
    return ask(server, "DELETE", model_path(name), {key.replace("_", "-"): value for key, value in fields.items()})


def names_of(server):
    return [entry["name"] for entry in get(server, "/v1/models").json()["models"]]


def mine(folder, name):
    return [path for path in files_of(folder) if path.startswith(name)]


def put_sharded(server, name, shard_name="w", data=pattern(1000)):
    """A model and its data shard, uploaded under their file names."""
    shard = zt2_data_shard(data)
    inside = dense_in_shard(shard_name, shard.offsets[0], data, digest="xxh3")
    model = zt2({"w": inside}, fields={"shards": {shard_name: shard_entry(shard)}})
    assert put(server, f"{name}-{shard_name}", shard).status in (201, 204)
    assert put(server, name, model).status == 201
    assert content_of(server, name) == data


def test_deleted_model_is_gone_at_once(server, folder, name):
    put(server, name, SMALL)
    answer = delete(server, name)
    assert answer.status == 204 and answer.body == b"", answer
    assert get(server, model_path(name)).status == 404
    assert get(server, component_path(name, "w")).status == 404
    assert get(server, f"/files/{name}.zt").status == 404
    assert name not in names_of(server)
    assert mine(folder, name) == []
    assert_problem(delete(server, name), 404, "model-not-found")
    assert put(server, name, OTHER).status == 201


def test_refusals_leave_the_model(server, folder, share_server, name):
    etag = put(server, name, SMALL)["ETag"]
    assert_problem(delete(server, "a//b"), 400, "invalid-name")
    assert_problem(delete(server, name, If_Match='"other"'), 412, "precondition-failed")
    assert_problem(delete(server, name, If_None_Match=etag), 412, "precondition-failed")
    assert_problem(delete(server, name, If_Unmodified_Since="Mon, 01 Jan 2001 00:00:00 GMT"), 412, "precondition-failed")
    assert_problem(delete(share_server(folder), name), 403, "read-only")
    assert content_of(server, name) == pattern(1000)
    assert delete(server, name, If_Match=etag).status == 204
    assert_problem(delete(server, name, If_Match=etag), 404, "model-not-found")


def test_another_file_of_the_name_stays_and_is_served_from_then_on(server, folder, name):
    put(server, name, SMALL)
    (folder / f"{name}.npz").write_bytes(b"whatever")
    (folder / f"{name}.gguf").write_bytes(b"whatever")
    for left in ([f"{name}.gguf", f"{name}.npz"], [f"{name}.npz"], []):
        assert delete(server, name).status == 204
        assert mine(folder, name) == left
        assert get(server, model_path(name)).status == (422 if left else 404)


def test_download_continues(server, name):
    data = pattern(BIG)
    put(server, name, zt2({"w": dense(data)}))
    with connect(server, receive_buffer=4096) as connection:
        connection.sendall(f"GET {component_path(name, 'w')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, fields, first = read_head(connection)
        assert status == 200
        assert delete(server, name).status == 204
        assert read_exactly(connection, int(fields["content-length"]), first) == data


def test_shards_of_an_incomplete_model_go_too(server, folder, name):
    first, second = zt2_data_shard(b"1" * 100), zt2_data_shard(b"2" * 100)
    objects = {
        "a": dense_in_shard("one", first.offsets[0], b"1" * 100),
        "b": dense_in_shard("two", second.offsets[0], b"2" * 100),
    }
    table = {"one": shard_entry(first), "two": shard_entry(second)}
    put(server, f"{name}-one", first)
    assert put(server, name, zt2(objects, fields={"shards": table})).status == 201
    assert get(server, model_path(name)).status == 422
    assert delete(server, name).status == 204
    assert mine(folder, name) == []


def test_shard_that_another_model_uses_stays(server, folder, name):
    put_sharded(server, f"{name}-x", "y")
    # Its shard "x-y" is the same file.
    shard = zt2_data_shard(pattern(1000))
    inside = dense_in_shard("x-y", shard.offsets[0], pattern(1000), digest="xxh3")
    assert put(server, name, zt2({"w": inside}, fields={"shards": {"x-y": shard_entry(shard)}})).status == 201
    assert content_of(server, name) == pattern(1000)
    assert delete(server, name).status == 204
    assert content_of(server, f"{name}-x") == pattern(1000)
    assert delete(server, f"{name}-x").status == 204
    assert mine(folder, name) == []


def test_a_data_shard_is_deleted_only_when_no_model_uses_it(server, folder, name):
    put_sharded(server, name)
    assert_problem(delete(server, f"{name}-w"), 409, "conflict")
    assert content_of(server, name) == pattern(1000)
    assert put(server, f"{name}-v", zt2_data_shard(b"nobody's")).status == 201
    assert delete(server, f"{name}-v").status == 204
    assert not (folder / f"{name}-v.zt").exists()


def test_puts_and_deletes_of_one_name_take_turns(server, folder, name):
    puts = [lambda file=file: put(server, name, file) for file in (SMALL, OTHER)]
    deletes = [lambda: delete(server, name)] * 2
    statuses = [answer.status for _ in range(10) for answer in at_once(*puts, *deletes)]
    assert set(statuses) <= {201, 204, 404}, statuses
    assert delete(server, name).status in (204, 404)
    assert mine(folder, name) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_folder_that_cannot_be_written_to_is_403_and_the_model_stays(tmp_path, start_server):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.zt").write_bytes(SMALL)
    server = start_server(tmp_path, "--writable")
    (tmp_path / "sub").chmod(0o555)
    try:
        assert_problem(delete(server, "sub/m"), 403, "read-only")
        assert content_of(server, "sub/m") == pattern(1000)
    finally:
        (tmp_path / "sub").chmod(0o755)
