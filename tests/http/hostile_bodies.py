"""Rows of hostile_requests.py: where bodies end, chunks, ranges, and requests that the client does not finish."""

from hostile_rows import (
    CHUNKED,
    CUT,
    FILE,
    LENGTH,
    LONG,
    OK,
    PAGE,
    PAGE_413,
    PAGE_431,
    PARTIAL,
    REFUSED,
    SMUGGLED,
    STORED,
    STORED_LAST,
    TIMED_OUT,
    TOO_LARGE,
    Answer,
    chunked,
    chunks,
    post,
    put,
    request,
)

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
