"""A release: made twice, in two checkouts, each in a Debian made for it, with the same bytes; and its files, used."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import requests

import provenance_rules
import sbom_rules
from bare_root import has_suite, missing_for_roots, own_mounts, run_checked
from server_process import SERVING, TOP

# Each release makes a Debian, and builds the program in it.
pytestmark = pytest.mark.timeout(3600)
BUILD = Path(os.environ.get("ZT_BUILD_DIR", TOP / "build"))
TARGET = "debian-13-amd64"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("releases")
    yield work
    shutil.rmtree(work)


def clone(folder):
    """A checkout of the commit, in a folder of its own; a release has nothing else."""
    run_checked(["git", "clone", "-q", "--no-hardlinks", f"file://{TOP}", folder])
    return folder


@pytest.fixture(scope="module")
def releases(work):
    """Two folders of files, of one commit."""
    reason = missing_for_roots() or (None if has_suite("trixie") else "no repository of Debian 13 can be reached")
    if reason is not None:
        pytest.skip(reason)
    checkouts = [clone(work / "one"), clone(work / "another/checkout")]
    for checkout in checkouts:
        run_checked([checkout / "deploy/release.sh", TARGET])
    return [checkout / "dist" for checkout in checkouts]


@pytest.fixture(scope="module")
def release(releases):
    return releases[0]


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def test_two_releases_of_a_commit_have_the_same_bytes(releases):
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_two_folders_give_the_same_programs(work):
    """The same on this machine, without a Debian of its own: also the folder of the sources differs then."""
    made = []
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    for name in ("short", "a/much/longer/folder"):
        sources = clone(work / name)
        build = work / f"{name}-built"
        run_checked([sources / "deploy/build.sh", build, "-DCMAKE_BUILD_TYPE=Release", "-DZT_TESTS=OFF"], env=environment)
        made.append({file: (build / file).read_bytes() for file in ("ztserve", "ztserve-example", "libzt.so")})
    assert [file for file in made[0] if made[0][file] != made[1][file]] == []


def test_checksums_cover_every_file(release):
    listed = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in release.iterdir() if path.name != "SHA256SUMS"}
    assert listed == found
    kinds = ("*.deb", "*-linux-amd64.tar.gz", "*-image-amd64.tar.gz", "ztserve_*.spdx.json", "ztserve-*.spdx.json", "*.provenance.json")
    assert len(found) == len([only(release, kind) for kind in kinds])


def test_every_sbom_keeps_the_rules(release):
    for path in release.glob("*.spdx.json"):
        sbom = json.loads(path.read_text())
        assert sbom_rules.broken_rules(sbom) == [], path
        assert {"ztserve", "libc6", "libcbor0.10"} <= {package["name"] for package in sbom["packages"]}, path


def test_the_provenance_names_commit_files_and_compiler(release):
    statement = json.loads(only(release, "*.provenance.json").read_text())
    assert provenance_rules.broken_rules(statement) == []
    stated = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    for line in (release / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert stated.pop(name, None) == (None if name.endswith(".provenance.json") else digest), name
    assert stated == {}
    dependencies = {described["uri"]: described["digest"] for described in statement["predicate"]["buildDefinition"]["resolvedDependencies"]}
    commit = run_checked(["git", "-C", release.parent, "rev-parse", "HEAD"]).strip()
    assert {"gitCommit": commit} in dependencies.values()
    assert any(uri.startswith("pkg:deb/debian/gcc-14@") for uri in dependencies)


def test_a_commit_is_needed(work):
    checkout = clone(work / "changed")
    with (checkout / "README.md").open("a") as file:
        file.write("\n")
    result = subprocess.run([checkout / "deploy/release.sh", TARGET], capture_output=True, text=True)
    assert (result.returncode, (checkout / "dist").exists()) == (1, False)
    assert "commit the changes first" in result.stderr


@pytest.fixture
def empty_root(release, tmp_path):
    """A folder with the files of the tarball and a model, and nothing else: no libraries, no shell, no /proc, no /etc."""
    run_checked(["tar", "-xf", only(release, "*-linux-amd64.tar.gz"), "-C", tmp_path])
    (tmp_path / "models").mkdir()
    run_checked([BUILD / "ztserve-example", tmp_path / "models/example.zt"])
    return tmp_path


def test_the_tarball_serves_where_nothing_else_is(empty_root):
    program = f"/{only(empty_root, 'ztserve-*').name}/bin/ztserve"
    command = [*own_mounts(), "chroot", str(empty_root), program]
    version = run_checked([*command, "--version"]).strip()
    assert program.split("/")[1] == f"ztserve-{version}"
    process = subprocess.Popen(
        [*command, "serve", "--root", "/models", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    match = SERVING.match(process.stdout.readline().rstrip("\n"))
    if match is None:
        process.kill()
        raise AssertionError(process.communicate()[1])
    try:
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
        assert name == "ztserve"
        address = f"http://127.0.0.1:{match.group(3)}"
        listed = requests.get(f"{address}/v1/models").json()["models"]
        assert [shown["name"] for shown in listed] == ["example"]
        # Names are resolved without the machine's own libraries.
        (empty_root / "etc").mkdir()
        (empty_root / "etc/hosts").write_text("127.0.0.1 models.example\n")
        shown = run_checked([*command, "ls", f"http://models.example:{match.group(3)}/v1/models/example"])
        assert shown == run_checked([*command, "ls", "/models/example.zt"])
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log


def test_every_library_of_the_tarball_has_its_licence(empty_root):
    tree = only(empty_root, "ztserve-*")
    sbom = json.loads((tree / "share/doc/ztserve/sbom.spdx.json").read_text())
    for package in sbom["packages"]:
        assert (tree / "share/doc" / package["name"] / "copyright").is_file(), package["name"]
    assert len(list((tree / "lib/ztserve").glob("*.so.*"))) >= 15


def test_the_image_can_be_loaded(release, work):
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    storage = work / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{work}/images"\nrunroot = "{work}/run"\n')
    environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(storage), "BUILDAH_ISOLATION": "chroot"}
    archive = work / "image.tar"
    with archive.open("wb") as file:
        subprocess.run(["gzip", "-dc", only(release, "*-image-amd64.tar.gz")], stdout=file, check=True)
    pulled = run_checked([*own_mounts(), "buildah", "pull", f"docker-archive:{archive}"], env=environment).split()[-1]
    inspected = json.loads(run_checked([*own_mounts(), "buildah", "inspect", "--type", "image", pulled], env=environment))
    config = inspected["Docker"]["config"]
    assert (config["Entrypoint"], config["User"]) == (["/usr/bin/ztserve"], "65532:65532")
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/ztserve", "healthcheck"]
    container = run_checked([*own_mounts(), "buildah", "from", "--pull-never", pulled], env=environment).strip()
    version = run_checked([*own_mounts(), "buildah", "run", container, "--", "/usr/bin/ztserve", "--version"], env=environment)
    assert version.strip() == config["Labels"]["org.opencontainers.image.version"]
