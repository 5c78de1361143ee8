"""The Debian package: what is in it, and its life in a bare Debian: installed, used, upgraded, removed and purged."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import requests

from bare_root import BareRoot, missing_for_roots, os_release, run_checked
from server_process import SERVING, TOP

# Builds the program once more, as `make package` does.
pytestmark = pytest.mark.timeout(900)
BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
STATE_OF_PACKAGES = ("/var/lib/dpkg", "/var/lib/apt", "/var/cache", "/var/log", "/proc", "/run", "/tmp")
# The files of users change when the user of the service is added, which stays; their old forms appear then.
OLD_FORMS = {f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")}
# Writes down what it is asked to do.
SYSTEMCTL = """#!/bin/sh
echo "$@" >>/var/cache/systemctl.log
case "$*" in *is-enabled*) echo enabled ;; esac
"""
MODELS = "/var/lib/ztserve/models"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, as `make package` makes it."""
    if shutil.which("dpkg-shlibdeps") is None:
        pytest.skip("dpkg-dev is not installed")
    folder = tmp_path_factory.mktemp("package")
    shown = run_checked([TOP / "deploy/package.sh"], env={**os.environ, "ZT_BUILD_DIR": str(folder)})
    return Path(shown.splitlines()[-1])


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    run_checked(["dpkg-deb", "-R", package, folder])
    return folder


