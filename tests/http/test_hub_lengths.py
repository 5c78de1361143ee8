"""Files above 50 GB, which the Hub's clients in Python refuse to fetch over plain HTTP if HEAD tells the length."""

import pytest

from wire import get, head

REPO = "org/big"
LIMIT = 50_000_000_000
SIZES = {"huge.bin": 51 << 30, "most.bin": LIMIT, "more.bin": LIMIT + 1}

pytestmark = pytest.mark.folder("sparse files")


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / REPO).mkdir(parents=True)
    for name, size in SIZES.items():
        with open(folder / REPO / name, "wb") as file:
            file.truncate(size)
    return share_server(folder)


def pinned(server, name, route="resolve"):
    commit = get(server, f"/{REPO}/resolve/main/{name}")["X-Repo-Commit"]
    return f"/{REPO}/{route}/{commit}/{name}"


@pytest.mark.parametrize("route", ["resolve", "raw"])
@pytest.mark.parametrize("name", ["huge.bin", "more.bin"])
def test_head_tells_no_length(server, name, route):
    answer = head(server, pinned(server, name, route))
    assert (answer.status, answer["Content-Length"], answer["X-Linked-Size"]) == (200, None, None)
    assert answer["ETag"] and answer["X-Repo-Commit"] and answer["Accept-Ranges"] == "bytes"
    again = head(server, pinned(server, name, route), If_None_Match=answer["ETag"])
    assert (again.status, again["Content-Length"]) == (304, None)


@pytest.mark.parametrize("ask", [get, head])
def test_the_way_to_the_commit_tells_none(server, ask):
    answer = ask(server, f"/{REPO}/resolve/main/huge.bin")
    assert (answer.status, answer["X-Linked-Size"], answer["Content-Length"] or "0") == (307, None, "0")
    assert answer["X-Linked-Etag"] and answer["X-Repo-Commit"]


def test_a_file_that_is_just_small_enough(server):
    assert head(server, pinned(server, "most.bin"))["Content-Length"] == str(LIMIT)
    assert head(server, f"/{REPO}/resolve/main/most.bin")["X-Linked-Size"] == str(LIMIT)


def test_parts_are_as_always(server):
    size = SIZES["huge.bin"]
    part = get(server, pinned(server, "huge.bin"), Range=f"bytes={size - 5}-")
    assert (part.status, part.body, part["Content-Range"]) == (206, bytes(5), f"bytes {size - 5}-{size - 1}/{size}")
    first = get(server, pinned(server, "huge.bin"), Range="bytes=0-0")
    assert (first.status, first.body, first["Content-Range"]) == (206, b"\0", f"bytes 0-0/{size}")
    assert get(server, pinned(server, "huge.bin"), Range=f"bytes={size}-").status == 416


def test_other_addresses_tell_the_length(server):
    assert head(server, f"/files/{REPO}/huge.bin")["Content-Length"] == str(SIZES["huge.bin"])
    tree = get(server, f"/api/models/{REPO}/tree/main").json()
    assert {entry["path"]: entry["size"] for entry in tree} == SIZES
