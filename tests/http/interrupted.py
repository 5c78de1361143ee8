"""Uploads of every kind that may be cut off at any moment, and that know what had been acknowledged by then.

Each runs in a thread of its own against a server that is about to be killed (or whose disk fails), remembers what was
acknowledged, and can afterwards say whether the server kept its word, and go on where it stood.
"""

import base64
import hashlib
import http.client
import itertools
import json
import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

from containers import dense, pattern, zt1
from wire import get, http_connection

TIMEOUT_S = 180
PIECE_TYPE = "application/offset+octet-stream"


class Refused(Exception):
    """An answer that is neither success nor the end of the connection."""


def call(server, method, path, body=None, fields=None, expected=(200, 201, 202, 204)):
    connection = http_connection(server)
    try:
        connection.request(method, path, body, fields or {})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status not in expected:
        raise Refused(f"{method} {path}: {answer.status} {content[:500]!r}")
    return answer, content


class Interrupted:
    """What the kinds share: a model's name, the data, and a thread that works until it is done or cut off."""

    def __init__(self, name, random):
        self.name = name
        self.data = pattern(random.choice([1, 5000, 70_000, 700_000, 2_000_000]), seed=random.randrange(1 << 20))
        self.is_published = False  # acknowledged: the model must be there
        self.refusal = None

    def start(self, server):
        self.thread = threading.Thread(target=self._run, args=(server,), daemon=True)
        self.thread.start()

    def _run(self, server):
        try:
            self.proceed(server)
        except Refused as refusal:
            self.refusal = str(refusal)
        except (OSError, http.client.HTTPException):
            pass

    def join(self):
        self.thread.join(2 * TIMEOUT_S)
        assert not self.thread.is_alive()

    def components(self):
        return {"w": self.data}

    def assert_whole(self, server):
        """The listed model must equal what was sent."""
        for name, data in self.components().items():
            answer = get(server, f"/v1/models/{self.name}/objects/{name}/data")
            assert answer.status == 200, answer.body
            assert answer.body == data, f"{self.name}/{name}: wrong bytes"

    def ids(self):
        """Of uploads that may go on being there, unfinished."""
        return set()


class Whole(Interrupted):
    """PUT of a file."""

    def proceed(self, server):
        call(server, "PUT", f"/v1/models/{self.name}", zt1({"w": dense(self.data)}))
        self.is_published = True

    def resume(self, server):
        self.proceed(server)


