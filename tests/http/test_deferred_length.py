"""/v1/resumable with Upload-Defer-Length: a file whose length its client learns at its end."""

import pytest

from containers import dense, pattern, zt1
from tus import checksum, create, head, kept_in, offset_of, patch, post, uploads_of
from uploads import SMALL, content_of, digest_field, files_of
from wire import assert_problem, get

LARGE = zt1({"w": dense(pattern(600_000))})
LIMIT = 64 << 20
LATER = {"Upload_Length": None, "Upload_Defer_Length": "1"}


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


def begin(server, name, **fields):
    return create(server, name, None, **{**LATER, **fields})


def assert_unknown(shown):
    assert shown.status == 200 and shown["Upload-Defer-Length"] == "1" and not shown["Upload-Length"], shown


def assert_known(shown, length):
    assert shown.status == 200 and shown["Upload-Length"] == str(length) and not shown["Upload-Defer-Length"], shown


def test_the_last_piece_states_the_length_and_publishes(server, folder, name):
    upload = begin(server, name)
    assert_unknown(head(server, upload))
    assert patch(server, upload, 0, SMALL[:500]).status == 204
    assert_unknown(head(server, upload))
    (entry,) = uploads_of(server, name)
    assert entry["received"] == 500 and "length" not in entry
    last = patch(server, upload, 500, SMALL[500:], Upload_Length=str(len(SMALL)))
    assert last.status == 204 and last["Upload-Offset"] == str(len(SMALL)), last
    assert last["Repr-Digest"] == digest_field("sha-256", SMALL)
    assert_known(head(server, upload), len(SMALL))
    assert content_of(server, name) == pattern(1000)
    assert uploads_of(server, name) == []


def test_the_length_may_be_stated_before_the_last_piece_and_by_an_empty_one(server, name):
    upload = begin(server, name)
    assert patch(server, upload, 0, SMALL[:500]).status == 204
    assert patch(server, upload, 500, b"", Upload_Length=str(len(SMALL))).status == 204
    assert_known(head(server, upload), len(SMALL))
    assert uploads_of(server, name)[0]["length"] == len(SMALL)
    assert patch(server, upload, 500, SMALL[500:]).status == 204
    assert content_of(server, name) == pattern(1000)


def test_an_empty_piece_that_states_what_is_there_as_the_length_publishes(server, name):
    upload = begin(server, name)
    assert patch(server, upload, 0, SMALL).status == 204
    assert get(server, f"/v1/models/{name}").status == 404
    last = patch(server, upload, len(SMALL), b"", Upload_Length=str(len(SMALL)))
    assert last.status == 204 and last["Repr-Digest"] == digest_field("sha-256", SMALL)
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("is_stated_at_creation", [False, True])
def test_a_known_length_may_be_repeated_and_not_changed(server, name, is_stated_at_creation):
    whole = str(len(SMALL))
    upload = create(server, name, whole) if is_stated_at_creation else begin(server, name)
    assert patch(server, upload, 0, SMALL[:500], Upload_Length=whole).status == 204
    assert_problem(patch(server, upload, 500, SMALL[500:], Upload_Length=str(len(SMALL) + 1)), 400, "invalid-request")
    assert_known(head(server, upload), len(SMALL))
    assert patch(server, upload, 500, SMALL[500:], Upload_Length=whole).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize(
    "offset, body, length, status, code",
    [
        (500, b"", "", 400, "invalid-request"),
        (500, b"", "499", 400, "invalid-request"),
        (500, b"", "9223372036854775808", 400, "invalid-request"),
        (500, b"", str(LIMIT + 1), 413, "too-large"),
        (500, b"x" * 11, "510", 413, "too-large"),
        (5, b"x", "1000", 409, "conflict"),
    ],
)
def test_a_refused_piece_leaves_the_length_open(server, name, offset, body, length, status, code):
    upload = begin(server, name)
    assert patch(server, upload, 0, b"x" * 500).status == 204
    assert_problem(patch(server, upload, offset, body, Upload_Length=length), status, code)
    assert_unknown(head(server, upload))
    assert offset_of(server, upload) == 500


