"""A repository comes from a server, or from another Hub, with the same bytes, whatever breaks on the way."""

import http.server
import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import meddler as meddling
import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from relay import Relay
from repositories import INCOMPLETE, INDEX, LIMIT_S, LONE, PART, PARTS, REPOSITORY, UNFINISHED, Hub, begin, read, wait_for_model, write
from server_process import PROGRAM, held_port


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


def test_an_incomplete_sharded_model_on_a_server_is_reported_after_its_files(server, root, pull, here):
    write(root / "acme/tiny", INCOMPLETE)
    result = pull(server.url + "/acme/tiny")
    assert (result.status, result.errors) == (1, f"ztserve: tiny/{INDEX}: part {PARTS[1]} is missing\n")
    assert read(here / "tiny") == INCOMPLETE
    write(root / "acme/tiny", {PARTS[1]: REPOSITORY[PARTS[1]]})
    assert pull(server.url + "/acme/tiny").status == 0


# --- other servers ---


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
