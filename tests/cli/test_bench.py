"""The benchmarks: names are listed or refused before anything is built, and their client counts whole answers."""

import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from server_process import TOP

BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
BODY = b"x" * 300_000


@pytest.mark.parametrize(("name", "status"), [("list", 0), ("unknown", 2), ("range unknown", 2)])
def test_names_are_listed_or_refused_before_anything_is_built(tmp_path, name, status):
    for tool in ("apt-get", "cmake", "dpkg-query", "ninja", "sudo"):
        (tmp_path / tool).write_text(f"#!/bin/sh\ntouch '{tmp_path}/trace'\nexit 99\n")
        (tmp_path / tool).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [TOP / "tests/bench/run.sh", "--workload", name]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, "WORKLOAD=name" in result.stdout) == (status, True)
    assert not (tmp_path / "trace").exists()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def load():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        command = [BUILD / "bench-load", "--port", str(server.server_address[1])]
        yield lambda *arguments: subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        server.shutdown()


def test_the_client_counts_whole_answers_and_stops_at_an_error(load):
    values = json.loads(load("--requests", "20", "--pid", str(os.getpid()), "--get", "/a").stdout)
    assert (values["requests"], values["bytes"], values["errors"]) == (20, 20 * len(BODY), 0)
    missing = load("--requests", "1", "--get", "/missing")
    assert missing.returncode == 1 and "404" in missing.stderr