@pytest.fixture(scope="module")
def older(unpacked, tmp_path_factory):
    """The same package with a lower version, and a file that the newer one no longer has."""
    folder = tmp_path_factory.mktemp("older")
    tree = folder / "tree"
    shutil.copytree(unpacked, tree, symlinks=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 0.0.1-1", control.read_text(), flags=re.MULTILINE))
    (tree / "usr/share/doc/ztserve/OLD").write_text("no longer there\n")
    run_checked(["dpkg-deb", "--root-owner-group", "-b", tree, folder / "ztserve_old.deb"])
    return folder / "ztserve_old.deb"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    reason = missing_for_roots()
    if reason is not None:
        pytest.skip(reason)
    work = tmp_path_factory.mktemp("bare")
    # The user of the service must get to its files.
    for folder in (work, work.parent):
        folder.chmod(0o755)
    root = BareRoot(work / "root", os_release()["VERSION_CODENAME"], work)
    root.run("apt-get", "-q", "update")
    yield root
    shutil.rmtree(work / "root")


def field(package, name):
    return run_checked(["dpkg-deb", "-f", package, name]).strip()


def test_fields_and_file_name_follow_the_version(package):
    version = re.search(r"project\(ztserve VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text()).group(1)
    debian = os_release()["VERSION_ID"]
    assert field(package, "Version") == f"{version}-1+deb{debian}"
    assert package.name == f"ztserve_{version}-1+deb{debian}_{field(package, 'Architecture')}.deb"
    assert field(package, "Package") == "ztserve"


def test_every_library_of_the_program_is_a_dependency(package, unpacked):
    dependencies = {re.split(r"[ (]", part)[0] for part in field(package, "Depends").split(", ")}
    shown = run_checked(["readelf", "-d", unpacked / "usr/bin/ztserve"])
    for library in re.findall(r"NEEDED.*\[(.*)\]", shown):
        path = run_checked(["sh", "-c", f"ldconfig -p | sed -n 's,.*{re.escape(library)} .*=> ,,p' | head -n 1"]).strip()
        owner = subprocess.run(["dpkg-query", "-S", path, f"/usr{path}"], capture_output=True, text=True).stdout
        assert owner.split(":")[0] in dependencies, library


def test_lintian_finds_nothing(package):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", package], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_the_program_is_stripped_and_the_settings_are_a_conffile(unpacked):
    assert ".symtab" not in run_checked(["readelf", "-S", unpacked / "usr/bin/ztserve"])
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/ztserve/ztserve.json\n"


def test_the_unit_starts_what_the_package_has(unpacked):
    unit = (unpacked / "usr/lib/systemd/system/ztserve.service").read_text()
    for path in re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0].split():
        assert not path.startswith("/") or (unpacked / path[1:]).is_file(), path
    assert (unpacked / "usr/lib/systemd/system/ztserve.socket").is_file()


def test_manual_pages_and_completions_are_where_their_readers_look(unpacked):
    share = unpacked / "usr/share"
    completions = ("bash-completion/completions/ztserve", "zsh/vendor-completions/_ztserve", "fish/vendor_completions.d/ztserve.fish")
    for path in completions:
        assert "ztserve" in (share / path).read_text()
    for path in ("man/man1/ztserve.1.gz", "man/man5/ztserve.json.5.gz"):
        assert (share / path).is_file()


def install(root, package):
    shutil.copyfile(package, root.path / "var/cache" / package.name)
    root.apt("install", f"/var/cache/{package.name}")


def write_model(root, name):
    """The example model, as an administrator puts it there."""
    run_checked([BUILD / "ztserve-example", root.path / MODELS[1:] / name])


class Service:
    """The program as the unit starts it, on a free port."""

    def __init__(self, root):
        words = ("/usr/bin/ztserve", "serve", "--config", "/etc/ztserve/ztserve.json", "--listen", "127.0.0.1:0")
        command = root.command(*words, user="ztserve:ztserve")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        match = SERVING.match(self.process.stdout.readline().rstrip("\n"))
        if match is None:
            self.process.kill()
            raise AssertionError(self.process.communicate()[1])
        self.url = f"http://{match.group(2)}:{match.group(3)}"

    def stop(self):
        """Its exit status, and what it logged."""
        self.process.terminate()
        log = self.process.communicate(timeout=60)[1]
        return self.process.returncode, log


def user_of(root, name):
    lines = (root.path / "etc/passwd").read_text().splitlines()
    return next(int(line.split(":")[2]) for line in lines if line.startswith(f"{name}:"))


def assert_serves(root, model):
    """The service runs as its user, shows the model and sends bytes of it; returns its log."""
    service = Service(root)
    try:
        owner = os.stat(f"/proc/{service.process.pid}").st_uid
        assert owner == user_of(root, "ztserve") != 0
        listed = requests.get(f"{service.url}/v1/models").json()["models"]
        assert [shown["name"] for shown in listed] == [model]
        manifest = requests.get(f"{service.url}/v1/models/{model}").json()
        component = next(iter(next(iter(manifest["objects"].values()))["components"].values()))
        answer = requests.get(service.url + component["href"])
        assert (answer.status_code, len(answer.content)) == (200, component["uncompressed_length"])
    finally:
        status, log = service.stop()
    assert status == 0, log
    return log


def enabled_units(root):
    return {path.name for path in (root.path / "etc/systemd/system").glob("*.wants/ztserve.*")}


def edit_settings(root):
    path = root.path / "etc/ztserve/ztserve.json"
    settings = {**json.loads(path.read_text()), "log": {"format": "json"}}
    path.write_text(json.dumps(settings))
    return path.read_text()


def test_it_installs_serves_upgrades_removes_and_purges(root, package, older):
    root.apt("satisfy", field(package, "Depends"))
    before = root.files(STATE_OF_PACKAGES)

    # Installed and used.
    install(root, older)
    assert root.run("dpkg-query", "-W", "-f", "${Version}", "ztserve") == "0.0.1-1"
    write_model(root, "example.zt")
    assert_serves(root, "example")
    state = root.path / "var/lib/ztserve/state"
    assert state.stat().st_uid == user_of(root, "ztserve")
    assert enabled_units(root) == {"ztserve.service"}

    # Upgraded: edited settings stay, and count; a disabled service stays disabled.
    edited = edit_settings(root)
    (root.path / "etc/systemd/system/multi-user.target.wants/ztserve.service").unlink()
    install(root, package)
    assert root.run("dpkg-query", "-W", "-f", "${Version}", "ztserve") == field(package, "Version")
    assert (root.path / "etc/ztserve/ztserve.json").read_text() == edited
    assert os.listdir(root.path / "etc/ztserve") == ["ztserve.json"]
    assert not (root.path / "usr/share/doc/ztserve/OLD").exists()
    assert enabled_units(root) == set()
    assert json.loads(assert_serves(root, "example").splitlines()[-1])["level"]

    # Removed: settings, state and models stay.
    root.apt("remove", "ztserve")
    assert not (root.path / "usr/bin/ztserve").exists()
    assert (root.path / "etc/ztserve/ztserve.json").read_text() == edited
    assert state.is_dir()

    # Purged: only what an administrator put there stays.
    root.apt("purge", "ztserve")
    left = root.files(STATE_OF_PACKAGES) - before - OLD_FORMS
    assert left == {"/var/lib/ztserve", MODELS, f"{MODELS}/example.zt"}

    # Without models, nothing does.
    shutil.rmtree(root.path / "var/lib/ztserve")
    install(root, package)
    write_model(root, "example.zt")
    assert_serves(root, "example")
    (root.path / MODELS[1:] / "example.zt").unlink()
    root.apt("purge", "ztserve")
    after = root.files(STATE_OF_PACKAGES)
    assert (after - before - OLD_FORMS, before - after) == (set(), set())


def calls_of(log):
    """What systemctl was asked to do since the last time: verbs and units."""
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    told = [[word for word in line.split() if not word.startswith("-")] for line in lines]
    return [" ".join(words) for words in told if words[0] in ("start", "restart", "stop", "daemon-reload")]


def test_the_service_is_started_restarted_and_stopped_where_systemd_runs(root, package, older):
    log = root.path / "var/cache/systemctl.log"
    systemctl = root.path / "usr/bin/systemctl"
    systemctl.write_text(SYSTEMCTL)
    systemctl.chmod(0o755)
    running = root.path / "run/systemd/system"
    running.mkdir(parents=True)
    try:
        install(root, older)
        assert calls_of(log) == ["daemon-reload", "start ztserve.service"]
        install(root, package)
        assert "restart ztserve.service" in calls_of(log)
        root.apt("purge", "ztserve")
        assert calls_of(log)[0] == "stop ztserve.socket ztserve.service"
    finally:
        running.rmdir()
        systemctl.unlink()
