"""Rows of hostile_requests.py: where bodies end, chunks, ranges, and requests that the client does not finish."""

from hostile_rows import CHUNKED, CUT, FILE, LENGTH, LONG, OK, PAGE, PAGE_413, PAGE_431, PARTIAL, REFUSED, SMUGGLED, STORED, STORED_LAST
from hostile_rows import TOO_LARGE, Answer, chunked, chunks, post, put, request

# --- where the body ends (RFC 9112 section 6) ---


def everywhere(name, body, *lines, answers):
    """The same doubtful header on a request that stores, and on one that reads."""
    return {
        f"{name} (PUT)": (put(*lines, body=body + SMUGGLED), answers),
        f"{name} (GET)": (request(*lines, body=body + SMUGGLED), answers),
    }


NOTHING = b"0\r\n\r\n"
# The library overwrites CR LF with two NULs, and must not take the one for the other.
NUL_LF = b"\x00\n"

FRAMING = {
    **everywhere("a length and chunks", NOTHING, b"Content-Length: 5", CHUNKED, answers=REFUSED + PAGE),
    **everywhere("chunks and a length", NOTHING, CHUNKED, b"Content-Length: 500", answers=REFUSED + PAGE),
    **everywhere("two lengths", b"12345", b"Content-Length: 5", b"Content-Length: 6", answers=REFUSED),
    **everywhere("two lengths, the first empty", b"", b"Content-Length:", b"Content-Length: 5", answers=REFUSED + PAGE),
    **everywhere("a list of lengths", b"12345", b"Content-Length: 5, 6", answers=REFUSED + PAGE),
    **everywhere("a length with a plus", b"12345", b"Content-Length: +5", answers=REFUSED + PAGE),
    **everywhere("a negative length", b"", b"Content-Length: -5", answers=REFUSED + PAGE),
    **everywhere("an empty length", b"", b"Content-Length:", answers=REFUSED + PAGE),
    **everywhere("a folded length", b"12345", b"Content-Length:", b" 5", answers=REFUSED + PAGE),
    **everywhere("a length with a blank before the colon", b"12345", b"Content-Length : 5", answers=REFUSED + PAGE),
    **everywhere("a length past 64 bits", b"12345", b"Content-Length: 18446744073709551621", answers=TOO_LARGE + PAGE_413),
    **everywhere("a length of 63 bits", b"12345", b"Content-Length: 9223372036854775808", answers=TOO_LARGE),
    **everywhere("a name that begins as the length's", b"", b"Content-Lengthy: 5", answers=REFUSED),
    **everywhere("chunks twice", NOTHING, CHUNKED, CHUNKED, answers=REFUSED),
    **everywhere("chunks and another coding", NOTHING, CHUNKED, b"Transfer-Encoding: identity", answers=REFUSED + PAGE),
    **everywhere("xchunked", NOTHING, b"Transfer-Encoding: xchunked", answers=REFUSED + PAGE),
    **everywhere("identity", b"", b"Transfer-Encoding: identity", answers=REFUSED + PAGE),
    **everywhere("gzip, chunked", NOTHING, b"Transfer-Encoding: gzip, chunked", answers=REFUSED + PAGE),
    **everywhere("chunked after a vertical tab", NOTHING, b"Transfer-Encoding: \x0bchunked", answers=REFUSED + PAGE),
    **everywhere("chunked between bytes above 127", NOTHING, b"Transfer-Encoding: \xffchunked\xff", answers=REFUSED + PAGE),
    **everywhere("chunked after a line feed", NOTHING, b"Transfer-Encoding:\n chunked", answers=REFUSED + PAGE),
    **everywhere("an empty coding", b"", b"Transfer-Encoding:", answers=REFUSED + PAGE),
    **everywhere("a folded coding", NOTHING, b"Transfer-Encoding:", b" chunked", answers=REFUSED + PAGE),
    **everywhere("a coding after a blank", NOTHING, b" Transfer-Encoding: chunked", answers=REFUSED + PAGE),
    **everywhere("a coding behind NUL and a line feed", NOTHING, b"X: y" + NUL_LF + b"Transfer-Encoding: chunked", answers=REFUSED + PAGE),
    **everywhere("a length that ends with NUL and a line feed", b"", b"Content-Length: 5" + NUL_LF + b"X: y", answers=REFUSED + PAGE),
    "a length with zeros before": (put(b"Content-Length: 000%d" % len(FILE)), STORED),
    "a length after blanks": (put(b"Content-Length:     %d" % len(FILE)), STORED),
    "a length before blanks": (put(LENGTH + b"   "), STORED + REFUSED + PAGE),
    "Chunked in capitals": (put(b"Transfer-Encoding: Chunked", body=chunks(FILE)), STORED_LAST),
    "chunked before a blank": (put(b"Transfer-Encoding: chunked ", body=chunks(FILE)), STORED_LAST + REFUSED),
    "TE and trailers": (request(b"TE: trailers, chunked;q=0.5", b"Connection: TE"), OK),
    "Trailer": (put(CHUNKED, b"Trailer: X", body=chunks(FILE, end=b"0\r\nX: y\r\n\r\n")), STORED_LAST),
    "Content-Encoding is not a transfer coding": (put(LENGTH, b"Content-Encoding: chunked"), (Answer(415, "unsupported-media-type"),)),
}

