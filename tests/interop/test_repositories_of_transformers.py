"""A folder that save_pretrained wrote is pushed and pulled, both interrupted, and loaded by from_pretrained on the other side."""

import json
import os
import subprocess
import time
from types import SimpleNamespace

import meddler as meddling
import pytest

from environments import is_available, run_client
from server_process import PROGRAM

RELEASE = "transformers-5.23.0"
LIMIT_S = 120


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    if not is_available(RELEASE):
        pytest.skip(f"{RELEASE} cannot be installed here")
    folder = tmp_path_factory.mktemp("written") / "tiny"
    run_client(RELEASE, "write", folder, script="client_repository.py")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    assert {"config.json", "tokenizer.json", "model.safetensors.index.json"} <= {path.name for path in folder.iterdir()}
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interrupt(command, rule, environment):
    """Kills the command once the rule has held one of its requests up."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + LIMIT_S
    while rule.used == 0:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()


def test_transformers_loads_what_was_pushed_and_pulled(written, start_server, tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "root").mkdir()
    between = meddling.Meddler(SimpleNamespace(endpoint=start_server(tmp_path / "root", "--writable").url))
    push = [PROGRAM, "push", written, between.endpoint + "/acme/tiny", "--jobs", "1"]
    pull = [PROGRAM, "pull", between.endpoint + "/acme/tiny", "-o", tmp_path / "copy", "--jobs", "1"]

    large = 500_000
    held = between.meddle(meddling.hang, when=lambda request: request.method == "PATCH" and len(request.body) > large)
    interrupt(push, held, environment)
    between.stop(held)
    assert subprocess.run(push, env=environment, check=True, capture_output=True, text=True).stderr == ""
    assert contents(tmp_path / "root/acme/tiny") == contents(written)

    held = between.meddle(
        meddling.stall_after(200_000), when=lambda request: "00002-of" in request.path and request.range is not None and request.range[1] > 100
    )
    interrupt(pull, held, environment)
    between.stop(held)
    assert subprocess.run(pull, env=environment, check=True, capture_output=True, text=True).stderr == ""
    between.close()
    assert contents(tmp_path / "copy") == contents(written)
    assert json.loads(run_client(RELEASE, "load", tmp_path / "copy", script="client_repository.py")) == json.loads(
        run_client(RELEASE, "load", written, script="client_repository.py")
    )
