"""Range and If-Range on a component (RFC 9110 section 14)."""

import email.utils
import os

import pytest

from containers import dense, pattern, zt1
from wire import assert_problem, component_path, get

SIZES = {"one": 1, "page": 4096, "odd": 70_001, "large": 2_000_000}
DATA = {name: pattern(size, seed=index) for index, (name, size) in enumerate(SIZES.items())}


@pytest.fixture(scope="module")
def server(folder, share_server):
    objects = {name: dense(data) for name, data in DATA.items()}
    (folder / "m.zt").write_bytes(zt1({**objects, "none": dense(b"", shape=[0])}))
    return share_server(folder)


def ranged(server, name, value, **fields):
    return get(server, component_path("m", name), Range=value, **fields)


def assert_part(server, name, text, first, last):
    answer, size = ranged(server, name, f"bytes={text}"), SIZES[name]
    assert answer.status == 206, (text, answer)
    assert answer["Content-Range"] == f"bytes {first}-{last}/{size}"
    assert answer["Content-Length"] == str(last - first + 1)
    assert answer.body == DATA[name][first : last + 1], text


@pytest.mark.parametrize("name", SIZES)
def test_edges_of_single_ranges(server, name):
    """What a field says is in tests/unit/server/test_ranges.c; here are the bytes."""
    last = SIZES[name] - 1
    for text, first in ((f"0-{last}", 0), (f"{last}-", last), (f"000{last // 2}-{2**64 + 5}", last // 2), ("-1", last)):
        assert_part(server, name, text, first, last)
    assert_part(server, name, "0-0", 0, 0)
    assert_part(server, name, f"-{2**64}", 0, last)
    for text in (f"{last + 1}-", f"{2**64}-", "-0"):
        answer = ranged(server, name, f"bytes={text}")
        assert_problem(answer, 416, "range-not-satisfiable")
        assert answer["Content-Range"] == f"bytes */{SIZES[name]}"


@pytest.mark.parametrize("value", ["bytes", "bytes=5-2", "bytes=0-1,x", "items=0-1", "bytes=" + ",".join(["0-0", "2-2"] * 33)])
def test_malformed_ranges_other_units_and_too_many_are_as_if_absent(server, value):
    answer = ranged(server, "page", value)
    assert (answer.status, answer.body) == (200, DATA["page"])
    assert "Content-Range" not in answer.fields


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
    first = get(server, path, Range="bytes=0-1234566")
    rest = get(server, path, Range="bytes=1234567-", If_Range=first["ETag"])
    assert rest.status == 206
    assert first.body + rest.body == DATA["large"]
