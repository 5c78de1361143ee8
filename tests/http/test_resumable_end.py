"""/v1/resumable: checksums of pieces, and how an upload ends: published, refused, cancelled, expired."""


import pytest
from tusclient.client import TusClient

from containers import dense, pattern, zt1
from tus import TUS, checksum, create, head, kept_in, offset_of, patch, post, uploads_of
from uploads import OTHER, SMALL, content_of, digest_field, files_of, put
from wire import ask, assert_problem, eventually, get, model_path

LARGE = zt1({"w": dense(pattern(1 << 20))})
LIMIT = 64 << 20


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(LIMIT)})


def test_an_empty_piece_with_a_checksum_after_the_end_changes_nothing(server, name):
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    again = patch(server, upload, len(SMALL), b"", Upload_Checksum=checksum("sha256", b""))
    assert again.status == 204 and again["Upload-Offset"] == str(len(SMALL))
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_piece_is_accepted_with_a_right_checksum_and_discarded_with_a_wrong_one(server, name, algorithm):
    upload = create(server, name, len(SMALL))
    half = len(SMALL) // 2
    wrong = patch(server, upload, 0, b"x" * half, Upload_Checksum=checksum(algorithm, SMALL[:half]))
    assert_problem(wrong, 460, "checksum-mismatch")
    assert offset_of(server, upload) == 0
    assert patch(server, upload, 0, SMALL[:half], Upload_Checksum=checksum(algorithm, SMALL[:half])).status == 204
    assert patch(server, upload, half, SMALL[half:], Upload_Checksum=checksum(algorithm, SMALL[half:])).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.parametrize(
    "file, fields, code",
    [
        (b"x" * 1000, {}, "invalid-model"),
        (bytes(zt1({"w": dense(b"1234", digest="sha256:" + "0" * 64)})), {}, "digest-mismatch"),
        (SMALL, {"Repr_Digest": digest_field("sha-512", OTHER)}, "digest-mismatch"),
    ],
    ids=["no model", "another digest in the file", "another digest at creation"],
)
def test_a_file_that_can_never_be_published_is_422_and_removed(server, folder, name, file, fields, code):
    upload = create(server, name, len(file), **fields)
    assert_problem(patch(server, upload, 0, file), 422, code)
    assert head(server, upload).status == get(server, model_path(name)).status == 404
    assert kept_in(folder, upload) == [] and uploads_of(server, name) == []


def test_an_empty_file_is_422_when_created(server, name):
    assert_problem(post(server, name, 0), 422, "invalid-model")
    eventually(lambda: uploads_of(server, name) == [])


def test_preconditions_of_the_creation_hold_at_the_end(server, name):
    upload = create(server, name, len(SMALL), If_None_Match="*")
    assert patch(server, upload, 0, SMALL[:100]).status == 204
    etag = put(server, name, OTHER)["ETag"]
    assert_problem(patch(server, upload, 100, SMALL[100:]), 412, "precondition-failed")
    assert content_of(server, name) == pattern(1000, seed=2)
    assert_problem(post(server, name, 10, If_None_Match="*"), 412, "precondition-failed")
    upload = create(server, name, len(SMALL), If_Match=etag, Repr_Digest=digest_field("sha-512", SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    assert content_of(server, name) == pattern(1000)


def test_a_cancelled_upload_leaves_nothing(server, folder, name):
    upload = create(server, name, 1000)
    assert patch(server, upload, 0, b"x" * 100).status == 204
    for path in kept_in(folder, upload):
        assert get(server, f"/files/{path}").status == 404
    answer = ask(server, "DELETE", upload, TUS)
    assert answer.status == 204 and answer["Tus-Resumable"] == "1.0.0"
    assert head(server, upload).status == 404
    assert kept_in(folder, upload) == [] and uploads_of(server, name) == []


def test_idle_upload_expires(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_EXPIRE_S": "1"})
    upload = create(server, name, 1000)
    eventually(lambda: uploads_of(server, name) == [])
    assert head(server, upload).status == 404
    eventually(lambda: files_of(tmp_path) == [])


def test_a_client_can_have_no_more_uploads_than_its_limit(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"})
    first, _ = create(server, name, 10), create(server, name, 10)
    answer = post(server, name, 10)
    assert_problem(answer, 429, "rate-limited")
    assert int(answer["Retry-After"]) > 0
    assert ask(server, "DELETE", first, TUS).status == 204
    create(server, name, 10)


# --- a foreign client ---


def test_tuspy_uploads_and_resumes(server, folder, tmp_path, name):
    (tmp_path / "m.zt").write_bytes(LARGE)
    client = TusClient(f"{server.url}/v1/resumable")
    uploader = client.uploader(str(tmp_path / "m.zt"), chunk_size=1 << 18, metadata={"model": name})
    uploader.upload(stop_at=3 << 18)
    assert uploader.offset == 3 << 18
    again = client.uploader(str(tmp_path / "m.zt"), chunk_size=1 << 17, url=uploader.url, upload_checksum=True)
    assert again.offset == 3 << 18
    again.upload()
    server.look_at_bucket()
    assert (folder / f"{name}.zt").read_bytes() == LARGE
