"""What the benchmarks say of their figures, and what their client counts; nothing here measures time."""

import http.server
import json
import os
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "bench"))

import bench  # noqa: E402
import machine  # noqa: E402
import plots  # noqa: E402
import report  # noqa: E402
from curve import Curve, Measured, Series  # noqa: E402
from figures import Figure, Limit, amount, exit_status, ratios  # noqa: E402
from workload import Workload  # noqa: E402

BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
TIMEOUT_S = 60


def figure(ours=(3.0, 1.0, 2.0), theirs=(1.0, 1.0, 1.0), limit=Limit(least=1.5), **options):
    return Figure("name", "row", "throughput", "/s", list(ours), list(theirs), limit=limit, **options)


# --- ratios and verdicts ---


def test_a_ratio_is_taken_within_a_round_and_turned_round_for_times():
    assert ratios([2.0, 9.0], [1.0, 3.0], "ours/theirs") == [2.0, 3.0]
    assert ratios([2.0, 9.0], [1.0, 3.0], "theirs/ours") == [0.5, 1 / 3]


def test_the_median_ratio_is_judged_not_the_ratio_of_medians():
    # Ratios 4, 0.5 and 1: the median is 1, although the medians are 2 and 1.
    assert figure([4.0, 0.5, 2.0], [1.0, 1.0, 2.0], Limit(least=1.01)).verdict() == "MISSED"
    assert figure([4.0, 0.5, 2.0], [1.0, 1.0, 2.0], Limit(least=1.0)).verdict() == "met"


@pytest.mark.parametrize(
    "limit, verdict",
    [
        (Limit(least=2.0), "met"),
        (Limit(least=2.001), "MISSED"),
        (Limit(most=2.0), "met"),
        (Limit(most=1.999), "MISSED"),
        (None, "shown"),
    ],
)
def test_a_threshold_that_is_just_reached_is_met(limit, verdict):
    assert figure(limit=limit).verdict() == verdict


def test_a_threshold_of_the_own_figure_needs_no_yardstick():
    assert figure([140.0, 160.0, 149.0], [], Limit(most=150, of="value")).verdict() == "met"
    assert figure([140.0, 160.0, 151.0], [], Limit(most=150, of="value")).verdict() == "MISSED"


def test_a_row_that_others_disturbed_is_not_judged():
    assert figure(others=0.2).verdict() == "met"
    assert figure(others=0.21).verdict() == "not judged"
    assert figure(others=0.21).why_unjudged() == "others took 0.21 cores, more than 0.2"


def test_a_row_whose_yardstick_is_uneven_is_not_judged():
    assert figure(check=[1.05, 1.0, 1.09]).verdict() == "met"
    assert figure(check=[1.2, 1.2, 1.0]).verdict() == "not judged"
    assert "nginx beside itself 1.20" in figure(check=[1.2, 1.2, 1.0]).why_unjudged()
    assert figure(check=[0.8, 0.8, 1.0]).verdict() == "not judged"


@pytest.mark.parametrize(
    "figures, status",
    [
        ([figure(), figure(limit=None)], 0),
        ([figure(), figure(limit=Limit(least=9))], 1),
        ([figure(), figure(limit=Limit(least=9)), figure(others=1.0)], 2),
        ([figure(), figure(skipped="no root")], 2),
        ([figure(limit=Limit(least=9)), figure(skipped="no root")], 1),
        ([], 2),
    ],
)
def test_the_exit_status_says_met_missed_or_cannot_judge(figures, status):
    assert exit_status(figures) == status


def test_amounts_have_the_units_in_which_people_say_them():
    assert amount(4_560_000_000, "B/s") == "4.56 GB/s"
    assert amount(91_234.4, "/s") == "91,234 /s"
    assert amount(0.2011, "s/GB") == "0.201 s/GB"
    assert amount(12_345, "µs") == "12.3 ms"
    assert amount(156.4, "B") == "156 B"


# --- the machine ---


def test_processors_are_read_as_the_kernel_lists_them():
    assert machine.parse_list("0-2,8\n") == [0, 1, 2, 8]


def test_the_line_of_a_process_is_read_whatever_its_name(monkeypatch):
    monkeypatch.setattr(machine, "TICKS", 100)
    fields = "S 7 42 42 0 -1 4194560 100 0 0 0 100 20 30 4 20 0 1 0 100"
    assert machine.parse_stat(f"42 (a) b (c) {fields}") == (42, 7, 1.54)


