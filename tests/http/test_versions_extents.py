"""A file that replaces another one shares extents with it where the file system can: XFS and btrfs."""

import contextlib
import json
import os
import shutil
import struct
import subprocess

import pytest

from containers import pattern
from histories import SETTINGS
from wire import ask, eventually, get

IMAGE_BYTES = 600 << 20
TENSORS = 16
TENSOR_BYTES = 4 << 20
MODEL_BYTES = TENSORS * TENSOR_BYTES
# Tables of the file system, and the blocks at the ends of what is not shared.
SLACK_BYTES = 1 << 20
WAIT_S = float(os.environ.get("ZT_EXTENTS_WAIT_S", "60"))
MODEL = "org/run/model.safetensors"

pytestmark = pytest.mark.folder("extents of files in a folder")


class Disk:
    """A file system in an image."""

    def __init__(self, path):
        self.path = path

    def used(self):
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            # btrfs counts what is freed at the next commit, and syncfs is not in Python.
            subprocess.run(["sync", "-f", self.path], check=True)
            facts = os.fstatvfs(descriptor)
        finally:
            os.close(descriptor)
        return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


@contextlib.contextmanager
def mounted(kind, folder):
    maker = shutil.which(f"mkfs.{kind}", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if maker is None:
        pytest.skip(f"mkfs.{kind} is not installed")
    image, place = folder / "image", folder / "disk"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run([maker, "-q", image], check=True)
    result = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True)
    if result.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {result.stderr.strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(params=["xfs", "btrfs"])
def disk(request, tmp_path):
    with mounted(request.param, tmp_path) as disk:
        yield disk


@pytest.fixture
def server(disk, start_server):
    return start_server(disk.path, "--writable", "--keep-versions", "100", environment=SETTINGS)


def safetensors(tensors, metadata=""):
    header = {"__metadata__": {"note": metadata}}
    at = 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(tensors.values())


def layers(changed=()):
    """Tensors that begin anywhere in a block; those that changed have other bytes everywhere."""
    return {
        f"layer.{number:02}.w": pattern(TENSOR_BYTES - 8, seed=number + (100 if number in changed else 0)) for number in range(TENSORS)
    }


def put(server, content, path=MODEL):
    answer = ask(server, "PUT", f"/files/{path}", {}, content)
    assert answer.status in (201, 204), answer
    return answer["ZT-Commit"]


def identity(path):
    facts = path.stat()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def assert_used(disk, most):
    eventually(lambda: disk.used() <= most, WAIT_S)


def assert_content(server, path, contents):
    """contents: by commit."""
    for commit, content in contents.items():
        answer = get(server, f"/files/{path}?revision={commit}")
        assert (answer.status, answer.body) == (200, content)


def test_a_version_costs_the_tensors_that_changed(disk, server):
    contents = [safetensors(layers()), safetensors(layers({5})), safetensors(layers({5, 9}))]
    commits = {put(server, contents[0]): contents[0]}
    for content in contents[1:]:
        used = disk.used()
        commits[put(server, content)] = content
        before = identity(disk.path / MODEL)
        assert_used(disk, used + TENSOR_BYTES + SLACK_BYTES)
        assert identity(disk.path / MODEL) == before
    assert_content(server, MODEL, commits)


def test_versions_that_follow_each_other_quickly_share_with_the_one_before(disk, server):
    contents = [safetensors(layers(set(range(number)))) for number in range(4)]
    commits = {put(server, contents[0]): contents[0]}
    used = disk.used()
    for content in contents[1:]:
        commits[put(server, content)] = content
    assert_used(disk, used + 3 * (TENSOR_BYTES + SLACK_BYTES))
    assert_content(server, MODEL, commits)


def test_tensors_are_shared_at_other_offsets_if_these_differ_by_whole_blocks(disk, server):
    tensors = layers()
    first = safetensors(tensors)
    # A new tensor and a longer header.
    grown = {"layer.00.a": b"", **tensors}
    shift = 65536
    rest = len(safetensors({**grown, "layer.00.a": bytes(10_000)})) - len(first) - 10_000
    grown["layer.00.a"] = pattern(shift - rest)
    second = safetensors(grown)
    assert len(second) == len(first) + shift
    commits = {put(server, first): first}
    used = disk.used()
    commits[put(server, second)] = second
    assert_used(disk, used + SLACK_BYTES)
    assert_content(server, MODEL, commits)


def test_files_that_are_no_models_are_shared_at_equal_offsets(disk, server):
    first = pattern(32 << 20, seed=1)
    at = (21 << 20) - 1000
    second = first[:at] + b"?" + first[at + 1 :] + b"more"
    path = "org/run/optimizer.bin"
    commits = {put(server, first, path): first}
    used = disk.used()
    commits[put(server, second, path)] = second
    assert_used(disk, used + SLACK_BYTES)
    assert_content(server, path, commits)


def test_a_file_system_that_cannot_share_is_asked_once(tmp_path, start_server):
    if subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True).stdout.strip() in ("xfs", "btrfs"):
        pytest.skip("the file system of the tests can share extents")
    server = start_server(tmp_path, "--writable", "--keep-versions", "100", "--log-level", "debug", environment=SETTINGS)
    contents = [safetensors({"w": pattern(2 << 20), "v": pattern(1 << 20, seed=seed)}) for seed in range(3)]
    commits = {put(server, content): content for content in contents[:2]}
    eventually(lambda: any("do not share extents" in line for line in server.log_lines))
    commits[put(server, contents[2])] = contents[2]
    assert_content(server, MODEL, commits)
    assert sum("do not share extents" in line for line in server.log_lines) == 1
