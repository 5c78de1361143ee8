"""A client with globs cannot make files that it may not see parts of its own models."""

import signal

import pytest

from clients import Client, write_tokens
from containers import dense, dense_in_shard, pattern, shard_entry, zt2, zt2_data_shard
from tus import PIECE, TUS, metadata
from wire import assert_problem, component_path, eventually, model_path

SECRET = pattern(3000, seed=101)
OWN = pattern(2000, seed=102)
TEAM = Client("team", "write", "shared-[ab]")
PARTS = Client("parts", "write", "shared-a*")
ADMIN = Client("admin", "admin")
UNKNOWN_DIGEST = "blake3:" + "00" * 32
DETAIL = "shard {}: this client may not use a file of this name"


@pytest.fixture
def tokens(tmp_path):
    return write_tokens(tmp_path / "tokens", TEAM, PARTS, ADMIN)


@pytest.fixture
def server(root, tokens, start_server):
    return start_server(root, "--writable", "--tokens", tokens)


def add(server, path, file):
    """A file of another client."""
    name = path.removesuffix(".zt")
    assert ADMIN.ask(server, "PUT", model_path(name), body=file).status in (201, 204)


def borrowing(file, shard, at, data, **entry):
    """A model whose bytes are those of another file."""
    shards = {shard: {**shard_entry(file), **entry}}
    return zt2({"x": dense_in_shard(shard, at, data, digest=None)}, fields={"shards": shards})


def secret_model():
    file = zt2({"s": dense(SECRET)})
    return file, file.offsets["s", "data"]


def put(server, model, name="shared-a", client=TEAM):
    return client.ask(server, "PUT", model_path(name), body=model)


def assert_refused(answer, shard):
    assert_problem(answer, 403, "forbidden")
    assert answer.json()["detail"] == DETAIL.format(shard)


def publish_resumable(server, model, client, name="shared-a"):
    fields = {**TUS, "Upload-Metadata": metadata(name), "Upload-Length": str(len(model))}
    created = client.ask(server, "POST", "/v1/resumable", fields, b"")
    assert created.status == 201, created
    return client.ask(server, "PATCH", created["Location"], {**PIECE, "Upload-Offset": "0"}, model)


# --- by name ---


def test_the_file_of_a_shard_must_be_within_the_globs(server):
    file, at = secret_model()
    add(server, "shared-a-private.zt", file)
    for entry in ({}, {"digest": UNKNOWN_DIGEST}, {"digest": "sha256:" + "00" * 32}):
        assert_refused(put(server, borrowing(file, "private", at, SECRET, **entry)), "private")
    assert_problem(TEAM.get(server, model_path("shared-a")), 404, "model-not-found")
    for path in (component_path("shared-a", "x"), f"{component_path('shared-a', 'x')}?representation=stored",
                 f"{model_path('shared-a')}/export?format=safetensors"):  # fmt: skip
        answer = TEAM.get(server, path)
        assert answer.status == 404 and SECRET[:64] not in answer.body, answer


def test_a_refusal_says_the_same_of_every_file(server):
    file, at = secret_model()
    add(server, "shared-a-private.zt", file)
    answers = []
    for shard, size in (("private", len(file)), ("private", len(file) + 1), ("missing", len(file))):
        answer = put(server, borrowing(file, shard, at, SECRET, size=size, digest=UNKNOWN_DIGEST))
        assert_refused(answer, shard)
        answers.append(answer.body.decode().replace(shard, "x"))
        assert str(len(file)) not in answers[-1]
    assert len({answer.split('"request_id"')[0] for answer in answers}) == 1, answers


def test_resumable_uploads_are_refused_in_the_same_way(server):
    file, at = secret_model()
    add(server, "shared-a-private.zt", file)
    model = borrowing(file, "private", at, SECRET)
    assert_refused(publish_resumable(server, model, TEAM), "private")
    assert TEAM.get(server, model_path("shared-a")).status == 404
    assert publish_resumable(server, model, PARTS).status == 204
    assert PARTS.get(server, component_path("shared-a", "x")).body == SECRET


def test_files_of_others_are_neither_shown_nor_removed_as_shards(server, root):
    file = zt2_data_shard(SECRET)
    add(server, "shared-a-ds.zt", file)
    assert TEAM.get(server, "/files/shared-a-ds.zt").status == 404
    assert_refused(put(server, borrowing(file, "ds", file.offsets[0], SECRET)), "ds")
    assert TEAM.get(server, "/files/shared-a-ds.zt").status == 404
    # Nor with a model of its own under that name.
    assert put(server, zt2({"x": dense(OWN)})).status == 201
    assert TEAM.get(server, "/files/shared-a-ds.zt").status == 404
    assert TEAM.ask(server, "DELETE", model_path("shared-a")).status == 204
    assert (root / "shared-a-ds.zt").read_bytes() == file


def test_globs_that_cover_the_shards_let_them_be_used(server, root):
    file = zt2_data_shard(SECRET)
    assert put(server, file, "shared-a-ds", PARTS).status == 201
    assert put(server, borrowing(file, "ds", file.offsets[0], SECRET), client=PARTS).status == 201
    assert PARTS.get(server, component_path("shared-a", "x")).body == SECRET
    assert TEAM.get(server, component_path("shared-a", "x")).body == SECRET
    assert_refused(put(server, borrowing(file, "ds", file.offsets[0], SECRET)), "ds")
    assert ADMIN.ask(server, "DELETE", model_path("shared-a")).status == 204
    assert not (root / "shared-a-ds.zt").exists()


# --- by content ---


def write_borrowing(root):
    """A model of the operator whose shard has another name than the model says."""
    file, at = secret_model()
    (root / "vault.zt").write_bytes(file)
    (root / "shared-a.zt").write_bytes(borrowing(file, "elsewhere", at, SECRET))


def test_the_right_digest_finds_no_file_of_another_name(server, root):
    file, at = secret_model()
    add(server, "vault.zt", file)
    assert_refused(put(server, borrowing(file, "elsewhere", at, SECRET)), "elsewhere")
    # Not even if the globs cover the name that the shard should have.
    assert put(server, borrowing(file, "elsewhere", at, SECRET), client=PARTS).status == 201
    answer = PARTS.get(server, component_path("shared-a", "x"))
    assert answer.status == 422 and "elsewhere is missing" in answer.json()["detail"], answer
    assert SECRET[:64] not in answer.body


@pytest.mark.folder("shards that are found by their content")
def test_a_reload_decides_anew_whether_shards_are_found_by_content(root, tokens, start_server):
    write_tokens(tokens, ADMIN)
    write_borrowing(root)
    server = start_server(root, "--tokens", tokens)
    path = component_path("shared-a", "x")
    assert ADMIN.get(server, path).body == SECRET
    for clients, status in (((ADMIN, TEAM), 422), ((ADMIN,), 200), ((ADMIN, TEAM), 422)):
        write_tokens(tokens, *clients)
        server.signal(signal.SIGHUP)
        eventually(lambda: ADMIN.get(server, path).status == status)
        answer = ADMIN.get(server, path)
        assert (answer.body == SECRET) == (status == 200), answer
