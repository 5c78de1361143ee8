"""docs/recipes.md is true: its lines of curl and its Python work as they stand."""

import hashlib
import re
import subprocess

import numpy as np
import pytest

from server_process import PROGRAM, TOP

PAGE = (TOP / "docs" / "recipes.md").read_text()
HERE = "http://127.0.0.1:8080"


def block(language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "models"
    (root / "org").mkdir(parents=True)
    for name in ("example.zt", "org/model.zt"):
        subprocess.run([PROGRAM.parent / "ztserve-example", root / name], check=True)
    return start_server(root, "--writable")


def test_the_lines_of_curl_work(server, tmp_path):
    script = "set -eo pipefail\n" + block("sh").replace(HERE, server.url)
    result = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "models" / "checked.zt").read_bytes() == (tmp_path / "example.zt").read_bytes()


def test_the_python_for_numpy_works(server):
    found = {}
    exec(block("python").replace(HERE, server.url), found)
    assert found["whole"].shape == (256, 64)
    assert np.array_equal(found["rows"], found["whole"][0:8, -16:])
    assert np.array_equal(found["half"], found["whole"][128:])


def test_the_lines_about_tokens_work(tmp_path, start_server, monkeypatch):
    section = PAGE.split("## With a token", 1)[1]
    lines, program = (re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)[1] for language in ("sh", "python"))
    (tmp_path / "models").mkdir()
    subprocess.run([PROGRAM.parent / "ztserve-example", tmp_path / "models" / "example.zt"], check=True)
    (tmp_path / "tokens").write_text(f"reader read {hashlib.sha256(b'secret').hexdigest()}\n")
    server = start_server(tmp_path / "models", "--tokens", tmp_path / "tokens")
    monkeypatch.setenv("ZTSERVE_TOKEN", "secret")
    shown = subprocess.run(["bash", "-euc", lines.replace(HERE, server.url)], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0 and '"name":"example"' in shown.stdout, shown
    found = {}
    exec(program.replace(HERE, server.url), found)
    assert found["manifest"]["name"] == "example"
