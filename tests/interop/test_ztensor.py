"""What the real ztensor packages write is served byte for byte, and what a PUT stored they read back.

Five releases write five different formats. Each is installed into a virtual environment of its own, made with the Python
that runs the tests (the packages have wheels for CPython 3.11 to 3.13).
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from server_process import PROGRAM

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(os.environ.get("ZT_INTEROP_VENVS", HERE.parent.parent / "build" / "interop"))
VERIFICATION_TIMEOUT_S = 60
# Written into each environment once it is complete; another text here makes them anew.
REQUIREMENTS = ["numpy==2.2.6", "ml_dtypes==0.5.1"]

CLIENTS = {
    "0.1.4": ("client_0_1.py", "0.1.0"),
    "1.0.1": ("client_1_0.py", "1.0"),
    "1.1.1": ("client_1_0.py", "1.1.0"),
    "1.2.3": ("client_1_2.py", "1.2.0"),
    "2.1.2": ("client_2.py", "2"),
}


def python_of(release):
    """The interpreter of the environment that has this release, made if need be."""
    wanted = " ".join([f"ztensor=={release}", *REQUIREMENTS, sys.version.split()[0]])
    folder = ENVIRONMENTS / release
    marker = folder / "complete"
    python = folder / "bin" / "python"
    if not marker.is_file() or marker.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"ztensor=={release}", *REQUIREMENTS], check=True)
        marker.write_text(wanted)
    return python


def run_client(release, *arguments):
    script = HERE / CLIENTS[release][0]
    result = subprocess.run([python_of(release), script, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module", params=CLIENTS)
def release(request):
    return request.param


@pytest.fixture(scope="module")
def written(release, tmp_path_factory):
    """A folder of files that this release wrote, each with what was put into it."""
    folder = tmp_path_factory.mktemp("written")
    run_client(release, "write", folder)
    files = sorted(folder.glob("*.zt"))
    assert files
    return {path: json.loads(Path(f"{path}.expected.json").read_text()) for path in files}


def component_url(server, model, name, role):
    return f"{server.url}/v1/models/{model}/objects/{quote(name, safe='')}/{role}"


def test_manifest_tells_version_shapes_and_components(release, written, start_server):
    server = start_server(next(iter(written)).parent)
    for path, expected in written.items():
        manifest = requests.get(f"{server.url}/v1/models/{path.stem}").json()
        assert manifest["source"]["format"] == "zt"
        assert manifest["source"]["version"] == CLIENTS[release][1]
        shown = {
            name: {"shape": shown["shape"], "components": sorted(shown["components"])}
            for name, shown in manifest["objects"].items()
        }
        assert shown == {
            name: {"shape": wanted["shape"], "components": sorted(wanted["components"])}
            for name, wanted in expected.items()
        }


def test_every_component_is_served_byte_exact(written, start_server):
    server = start_server(next(iter(written)).parent)
    for path, expected in written.items():
        for name, wanted in expected.items():
            for role, digest in wanted["components"].items():
                url = component_url(server, path.stem, name, role)
                answer = requests.get(url)
                assert answer.status_code == 200, answer.text
                assert hashlib.sha256(answer.content).hexdigest() == digest, url
                half = len(answer.content) // 2
                tail = requests.get(url, headers={"Range": f"bytes={half}-"})
                if len(answer.content) > 0:
                    assert tail.status_code == 206
                    assert tail.content == answer.content[half:]


def wait_until_verified(server, model):
    url = f"{server.url}/v1/models/{model}/verification"
    requests.post(url)
    deadline = time.monotonic() + VERIFICATION_TIMEOUT_S
    while (report := requests.get(url).json())["state"] in ("unverified", "running"):
        assert time.monotonic() < deadline, report
        time.sleep(0.02)
    return report


def test_verification_and_the_command_line_find_them_good(written, start_server):
    server = start_server(next(iter(written)).parent)
    for path in written:
        result = subprocess.run([PROGRAM, "verify", path], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        report = wait_until_verified(server, path.stem)
        assert report["state"] == "verified"
        assert report["failures"] == []


def test_canonical_check_agrees_with_the_canonical_writer(release, written):
    if release != "2.1.2":
        pytest.skip("only zTensor 2 has a canonical form")
    outcome = {
        path.stem: subprocess.run([PROGRAM, "verify", "--canonical", path], capture_output=True).returncode
        for path in written
    }
    assert outcome["v2-canonical"] == 0
    assert outcome["v2-seekable"] == 1


def test_uploaded_files_are_stored_as_they_were_and_read_back(release, written, start_server, tmp_path):
    root = tmp_path / "models"
    root.mkdir()
    server = start_server(root, "--writable")
    for path, expected in written.items():
        data = path.read_bytes()
        answer = requests.put(f"{server.url}/v1/models/stored%2F{path.stem}", data=data)
        assert answer.status_code == 201, answer.text
        assert requests.get(f"{server.url}/files/stored/{path.stem}.zt").content == data
        read_back = json.loads(run_client(release, "read", root / "stored" / path.name))
        dense = {name: wanted["components"] for name, wanted in expected.items() if list(wanted["components"]) == ["data"]}
        assert read_back == {name: components["data"] for name, components in dense.items()}
