"""Range and If-Range on a component, compared with a small implementation of RFC 9110 section 14."""

import email.utils
import os
import random
import re

import pytest

from containers import dense, pattern, zt1
from wire import assert_problem, component_path, get

SIZES = {"one": 1, "ten": 10, "page": 4096, "odd": 70_001, "large": 5_000_000}
DATA = {name: pattern(size, seed=index) for index, (name, size) in enumerate(SIZES.items())}
SINGLE = re.compile(r"^(\d*)-(\d*)$")


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {name: dense(data) for name, data in DATA.items()}
    (folder / "m.zt").write_bytes(zt1({**objects, "none": dense(b"", shape=[0])}))
    return share_server(folder)


def ranged(server, name, value, **fields):
    return get(server, component_path("m", name), Range=value, **fields)


def oracle(text, size):
    """(first, last) of a well-formed single range, or None if it cannot be satisfied."""
    first, last = SINGLE.match(text).groups()
    if first == "":
        wanted = min(int(last), size)
        return (size - wanted, size - 1) if wanted else None
    if int(first) >= size:
        return None
    return int(first), min(int(last), size - 1) if last else size - 1


def assert_as_oracle(server, name, text):
    answer = ranged(server, name, f"bytes={text}")
    size = SIZES[name]
    expected = oracle(text, size)
    if expected is None:
        assert_problem(answer, 416, "range-not-satisfiable")
        assert answer["Content-Range"] == f"bytes */{size}"
        return
    first, last = expected
    assert answer.status == 206, (text, answer)
    assert answer["Content-Range"] == f"bytes {first}-{last}/{size}"
    assert answer["Content-Length"] == str(last - first + 1)
    assert answer.body == DATA[name][first : last + 1], text


@pytest.mark.parametrize("name", SIZES)
def test_edges_of_single_ranges(server, name):
    size = SIZES[name]
    huge = 2**64 + 5
    numbers = [0, 1, size // 2, size - 1, size, size + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, huge]
    for number in numbers:
        assert_as_oracle(server, name, f"{number}-")
        assert_as_oracle(server, name, f"-{number}")
        assert_as_oracle(server, name, f"0-{number}")
        assert_as_oracle(server, name, f"{number}-{huge * 10**30}")


def test_random_ranges_agree_with_the_oracle(server):
    chance = random.Random(20)
    for _ in range(150):
        name = chance.choice(["ten", "page", "odd"])
        size = SIZES[name]
        first = chance.randrange(size + 3)
        last = chance.randrange(first, size + 20)
        text = chance.choice([f"{first}-{last}", f"{first}-", f"-{last}", f"000{first}-0{last}"])
        assert_as_oracle(server, name, text)


def test_range_of_a_large_component(server):
    assert_as_oracle(server, "large", "1-4999998")
    assert_as_oracle(server, "large", "4096-8191")
    assert_as_oracle(server, "large", "-65537")


@pytest.mark.parametrize(
    "value",
    [
        "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=1-2-3", "bytes=0x1-2", "bytes 0-1", "bytes=+1-2",
        "bytes=1.0-2", "bytes=--1", "bytes=1 - 2", "=0-1", "bytes=0-1;2-3", "bytes=5-2,0-1", "bytes=0-1,x", "none",
    ],
)  # fmt: skip
def test_malformed_ranges_are_as_if_absent(server, value):
    answer = ranged(server, "page", value)
    assert answer.status == 200
    assert answer.body == DATA["page"]
    assert "Content-Range" not in answer.fields


@pytest.mark.parametrize("value", ["items=0-1", "seconds=0-1", "byte=0-1", "octets=0-"])
def test_other_units_are_as_if_absent(server, value):
    answer = ranged(server, "page", value)
    assert (answer.status, answer.body) == (200, DATA["page"])


def test_unit_is_in_any_case(server):
    answer = ranged(server, "page", "BYTES=1-2")
    assert (answer.status, answer.body) == (206, DATA["page"][1:3])


def test_more_than_64_ranges_are_as_if_absent(server):
    value = "bytes=" + ",".join(f"{at}-{at}" for at in range(0, 130, 2))
    answer = ranged(server, "page", value)
    assert (answer.status, answer.body) == (200, DATA["page"])


def test_only_suffixes_of_an_empty_component_are_satisfiable(server):
    for text in ("0-", "0-0", "-0"):
        answer = ranged(server, "none", f"bytes={text}")
        assert_problem(answer, 416, "range-not-satisfiable")
        assert answer["Content-Range"] == "bytes */0"
    # RFC 9110 14.1.2: all of it, for which Content-Range has no form.
    answer = ranged(server, "none", "bytes=-1")
    assert (answer.status, answer.body) == (200, b"")


def test_if_range_with_the_tag_gives_the_part(server):
    tag = get(server, component_path("m", "page"))["ETag"]
    assert ranged(server, "page", "bytes=0-3", If_Range=tag).status == 206
    for other in ('"other"', f"W/{tag}", tag.strip('"'), f"{tag}, {tag}"):
        answer = ranged(server, "page", "bytes=0-3", If_Range=other)
        assert (answer.status, answer.body) == (200, DATA["page"]), other


def test_if_range_with_the_date_gives_the_part_only_when_it_is_exact(server):
    modified = get(server, component_path("m", "page"))["Last-Modified"]
    moment = email.utils.parsedate_to_datetime(modified).timestamp()
    assert ranged(server, "page", "bytes=0-3", If_Range=email.utils.formatdate(moment - 100, usegmt=True)).status == 200
    assert ranged(server, "page", "bytes=0-3", If_Range=email.utils.formatdate(moment + 100, usegmt=True)).status == 200
    assert ranged(server, "page", "bytes=0-3", If_Range="yesterday").status == 200


@pytest.mark.folder("times of files")
def test_if_range_with_the_date_of_an_old_file(start_server, tmp_path):
    path = tmp_path / "m.zt"
    path.write_bytes(zt1({"page": dense(DATA["page"])}))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    other = start_server(tmp_path)
    modified = get(other, component_path("m", "page"))["Last-Modified"]
    assert modified == email.utils.formatdate(1_700_000_000, usegmt=True)
    assert ranged(other, "page", "bytes=0-3", If_Range=modified).status == 206


def test_unsatisfiable_under_a_failing_if_range_is_the_whole(server):
    answer = ranged(server, "page", "bytes=99999-", If_Range='"other"')
    assert (answer.status, answer.body) == (200, DATA["page"])


def test_ranges_of_a_stored_file(server, folder):
    whole = (folder / "m.zt").read_bytes()
    answer = get(server, "/files/m.zt", Range="bytes=8-99")
    assert (answer.status, answer.body) == (206, whole[8:100])
    assert answer["Content-Range"] == f"bytes 8-99/{len(whole)}"


def test_resumed_download_is_whole(server):
    path = component_path("m", "large")
    first = get(server, path, Range="bytes=0-1234567")
    rest = get(server, path, Range="bytes=1234568-", If_Range=first["ETag"])
    assert rest.status == 206
    assert first.body + rest.body == DATA["large"]