# --- chunks (RFC 9112 section 7.1) ---

CHUNKS = {
    "one chunk": (chunked(chunks(FILE)), STORED_LAST),
    "many chunks": (chunked(chunks(*(FILE[i : i + 7] for i in range(0, len(FILE), 7)))), STORED_LAST),
    "no chunk": (chunked(NOTHING), (Answer(422, "invalid-model"),)),
    "a request as a chunk": (chunked(chunks(SMUGGLED)), (Answer(422, "invalid-model"),)),
    "an extension": (chunked(b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(FILE), FILE)), STORED_LAST + PAGE),
    "an extension of 600 bytes": (chunked(b"%x;a=%b\r\n%b\r\n0\r\n\r\n" % (len(FILE), b"b" * 597, FILE)), REFUSED),
    "an extension that holds a request": (chunked(b"1;" + SMUGGLED[:-4] + b"\r\n0\r\n0\r\n\r\n"), REFUSED),
    "a trailer": (chunked(chunks(FILE, end=b"0\r\nX: y\r\n\r\n")), STORED_LAST),
    "a length as a trailer": (chunked(chunks(FILE, end=b"0\r\nContent-Length: 5\r\n\r\n")), STORED_LAST),
    "a token as a trailer": (chunked(chunks(FILE, end=b"0\r\nAuthorization: Bearer x\r\n\r\n")), STORED_LAST),
    "a trailer that ends with NUL and a line feed": (chunked(chunks(FILE, end=b"0\r\nX: y\x00\n\r\n")), REFUSED),
    "a trailer that is a request": (chunked(chunks(FILE, end=b"0\r\nX:" + SMUGGLED)), STORED_LAST),
    "a trailer of 200,000 bytes": (chunked(chunks(FILE, end=b"0\r\nX: " + b"y" * LONG + b"\r\n\r\n")), PAGE_431),
}

# The rules of the grammar are rows of tests/unit/server/test_chunks.c.
BAD_CHUNKS = {
    "a size that is no number": b"zz\r\n12345\r\n0\r\n\r\n",
    "a size with NUL": b"5\x00\r\n12345\r\n0\r\n\r\n",
    "a size of 17 digits": b"fffffffffffffffff\r\n12345\r\n0\r\n\r\n",
    "a size that ends with a line feed": b"5\n12345\r\n0\r\n\r\n",
    "a blank before an extension": b"5 ;a=b\r\n12345\r\n0\r\n\r\n",
    "an extension without a name": b"5;\r\n12345\r\n0\r\n\r\n",
    "an extension that ends with NUL and a line feed": b"5;a\x00\n12345\r\n0\r\n\r\n",
    "a chunk that is longer than its size": b"5\r\n1234567\r\n0\r\n\r\n",
    "a chunk that is shorter than its size": b"8\r\n12345\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": b"5\r\n12345\n0\r\n\r\n",
    "an empty line before a chunk": b"\r\n5\r\n12345\r\n0\r\n\r\n",
    "an end of a line feed": b"5\r\n12345\r\n0\r\n\n",
    "an end without its line": b"5\r\n12345\r\n0\r\nX",
}
CHUNKS |= {name: (chunked(body + SMUGGLED), REFUSED) for name, body in BAD_CHUNKS.items()}

# --- ranges ---

RANGED = b"GET /v1/models/m/objects/w/data HTTP/1.1"


def ranged(value):
    return request(b"Range: " + value, line=RANGED)


RANGES = {
    "1,000 ranges": (ranged(b"bytes=" + b",".join([b"0-"] * 1000)), OK),
    "two Range fields": (request(b"Range: bytes=0-0", b"Range: bytes=1-1", line=RANGED), PARTIAL + OK),
    "a range of a POST": (post(b"Range: bytes=0-0"), (Answer(202, kept=True),)),
    "a range of a PUT": (put(LENGTH, b"Range: bytes=0-0"), STORED),
    "a part of a PUT": (put(LENGTH, b"Content-Range: bytes 0-9/10"), REFUSED),
}

# --- requests that the client does not finish: the end of the stream follows instead of the canary ---

UNFINISHED = {
    "nothing at all": (b"", CUT),
    "a request line": (b"GET /healthz HTTP/1.1\r\n", CUT),
    "a header without its empty line": (request()[:-2], CUT),
    "a header and a carriage return": (request()[:-1], CUT),
    "a body that is too short": (put(LENGTH, body=FILE[:-1]), CUT),
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
