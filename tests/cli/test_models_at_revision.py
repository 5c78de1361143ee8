"""URLs that name a model at a revision, for every command that reads models."""

import json

import pytest

from containers import pattern
from joined import files_of_split
from kept import KEEPS, model, publish, set_revision
from repositories import wait_for_model
from wire import ask

NAME = "org/model/weights"


@pytest.fixture(scope="module")
def server(folder, share_server):
    server = share_server(folder, "--writable", environment=KEEPS)
    for name in (NAME, "tiny"):
        first, second = (publish(server, name, seed) for seed in (1, 2))
        assert set_revision(server, name, "v1", first).status == 201
        assert set_revision(server, name, "feature/x", second, "branch").status == 201
    return server


@pytest.fixture(params=["/v1/models/org%2Fmodel%2Fweights", "/v1/models/org/model/weights", "/org/model/weights", "/tiny"])
def url(request, server):
    return server.url + request.param


@pytest.mark.parametrize("revision, seed", [("v1", 1), ("feature%2Fx", 2), ("feature/x", 2), ("main", 2)])
def test_pull_brings_the_revision(ztserve, tmp_path, url, revision, seed):
    result = ztserve("pull", f"{url}@{revision}", "-o", tmp_path / "m.zt")
    assert result.status == 0, result.errors
    assert (tmp_path / "m.zt").read_bytes() == model(seed)


def test_pulled_file_has_the_name_of_the_model(ztserve, tmp_path, server):
    result = ztserve("pull", f"{server.url}/{NAME}@v1", folder=tmp_path)
    assert result.status == 0, result.errors
    assert (tmp_path / "weights.zt").read_bytes() == model(1)


def test_export_of_a_revision_is_pulled(ztserve, tmp_path, url):
    result = ztserve("pull", f"{url}@v1", "--format", "safetensors", "-o", tmp_path / "m.safetensors")
    assert result.status == 0, result.errors
    assert ztserve("diff", tmp_path / "m.safetensors", f"{url}@v1").status == 0


def test_revisions_are_compared(ztserve, url):
    assert ztserve("diff", f"{url}@v1", f"{url}@v1").status == 0
    found = ztserve("diff", "--json", f"{url}@v1", f"{url}@feature%2Fx")
    assert found.status == 1
    assert json.loads(found.output)["tensors"]["w"]["change"] == "changed"
    assert ztserve("diff", f"{url}@feature%2Fx", url).status == 0


@pytest.mark.parametrize("command", ["ls", "stats", "verify"])
def test_revision_is_read(ztserve, url, command):
    old, new = (ztserve(command, f"{url}{revision}") for revision in ("@v1", ""))
    assert (old.status, new.status) == (0, 0), old.errors
    if command == "stats":
        assert old.output != new.output


def test_all_parts_of_a_revision_are_pulled(ztserve, tmp_path, server):
    old, new = (files_of_split("split/m", [pattern(64, seed=seed), pattern(64, seed=seed + 1)]) for seed in (1, 5))
    for files in (old, new):
        for path, content in files.items():
            assert ask(server, "PUT", f"/files/{path}", body=content).status in (201, 204)
        set_revision(server, "split/m", "v1", "main", fields={"If-None-Match": "*"})
    result = ztserve("pull", f"{server.url}/split/m@v1", folder=tmp_path)
    assert result.status == 0, result.errors
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.gguf")} == {path.rpartition("/")[2]: old[path] for path in old}
    assert ztserve("diff", f"{server.url}/split/m@v1", f"{server.url}/split/m").status == 1


def test_unknown_revision_is_named(ztserve, url):
    result = ztserve("ls", f"{url}@v9")
    assert result.status == 1
    assert "no branch, tag or kept commit named v9" in result.errors


def test_escaped_at_sign_belongs_to_the_name(ztserve, server, folder):
    (folder / "me@home.zt").write_bytes(model(3))
    wait_for_model(f"{server.url}/v1/models/me%40home")
    assert ztserve("ls", f"{server.url}/v1/models/me%40home").status == 0
    assert ztserve("ls", f"{server.url}/me@home").status == 1
