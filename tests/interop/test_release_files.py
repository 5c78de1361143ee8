"""What deploy/release.sh writes besides programs: the image, from a layer made by hand; provenance and signatures."""

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

import pytest

from bare_root import run_checked
from provenance_rules import broken_rules
from server_process import TOP

FOLDER = TOP / "deploy/release"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MATERIALS = "libc6 2.41-12 amd64 " + "a" * 64 + "\nzlib1g 1:1.3.1 amd64 " + "b" * 64 + "\n"


@pytest.fixture
def layer(tmp_path):
    path = tmp_path / "layer.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("usr/bin/ztserve"), io.BytesIO())
    return path


def make_image(layer):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "REVISION": COMMIT}
    command = [sys.executable, FOLDER / "image.py", TOP / "Dockerfile", "1.2.3", "amd64", layer]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def members(image):
    with tarfile.open(fileobj=io.BytesIO(image)) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def test_an_image_has_the_layer_and_the_settings_of_the_dockerfile(layer):
    files = members(make_image(layer))
    (listed,) = json.loads(files["manifest.json"])
    assert listed["RepoTags"] == ["localhost/ztserve:1.2.3"]
    assert [files[name] for name in listed["Layers"]] == [layer.read_bytes()]
    described = files[listed["Config"]]
    assert listed["Config"] == f"{hashlib.sha256(described).hexdigest()}.json"
    config = json.loads(described)
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer.read_bytes()).hexdigest()}"]
    assert config["created"] == "2023-11-14T22:13:20Z"
    settings = config["config"]
    assert (settings["Entrypoint"], settings["Cmd"], settings["User"]) == (["/usr/bin/ztserve"], ["serve"], "65532:65532")
    assert "ZTSERVE_LISTEN=0.0.0.0:$PORT" in settings["Env"]
    assert settings["Labels"]["org.opencontainers.image.description"] == "A server for tensor container files"
    assert settings["Labels"]["org.opencontainers.image.revision"] == COMMIT
    assert settings["Healthcheck"]["Interval"] == 30 * 10**9


def test_the_same_layer_gives_the_same_image(layer, tmp_path):
    first = make_image(layer)
    copy = tmp_path / "copy.tar"
    copy.write_bytes(layer.read_bytes())
    os.utime(copy, (1, 1))
    assert gzip.compress(make_image(copy), mtime=0) == gzip.compress(first, mtime=0)
    copy.write_bytes(layer.read_bytes() + b"\0" * 512)
    assert make_image(copy) != first


@pytest.fixture
def release(tmp_path):
    """A folder with one file, described; and the path of its provenance."""
    folder = tmp_path / "dist"
    folder.mkdir()
    (folder / "ztserve.deb").write_bytes(b"package")
    materials = tmp_path / "debian-13-amd64.materials"
    materials.write_text(MATERIALS)
    command = [sys.executable, FOLDER / "provenance.py", "--commit", COMMIT, "--mirror", "http://mirror.example/debian"]
    shown = run_checked([*command, "--builder", "https://ztserve.example/builders/test", folder, materials])
    path = folder / shown.strip()
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(b'package').hexdigest()}  ztserve.deb\n")
    return path


def test_provenance_names_files_commit_and_packages(release):
    statement = json.loads(release.read_text())
    assert broken_rules(statement) == []
    assert statement["subject"] == [{"name": "ztserve.deb", "digest": {"sha256": hashlib.sha256(b"package").hexdigest()}}]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["targets"] == ["debian-13-amd64"]
    source, *packages = definition["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": COMMIT}
    assert packages[1] == {
        "uri": "pkg:deb/debian/zlib1g@1%3A1.3.1?arch=amd64&distro=debian-13",
        "digest": {"sha256": "b" * 64},
    }


def test_an_unknown_target_is_refused_and_the_targets_are_named():
    result = subprocess.run([TOP / "deploy/release.sh", "debian-13-amd64", "debian-11-amd64"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert "debian-11-amd64" in result.stderr and "debian-12-arm64" in result.stderr


KEYS = {"ed25519": ["-algorithm", "ED25519"], "ecdsa": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]}


@pytest.fixture(params=KEYS)
def key(request, tmp_path):
    path = tmp_path / "release.pem"
    run_checked(["openssl", "genpkey", *KEYS[request.param], "-out", path])
    run_checked(["openssl", "pkey", "-in", path, "-pubout", "-out", tmp_path / "release.pub"])
    return path


def verifies(key, content, signature):
    """Whether openssl accepts it, as deployment.md says to ask."""
    signed, detached = key.with_name("signed"), key.with_name("signature")
    signed.write_bytes(content)
    detached.write_bytes(signature)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key.with_name("release.pub"), "-rawin"]
    return subprocess.run([*command, "-in", signed, "-sigfile", detached], capture_output=True).returncode == 0


def test_checksums_and_provenance_are_signed(release, key):
    checksums = release.with_name("SHA256SUMS")
    run_checked([FOLDER / "sign.py", key, release, checksums])
    detached = checksums.with_name("SHA256SUMS.sig").read_bytes()
    assert verifies(key, checksums.read_bytes(), detached)
    assert not verifies(key, checksums.read_bytes() + b"\n", detached)

    envelope = json.loads(release.with_name(release.name.replace(".provenance.json", ".intoto.jsonl")).read_text())
    payload = base64.b64decode(envelope["payload"])
    assert payload == release.read_bytes()
    kind = envelope["payloadType"]
    assert kind == "application/vnd.in-toto+json"
    # What DSSE signs.
    signed = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    assert verifies(key, signed, signature)
    assert not verifies(key, payload, signature)
