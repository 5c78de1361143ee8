"""/v1/resumable: an offset that was reported is still there after SIGKILL, and nothing is visible before it is complete."""

import pytest

from containers import dense, pattern, zt1
from tus import begin_patch, create, head, kept_in, offset_of, patch, uploads_of
from uploads import SMALL, content_of, digest_field, files_of
from wire import eventually, get, model_path

LARGE = zt1({"w": dense(pattern(6 << 20))})


def test_acknowledged_bytes_survive_a_kill(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE), If_None_Match="*")
    at = 0
    while at < len(LARGE):
        end = min(at + (2 << 20), len(LARGE))
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


@pytest.mark.folder("the files of uploads in a root")
def test_the_outcome_of_a_finished_upload_is_forgotten_after_ten_minutes(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    server.kill()
    state = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "state"
    first, end = state.read_text().splitlines()
    when, digest = end.split()
    state.write_text(f"{first}\n{int(when) - 585:020} {digest}\n")
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == len(SMALL)
    eventually(lambda: head(server, upload).status == 404)
    eventually(lambda: files_of(tmp_path) == [f"{name}.zt"])


@pytest.mark.folder("the files of uploads in a root")
@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_an_outcome_that_a_kill_cut_short_is_not_reported(tmp_path, start_server, name, cut):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL).status == 204
    server.kill()
    state = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "state"
    first, end = state.read_text().splitlines()
    state.write_text(f"{first}\n" + (end + "\n")[:cut])
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404
    assert files_of(tmp_path) == [f"{name}.zt"]


def test_the_received_part_of_a_piece_survives_a_kill(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(LARGE))
    with begin_patch(server, upload, 0, len(LARGE)) as connection:
        connection.sendall(LARGE[: 3 << 20])
        eventually(lambda: uploads_of(server, name)[0]["received"] == 3 << 20)
        server.kill()
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 3 << 20
    assert patch(server, upload, 3 << 20, LARGE[3 << 20 :]).status == 204
    assert (tmp_path / f"{name}.zt").read_bytes() == LARGE


@pytest.mark.folder("the files of uploads in a root")
def test_after_another_boot_only_what_was_acknowledged_counts(tmp_path, start_server, name):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, len(SMALL))
    assert patch(server, upload, 0, SMALL[:100]).status == 204
    server.kill()
    place = tmp_path / ".ztserve-uploads" / upload.split("/")[-1]
    with (place / "data").open("ab") as data:
        data.write(b"never acknowledged")
    state = (place / "state").read_text()
    (place / "state").write_text(state[:21] + "00000000-0000-0000-0000-000000000000\n")
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 100
    assert (place / "data").read_bytes() == SMALL[:100]
    assert patch(server, upload, 100, SMALL[100:]).status == 204
    assert content_of(server, name) == pattern(1000)


@pytest.mark.folder("the files of uploads in a root")
@pytest.mark.parametrize("broken", ["data", "state", "resumable"])
def test_an_upload_that_cannot_be_finished_is_removed_at_start(tmp_path, start_server, name, broken):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, 1000)
    server.kill()
    place = tmp_path / ".ztserve-uploads" / upload.split("/")[-1]
    (place / broken).unlink()
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404
    assert not place.exists()


@pytest.mark.folder("the files of uploads in a root")
@pytest.mark.parametrize("cut", [0, 1, 19, 40, -1])
def test_an_upload_with_a_truncated_description_is_removed_at_start(tmp_path, start_server, name, cut):
    server = start_server(tmp_path, "--writable")
    upload = create(server, name, 1000)
    server.kill()
    facts = tmp_path / ".ztserve-uploads" / upload.split("/")[-1] / "resumable"
    text = facts.read_bytes()
    facts.write_bytes(text[:cut] if cut >= 0 else text[:-2])
    server = start_server(tmp_path, "--writable")
    assert head(server, upload).status == 404


@pytest.mark.folder("the files of uploads in a root")
def test_a_second_server_takes_uploads_over_only_when_the_first_has_ended(tmp_path, start_server, name):
    first = start_server(tmp_path, "--writable")
    upload = create(first, name, len(SMALL))
    second = start_server(tmp_path, "--writable")
    assert head(second, upload).status == 404
    assert patch(first, upload, 0, SMALL[:100]).status == 204
    first.kill()
    assert offset_of(second, upload) == 100
    assert patch(second, upload, 100, SMALL[100:]).status == 204
    assert content_of(second, name) == pattern(1000)
