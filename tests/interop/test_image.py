"""The container image: built as `make image` does, inspected, and started read-only, without capabilities, as its user."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from bare_root import has_suite, make_root, missing_for_roots, os_release, own_mounts, run_checked
from sbom_rules import broken_rules
from server_process import SERVING, TOP

# The program is built once more, inside.
pytestmark = pytest.mark.timeout(900)
HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
BASE = "docker.io/library/debian:trixie-slim"
NAME = "localhost/ztserve:test"
USER = "65532:65532"


class Engine:
    """buildah with a store and settings of its own, and images made without a registry."""

    def __init__(self, folder):
        self.folder = folder
        storage = folder / "storage.conf"
        storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n')
        self.environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(storage),
            "BUILDAH_ISOLATION": "chroot",
            "ZT_IMAGE_ENGINE": "buildah",
            "ZT_IMAGE": NAME,
            "ZT_BUILD_DIR": str(folder),
        }

        # In a chroot, whose root is no mount point, the engine gets the same files at a root that is one.
        self.wrapper = []
        if "private" not in own_mounts():
            root = folder / "root"
            root.mkdir()
            self.wrapper = [*own_mounts(), "sh", "-c", 'mount --rbind / "$0" && exec chroot "$0" "$@"', str(root)]

    def call(self, *words):
        return run_checked([*self.wrapper, *map(str, words)], env=self.environment)

    def run(self, *words):
        return self.call("buildah", *words)

    def make_base(self):
        """The image that the Dockerfile begins with: its release of Debian where it can be had, else that of this machine."""
        suite = "trixie" if has_suite("trixie") else os_release()["VERSION_CODENAME"]
        make_root(self.folder / "base.tar", suite, self.folder)
        container = self.run("from", "scratch").strip()
        self.run("add", container, self.folder / "base.tar", "/")
        self.run("commit", "--rm", container, BASE)
        (self.folder / "base.tar").unlink()

    def mounted(self):
        """The image's files, in a folder that may be written to."""
        container = self.run("from", "--pull-never", NAME).strip()
        return Path(self.run("mount", container).strip())


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    reason = "buildah is not installed" if shutil.which("buildah") is None else missing_for_roots()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("engine")
    engine = Engine(folder)
    engine.make_base()
    engine.call(TOP / "deploy/image.sh", "--network", "host")
    yield engine
    engine.run("rm", "--all")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(engine):
    return engine.mounted()


@pytest.fixture(scope="module")
def configuration(engine):
    return json.loads(engine.run("inspect", "--type", "image", NAME))["Docker"]["config"]


@pytest.fixture
def models(tmp_path):
    for folder in (tmp_path, tmp_path.parent):
        folder.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    run_checked([BUILD / "ztserve-example", models / "example.zt"])
    return models


def locked_command(image, models, configuration, words, *variables):
    environment = [*configuration["Env"], *variables]
    launcher = [sys.executable, HERE / "locked_down.py", image, models, configuration["User"], *environment, "--", *words]
    return [*own_mounts(), *map(str, launcher)]


def status_of(process):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


def test_user_command_and_labels(configuration):
    assert configuration["User"] == USER
    assert (configuration["Entrypoint"], configuration["Cmd"]) == (["/usr/bin/ztserve"], ["serve"])
    assert {"ZTSERVE_ROOT=/models", "PORT=8080", "ZTSERVE_LISTEN=0.0.0.0:$PORT"} <= set(configuration["Env"])
    assert list(configuration["ExposedPorts"]) == ["8080/tcp"]
    version = run_checked([os.environ.get("ZTSERVE", BUILD / "ztserve"), "--version"]).strip()
    labels = configuration["Labels"]
    assert labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.title"] == "ztserve"
    assert configuration["Healthcheck"]["Test"] == ["CMD", "/usr/bin/ztserve", "healthcheck"]


def test_it_has_no_shell_and_only_its_own_folders_belong_to_its_user(image):
    programs = {path.name for path in (image / "usr/bin").iterdir()}
    assert programs == {"ztserve"}
    user = int(USER.split(":")[0])
    owned = {str(path.relative_to(image)) for path in image.rglob("*") if path.lstat().st_uid == user}
    assert owned == {"models", "var/lib/ztserve"}
    special = [path for path in image.rglob("*") if path.is_file() and path.lstat().st_mode & 0o6000]
    assert special == []


def test_it_is_small(image):
    size = sum(path.lstat().st_size for path in image.rglob("*") if not path.is_symlink())
    assert size < 48 << 20


def test_it_serves_read_only_without_capabilities_and_stops_with_0(image, models, configuration):
    words = configuration["Entrypoint"] + configuration["Cmd"]
    command = locked_command(image, models, configuration, words, "ZTSERVE_LISTEN=127.0.0.1:0")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    match = SERVING.match(process.stdout.readline().rstrip("\n"))
    if match is None:
        process.kill()
        raise AssertionError(process.communicate()[1])
    try:
        address = f"{match.group(2)}:{match.group(3)}"
        status = status_of(process)
        assert set(status["Uid"]) == set(status["Gid"]) == {"65532"}
        assert {status[name][0] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Groups"]) == (["1"], [])
        assert requests.get(f"http://{address}/healthz").status_code == 200
        assert [shown["name"] for shown in requests.get(f"http://{address}/v1/models").json()["models"]] == ["example"]
        check = configuration["Healthcheck"]["Test"][1:]
        run_checked(locked_command(image, models, configuration, check, f"ZTSERVE_LISTEN=0.0.0.0:{match.group(3)}"))
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log


def test_the_health_check_fails_where_nothing_answers(image, models, configuration):
    check = configuration["Healthcheck"]["Test"][1:]
    result = subprocess.run(locked_command(image, models, configuration, check, "ZTSERVE_LISTEN=127.0.0.1:1"))
    assert result.returncode == 1


def test_the_sbom_lists_what_is_in_the_image(engine, image):
    sbom = json.loads((engine.folder / "ztserve-image.spdx.json").read_text())
    assert broken_rules(sbom) == []
    assert (image / "usr/share/doc/ztserve/sbom.spdx.json").read_text() == (engine.folder / "ztserve-image.spdx.json").read_text()
    listed = {package["name"] for package in sbom["packages"]}
    assert listed == {path.name for path in (image / "var/lib/dpkg/status.d").iterdir()} | {"ztserve"}
    # Every shared library of the image is of a package that is listed.
    libraries = [path for path in image.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    assert len(libraries) >= 15
    assert {"libc6", "libzstd1", "zlib1g"} <= listed


def run_without(tmp_path, *programs):
    """Runs deploy/image.sh where only these programs exist."""
    for program in ("bash", "dirname", "sed", "git", *programs):
        if not (tmp_path / program).exists():
            (tmp_path / program).symlink_to(shutil.which(program))
    command = [TOP / "deploy/image.sh"]
    return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)


def test_one_line_says_that_there_is_no_engine(tmp_path):
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    result = run_without(tmp_path, "env")
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert "docker" in result.stderr and "podman" in result.stderr and "buildah" in result.stderr
