"""Commands that take URLs find a server that lies below a path (base_path), and ask nothing beside it."""

import json
import re

import joined
import pytest
from containers import dense, pattern, zt1

BASE = "/some/models"
MODEL = zt1({"w": dense(pattern(3000, seed=31), digest="sha256")})
SPLIT = joined.files_with_index("org/j", [pattern(400, seed=32), pattern(300, seed=33)])


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    for path, content in {"org/m.zt": MODEL, **SPLIT}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


@pytest.fixture
def url(start_server, root, tmp_path):
    """Where only what lies below BASE is answered, as behind a proxy."""
    settings = tmp_path / "c.json"
    settings.write_text(json.dumps({"base_path": BASE}))
    server = start_server(root, "--writable", "--config", str(settings), "--log-format", "json")
    yield server.url + BASE
    server.stop()
    paths = re.findall(r'"path":"([^"]+)"', server.log)
    assert len(paths) > 0 and [path for path in paths if not path.startswith(BASE + "/")] == []


@pytest.fixture
def pulled(ztserve, here):
    def run(url, *arguments):
        result = ztserve("pull", url, *arguments, folder=here)
        assert (result.status, result.errors) == (0, "")
        return {path.name: path.read_bytes() for path in here.iterdir()}

    return run


@pytest.mark.parametrize("path", ["/v1/models/org%2Fm", "/v1/models/org/m", "/files/org/m.zt", "/v1/models/org/m/export?format=zt2"])
def test_a_model_is_pulled(url, pulled, path):
    [(name, content)] = pulled(url + path).items()
    assert name == "export" or (name, content) == ("m.zt", MODEL)


def test_what_is_selected_is_pulled(url, pulled):
    assert list(pulled(url + "/v1/models/org/m", "--format", "npz")) == ["m.npz"]


def test_a_model_in_several_files_is_pulled_whole(url, pulled):
    assert pulled(url + "/v1/models/org/j") == {path.removeprefix("org/"): content for path, content in SPLIT.items()}


@pytest.mark.parametrize("command", ["ls", "verify", "stats"])
def test_commands_that_read_find_the_model(url, ztserve, root, command):
    result = ztserve(command, url + "/v1/models/org/m")
    assert (result.status, result.errors) == (0, "")
    assert result.output.splitlines()[1:] == ztserve(command, root / "org/m.zt").output.splitlines()[1:]


@pytest.mark.parametrize("path, stored", [("/v1/models/org/new", "org/new.zt"), ("/v1/models/team/", "team/up.zt")])
def test_push_goes_there(url, ztserve, root, tmp_path, path, stored):
    (tmp_path / "up.zt").write_bytes(MODEL)
    for words in ("is the model", "already exists as"):
        result = ztserve("push", tmp_path / "up.zt", url + path)
        assert (result.status, result.errors) == (0, "") and words in result.output
    assert (root / stored).read_bytes() == MODEL


def test_other_servers_may_have_such_a_path_to_a_file(url, pulled, root):
    (root / "v1/models").mkdir(parents=True)
    (root / "v1/models/f.zt").write_bytes(MODEL)
    assert pulled(url + "/files/v1/models/f.zt") == {"f.zt": MODEL}


def test_the_models_are_listed(url, ztserve):
    for path in ("/", "/v1/models", "/v1/models/org/"):
        result = ztserve("ls", "-q", url + path)
        assert (result.status, result.errors, result.lines) == (0, "", ["org/j", "org/m"]), path


@pytest.mark.parametrize("path", ["/v1/models/org", "/v1/models/org/", "/files/org/"])
def test_a_repository_is_pulled(url, ztserve, here, path):
    result = ztserve("pull", url + path, folder=here)
    assert (result.status, result.errors) == (0, "")
    wanted = {"m.zt": MODEL, **{name.removeprefix("org/"): content for name, content in SPLIT.items()}}
    assert {file.name: file.read_bytes() for file in (here / "org").iterdir()} == wanted


def test_any_file_is_pulled(url, root, pulled):
    (root / "org/config.json").write_bytes(b"{}")
    assert pulled(url + "/files/org/config.json") == {"config.json": b"{}"}


@pytest.mark.parametrize("path", ["/v1/models/new/tiny", "/files/new/tiny"])
def test_a_repository_is_pushed(url, root, push, tmp_path, path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/config.json").write_bytes(b"{}")
    result = push(tmp_path / "tiny", url + path)
    assert (result.status, result.errors) == (0, "")
    assert (root / "new/tiny/config.json").read_bytes() == b"{}"
