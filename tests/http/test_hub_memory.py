"""What a commit costs in memory does not grow with the files in it."""

import base64
import hashlib
import json

import pytest

from containers import pattern
from test_bad_files import memory_bytes
from wire import connect, get, read_exactly, read_head

REPO = "org/model"
BLOCK = pattern(3 << 20)
# What one upload may cost: pieces on their way to the disk, not the file.
GROWTH_BYTES = 48 << 20


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


@pytest.mark.folder("a gigabyte, for which an imitation of a store takes minutes")
def test_a_commit_with_a_gigabyte_in_it(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    assert send_commit(server, 6 << 20)[0] == 200
    before = memory_bytes(server, "VmHWM")
    status, told, count = send_commit(server, 1 << 30)
    assert status == 200, told
    assert memory_bytes(server, "VmHWM") - before < GROWTH_BYTES
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(BLOCK)
    (entry,) = get(server, f"/api/models/{REPO}/tree/{told['commitOid']}").json()
    assert entry["lfs"] == {**entry["lfs"], "oid": digest.hexdigest(), "size": count * len(BLOCK)}
