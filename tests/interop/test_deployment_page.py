"""docs/deployment.md is true: its lines about TLS and tokens work as they stand."""

import re
import subprocess

import pytest
import requests

from server_process import PROGRAM, TOP

PAGE = (TOP / "docs" / "deployment.md").read_text()


def lines_of(heading):
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1].strip().splitlines()


def bash(script, folder):
    result = subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def root(tmp_path):
    for name in ("acme", "other"):
        (tmp_path / "models" / name).mkdir(parents=True)
        subprocess.run([PROGRAM.parent / "ztserve-example", tmp_path / "models" / name / "model.zt"], check=True)
    return tmp_path / "models"


def test_the_lines_about_tokens_work(root, tmp_path, start_server):
    make, add, use = lines_of("Tokens")
    # What it writes decides what the server knows, so the server starts in between.
    token = bash(f"{make}\n{add}\nprintf %s $token", tmp_path)
    server = start_server(root, "--tokens", tmp_path / "tokens")
    assert requests.get(f"{server.url}/v1/models").status_code == 401
    listing = bash(f"token={token}\n{use.replace('https://models.example.org', server.url)}", tmp_path)
    assert '"acme/model"' in listing and '"other/model"' not in listing


def test_the_lines_about_tls_work(root, tmp_path, start_server):
    serve, ask = lines_of("TLS")
    bash(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=models.example.org"
        " -addext subjectAltName=DNS:models.example.org -keyout models.key -out models.pem; cp models.pem ca.pem",
        tmp_path,
    )
    arguments = serve.split("--listen 0.0.0.0:8443 ")[1].split()
    server = start_server(root, *[tmp_path / text if "." in text else text for text in arguments])
    resolve = f"curl --resolve models.example.org:{server.port}:127.0.0.1 --fail-with-body"
    assert '"acme/model"' in bash(ask.replace("curl", resolve).replace(":8443/", f":{server.port}/"), tmp_path)
