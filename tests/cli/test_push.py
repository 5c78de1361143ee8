"""push ends with the file's bytes on the server, whatever breaks on the way, and sends nothing that is there."""

import http.server
import json
import signal
import subprocess
import threading
import time
import urllib.request
from types import SimpleNamespace

import joined
import meddler as meddling
import pytest
from containers import dense, pattern, zt1
from relay import Relay
from server_process import PROGRAM, held_port

SIZE = 6_000_000
MODEL = zt1({"a": dense(pattern(SIZE, seed=21), digest="sha256")})
OTHER = zt1({"a": dense(pattern(5000, seed=22), digest="sha256")})


class Line(Relay):
    """A connection to a server that breaks after so many bytes of the client, or is slow, and counts them."""

    def __init__(self, port):
        self.limits, self.passed, self.pause_s = [], 0, 0
        self.gate = None  # a threading.Barrier at which pieces of uploads meet
        super().__init__("127.0.0.1", port)

    def passing(self, data, is_request, connection):
        if not is_request:
            return True
        if self.gate is not None and data.startswith(b"PATCH "):
            self.gate.wait()
        self.passed += len(data)
        if self.limits and connection.carried > self.limits[0]:
            self.limits.pop(0)
            return False
        time.sleep(self.pause_s)
        return True


@pytest.fixture
def line(server):
    made = Line(server.port)
    yield made
    made.close()


