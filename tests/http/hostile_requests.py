"""Requests as bytes that a server must not misunderstand, and what it must answer to each: a table for
test_hostile_requests.py.

The shapes are those that the probes of HTTP servers name (Http11Probe, HTTP Garden) and some more, in words and bytes
of our own. The names "victim" and "target" stand for models that belong to one row: the victim exists before and after,
since only smuggled requests delete it; the target does not exist, and afterwards only if the answer is 201.

Where libmicrohttpd 0.9.75 and 1.0.1 differ, because 1.0 refuses by itself what the server refuses with 0.9.75, the row
names both answers.
"""

from hostile_bodies import CHUNKS, FRAMING, RANGES, UNFINISHED
from hostile_rows import (
    ANOTHER_METHOD,
    CHUNKED,
    CUT,
    FILE,
    HOST,
    INVALID,
    INVALID_NAME,
    LENGTH,
    LONG,
    NOTHING_ASKED,
    NOT_EXPECTED,
    NOT_FOUND,
    NOT_FOUND_LAST,
    NO_CONTENT,
    OK,
    OK_LAST,
    PAGE,
    PAGE_414,
    PAGE_431,
    PAGE_505,
    REFUSED,
    SMUGGLED,
    STORED,
    STORED_LAST,
    TOO_LARGE,
    UNKNOWN_METHOD,
    UNREADABLE,
    URI_TOO_LONG,
    Answer,
    chunked,
    chunks,
    hosted,
    line,
    post,
    put,
    request,
    to,
)

# --- the request line ---

