"""A folder with config, tokenizer and weights goes to a server and comes back with the same bytes, whatever breaks on the way."""

import base64
import contextlib
import errno
import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import joined
import meddler as meddling
import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from relay import Relay
from server_process import PROGRAM, held_port

LIMIT_S = 120
PART = 1_500_000
REPOSITORY = {
    "config.json": b'{"model_type": "llama"}',
    "generation_config.json": b"{}",
    "tokenizer.json": b'{"version": "1.0", "model": "' + b"x" * 700_000 + b'"}',
    "README.md": "# tiny, caf\u00e9\n".encode(),
    "training_args.bin": b"no tensors" * 100,
    "original/params.json": b'{"dim": 64}',
    "empty.txt": b"",
    "adapter.zt": zt1({"a": dense(pattern(5000, seed=41), digest="sha256")}),
    **joined.files_with_index("model", [pattern(PART, seed=42), pattern(PART, seed=43)]),
}
PARTS = sorted(name for name in REPOSITORY if name.startswith("model-"))


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for_model(url):
    """The server's list is not as new as its folder."""
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            return urllib.request.urlopen(url).close()
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 404 and time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "tiny", REPOSITORY)


@pytest.fixture
def pull(ztserve, here):
    def run(url, *arguments):
        return ztserve("pull", url, *arguments, folder=here)

    return run


@pytest.fixture
def stored(root, server):
    """A server with the repository."""
    write(root / "acme/tiny", REPOSITORY)
    return server


# --- push ---


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


INDEX = "model.safetensors.index.json"
INCOMPLETE = {name: data for name, data in REPOSITORY.items() if name not in ("adapter.zt", "training_args.bin", PARTS[1])}


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


def test_an_incomplete_sharded_model_on_a_server_is_reported_after_its_files(server, root, pull, here):
    write(root / "acme/tiny", INCOMPLETE)
    result = pull(server.url + "/acme/tiny")
    assert (result.status, result.errors) == (1, f"ztserve: tiny/{INDEX}: part {PARTS[1]} is missing\n")
    assert read(here / "tiny") == INCOMPLETE
    write(root / "acme/tiny", {PARTS[1]: REPOSITORY[PARTS[1]]})
    assert pull(server.url + "/acme/tiny").status == 0


UNFINISHED = {"weights.bin.part": b"another file", "original/params.json.part.json": b"{}", "README.md.part": b"x"}
LONE = {"draft.part": b"a draft", "weights.part.json": b"{}"}  # beside no file of the name


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


class Counter(Relay):
    """Counts what clients send, and stops passing it on after so many bytes of one connection."""

    def __init__(self, port):
        self.passed, self.most, self.stopped = 0, None, threading.Event()
        super().__init__("127.0.0.1", port)

    def passing(self, data, is_request, connection):
        if not is_request:
            return True
        if self.most is not None and connection.carried > self.most:
            self.stopped.set()
            time.sleep(0.05)
            return False
        self.passed += len(data)
        return True


