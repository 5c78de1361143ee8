"""A folder with config, tokenizer and weights goes to a server with the same bytes, whatever breaks on the way."""

import base64
import contextlib
import errno
import json
import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import meddler as meddling
import pytest
from recorded_calls import FAULTS
from relay import Relay
from repositories import INCOMPLETE, INDEX, LIMIT_S, LONE, PARTS, REPOSITORY, UNFINISHED, Counter, begin, read, write
from server_process import held_port


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "tiny", REPOSITORY)


def test_a_folder_becomes_a_repository_of_the_same_bytes(server, root, push, folder):
    result = push(folder, server.url + "/acme/tiny")
    assert (result.status, result.errors) == (0, "")
    assert read(root / "acme/tiny") == REPOSITORY
    assert [line.split(": ")[0] for line in result.lines[-1:]] == [str(folder / "model.safetensors.index.json")]


@pytest.mark.parametrize("path", ["/acme/", "/v1/models/acme/tiny", "/files/acme/tiny"])
def test_each_form_of_a_repositorys_url_names_it(server, root, push, folder, path):
    assert push(f"{folder}/", server.url + path).status == 0
    assert read(root / "acme/tiny") == REPOSITORY


def test_hidden_files_are_not_sent_and_links_to_files_are(server, root, push, folder, tmp_path):
    write(folder, {".gitattributes": b"x", ".git/HEAD": b"x", "sub/.cache/y": b"x"})
    outside = write(tmp_path / "outside", {"blob": b"of a cache", "deep/file": b"not sent"})
    (folder / "linked.txt").symlink_to(outside / "blob")
    (folder / "folder").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    result = push(folder, server.url + "/acme/tiny")
    assert (result.status, result.errors) == (0, "")
    assert result.lines[-1] == "5 hidden or special files or folders in the folder were not sent"
    assert read(root / "acme/tiny") == {**REPOSITORY, "linked.txt": b"of a cache"}


@pytest.mark.parametrize("below", ["", "original/"])
def test_an_incomplete_sharded_model_is_not_pushed(server, root, push, tmp_path, below):
    folder = write(tmp_path / "tiny", {below + name: data for name, data in INCOMPLETE.items()})
    result = push(folder, server.url + "/acme/tiny")
    assert (result.status, result.output) == (1, "")
    assert result.errors == f"ztserve: {folder}/{below}{INDEX}: part {PARTS[1]} is missing\n"
    assert not (root / "acme").exists()


def test_an_index_without_any_of_its_parts_is_incomplete_unless_the_folder_has_another_model(server, root, push, tmp_path):
    """Tools that download one format fetch the indexes of the others too."""
    alone = {name: data for name, data in INCOMPLETE.items() if name != PARTS[0]}
    assert push(write(tmp_path / "alone", alone), server.url + "/acme/").status == 1
    assert not (root / "acme").exists()
    assert push(write(tmp_path / "both", {**alone, "model.zt": REPOSITORY["adapter.zt"]}), server.url + "/acme/").status == 0


def test_unfinished_downloads_are_not_sent(server, root, push, tmp_path):
    files = {"weights.bin": b"w" * 5000, "original/params.json": b"{}", "README.md": b"# tiny", **LONE}
    result = push(write(tmp_path / "tiny", {**files, **UNFINISHED}), server.url + "/acme/tiny")
    assert (result.status, result.errors) == (0, "")
    assert read(root / "acme/tiny") == files
    assert result.lines[-1] == "3 unfinished files (.part, .part.json) in the folder were not sent"


def test_a_model_is_sent_after_the_files_beside_it(server, push, tmp_path):
    """Also if several are sent at a time."""
    folder = write(tmp_path / "tiny", {"config.json": b"{}", "model.zt": REPOSITORY["adapter.zt"]})
    between = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    is_model_begun = threading.Event()

    def name_of(request):
        return base64.b64decode(request.fields.get("upload-metadata", "").removeprefix("path ")).decode()

    def refuse(request, handler):
        is_model_begun.wait(0.2)
        return meddling.reply(403)(request, handler)

    between.meddle(refuse, when=lambda request: name_of(request) == "acme/tiny/config.json")
    between.meddle(
        lambda request, handler: is_model_begun.set() or handler.forward(request), when=lambda request: name_of(request) == "acme/tiny/model.zt"
    )
    result = push(folder, between.endpoint + "/acme/tiny", "--jobs", "2")
    between.close()
    assert result.status == 1 and "config.json" in result.errors
    assert not is_model_begun.is_set()


def test_what_the_server_has_is_not_sent_again(server, push, folder):
    assert push(folder, server.url + "/acme/tiny").status == 0
    (folder / "config.json").write_bytes(b'{"model_type": "other"}')
    counter = Counter(server.port)
    result = push(folder, counter.url + "/acme/tiny")
    counter.close()
    assert result.status == 0
    assert [line for line in result.lines if "already exists" not in line] == [
        f"{folder}/config.json: is the file acme/tiny/config.json, 23 bytes"
    ]
    assert counter.passed < 20_000


