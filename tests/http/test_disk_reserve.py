"""Whatever writes to the disk leaves `upload.reserve_bytes` free, alone and together, and all of it works again when there is space."""

import concurrent.futures
import io

import numpy
import pytest

import lfs
import tus
import writers
import xet
from containers import pattern
from small_disk import small_disk
from uploads import begin_put, files_of, put
from wire import ask, assert_problem, component_path, eventually, get, model_path

MIB = 1 << 20
SIZE, RESERVE = 64 * MIB, 24 * MIB
ROOM = SIZE - RESERVE
# What a few small records of the server may take of the reserve.
RECORDS = 64 << 10

pytestmark = pytest.mark.folder("mounts a small disk for the root")


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", SIZE) as disk:
        yield disk


@pytest.fixture
def server(disk, start_server):
    environment = {"ZTSERVE_UPLOAD_RESERVE_BYTES": str(RESERVE), "ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "64", "ZTSERVE_HUB_PART_BYTES": str(8 * MIB)}
    return start_server(disk.path, "--writable", environment=environment)


@pytest.fixture(autouse=True)
def reserve_stays_free(request):
    """Watches the disk during each test."""
    if "disk" not in request.fixturenames:
        yield
        return
    disk = request.getfixturevalue("disk")
    request.getfixturevalue("server")
    disk.ballast = []
    with disk.watched():
        yield
    assert disk.least >= RESERVE - RECORDS, f"{disk.least >> 10} KiB were free"


def npy(length):
    file = io.BytesIO()
    numpy.save(file, numpy.zeros(length, "u1"))
    return file.getvalue()


def pieces(body, length):
    return (body[at : at + length] for at in range(0, len(body), length))


def send_chunked(server, target, body):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces(body, MIB))
    return ask(server, "PUT", target, {"Transfer-Encoding": "chunked"}, chunks + b"0\r\n\r\n")


def put_chunked(server, name, body):
    return send_chunked(server, model_path(name), body)


def assert_empty(disk):
    eventually(lambda: not [path for path in files_of(disk.path) if not path.startswith(".ztserve/")])


# --- alone ---


def test_a_chunked_body_ends_where_the_reserve_begins(disk, server):
    assert_problem(put_chunked(server, "m", npy(SIZE)), 507, "insufficient-storage")
    assert_empty(disk)
    eventually(lambda: put_chunked(server, "m", npy(ROOM - MIB)).status == 201)


def test_a_resumable_upload_without_a_length_keeps_what_fits(disk, server):
    upload = tus.create(server, "m", None, Upload_Length=None, Upload_Defer_Length="1")
    body, at, answer = npy(SIZE), 0, None
    for piece in pieces(body, 3 * MIB):
        answer = tus.patch(server, upload, at, piece)
        if answer.status != 204:
            break
        at += len(piece)
    assert_problem(answer, 507, "insufficient-storage")
    assert at >= ROOM - 4 * MIB and tus.offset_of(server, upload) == at


def test_a_piece_that_does_not_fit_is_refused_before_its_first_byte(disk, server):
    upload = tus.create(server, "m", None, Upload_Length=None, Upload_Defer_Length="1")
    assert tus.patch(server, upload, 0, bytes(MIB)).status == 204
    before = disk.free()
    assert_problem(tus.patch(server, upload, MIB, bytes(ROOM)), 507, "insufficient-storage")
    assert abs(disk.free() - before) < RECORDS
    assert tus.offset_of(server, upload) == MIB


def test_a_component_of_the_streaming_writer(disk, server):
    upload = writers.begin(server, "m", "1.2.0", attributes={})
    answer = send_chunked(server, upload.component_path("w", dtype="u8", shape=SIZE, encoding="zstd"), numpy.random.default_rng(1).bytes(SIZE))
    assert_problem(answer, 507, "insufficient-storage")


def test_a_commit(disk, server):
    xet.create(server, lfs.REPO)
    assert lfs.commit(server, lfs.inline("file", pattern(ROOM + MIB))).status == 507
    assert lfs.files_of(disk.path) == {}


def test_a_commit_needs_room_for_its_files_only_once(disk, server):
    content = pattern(ROOM - 2 * MIB)
    xet.create(server, lfs.REPO)
    assert lfs.commit(server, lfs.inline("file", content)).status == 200
    assert lfs.files_of(disk.path) == {"file": content}


@pytest.mark.parametrize("count", [1, 5])
def test_copies_that_a_commit_makes_of_an_object(disk, server, count):
    content = pattern(9 * MIB)
    xet.create(server, lfs.REPO)
    lfs.stage(server, content, transfers=["basic"])
    answer = lfs.commit(server, *(lfs.lfs_file(f"{at}", content) for at in range(count)))
    assert answer.status == (200 if count == 1 else 507), answer
    assert len(lfs.files_of(disk.path)) == (count if count == 1 else 0)


