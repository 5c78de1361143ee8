"""Several ranges in one request: random Range fields on kept connections, compared with an implementation of RFC 9110
section 14 in Python, and multipart/byteranges parsed byte by byte."""

import base64
import hashlib
import random
import re

import pytest

from containers import dense, pattern, zstd_dense, zt1
from wire import Connection, assert_problem, component_path, get, head

SIZES = {"one": 1, "ten": 10, "page": 4096, "odd": 70_001, "large": 3_000_000}
DATA = {name: pattern(size, seed=index) for index, (name, size) in enumerate(SIZES.items())}
SPEC = re.compile(r"^(?:(\d+)-(\d*)|-(\d+))$")
RANGES_MAX = 64


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {name: dense(data) for name, data in DATA.items()}
    packed = {"packed": zstd_dense(DATA["odd"])}
    (folder / "m.zt").write_bytes(zt1({**objects, **packed, "none": dense(b"", shape=[0])}))
    return share_server(folder)


def resolve(spec, size):
    """(first, end) or None for one that holds no byte."""
    first, last, suffix = spec
    if suffix is not None:
        start = max(size - int(suffix), 0)
        return (start, size) if start < size else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    return (start, end) if start < size else None


def merge(ranges):
    """Ranges with overlapping and adjacent ones joined, at the position of the first."""
    groups = []
    for index, (first, end) in sorted(enumerate(ranges), key=lambda item: item[1]):
        if groups and first <= groups[-1][2]:
            place, start, stop = groups[-1]
            groups[-1] = (min(place, index), start, max(stop, end))
        else:
            groups.append((index, first, end))
    return [(first, end) for _, first, end in sorted(groups)]


def oracle(field, size):
    """The ranges to send; None for the whole, [] for 416."""
    if not field.lower().startswith("bytes="):
        return None
    texts = [text for text in (part.strip(" \t") for part in field[6:].split(",")) if text]
    matches = [SPEC.match(text) for text in texts]
    if not texts or len(texts) > RANGES_MAX or not all(matches):
        return None
    specs = [match.groups() for match in matches]
    if any(last and int(last) < int(first) for first, last, _ in specs if first is not None):
        return None
    ranges = [resolve(spec, size) for spec in specs]
    return merge([found for found in ranges if found])


def take_parts(answer):
    """(Content-Range, fields, bytes) of each part; every byte of the framing is checked."""
    kind, boundary = re.fullmatch(r"(multipart/byteranges); boundary=([0-9A-Za-z]{1,70})", answer["Content-Type"]).groups()
    delimiter = f"--{boundary}".encode()
    assert answer.body.startswith(delimiter + b"\r\n"), answer
    assert answer.body.endswith(b"\r\n" + delimiter + b"--\r\n"), answer.body[-100:]
    at, parts = len(delimiter) + 2, []
    while True:
        end = answer.body.index(b"\r\n\r\n", at)
        lines = answer.body[at:end].decode("ascii").split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", fields["content-range"]).groups())
        at = end + 4 + last + 1 - first
        parts.append(((first, last + 1, size), fields, answer.body[end + 4 : at]))
        assert answer.body.startswith(b"\r\n" + delimiter, at)
        at += 2 + len(delimiter)
        if answer.body[at:] == b"--\r\n":
            return parts
        assert answer.body.startswith(b"\r\n", at)
        at += 2


def assert_parts(answer, ranges, data, context):
    assert "Content-Range" not in answer.fields, context
    parts = take_parts(answer)
    assert [place for place, _, _ in parts] == [(first, end, len(data)) for first, end in ranges], context
    for (first, end, _), fields, body in parts:
        assert body == data[first:end], context
        assert fields["content-type"] == "application/octet-stream", context


def assert_as_oracle(answer, field, data):
    context = (field, len(data), answer)
    ranges = oracle(field, len(data))
    if ranges is None:
        assert (answer.status, answer.body) == (200, data), context
        assert "Content-Range" not in answer.fields, context
    elif not ranges:
        assert_problem(answer, 416, "range-not-satisfiable")
        assert answer["Content-Range"] == f"bytes */{len(data)}", context
    elif len(ranges) == 1:
        first, end = ranges[0]
        assert (answer.status, answer.body) == (206, data[first:end]), context
        assert answer["Content-Range"] == f"bytes {first}-{end - 1}/{len(data)}", context
        assert answer["Content-Type"] == "application/octet-stream", context
    else:
        assert answer.status == 206, context
        assert_parts(answer, ranges, data, context)
    assert int(answer["Content-Length"]) == len(answer.body), context


def random_number(chance, size):
    near = chance.randrange(size + 3)
    return chance.choice([near, near, near, 0, size - 1, size, 2**63, 2**64 - 1, 2**64 + 1, 10**30])


def random_spec(chance, size):
    kind = chance.randrange(12)
    if kind == 0:
        return chance.choice(["", "-", "x", "5-2", "1-2-3", "+1-2", "0x1-2", "1 -2", "--1", "1", "é"])
    if kind == 1:
        return f"-{chance.choice(['', '0'])}{random_number(chance, min(size, 50))}"
    first = random_number(chance, size)
    if kind == 2:
        return f"{first}-"
    last = first + chance.choice([0, 1, 2, chance.randrange(40), chance.randrange(size + 20)])
    return f"{first}-{last}"


