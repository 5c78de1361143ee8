"""Uploading by xet as the Hub's clients do: tokens, xorbs and shards, made here."""

import hashlib
import json
import struct

from wire import ask

PLAIN, LZ4, PLANES = 0, 1, 2
CHUNK = 64 << 10
FRAME = bytes.fromhex("04224d18604082")
TAG = b"HFRepoMetaData\0UigEj{\x81W\x83\xa5\xbd\xd9\\\xcd\xd1J\xa9"
HAS_VERIFICATION, HAS_SHA256 = 1 << 31, 1 << 30


# --- chunks ---


def frame(content):
    """A frame of LZ4, of blocks that are not compressed."""
    blocks = [content[at : at + 65536] for at in range(0, len(content), 65536)]
    return FRAME + b"".join(struct.pack("<I", len(block) | 1 << 31) + block for block in blocks) + bytes(4)


def run(byte, length):
    """A frame of LZ4 that decodes to one byte many times: one block for each 64 KiB."""
    stored = FRAME
    while length > 0:
        count = min(length, 65536)
        length -= count
        repeated = count - 1 - 5 - 4 - 15
        assert repeated >= 0
        block = b"\x1f" + byte + b"\1\0" + b"\xff" * (repeated // 255) + bytes([repeated % 255]) + b"\x50" + byte * 5
        stored += struct.pack("<I", len(block)) + block
    return stored + bytes(4)


def planes(content):
    return b"".join(content[at::4] for at in range(4))


def chunk_of(scheme, stored, length):
    return b"\0" + len(stored).to_bytes(3, "little") + bytes([scheme]) + length.to_bytes(3, "little") + stored


def chunk(content, scheme=PLAIN):
    stored = {PLAIN: lambda: content, LZ4: lambda: frame(content), PLANES: lambda: frame(planes(content))}[scheme]()
    return chunk_of(scheme, stored, len(content))


def pieces(content, length=CHUNK):
    return [content[at : at + length] for at in range(0, len(content), length)]


class Xorb:
    """Chunks with a name: that is not checked, so any will do."""

    def __init__(self, *chunks, hash=None):
        self.body = b"".join(chunks)
        self.hash = hash or hashlib.blake2b(self.body, digest_size=32).digest()

    @property
    def hex(self):
        return "".join(f"{number:016x}" for number in struct.unpack("<4Q", self.hash))


# --- shards ---


def record(hash, *numbers):
    return hash + struct.pack("<4I", *numbers)


def term(xorb, length, first, end):
    return record(getattr(xorb, "hash", xorb), 0, length, first, end)


def sha256_record(content):
    digest = content if len(content) == 32 else hashlib.sha256(content).digest()
    return record(struct.pack("<4Q", *struct.unpack(">4Q", digest)), 0, 0, 0, 0)


def file_of(terms, sha256=None, flags=HAS_VERIFICATION, count=None):
    """What a shard says of one file; sha256: 32 bytes, or None."""
    flags |= HAS_SHA256 if sha256 is not None else 0
    head = record(b"F" * 32, flags, len(terms) if count is None else count, 0, 0)
    verification = [record(b"V" * 32, 0, 0, 0, 0)] * (len(terms) if flags & HAS_VERIFICATION else 0)
    return b"".join([head, *terms, *verification, sha256_record(sha256) if sha256 is not None else b""])


def shard(*files, end=record(b"\xff" * 32, 0, 0, 0, 0)):
    return TAG + struct.pack("<2Q", 2, 0) + b"".join(files) + end + b"what follows is about xorbs"


def whole(content, schemes=(PLAIN, LZ4, PLANES)):
    """A file as one xorb, and the shard's entry of it."""
    parts = pieces(content)
    xorb = Xorb(*(chunk(part, schemes[at % len(schemes)]) for at, part in enumerate(parts)))
    return xorb, file_of([term(xorb, len(content), 0, len(parts))], hashlib.sha256(content).digest())


# --- requests ---


def token_answer(server, repo, revision="main", **fields):
    return ask(server, "GET", f"/api/models/{repo}/xet-write-token/{revision}", fields)


def create(server, repo, **fields):
    body = json.dumps({"name": repo}).encode()
    answer = ask(server, "POST", "/api/repos/create", {"Content-Type": "application/json", **fields}, body)
    assert answer.status in (200, 409), answer.body


class Session:
    """An upload with an address of its own."""

    def __init__(self, server, repo, **fields):
        self.server = server
        create(server, repo, **fields)
        answer = token_answer(server, repo, **fields)
        assert answer.status == 200, answer.body
        told = answer.json()
        self.address, self.token, self.end = told["casUrl"], told["accessToken"], told["exp"]
        self.path = self.address[len(server.url) :]
        assert self.address.startswith(server.url)

    @property
    def fields(self):
        return {"Authorization": f"Bearer {self.token}"}

    def post(self, path, body, fields=None):
        return ask(self.server, "POST", self.path + path, self.fields if fields is None else fields, body)

    def send(self, xorb, fields=None):
        return self.post(f"/v1/xorbs/default/{xorb.hex}", xorb.body, fields)

    def describe(self, body, fields=None):
        return self.post("/v1/shards", body, fields)

    def upload(self, content):
        """A file, so that only the commit is missing."""
        xorb, entry = whole(content)
        sent = self.send(xorb)
        assert sent.status == 200, sent.body
        described = self.describe(shard(entry))
        assert described.status == 200, described.body


def lfs_file(path, content):
    value = {"path": path, "algo": "sha256", "oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return {"key": "lfsFile", "value": value}


def commit(server, repo, *lines, **fields):
    body = "\n".join(map(json.dumps, [{"key": "header", "value": {"summary": "s"}}, *lines])).encode()
    return ask(server, "POST", f"/api/models/{repo}/commit/main", {"Content-Type": "application/x-ndjson", **fields}, body)


# --- what is expected ---


def sha256(content):
    return hashlib.sha256(content).digest()


def assert_accepted(answer):
    assert answer.status == 200, (answer.status, answer.body)


def assert_refused(answer, status, *words):
    assert answer.status == status, (answer.status, answer.body)
    for word in words:
        assert word in answer["X-Error-Message"], answer["X-Error-Message"]
    assert answer.json()["error"]


def kept(root):
    places = root / ".ztserve-uploads"
    return [place for place in places.iterdir() if place.is_dir()] if places.exists() else []