def test_a_short_shard_of_long_files_is_refused_before_the_first_byte(disk, server):
    """48 KB that stand for 7 GiB."""
    session = xet.Session(server, lfs.REPO)
    xorb = xet.Xorb(*([xet.chunk_of(xet.LZ4, xet.run(b"x", 128 << 10), 128 << 10)] * 56))
    xet.assert_accepted(session.send(xorb))
    before = disk.free()
    terms = [xet.term(xorb, 7 * MIB, 0, 56)] * 1000
    answer = session.describe(xet.shard(xet.file_of(terms, None, flags=0)))
    assert answer.status == 507, (answer.status, answer.body)
    assert disk.least > min(before, disk.free()) - MIB
    entries = [xet.file_of([xet.term(xorb, 7 * MIB, 0, 56)] * 1, None, flags=0)] * 6
    assert session.describe(xet.shard(*entries)).status == 507
    assert disk.least > min(before, disk.free()) - MIB
    xet.assert_accepted(session.describe(xet.shard(*entries[:2])))


def test_a_shard_that_understates_its_terms_is_refused_at_its_first_chunk(disk, server):
    session = xet.Session(server, lfs.REPO)
    xorb = xet.Xorb(*([xet.chunk_of(xet.LZ4, xet.run(b"x", 128 << 10), 128 << 10)] * 64))
    xet.assert_accepted(session.send(xorb))
    before = disk.free()
    answer = session.describe(xet.shard(xet.file_of([xet.term(xorb, 1, 0, 64)], None, flags=0)))
    xet.assert_refused(answer, 400, "differ in length from the shard")
    assert disk.least > before - MIB


# --- together ---


@pytest.mark.parametrize("send", [put, put_chunked])
def test_uploads_at_once(disk, server, send):
    body = npy(ROOM // 5)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda at: send(server, f"m{at}", body), range(12)))
    statuses = sorted(answer.status for answer in answers)
    assert set(statuses) <= {201, 507} and 507 in statuses, statuses
    assert statuses.count(201) >= (3 if send is put else 0)
    # A refusal is sent before the worker that wrote the body has let its upload go.
    eventually(lambda: get(server, "/v1/uploads").json() == {"uploads": []})
    eventually(lambda: disk.free() > RESERVE + MIB // 2)


def test_uploads_of_every_kind_at_once(disk, server):
    content = pattern(6 * MIB)
    xet.create(server, lfs.REPO)

    def send(at):
        if at % 4 == 0:
            return put(server, f"put{at}", npy(len(content))).status
        if at % 4 == 1:
            upload = tus.create(server, f"tus{at}", None, Upload_Length=None, Upload_Defer_Length="1")
            return tus.patch(server, upload, 0, content).status
        if at % 4 == 2:
            return lfs.commit(server, lfs.inline(f"file{at}", content[: 3 * MIB])).status
        xorb, entry = xet.whole(content + bytes([at]))
        session = xet.Session(server, lfs.REPO)
        sent = session.send(xorb)
        return session.describe(xet.shard(entry)).status if sent.status == 200 else sent.status

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = set(pool.map(send, range(16)))
    assert statuses <= {200, 201, 204, 409, 412, 507} and 507 in statuses, statuses


def test_a_declared_length_counts_before_its_bytes_come(disk, server):
    with begin_put(server, model_path("a"), ROOM - MIB):
        eventually(lambda: len(get(server, "/v1/uploads").json()["uploads"]) == 1)
        assert_problem(put(server, "b", npy(2 * MIB)), 507, "insufficient-storage")
    eventually(lambda: put(server, "b", npy(2 * MIB)).status == 201)


# --- decoding ---


def deflated(length, count=1):
    file = io.BytesIO()
    numpy.savez_compressed(file, **{f"w{at}": numpy.zeros(length, "u1") for at in range(count)})
    return file.getvalue()


def test_what_does_not_fit_decoded_is_507_until_there_is_space(disk, server):
    assert put(server, "m", deflated(16 * MIB)).status == 201
    ballast = disk.fill_to(RESERVE + 2 * MIB)
    before = disk.free()
    for _ in range(3):
        assert_problem(get(server, component_path("m", "w0")), 507, "insufficient-storage")
    assert_problem(get(server, f"{component_path('m', 'w0')}/statistics"), 507, "insufficient-storage")
    assert disk.least > before - MIB
    ballast.unlink()
    answer = get(server, component_path("m", "w0"))
    assert (answer.status, answer.body) == (200, bytes(16 * MIB))


def test_decoded_components_make_room_for_others_and_for_uploads(disk, server):
    assert put(server, "m", deflated(16 * MIB, 4)).status == 201
    for at in (0, 1, 2, 3, 0):
        answer = get(server, component_path("m", f"w{at}"))
        assert (answer.status, len(answer.body)) == (200, 16 * MIB)
    assert disk.free() < RESERVE + 16 * MIB
    assert put(server, "n", npy(ROOM - MIB)).status == 201
