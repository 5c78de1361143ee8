"""The benchmarks: names are listed or refused before anything is built, their client counts whole answers, and the page says
what was measured on each family of processors, and why a row is missed or not judged."""

import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from certificates import common_certificate
from server_process import TOP

sys.path.insert(0, str(TOP / "tests/bench"))
import report  # noqa: E402
from figures import Figure, Limit, exit_status  # noqa: E402
from machine import cpu_fields, family_of, slug  # noqa: E402

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


@pytest.fixture(params=["plain", "TLS"])
def load(request):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # the client leaves while an answer is sent
        command = [BUILD / "bench-load", "--port", str(server.server_address[1])]
        if request.param == "TLS":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(common_certificate().cert, common_certificate().key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            command += ["--tls", "TLS_AES_128_GCM_SHA256"]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield lambda *arguments: subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        server.shutdown()


def test_the_client_counts_whole_answers_and_stops_at_an_error(load):
    for options in ((), ("--discard", "1")):
        values = json.loads(load("--requests", "20", "--pid", str(os.getpid()), *options, "--get", "/a").stdout)
        assert (values["requests"], values["bytes"], values["errors"]) == (20, 20 * len(BODY), 0)
        assert values["server_seconds"] > 0
    missing = load("--requests", "1", "--get", "/missing")
    assert missing.returncode == 1 and "404" in missing.stderr


# --- the page ---


@pytest.mark.parametrize(
    ("vendor", "model", "family"),
    [
        ("AuthenticAMD", "AMD EPYC", "AMD EPYC"),
        ("AuthenticAMD", "AMD EPYC 9R14 96-Core Processor", "AMD EPYC"),
        ("GenuineIntel", "Intel(R) Xeon(R) Platinum 8488C", "Intel Xeon"),
        ("GenuineIntel", "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz", "Intel Core"),
        ("GenuineIntel", "", "Intel family 6"),
        (None, None, "aarch64"),
    ],
)
def test_a_run_belongs_to_the_family_of_its_processor(vendor, model, family):
    lines = f"vendor_id\t: {vendor}\ncpu family\t: 6\nmodel name\t: {model}\n" if vendor else "BogoMIPS\t: 50.00\n"
    assert family_of(cpu_fields(f"processor\t: 0\n{lines}\nprocessor\t: 1\n"), "aarch64") == family


def figure(row, ours, **options):
    return Figure("one", row, "throughput", "B/s", [ours * 1e9], [1e9], limit=Limit(least=1.3), **options)


def test_throughput_is_judged_only_where_both_servers_are_busy():
    rows = [figure("a", 1.0, busy_least=0.9, processor=pair) for pair in ((0.95, 0.95), (0.95, 0.2), (0.8, 0.95))]
    assert [one.verdict() for one in rows] == ["MISSED", "server waits", "server waits"]
    assert exit_status(rows[1:]) == 0


def test_a_run_replaces_only_its_own_family(tmp_path, monkeypatch):
    reasons = tmp_path / "reasons.json"
    reasons.write_text(json.dumps({"intel-xeon": {"b, throughput, compared with nginx": "It rained."}}))
    monkeypatch.setattr(report, "REASONS", reasons)
    page = tmp_path / "benchmarks.md"
    marks = [report.MARK.format(family="amd-epyc", which=which) for which in ("begin", "end")]
    page.write_text(f"before\n\n{marks[0]}\n\nold\n\n{marks[1]}\n\nafter\n")
    figures = [figure("a", 2), figure("b", 1), figure("c", 1), figure("d", 2, others=0.5)]
    machine = {"family": "Intel Xeon", "commit": "abc"}
    report.write(tmp_path, figures, [], machine, (0, 0), {"rounds": 5, "seconds": 0.5})
    text = page.read_text()
    assert text.startswith(f"before\n\n{marks[0]}\n\nold\n\n{marks[1]}") and text.endswith("\n\nafter\n")
    assert "b, throughput, compared with nginx: 1.00, must be ≥ 1.3. Reason: It rained.\n" in text
    assert f"c, throughput, compared with nginx: 1.00, must be ≥ 1.3. Reason: {report.NO_REASON}\n" in text
    assert report.unsaid(figures, report.all_reasons()["intel-xeon"]) == [one.name() for one in figures[2:]]
    report.write(tmp_path, figures[:1], [], {**machine, "family": "AMD EPYC"}, (0, 0), {"rounds": 5, "seconds": 0.5})
    assert "\nold\n" not in page.read_text() and "It rained." in page.read_text()


def test_the_page_is_what_the_last_runs_and_the_reasons_say():
    """Else: python3 tests/bench/bench.py --render."""
    page, plots = report.rendered(TOP / "docs")
    assert page == (TOP / "docs/benchmarks.md").read_text()
    assert {name: (TOP / "docs/benchmarks" / name).read_text() for name in plots} == plots


def test_every_row_that_is_missed_or_not_judged_has_a_reason():
    reasons = report.all_reasons()
    for run in report.runs(TOP / "docs"):
        family = slug(run["machine"]["family"])
        figures = [report.from_values(values) for values in run["figures"]]
        assert report.unsaid(figures, reasons[family]) == []
        assert set(reasons[family]) <= {one.name() for one in figures}


def git(*arguments):
    return subprocess.run(["git", "-C", TOP, *arguments], capture_output=True, text=True, check=False)


def test_the_page_names_commits_of_this_history():
    for run in report.runs(TOP / "docs"):
        commit = run["machine"]["commit"].partition(" ")[0]
        if git("cat-file", "-e", commit).returncode != 0:
            pytest.skip(f"the history here does not reach back to {commit}")
        assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0
