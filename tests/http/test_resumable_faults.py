"""Calls that fail under a resumable upload: the server lives, the upload stays, and a shortage of descriptors costs no byte."""

import errno

import pytest

import faulty
import tus
from clients import Client, write_tokens
from small_disk import small_disk
from uploads import SMALL
from wire import eventually

# More calls than one request has.
CALLS_MAX = 100
MIB = 1 << 20
READER = Client("reader", "read")
WRITER = Client("writer", "write")

needs_faults = pytest.mark.plain("a preloaded library makes calls fail")
pytestmark = pytest.mark.folder("failing system calls on files")


@pytest.fixture
def control(tmp_path):
    return faulty.Control(tmp_path / "control")


def cut(server, name, sent):
    """An upload whose client is gone: its bytes are in the file, but not durable."""
    upload = tus.create(server, name, len(SMALL))
    with tus.begin_patch(server, upload, 0, len(SMALL)) as connection:
        connection.sendall(SMALL[:sent])
        eventually(lambda: tus.uploads_of(server, name)[0]["received"] == sent)
    return upload


@needs_faults
@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_any_call_of_a_head_may_fail_after_an_interruption(root, control, error):
    server = faulty.start(root, control)
    for number in range(1, CALLS_MAX):
        name = f"m{number}"
        upload = cut(server, name, 300)
        control.fail(number, error)
        answer = tus.head(server, upload)
        met = control.rest()
        assert answer.status in (200, 500, 503, 507), (number, met, answer)
        # It also expires if no client asks for it.
        assert len(tus.uploads_of(server, name)) == 1, (number, met)
        offset = tus.offset_of(server, upload)
        assert offset == 300 or (offset == 0 and error != errno.EMFILE), (number, met, offset)
        assert tus.patch(server, upload, offset, SMALL[offset:]).status == 204, (number, met)
        if met is None:
            break
    assert 3 < number < CALLS_MAX
    assert server.stop() == 0, server.log


@needs_faults
def test_an_upload_of_another_process_that_cannot_be_opened_now_is_not_missing(root, control, start_server):
    other = start_server(root, "--writable", "--shared")
    server = faulty.start(root, control, "--shared")
    uploads = [tus.create(other, f"m{at}", len(SMALL)) for at in range(20)]
    for upload in uploads:
        assert tus.patch(other, upload, 0, SMALL[:300]).status == 204
    other.kill()
    for number, upload in enumerate(uploads, 1):
        control.fail(number, errno.EMFILE)
        answer = tus.head(server, upload)
        met = control.rest()
        assert answer.status in (200, 503), (number, met, answer)
        assert answer.status == 200 or answer["Retry-After"] == "1"
        assert tus.offset_of(server, upload) == 300
    assert server.stop() == 0, server.log


@needs_faults
def test_a_body_that_failed_keeps_no_space(tmp_path, control):
    with small_disk(tmp_path / "disk", 64 * MIB) as disk:
        server = faulty.start(disk.path, control)
        uploads = [tus.create(server, f"m{at}", 50 * MIB) for at in range(2)]
        for number in range(1, CALLS_MAX):
            control.fail(number, errno.EIO)
            answer = tus.patch(server, uploads[0], 0, bytes(40 * MIB))
            met = control.rest()
            if met == "write":
                break
        assert met == "write" and answer.status == 500
        assert tus.patch(server, uploads[1], 0, bytes(40 * MIB)).status == 204
        assert server.stop() == 0, server.log


def test_a_reader_learns_the_outcome_after_a_restart(tmp_path, root, start_server):
    tokens = write_tokens(tmp_path / "tokens", READER, WRITER)
    arguments = (root, "--writable", "--tokens", tokens)
    server = start_server(*arguments)
    fields = {**tus.PIECE, "Upload-Metadata": tus.metadata("m"), "Upload-Length": str(len(SMALL))}
    created = WRITER.ask(server, "POST", "/v1/resumable", fields, SMALL)
    assert created.status == 201, created
    upload = created["Location"]
    assert READER.ask(server, "HEAD", upload, tus.TUS).status == 200
    server.kill()
    again = start_server(*arguments)
    answer = READER.ask(again, "HEAD", upload, tus.TUS)
    assert (answer.status, answer["Upload-Offset"]) == (200, str(len(SMALL)))