LINES = {
    "a plain GET": (to(b"/healthz"), OK),
    "an empty line before the request": (b"\r\n" + to(b"/healthz"), OK),
    "two empty lines before the request": (b"\r\n\r\n" + to(b"/healthz"), OK + CUT),
    "a line feed before the request": (b"\n" + to(b"/healthz"), OK + PAGE + CUT),
    "a blank before the request": (b" " + to(b"/healthz"), REFUSED + PAGE + CUT),
    "nothing but an empty line": (b"\r\n", NOTHING_ASKED),
    "two blanks before the target": (line(b"GET  /healthz HTTP/1.1"), REFUSED + PAGE),
    "a tab before the target": (line(b"GET\t/healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "a blank after the version": (line(b"GET /healthz HTTP/1.1 "), REFUSED + PAGE),
    "a line feed in the line": (line(b"GET /healthz\nHTTP/1.1"), REFUSED + PAGE + CUT),
    "a line that ends with a line feed": (b"GET /healthz HTTP/1.1\n" + HOST + b"\r\n", REFUSED + PAGE),
    "all lines end with line feeds": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", REFUSED + PAGE),
    "no target": (line(b"GET HTTP/1.1"), REFUSED + PAGE),
    "a method alone": (line(b"GET"), REFUSED + PAGE + CUT),
    "NUL in the method": (line(b"GE\x00T /healthz HTTP/1.1"), REFUSED + PAGE + CUT),
    "NUL in the target": (to(b"/health\x00z"), REFUSED + PAGE + CUT),
    "NUL before the request": (b"\x00" + to(b"/healthz"), REFUSED + PAGE + CUT),
    "a line of NUL and a line feed before the request": (b"\x00\n" + to(b"/healthz"), REFUSED),
    "a request that begins with NUL before the request": (b"\x00" + SMUGGLED[:-2] + to(b"/healthz"), REFUSED + PAGE),
    "a line that ends with NUL and a line feed": (b"GET /healthz HTTP/1.1\x00\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a blank in the target": (to(b"/health z"), REFUSED + PAGE),
}

# --- versions (RFC 9112 section 2.3) ---

VERSIONS = {
    "HTTP/0.9": (b"GET /healthz\r\n", REFUSED + PAGE + PAGE_505 + CUT),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", OK_LAST),
    "HTTP/1.0 with Host": (line(b"GET /healthz HTTP/1.0"), OK_LAST),
    "HTTP/1.0 with keep-alive": (line(b"GET /healthz HTTP/1.0", b"Connection: keep-alive"), OK),
    "HTTP/1.0 with close": (line(b"GET /healthz HTTP/1.0", b"Connection: close"), OK_LAST),
    "HTTP/1.0 with a body": (line(b"POST /v1/models/m/verification HTTP/1.0", b"Content-Length: 2") + b"12", (Answer(202),)),
    "HTTP/1.0 with chunks": (line(b"GET /healthz HTTP/1.0", CHUNKED) + chunks(SMUGGLED), REFUSED),
    "HTTP/1.0 with chunks and a length": (
        line(b"GET /healthz HTTP/1.0", CHUNKED, b"Content-Length: 5") + b"0\r\n\r\n" + SMUGGLED,
        REFUSED + PAGE,
    ),
    "HTTP/1.2": (line(b"GET /healthz HTTP/1.2"), OK + PAGE_505),
    "HTTP/2.0": (line(b"GET /healthz HTTP/2.0"), PAGE_505),
    "HTTP/1": (line(b"GET /healthz HTTP/1"), REFUSED + PAGE),
    "HTTP/1.10": (line(b"GET /healthz HTTP/1.10"), REFUSED + PAGE),
    "HTTP/4294967297.1": (line(b"GET /healthz HTTP/4294967297.1"), REFUSED + PAGE),
    "http/1.1": (line(b"GET /healthz http/1.1"), REFUSED + PAGE),
    "HTTPS/1.1": (line(b"GET /healthz HTTPS/1.1"), REFUSED + PAGE),
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
    "PUT where only GET is": (request(LENGTH, line=b"PUT /healthz HTTP/1.1", body=FILE), (Answer(405, "method-not-allowed"),)),
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
    "a method of 4,000 letters": (to(b"/healthz", b"A" * 4000), UNKNOWN_METHOD),
    "a method of 200,000 letters": (to(b"/healthz", b"A" * LONG), REFUSED + PAGE + PAGE_414 + PAGE_431 + (Answer(501),) + CUT),
    "HEAD with a body": (request(b"Content-Length: %d" % len(SMUGGLED), line=b"HEAD /healthz HTTP/1.1", body=SMUGGLED), OK),
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
    "POST with a body that is not needed": (post(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED), (Answer(202, kept=True),)),
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
    "absolute form of https": (to(b"https://localhost/healthz"), OK),
    "absolute form without a path": (to(b"http://localhost"), OK),
    "absolute form of another scheme": (to(b"ftp://localhost/healthz"), INVALID),
    "authority form": (to(b"localhost:80"), INVALID),
    "asterisk form": (to(b"*"), INVALID),
    "OPTIONS of the server itself": (to(b"*", b"OPTIONS"), NO_CONTENT),
    "a path without its slash": (to(b"healthz"), INVALID),
    "two slashes": (to(b"//healthz"), INVALID_NAME),
    "a host in the path": (to(b"//other.example/healthz"), INVALID_NAME),
    "dot segments": (to(b"/../../../../etc/passwd"), NOT_FOUND),
    "backslashes": (to(b"/files\\..\\..\\etc\\passwd"), NOT_FOUND),
    "a model outside": (to(b"/v1/models/..%2f..%2fetc%2fpasswd"), INVALID_NAME),
    "an escaped NUL": (to(b"/v1/models/m%00"), INVALID_NAME),
    "a surrogate": (to(b"/v1/models/m/objects/%ed%a0%80"), INVALID_NAME),
    "a malformed escape": (to(b"/v1/models/m%zz"), INVALID_NAME),
    "a fragment": (to(b"/healthz#top"), REFUSED),
    "bytes above 127": (to(b"/h\xc3\xa9althz"), NOT_FOUND + REFUSED),
    "bytes of no UTF-8": (to(b"/v1/models/\xff\xfe"), INVALID_NAME + REFUSED),
    "a control character": (to(b"/health\x01z"), REFUSED + PAGE),
    "DEL": (to(b"/health\x7fz"), REFUSED),
    "a query of a thousand parameters": (to(b"/healthz?" + b"a=b&" * 1000), OK),
    "a target of 8,192 bytes": (to(b"/healthz?" + b"x" * 8183), OK),
    "a target of 8,193 bytes": (to(b"/healthz?" + b"x" * 8184), (Answer(414, "uri-too-long", kept=True),)),
    **{
        f"a target of {size:,} bytes": (
            to(b"/" + b"x" * size),
            (*URI_TOO_LONG, Answer(431, "headers-too-large"), *PAGE_431, *PAGE_414, *CUT),
        )
        for size in (15_900, 16_300, 17_000)
    },
    "a target of 200,000 bytes": (to(b"/" + b"x" * LONG), PAGE_414),
    **{
        f"a target of {size:,} bytes with {name}": (to(b"/" + b"x" * (size - 2 - len(text)) + text + b"y"), REFUSED)
        for size, name, text in (
            (8192, "a blank", b" "),
            (8193, "a version", b" HTTP/1.1 "),
            (9000, "a carriage return", b"\r"),
            (12_000, "DEL", b"\x7f"),
            (12_000, "a fragment", b"#"),
        )
    },
}

# --- Host (RFC 9112 section 3.2) ---

HOSTS = {
    "no Host": (request(host=b""), REFUSED + PAGE),
    "no Host in HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", OK_LAST),
    "no Host but an absolute form": (b"GET http://localhost/healthz HTTP/1.1\r\n\r\n", REFUSED + PAGE),
    "two Hosts": (hosted(b"localhost\r\nHost: other.example"), REFUSED),
    "the same Host twice": (hosted(b"localhost\r\nHost: localhost"), REFUSED),
    "Host with a user": (hosted(b"user@localhost"), REFUSED),
    "Host with NUL": (hosted(b"localhost\x00.example"), REFUSED + PAGE),
    "an empty Host": (hosted(b""), OK),
    "Host before blanks": (hosted(b"localhost \t"), OK),
    "Host that is an address of IPv6": (hosted(b"[::1]:80"), OK),
    "Host without a blank": (request(host=b"Host:localhost\r\n"), OK),
    "Host with a blank before the colon": (request(host=b"Host : localhost\r\n"), REFUSED + PAGE),
    "a folded Host": (request(host=b"Host:\r\n localhost\r\n"), REFUSED + PAGE),
    "Host with an underscore in its name": (request(host=b"Ho_st: localhost\r\n"), REFUSED + PAGE),
}

# --- field lines (RFC 9112 section 5) ---

FIELDS = {
    "a blank before the colon": (request(b"X-Field : y"), REFUSED + PAGE),
    "a blank before the first field": (b"GET /healthz HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a tab before the first field": (b"GET /healthz HTTP/1.1\r\n\tContent-Length: 1\r\n" + HOST + b"\r\nX", REFUSED + PAGE),
    "a line of blanks before the fields": (b"GET /healthz HTTP/1.1\r\n  \r\n" + HOST + b"\r\n", REFUSED + PAGE),
    "a fold that looks like a field": (request(b"X: a", b" Content-Length: 5", body=b"12345"), REFUSED + PAGE),
    "a line without a colon": (request(b"Nonsense"), REFUSED + PAGE),
    "an empty name": (request(b": y"), REFUSED + PAGE),
    "an empty name before a request": (b"GET /healthz HTTP/1.1\r\n" + HOST + b": x\r\n" + SMUGGLED, REFUSED + PAGE),
    "a name in brackets": (request(b"[X]: y"), REFUSED),
    "a name with a no-break blank": (request(b"Content-Length\xa0: %d" % len(SMUGGLED), body=SMUGGLED), REFUSED),
    "a name with NUL": (request(b"X\x00Y: y"), REFUSED + PAGE),
    "a value that ends with NUL and a line feed": (request(b"X: y\x00\nZ: z"), REFUSED + PAGE),
    "an end of NUL and a line feed": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\x00\n" + SMUGGLED, REFUSED + PAGE),
    "a value with NUL": (request(b"X: a\x00b"), REFUSED + PAGE),
    "a value with a control character": (request(b"X: a\x01b"), REFUSED),
    "a field after a carriage return": (request(b"X: a\rContent-Length: 5"), REFUSED + PAGE),
    "a field after a line feed": (request(b"X: a\nContent-Length: %d" % len(SMUGGLED), body=SMUGGLED), REFUSED + PAGE),
    "a request after two line feeds": (request(b"X:\n\n" + SMUGGLED[:-4]), REFUSED + PAGE),
    "an end of two line feeds": (b"GET /healthz HTTP/1.1\r\nHost: localhost\n\n" + SMUGGLED, REFUSED + PAGE),
    "a value of bytes above 127": (request(b"X: \xff\xfe\xc3\xa9"), OK),
    "a value with tabs": (request(b"X:\ta\tb\t"), OK),
    "blanks around a value": (request(b"X:   y   "), OK),
    "names in odd case": (request(b"cOnTeNt-LeNgTh: 0", b"x-UPPER: Y"), OK),
    "a name with an underscore": (request(b"Content_Length: 5"), OK),
    "all characters of a token": (request(b"!#$%&'*+-.^_`|~09AZaz: y"), OK),
    "98 fields of one name": (request(*[b"X: y"] * 98), OK),
    "101 fields": (request(*[b"X-%d: y" % i for i in range(100)]), (Answer(431, "headers-too-large"),)),
    "10,000 fields": (request(*[b"X-%d: y" % i for i in range(10_000)]), PAGE_431),
    "a name of 200,000 letters": (request(b"X" * LONG + b": y"), PAGE_431),
    **{
        f"a value of {size:,} bytes": (request(b"X: " + b"y" * size), (Answer(431, "headers-too-large"), *PAGE_431))
        for size in (15_400, 16_050, 17_000)
    },
    "a value of 13,000 bytes": (request(b"X: " + b"y" * 13_000), OK),
    "99 fields of 120 bytes": (request(*[b"X-%02d: " % i + b"y" * 114 for i in range(99)]), (Answer(431, "headers-too-large"), *PAGE_431)),
    "a value of 200,000 bytes": (request(b"X: " + b"y" * LONG), PAGE_431),
    "a field that never ends": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * LONG, PAGE_431),
    "cookies of every kind": (request(b"Cookie: a=b; =c; d; ;;e=", b'Cookie: "x"=\xff, $Version=1'), OK),
    "a thousand cookies": (request(b"Cookie: " + b"; ".join([b"a=b"] * 1000)), OK + PAGE_431 + CUT),
    "two Content-Types": (put(LENGTH, b"Content-Type: a/b", b"Content-Type: c/d"), STORED),
}

# --- Connection, Upgrade, Expect ---

CONNECTIONS = {
    "close": (request(b"Connection: close"), OK_LAST),
    "close among others": (request(b"Connection: x, close"), OK_LAST),
    "close and keep-alive": (request(b"Connection: close, keep-alive"), OK_LAST),
    "keep-alive": (request(b"Connection: keep-alive"), OK),
    "keep-alive with parameters": (request(b"Keep-Alive: timeout=1, max=1"), OK),
    "options that name framing": (request(b"Connection: Content-Length, Host", b"Content-Length: 0"), OK),
    "options that name the id": (request(b"Connection: X-Request-Id", b"X-Request-Id: a"), OK),
    "a hop-by-hop coding": (put(b"Connection: Transfer-Encoding", CHUNKED, body=chunks(FILE)), STORED_LAST),
    "an upgrade to HTTP/2": (request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"), OK),
    "an upgrade to a web socket": (
        request(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: AA=="),
        OK,
    ),
    "an upgrade that the connection does not name": (request(b"Upgrade: h2c"), OK),
    "an upgrade with a body": (put(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH), STORED),
    "an expectation of 100": (put(b"Expect: 100-continue", LENGTH), (Answer(201, kept=True, count=1),)),
    "an expectation of 100 without a body": (request(b"Expect: 100-continue"), OK),
    "an expectation of 100 for GET with a body": (
        request(b"Expect: 100-continue", b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED),
        OK,
    ),
    "an expectation of 100 for a refused body": (
        request(b"Expect: 100-continue", b"Content-Length: %d" % len(SMUGGLED), line=b"PUT /nowhere HTTP/1.1", body=SMUGGLED),
        NOT_FOUND_LAST,
    ),
    "an expectation of 100 in HTTP/1.0": (line(b"PUT /v1/models/target HTTP/1.0", b"Expect: 100-continue", LENGTH) + FILE, STORED_LAST),
    "an expectation of 100 and chunks": (put(b"Expect: 100-continue", CHUNKED, body=chunks(FILE)), STORED_LAST),
    "an expectation with a blank behind": (put(b"Expect: 100-continue ", LENGTH), NOT_EXPECTED + STORED),
    "two expectations": (put(b"Expect: 100-continue, 200-ok", LENGTH), NOT_EXPECTED),
    "an unknown expectation": (put(b"Expect: 200-ok", LENGTH), NOT_EXPECTED),
    "an empty expectation": (put(b"Expect:", LENGTH), NOT_EXPECTED),
    "an expectation and two lengths": (put(b"Expect: 100-continue", LENGTH, b"Content-Length: 0"), REFUSED),
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
