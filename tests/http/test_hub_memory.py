"""What a commit, and an object that comes before it, cost in memory does not grow with the files."""

import base64
import hashlib
import json

import pytest

import lfs
from containers import pattern
from wire import connect, get, memory_kib, read_exactly, read_head

REPO = "org/model"
BLOCK = pattern(3 << 20)
# What one upload may cost: pieces on their way to the disk, not the file.
GROWTH_KIB = 48 << 10


def send_commit(server, size_bytes):
    """A commit with one file of 3 MiB blocks within it, as base64; its status and what it says."""
    count = size_bytes // len(BLOCK)
    content = base64.b64encode(BLOCK)
    before = b'{"key":"header","value":{"summary":"s"}}\n{"key":"file","value":{"path":"f.bin","encoding":"base64","content":"'
    length = len(before) + count * len(content) + 3
    head = f"POST /api/models/{REPO}/commit/main HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/x-ndjson\r\n"
    with connect(server) as connection:
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode() + before)
        for _ in range(count):
            connection.sendall(content)
        connection.sendall(b'"}}')
        status, fields, body = read_head(connection)
        return status, json.loads(read_exactly(connection, int(fields["content-length"]), body)), count


@pytest.mark.folder("many megabytes, for which an imitation of a store takes minutes")
def test_a_commit_of_many_megabytes(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    assert send_commit(server, 6 << 20)[0] == 200
    before = memory_kib(server, "VmHWM")
    status, told, count = send_commit(server, 84 << 20)
    assert status == 200, told
    assert memory_kib(server, "VmHWM") - before < GROWTH_KIB
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(BLOCK)
    (entry,) = get(server, f"/api/models/{REPO}/tree/{told['commitOid']}").json()
    assert entry["lfs"] == {**entry["lfs"], "oid": digest.hexdigest(), "size": count * len(BLOCK)}


def send_object(server, size_bytes):
    """The same by LFS: a batch, the bytes, and a commit; the statuses of the last two."""
    count = size_bytes // len(BLOCK)
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(BLOCK)
    named = {"oid": digest.hexdigest(), "size": count * len(BLOCK)}
    (told,) = lfs.objects_of(lfs.batch(server, named, transfers=["basic"]))
    target = lfs.target_of(told["actions"]["upload"]["href"])
    with connect(server) as connection:
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: {named['size']}\r\n\r\n".encode())
        for _ in range(count):
            connection.sendall(BLOCK)
        status, _, _ = read_head(connection)
    line = {"key": "lfsFile", "value": {"path": "f.bin", "algo": "sha256", **named}}
    return status, lfs.commit(server, line).status


@pytest.mark.folder("many megabytes, for which an imitation of a store takes minutes")
def test_an_object_of_many_megabytes(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    assert send_object(server, 6 << 20) == (200, 200)
    before = memory_kib(server, "VmHWM")
    assert send_object(server, 84 << 20) == (200, 200)
    assert memory_kib(server, "VmHWM") - before < GROWTH_KIB
    assert (tmp_path / REPO / "f.bin").stat().st_size == (84 << 20) // len(BLOCK) * len(BLOCK)
