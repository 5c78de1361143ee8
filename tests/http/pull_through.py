"""Servers that mirror a Hub, and what a client gets of them; the Hub is mock_hub.MockHub."""

import hashlib
import http.client
import json
import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import numpy as np

import meddler as acts
import parts
from wire import connect, eventually, http_connection, read_head, segment

MIB = 1 << 20
# What the server fetches at least, and what it verifies last.
BLOCK = MIB
REPO = "acme/tiny"
PIECE = 1 << 18


def noise(size, seed=1):
    """Bytes that differ everywhere and from seed to seed, as pattern() in less time."""
    return np.random.default_rng(seed).bytes(size)


def safetensors(size, seed=1):
    """A model with two tensors, of about this size."""
    data = noise(size, seed)
    return parts.safetensors_part([("a", data[: size // 2]), ("b", data[size // 2 :])])


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class MirrorServers:
    """Starts servers with upstreams. One that is started on the folder of an earlier one has its mirror too."""

    def __init__(self, start, folder):
        self.start, self.folder, self.count = start, folder, 0

    def new_root(self):
        self.count += 1
        root = self.folder / f"mirror-{self.count}"
        root.mkdir()
        return root

    def __call__(self, *urls, root=None, arguments=(), top=None, listen="127.0.0.1:0", environment=None, **settings):
        """Settings are those of each upstream: revalidate_s=1, offline=True; top: those beside the upstreams; root: a folder."""
        root = root or self.new_root()
        names = [f"up{number}" for number, _ in enumerate(urls)]
        upstreams = [{"name": name, "url": url, **settings} for name, url in zip(names, urls, strict=True)]
        file = self.folder / f"{root.name}.config.json"
        file.write_text(json.dumps({"upstreams": upstreams, **(top or {})}))
        server = self.start(root, "--config", file, *arguments, listen=listen, environment=environment or {})
        server.root, server.config = root, file
        return server

    def again(self, server, *urls, **options):
        """On the folder of a server that has ended."""
        return self(*urls, root=server.root, **options)


# --- what a client gets ---


@dataclass
class Got:
    """An answer as far as it came; is_whole: none of its bytes is missing."""

    status: int
    fields: object
    body: bytes
    is_whole: bool

    def __repr__(self):
        return f"<{self.status} {dict(self.fields.items())} {len(self.body)} bytes {self.body[:300]!r} {self.is_whole}>"

    @property
    def is_right(self):
        return self.status in (200, 206) and self.is_whole

    def json(self):
        return json.loads(self.body)


def resolve_path(repo, path, revision="main"):
    return f"/{repo}/resolve/{quote(revision, safe='')}/{quote(path)}"


def fetch(server, target, fields=None, method="GET"):
    """One request, and those to which it is redirected on the same server."""
    for _ in range(4):
        got = fetch_once(server, target, fields, method)
        if got.status not in (301, 302, 307, 308):
            return got
        place = urlsplit(got.fields["Location"])
        assert place.netloc in ("", f"{server.host}:{server.port}"), got
        target = place.path + (f"?{place.query}" if place.query else "")
    raise AssertionError(f"too many redirects: {target}")


def fetch_once(server, target, fields=None, method="GET"):
    connection = http_connection(server)
    received, status, head = bytearray(), 0, http.client.HTTPMessage()
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (fields or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        status, head = response.status, response.headers
        while piece := response.read1(PIECE):
            received += piece
        missing = int(head.get("Content-Length", len(received))) - len(received)
        return Got(status, head, bytes(received), method == "HEAD" or missing == 0)
    except (OSError, http.client.HTTPException):
        return Got(status, head, bytes(received), False)
    finally:
        connection.close()


def download(server, repo, path, revision="main", **fields):
    """A file by the Hub's address; fields as keywords, with _ for -."""
    return fetch(server, resolve_path(repo, path, revision), {name.replace("_", "-"): text for name, text in fields.items()})


def files_path(repo, path):
    return f"/files/{quote(f'{repo}/{path}')}"


def eventually_right(server, target, content, fields=None):
    """Asks again until the whole is there, as a patient client does."""

    def attempt():
        got = fetch(server, target, fields)
        return got if got.is_right else None

    got = eventually(attempt)
    assert got.body == content
    return got


def eventually_downloaded(server, repo, path, content, revision="main"):
    return eventually_right(server, resolve_path(repo, path, revision), content)


def download_in_pieces(server, target, size, length=10 * MIB, tries=1):
    """By closed ranges, as clients do that fetch side by side, and fetch a piece that was cut again. Gives the answers."""
    ranges = [(begin, min(begin + length, size) - 1) for begin in range(0, size, length)]

    def piece(first, last):
        for _ in range(tries):
            got = fetch(server, target, {"Range": f"bytes={first}-{last}"})
            if got.is_right:
                break
        return got

    return [piece(first, last) for first, last in ranges]


def joined(pieces, size):
    """What a client makes of pieces that it believes to be complete: None if it sees that they are not."""
    content = b"".join(piece.body for piece in pieces)
    return content if all(piece.is_right for piece in pieces) and len(content) == size else None


def resumed_download(server, target, size, unit=10 * MIB, tries=30, have=b""):
    """As huggingface_hub does it: continues from whole units that it has, begins again at a 200, hashes nothing. Gives what it
    believes to be the file, or None. have: the beginning that it has already."""
    for _ in range(tries):
        fields = {"Range": f"bytes={len(have)}-"} if have else {}
        got = fetch(server, target, fields)
        if got.status == 200:
            have = b""
        if got.status in (200, 206):
            have += got.body
            if len(have) == size:
                return have
            have = have[: len(have) // unit * unit]
    return None


def begin_reading(server, target, fields=""):
    """A connection that has the head of an answer, its fields, and the first bytes if they came along; follows a redirect."""
    for _ in range(3):
        connection = connect(server)
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
        status, head, body = read_head(connection)
        if status not in (307, 302):
            return connection, status, head, body
        connection.close()
        target = re.sub(r"^https?://[^/]+", "", head["location"])
    raise AssertionError("too many redirects")


def read_at_least(connection, length, received=b""):
    """Until so many bytes are there."""
    received = bytearray(received)
    while len(received) < length:
        piece = connection.recv(1 << 18)
        assert piece, f"the answer ended after {len(received)} bytes"
        received += piece
    return bytes(received)


def model_name(repo, file):
    """As /v1/models names a model of a repository."""
    return f"{repo}/{file.rsplit('.', 1)[0]}"


def v1_path(repo, file, rest=""):
    return f"/v1/models/{segment(model_name(repo, file))}{rest}"


# --- what upstream does ---


def flip_at(hub, offset, times=1):
    """One bit of each large file is another on its way, so many times."""

    def covers(request):
        first, last = request.range or (0, offset)
        return first <= offset <= last

    def act(request, handler):
        first = (request.range or (0, 0))[0]
        true = handler.forward(request)
        body = bytearray(true.body)
        if offset - first < len(body):
            body[offset - first] ^= 1
        return acts.replace(true, body=bytes(body))

    return hub.store.meddle(act, "read", when=covers, times=times)


def covered(tally, size):
    """The ranges of a file that were asked for, as (first, last)."""
    return [one.request.range or (0, size - 1) for one in tally.store.of("read")]
