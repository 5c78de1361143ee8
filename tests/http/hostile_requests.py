"""Requests as bytes that a server must not misunderstand, and what it must answer to each: a table for
test_hostile_requests.py.

The shapes are those that the probes of HTTP servers name (Http11Probe, HTTP Garden) and some more, in words and bytes
of our own. The names "victim" and "target" stand for models that belong to one row: the victim exists before and after,
since only smuggled requests delete it; the target does not exist, and afterwards only if the answer is 201.

Where libmicrohttpd 0.9.75 and 1.0.1 differ, because 1.0 refuses by itself what the server refuses with 0.9.75, the row
names both answers.
"""

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
TIMED_OUT = (Answer(408, "timeout"),)
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


# --- the request line ---

LINES = {
    "a plain GET": (to(b"/healthz"), OK),
    "an empty line before the request": (b"\r\n" + to(b"/healthz"), OK),
    "two empty lines before the request": (b"\r\n\r\n" + to(b"/healthz"), OK + CUT),
    "a line feed before the request": (b"\n" + to(b"/healthz"), OK + PAGE + CUT),
    "a blank before the request": (b" " + to(b"/healthz"), REFUSED + PAGE + CUT),
    "a tab before the request": (b"\t" + to(b"/healthz"), REFUSED + PAGE + CUT),
    "nothing but an empty line": (b"\r\n", NOTHING_ASKED),
    "two blanks before the target": (line(b"GET  /healthz HTTP/1.1"), REFUSED + PAGE),
    "two blanks before the version": (line(b"GET /healthz  HTTP/1.1"), REFUSED + PAGE),
    "a tab before the target": (line(b"GET\t/healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "a tab before the version": (line(b"GET /healthz\tHTTP/1.1"), REFUSED + PAGE),
    "a form feed in the line": (line(b"GET\x0c/healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "a vertical tab in the line": (line(b"GET /healthz\x0bHTTP/1.1"), REFUSED + PAGE + CUT),
    "a blank after the version": (line(b"GET /healthz HTTP/1.1 "), REFUSED + PAGE),
    "a carriage return in the line": (line(b"GET /healthz\r HTTP/1.1"), REFUSED + PAGE + CUT),
    "a line feed in the line": (line(b"GET /healthz\nHTTP/1.1"), REFUSED + PAGE + CUT),
    "a line that ends with a line feed": (b"GET /healthz HTTP/1.1\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a line that ends with a carriage return": (b"GET /healthz HTTP/1.1\r" + HOST + b"\r\n", REFUSED + PAGE),
    "all lines end with line feeds": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", REFUSED + PAGE),
    "all lines end with carriage returns": (b"GET /healthz HTTP/1.1\rHost: localhost\r\r", REFUSED + PAGE + CUT),
    "no target": (line(b"GET HTTP/1.1"), REFUSED + PAGE),
    "an empty target": (line(b"GET  HTTP/1.1"), REFUSED + PAGE),
    "a method alone": (line(b"GET"), REFUSED + PAGE + CUT),
    "a colon instead of a blank": (line(b"GET:/healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "NUL in the method": (line(b"GE\x00T /healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "NUL in the target": (to(b"/health\x00z"), REFUSED + PAGE + CUT),
    "NUL after the target": (to(b"/healthz\x00"), REFUSED + PAGE + CUT),
    "NUL in the version": (line(b"GET /healthz HTTP/1.1\x00"), REFUSED + PAGE + CUT),
    "NUL before the request": (b"\x00" + to(b"/healthz"), REFUSED + PAGE + CUT),
    "a blank in the target": (to(b"/health z"), REFUSED + PAGE),
    "another version in the target": (line(b"GET /healthz HTTP/1.1 HTTP/1.1"), REFUSED + PAGE),
    "a request in the target": (line(b"GET /healthz HTTP/1.1%0d%0aHost:x HTTP/1.1"), REFUSED + PAGE),
}

# --- versions (RFC 9112 section 2.3) ---

VERSIONS = {
    "HTTP/0.9": (b"GET /healthz\r\n", REFUSED + PAGE + PAGE_505 + CUT),
    "HTTP/0.9 in words": (line(b"GET /healthz HTTP/0.9"), REFUSED + PAGE + PAGE_505),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", OK_LAST),
    "HTTP/1.0 with Host": (line(b"GET /healthz HTTP/1.0"), OK_LAST),
    "HTTP/1.0 with keep-alive": (line(b"GET /healthz HTTP/1.0", b"Connection: keep-alive"), OK),
    "HTTP/1.0 with Keep-Alive in capitals": (line(b"GET /healthz HTTP/1.0", b"Connection: Keep-Alive"), OK),
    "HTTP/1.0 with close": (line(b"GET /healthz HTTP/1.0", b"Connection: close"), OK_LAST),
    "HTTP/1.0 with a body": (
        line(b"POST /v1/models/m/verification HTTP/1.0", b"Content-Length: 2") + b"12",
        (Answer(202),),
    ),
    "HTTP/1.0 with chunks": (line(b"GET /healthz HTTP/1.0", CHUNKED) + chunks(SMUGGLED), REFUSED),
    "HTTP/1.0 with chunks and a length": (
        line(b"GET /healthz HTTP/1.0", CHUNKED, b"Content-Length: 5") + b"0\r\n\r\n" + SMUGGLED,
        REFUSED + PAGE,
    ),
    "HTTP/1.2": (line(b"GET /healthz HTTP/1.2"), OK + PAGE_505),
    "HTTP/1.9": (line(b"GET /healthz HTTP/1.9"), OK + PAGE_505),
    "HTTP/2.0": (line(b"GET /healthz HTTP/2.0"), PAGE_505),
    "HTTP/3.0": (line(b"GET /healthz HTTP/3.0"), PAGE_505),
    "HTTP/0.0": (line(b"GET /healthz HTTP/0.0"), PAGE_505),
    "HTTP/9.9": (line(b"GET /healthz HTTP/9.9"), PAGE_505),
    "HTTP/1": (line(b"GET /healthz HTTP/1"), REFUSED + PAGE),
    "HTTP/1.": (line(b"GET /healthz HTTP/1."), REFUSED + PAGE),
    "HTTP/11": (line(b"GET /healthz HTTP/11"), REFUSED + PAGE),
    "HTTP/1.10": (line(b"GET /healthz HTTP/1.10"), REFUSED + PAGE),
    "HTTP/01.1": (line(b"GET /healthz HTTP/01.1"), REFUSED + PAGE),
    "HTTP/1.01": (line(b"GET /healthz HTTP/1.01"), REFUSED + PAGE),
    "HTTP/1.1.1": (line(b"GET /healthz HTTP/1.1.1"), REFUSED + PAGE),
    "HTTP/+1.1": (line(b"GET /healthz HTTP/+1.1"), REFUSED + PAGE),
    "HTTP/ 1.1": (line(b"GET /healthz HTTP/ 1.1"), REFUSED + PAGE),
    "HTTP /1.1": (line(b"GET /healthz HTTP /1.1"), REFUSED + PAGE),
    "HTTP/1 .1": (line(b"GET /healthz HTTP/1 .1"), REFUSED + PAGE),
    "HTTP/1,1": (line(b"GET /healthz HTTP/1,1"), REFUSED + PAGE),
    "HTTP/x.y": (line(b"GET /healthz HTTP/x.y"), REFUSED + PAGE),
    "HTTP/4294967297.1": (line(b"GET /healthz HTTP/4294967297.1"), REFUSED + PAGE),
    "http/1.1": (line(b"GET /healthz http/1.1"), REFUSED + PAGE),
    "Http/1.1": (line(b"GET /healthz Http/1.1"), REFUSED + PAGE),
    "HTTPS/1.1": (line(b"GET /healthz HTTPS/1.1"), REFUSED + PAGE),
    "XTTP/1.1": (line(b"GET /healthz XTTP/1.1"), REFUSED + PAGE),
    "ICY/1.1": (line(b"GET /healthz ICY/1.1"), REFUSED + PAGE),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PAGE_505),
    "a hello of TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(517), REFUSED + PAGE + CUT),
    "a message of another protocol": (b"HELO localhost\r\n\r\n", REFUSED + PAGE + PAGE_505 + CUT),
    "a request of RTSP": (line(b"OPTIONS * RTSP/1.0", b"CSeq: 1"), REFUSED + PAGE),
    "noise": (bytes(range(255, 127, -1)) * 4 + b"\r\n\r\n", REFUSED + PAGE + CUT),
    "a thousand NULs": (bytes(1000) + b"\r\n\r\n", NOTHING_ASKED + REFUSED + PAGE + CUT),
}

# --- methods (RFC 9110 section 9) ---

METHODS = {
    "HEAD": (to(b"/healthz", b"HEAD"), OK),
    "OPTIONS": (to(b"/healthz", b"OPTIONS"), NO_CONTENT),
    "POST where only GET is": (to(b"/healthz", b"POST"), ANOTHER_METHOD),
    "PUT where only GET is": (
        request(LENGTH, line=b"PUT /healthz HTTP/1.1", body=FILE),
        (Answer(405, "method-not-allowed"),),
    ),
    "TRACE": (to(b"/healthz", b"TRACE"), ANOTHER_METHOD),
    "TRACE with a body": (
        request(b"Content-Length: %d" % len(SMUGGLED), line=b"TRACE /healthz HTTP/1.1", body=SMUGGLED),
        (Answer(405, "method-not-allowed"),),
    ),
    "CONNECT to a path": (to(b"/healthz", b"CONNECT"), ANOTHER_METHOD),
    "CONNECT to an authority": (to(b"localhost:80", b"CONNECT"), INVALID),
    "PATCH where only GET is": (to(b"/healthz", b"PATCH"), ANOTHER_METHOD),
    "a lower-case method": (to(b"/healthz", b"get"), UNKNOWN_METHOD),
    "an unknown method": (to(b"/healthz", b"BREW"), UNKNOWN_METHOD),
    "a method that begins like a known one": (to(b"/healthz", b"GETX"), UNKNOWN_METHOD),
    "a method of another protocol": (to(b"/healthz", b"M-SEARCH"), UNKNOWN_METHOD),
    "a method that is no token": (to(b"/healthz", b"G=\":<>(e)"), REFUSED + PAGE),
    "a method in brackets": (to(b"/healthz", b"[GET]"), REFUSED),
    "a method with a byte above 127": (to(b"/healthz", b"G\xc9T"), REFUSED),
    "a method of 4,000 letters": (to(b"/healthz", b"A" * 4000), UNKNOWN_METHOD),
    "a method of 200,000 letters": (
        to(b"/healthz", b"A" * LONG),
        REFUSED + PAGE + PAGE_414 + PAGE_431 + (Answer(501),) + CUT,
    ),
    "HEAD with a body": (
        request(b"Content-Length: %d" % len(SMUGGLED), line=b"HEAD /healthz HTTP/1.1", body=SMUGGLED),
        OK,
    ),
    "GET with a body": (request(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED), OK),
    "GET with an empty body": (request(b"Content-Length: 0"), OK),
    "GET with a chunked body": (request(CHUNKED, body=chunks(SMUGGLED)), OK_LAST),
    "GET with a long body": (request(b"Content-Length: 900000", body=bytes(900_000)), OK),
    "GET with a body that is too long": (request(b"Content-Length: 2000000", body=bytes(2_000_000)), TOO_LARGE),
    "OPTIONS with a body": (
        request(b"Content-Length: %d" % len(SMUGGLED), line=b"OPTIONS /healthz HTTP/1.1", body=SMUGGLED),
        (Answer(204),),
    ),
    "DELETE with a body": (
        request(b"Content-Length: %d" % len(SMUGGLED), line=b"DELETE /v1/models/target HTTP/1.1", body=SMUGGLED),
        (Answer(404, "model-not-found", kept=True),),
    ),
    "POST with a body that is not needed": (
        post(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED),
        (Answer(202, kept=True),),
    ),
    "POST without a body": (post(), (Answer(202, kept=True),)),
    "POST with an empty body": (post(b"Content-Length: 0"), (Answer(202, kept=True),)),
    "PUT without a length": (put(body=b""), (Answer(411, "length-required", kept=True),)),
    "PUT of nothing": (put(b"Content-Length: 0", body=b""), UNREADABLE),
    "PUT of a file": (put(LENGTH), STORED),
    "PUT of a file in chunks": (chunked(chunks(FILE)), STORED_LAST),
    "PUT of a request": (put(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED), UNREADABLE),
    "another method named in a field": (
        request(b"X-HTTP-Method-Override: DELETE", line=b"POST /v1/models/victim HTTP/1.1"),
        ANOTHER_METHOD,
    ),
}

# --- targets (RFC 9112 section 3.2) ---

TARGETS = {
    "absolute form": (to(b"http://localhost/healthz"), OK),
    "absolute form of another host": (to(b"http://other.example/healthz"), OK),
    "absolute form in capitals": (to(b"HTTP://LOCALHOST/healthz"), OK),
    "absolute form of https": (to(b"https://localhost/healthz"), OK),
    "absolute form without a path": (to(b"http://localhost"), OK),
    "absolute form with a user": (to(b"http://user@localhost/healthz"), OK + INVALID + REFUSED),
    "absolute form without a host": (to(b"http:///healthz"), OK + INVALID + REFUSED + NOT_FOUND),
    "absolute form of another scheme": (to(b"ftp://localhost/healthz"), INVALID),
    "authority form": (to(b"localhost:80"), INVALID),
    "asterisk form": (to(b"*"), INVALID),
    "OPTIONS of the server itself": (to(b"*", b"OPTIONS"), NO_CONTENT),
    "a path without its slash": (to(b"healthz"), INVALID),
    "two slashes": (to(b"//healthz"), INVALID_NAME),
    "a host in the path": (to(b"//other.example/healthz"), INVALID_NAME),
    "dot segments": (to(b"/../../../../etc/passwd"), NOT_FOUND),
    "dot segments of files": (
        to(b"/files/../../../../etc/passwd"),
        (Answer(404, "not-found", kept=True), Answer(400, "invalid-name", kept=True)),
    ),
    "escaped dot segments": (
        to(b"/files/%2e%2e/%2e%2e/etc/passwd"),
        (Answer(404, "not-found", kept=True), Answer(400, "invalid-name", kept=True)),
    ),
    "dot segments escaped twice": (
        to(b"/files/%252e%252e/etc/passwd"),
        (Answer(404, "not-found", kept=True), Answer(400, "invalid-name", kept=True)),
    ),
    "escaped slashes to the outside": (
        to(b"/files/..%2f..%2fetc%2fpasswd"),
        (Answer(404, "not-found", kept=True), Answer(400, "invalid-name", kept=True)),
    ),
    "backslashes": (to(b"/files\\..\\..\\etc\\passwd"), NOT_FOUND),
    "a model outside": (to(b"/v1/models/..%2f..%2fetc%2fpasswd"), INVALID_NAME),
    "an escaped NUL": (to(b"/v1/models/m%00"), INVALID_NAME),
    "an escaped CR LF": (to(b"/v1/models/m%0d%0aX:%20y"), INVALID_NAME),
    "an overlong slash": (to(b"/v1/models/m%c0%af"), INVALID_NAME),
    "a surrogate": (to(b"/v1/models/m/objects/%ed%a0%80"), INVALID_NAME),
    "a malformed escape": (to(b"/v1/models/m%zz"), INVALID_NAME),
    "half an escape": (to(b"/v1/models/m%4"), INVALID_NAME),
    "a fragment": (to(b"/healthz#top"), REFUSED),
    "bytes above 127": (to(b"/h\xc3\xa9althz"), NOT_FOUND + REFUSED),
    "bytes of no UTF-8": (to(b"/v1/models/\xff\xfe"), INVALID_NAME + REFUSED),
    "a control character": (to(b"/health\x01z"), REFUSED + PAGE),
    "DEL": (to(b"/health\x7fz"), REFUSED),
    "a quote and brackets": (to(b"/\"<>[]{}|^`"), NOT_FOUND + REFUSED),
    "a query of a thousand parameters": (to(b"/healthz?" + b"a=b&" * 1000), OK),
    "a target of 8,192 bytes": (to(b"/healthz?" + b"x" * 8183), OK),
    "a target of 8,193 bytes": (to(b"/healthz?" + b"x" * 8184), (Answer(414, "uri-too-long", kept=True),)),
    "a target of 12,000 bytes": (to(b"/" + b"x" * 12_000), (Answer(414, "uri-too-long", kept=True),)),
    "a target of 15,000 bytes": (to(b"/" + b"x" * 15_000), (Answer(414, "uri-too-long", kept=True),)),
    **{
        f"a target of {size:,} bytes": (
            to(b"/" + b"x" * size),
            (*URI_TOO_LONG, Answer(431, "headers-too-large"), *PAGE_431, *PAGE_414, *CUT),
        )
        for size in (15_900, 16_000, 16_200, 16_300, 16_400, 17_000)
    },
    "a target of 200,000 bytes": (to(b"/" + b"x" * LONG), PAGE_414),
}

# --- Host (RFC 9112 section 3.2) ---

HOSTS = {
    "no Host": (request(host=b""), REFUSED + PAGE),
    "no Host in HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", OK_LAST),
    "no Host but an absolute form": (b"GET http://localhost/healthz HTTP/1.1\r\n\r\n", REFUSED + PAGE),
    "two Hosts": (hosted(b"localhost\r\nHost: other.example"), REFUSED),
    "the same Host twice": (hosted(b"localhost\r\nHost: localhost"), REFUSED),
    "two Hosts with a field between": (hosted(b"localhost\r\nX: y\r\nHost: localhost"), REFUSED),
    "two Hosts in one": (hosted(b"localhost, other.example"), REFUSED),
    "two Hosts with a blank between": (hosted(b"localhost other.example"), REFUSED),
    "Host with a user": (hosted(b"user@localhost"), REFUSED),
    "Host with a path": (hosted(b"localhost/healthz"), REFUSED),
    "Host with a query": (hosted(b"localhost?a"), REFUSED),
    "Host with a fragment": (hosted(b"localhost#a"), REFUSED),
    "Host with a scheme": (hosted(b"http://localhost"), REFUSED),
    "Host with a port of letters": (hosted(b"localhost:http"), REFUSED),
    "Host with two ports": (hosted(b"localhost:80:80"), REFUSED),
    "Host with a negative port": (hosted(b"localhost:-1"), REFUSED),
    "Host with half an address": (hosted(b"[::1"), REFUSED),
    "Host with brackets around nothing": (hosted(b"[]"), REFUSED),
    "Host with bytes above 127": (hosted(b"\xfflocalhost\xff"), REFUSED),
    "Host with NUL": (hosted(b"localhost\x00.example"), REFUSED + PAGE),
    "Host with a control character": (hosted(b"local\x01host"), REFUSED),
    "Host in quotes": (hosted(b'"localhost"'), REFUSED),
    "an empty Host": (hosted(b""), OK),
    "Host of blanks": (hosted(b" \t"), OK),
    "Host before blanks": (hosted(b"localhost \t"), OK),
    "Host with an empty port": (hosted(b"localhost:"), OK),
    "Host with an escape": (hosted(b"local%20host"), OK),
    "Host with an underscore": (hosted(b"my_host"), OK),
    "Host with a port": (hosted(b"localhost:8080"), OK),
    "Host that is an address": (hosted(b"127.0.0.1:8080"), OK),
    "Host that is an address of IPv6": (hosted(b"[::1]:80"), OK),
    "Host in capitals": (request(host=b"HOST: LOCALHOST\r\n"), OK),
    "Host without a blank": (request(host=b"Host:localhost\r\n"), OK),
    "Host with a blank before the colon": (request(host=b"Host : localhost\r\n"), REFUSED + PAGE),
    "a folded Host": (request(host=b"Host:\r\n localhost\r\n"), REFUSED + PAGE),
    "Host after a blank": (request(host=b" Host: localhost\r\n"), REFUSED + PAGE),
    "Host with an underscore in its name": (request(host=b"Ho_st: localhost\r\n"), REFUSED + PAGE),
}

# --- field lines (RFC 9112 section 5) ---

FIELDS = {
    "a blank before the colon": (request(b"X-Field : y"), REFUSED + PAGE),
    "a tab before the colon": (request(b"X-Field\t: y"), REFUSED + PAGE),
    "a blank in the name": (request(b"X Field: y"), REFUSED + PAGE),
    "a tab in the name": (request(b"X\tField: y"), REFUSED + PAGE),
    "a blank before the first field": (b"GET /healthz HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a tab before the first field": (
        b"GET /healthz HTTP/1.1\r\n\tContent-Length: 1\r\n" + HOST + b"\r\nX",
        REFUSED + PAGE,
    ),
    "a line of blanks before the fields": (b"GET /healthz HTTP/1.1\r\n  \r\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a line of blanks between the fields": (request(b"X: y", b" ", b"Z: z"), REFUSED + PAGE),
    "a folded field": (request(b"X: a", b" b"), REFUSED + PAGE),
    "a field folded by a tab": (request(b"X: a", b"\tb"), REFUSED + PAGE),
    "a field that begins with a fold": (request(b"X:", b" b"), REFUSED + PAGE),
    "a fold after the last field": (request(b"X: a", b" "), REFUSED + PAGE),
    "a fold that looks like a field": (request(b"X: a", b" Content-Length: 5", body=b"12345"), REFUSED + PAGE),
    "a line without a colon": (request(b"Nonsense"), REFUSED + PAGE),
    "a name of two lines": (request(b"Transfer-", b"Encoding: chunked", body=chunks(SMUGGLED)), REFUSED + PAGE),
    "a length without a colon": (request(b"Content-Length %d" % len(SMUGGLED), body=SMUGGLED), REFUSED + PAGE),
    "an empty name": (request(b": y"), REFUSED + PAGE),
    "an empty name without a value": (request(b":"), REFUSED + PAGE),
    "an empty name first": (b"GET /healthz HTTP/1.1\r\n: x\r\n" + HOST + b"\r\n", REFUSED + PAGE),
    "an empty name before a request": (b"GET /healthz HTTP/1.1\r\n" + HOST + b": x\r\n" + SMUGGLED, REFUSED + PAGE),
    "a name in brackets": (request(b"[X]: y"), REFUSED),
    "a name with a slash": (request(b"X/Y: y"), REFUSED),
    "a name with an at sign": (request(b"X@Y: y"), REFUSED),
    "a name in quotes": (request(b'"X": y'), REFUSED),
    "a name with a byte above 127": (request(b"X\xe9: y"), REFUSED),
    "a name with a no-break blank": (request(b"Content-Length\xa0: %d" % len(SMUGGLED), body=SMUGGLED), REFUSED),
    "a name with a next-line character": (request(b"Content-Length\x85: %d" % len(SMUGGLED), body=SMUGGLED), REFUSED),
    "a name with NUL": (request(b"X\x00Y: y"), REFUSED + PAGE),
    "a name that is NUL": (request(b"\x00: y"), REFUSED + PAGE),
    "a name with a control character": (request(b"X\x01: y"), REFUSED),
    "a name with DEL": (request(b"X\x7f: y"), REFUSED),
    "a name with a carriage return": (request(b"X\rY: y"), REFUSED + PAGE),
    "a value with NUL": (request(b"X: a\x00b"), REFUSED + PAGE),
    "a value that ends with NUL": (request(b"X: a\x00"), REFUSED + PAGE),
    "a value with a control character": (request(b"X: a\x01b"), REFUSED),
    "a value with an escape character": (request(b"X: a\x1b[2Jb"), REFUSED),
    "a value with a backspace": (request(b"X: a\x08b"), REFUSED),
    "a value with DEL": (request(b"X: a\x7fb"), REFUSED),
    "a value with a vertical tab": (request(b"X: a\x0bb"), REFUSED),
    "a value with a carriage return": (request(b"X: a\rb"), REFUSED + PAGE),
    "a field after a carriage return": (request(b"X: a\rContent-Length: 5"), REFUSED + PAGE),
    "a value that ends with a carriage return": (request(b"X: a\r"), REFUSED + PAGE),
    "a value with a line feed": (request(b"X: a\nb"), REFUSED + PAGE),
    "a field after a line feed": (request(b"X: a\nContent-Length: %d" % len(SMUGGLED), body=SMUGGLED), REFUSED + PAGE),
    "a request after two line feeds": (request(b"X:\n\n" + SMUGGLED[:-4]), REFUSED + PAGE),
    "an end of two line feeds": (b"GET /healthz HTTP/1.1\r\nHost: localhost\n\n" + SMUGGLED, REFUSED + PAGE),
    "an end of CR LF LF": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n" + SMUGGLED, REFUSED + PAGE),
    "an end of LF CR LF": (b"GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n" + SMUGGLED, REFUSED + PAGE),
    "an end of CR LF CR": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\rZ" + SMUGGLED, REFUSED + PAGE),
    "an end of two CRs": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\r" + SMUGGLED, REFUSED + PAGE + CUT),
    "a value of bytes above 127": (request(b"X: \xff\xfe\xc3\xa9"), OK),
    "a value with tabs": (request(b"X:\ta\tb\t"), OK),
    "an empty value": (request(b"X:"), OK),
    "a value without a blank": (request(b"X:y"), OK),
    "blanks around a value": (request(b"X:   y   "), OK),
    "names in odd case": (request(b"cOnTeNt-LeNgTh: 0", b"x-UPPER: Y"), OK),
    "a name with an underscore": (request(b"Content_Length: 5"), OK),
    "a coding with an underscore": (request(b"Transfer_Encoding: chunked"), OK),
    "all characters of a token": (request(b"!#$%&'*+-.^_`|~09AZaz: y"), OK),
    "98 fields of one name": (request(*[b"X: y"] * 98), OK),
    "101 fields": (request(*[b"X-%d: y" % i for i in range(100)]), (Answer(431, "headers-too-large"),)),
    "1,000 fields": (request(*[b"X-%d: y" % i for i in range(1000)]), (Answer(431, "headers-too-large"), *PAGE_431)),
    "10,000 fields": (request(*[b"X-%d: y" % i for i in range(10_000)]), PAGE_431),
    "a name of 1,000 letters": (request(b"X" * 1000 + b": y"), OK),
    "a name of 200,000 letters": (request(b"X" * LONG + b": y"), PAGE_431),
    "a value of 8,000 bytes": (request(b"X: " + b"y" * 8000), OK),
    **{
        f"a value of {size:,} bytes": (request(b"X: " + b"y" * size), (Answer(431, "headers-too-large"), *PAGE_431))
        for size in (15_400, 15_900, 15_950, 16_000, 16_050, 16_100, 16_200, 17_000)
    },
    "a value of 13,000 bytes": (request(b"X: " + b"y" * 13_000), OK),
    "99 fields of 120 bytes": (
        request(*[b"X-%02d: " % i + b"y" * 114 for i in range(99)]),
        (Answer(431, "headers-too-large"), *PAGE_431),
    ),
    "a value of 33,000 bytes": (request(b"X: " + b"y" * 33_000), PAGE_431),
    "a value of 200,000 bytes": (request(b"X: " + b"y" * LONG), PAGE_431),
    "a field that never ends": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * LONG, PAGE_431),
    "cookies of every kind": (request(b"Cookie: a=b; =c; d; ;;e=", b'Cookie: "x"=\xff, $Version=1'), OK),
    "a cookie with NUL": (request(b"Cookie: a=\x00b"), REFUSED + PAGE),
    "a thousand cookies": (request(b"Cookie: " + b"; ".join([b"a=b"] * 1000)), OK + PAGE_431 + CUT),
    "two Content-Types": (put(LENGTH, b"Content-Type: a/b", b"Content-Type: c/d"), STORED),
}

# --- Connection, Upgrade, Expect ---

CONNECTIONS = {
    "close": (request(b"Connection: close"), OK_LAST),
    "close in capitals": (request(b"Connection: CLOSE"), OK_LAST),
    "close among others": (request(b"Connection: x, close"), OK_LAST),
    "close and keep-alive": (request(b"Connection: close, keep-alive"), OK_LAST),
    "close in a second field": (request(b"Connection: x", b"Connection: close"), OK_LAST),
    "keep-alive": (request(b"Connection: keep-alive"), OK),
    "keep-alive with parameters": (request(b"Keep-Alive: timeout=1, max=1"), OK),
    "options that name framing": (request(b"Connection: Content-Length, Host", b"Content-Length: 0"), OK),
    "options that name the id": (request(b"Connection: X-Request-Id", b"X-Request-Id: a"), OK),
    "a hop-by-hop coding": (put(b"Connection: Transfer-Encoding", CHUNKED, body=chunks(FILE)), STORED_LAST),
    "an upgrade to HTTP/2": (
        request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"),
        OK,
    ),
    "an upgrade to a web socket": (
        request(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: AA=="),
        OK,
    ),
    "an upgrade to a web socket by POST": (
        post(b"Connection: Upgrade", b"Upgrade: websocket"),
        (Answer(202, kept=True),),
    ),
    "an upgrade to TLS": (request(b"Connection: Upgrade", b"Upgrade: TLS/1.2"), OK),
    "an upgrade to nothing known": (request(b"Connection: Upgrade", b"Upgrade: nonsense"), OK),
    "an upgrade that the connection does not name": (request(b"Upgrade: h2c"), OK),
    "an upgrade with a body": (
        put(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH),
        STORED,
    ),
    "an expectation of 100": (put(b"Expect: 100-continue", LENGTH), (Answer(201, kept=True, count=1),)),
    "an expectation of 100 in capitals": (put(b"Expect: 100-CONTINUE", LENGTH), (Answer(201, kept=True, count=1),)),
    "an expectation of 100 without a body": (request(b"Expect: 100-continue"), OK),
    "an expectation of 100 for GET with a body": (
        request(b"Expect: 100-continue", b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED),
        OK,
    ),
    "an expectation of 100 for a refused body": (
        request(
            b"Expect: 100-continue",
            b"Content-Length: %d" % len(SMUGGLED),
            line=b"PUT /nowhere HTTP/1.1",
            body=SMUGGLED,
        ),
        NOT_FOUND_LAST,
    ),
    "an expectation of 100 in HTTP/1.0": (
        line(b"PUT /v1/models/target HTTP/1.0", b"Expect: 100-continue", LENGTH) + FILE,
        STORED_LAST,
    ),
    "an expectation of 100 and chunks": (put(b"Expect: 100-continue", CHUNKED, body=chunks(FILE)), STORED_LAST),
    "an expectation with a blank behind": (put(b"Expect: 100-continue ", LENGTH), NOT_EXPECTED + STORED),
    "two expectations": (put(b"Expect: 100-continue, 200-ok", LENGTH), NOT_EXPECTED),
    "an obfuscated expectation": (put(b"Expect: y 100-continue", LENGTH), NOT_EXPECTED),
    "an unknown expectation": (put(b"Expect: 200-ok", LENGTH), NOT_EXPECTED),
    "an empty expectation": (put(b"Expect:", LENGTH), NOT_EXPECTED),
    "an expectation and two lengths": (put(b"Expect: 100-continue", LENGTH, b"Content-Length: 0"), REFUSED),
}

# --- where the body ends (RFC 9112 section 6) ---


def everywhere(name, body, *lines, answers):
    """The same doubtful header on a request that stores, one that reads and one that does something."""
    return {
        f"{name} (PUT)": (put(*lines, body=body + SMUGGLED), answers),
        f"{name} (GET)": (request(*lines, body=body + SMUGGLED), answers),
        f"{name} (POST)": (post(*lines, body=body + SMUGGLED), answers),
    }


NOTHING = b"0\r\n\r\n"

FRAMING = {
    **everywhere("a length and chunks", NOTHING, b"Content-Length: 5", CHUNKED, answers=REFUSED + PAGE),
    **everywhere("chunks and a length", NOTHING, CHUNKED, b"Content-Length: 500", answers=REFUSED + PAGE),
    **everywhere("chunks and a length of nothing", NOTHING, CHUNKED, b"Content-Length: 0", answers=REFUSED + PAGE),
    **everywhere("chunks and an invalid length", NOTHING, CHUNKED, b"Content-Length: x", answers=REFUSED + PAGE),
    **everywhere(
        "chunks with a blank and a length", NOTHING, CHUNKED + b" ", b"Content-Length: 5", answers=REFUSED + PAGE
    ),
    **everywhere("two lengths", b"12345", b"Content-Length: 5", b"Content-Length: 6", answers=REFUSED),
    **everywhere("the same length twice", b"12345", b"Content-Length: 5", b"Content-Length: 5", answers=REFUSED),
    **everywhere("two lengths, the first empty", b"", b"Content-Length:", b"Content-Length: 5", answers=REFUSED + PAGE),
    **everywhere(
        "two lengths, one of nothing", b"", b"Content-Length: 0", b"Content-Length: %d" % len(SMUGGLED), answers=REFUSED
    ),
    **everywhere("a list of lengths", b"12345", b"Content-Length: 5, 6", answers=REFUSED + PAGE),
    **everywhere("a list of the same length", b"12345", b"Content-Length: 5, 5", answers=REFUSED + PAGE),
    **everywhere("a list of three lengths", b"12345", b"Content-Length: 5,5,5", answers=REFUSED + PAGE),
    **everywhere("a list that begins with nothing", b"12345", b"Content-Length: ,5", answers=REFUSED + PAGE),
    **everywhere("a length with a plus", b"12345", b"Content-Length: +5", answers=REFUSED + PAGE),
    **everywhere("a negative length", b"", b"Content-Length: -5", answers=REFUSED + PAGE),
    **everywhere("a length of minus nothing", b"", b"Content-Length: -0", answers=REFUSED + PAGE),
    **everywhere("a hexadecimal length", b"12345", b"Content-Length: 0x5", answers=REFUSED + PAGE),
    **everywhere("an octal length", b"12345", b"Content-Length: 0o5", answers=REFUSED + PAGE),
    **everywhere("a length with an underscore", b"1234567890", b"Content-Length: 1_0", answers=REFUSED + PAGE),
    **everywhere("a length with a blank inside", b"1234567890", b"Content-Length: 1 0", answers=REFUSED + PAGE),
    **everywhere("a length with a fraction", b"12345", b"Content-Length: 5.0", answers=REFUSED + PAGE),
    **everywhere("a length with an exponent", b"1234567890", b"Content-Length: 1e1", answers=REFUSED + PAGE),
    **everywhere("a length of letters", b"", b"Content-Length: five", answers=REFUSED + PAGE),
    **everywhere("a length with letters behind", b"12345", b"Content-Length: 5x", answers=REFUSED + PAGE),
    **everywhere("a length with a semicolon", b"12345", b"Content-Length: 5;x", answers=REFUSED + PAGE),
    **everywhere("a length in quotes", b"12345", b'Content-Length: "5"', answers=REFUSED + PAGE),
    **everywhere("a length in foreign digits", b"12345", "Content-Length: ٥".encode(), answers=REFUSED + PAGE),
    **everywhere("a length with NUL", b"12345", b"Content-Length: 5\x00", answers=REFUSED + PAGE),
    **everywhere("an empty length", b"", b"Content-Length:", answers=REFUSED + PAGE),
    **everywhere("a length of blanks", b"", b"Content-Length:   ", answers=REFUSED + PAGE),
    **everywhere("a folded length", b"12345", b"Content-Length:", b" 5", answers=REFUSED + PAGE),
    **everywhere("a length with a blank before the colon", b"12345", b"Content-Length : 5", answers=REFUSED + PAGE),
    **everywhere(
        "a length past 64 bits", b"12345", b"Content-Length: 18446744073709551621", answers=TOO_LARGE + PAGE_413
    ),
    **everywhere(
        "a length of 64 bits", b"12345", b"Content-Length: 18446744073709551615", answers=TOO_LARGE + PAGE_413
    ),
    **everywhere("a length of 63 bits", b"12345", b"Content-Length: 9223372036854775808", answers=TOO_LARGE),
    **everywhere(
        "a length of a thousand digits", b"12345", b"Content-Length: " + b"9" * 1000, answers=TOO_LARGE + PAGE_413
    ),
    **everywhere("a name that begins as the length's", b"", b"Content-Lengthy: 5", answers=REFUSED),
    **everywhere("a name that begins as the coding's", b"", b"Transfer-Encodings: chunked", answers=REFUSED),
    **everywhere("chunks twice", NOTHING, CHUNKED, CHUNKED, answers=REFUSED),
    **everywhere("chunks and another coding", NOTHING, CHUNKED, b"Transfer-Encoding: identity", answers=REFUSED + PAGE),
    **everywhere("another coding and chunks", NOTHING, b"Transfer-Encoding: gzip", CHUNKED, answers=REFUSED + PAGE),
    **everywhere("xchunked", NOTHING, b"Transfer-Encoding: xchunked", answers=REFUSED + PAGE),
    **everywhere("chunke", NOTHING, b"Transfer-Encoding: chunke", answers=REFUSED + PAGE),
    **everywhere("identity", b"", b"Transfer-Encoding: identity", answers=REFUSED + PAGE),
    **everywhere(
        "identity and a length", b"12345", b"Transfer-Encoding: identity", b"Content-Length: 5", answers=REFUSED + PAGE
    ),
    **everywhere("gzip", b"", b"Transfer-Encoding: gzip", answers=REFUSED + PAGE),
    **everywhere("an unknown coding", NOTHING, b"Transfer-Encoding: nonsense", answers=REFUSED + PAGE),
    **everywhere("gzip, chunked", NOTHING, b"Transfer-Encoding: gzip, chunked", answers=REFUSED + PAGE),
    **everywhere("chunked, identity", NOTHING, b"Transfer-Encoding: chunked, identity", answers=REFUSED + PAGE),
    **everywhere("identity, chunked", NOTHING, b"Transfer-Encoding: identity, chunked", answers=REFUSED + PAGE),
    **everywhere("chunked, chunked", NOTHING, b"Transfer-Encoding: chunked, chunked", answers=REFUSED + PAGE),
    **everywhere("a comma before chunked", NOTHING, b"Transfer-Encoding: ,chunked", answers=REFUSED + PAGE),
    **everywhere("a comma after chunked", NOTHING, b"Transfer-Encoding: chunked,", answers=REFUSED + PAGE),
    **everywhere("chunked with a parameter", NOTHING, b"Transfer-Encoding: chunked;q=1", answers=REFUSED + PAGE),
    **everywhere("chunked in quotes", NOTHING, b'Transfer-Encoding: "chunked"', answers=REFUSED + PAGE),
    **everywhere("chunked after a vertical tab", NOTHING, b"Transfer-Encoding: \x0bchunked", answers=REFUSED + PAGE),
    **everywhere("chunked before a vertical tab", NOTHING, b"Transfer-Encoding: chunked\x0b", answers=REFUSED + PAGE),
    **everywhere("chunked after a form feed", NOTHING, b"Transfer-Encoding: \x0cchunked", answers=REFUSED + PAGE),
    **everywhere("chunked with NUL", NOTHING, b"Transfer-Encoding: chunked\x00", answers=REFUSED + PAGE),
    **everywhere(
        "chunked between no-break blanks", NOTHING, b"Transfer-Encoding: \xa0chunked\xa0", answers=REFUSED + PAGE
    ),
    **everywhere(
        "chunked between bytes above 127", NOTHING, b"Transfer-Encoding: \xffchunked\xff", answers=REFUSED + PAGE
    ),
    **everywhere("chunked after a carriage return", NOTHING, b"Transfer-Encoding: \rchunked", answers=REFUSED + PAGE),
    **everywhere("chunked after a line feed", NOTHING, b"Transfer-Encoding:\n chunked", answers=REFUSED + PAGE),
    **everywhere("an empty coding", b"", b"Transfer-Encoding:", answers=REFUSED + PAGE),
    **everywhere("a folded coding", NOTHING, b"Transfer-Encoding:", b" chunked", answers=REFUSED + PAGE),
    **everywhere(
        "a coding folded behind another field", NOTHING, b"X: y", b" Transfer-Encoding: chunked", answers=REFUSED + PAGE
    ),
    **everywhere(
        "a coding with a blank before the colon", NOTHING, b"Transfer-Encoding : chunked", answers=REFUSED + PAGE
    ),
    **everywhere(
        "a coding with a tab before the colon", NOTHING, b"Transfer-Encoding\t: chunked", answers=REFUSED + PAGE
    ),
    **everywhere("a coding after a blank", NOTHING, b" Transfer-Encoding: chunked", answers=REFUSED + PAGE),
    **everywhere("a coding with a blank in its name", NOTHING, b"Transfer Encoding: chunked", answers=REFUSED + PAGE),
    "a length with zeros before": (put(b"Content-Length: 000%d" % len(FILE)), STORED),
    "a length of several zeros": (request(b"Content-Length: 00"), OK),
    "a length after blanks": (put(b"Content-Length:     %d" % len(FILE)), STORED),
    "a length after a tab": (put(b"Content-Length:\t%d" % len(FILE)), STORED),
    "a length before blanks": (put(LENGTH + b"   "), STORED + REFUSED + PAGE),
    "a length before a tab": (put(LENGTH + b"\t"), STORED + REFUSED + PAGE),
    "Chunked in capitals": (put(b"Transfer-Encoding: Chunked", body=chunks(FILE)), STORED_LAST),
    "CHUNKED in capitals": (put(b"TRANSFER-ENCODING: CHUNKED", body=chunks(FILE)), STORED_LAST),
    "chunked after a tab": (put(b"Transfer-Encoding:\tchunked", body=chunks(FILE)), STORED_LAST),
    "chunked before a blank": (put(b"Transfer-Encoding: chunked ", body=chunks(FILE)), STORED_LAST + REFUSED),
    "TE and trailers": (request(b"TE: trailers, chunked;q=0.5", b"Connection: TE"), OK),
    "Trailer": (put(CHUNKED, b"Trailer: X", body=chunks(FILE, end=b"0\r\nX: y\r\n\r\n")), STORED_LAST),
    "Content-Encoding is not a transfer coding": (
        put(LENGTH, b"Content-Encoding: chunked"),
        (Answer(415, "unsupported-media-type"),),
    ),
}

# --- chunks (RFC 9112 section 7.1) ---

CHUNKS = {
    "one chunk": (chunked(chunks(FILE)), STORED_LAST),
    "many chunks": (chunked(chunks(*(FILE[i : i + 7] for i in range(0, len(FILE), 7)))), STORED_LAST),
    "no chunk": (chunked(NOTHING), (Answer(422, "invalid-model"),)),
    "a size in capitals": (chunked(b"%X\r\n%b\r\n0\r\n\r\n" % (len(FILE), FILE)), STORED_LAST),
    "a size with zeros before": (chunked(b"0000%x\r\n%b\r\n0000\r\n\r\n" % (len(FILE), FILE)), STORED_LAST),
    "a request as a chunk": (chunked(chunks(SMUGGLED)), (Answer(422, "invalid-model"),)),
    "an extension": (chunked(b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(FILE), FILE)), STORED_LAST + PAGE),
    "an extension in quotes": (chunked(b'%x;a="b;c"\r\n%b\r\n0\r\n\r\n' % (len(FILE), FILE)), STORED_LAST + PAGE),
    "an extension of the last chunk": (chunked(b"%x\r\n%b\r\n0;a=b\r\n\r\n" % (len(FILE), FILE)), STORED_LAST + PAGE),
    "an extension without a name": (chunked(b"%x;\r\n%b\r\n0\r\n\r\n" % (len(FILE), FILE)), STORED_LAST + PAGE),
    "an extension that holds a request": (
        chunked(b"1;" + SMUGGLED[:-4] + b"\r\n0\r\n0\r\n\r\n"),
        (Answer(422, "invalid-model"), *PAGE),
    ),
    "a trailer": (chunked(chunks(FILE, end=b"0\r\nX: y\r\n\r\n")), STORED_LAST),
    "two trailers": (chunked(chunks(FILE, end=b"0\r\nX: y\r\nZ: z\r\n\r\n")), STORED_LAST),
    "a length as a trailer": (chunked(chunks(FILE, end=b"0\r\nContent-Length: 5\r\n\r\n")), STORED_LAST),
    "a coding as a trailer": (chunked(chunks(FILE, end=b"0\r\nTransfer-Encoding: chunked\r\n\r\n")), STORED_LAST),
    "a host as a trailer": (chunked(chunks(FILE, end=b"0\r\nHost: other.example\r\n\r\n")), STORED_LAST),
    "a token as a trailer": (chunked(chunks(FILE, end=b"0\r\nAuthorization: Bearer x\r\n\r\n")), STORED_LAST),
    "a condition as a trailer": (chunked(chunks(FILE, end=b"0\r\nIf-Match: \"x\"\r\n\r\n")), STORED_LAST),
    "a trailer with an empty name": (chunked(chunks(FILE, end=b"0\r\n: x\r\n" + SMUGGLED)), STORED_LAST + PAGE),
    "a trailer with NUL": (chunked(chunks(FILE, end=b"0\r\nX: a\x00b\r\n\r\n")), STORED_LAST + PAGE),
    "a trailer that ends with a line feed": (chunked(chunks(FILE, end=b"0\r\nX: y\n\r\n")), STORED_LAST + PAGE),
    "a folded trailer": (chunked(chunks(FILE, end=b"0\r\nX: y\r\n z\r\n\r\n")), STORED_LAST + PAGE),
    "a trailer without a colon": (chunked(chunks(FILE, end=b"0\r\nNonsense\r\n\r\n")), STORED_LAST + PAGE + REFUSED),
    "a trailer that is a request": (chunked(chunks(FILE, end=b"0\r\nX:" + SMUGGLED)), STORED_LAST + PAGE),
    "a trailer of 200,000 bytes": (chunked(chunks(FILE, end=b"0\r\nX: " + b"y" * LONG + b"\r\n\r\n")), PAGE_431 + CUT),
    "10,000 trailers": (chunked(chunks(FILE, end=b"0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n")), PAGE_431 + CUT),
    "an extension of 1 MiB": (
        chunked(b"1;" + b"a" * (1 << 20) + b"\r\n0\r\n0\r\n\r\n"),
        PAGE_413 + (Answer(500),) + TIMED_OUT + CUT,
    ),
}

BAD_SIZES = {
    "letters": b"zz",
    "a minus": b"-1",
    "a minus before nothing": b"-0",
    "a plus": b"+5",
    "a hexadecimal prefix": b"0x5",
    "an underscore": b"1_0",
    "an underscore behind a zero": b"0_2e",
    "a blank inside": b"1 1",
    "a blank before": b" 5",
    "a tab before": b"\t5",
    "a comma": b"5,5",
    "a dot": b"5.0",
    "quotes": b'"5"',
    "17 digits": b"fffffffffffffffff",
    "17 digits that come to nothing": b"10000000000000000",
    "letters behind": b"5these-bytes-say-nothing",
    "nothing": b"",
    "NUL": b"5\x00",
    "NUL before": b"\x005",
    "a byte above 127": b"\xff5",
    "a carriage return": b"5\r",
    "a carriage return and an extension": b"5\r\r;a",
    "an extension alone": b";a=b",
}
CHUNKS |= {
    f"a chunk size with {name}": (chunked(size + b"\r\n12345\r\n0\r\n\r\n" + SMUGGLED), REFUSED + PAGE + PAGE_413 + CUT)
    for name, size in BAD_SIZES.items()
}

BAD_CHUNKS = {
    "a chunk that is longer than its size": b"5\r\n1234567\r\n0\r\n\r\n",
    "a chunk that is shorter than its size": b"8\r\n12345\r\n0\r\n\r\n",
    "a chunk without its end": b"5\r\n123450\r\n\r\n",
    "a chunk that ends with two other bytes": b"5\r\n12345XX0\r\n\r\n",
    "a chunk that ends with a carriage return": b"5\r\n12345\r0\r\n\r\n",
    "a size that ends with a carriage return": b"5\r12345\r\n0\r\n\r\n",
    "an empty line before the end": b"5\r\n12345\r\n\r\n0\r\n\r\n",
    "an empty line before a chunk": b"\r\n5\r\n12345\r\n0\r\n\r\n",
    "an extension with a carriage return": b"5;a\rb\r\n12345\r\n0\r\n\r\n",
    "an end without its line": b"5\r\n12345\r\n0\r\nX",
}
CHUNKS |= {
    name: (chunked(body + SMUGGLED), PAGE + REFUSED + (Answer(422, "invalid-model"),) + CUT)
    for name, body in BAD_CHUNKS.items()
}
LENIENT_CHUNKS = {
    "sizes that end with line feeds": b"%x\n%b\r\n0\n\r\n",
    "chunks that end with line feeds": b"%x\r\n%b\n0\r\n\r\n",
    "an end of line feeds": b"%x\r\n%b\r\n0\r\n\n",
    "blanks behind a size": b"%x  \r\n%b\r\n0\r\n\r\n",
    "a blank before an extension": b"%x ;a=b\r\n%b\r\n0\r\n\r\n",
    "an extension with a line feed": b"%x;a\n%b\r\n0\r\n\r\n",
    "an extension with a control character": b"%x;a\x01\r\n%b\r\n0\r\n\r\n",
    "an extension with NUL": b"%x;a\x00\r\n%b\r\n0\r\n\r\n",
    "an extension that is no token": b"%x;[a]=b\r\n%b\r\n0\r\n\r\n",
}
CHUNKS |= {
    name: (chunked(body % (len(FILE), FILE) + SMUGGLED), STORED_LAST + PAGE + REFUSED + CUT)
    for name, body in LENIENT_CHUNKS.items()
}

# --- ranges ---

RANGED = b"GET /v1/models/m/objects/w/data HTTP/1.1"


def ranged(value):
    return request(b"Range: " + value, line=RANGED)


RANGES = {
    "one byte": (ranged(b"bytes=0-0"), PARTIAL),
    "the last byte": (ranged(b"bytes=-1"), PARTIAL),
    "overlapping ranges": (ranged(b"bytes=0-9,5-19,0-9"), PARTIAL),
    "64 ranges": (ranged(b"bytes=" + b",".join(b"%d-%d" % (i * 4, i * 4) for i in range(64))), PARTIAL),
    "1,000 ranges": (ranged(b"bytes=" + b",".join([b"0-"] * 1000)), OK),
    "ranges of nothing": (ranged(b"bytes="), OK),
    "a range backwards": (ranged(b"bytes=9-0"), OK),
    "a range behind the end": (ranged(b"bytes=1000000-"), (Answer(416, "range-not-satisfiable", kept=True),)),
    "the last no bytes": (ranged(b"bytes=-0"), (Answer(416, "range-not-satisfiable", kept=True),)),
    "a range past 64 bits": (
        ranged(b"bytes=18446744073709551616-18446744073709551617"),
        (Answer(416, "range-not-satisfiable", kept=True), *OK),
    ),
    "a range to past 64 bits": (ranged(b"bytes=0-18446744073709551616"), PARTIAL + OK),
    "another unit": (ranged(b"lines=0-1"), OK),
    "a negative range": (ranged(b"bytes=-1-2"), OK),
    "a range with letters": (ranged(b"bytes=a-b"), OK),
    "a range with a plus": (ranged(b"bytes=+0-+1"), OK),
    "two Range fields": (request(b"Range: bytes=0-0", b"Range: bytes=1-1", line=RANGED), PARTIAL + OK),
    "a range of a POST": (post(b"Range: bytes=0-0"), (Answer(202, kept=True),)),
    "a range of a PUT": (put(LENGTH, b"Range: bytes=0-0"), STORED),
    "a part of a PUT": (put(LENGTH, b"Content-Range: bytes 0-9/10"), REFUSED),
    "If-Range with nonsense": (request(b"Range: bytes=0-0", b"If-Range: nonsense", line=RANGED), OK),
}

# --- requests that the client does not finish: the end of the stream follows instead of the canary ---

UNFINISHED = {
    "nothing at all": (b"", CUT),
    "a method": (b"GET", CUT),
    "a request line": (b"GET /healthz HTTP/1.1\r\n", CUT),
    "half a field": (b"GET /healthz HTTP/1.1\r\nHost: local", CUT),
    "a header without its empty line": (request()[:-2], CUT),
    "a header and a carriage return": (request()[:-1], CUT),
    "a body that is too short": (put(LENGTH, body=FILE[:-1]), CUT),
    "a body that is not there": (put(b"Content-Length: 100000", body=b""), CUT),
    "a huge body that is not there": (put(b"Content-Length: 9000000000000", body=b""), TOO_LARGE),
    "a chunk that is too short": (chunked(b"ff\r\n12345"), CUT),
    "chunks without an end": (chunked(chunks(FILE, end=b"")), CUT),
    "chunks with half an end": (chunked(chunks(FILE, end=b"0\r\n")), CUT),
    "chunks with half a trailer": (chunked(chunks(FILE, end=b"0\r\nX: ")), CUT),
    "a whole request": (request(), OK),
    "a whole PUT": (put(LENGTH), STORED),
    "a whole PUT in chunks": (chunked(chunks(FILE)), STORED_LAST),
    "a request and half of the next": (request() + b"GET /healthz HT", OK),
    "two requests": (request() + request(), (Answer(200, kept=True, count=2),)),
}

GROUPS = {
    "line": LINES,
    "version": VERSIONS,
    "method": METHODS,
    "target": TARGETS,
    "host": HOSTS,
    "field": FIELDS,
    "connection": CONNECTIONS,
    "framing": FRAMING,
    "chunk": CHUNKS,
    "range": RANGES,
    "unfinished": UNFINISHED,
}
TABLE = {f"{group}: {name}": row for group, rows in GROUPS.items() for name, row in rows.items()}
