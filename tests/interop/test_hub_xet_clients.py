"""The Hub's clients in Python send large files by xet, which is their default: unchanged, into a server that forgets what each
upload has sent."""

import os
import signal
import subprocess
import time

import pytest

from clients import Client, write_tokens
from containers import pattern
from environments import python_of
from hub_clients import files_below, uploads_begun
from hub_repositories import text_files, zt_weights

# The older release asks for LFS, and takes it.
XET_RELEASES = ["hub-2.4.0", "hub-1.33.0"]
SETTINGS = {"ZTSERVE_HUB_REGULAR_BYTES": "1000"}
WRITER = Client("writer", "write", "org/*")
MIB = 1 << 20


def partly_compressible(length):
    """Parts that compress well, in both ways that the client has, and some that do not."""
    parts = [os.urandom(MIB), b"some text, again and again\n" * 38_836, b"".join(bytes((i & 255, 7, 9, 63)) for i in range(MIB // 4))]
    made = b"".join(parts[at % 3] + at.to_bytes(4, "little") for at in range(length // MIB + 1))
    return made[:length]


LARGE = os.urandom(70 * MIB) + partly_compressible(30 * MIB)
FILES = {"large.dat": LARGE, "sub/a b+c.dat": pattern(3_000_000, seed=5), "weights.zt": zt_weights(), **text_files()}


@pytest.fixture(params=XET_RELEASES)
def release(request):
    return request.param


@pytest.fixture
def client(new_client, hub):
    return new_client(hub.url)


def requests_of(server, part):
    return [line for line in server.log.splitlines() if "POST" in line and part in line]


def test_a_folder_of_large_and_small_files(client, root, hub, source):
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    assert uploads_begun(hub, "xet") == 1
    # More than one xorb is filled.
    assert len(requests_of(hub, "/v1/xorbs/")) >= 2
    # A second time the client sends it again, and then sees that there is nothing to commit.
    staged = uploads_begun(hub, "staged")
    client.expect_hf("upload", "org/new", source)
    assert uploads_begun(hub, "staged") == staged
    assert files_below(root / "org/new") == FILES


def test_what_the_client_remembers_is_not_missed(client, root, hub, source):
    """The client's cache of what it has sent is kept; the server has forgotten all of it."""
    client.expect_hf("upload", "org/new", source)
    changed = LARGE[: 40 * MIB] + b"something else" + LARGE[40 * MIB + 3 :]
    (source / "large.dat").write_bytes(changed)
    client.expect_hf("upload", "org/new", source)
    client.expect_hf("upload", "org/other", source)
    for repo in ("org/new", "org/other"):
        assert (root / repo / "large.dat").read_bytes() == changed


@pytest.mark.parametrize("restarts", [False, True])
def test_an_upload_that_was_interrupted_is_repeated(client, root, hub, source, start_server, restarts):
    """The client is killed after the first xorb, and keeps its cache; a server that was started again has nothing."""
    command = [python_of(client.release).parent / "hf", "upload", "org/new", str(source)]
    process = subprocess.Popen(
        command, env=client.environment, cwd=client.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not requests_of(hub, "/v1/xorbs/") and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert files_below(root / "org/new") == {}
    if restarts:
        hub.kill()
        client.environment["HF_ENDPOINT"] = start_server(root, "--writable", "--shared", environment=SETTINGS).url
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES


def test_two_uploads_at_once_share_a_cache(client, root, hub, source):
    command = [python_of(client.release).parent / "hf", "upload"]
    running = [
        subprocess.Popen([*command, f"org/{name}", str(source)], env=client.environment, cwd=client.home, stdout=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for process in running:
        process.communicate(timeout=240)
        assert process.returncode == 0
    for name in ("one", "two"):
        assert files_below(root / "org" / name) == FILES
    assert uploads_begun(hub, "xet") == 2


def test_with_tokens(client, root, source, tmp_path, start_server):
    tokens = write_tokens(tmp_path / "tokens", WRITER)
    guarded = start_server(root, "--writable", "--shared", "--tokens", tokens, environment=SETTINGS)
    client.environment |= {"HF_ENDPOINT": guarded.url, "HF_TOKEN": WRITER.token}
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    client.environment["HF_TOKEN"] = "hf_nobody"
    client.refused_hf("upload", "org/other", source)
    assert not (root / "org/other").exists()


def test_without_xet_nothing_goes_that_way(client, root, hub, source):
    client.environment["HF_HUB_DISABLE_XET"] = "1"
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
    assert uploads_begun(hub, "xet") == 0


def test_a_server_without_xet_ends_the_upload(client, root, source, start_server):
    off = start_server(root, "--writable", "--shared", environment={**SETTINGS, "ZTSERVE_HUB_XET": "false"})
    client.environment["HF_ENDPOINT"] = off.url
    said = client.refused_hf("upload", "org/new", source)
    # The library that asks reads the status only.
    assert "501" in said and "xet-write-token" in said
    assert files_below(root / "org/new") == {}
    client.environment["HF_HUB_DISABLE_XET"] = "1"
    client.expect_hf("upload", "org/new", source)
    assert files_below(root / "org/new") == FILES
