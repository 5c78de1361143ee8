"""pull rides out what push rides out: a server that is busy, fails for a while or is started again; and says how to go on when it gives up."""

import signal
import subprocess
import time
from email.utils import formatdate

import meddler as meddling
import pytest
from containers import dense, pattern, zt1
from onnx_messages import field, onnx, raw, tensor
from server_process import PROGRAM, held_port
from terminal import Screen, SlowLine, run_in_terminal

MODEL = zt1({"a": dense(pattern(6_000_000, seed=71), digest="sha256")})
HINT = "run the same command again to resume"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "m.zt").write_bytes(MODEL)
    return folder


@pytest.fixture
def server(start_server, root):
    return start_server(root)


@pytest.fixture
def line(server):
    made = SlowLine(server.port, 2_000_000)
    yield made
    made.close()


def is_data(request):
    """A range of more than the first bytes."""
    return request.method == "GET" and request.range is not None and request.range[1] > 100


def is_first_data(request):
    """However often it is asked again: what came is not asked for once more."""
    return is_data(request) and request.range[0] == 0


def is_first(request):
    return not is_data(request)


def assert_whole(result, here):
    assert (result.status, result.errors) == (0, "")
    assert (here / "m.zt").read_bytes() == MODEL


@pytest.mark.parametrize("status, times", [(408, 2), (429, 2), (500, 2), (502, 2), (503, 5)])
@pytest.mark.waits
def test_a_server_that_is_busy_or_fails_for_a_while_is_waited_for(between, ztserve, here, status, times):
    acts = [between.meddle(meddling.reply(status), when=when, times=times) for when in (is_first, is_data)]
    assert_whole(ztserve("pull", between.endpoint + "/m", "--jobs", "1", folder=here), here)
    assert [act.used for act in acts] == [times, times]


@pytest.mark.parametrize("when", [is_first, is_data])
@pytest.mark.parametrize("as_date", [False, True])
def test_the_pause_that_a_server_asks_for_is_made(between, ztserve, here, when, as_date):
    pause = formatdate(time.time() + 4, usegmt=True) if as_date else "2"
    between.meddle(meddling.reply(429, Retry_After=pause), when=when, times=1)
    begun = time.monotonic()
    assert_whole(ztserve("pull", between.endpoint + "/m", "--jobs", "1", folder=here), here)
    assert time.monotonic() - begun > 1.9


def test_a_server_that_is_started_again_is_waited_for(start_server, root, server, line, here):
    process = subprocess.Popen([PROGRAM, "pull", line.url + "/m"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (here / "m.zt.part.json").exists() and process.poll() is None:
        time.sleep(0.01)
    server.kill()
    place = held_port(server.port)
    line.cut()
    while line.refused < 3:
        time.sleep(0.01)
    line.bytes_s = 1e9
    start_server(root, listen=f"127.0.0.1:{server.port}")
    place.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert (here / "m.zt").read_bytes() == MODEL


@pytest.mark.parametrize("command", ["ls", "verify", "pull"])
def test_a_file_that_fails_while_its_format_is_looked_for_is_an_error(between, ztserve, root, here, command):
    """ONNX has no magic: before its graph may be texts longer than what is fetched at once."""
    whole = onnx(tensor("w", 1, [100], raw(pattern(400))))
    (root / "long.onnx").write_bytes(whole[:2] + field(6, b"x" * 3_000_000) + whole[2:])
    between.meddle(meddling.reply(404), when=lambda request: request.range is not None and request.range[0] > 0)
    result = ztserve(command, between.endpoint + "/files/long.onnx", folder=here)
    assert result.status == 1 and result.errors


def test_one_that_never_answered_is_given_up_at_once(ztserve, here):
    with held_port(0) as silent:
        begun = time.monotonic()
        result = ztserve("pull", f"http://127.0.0.1:{silent.getsockname()[1]}/m", folder=here)
    assert result.status == 1 and HINT not in result.errors
    assert time.monotonic() - begun < 60


def test_who_gives_up_says_that_the_same_command_continues(between, ztserve, here):
    between.meddle(meddling.stall_after(0), when=is_data)
    between.meddle(meddling.stall_after(100_000), when=is_first_data)
    result = ztserve("pull", between.endpoint + "/m", "--timeout", "1", folder=here)
    assert result.status == 1 and len(result.error_lines) == 1 and result.errors.endswith(f"; {HINT}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_pull_says_so_too(line, here, number):
    process = subprocess.Popen([PROGRAM, "pull", line.url + "/m"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (here / "m.zt.part.json").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (-number, "", f"ztserve: interrupted; {HINT}\n")


def test_control_c_ends_the_line_of_progress(line, here):
    screen = Screen(80)
    status = run_in_terminal(screen, [PROGRAM, "pull", line.url + "/m"], here, interrupt_when=r" \d\d %")
    assert status == -signal.SIGINT
    assert " %" in screen.rows[0] and screen.rows[-2] == f"ztserve: interrupted; {HINT}" and screen.rows[-1] == ""
