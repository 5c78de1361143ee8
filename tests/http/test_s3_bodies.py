"""Bodies of writes to the S3 API: every form of aws-chunked, and everything that a request can state about its body."""

import base64
import hashlib
import itertools
import zlib

import pytest
from containers import pattern
from s3_sign import Key, error_code, write_keys
from wire import ask, get

SHORT, LONG = b"123456789", pattern(3_000_000)
names = (f"body{number}.bin" for number in itertools.count())


def crc(data, polynomial, bits):
    value = mask = (1 << bits) - 1
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return (value ^ mask).to_bytes(bits // 8, "big")


CHECKSUMS = {
    "content-md5": lambda data: hashlib.md5(data).digest(),
    "x-amz-checksum-crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "x-amz-checksum-crc32c": lambda data: crc(data, 0x82F63B78, 32),
    "x-amz-checksum-crc64nvme": lambda data: crc(data, 0x9A6C9329AC4BC9B5, 64),
    "x-amz-checksum-sha1": lambda data: hashlib.sha1(data).digest(),
    "x-amz-checksum-sha256": lambda data: hashlib.sha256(data).digest(),
}


def stated(field, data):
    return base64.b64encode(CHECKSUMS[field](data)).decode()


@pytest.fixture(scope="module")
def writer():
    return Key("writer", "write")


@pytest.fixture(scope="module")
def keyed(share_server, tmp_path_factory, writer):
    keys = write_keys(tmp_path_factory.mktemp("keys") / "keys", writer)
    return share_server(tmp_path_factory.mktemp("root"), "--writable", environment={"ZTSERVE_S3_KEYS": str(keys)})


@pytest.fixture(scope="module")
def server(share_server, tmp_path_factory):
    """Without keys: signatures are ignored."""
    return share_server(tmp_path_factory.mktemp("root"), "--writable")


def http_chunks(body, size=50_000):
    """The framing of HTTP around a body that has its own chunks."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def unsigned(data, size=1 << 20, trailer="x-amz-checksum-crc32", value=None, end=b""):
    """Fields and body as botocore makes them over TLS."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    fields = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "Content-Encoding": "aws-chunked"}
    fields |= {"x-amz-decoded-content-length": str(len(data)), "x-amz-trailer": trailer}
    line = f"{trailer}:{stated(trailer, data) if value is None else value}".encode()
    return fields, body + b"0\r\n" + line + b"\r\n" + end + b"\r\n"


def put(server, fields, body):
    key = f"/s3/models/{next(names)}"
    answer = ask(server, "PUT", key, fields, body)
    return answer, get(server, "/files" + key.removeprefix("/s3/models"))


def assert_stored(result, data):
    answer, file = result
    assert (answer.status, answer.body) == (200, b""), answer
    assert (file.status, file.body == data) == (200, True)
    return answer


def assert_refused(result, code, status=400):
    """Nothing of it is visible."""
    answer, file = result
    assert (answer.status, error_code(answer)) == (status, code), answer
    assert file.status == 404


# --- forms ---


@pytest.mark.parametrize("data", [b"", SHORT, LONG], ids=["empty", "short", "long"])
def test_unsigned_chunks_are_decoded_in_every_framing(server, data):
    for size in (1 << 20, 65536, 7) if len(data) < 100 else (1 << 20, 65536, 8192, 4095):
        fields, body = unsigned(data, size)
        assert_stored(put(server, fields, body), data)
        assert_stored(put(server, {**fields, "Transfer-Encoding": "chunked"}, http_chunks(body)), data)
    # A client that does not sign leaves x-amz-content-sha256 out.
    del fields["x-amz-content-sha256"]
    assert_stored(put(server, fields, body), data)


def test_many_tiny_chunks_are_decoded(server):
    data = LONG[:20_000]
    fields, body = unsigned(data, 1)
    assert_stored(put(server, fields, body), data)


def test_a_body_is_not_decoded_because_of_its_content_encoding_alone(server):
    fields, body = unsigned(SHORT)
    plain = {"Content-Encoding": "aws-chunked"}
    assert_stored(put(server, plain, body), body)
    signed = {**fields, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
    del signed["x-amz-trailer"]
    assert_stored(put(server, signed, body), body)


@pytest.mark.parametrize("data", [b"", SHORT, LONG], ids=["empty", "short", "long"])
@pytest.mark.parametrize("trailer", [None, "x-amz-checksum-crc32"])
def test_signed_chunks_are_decoded_and_verified(keyed, writer, data, trailer):
    name = next(names)
    pieces = [data[at : at + 65536] for at in range(0, len(data), 65536)]
    last = (trailer, stated(trailer, data)) if trailer else None
    fields, body = writer.chunked(keyed, f"/s3/models/{name}", pieces, trailer=last)
    for framing in ({}, {"Transfer-Encoding": "chunked"}):
        framed = http_chunks(body) if framing else body
        answer = ask(keyed, "PUT", f"/s3/models/{name}", {**fields, **framing}, framed)
        assert answer.status == 200, answer
        assert writer.get(keyed, f"/s3/models/{name}").body == data
        assert writer.ask(keyed, "DELETE", f"/s3/models/{name}").status == 204


def test_a_wrong_signature_of_any_chunk_is_refused(keyed, writer):
    name = next(names)
    target = f"/s3/models/{name}"
    last = ("x-amz-checksum-crc32", stated("x-amz-checksum-crc32", SHORT))
    fields, body = writer.chunked(keyed, target, [SHORT[:4], SHORT[4:]], trailer=last)
    places = [at for at in range(len(body)) if body.startswith(b"-signature", at)]
    assert len(places) == 4
    for at in [*(place + 12 for place in places), body.index(b"1234")]:
        wrong = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        answer = ask(keyed, "PUT", target, fields, wrong)
        assert (answer.status, error_code(answer)) == (403, "SignatureDoesNotMatch"), (at, answer)
    missing = body.replace(b";chunk-signature=", b";other=", 1)
    assert error_code(ask(keyed, "PUT", target, fields, missing)) == "SignatureDoesNotMatch"
    # The order of the chunks is signed too.
    first, second = body.index(b"4;"), body.index(b"5;")
    swapped = body[:first] + body[second : body.index(b"0;chunk")] + body[first:second] + body[body.index(b"0;chunk") :]
    assert error_code(ask(keyed, "PUT", target, fields, swapped)) == "SignatureDoesNotMatch"
    assert writer.get(keyed, target).status == 404
    assert ask(keyed, "PUT", target, fields, body).status == 200


# --- statements ---


@pytest.mark.parametrize("field", CHECKSUMS)
def test_a_checksum_in_a_field_is_verified_and_returned(server, field):
    answer = assert_stored(put(server, {field: stated(field, SHORT)}, SHORT), SHORT)
    if field != "content-md5":
        assert (answer[field], answer["x-amz-checksum-type"]) == (stated(field, SHORT), "FULL_OBJECT")
    assert_refused(put(server, {field: stated(field, SHORT[:-1])}, SHORT), "BadDigest")
    malformed = "InvalidDigest" if field == "content-md5" else "InvalidRequest"
    assert_refused(put(server, {field: "AAAA"}, SHORT), malformed)


@pytest.mark.parametrize("field", [field for field in CHECKSUMS if field != "content-md5"])
def test_a_checksum_in_a_trailer_is_verified_and_returned(server, field):
    answer = assert_stored(put(server, *unsigned(SHORT, trailer=field)), SHORT)
    assert answer[field] == stated(field, SHORT)
    assert_refused(put(server, *unsigned(SHORT, trailer=field, value=stated(field, b"other"))), "BadDigest")
    assert_refused(put(server, *unsigned(SHORT, trailer=field, value="AAAA")), "InvalidRequest")


def test_without_a_checksum_the_sha256_is_returned(server):
    answer = assert_stored(put(server, {}, LONG), LONG)
    assert answer["x-amz-checksum-sha256"] == stated("x-amz-checksum-sha256", LONG)


def test_a_long_body_is_verified_while_it_arrives(server):
    fields = {"x-amz-checksum-sha1": stated("x-amz-checksum-sha1", LONG), "content-md5": stated("content-md5", LONG)}
    assert_stored(put(server, fields, LONG), LONG)
    wrong = LONG[:-1] + bytes([LONG[-1] ^ 1])
    assert_refused(put(server, fields, wrong), "BadDigest")
    assert_refused(put(server, *unsigned(LONG, trailer="x-amz-checksum-crc32", value=stated("x-amz-checksum-crc32", wrong))), "BadDigest")


def test_the_sha256_of_the_body_is_verified(server):
    assert_stored(put(server, {"x-amz-content-sha256": hashlib.sha256(SHORT).hexdigest()}, SHORT), SHORT)
    other = {"x-amz-content-sha256": hashlib.sha256(b"other").hexdigest()}
    assert_refused(put(server, other, SHORT), "XAmzContentSHA256Mismatch")
    assert_refused(put(server, {"x-amz-content-sha256": "other"}, SHORT), "InvalidArgument")


REFUSED = {
    "a size that is no number": (lambda body: b"x" + body, {}, "InvalidRequest"),
    "more data than the size": (lambda body: body.replace(b"123456789", b"1234567890"), {}, "InvalidRequest"),
    "no last chunk": (lambda body: body[: body.index(b"0\r\n")], {}, "IncompleteBody"),
    "no end of the trailer": (lambda body: body[:-2], {}, "IncompleteBody"),
    "no trailer": (lambda body: body[: body.index(b"0\r\n")] + b"0\r\n\r\n", {}, "InvalidRequest"),
    "more after the end": (lambda body: body + b"5\r\nhello\r\n", {}, "InvalidRequest"),
    "a longer body than stated": (lambda body: body, {"x-amz-decoded-content-length": "8"}, "IncompleteBody"),
    "a shorter body than stated": (lambda body: body, {"x-amz-decoded-content-length": "10"}, "IncompleteBody"),
    "a length that is no number": (lambda body: body, {"x-amz-decoded-content-length": "9x"}, "InvalidArgument"),
    "another trailer than announced": (lambda body: body, {"x-amz-trailer": "x-amz-checksum-sha1"}, "InvalidRequest"),
    "a trailer that is unknown": (lambda body: body, {"x-amz-trailer": "x-amz-checksum-md2"}, "InvalidRequest"),
    "an algorithm that is unknown": (lambda body: body, {"x-amz-sdk-checksum-algorithm": "MD2"}, "InvalidRequest"),
}  # fmt: skip


@pytest.mark.parametrize("change, fields, code", REFUSED.values(), ids=REFUSED)
def test_what_is_no_sound_body_is_refused(server, change, fields, code):
    sound, body = unsigned(SHORT)
    assert_refused(put(server, {**sound, **fields}, change(body)), code)


def test_missing_lengths_and_checksums_are_refused(server):
    fields, body = unsigned(SHORT)
    del fields["x-amz-decoded-content-length"]
    assert_refused(put(server, fields, body), "MissingContentLength", 411)
    assert_refused(put(server, {"x-amz-sdk-checksum-algorithm": "CRC32"}, SHORT), "InvalidRequest")
    assert_refused(put(server, {"x-amz-trailer": "x-amz-checksum-crc32"}, SHORT), "InvalidRequest")