def kept(tmp_path):
    folder = tmp_path / "state/ztserve/push"
    return list(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("path, stored", [("/org/x", "org/x.zt"), ("/v1/models/org/x", "org/x.zt"), ("/org/", "org/m.zt"), ("/", "m.zt")])
def test_a_file_becomes_the_model_that_the_url_names(server, root, push, model, tmp_path, path, stored):
    result = push(model, server.url + path)
    assert (result.status, result.errors) == (0, "")
    assert (root / stored).read_bytes() == MODEL
    assert kept(tmp_path) == []


def test_identical_bytes_are_not_sent_again(line, push, model):
    assert push(model, line.url + "/m").status == 0
    line.passed = 0
    result = push(model, line.url + "/m")
    assert result.status == 0 and "already exists" in result.output
    assert line.passed < 5000


def test_another_model_is_replaced_unless_it_is_to_be_absent(server, root, push, model, tmp_path):
    other = tmp_path / "other.zt"
    other.write_bytes(OTHER)
    assert push(other, server.url + "/m").status == 0
    refused = push(model, server.url + "/m", "--if-absent")
    assert refused.status == 1 and "another model" in refused.errors
    assert (root / "m.zt").read_bytes() == OTHER
    assert push(model, server.url + "/m").status == 0
    assert (root / "m.zt").read_bytes() == MODEL
    assert push(model, server.url + "/m", "--if-absent").status == 0


def test_the_result_names_a_replaced_file_of_another_format(server, root, ztserve, push, model):
    other = model.with_suffix(".safetensors")
    assert ztserve("convert", model, other).status == 0
    assert "replaced" not in push(other, server.url + "/org/m").output
    result = push(model, server.url + "/org/m")
    assert result.lines[-1].endswith(f": is the model org/m, {len(MODEL)} bytes; replaced org/m.safetensors")
    assert [path.name for path in root.joinpath("org").iterdir()] == ["m.zt"]
    assert "replaced" not in push(model, server.url + "/org/m").output


PARTS = [pattern(4000, seed=23), pattern(3000, seed=24)]


@pytest.mark.parametrize("files, index", [(joined.files_with_index("s", PARTS), "s.safetensors.index.json"),
                                          (joined.files_with_variant_index("s", "fp16", PARTS), "s.fp16.safetensors.index.json")],
                         ids=["plain", "variant"])  # fmt: skip
def test_several_files_go_under_their_names_and_the_index_last(server, root, push, tmp_path, files, index):
    """Under the name of its parts, if it is that of a variant."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    index_first = sorted(files, key=lambda name: "index" not in name)
    result = push(*(tmp_path / name for name in index_first), server.url + "/team/")
    assert (result.status, result.errors) == (0, "") and "index" in result.lines[-1]
    wanted = {index if "index" in name else name: data for name, data in files.items()}
    assert {path.name: path.read_bytes() for path in (root / "team").iterdir()} == wanted


@pytest.fixture
def three(tmp_path):
    paths = [tmp_path / f"f{i}.zt" for i in range(3)]
    for i, path in enumerate(paths):
        path.write_bytes(zt1({"a": dense(pattern(5000 + i, seed=30 + i), digest="sha256")}))
    return paths


def test_several_files_go_side_by_side(line, root, push, three):
    line.gate = threading.Barrier(3, timeout=120)
    result = push(*three, line.url + "/", "--jobs", "3", "--progress", "json")
    assert result.status == 0 and not line.gate.broken
    assert sorted(text.split(":")[0] for text in result.lines) == sorted(map(str, three))
    assert [(root / path.name).read_bytes() for path in three] == [path.read_bytes() for path in three]
    told = json.loads(result.error_lines[-1])
    assert (told["event"], told["files"], told["bytes"]) == ("end", 3, sum(path.stat().st_size for path in three))


def test_one_job_sends_one_file_after_the_other(line, root, push, three):
    result = push(*three, line.url + "/", "--jobs", "1")
    assert [text.split(":")[0] for text in result.lines] == [*map(str, three)]


def test_files_of_one_name_do_not_replace_one_another(server, root, refused, model, tmp_path):
    (tmp_path / "below").mkdir()
    other = tmp_path / "below" / "m.safetensors"
    other.write_bytes(b"any")
    assert "both be the model m:" in refused("push", model, other, server.url + "/")
    assert list(root.glob("*.zt")) == []


def test_an_index_is_not_sent_after_a_part_that_was_refused(server, root, push, tmp_path):
    files = joined.files_with_index("s", [pattern(4000, seed=23), pattern(3000, seed=24)])
    damaged = min(name for name in files if "index" not in name)
    for name, data in files.items():
        (tmp_path / name).write_bytes(b"nonsense" * 100 if name == damaged else data)
    result = push(*(tmp_path / name for name in files), server.url + "/", "--jobs", "1")
    assert result.status == 1 and len(result.error_lines) == 1 and damaged in result.errors
    assert [path.name for path in root.iterdir() if "index" in path.name] == []


def test_connections_that_break_cost_little(line, root, push, model):
    line.limits = [10_000, 700_000, 1, 2_000_000, 300, 1_000_000]
    result = push(model, line.url + "/m")
    assert (result.status, result.errors) == (0, "")
    assert (root / "m.zt").read_bytes() == MODEL
    assert line.limits == []


def begin(line, model, environment, passed):
    """A push over a slow line, of which so many bytes have passed."""
    line.pause_s = 0.02
    command = [PROGRAM, "push", model, line.url + "/m"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while line.passed < passed and process.poll() is None:
        time.sleep(0.01)
    return process


def test_a_push_that_is_killed_goes_on_where_it_was(line, root, push, model, environment, tmp_path):
    process = begin(line, model, environment, 3_000_000)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(kept(tmp_path)) == 1
    line.pause_s, line.passed = 0, 0
    line.cut()
    result = push(model, line.url + "/m")
    assert (result.status, result.errors) == (0, "")
    assert (root / "m.zt").read_bytes() == MODEL
    assert "of them received earlier" in result.output
    assert line.passed < SIZE
    assert kept(tmp_path) == []


def test_a_restart_of_the_server_is_survived(start_server, root, line, server, push, model, environment):
    process = begin(line, model, environment, 3_000_000)
    server.kill()
    place = held_port(server.port)
    line.pause_s = 0
    again = start_server(root, "--writable", listen=f"127.0.0.1:{server.port}")
    place.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert (root / "m.zt").read_bytes() == MODEL
    assert again.process.poll() is None


def test_an_upload_that_another_request_holds_is_waited_for(server, root, push, model, environment):
    between = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    sent = between.meddle(meddling.hang, when=lambda request: request.method == "PATCH", times=1)
    first = subprocess.Popen([str(PROGRAM), "push", model, between.endpoint + "/m"], env=environment, stdout=subprocess.PIPE)
    while not sent.used:
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.communicate()
    held = between.meddle(meddling.reply(423), when=lambda request: request.method == "HEAD" and "/resumable/" in request.path, times=2)
    result = push(model, between.endpoint + "/m")
    between.close()
    assert (result.status, result.errors, held.used) == (0, "", 2)
    assert (root / "m.zt").read_bytes() == MODEL


def test_a_file_that_two_processes_push_is_sent_once(line, root, push, model, environment):
    first = begin(line, model, environment, 1_000_000)
    second = push(model, line.url + "/m")
    assert (second.status, second.errors) == (0, "")
    assert first.communicate(timeout=60)[1] == "" and first.returncode == 0
    assert (root / "m.zt").read_bytes() == MODEL
    assert line.passed < 1.5 * SIZE


def test_a_file_that_changes_while_it_is_sent_is_not_published(line, root, model, environment, tmp_path):
    process = begin(line, model, environment, 3_000_000)
    with model.open("r+b") as file:
        file.seek(1000)
        file.write(b"other bytes")
    line.pause_s = 0
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and len(errors.splitlines()) == 1 and "was changed while it was sent" in errors
    assert not (root / "m.zt").exists()
    with urllib.request.urlopen(line.url + "/v1/uploads") as answer:
        assert json.load(answer)["uploads"] == []
    assert kept(tmp_path) == []


def test_what_is_no_model_is_refused_with_the_servers_reason(server, root, push, tmp_path):
    path = tmp_path / "x.zt"
    path.write_bytes(b"nonsense" * 100)
    result = push(path, server.url + "/x")
    assert result.status == 1 and "422" in result.errors and len(result.error_lines) == 1
    assert kept(tmp_path) == []


def test_what_stands_in_the_way_of_the_model_is_named(server, root, push, tmp_path):
    (root / "x.zt").write_bytes(OTHER)
    (root / "x.npz").write_bytes(b"")
    path = tmp_path / "x.safetensors"
    header = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}   '
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"1234")
    result = push(path, server.url + "/x")
    assert result.status == 1 and len(result.error_lines) == 1
    assert "the server refused the request (409: " in result.errors and "x.npz" in result.errors
    assert (root / "x.zt").read_bytes() == OTHER


def test_a_server_that_takes_no_models_says_so(start_server, root, push, model):
    result = push(model, start_server(root).url + "/m")
    assert result.status == 1 and "403" in result.errors


@pytest.mark.parametrize("path", ["/files/", "/files/m.zt"])
def test_a_url_of_files_is_told_from_a_models(server, root, push, model, path):
    result = push(model, server.url + path)
    assert result.status == 1 and len(result.error_lines) == 1 and "/v1/models/NAME" in result.errors
    assert not (root / "files").exists()


def test_a_server_that_is_none_of_models_is_told(push, model, tmp_path):
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=other.serve_forever, args=(0.02,), daemon=True).start()
    result = push(model, f"http://127.0.0.1:{other.server_address[1]}/m")
    other.shutdown()
    other.server_close()
    assert result.status == 1 and len(result.error_lines) == 1 and "resumable uploads (501)" in result.errors


@pytest.mark.parametrize("arguments", [[], ["m.zt"], ["m.zt", "x"], ["a.zt", "b.zt", "http://h/x"], ["a.zt", "http://h/x", "--jobs", "0"]])
def test_wrong_usage_is_told(refused, arguments):
    refused("push", *arguments)
