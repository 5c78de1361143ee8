"""deploy/compose: the file fits the image, gives the container nothing that it does not need, and holds settings that are known."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

from server_process import PROGRAM, TOP

FILE = TOP / "deploy" / "compose" / "compose.yaml"
DOCKERFILE = (TOP / "Dockerfile").read_text()
# Those of the Compose Specification that are used; anything else is a typing error.
KEYS = {
    "image", "build", "command", "restart", "ports", "environment", "volumes", "tmpfs", "user", "read_only", "cap_drop",
    "security_opt", "stop_grace_period", "healthcheck", "mem_limit", "pids_limit",
}  # fmt: skip


@pytest.fixture
def service():
    stated = yaml.safe_load(FILE.read_text())
    assert set(stated) == {"services"} and set(stated["services"]) == {"ztserve"}
    return stated["services"]["ztserve"]


def test_keys_are_those_of_the_specification(service):
    assert set(service) <= KEYS
    assert set(service["healthcheck"]) == {"test", "interval", "timeout", "start_period"}
    assert all(re.fullmatch(r"\d+s", service["healthcheck"][key]) for key in ("interval", "timeout", "start_period"))
    assert [set(volume) for volume in service["volumes"]] == [{"type", "source", "target", "read_only"}]


def test_the_container_has_nothing_that_it_does_not_need(service):
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"][0]["read_only"] is True
    # In the open, it would need tokens.
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_file_fits_the_image(service):
    assert service["user"] == re.search(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)[1]
    program = json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)[1])
    assert service["healthcheck"]["test"][:2] == ["CMD", *program]
    assert service["command"] == json.loads(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])
    assert (FILE.parent / service["build"]).resolve() == TOP


def test_settings_are_known_and_agree_with_the_container(service, tmp_path):
    settings = service["environment"]
    (tmp_path / "empty.json").write_text("{}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZTSERVE_")}
    command = [PROGRAM, "check-config", tmp_path / "empty.json"]
    checked = subprocess.run(command, capture_output=True, text=True, env=environment | settings)
    # The files of the container are not here.
    said = [line for line in checked.stderr.splitlines() if not line.endswith("it is not checked")]
    assert (checked.returncode, said) == (0, [])
    assert settings["ZTSERVE_ROOT"] == service["volumes"][0]["target"]
    assert settings["ZTSERVE_STATE_DIR"] == service["tmpfs"][0].split(":")[0]
    assert int(settings["ZTSERVE_DRAIN_S"]) < int(service["stop_grace_period"].removesuffix("s"))
    assert settings["ZTSERVE_LISTEN"].rsplit(":", 1)[1] == service["ports"][0].rsplit(":", 1)[1]


def compose_command():
    for command in (["docker", "compose"], ["docker-compose"], ["podman-compose"]):
        if shutil.which(command[0]) and subprocess.run([*command, "version"], capture_output=True).returncode == 0:
            return command
    return None


def test_compose_accepts_the_file(tmp_path):
    command = compose_command()
    if command is None:
        pytest.skip("skipped: no Compose is installed")
    result = subprocess.run(
        [*command, "-f", FILE, "config"], capture_output=True, text=True, env=os.environ | {"MODELS": str(tmp_path)}
    )
    assert result.returncode == 0, result.stderr
