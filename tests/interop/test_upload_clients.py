"""Common clients, unchanged, sending: curl from a file and from a pipe, requests from a file and a generator."""

import hashlib
import subprocess

import pytest
import requests

import containers

# More than is read without the HTTP library, and more than any window.
LARGE = 5_000_000


@pytest.fixture(scope="module", params=[1000, LARGE], ids=["small", "large"])
def sent(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sent") / "sent.zt"
    path.write_bytes(containers.zt1({"w": containers.dense(containers.pattern(request.param))}))
    return path


@pytest.fixture
def server(start_server, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    return start_server(root, "--writable")


def assert_stored(server, name, sent):
    stored = requests.get(f"{server.url}/files/{name}.zt").content
    assert hashlib.sha256(stored).digest() == hashlib.sha256(sent.read_bytes()).digest()
    assert requests.get(f"{server.url}/v1/models/{name}").status_code == 200


def curl(*arguments, stdin=None):
    command = ["curl", "-sS", "--fail-with-body", "-o", "-", "-w", "%{http_code}", *arguments]
    result = subprocess.run(command, capture_output=True, stdin=stdin, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.decode()


def test_curl_sends_a_file(server, sent):
    assert curl("-T", sent, f"{server.url}/v1/models/m") == "201"
    assert_stored(server, "m", sent)
    assert curl("-T", sent, f"{server.url}/v1/models/m") == "204"


def test_curl_sends_a_pipe(server, sent):
    with sent.open("rb") as pipe:
        assert curl("-T", "-", f"{server.url}/v1/models/m", stdin=pipe) == "201"
    assert_stored(server, "m", sent)


def test_curl_sends_only_missing_bytes(server, sent):
    """With Expect: 100-continue, as curl sends it for large bodies: the refusal comes before the body."""
    url = f"{server.url}/v1/models/m"
    assert curl("-T", sent, url) == "201"
    command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_upload}"]
    command += ["-H", "If-None-Match: *", "-H", "Expect: 100-continue", "-T", sent, url]
    status, uploaded = subprocess.run(command, capture_output=True, timeout=60).stdout.split()
    assert (status, uploaded) == (b"412", b"0")


def test_requests_streams_a_generator(server, sent):
    content = sent.read_bytes()
    pieces = (content[at : at + 70_001] for at in range(0, len(content), 70_001))
    answer = requests.put(f"{server.url}/v1/models/m", data=pieces)
    assert answer.status_code == 201, answer.text
    assert_stored(server, "m", sent)