class Resumable(Interrupted):
    """tus: created, then sent in pieces."""

    FIELDS = {"Tus-Resumable": "1.0.0"}

    def __init__(self, name, random):
        super().__init__(name, random)
        self.file = bytes(zt1({"w": dense(self.data)}))
        self.piece = random.choice([1000, 100_000, 10_000_000])
        if self.piece == 1000:
            self.piece = max(1000, len(self.file) // 7)
        self.path = None
        self.offset = 0  # acknowledged
        self.is_length_known = True

    def proceed(self, server):
        if self.path is None:
            self._create(server)
        while self.offset < len(self.file) or not self.is_length_known:
            self._send_piece(server)
        self.is_published = True

    def _length_at_creation(self):
        return {"Upload-Length": str(len(self.file))}

    def _length_of_piece(self, end):
        return {}

    def _create(self, server):
        metadata = "model " + base64.b64encode(self.name.encode()).decode()
        fields = self.FIELDS | self._length_at_creation() | {"Upload-Metadata": metadata}
        answer, _ = call(server, "POST", "/v1/resumable", b"", fields)
        self.path = urlsplit(answer.headers["Location"]).path

    def _send_piece(self, server):
        piece = self.file[self.offset : self.offset + self.piece]
        checksum = "sha256 " + base64.b64encode(hashlib.sha256(piece).digest()).decode()
        fields = self.FIELDS | {
            "Upload-Offset": str(self.offset),
            "Content-Type": PIECE_TYPE,
            "Upload-Checksum": checksum,
        } | self._length_of_piece(self.offset + len(piece))
        answer, _ = call(server, "PATCH", self.path, piece, fields)
        assert int(answer.headers["Upload-Offset"]) == self.offset + len(piece)
        self.offset += len(piece)
        self.is_length_known = self.is_length_known or self.offset == len(self.file)

    def resume(self, server):
        """Continues from the offset that the server reports; nothing that was acknowledged may be missing."""
        if self.path is None:
            return self.proceed(server)
        answer, _ = call(server, "HEAD", self.path, None, self.FIELDS, (200, 204, 404, 410))
        if answer.status in (404, 410):
            # Published by the last piece, whose answer did not arrive; then it is there.
            assert get(server, f"/v1/models/{self.name}").status == 200, f"{self.path} is gone and nothing came of it"
            self.is_published = True
            return None
        offset = int(answer.headers["Upload-Offset"])
        assert self.offset <= offset <= len(self.file), f"{self.offset} bytes were acknowledged, {offset} are there"
        self.offset = offset
        assert not self.is_length_known or int(answer.headers["Upload-Length"]) == len(self.file)
        return self.proceed(server)

    def ids(self):
        return {self.path.rsplit("/", 1)[-1]} if self.path else set()


class Deferred(Resumable):
    """tus: the last piece states the length, or an empty one after it."""

    def __init__(self, name, random):
        super().__init__(name, random)
        self.is_length_known = False

    def _length_at_creation(self):
        return {"Upload-Defer-Length": "1"}

    def _length_of_piece(self, end):
        return {"Upload-Length": str(len(self.file))} if end == len(self.file) else {}


class Joined(Interrupted):
    """tus: parts, one after another, and a final upload that is made of them."""

    FIELDS = {"Tus-Resumable": "1.0.0"}

    def __init__(self, name, random):
        super().__init__(name, random)
        self.file = bytes(zt1({"w": dense(self.data)}))
        cuts = sorted(random.randrange(len(self.file)) for _ in range(random.choice([0, 1, 3])))
        self.parts = [self.file[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(self.file)])]
        self.paths = []
        self.offset = 0  # acknowledged bytes of the last part that has a path

    def proceed(self, server):
        while len(self.paths) < len(self.parts) or self.offset < len(self.parts[-1]):
            if not self.paths or self.offset == len(self.parts[len(self.paths) - 1]):
                self._create_part(server)
            else:
                self._send_rest(server)
        metadata = "model " + base64.b64encode(self.name.encode()).decode()
        parts = "final;" + " ".join(self.paths)
        call(server, "POST", "/v1/resumable", b"", self.FIELDS | {"Upload-Metadata": metadata, "Upload-Concat": parts})
        self.is_published = True

    def _create_part(self, server):
        """With half of its bytes."""
        part = self.parts[len(self.paths)]
        fields = {"Upload-Concat": "partial", "Upload-Length": str(len(part)), "Content-Type": PIECE_TYPE}
        answer, _ = call(server, "POST", "/v1/resumable", part[: len(part) // 2], self.FIELDS | fields)
        self.paths.append(urlsplit(answer.headers["Location"]).path)
        self.offset = int(answer.headers["Upload-Offset"])
        assert self.offset == len(part) // 2

    def _send_rest(self, server):
        part = self.parts[len(self.paths) - 1]
        fields = self.FIELDS | {"Upload-Offset": str(self.offset), "Content-Type": PIECE_TYPE}
        call(server, "PATCH", self.paths[-1], part[self.offset :], fields)
        self.offset = len(part)

    def resume(self, server):
        """What was acknowledged of the parts is there, or the model is, or both."""
        for path, part in zip(self.paths, self.parts, strict=False):
            answer, _ = call(server, "HEAD", path, None, self.FIELDS, (200, 404))
            if answer.status == 404:
                assert get(server, f"/v1/models/{self.name}").status == 200, f"{path} is gone and nothing came of it"
                self.is_published = True
                return None
            offset = int(answer.headers["Upload-Offset"])
            acknowledged = self.offset if path == self.paths[-1] else len(part)
            assert acknowledged <= offset <= len(part), f"{acknowledged} bytes were acknowledged, {offset} are there"
        self.offset = offset if self.paths else 0
        return self.proceed(server)

    def ids(self):
        return {path.rsplit("/", 1)[-1] for path in self.paths}


class Written(Interrupted):
    """The streaming writer: three components, raw, chunked and compressed, then the commit."""

    def __init__(self, name, random):
        super().__init__(name, random)
        self.version = random.choice(["1.2.0", "2"])
        self.path = None
        self.acknowledged = set()

    def components(self):
        return {"raw": self.data, "chunked": self.data[::2], "packed": self.data[: len(self.data) // 2 + 1]}

    def proceed(self, server):
        if self.path is None:
            answer, _ = call(
                server, "POST", f"/v1/models/{self.name}/uploads", json.dumps({"version": self.version}).encode()
            )
            self.path = urlsplit(answer.headers["Location"]).path
        for name, data in self.components().items():
            if name not in self.acknowledged:
                self._send(server, name, data)
        call(server, "POST", f"{self.path}/commit", b"")
        self.is_published = True

    def _send(self, server, name, data):
        query = f"dtype=u8&shape={len(data)}" + ("&encoding=zstd" if name == "packed" else "")
        body = iter([data[: len(data) // 2], data[len(data) // 2 :]]) if name == "chunked" else data
        call(server, "PUT", f"{self.path}/objects/{name}/data?{query}", body)
        self.acknowledged.add(name)

    def resume(self, server):
        if self.path is None:
            return self.proceed(server)
        answer, content = call(server, "GET", self.path, expected=(200, 404))
        if answer.status == 404:
            assert get(server, f"/v1/models/{self.name}").status == 200, f"{self.path} is gone and nothing came of it"
            self.is_published = True
            return None
        there = {name for name, shown in json.loads(content).get("objects", {}).items() if shown.get("components")}
        assert self.acknowledged <= there or get(server, f"/v1/models/{self.name}").status == 200
        return self.proceed(server)

    def ids(self):
        return {self.path.rsplit("/", 1)[-1]} if self.path else set()


KINDS = [Whole, Resumable, Deferred, Joined, Written]


def uploads_in_progress(server):
    _, content = call(server, "GET", "/v1/uploads")
    return {upload["id"] for upload in json.loads(content)["uploads"]}


def hidden_files(root):
    """Hidden files below the root, except for the server's state; an upload in progress is listed by its id."""
    found = set()
    # Unlike rglob, walk bears folders that vanish meanwhile.
    for path in (Path(place) / name for place, folders, files in os.walk(root) for name in folders + files):
        parts = path.relative_to(root).parts
        hidden = [part for part in parts if part.startswith(".")]
        if not hidden or parts[0] == ".ztserve":
            continue
        if parts[0] == ".ztserve-uploads":
            # What remembers an outcome, so that it can be asked for again, is a journal, or facts, a length and state, or a description and its parts, and no data.
            if len(parts) == 3 and parts[2] not in ("writer-journal", "resumable", "length", "state", "multipart", "parts"):
                found.add(parts[1])
        else:
            found.add("/".join(parts))
    return found
