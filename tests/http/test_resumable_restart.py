"""/v1/resumable: an offset that was reported is still there after SIGKILL, and nothing is visible before it is complete."""

import pytest

from containers import dense, pattern, zt1
from tus import begin_patch, create, head, kept_in, offset_of, patch, uploads_of
from uploads import SMALL, content_of, digest_field, files_of
from wire import eventually, get, model_path

LARGE = zt1({"w": dense(pattern(600_000))})


def test_acknowledged_bytes_survive_a_kill(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE), If_None_Match="*")
    at = 0
    while at < len(LARGE):
        end = min(at + (200_000), len(LARGE))
        assert patch(server, upload, at, LARGE[at:end]).status == 204
        server.kill()
        server = start_server(tmp_path, "--writable")
        at = end
        if at < len(LARGE):
            assert offset_of(server, upload) == at
            assert [one["model"] for one in uploads_of(server, name)] == [name]
    assert get(server, "/v1/uploads").json()["uploads"] == []
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE
    shown = head(server, upload)
    assert shown.status == 200 and shown["Upload-Offset"] == shown["Upload-Length"] == str(len(LARGE))
    assert shown["Location"] == model_path(name) and not shown["Upload-Expires"]
    again = patch(server, upload, len(LARGE), b"")
    assert again.status == 204 and again["Repr-Digest"] == digest_field("sha-256", LARGE)
    assert all(path == f"{name}.zt" or path in kept_in(tmp_path, upload) for path in files_of(tmp_path))


def place_of(folder, upload):
    return folder / ".ztserve-uploads" / upload.split("/")[-1]


@pytest.mark.folder("the files of uploads in a root")
def test_an_outcome_is_forgotten_after_ten_minutes_and_not_believed_if_a_kill_cut_it_short(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    ages_or_cuts = [500, 601, 0, 1, 30, -1]
    uploads = [create(server, f"{name}{number}", len(SMALL)) for number in range(len(ages_or_cuts))]
    for upload in uploads:
        assert patch(server, upload, 0, SMALL).status == 204
    server.kill()
    for upload, what in zip(uploads, ages_or_cuts, strict=True):
        state = place_of(tmp_path, upload) / "state"
        first, end = state.read_text().splitlines()
        when, digest = end.split()
        end = f"{int(when) - what:020} {digest}\n" if what >= 500 else (end + "\n")[:what]
        state.write_text(f"{first}\n{end}")
    server = start_server(tmp_path, "--writable")
    assert head(server, uploads[0]).status == 200
    eventually(lambda: [head(server, upload).status for upload in uploads[1:]] == [404] * 5)
    eventually(lambda: not any(place_of(tmp_path, upload).exists() for upload in uploads[1:]))
    assert len(list(tmp_path.glob("*.zt"))) == len(uploads)


@pytest.mark.folder("the files of uploads in a root")
def test_an_upload_that_cannot_be_finished_is_removed_at_start(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    damage = ["data", "state", "resumable", 0, 1, 19, 40, -2]
    uploads = [create(server, f"{name}{number}", 1000) for number in range(len(damage))]
    server.kill()
    for upload, what in zip(uploads, damage, strict=True):
        description = place_of(tmp_path, upload) / "resumable"
        if isinstance(what, str):
            description.with_name(what).unlink()
        else:
            description.write_bytes(description.read_bytes()[:what])
    server = start_server(tmp_path, "--writable")
    assert {what: head(server, upload).status for upload, what in zip(uploads, damage)} == dict.fromkeys(damage, 404)
    eventually(lambda: not any(place_of(tmp_path, upload).exists() for upload in uploads))


def test_the_received_part_of_a_piece_survives_a_kill(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE))
    with begin_patch(server, upload, 0, len(LARGE)) as connection:
        connection.sendall(LARGE[: 300_000])
        eventually(lambda: uploads_of(server, name)[0]["received"] == 300_000)
        server.kill()
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 300_000
    assert patch(server, upload, 300_000, LARGE[300_000 :]).status == 204
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE


@pytest.mark.folder("the files of uploads in a root")
def test_a_second_server_takes_uploads_over_only_when_the_first_has_ended(tmp_path, start_server, name):
    first = start_server(tmp_path, "--writable", "--shared")
    upload = create(first, name, len(SMALL))
    second = start_server(tmp_path, "--writable", "--shared")
    answer = head(second, upload)
    assert answer.status == 423 and answer["Retry-After"] == "1"
    assert patch(first, upload, 0, SMALL[:100]).status == 204
    first.kill()
    assert offset_of(second, upload) == 100
    assert patch(second, upload, 100, SMALL[100:]).status == 204
    assert content_of(second, name) == pattern(1000)
