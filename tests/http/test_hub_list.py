"""Which folders are repositories in the Hub's list, and which only hold some."""

import hashlib

import pytest

from containers import dense, pattern, zt1
from wire import get

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


def fill(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(MODEL if path.endswith(".zt") else b"{}")


def ids(server, query="", **fields):
    return [told["id"] for told in get(server, f"/api/models{query}", **fields).json()]


def test_a_readme_of_the_owner_hides_no_repository(tmp_path, start_server):
    fill(tmp_path, "org/README.md", "org/notes.txt", "org/model/config.json", "org/m2/weights.zt", "other/m3/README.md")
    server = start_server(tmp_path)
    assert ids(server) == ["org/m2", "org/model", "other/m3"]
    assert ids(server, "?author=org") == ["org/m2", "org/model"]
    assert get(server, "/api/models/org/model").json()["id"] == "org/model"


def test_a_folder_with_files_can_be_addressed_although_it_is_not_listed(tmp_path, start_server):
    fill(tmp_path, "org/README.md", "org/model/config.json", "words/README.md")
    server = start_server(tmp_path)
    assert ids(server) == ["org/model"]
    assert get(server, "/api/models/org").json()["id"] == "org"
    assert get(server, "/api/models/words").json()["id"] == "words"


@pytest.mark.parametrize(
    "file",
    ["config.json", "w.zt", "w.GGUF", "w.npz", "w.onnx", "pytorch_model.bin", "w.pt", "m.safetensors", "m.safetensors.index.json"],
)
def test_what_makes_a_folder_a_repository(tmp_path, start_server, file):
    fill(tmp_path, f"single/{file}", "single/README.md", "single/onnx/config.json")
    assert ids(start_server(tmp_path)) == ["single"]


@pytest.mark.parametrize("file", ["README.md", "tokenizer.json", "w.txt", "config.json.bak"])
def test_what_does_not(tmp_path, start_server, file):
    fill(tmp_path, f"org/{file}", "org/model/README.md")
    assert ids(start_server(tmp_path)) == ["org/model"]


def test_a_model_in_a_folder_below_makes_no_owner(tmp_path, start_server):
    """What counts lies in the folder itself; and what is deeper belongs to the repository above it."""
    fill(tmp_path, "org/model/onnx/m.zt", "org/README.md")
    assert ids(start_server(tmp_path)) == ["org/model"]


@pytest.mark.folder("a bucket has no links")
def test_a_cached_repository_without_an_owner(tmp_path, start_server):
    fill(tmp_path, f"models--single/snapshots/{'c' * 40}/README.md", "single/model/README.md")
    (tmp_path / "models--single/refs").mkdir()
    (tmp_path / "models--single/refs/main").write_text("c" * 40)
    assert ids(start_server(tmp_path)) == ["single", "single/model"]


def test_a_model_that_a_client_may_not_see_hides_nothing(tmp_path, start_server):
    fill(tmp_path, "org/secret.zt", "org/model/config.json")
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"a read {hashlib.sha256(b'a').hexdigest()} org/model/*\nb admin {hashlib.sha256(b'b').hexdigest()}\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    assert ids(server, Authorization="Bearer a") == ["org/model"]
    assert ids(server, Authorization="Bearer b") == ["org"]
