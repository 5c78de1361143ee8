"""ztserve stats: a table for people, and the server's JSON for programs."""

import hashlib
import json
import subprocess
import urllib.request
from types import SimpleNamespace

import meddler as meddling
import numpy
import pytest

from containers import Component, Object, dense, zt1
from server_process import PROGRAM, ServerProcess
from wire import eventually

RANDOM = numpy.random.default_rng(11)
WEIGHTS = RANDOM.normal(0, 1, (300, 400)).astype(numpy.float32)
ARRAYS = {
    "weights": WEIGHTS, "turned": numpy.asfortranarray(WEIGHTS[:9]), "swapped": WEIGHTS[:5].astype(">f4"), "one": numpy.array(3),
    "pairs": numpy.zeros(3, numpy.complex64), "nothing": numpy.full(4, numpy.nan), "empty": numpy.zeros((0, 2)),
}  # fmt: skip


def run(*arguments, locale="C.UTF-8"):
    return subprocess.run([PROGRAM, "stats", *arguments], capture_output=True, text=True, env={"LC_ALL": locale})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stats")
    numpy.savez(folder / "plain.npz", **ARRAYS)
    numpy.savez_compressed(folder / "deflated.npz", **ARRAYS)
    return folder


@pytest.mark.parametrize("name", ["plain", "deflated"])
def test_json_is_what_the_server_sends(files, name):
    shown = run("--json", files / f"{name}.npz").stdout
    made = json.loads(shown)
    assert list(made) == sorted(ARRAYS) and made["pairs"] is None
    server = ServerProcess(files)
    for key in ARRAYS.keys() - {"pairs"}:
        sent = subprocess.run(["curl", "-s", f"{server.url}/v1/models/{name}/objects/{key}/data/statistics"], capture_output=True)
        assert made[key] == json.loads(sent.stdout)
    assert shown[-2:] == "}\n"
    assert server.stop() == 0


def test_the_table_has_a_line_for_each_tensor_and_bars_of_the_locale(files):
    shown = run(files / "plain.npz").stdout.splitlines()
    lines = {line.split()[0]: line for line in shown[1:]}
    assert lines.keys() == ARRAYS.keys()
    assert lines["weights"].split()[1:7] == [
        "f32", "[300,400]", f"{WEIGHTS.min():.4g}", f"{WEIGHTS.max():.4g}", f"{WEIGHTS.mean(dtype=float):.4g}", f"{WEIGHTS.std(dtype=float):.4g}",
    ]  # fmt: skip
    assert "█" in lines["weights"] and lines["pairs"].split()[3:] == ["-"]
    assert run(files / "plain.npz", locale="C").stdout.isascii()


def test_columns_are_as_wide_as_what_they_hold(tmp_path):
    data = {"a": Object([4], {"data": Component(bytes(4), "u8", "f8_e4m3fnuz")}),
            "b": dense(numpy.array([-(2**63), 2**63 - 1], "<i8").tobytes(), "i64", [2]),
            "c": dense(numpy.array([0, 2**64 - 1], "<u8").tobytes(), "u64", [2]),
            "d": dense(numpy.array([-1.7e308, 1.7e308]).tobytes(), "f64", [2]),
            "e": dense(numpy.array([-1.234e-305] * 2).tobytes(), "f64", [2])}  # fmt: skip
    (tmp_path / "m.zt").write_bytes(zt1(data))
    title, *rows = run(tmp_path / "m.zt", locale="C").stdout.splitlines()
    assert [row.split()[1] for row in rows] == ["f8_e4m3fnuz", "i64", "u64", "f64", "f64"]
    assert rows[1].split()[3:5] == [str(-(2**63)), str(2**63 - 1)] and rows[2].split()[4] == str(2**64 - 1)
    for name in ("MIN", "MAX", "MEAN", "STD", "ZERO", "NOT FINITE"):
        end = title.index(name) + len(name)
        assert all(row[end - 1] != " " and row[end] == " " for row in rows), name
    assert rows[3].split()[6] == "1.7e+308" and rows[4].split()[3] == "-1.234e-305"