def test_a_family_is_a_process_and_all_that_descend_from_it():
    parents = {1: 0, 2: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 2}
    assert machine.family(parents, 10) == {10, 11, 12}
    assert machine.family(parents, 99) == set()


def test_what_a_child_leaves_behind_belongs_to_the_family():
    """A daemon of the object store, whose parent has ended."""
    program = """
import os, subprocess, machine
machine.adopt_orphans()
command = ["sh", "-c", "setsid sleep 60 >/dev/null & echo $!"]
daemon = int(subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout)
with open(f"/proc/{daemon}/stat") as file:
    pid, parent, _ = machine.parse_stat(file.read())
os.kill(daemon, 9)
assert parent == os.getpid(), parent
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=TOP / "tests" / "bench", timeout=TIMEOUT_S)


def sample(at, busy, own, kernel, others):
    return machine.Sample(at, busy, own, kernel, others)


def test_others_are_what_their_processes_or_the_whole_machine_account_for():
    first = sample(10.0, 100.0, 50.0, 5.0, 20.0)
    # Only ours and the kernel's threads ran.
    assert machine.others_between(first, sample(12.0, 103.0, 52.5, 5.5, 20.0)) == 0
    # Another process took half a core, whatever the machine's own account says.
    assert machine.others_between(first, sample(12.0, 102.0, 52.0, 5.0, 21.0)) == 0.5
    # Another container or the hypervisor took a core, which no process accounts for.
    assert machine.others_between(first, sample(12.0, 104.0, 52.0, 5.0, 20.0)) == 1.0
    # Time that is counted for us as well as for interrupts is not a negative amount of others.
    assert machine.others_between(first, sample(12.0, 101.0, 52.0, 5.0, 20.0)) == 0


def test_stolen_time_counts_as_busy_and_waiting_does_not(monkeypatch):
    monkeypatch.setattr(machine, "TICKS", 100)
    assert machine.busy_seconds("cpu  100 20 30 999 888 777 666 50 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n") == 2.0


# --- choosing ---


def test_a_name_chooses_and_an_unknown_one_is_refused():
    workloads = [Workload(name, name, None) for name in ("a", "b", "c")]
    curves = [Curve("x", "x", "x", (), None)]
    assert bench.choose([], workloads, curves) == (workloads, curves)
    assert bench.choose(["c", "a"], workloads, curves) == ([workloads[0], workloads[2]], [])
    assert bench.choose(["x-curve"], workloads, curves) == ([], curves)
    assert bench.choose(["curves"], workloads, curves) == ([], curves)
    assert bench.choose(["a", "d"], workloads, curves) is None


@pytest.fixture
def no_tools(tmp_path):
    """An environment in which whoever installs or builds something fails, and leaves a trace."""
    for name in ("apt-get", "ccache", "cmake", "dpkg", "dpkg-query", "gcc", "ninja", "sudo"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/sh\necho {name} >>'{tmp_path}/trace'\nexit 99\n")
        tool.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.parametrize(("name", "status"), [("list", 0), ("unknown", 2), ("range unknown", 2)])
def test_names_are_listed_or_refused_before_anything_is_built(tmp_path, no_tools, name, status):
    command = [TOP / "tests" / "bench" / "run.sh", "--workload", name]
    result = subprocess.run(command, env=no_tools, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert not (tmp_path / "trace").exists()
    assert result.returncode == status
    assert "WORKLOAD=name" in result.stdout and "curves" in result.stdout
    assert result.stderr == ("" if status == 0 else f"error: {name}: not the name of a workload, or not all of them are\n")


def test_a_name_that_exists_is_built_for(tmp_path, no_tools):
    command = [TOP / "tests" / "bench" / "run.sh", "--workload", "range"]
    result = subprocess.run(command, env=no_tools, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (tmp_path / "trace").exists() and result.returncode != 0
    assert "WORKLOAD=name" not in result.stdout


# --- the page ---


def test_the_page_keeps_what_people_wrote():
    page = f"# Title\n\nbefore\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n"
    assert report.insert(page, r"new \1") == f"# Title\n\nbefore\n\n{report.BEGIN}\n\nnew \\1\n\n{report.END}\n\nafter\n"
    with pytest.raises(ValueError):
        report.insert("# Title\n", "new")


def test_the_page_of_the_project_has_its_marks():
    assert report.insert((TOP / "docs" / "benchmarks.md").read_text(), "x")


def test_a_run_names_what_is_missed_and_draws_it(tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text(f"{report.BEGIN}\n{report.END}\n")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "gone.svg").write_text("old")
    figures = [figure(limit=Limit(least=9)), figure(skipped="no root")]
    figures[0].workload = "manifest"
    curve = Curve("sizes", "Sizes", "bytes", (Series("open", "ms"), Series("memory", "MB")), None)
    points = [(10, {"open": 1.0}), (100, {"open": 2.0, "memory": 3.0})]
    report.write(tmp_path, figures, [Measured(curve, points)], {"kernel": "6"}, (0.0, 0.1), {"rounds": 5, "seconds": 1})
    text = page.read_text()
    assert "Missed: row (throughput, beside nginx)." in text and "Skipped: row (no root)." in text
    assert "| row, throughput | 2 /s | nginx: 1 /s | 2.00 (1.00 to 3.00) |  |  | ≥ 9 | **missed** |" in text
    assert "| 10 | 1 ms |  |\n| 100 | 2 ms | 3 MB |" in text
    drawn = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert drawn == {"small.svg", "curve-sizes-1.svg", "curve-sizes-2.svg"}


# --- plots ---

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_medians():
    two = [figure([1.0], [1.0]), figure([2.0], [1.0], limit=Limit(least=3), check=[1.0])]
    two[1].row = 'a < b & "c"'
    drawing = ElementTree.fromstring(plots.ratio_bars("title <&>", two))
    bars = [element for element in drawing.iter(f"{SVG}rect") if element.get("x")]
    assert float(bars[1].get("width")) == pytest.approx(2 * float(bars[0].get("width")), abs=0.2)
    assert bars[0].get("fill") == plots.COLOURS["MISSED"]
    assert 'a < b & "c", throughput' in [element.text for element in drawing.iter(f"{SVG}text")]


def test_a_curve_has_a_point_for_each_value_on_logarithmic_axes():
    drawing = ElementTree.fromstring(plots.curve_lines("t", "x", "ms", {"s": [(1, 1), (10, 10), (100, 100), (0, 5)]}))
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in drawing.iter(f"{SVG}circle")]
    assert len(places) == 3
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(places, places[1:])]
    assert steps[0] == pytest.approx(steps[1], abs=0.2) and steps[0][0] > 0 > steps[0][1]
    assert plots.curve_lines("t", "x", "ms", {"s": [(0, 1)]}) is None


# --- the client ---


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        type(self).seen.append(dict(self.headers))
        body = b"x" * 300_000
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def answers():
    Answers.seen = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run_load(server, *arguments):
    command = [BUILD / "bench-load", "--port", str(server.server_address[1]), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def test_the_client_counts_whole_answers_and_their_bytes(answers):
    pid = str(os.getpid())
    result = run_load(answers, "--requests", "20", "--header", "X-A: 1", "--header", "X-B: 2", "--pid", pid, "--get", "/a")
    values = json.loads(result.stdout)
    assert (values["requests"], values["bytes"], values["errors"]) == (20, 20 * 300_000, 0)
    assert 0 < values["p50_us"] <= values["p99_us"] <= values["seconds"] * 1e6 * 1.02
    assert values["server_seconds"] > 0
    assert Answers.seen[0]["X-A"] == "1" and Answers.seen[0]["X-B"] == "2"


def test_the_client_stops_at_an_answer_that_is_an_error(answers):
    result = run_load(answers, "--requests", "1", "--get", "/missing")
    assert result.returncode == 1 and "404" in result.stderr


def test_the_client_refuses_options_that_it_does_not_have(answers):
    result = run_load(answers, "--speed", "1", "--get", "/a")
    assert result.returncode == 2 and "usage" in result.stderr


def test_the_copy_loop_sends_the_runs_of_a_slice(tmp_path):
    data = os.urandom(1 << 20)
    file = tmp_path / "data"
    file.write_bytes(data)
    command = [BUILD / "bench-copy", file, "100", "4096", "1024", "255"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
        try:
            port = int(loop.stdout.readline())
            server = type("Server", (), {"address": "127.0.0.1", "port": port})
            sent = bench.Context.fetch(server, "/")
        finally:
            loop.kill()
    assert sent == b"".join(data[100 + row * 4096 :][:1024] for row in range(255))