@pytest.mark.parametrize("chunked", [False, True])
def test_bytes_beyond_the_limit_are_413(tmp_path, start_server, name, chunked):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": "1000"})
    upload = begin(server, name)
    assert patch(server, upload, 0, b"x" * 600).status == 204
    fields = {"Transfer_Encoding": "chunked"} if chunked else {}
    body = b"191\r\n" + b"x" * 401 + b"\r\n0\r\n\r\n" if chunked else b"x" * 401
    assert_problem(patch(server, upload, 600, body, **fields), 413, "too-large")
    assert patch(server, upload, 600, b"x" * 400).status == 204


@pytest.mark.folder("the space of a root's disk")
def test_a_length_that_does_not_fit_on_the_disk_is_507(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(1 << 60)})
    upload = begin(server, name)
    assert_problem(patch(server, upload, 0, b"", Upload_Length=str(1 << 59)), 507, "insufficient-storage")
    assert_unknown(head(server, upload))


def test_a_wrong_checksum_keeps_the_bytes_out(server, name):
    upload = begin(server, name)
    wrong = patch(server, upload, 0, SMALL, Upload_Checksum=checksum("sha1", b"x"), Upload_Length=str(len(SMALL)))
    assert_problem(wrong, 460, "checksum-mismatch")
    assert_known(head(server, upload), len(SMALL))
    assert patch(server, upload, 0, SMALL, Upload_Checksum=checksum("sha1", SMALL)).status == 204


def test_preconditions_and_digest_of_the_creation_hold_at_the_end(server, name):
    upload = begin(server, name, Repr_Digest=digest_field("sha-256", b"other"))
    assert_problem(patch(server, upload, 0, SMALL, Upload_Length=str(len(SMALL))), 422, "digest-mismatch")
    upload = begin(server, name, If_None_Match="*")
    assert patch(server, upload, 0, SMALL, Upload_Length=str(len(SMALL))).status == 204
    assert_problem(post(server, name, None, If_None_Match="*", **LATER), 412, "precondition-failed")


@pytest.mark.parametrize("known_after", [0, 200_000, len(LARGE)], ids=["at once", "midway", "at the end"])
def test_bytes_and_length_survive_a_kill(tmp_path, start_server, name, known_after):
    server = start_server(tmp_path, "--writable")
    upload = begin(server, name)
    at, is_known = 0, False
    while at < len(LARGE):
        end = min(at + (200_000), len(LARGE))
        fields = {} if end < known_after or is_known else {"Upload_Length": str(len(LARGE))}
        is_known = is_known or bool(fields)
        assert patch(server, upload, at, LARGE[at:end], **fields).status == 204
        server.kill()
        server = start_server(tmp_path, "--writable")
        at = end
        shown = head(server, upload)
        assert shown["Upload-Offset"] == str(at)
        assert_known(shown, len(LARGE)) if is_known else assert_unknown(shown)
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE
    again = patch(server, upload, len(LARGE), b"")
    assert again.status == 204 and again["Repr-Digest"] == digest_field("sha-256", LARGE)
    assert all(path == f"{name}.zt" or path in kept_in(tmp_path, upload) for path in files_of(tmp_path))


@pytest.mark.folder("the files of uploads in a root")
def test_a_length_that_a_crash_cut_short_is_not_known(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    texts = ["", "00000", "0" * 20, "x" * 20 + "\n", "\0" * 21, "1" + "0" * 19 + "\n"]
    uploads = [begin(server, f"{name}{number}") for number in range(len(texts))]
    for upload in uploads:
        assert patch(server, upload, 0, SMALL[:100]).status == 204
    server.kill()
    for upload, text in zip(uploads, texts, strict=True):
        (tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "length").write_text(text)
    server = start_server(tmp_path, "--writable")
    for upload in uploads:
        assert_unknown(head(server, upload))
        assert patch(server, upload, 100, SMALL[100:], Upload_Length=str(len(SMALL))).status == 204
    server.kill()
    server = start_server(tmp_path, "--writable")
    for number, upload in enumerate(uploads):
        assert_known(head(server, upload), len(SMALL))
        assert content_of(server, f"{name}{number}") == pattern(1000)
