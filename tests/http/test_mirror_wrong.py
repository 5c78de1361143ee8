"""Upstream sends other bytes than it states: no client completes a wrong file, nothing wrong is kept, and a retry works."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import meddler as acts
from mock_hub import File
from pull_through import (
    BLOCK,
    MIB,
    REPO,
    begin_reading,
    download,
    download_in_pieces,
    eventually_right,
    fetch,
    files_path,
    flip_at,
    joined,
    read_at_least,
    resolve_path,
    resumed_download,
    safetensors,
    v1_path,
)
from wire import eventually, get

SIZE = 24 * MIB
FILE = safetensors(SIZE, seed=5)
OTHER = safetensors(SIZE, seed=6)
THIRD = bytes(len(FILE))
PLACES = {"first block": 1000, "middle block": 12 * MIB + 77, "last block": len(FILE) - 10, "last byte": len(FILE) - 1}
S3_PATH = f"/s3/models/{REPO}/model.safetensors"


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


@pytest.fixture
def server(upstream, mirror_of):
    upstream.add(REPO, {"model.safetensors": FILE})
    return mirror_of(upstream.endpoint)


HUB_PATH = resolve_path(REPO, "model.safetensors")


@pytest.mark.parametrize("target", [HUB_PATH, files_path(REPO, "model.safetensors"), S3_PATH], ids=["hub", "files", "s3"])
def test_a_sequential_reader_never_gets_the_whole(server, upstream, place, target):
    flip_at(upstream, place)
    got = fetch(server, target)
    assert not got.is_whole or got.status >= 500, got
    assert len(got.body) <= len(FILE) - 1
    eventually_right(server, target, FILE)
    said = server.wait_for_line("model.safetensors")
    assert "model.safetensors" in said


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_halves_the_later_one_is_held_back(server, upstream, place, order):
    rule = flip_at(upstream, place)
    ranges = [f"bytes=0-{10 * MIB - 1}", f"bytes={10 * MIB}-"]
    halves = {number: fetch(server, HUB_PATH, {"Range": ranges[number]}) for number in order}
    assert rule.used == 1
    assert joined([halves[0], halves[1]], len(FILE)) in (None, FILE)


def test_a_resumed_download_is_never_completed_wrongly(server, upstream, place):
    """A client that keeps what it had before the cut would complete it with the right rest."""
    rule = flip_at(upstream, place)
    got = resumed_download(server, HUB_PATH, len(FILE))
    assert rule.used == 1
    assert got in (None, FILE)
    assert resumed_download(server, HUB_PATH, len(FILE)) == FILE


@pytest.mark.others
@pytest.mark.parametrize("tries", [1, 5])
def test_pieces_side_by_side_are_never_completed_wrongly(server, upstream, place, tries):
    """Also if a client fetches only the piece again that was cut."""
    rule = flip_at(upstream, place)
    pieces = download_in_pieces(server, HUB_PATH, len(FILE), tries=tries)
    assert rule.used == 1
    assert joined(pieces, len(FILE)) in (None, FILE)
    eventually_right(server, HUB_PATH, FILE)
    got = fetch(server, HUB_PATH, {"Range": "bytes=1000-1999"})
    assert (got.status, got.body, got.fields.get("ZT-Verified")) == (206, FILE[1000:2000], None)


def test_a_wrong_beginning_from_before_a_kill_is_not_completed(server, upstream, mirror_of):
    """The client that has it continues; its server is another process."""
    flip_at(upstream, 1000)
    held = threading.Event()
    upstream.store.meddle(acts.paused_after(1000, held), "read", when=lambda request: (request.range or (0,))[0] >= 16 * MIB)
    connection, _, _, body = begin_reading(server, HUB_PATH)
    with connection:
        have = read_at_least(connection, 10 * MIB, body)[: 10 * MIB]
    server.kill()
    held.set()
    server = mirror_of.again(server, upstream.endpoint)
    assert resumed_download(server, HUB_PATH, len(FILE), have=have) in (None, FILE)


@pytest.mark.others
def test_with_strict_no_piece_is_wrong(upstream, mirror_of, place):
    upstream.add(REPO, {"model.safetensors": FILE})
    server = mirror_of(upstream.endpoint, strict=True)
    flip_at(upstream, place)
    for _ in range(2):
        for number, piece in enumerate(download_in_pieces(server, HUB_PATH, len(FILE))):
            assert not piece.is_right or piece.body in (FILE, FILE[number * 10 * MIB : (number + 1) * 10 * MIB])
    eventually_right(server, HUB_PATH, FILE)


@pytest.mark.others
def test_readers_at_once_are_all_cut(server, upstream):
    flip_at(upstream, PLACES["middle block"])
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: fetch(server, HUB_PATH), range(8)):
            assert not got.is_right or got.body == FILE
    eventually_right(server, HUB_PATH, FILE)


def test_a_wrong_file_is_fetched_again_and_nothing_of_it_is_kept(server, upstream):
    """While upstream is wrong no request is answered wholly; afterwards the next one is."""
    upstream.change_bytes(REPO, "model.safetensors", OTHER)
    for _ in range(3):
        assert not download(server, REPO, "model.safetensors").is_right
    upstream.change_bytes(REPO, "model.safetensors", FILE)
    eventually_right(server, HUB_PATH, FILE)
    assert get(server, v1_path(REPO, "model.safetensors")).status == 200


def test_a_range_after_a_wrong_file_has_only_right_bytes(server, upstream):
    """The wrong blocks were dropped, also those that a range had taken."""
    flip_at(upstream, 500)
    part = fetch(server, HUB_PATH, {"Range": "bytes=0-999"})
    assert part.fields.get("ZT-Verified") == "no"
    assert not download(server, REPO, "model.safetensors").is_right
    eventually(lambda: fetch(server, HUB_PATH, {"Range": "bytes=0-999"}).body == FILE[:1000])
    eventually_right(server, HUB_PATH, FILE)


@pytest.mark.parametrize("size", [1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_files_of_every_size(upstream, mirror_of, size):
    right = bytes(FILE[:size])
    upstream.add(REPO, {"w.bin": right})
    server = mirror_of(upstream.endpoint)
    flip_at(upstream, size // 2)
    got = download(server, REPO, "w.bin")
    # Nothing of it may have been sent when it was found, and then it may have been fetched again.
    assert not got.is_right or got.body == right
    assert got.status != 200 or got.is_right or len(got.body) < size
    eventually_right(server, resolve_path(REPO, "w.bin"), right)


SMALLER = safetensors(3 * MIB, seed=7)
STATED = {
    "a size that is too large": File(SMALLER, True, size=len(SMALLER) + 1000),
    "a size that is too small": File(SMALLER, True, size=len(SMALLER) - 1000),
    "another digest": File(SMALLER, True, sha256="12" * 32),
    "another object name": File(b"small\n", False, oid="34" * 20),
    "a size of a small file": File(b"small\n", False, size=7),
    "a smaller size of a small file": File(b"small\n", False, size=5),
}


@pytest.mark.parametrize("kind", STATED)
def test_statements_that_the_bytes_do_not_meet(upstream, mirror_of, kind):
    path = "model.safetensors" if STATED[kind].is_lfs else "config.json"
    commit = upstream.add(REPO, {path: STATED[kind]})
    server = mirror_of(upstream.endpoint)
    for _ in range(2):
        got = download(server, REPO, path)
        assert not got.is_right, got
        assert got.status != 404, got
    upstream.repositories[REPO].commits.pop(commit)
    right = STATED[kind].content
    upstream.add(REPO, {path: right})
    other = mirror_of(upstream.endpoint)
    eventually_right(other, resolve_path(REPO, path), right)


ANSWERS = {
    "ends early": acts.short_body(100),
    "is shorter than asked for": acts.shorter_answer(100),
    "is longer than asked for": acts.longer_answer(100),
    "is empty": acts.changed(lambda true: acts.Reply(true.status, true.fields, b"")),
    "has another range": acts.with_fields(Content_Range="bytes 0-99/100"),
    "has no Content-Range": acts.with_fields(Content_Range=None),
    "has another size in its range": acts.with_fields(Content_Range=f"bytes 0-99/{len(FILE) + 5}"),
    "says that it is compressed": acts.with_fields(Content_Encoding="gzip"),
    "is a page": acts.reply(200, b"<html>log in</html>" * 50, Content_Type="text/html"),
    "has no content": acts.reply(204),
    "is not modified": acts.reply(304),
    "is of another file": acts.of_another_version(THIRD),
    "is the whole of another file": acts.whole_instead_of_range(THIRD),
    "ends within its head": lambda request, handler: handler.wfile.write(b"HTTP/1.1 206 Par"),
    "is no HTTP": lambda request, handler: handler.wfile.write(b"220 ftp.example ready\r\n"),
    "is reset": acts.reset,
    "is reset within": acts.reset_after(1_000_000),
    "redirects in a circle": lambda request, handler: acts.Reply(302, {"Location": request.target}),
    "redirects nowhere": acts.reply(302),
}


@pytest.mark.others
@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_with_bytes_that(upstream, mirror_of, kind):
    """Twice, for good, and then no more: no wrong byte, and it works afterwards."""
    files = {"model.safetensors": FILE, "second.safetensors": OTHER}
    upstream.add(REPO, files)
    server = mirror_of(upstream.endpoint)
    for times, (path, content) in zip((2, None), files.items(), strict=True):
        rule = upstream.store.meddle(ANSWERS[kind], "read", times=times)
        got = download(server, REPO, path)
        assert not got.is_right or got.body == content, [index for index in range(0, len(content), BLOCK) if got.body[index : index + BLOCK] != content[index : index + BLOCK]]
        begin = 20 * MIB
        part = fetch(server, resolve_path(REPO, path), {"Range": f"bytes={begin}-{begin + 99}"})
        is_doubtful = part.fields.get("ZT-Verified") == "no"
        assert not part.is_right or part.body in (content[begin : begin + 100], content) or is_doubtful
        assert part.status in (200, 206, 502, 503, 0), part
        assert rule.used > 0
    upstream.store.stop()
    for path, content in files.items():
        eventually_right(server, resolve_path(REPO, path), content)
