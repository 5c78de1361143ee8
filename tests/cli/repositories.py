"""A repository to transfer, a relay that counts and stops, and a part of another Hub."""

import hashlib
import http.server
import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import joined
from containers import dense, pattern, zt1
from relay import Relay
from server_process import PROGRAM

LIMIT_S = 120
PART = 1_500_000
REPOSITORY = {
    "config.json": b'{"model_type": "llama"}',
    "generation_config.json": b"{}",
    "tokenizer.json": b'{"version": "1.0", "model": "' + b"x" * 700_000 + b'"}',
    "README.md": "# tiny, caf\u00e9\n".encode(),
    "training_args.bin": b"no tensors" * 100,
    "original/params.json": b'{"dim": 64}',
    "empty.txt": b"",
    "adapter.zt": zt1({"a": dense(pattern(5000, seed=41), digest="sha256")}),
    **joined.files_with_index("model", [pattern(PART, seed=42), pattern(PART, seed=43)]),
}
PARTS = sorted(name for name in REPOSITORY if name.startswith("model-"))
INDEX = "model.safetensors.index.json"
INCOMPLETE = {name: data for name, data in REPOSITORY.items() if name not in ("adapter.zt", "training_args.bin", PARTS[1])}
UNFINISHED = {"weights.bin.part": b"another file", "original/params.json.part.json": b"{}", "README.md.part": b"x"}
LONE = {"draft.part": b"a draft", "weights.part.json": b"{}"}  # beside no file of the name


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for_model(url):
    """The server's list is not as new as its folder."""
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            return urllib.request.urlopen(url).close()
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 404 and time.monotonic() < end
        time.sleep(0.02)


class Counter(Relay):
    """Counts what clients send, and stops passing it on after so many bytes of one connection."""

    def __init__(self, port):
        self.passed, self.most, self.stopped = 0, None, threading.Event()
        super().__init__("127.0.0.1", port)

    def passing(self, data, is_request, connection):
        if not is_request:
            return True
        if self.most is not None and connection.carried > self.most:
            self.stopped.set()
            time.sleep(0.05)
            return False
        self.passed += len(data)
        return True


def begin(*command, environment=None, folder=None):
    return subprocess.Popen(
        [str(PROGRAM), *map(str, command)], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the Hub that clients read, as its documentation has it."""

    files, commit = REPOSITORY, "c0ffee" * 6 + "0123"
    protocol_version = "HTTP/1.1"
    names = None

    def answer(self, status, body, **fields):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if path == "/api/models/acme/tiny/revision/main":
            return self.describe()
        start = f"/acme/tiny/resolve/{self.commit}/"
        if not path.startswith(start) or path[len(start) :] not in self.files:
            return self.answer(404, b"<html>Not found</html>", Content_Type="text/html")
        data = self.files[path[len(start) :]]
        etag = f'"{hash(data)}"'
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if not first:
            return self.answer(200, data, ETag=etag)
        last = min(int(last), len(data) - 1)
        content_range = f"bytes {first}-{last}/{len(data)}"
        return self.answer(206, data[int(first) : last + 1], ETag=etag, Content_Range=content_range)

    do_HEAD = do_GET

    def describe(self):
        siblings = [{"rfilename": ".gitattributes", "size": 3}]
        for name, data in self.files.items():
            entry = {"rfilename": name, "size": len(data)}
            if name.endswith(".safetensors"):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            siblings.append(entry)
        siblings += [{"rfilename": name, "size": 4} for name in self.names or ()]
        self.answer(200, json.dumps({"id": "acme/tiny", "sha": self.commit, "siblings": siblings}).encode())

    def log_message(self, *_):
        pass