def test_many_small_tensors_around_a_large_one(tmp_path):
    """Small ones are made side by side, in batches, and shown in their order; one that is damaged spoils no other."""
    arrays = {f"t{at:03}": RANDOM.normal(at, 1, (at % 7, 50)).astype(numpy.float32) for at in range(150)}
    arrays["t070"] = RANDOM.normal(70, 1, (1 << 21) + 5)
    arrays["t071"] = numpy.zeros(3, numpy.complex64)
    arrays["t090"] = RANDOM.normal(90, 1, (90, 500))
    numpy.savez_compressed(tmp_path / "many.npz", **arrays)
    packed = bytearray((tmp_path / "many.npz").read_bytes())
    start = packed.index(b"t090.npy") + 99999
    packed[start : start + 200] = b"\xff" * 200
    (tmp_path / "many.npz").write_bytes(packed)
    shown = run("--json", tmp_path / "many.npz")
    made = json.loads(shown.stdout)
    assert list(made) == sorted(arrays) and shown.returncode == 1 and 'object "t090"' in shown.stderr
    assert [key for key in made if made[key] is None] == ["t071", "t090"]
    for key in arrays.keys() - {"t071", "t090"}:
        assert made[key]["shape"] == list(arrays[key].shape)
        assert made[key]["mean"] == (pytest.approx(arrays[key].mean(dtype=float)) if arrays[key].size else None)
    rows = run(tmp_path / "many.npz").stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == sorted(arrays)


def test_several_files(files):
    both = [files / "plain.npz", files / "deflated.npz"]
    assert [list(made) for made in json.loads(run("--json", *both).stdout)] == [sorted(ARRAYS)] * 2
    shown = run(*both).stdout
    assert shown.startswith(f"{both[0]}:\n") and f"\n\n{both[1]}:\n" in shown


def test_what_is_bad(files, tmp_path):
    assert run().returncode == 2
    assert run("--nothing", files / "plain.npz").returncode == 2
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    both = run("--json", tmp_path / "bad.npz", files / "plain.npz")
    assert both.returncode == 1 and json.loads(both.stdout)[0] is None and "bad.npz" in both.stderr
    assert both.stdout[-2:] == "]\n" and run("--json", tmp_path / "bad.npz").stdout == "null\n"
    damaged = bytearray((files / "deflated.npz").read_bytes())
    start = damaged.index(b"weights.npy") + 200
    damaged[start : start + 5000] = b"\xff" * 5000
    (tmp_path / "damaged.npz").write_bytes(damaged)
    made = run(tmp_path / "damaged.npz")
    assert made.returncode == 1 and 'object "weights"' in made.stderr
    assert "one " in made.stdout


@pytest.fixture(scope="module")
def folder(files):
    folder = files.parent / "folder"
    (folder / "below").mkdir(parents=True)
    numpy.save(folder / "b.npy", WEIGHTS)
    numpy.save(folder / "below/a.npy", WEIGHTS[:2])
    (folder / "weights.bin").write_bytes(b"no model" * 100)
    return folder


def test_a_folder_is_all_models_below_it(folder):
    alone = [json.loads(run("--json", folder / name).stdout) for name in ("b.npy", "below/a.npy")]
    assert json.loads(run("--json", folder).stdout) == alone
    made = run(folder)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith(f"{folder}/b.npy:\n") and f"\n\n{folder}/below/a.npy:\n" in made.stdout
    (folder / "empty").mkdir()
    assert run("--json", folder / "empty").stdout == "[]\n"


def test_one_file_below_a_folder_is_still_an_array(folder):
    assert [list(one) for one in json.loads(run("--json", folder / "below").stdout)] == [["data"]]


def test_a_url_is_asked_with_a_token(start_server, folder, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"reader read {hashlib.sha256(b'a-long-token-of-a-reader').hexdigest()}\n")
    (tmp_path / "mine").write_text("a-long-token-of-a-reader\n")
    server = start_server(folder, "--tokens", tokens)
    refused = run("--json", f"{server.url}/below/a")
    assert refused.returncode == 1 and refused.stdout == "null\n" and "--token-file" in refused.stderr
    made = run("--json", f"{server.url}/below/a", "--token-file", tmp_path / "mine")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == run("--json", folder / "below/a.npy").stdout


