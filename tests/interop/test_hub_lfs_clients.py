"""The Hub's clients send large files before the commit, by Git LFS: unchanged, and only what is not there yet."""

import pytest

from clients import Client, write_tokens
from containers import pattern
from hub_clients import OLDEST, RELEASES, files_below, uploads_begun
from hub_javascript import JavaScriptClient, install
from hub_repositories import text_files, write_files, zt_weights

LARGE = pattern(3_000_000, seed=3)
FILES = {"sub/a b+c.bin.dat": LARGE, "other.dat": pattern(2_000_000, seed=4), "weights.zt": zt_weights(), **text_files()}
# Nearly everything goes by LFS.
SETTINGS = {"ZTSERVE_HUB_REGULAR_BYTES": "1000"}
IN_PARTS = {"ZTSERVE_HUB_PART_BYTES": "300000"}
WRITER = Client("writer", "write", "org/*")
# The only form that some clients accept.
WRITER.token = "hf_" + WRITER.token[:40]


@pytest.fixture
def client(new_client, hub):
    return new_client(hub.url, HF_HUB_DISABLE_XET="1")


def leftovers(root):
    kept = root / ".ztserve-uploads"
    return list(kept.iterdir()) if kept.exists() else []


def test_a_folder(client, root, hub, source, new_client):
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    count = uploads_begun(hub, "staged")
    assert count >= 2 and leftovers(root) == []
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    assert uploads_begun(hub, "staged") == count
    assert files_below(new_client(hub.url).call("snapshot", "org/new")).items() >= FILES.items()


def test_what_another_file_has_is_not_sent(client, root, hub, source):
    client.call("create", "org/new")
    client.call("upload_file", "org/new", str(source / "other.dat"), "one")
    client.call("upload_file", "org/new", str(source / "other.dat"), "sub/two")
    assert uploads_begun(hub, "staged") == 1
    assert files_below(root / "org/new") == {"one": FILES["other.dat"], "sub/two": FILES["other.dat"]}


def test_replacing_and_deleting(client, root, source):
    client.call("create", "org/new")
    client.call("upload_folder", "org/new", str(source))
    client.call("upload_file", "org/new", str(source / "other.dat"), "sub/a b+c.bin.dat")
    assert files_below(root / "org/new") == {**FILES, "sub/a b+c.bin.dat": FILES["other.dat"]}
    client.call("delete_file", "org/new", "other.dat")
    client.call("delete_folder", "org/new", "sub")
    left = {name: content for name, content in FILES.items() if name != "other.dat" and not name.startswith("sub/")}
    assert files_below(root / "org/new") == left


@pytest.mark.parametrize("size", [0, 2_000_000])
def test_copying(client, root, hub, size):
    write_files(root / "org/new", {"one.dat": FILES["other.dat"][:size]})
    client.call("copy", "org/new", "one.dat", "sub/two.dat")
    client.call("copy_path", "org/new/sub/two.dat", "org/new/three.dat")
    assert files_below(root / "org/new") == dict.fromkeys(["one.dat", "sub/two.dat", "three.dat"], FILES["other.dat"][:size])
    assert uploads_begun(hub, "staged") == 0


def test_with_a_token(root, source, tmp_path, start_server, new_client):
    server = start_server(root, "--writable", "--tokens", write_tokens(tmp_path / "tokens", WRITER), environment=SETTINGS)
    client = new_client(server.url, token=WRITER.token, HF_HUB_DISABLE_XET="1")
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES


# The oldest release sends parts side by side with its own program.
@pytest.mark.parametrize(
    "release, environment",
    [*((release, {}) for release in RELEASES), (OLDEST, {"HF_HUB_ENABLE_HF_TRANSFER": "1"})],
    indirect=["release"],
)
def test_in_parts(root, source, start_server, new_client, environment):
    server = start_server(root, "--writable", environment={**SETTINGS, **IN_PARTS})
    client = new_client(server.url, HF_HUB_DISABLE_XET="1", **environment)
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    assert uploads_begun(server, "file") >= 10 + 7
    assert leftovers(root) == []


@pytest.fixture
def package():
    folder = install()
    if folder is None:
        pytest.skip("no Node.js 18 with npm, or the package is not to be had")
    return folder


@pytest.mark.parametrize("settings", [SETTINGS, {**SETTINGS, **IN_PARTS}], ids=["whole", "in parts"])
@pytest.mark.parametrize("is_known", [False, True], ids=["without a token", "with a token"])
def test_javascript(package, root, tmp_path, start_server, is_known, settings):
    arguments = ["--tokens", write_tokens(tmp_path / "tokens", WRITER)] if is_known else []
    server = start_server(root, "--writable", *arguments, environment=settings)
    javascript = JavaScriptClient(package, server.url, WRITER.token if is_known else None)
    javascript.call("create", "org/new")
    first = javascript.call("upload", "org/new", "a/b.bin", 5 << 20)
    assert (root / "org/new/a/b.bin").read_bytes() == b"0123456789abcdef" * (5 << 16)
    again = javascript.call("upload", "org/new", "a/b.bin", 5 << 20)
    assert first == again and leftovers(root) == []


@pytest.mark.parametrize("size", [100, 5000], ids=["with the commit", "before it"])
def test_javascript_sends_files_of_git(package, root, start_server, size):
    (root / "org/new").mkdir(parents=True)
    server = start_server(root, "--writable", environment=SETTINGS)
    javascript = JavaScriptClient(package, server.url, None)
    javascript.call("uploadSeveral", "org/new", [".gitattributes", "sub/.gitignore", "f"], size)
    assert files_below(root / "org/new") == {"f": (b"0123456789abcdef" * 313)[:size]}
