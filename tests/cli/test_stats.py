"""ztserve stats: a table for people, and the server's JSON for programs."""

import json
import subprocess

import numpy
import pytest

from server_process import PROGRAM, ServerProcess

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
