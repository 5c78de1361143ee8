"""What the server signs for an upload: it ends with the client's line of the tokens file, and the log does not have it."""

import signal

import pytest

import lfs
import xet
from clients import Client, write_tokens
from containers import pattern
from wire import eventually, talk

REPO = lfs.REPO
CONTENT = pattern(3000)


class Guarded:
    """A server with a tokens file."""

    def __init__(self, tmp_path, start_server, *clients):
        root = tmp_path / "root"
        root.mkdir()
        self.tokens = write_tokens(tmp_path / "tokens", *clients)
        self.server = start_server(root, "--writable", "--tokens", self.tokens)

    def reload(self, *clients):
        write_tokens(self.tokens, *clients)
        before = sum("reloaded" in line for line in self.server.log_lines)
        self.server.signal(signal.SIGHUP)
        eventually(lambda: sum("reloaded" in line for line in self.server.log_lines) > before)


def gone(client):
    return []


def other_token(client):
    return [Client(client.name, client.scope, *client.globs)]


def less_scope(client):
    client.scope = "read"
    return [client]


def other_globs(client):
    client.globs = ("elsewhere/*",)
    return [client]


@pytest.mark.parametrize("change", [gone, other_token, less_scope, other_globs])
def test_what_was_signed_ends_with_the_line(tmp_path, start_server, change):
    writer, other = Client("writer", "write", "org/*"), Client("other", "write")
    guarded = Guarded(tmp_path, start_server, writer, other)
    server = guarded.server
    session = xet.Session(server, REPO, **writer.fields)
    target = lfs.address(server, CONTENT, fields=writer.fields)
    kept = lfs.address(server, CONTENT, fields=other.fields)
    guarded.reload(*change(writer), other)
    xorb, entry = xet.whole(CONTENT)
    eventually(lambda: lfs.put(server, target, CONTENT).status == 403)
    assert session.send(xorb).status == 401 and session.describe(xet.shard(entry)).status == 401
    assert lfs.put(server, kept, CONTENT).status == 200


def test_what_was_signed_survives_changes_of_other_lines(tmp_path, start_server):
    writer, other = Client("writer", "write", "org/*"), Client("other", "write")
    guarded = Guarded(tmp_path, start_server, writer, other)
    session = xet.Session(guarded.server, REPO, **writer.fields)
    target = lfs.address(guarded.server, CONTENT, fields=writer.fields)
    guarded.reload(Client("new", "read"), writer)
    session.upload(pattern(100, seed=2))
    assert lfs.put(guarded.server, target, CONTENT).status == 200


@pytest.mark.parametrize("form", ["json", "text"])
def test_signatures_are_not_in_the_log(tmp_path, start_server, form):
    server = start_server(tmp_path, "--writable", "--log-format", form)
    target = lfs.address(server, CONTENT)
    session = xet.Session(server, REPO)
    session.upload(CONTENT)
    assert lfs.put(server, target, CONTENT).status == 200
    signature = target.partition("signature=")[2]
    eventually(lambda: any("signature=***" in line for line in server.log_lines))
    log = "\n".join(server.log_lines)
    assert len(signature) == 64 and signature not in log and session.token not in log


def test_a_token_for_no_usable_host_is_400(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_HOSTS": ""})
    xet.create(server, REPO)
    target = f"GET /api/models/{REPO}/xet-write-token/main"
    for host in ("", "a b", "<x>", "user@host", "ho\x7fst", "h/x", "[::1"):
        got = talk(server, f"{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        assert got.split(b" ", 2)[1] in (b"400", b"403"), (host, got)
    got = talk(server, f"{target} HTTP/1.0\r\n\r\n".encode())
    assert got.split(b" ", 2)[1] == b"400" and b'"invalid-request"' in got, got