def test_progress_counts_the_bytes_of_every_file(files, folder):
    made = run("--json", "--progress", "json", folder)
    told = [json.loads(line) for line in made.stderr.splitlines()]
    assert [(one["name"], one["bytes"], one["total_bytes"]) for one in told if one["event"] == "end"] == [
        (f"{folder}/b.npy", WEIGHTS.nbytes, WEIGHTS.nbytes), (f"{folder}/below/a.npy", WEIGHTS[:2].nbytes, WEIGHTS[:2].nbytes),
    ]  # fmt: skip
    assert run("-q", "--progress", "json", files / "plain.npz").stderr == ""


# --- a server computes them ---


@pytest.fixture
def between(start_server, files):
    made = meddling.Meddler(SimpleNamespace(endpoint=start_server(files).url))
    yield made
    made.close()


@pytest.mark.parametrize("name", ["plain", "deflated"])
def test_a_server_computes_the_statistics_of_its_models(between, files, name):
    large = numpy.random.default_rng(3).normal(0, 1, 500_000)
    numpy.savez(files / f"{name}-large.npz", large=large, **ARRAYS)
    url = f"{between.endpoint}/{name}-large"
    assert eventually(lambda: run(url).returncode == 0)
    counted = between.counting()
    for arguments in ((), ("--json",)):
        there = run(*arguments, url)
        here = run(*arguments, files / f"{name}-large.npz")
        assert (there.returncode, there.stderr) == (0, "")
        assert there.stdout == here.stdout
    assert any("/statistics?bins=" in one.request.target for one in counted.seen)
    assert sum(one.sent_bytes for one in counted.seen if "/files/" in one.request.target) < large.nbytes / 2


@pytest.mark.parametrize("status, said", [(404, 1), (413, len(ARRAYS) - 1)])
def test_where_a_server_computes_nothing_the_tensors_are_fetched(between, files, status, said):
    """With one line about a server without statistics, or one for each tensor that it refuses."""
    refusal = b'{"code": "x", "detail": "a reason"}'
    between.meddle(meddling.reply(status, refusal), when=lambda request: "/statistics" in request.target)
    result = run(f"{between.endpoint}/plain")
    assert (result.returncode, result.stdout) == (0, run(files / "plain.npz").stdout)
    lines = result.stderr.splitlines()
    assert len(lines) == said and all("the tensor is fetched" in line and "a reason" in line for line in lines)


def test_statistics_of_another_tensor_are_not_believed(between, files):
    with urllib.request.urlopen(f"{between.endpoint}/v1/models/plain/objects/one/data/statistics?bins=16") as answer:
        wrong = answer.read()
    between.meddle(meddling.reply(200, wrong), when=lambda request: "/statistics" in request.target)
    result = run(f"{between.endpoint}/plain")
    assert result.stdout == run(files / "plain.npz").stdout
    assert "is not the tensor's statistics" in result.stderr


@pytest.mark.parametrize("form", [lambda text: b"\n" + text, lambda text: json.dumps(json.loads(text), indent=1).encode() + b"\n\n"])
def test_statistics_in_several_lines_are_shown_whole(between, files, form):
    between.meddle(
        meddling.changed(lambda true: meddling.replace(true, body=form(true.body))), when=lambda request: "/statistics" in request.target
    )
    result = run("--json", f"{between.endpoint}/plain")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == json.loads(run("--json", files / "plain.npz").stdout)


def test_the_tensors_of_a_files_url_are_fetched_with_a_word(between, files):
    result = run(f"{between.endpoint}/files/plain.npz")
    assert (result.returncode, result.stdout) == (0, run(files / "plain.npz").stdout)
    assert "the URL of a file, not of a model" in result.stderr
    assert run("-q", f"{between.endpoint}/files/plain.npz").stderr == ""
