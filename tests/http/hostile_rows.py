"""What the rows of hostile_requests.py and hostile_bodies.py are made of: outcomes, and requests as bytes."""

from dataclasses import dataclass

from containers import dense, zt1

FILE = bytes(zt1({"w": dense(b"12345678")}))
HOST = b"Host: localhost\r\n"
# What a smuggled request would do: the victim would be gone.
SMUGGLED = b"DELETE /v1/models/victim HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = 200_000


@dataclass(frozen=True)
class Answer:
    """One acceptable outcome: the status of every answer, and their number. `kept` says whether the request after the
    row's bytes is answered too, and nothing but that. `code` is the problem's; None for success and for the library's
    own pages.
    """

    status: int
    code: str = None
    kept: bool = False
    count: int = 1


# The connection is kept, and the next request is answered.
OK = (Answer(200, kept=True),)
NOT_FOUND = (Answer(404, "not-found", kept=True),)
INVALID_NAME = (Answer(400, "invalid-name", kept=True),)
INVALID = (Answer(400, "invalid-request", kept=True),)
ANOTHER_METHOD = (Answer(405, "method-not-allowed", kept=True),)
UNKNOWN_METHOD = (Answer(501, "not-implemented", kept=True),)
NO_CONTENT = (Answer(204, kept=True),)
PARTIAL = (Answer(206, kept=True),)
STORED = (Answer(201, kept=True),)
UNREADABLE = (Answer(422, "invalid-model", kept=True),)
# The connection ends with the answer.
OK_LAST = (Answer(200),)
STORED_LAST = (Answer(201),)
NOT_FOUND_LAST = (Answer(404, "not-found"),)
REFUSED = (Answer(400, "invalid-request"),)
TOO_LARGE = (Answer(413, "too-large"),)
URI_TOO_LONG = (Answer(414, "uri-too-long"),)
NOT_EXPECTED = (Answer(417, "expectation-failed"),)
# The library's own pages, and its way of ending a connection without any.
PAGE = (Answer(400),)
PAGE_413 = (Answer(413),)
PAGE_414 = (Answer(414),)
PAGE_431 = (Answer(431),)
PAGE_505 = (Answer(505),)
CUT = (Answer(0, count=0),)
# No request in it, but the next one is answered.
NOTHING_ASKED = (Answer(0, kept=True, count=0),)


def request(*lines, line=b"GET /healthz HTTP/1.1", body=b"", host=HOST):
    """A request with these field lines behind its Host."""
    return line + b"\r\n" + host + b"".join(field + b"\r\n" for field in lines) + b"\r\n" + body


def put(*lines, body=FILE):
    return request(*lines, line=b"PUT /v1/models/target HTTP/1.1", body=body)


def post(*lines, body=b""):
    return request(*lines, line=b"POST /v1/models/m/verification HTTP/1.1", body=body)


def chunks(*pieces, end=b"0\r\n\r\n"):
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(FILE)


def chunked(body):
    return put(CHUNKED, body=body)


def line(text, *fields):
    return request(*fields, line=text)


def to(target, method=b"GET"):
    return request(line=b"%b %b HTTP/1.1" % (method, target))


def hosted(value):
    return request(host=b"Host: " + value + b"\r\n")
