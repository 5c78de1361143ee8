"""Shared by the tests of uploads: two files to send, PUT, and the files below the root."""

import base64
import hashlib
import json
import os
import signal
from pathlib import Path

import mirror
from containers import dense, pattern, zt1, zt2
from wire import ask, component_path, connect, get, model_path

SMALL = zt1({"w": dense(pattern(1000))})
OTHER = zt2({"w": dense(pattern(1000, seed=2), digest="xxh3")})


def put(server, name, body, **fields):
    return ask(server, "PUT", model_path(name), {key.replace("_", "-"): value for key, value in fields.items()}, body)


def begin_put(server, target, length, *fields):
    """A connection over which the head of a PUT was sent, and nothing of its body. No length: it comes in chunks."""
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    connection = connect(server)
    connection.sendall("\r\n".join([f"PUT {target} HTTP/1.1", "Host: x", framing, *fields, "", ""]).encode())
    return connection


def digest_field(algorithm, data):
    value = hashlib.new(algorithm.replace("-", ""), data).digest()
    return f"{algorithm}=:{base64.b64encode(value).decode()}:"


def files_of(folder):
    """Every file below the root, including hidden ones, except for the server's state."""
    mirrored = mirror.of(folder)
    if mirrored:
        mirrored.pull()
    # Unlike rglob, walk bears folders that vanish meanwhile.
    paths = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    inner = (path.relative_to(folder) for path in paths if path.is_file())
    return sorted(str(path) for path in inner if path.parts[0] != ".ztserve")


def content_of(server, name):
    answer = get(server, component_path(name, "w"))
    return answer.body if answer.status == 200 else None


def assert_absent(server, folder, name):
    assert get(server, model_path(name)).status == 404
    assert [path for path in files_of(folder) if name in path or path.split("/")[-1].startswith(".")] == []


class Expiring:
    """A server whose uploads expire when a test says so: on a busy machine, any could be idle for a short time between two
    requests. Its root is a folder of `folder`."""

    def __init__(self, start_server, folder):
        self.root, self.settings = folder / "root", folder / "settings.json"
        self.root.mkdir()
        self.settings.write_text("{}")
        self.server = start_server(self.root, "--config", self.settings, "--writable")

    def expire(self):
        self.settings.write_text(json.dumps({"upload": {"expire_s": 1}}))
        self.server.signal(signal.SIGHUP)


def fill(folder, files):
    """Writes files by their paths in the folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