def random_field(chance, size):
    count = chance.choice([1, 1, 2, 2, 2, 3, 4, 7, 20, 63, 64, 65, 100])
    specs = [random_spec(chance, size) for _ in range(count)]
    # One malformed range per list, or nearly all long lists would be malformed.
    if chance.randrange(3):
        specs = [spec for spec in specs if SPEC.match(spec)] or ["0-0"]
    unit = chance.choice(["bytes="] * 20 + ["BYTES=", "Bytes=", "bytes =", "items=", "bytes", "=", "bytes=,, ,"])
    return unit + chance.choice([",", ", ", " ,\t", ",,"]).join(specs)


@pytest.mark.parametrize("seed", range(2))
def test_random_fields_agree_with_the_oracle(server, seed):
    chance = random.Random(seed)
    outcomes = {}
    with Connection(server) as connection:
        for _ in range(1000):
            name = chance.choice(["one", "ten", "page", "page", "odd"])
            field = random_field(chance, SIZES[name]).encode()
            answer = connection.ask("GET", component_path("m", name), {"Range": field})
            assert_as_oracle(answer, field.decode(), DATA[name])
            kind = "parts" if "multipart" in answer["Content-Type"] else answer.status
            outcomes[kind] = outcomes.get(kind, 0) + 1
    assert all(outcomes.get(kind, 0) > 30 for kind in (200, 206, 416, "parts")), outcomes


def test_large_parts(server):
    ranges = [(2_000_000, 3_000_000), (1, 1_000_000), (1_500_000, 1_500_001)]
    answer = get(server, component_path("m", "large"), Range="bytes=2000000-,1-999999,1500000-1500000")
    assert_parts(answer, ranges, DATA["large"], "large")


def test_fields_of_parts_are_those_of_a_part(server):
    path = component_path("m", "page")
    one = get(server, path, Range="bytes=0-1")
    several = get(server, path, Range="bytes=0-1,5-6")
    different = {"content-range", "content-type", "content-length", "date", "x-request-id", "content-digest"}
    names = {name.lower() for name in one.fields} | {name.lower() for name in several.fields}
    assert {name: several.fields.get(name) for name in names - different} == {
        name: one.fields.get(name) for name in names - different
    }


def test_head_and_failed_if_range_ignore_several_ranges(server):
    path = component_path("m", "page")
    answer = head(server, path, Range="bytes=0-1,5-6")
    assert (answer.status, answer["Content-Length"]) == (200, "4096")
    assert answer["Content-Type"] == "application/octet-stream"
    assert get(server, path, Range="bytes=0-1,5-6", If_Range='"other"').status == 200
    tag = answer["ETag"]
    answer = get(server, path, Range="bytes=0-1,5-6", If_Range=tag)
    assert_parts(answer, [(0, 2), (5, 7)], DATA["page"], answer)


def test_parts_of_decoded_bytes_and_of_a_file(server, folder):
    answer = get(server, component_path("m", "packed"), Range="bytes=70000-,0-9")
    assert_parts(answer, [(70_000, 70_001), (0, 10)], DATA["odd"], answer)
    whole = (folder / "m.zt").read_bytes()
    answer = get(server, "/files/m.zt", Range="bytes=100-199,0-7,90-99")
    assert [(place, body) for place, _, body in take_parts(answer)] == [
        ((90, 200, len(whole)), whole[90:200]),
        ((0, 8, len(whole)), whole[:8]),
    ]


def test_parts_of_bytes_that_go_out_as_they_are_stored(server):
    path = component_path("m", "packed")
    whole = get(server, path, Accept_Encoding="zstd")
    assert whole["Content-Encoding"] == "zstd"
    answer = get(server, path, Accept_Encoding="zstd", Range="bytes=100-199,0-9", Want_Content_Digest="sha-256=1")
    assert answer.status == 206
    assert "Content-Encoding" not in answer.fields
    assert answer["ETag"] == whole["ETag"]
    for (first, end, size), fields, body in take_parts(answer):
        assert (fields["content-encoding"], size) == ("zstd", len(whole.body))
        assert body == whole.body[first:end]
    expected = base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
    assert answer["Content-Digest"] == f"sha-256=:{expected}:"


def test_repeated_range_fields_are_as_if_absent(server):
    with Connection(server) as connection:
        connection.http.putrequest("GET", component_path("m", "ten"), skip_accept_encoding=True)
        connection.http.putheader("Range", "bytes=0-1")
        connection.http.putheader("Range", "bytes=5-6")
        connection.http.endheaders()
        answer = connection.receive()
    assert (answer.status, answer.body) == (200, DATA["ten"])


def test_costly_fields_are_answered_with_no_more_than_the_whole(server):
    """As many overlapping ranges as a header holds, and 64 of everything."""
    path = component_path("m", "large")
    many = "bytes=" + ",".join("0-" for _ in range(4000))
    most = "bytes=" + ",".join("0-" for _ in range(64))
    for field in (many, most, "bytes=" + "," * 8000 + "0-0"):
        answer = get(server, path, Range=field)
        assert len(answer.body) <= SIZES["large"]