def begin(*command, environment=None, folder=None):
    return subprocess.Popen(
        [str(PROGRAM), *map(str, command)], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


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


# --- pull ---


@pytest.mark.parametrize("path", ["/acme/tiny", "/acme/tiny/", "/v1/models/acme/tiny", "/files/acme/tiny/"])
def test_a_repository_comes_with_the_same_bytes(stored, pull, here, path):
    result = pull(stored.url + path, "-o", "made/for/it/")
    assert (result.status, result.errors) == (0, "")
    assert read(here / "made/for/it") == REPOSITORY
    assert result.lines[-1] == f"made/for/it: {len(REPOSITORY)} files of the repository acme/tiny"
    checked = [line for line in result.lines[:-1] if "SHA-256 matches the server" in line]
    assert len(checked) == len(REPOSITORY) - 1  # but the empty one


def test_without_a_folder_a_repository_goes_to_one_of_its_name(stored, pull, here):
    assert pull(stored.url + "/acme/tiny", "-q").output == ""
    assert read(here / "tiny") == REPOSITORY


def test_a_model_takes_precedence_over_the_folder_of_its_name(stored, root, pull, here):
    (root / "acme/tiny.zt").write_bytes(REPOSITORY["adapter.zt"])
    wait_for_model(stored.url + "/v1/models/acme/tiny")
    assert pull(stored.url + "/acme/tiny").status == 0
    assert read(here) == {"tiny.zt": REPOSITORY["adapter.zt"]}
    assert pull(stored.url + "/acme/tiny/").status == 0
    assert read(here / "tiny") == REPOSITORY


def test_a_pull_that_is_repeated_fetches_only_what_has_changed(stored, root, pull, here):
    assert pull(stored.url + "/acme/tiny").status == 0
    changed = REPOSITORY | {"adapter.zt": zt1({"a": dense(pattern(5000, seed=44), digest="sha256")})}
    write(root / "acme/tiny", changed)
    result = pull(stored.url + "/acme/tiny")
    assert (result.status, result.errors) == (0, "")
    assert [line.split(":")[0] for line in result.lines if "already exists" not in line] == ["tiny/empty.txt", "tiny/adapter.zt", "tiny"]
    assert read(here / "tiny") == changed


@pytest.mark.parametrize("is_hub", [False, True])
def test_unfinished_files_of_a_server_do_not_replace_others(root, server, hub, pull, here, is_hub):
    files = {"weights.bin": b"w" * 5000, "original/params.json": b"{}", "README.md": b"# tiny", **LONE}
    write(root / "acme/tiny", {**files, **UNFINISHED})
    result = pull((hub(files={**files, **UNFINISHED}) if is_hub else server.url) + "/acme/tiny")
    assert (result.status, result.errors) == (0, "")
    assert read(here / "tiny") == files
    assert result.lines[-2:] == [
        "3 unfinished files (.part, .part.json) of the repository were not downloaded",
        "tiny: 5 files of the repository acme/tiny",
    ]


def test_a_repository_does_not_go_to_the_name_of_a_tensor_file(stored, pull, here):
    result = pull(stored.url + "/acme/tiny", "-o", "tiny.safetensors")
    assert result.status == 2 and list(here.iterdir()) == []
    assert f"acme/tiny is a repository: use -o FOLDER/, or {stored.url}/acme/tiny/model for one model" in result.errors
    assert pull(stored.url + "/acme/tiny", "-o", "tiny.safetensors/").status == 0
    assert read(here / "tiny.safetensors") == REPOSITORY


def test_all_repositories_of_an_owner_are_pulled_only_if_the_url_ends_in_a_slash(stored, root, pull, here):
    write(root / "acme/other", {"config.json": b"{}"})
    result = pull(stored.url + "/acme")
    assert result.status == 2 and list(here.iterdir()) == []
    assert "acme has several repositories: acme/other, acme/tiny; " in result.errors
    assert pull(stored.url + "/acme/").status == 0
    assert read(here / "acme/tiny") == REPOSITORY and read(here / "acme/other") == {"config.json": b"{}"}


def test_a_repository_without_an_owner_may_have_folders(server, root, pull, here):
    files = {"config.json": b"{}", "one/a.json": b"1", "two/b.json": b"2"}
    write(root / "tiny", files)
    assert pull(server.url + "/tiny").status == 0
    assert read(here / "tiny") == files


def test_a_users_other_files_are_replaced_only_by_force(stored, pull, here):
    write(here / "tiny", {"config.json": b"mine", "notes.txt": b"mine"})
    result = pull(stored.url + "/acme/tiny")
    assert result.status == 1 and "config.json" in result.errors and "--force" in result.errors
    assert read(here / "tiny")["config.json"] == b"mine"
    assert pull(stored.url + "/acme/tiny", "--force").status == 0
    assert read(here / "tiny") == {**REPOSITORY, "notes.txt": b"mine"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_pull_resumes_and_fetches_no_complete_file_again(stored, pull, here, number):
    between = meddling.Meddler(SimpleNamespace(endpoint=stored.url))
    is_part = between.meddle(
        meddling.stall_after(300_000),
        when=lambda request: request.path.endswith(PARTS[1]) and request.range is not None and request.range[1] > 100,
    )
    process = begin("pull", between.endpoint + "/acme/tiny", "--jobs", "1", folder=here)
    journal = here / f"tiny/{PARTS[1]}.part.json"
    end = time.monotonic() + LIMIT_S
    while not journal.exists() or int(json.loads(journal.read_text())["pieces"], 16) == 0:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    errors = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == -number
    assert number == signal.SIGKILL or "run the same command again to resume" in errors
    assert not (here / "tiny/model.safetensors.index.json").exists()
    between.stop(is_part)
    counted = between.counting()
    result = pull(between.endpoint + "/acme/tiny")
    between.close()
    assert (result.status, result.errors) == (0, "")
    assert read(here / "tiny") == REPOSITORY
    assert "of them received earlier" in result.output
    assert sum(one.sent_bytes for one in counted.seen) < PART


def test_a_pull_survives_a_restart_of_the_server(start_server, root, here):
    write(root / "acme/tiny", REPOSITORY)
    server = start_server(root)
    counter = Relay("127.0.0.1", server.port)
    passed = threading.Event()
    seen = []

    def passing(data, is_request, connection):
        seen.append(0 if is_request else len(data))
        if sum(seen) > 1_200_000:
            passed.set()
            time.sleep(0.05)
        return True

    counter.passing = passing
    process = begin("pull", counter.url + "/acme/tiny", "--jobs", "1", folder=here)
    assert passed.wait(LIMIT_S)
    server.kill()
    place = held_port(server.port)
    counter.passing = lambda *_: True
    again = start_server(root, listen=f"127.0.0.1:{server.port}")
    place.close()
    _, errors = process.communicate(timeout=LIMIT_S)
    counter.close()
    assert (process.returncode, errors) == (0, "")
    assert read(here / "tiny") == REPOSITORY
    assert again.process.poll() is None


def test_a_repository_that_changes_meanwhile_is_reported(stored, root, pull):
    between = meddling.Meddler(SimpleNamespace(endpoint=stored.url))

    def change(request, handler):
        write(root / "acme/tiny", {"config.json": b'{"model_type": "changed"}'})
        return handler.forward(request)

    between.meddle(change, when=lambda request: request.path.endswith(PARTS[1]), times=1)
    result = pull(between.endpoint + "/acme/tiny")
    between.close()
    assert result.status == 1 and "has changed while it was pulled" in result.errors


def test_wrong_bytes_of_any_file_are_found(stored, pull, here):
    between = meddling.Meddler(SimpleNamespace(endpoint=stored.url))
    between.meddle(
        meddling.flipped(position=100_000), when=lambda request: "tokenizer.json" in request.path and request.range not in (None, (0, 0))
    )
    result = pull(between.endpoint + "/acme/tiny")
    between.close()
    assert result.status == 1 and "tokenizer.json" in result.errors and "digest" in result.errors
    assert not (here / "tiny/tokenizer.json").exists()


def test_a_repository_has_no_selections(stored, refused, here):
    assert "not repositories" in refused("pull", stored.url + "/acme/tiny/", "--format", "npz", folder=here)


def test_pages_of_an_index_are_followed(root, server, pull, here):
    files = {f"data/{number:05}.txt": str(number).encode() for number in range(7)}
    write(root / "acme/many", files)
    between = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    small = between.meddle(
        lambda request, handler: handler.forward(replace(request, target=request.target.replace("limit=1000", "limit=2"))),
        when=lambda request: "limit=1000" in request.target,
    )
    result = pull(between.endpoint + "/acme/many")
    pages = [one.request for one in between.seen if "after=" in one.request.target]
    between.close()
    assert (result.status, result.errors, small.used) == (0, "", 4)
    assert len(pages) == 6  # twice three more of the folder's files
    assert read(here / "many") == files


def test_tokens_are_sent_and_limit_what_is_listed(start_server, root, tmp_path, ztserve, here):
    write(root / "acme/tiny", {"config.json": b"{}", "other.txt": b"x"})
    client = Client("me", "read", "acme/tiny/config")
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", client))
    (tmp_path / "token").write_text(client.token)
    assert ztserve("pull", server.url + "/acme/tiny/", folder=here).status == 1
    result = ztserve("pull", server.url + "/acme/tiny/", "--token-file", tmp_path / "token", folder=here)
    assert (result.status, result.errors) == (0, "")
    assert read(here / "tiny") == {"config.json": b"{}"}


def test_no_page_of_an_index_on_another_server_gets_the_token(root, server, pull, here, tmp_path):
    files = {f"{number}.txt": str(number).encode() for number in range(5)}
    write(root / "acme/many", files)
    other, between = (meddling.Meddler(SimpleNamespace(endpoint=server.url)) for _ in range(2))
    other.meddle(
        lambda request, handler: handler.forward(replace(request, target=request.target.replace("limit=1000", "limit=2"))),
        when=lambda request: "limit=1000" in request.target,
    )
    between.meddle(
        lambda request, handler: meddling.reply(307, Location=other.endpoint + request.target)(request, handler),
        when=lambda request: request.path == "/files/acme/many/",
    )
    (tmp_path / "token").write_text("secret")
    result = pull(between.endpoint + "/acme/many/", "--token-file", tmp_path / "token")
    pages, named = ([one.request for one in place.seen] for place in (other, between))
    other.close()
    between.close()
    assert (result.status, result.errors) == (0, "")
    assert read(here / "many") == files
    assert len([page for page in pages if "after=" in page.target]) == 4  # twice two more
    assert [page.target for page in pages if "authorization" in page.fields] == []
    assert {one.fields.get("authorization") for one in named} == {"Bearer secret"}


# --- files of /files ---


@pytest.mark.parametrize("name", ["config.json", "README.md", "training_args.bin", "original/params.json", "adapter.zt"])
def test_any_file_can_be_pulled(stored, pull, here, name):
    result = pull(f"{stored.url}/files/acme/tiny/{name}", "-o", "made/")
    assert (result.status, result.errors) == (0, "")
    assert read(here / "made") == {Path(name).name: REPOSITORY[name]}


def test_a_damaged_model_of_files_is_still_refused(root, server, pull, here):
    damaged = bytearray(REPOSITORY["adapter.zt"])
    damaged[damaged.index(pattern(5000, seed=41)) + 5] ^= 1
    (root / "bad.zt").write_bytes(damaged)
    result = pull(server.url + "/files/bad.zt")
    assert result.status == 1 and "digest" in result.errors
    assert read(here) == {}


# --- other servers ---


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the Hub that clients read, as its documentation has it."""

    files, commit = REPOSITORY, "c0ffee" * 6 + "0123"
    protocol_version = "HTTP/1.1"
    names = None

    def answer(self, status, body, **fields):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if path == "/api/models/acme/tiny/revision/main":
            return self.describe()
        start = f"/acme/tiny/resolve/{self.commit}/"
        if not path.startswith(start) or path[len(start) :] not in self.files:
            return self.answer(404, b"<html>Not found</html>", Content_Type="text/html")
        data = self.files[path[len(start) :]]
        etag = f'"{hash(data)}"'
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if not first:
            return self.answer(200, data, ETag=etag)
        last = min(int(last), len(data) - 1)
        content_range = f"bytes {first}-{last}/{len(data)}"
        return self.answer(206, data[int(first) : last + 1], ETag=etag, Content_Range=content_range)

    do_HEAD = do_GET

    def describe(self):
        siblings = [{"rfilename": ".gitattributes", "size": 3}]
        for name, data in self.files.items():
            entry = {"rfilename": name, "size": len(data)}
            if name.endswith(".safetensors"):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            siblings.append(entry)
        siblings += [{"rfilename": name, "size": 4} for name in self.names or ()]
        self.answer(200, json.dumps({"id": "acme/tiny", "sha": self.commit, "siblings": siblings}).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    """Starts such a server with other names or files."""
    servers = []

    def start(**members):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("ThisHub", (Hub,), members))
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_repository_of_another_hub_is_pulled(hub, pull, here):
    result = pull(hub() + "/acme/tiny", "-o", "x")
    assert (result.status, result.errors) == (0, "")
    assert read(here / "x") == REPOSITORY
    assert sum("SHA-256 matches" in line for line in result.lines) == len(PARTS)


@pytest.mark.parametrize("path", ["/acme/tiny", "/acme/tiny/"])
@pytest.mark.parametrize(("status", "words"), [(401, "the server requires a token"), (403, "the server does not allow this request")])
def test_another_hubs_refusal_is_reported(hub, pull, path, status, words):
    result = pull(hub(describe=lambda self: self.answer(status, b'{"error": "no"}')) + path)
    assert result.status == 1 and f"{words}" in result.errors and f"({status})" in result.errors


@pytest.mark.parametrize(("status", "body"), [(404, b'{"error": "no"}'), (200, b"<html>"), (200, b"{}")])
def test_a_name_that_another_hub_does_not_have_is_reported(hub, pull, status, body):
    url = hub(describe=lambda self: self.answer(status, body))
    assert "the server has no repository of that name" in pull(url + "/acme/tiny/").errors
    assert "there is no model of that name" in pull(url + "/acme/tiny").errors


def test_another_hubs_digest_is_compared(hub, pull, here):
    files = dict(REPOSITORY)

    class Wrong(dict):
        """Lists one content and sends another."""

        def __getitem__(self, name):
            data = super().__getitem__(name)
            return data[:-1] + bytes([data[-1] ^ 1]) if name == PARTS[0] else data

    result = pull(hub(files=Wrong(files)) + "/acme/tiny")
    assert result.status == 1 and PARTS[0] in result.errors
    assert not (here / "tiny" / PARTS[0]).exists()


@pytest.mark.plain("sanitizers need more memory")
def test_a_long_list_of_files_takes_little_memory(hub, here):
    url = hub(files={}, names=[f"{number}.txt" for number in range(50_000)])
    # By a small program, because the memory of what starts a process counts as the process's own.
    watch = "import resource, subprocess, sys; print(subprocess.call(sys.argv[1:]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-c", watch, str(PROGRAM), "pull", url + "/acme/tiny/"]
    status, most = subprocess.run(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.split()[-2:]
    assert int(status) == 1  # the server has no file
    assert int(most) < 150_000  # KiB


HOSTILE = ["../out.txt", "/out.txt", "a/../../out.txt", "a//b", ".", "..", "", "a/.", "x\ny", "../tiny2/x"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_server_cannot_name_a_file_outside_the_folder(hub, pull, here, name):
    result = pull(hub(files={}, names=[name]) + "/acme/tiny", "-o", "x/y", "--force")
    assert result.status == 1 and len(result.error_lines) == 1, result.output
    assert read(here) == {}
    assert read(here.parent) == {}


def test_hidden_files_of_a_server_are_left_out(hub, pull, here):
    result = pull(hub(files={"a.txt": b"a"}, names=[".bashrc", ".ssh/authorized_keys"]) + "/acme/tiny", "-o", ".", "--force")
    assert (result.status, result.errors) == (0, "")
    assert read(here) == {"a.txt": b"a"}


def test_links_in_the_folder_do_not_lead_out_of_it(stored, pull, here, tmp_path):
    outside = write(tmp_path / "outside", {"mine.txt": b"mine"})
    (here / "tiny").mkdir()
    (here / "tiny/original").symlink_to(outside)
    (here / "tiny/README.md").symlink_to(outside / "mine.txt")
    result = pull(stored.url + "/acme/tiny", "--force")
    assert result.status == 1 and "original" in result.errors
    (here / "tiny/original").unlink()
    assert pull(stored.url + "/acme/tiny", "--force").status == 0
    assert read(outside) == {"mine.txt": b"mine"}
    assert not (here / "tiny/README.md").is_symlink() and read(here / "tiny") == REPOSITORY


def test_an_index_that_leads_out_of_the_folder_is_refused(stored, pull, here):
    between = meddling.Meddler(SimpleNamespace(endpoint=stored.url))
    for name in ("../x", "..", "a/b", ""):
        page = json.dumps({"entries": [{"name": name, "type": "file", "size": 4}], "next": None}).encode()
        rule = between.meddle(meddling.reply(200, page), when=lambda request: request.path.startswith("/files/"))
        result = pull(between.endpoint + "/acme/tiny/", "-o", "x/y")
        between.stop(rule)
        assert result.status == 1 and "cannot be in the repository's folder" in result.errors, name
        assert read(here) == {}
    between.close()