def test_a_file_that_is_to_be_absent_is_not_replaced(server, root, push, folder):
    write(root / "acme/tiny", {"config.json": b"{}"})
    result = push(folder, server.url + "/acme/tiny", "--if-absent")
    assert result.status == 1 and "config.json: the server already has another file of this name" in result.errors
    assert (root / "acme/tiny/config.json").read_bytes() == b"{}"


def test_an_index_is_not_sent_after_a_refused_part(server, root, push, folder):
    (folder / PARTS[0]).write_bytes(b"no safetensors")
    result = push(folder, server.url + "/acme/tiny", "--jobs", "1")
    assert result.status == 1 and len(result.error_lines) == 1 and PARTS[0] in result.errors
    assert not (root / "acme/tiny/model.safetensors.index.json").exists()


@pytest.mark.parametrize(
    ("path", "words"),
    [("/acme/tiny/", "acme/tiny/tiny: a repository must be NAME or OWNER/NAME"), ("/a--b/c", "a--b/c: a repository"), ("/x?y", "parameters"),
     ("/a/../../b", "does not name a repository")],
)  # fmt: skip
def test_a_name_that_no_repository_can_have_is_refused(refused, folder, path, words):
    assert words in refused("push", folder, "http://127.0.0.1:1" + path)


def test_a_folder_is_pushed_alone(refused, folder):
    assert "one folder" in refused("push", folder, folder / "config.json", "http://127.0.0.1:1/acme/")


@pytest.mark.plain("a preloaded library makes a call fail")
def test_a_folder_that_cannot_be_listed_to_its_end_is_not_sent(server, root, ztserve, folder, environment):
    preloaded = {"LD_PRELOAD": str(FAULTS), "ZT_FAULT": f"walk:4:{errno.ENOMEM}"}
    result = ztserve("push", folder, server.url + "/acme/tiny", environment={**environment, **preloaded})
    assert (result.status, result.output) == (1, "")
    assert "Cannot allocate memory" in result.errors
    assert not (root / "acme").exists()


def test_a_folder_without_files_is_an_error(push, server, tmp_path):
    (tmp_path / "none").mkdir()
    result = push(tmp_path / "none", server.url + "/acme/none")
    assert result.status == 1 and "has no files" in result.errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_push_resumes_and_sends_no_complete_file_again(server, root, push, folder, environment, number):
    counter = Counter(server.port)
    counter.most = 1_600_000
    process = begin("push", folder, counter.url + "/acme/tiny", "--jobs", "1", environment=environment)
    assert counter.stopped.wait(LIMIT_S)
    process.send_signal(number)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == -number
    complete = {name for name in read(root / "acme/tiny") if not name.startswith(".")}
    assert "tokenizer.json" in complete and "model.safetensors.index.json" not in complete
    counter.most, counter.passed = None, 0
    result = push(folder, counter.url + "/acme/tiny", "--jobs", "1")
    counter.close()
    assert (result.status, result.errors) == (0, "")
    assert read(root / "acme/tiny") == REPOSITORY
    assert "of them received earlier" in result.output
    again = sum(len(REPOSITORY[name]) for name in REPOSITORY if name not in complete)
    assert counter.passed < again - 300_000


def test_a_push_survives_a_restart_of_the_server(start_server, server, root, folder, environment):
    counter = Counter(server.port)
    counter.most = 1_600_000
    process = begin("push", folder, counter.url + "/acme/tiny", "--jobs", "1", environment=environment)
    assert counter.stopped.wait(LIMIT_S)
    server.kill()
    place = held_port(server.port)
    counter.most = None
    again = start_server(root, "--writable", listen=f"127.0.0.1:{server.port}")
    place.close()
    _, errors = process.communicate(timeout=LIMIT_S)
    counter.close()
    assert (process.returncode, errors) == (0, "")
    assert read(root / "acme/tiny") == REPOSITORY
    assert again.process.poll() is None


def test_bytes_that_were_damaged_on_the_way_are_not_published(server, root, push, folder):
    """The server compares the SHA-256 that is stated before the bytes."""

    class Damage(Relay):
        def passing(self, data, is_request, connection):
            return True

        def _pass(self, source, drain, is_request):
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    drain.sendall(data.replace(b"x" * 1000, b"x" * 999 + b"y") if is_request else data)

    damage = Damage("127.0.0.1", server.port)
    result = push(folder, damage.url + "/acme/tiny")
    damage.close()
    assert result.status == 1 and "tokenizer.json" in result.errors and "digest" in result.errors
    assert not (root / "acme/tiny/tokenizer.json").exists()
