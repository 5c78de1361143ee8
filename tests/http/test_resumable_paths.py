"""/v1/resumable: a file of any kind arrives at its path, by the rules of PUT /files/{path}."""

import base64

import pytest

from clients import Client, write_tokens
from containers import pattern
from joined import safetensors
from tus import TUS, create, head, offset_of, patch, post, uploads_of
from uploads import begin_put, digest_field
from wire import ask, assert_problem, eventually, get

DATA = pattern(300_000, seed=51)


def path_metadata(path):
    return "path " + base64.b64encode(path.encode()).decode()


def send(server, path, data, **fields):
    upload = create(server, "", len(data), Upload_Metadata=path_metadata(path), **fields)
    return patch(server, upload, 0, data)


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


@pytest.mark.parametrize("path", ["{}/tokenizer.bin2", "{}/with space.txt", "{}/model.safetensors", "{}/pytorch_model.bin"])
def test_a_file_arrives_at_its_path(server, folder, name, path):
    data = safetensors({"w": pattern(4000)}) if path.endswith(".safetensors") else DATA
    path = path.format(name)
    if path.endswith(".bin"):
        path += ".txt"
    answer = send(server, path, data)
    assert answer.status == 204 and answer["Repr-Digest"] == digest_field("sha-256", data), answer
    assert answer["Location"] == "/files/" + path.replace(" ", "%20")
    assert get(server, answer["Location"]).body == data
    assert uploads_of(server, path) == []


def test_an_empty_file_is_published_when_it_is_created(server, name):
    answer = post(server, "", 0, Upload_Metadata=path_metadata(f"{name}/empty"))
    assert answer.status == 201, answer
    shown = get(server, f"/files/{name}/empty")
    assert (shown.status, shown.body) == (200, b"")


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", ".hidden", "a/.git/x", "a/..", "", "x\ny"])
def test_a_path_that_is_not_served_is_refused(server, path):
    assert_problem(post(server, "", 10, Upload_Metadata=path_metadata(path)), 400, "invalid-name")


def test_a_tensor_file_must_have_the_format_of_its_extension(server, name):
    assert send(server, f"{name}/m.safetensors", DATA).status == 422
    assert send(server, f"{name}/x.json", b"{not json").status == 422
    assert get(server, f"/files/{name}/m.safetensors").status == 404


def test_the_stated_digest_is_compared_before_publication(server, name):
    assert_problem(send(server, f"{name}/x", DATA, Repr_Digest=digest_field("sha-256", DATA + b"x")), 422, "digest-mismatch")
    assert get(server, f"/files/{name}/x").status == 404


def test_preconditions_are_of_the_file(server, name):
    assert send(server, f"{name}/x", DATA, If_None_Match="*").status == 204
    assert post(server, "", 10, Upload_Metadata=path_metadata(f"{name}/x"), If_None_Match="*").status == 412
    assert send(server, f"{name}/x", b"other", If_Match=get(server, f"/files/{name}/x")["ETag"]).status == 204
    assert get(server, f"/files/{name}/x").body == b"other"


def test_a_model_in_the_metadata_takes_precedence(server, name):
    metadata = f"{path_metadata('a/b')},model {base64.b64encode(name.encode()).decode()}"
    upload = create(server, "", 10, Upload_Metadata=metadata)
    assert len(uploads_of(server, name)) == 1
    assert ask(server, "DELETE", upload, TUS).status == 204


def test_a_file_may_be_joined_from_parts(server, name):
    parts = [post(server, "", len(piece), piece, Upload_Concat="partial", Upload_Metadata=None,
                  Content_Type="application/offset+octet-stream")["Location"] for piece in (DATA[:100], DATA[100:])]  # fmt: skip
    fields = {**TUS, "Upload-Concat": "final;" + " ".join(parts), "Upload-Metadata": path_metadata(f"{name}/joined")}
    assert ask(server, "POST", "/v1/resumable", fields, b"").status == 201
    assert get(server, f"/files/{name}/joined").body == DATA


def test_acknowledged_bytes_survive_a_kill(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    upload = create(server, "", len(DATA), Upload_Metadata=path_metadata("sub/of t.bin2"))
    assert patch(server, upload, 0, DATA[:100_000]).status == 204
    server.kill()
    server = start_server(tmp_path, "--writable")
    assert offset_of(server, upload) == 100_000
    assert patch(server, upload, 100_000, DATA[100_000:]).status == 204
    server.kill()
    assert (tmp_path / "sub/of t.bin2").read_bytes() == DATA
    server = start_server(tmp_path, "--writable")
    shown = head(server, upload)
    assert (shown.status, shown["Location"]) == (200, "/files/sub/of%20t.bin2")


def test_a_client_writes_and_sees_only_its_paths(tmp_path, start_server):
    mine, other = Client("mine", "write", "a/*"), Client("other", "write", "b/*")
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", "--tokens", write_tokens(tmp_path / "tokens", mine, other))
    fields = {**TUS, "Upload-Length": "10", "Upload-Metadata": path_metadata("a/x.txt")}
    assert other.ask(server, "POST", "/v1/resumable", fields, b"").status == 403
    created = mine.ask(server, "POST", "/v1/resumable", fields, b"")
    assert created.status == 201
    assert other.ask(server, "HEAD", created["Location"], TUS).status == 404
    assert mine.ask(server, "HEAD", created["Location"], TUS).status == 200


def test_a_client_sees_its_files_in_the_list_of_uploads(tmp_path, start_server):
    mine, other = Client("mine", "admin", "a/tiny"), Client("other", "admin", "a/tiny.txt")
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", "--tokens", write_tokens(tmp_path / "tokens", mine, other))

    def kinds(client):
        uploads = client.get(server, "/v1/uploads").json()["uploads"]
        assert {upload["model"] for upload in uploads} <= {"a/tiny.txt"}
        return sorted(upload["kind"] for upload in uploads)

    fields = {**TUS, "Upload-Length": "10", "Upload-Metadata": path_metadata("a/tiny.txt")}
    assert mine.ask(server, "POST", "/v1/resumable", fields, b"").status == 201
    authorization = f"Authorization: {mine.fields['Authorization']}"
    with begin_put(server, "/files/a/tiny.txt", 1000, authorization):
        eventually(lambda: kinds(mine) == ["file", "resumable"])
        assert kinds(other) == []
