"""Files of the real packages are served byte for byte, and the packages read back what a PUT stored.

Each release writes a format, or a version of one, of its own: five of ztensor, five of magnetron, three of torch, one
each of safetensors, gguf, onnx and numpy.
"""

import hashlib
import json
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from environments import is_available, read_with, write_with
from server_process import PROGRAM

VERIFICATION_TIMEOUT_S = 60
# Format and version in the manifest, by release; numpy's files have the format of their extension.
SOURCES = {
    "0.1.4": ("zt", "0.1.0"),
    "1.0.1": ("zt", "1.0"),
    "1.1.1": ("zt", "1.1.0"),
    "1.2.3": ("zt", "1.2.0"),
    "2.1.2": ("zt", "2"),
    "safetensors": ("safetensors", ""),
    "gguf": ("gguf", "3"),
    "onnx": ("onnx", ""),
    "numpy": (None, ""),
    "magnetron-0.1.2": ("mag", "1"),
    "magnetron-0.1.6": ("mag", "100"),
    "magnetron-0.1.7": ("mag", "200"),
    "magnetron-0.1.9": ("mag", "200"),
    "magnetron-0.2.2": ("mag", "300"),
    "torch-1.6.0": ("pytorch", ""),
    "torch-2.1.2": ("pytorch", ""),
    "torch-2.15.0": ("pytorch", ""),
}
# magnetron's reader never looks at tensors; importing torch takes seconds, and each file would want it again.
WRITES_ONLY = {"magnetron-0.1.2", "torch-1.6.0", "torch-2.1.2", "torch-2.15.0"}
# By file, or else by release; raw where nothing is said.
ENCODINGS = {"deflated": {"deflate"}, "typed": {"raw", "varint"}}
ENCODINGS.update({release: {"raw", "strided"} for release in SOURCES if release.startswith("torch")})
# Their data is in files of its own, which an upload of one file leaves behind.
EXTERNAL = {"external", "apart"}


@pytest.fixture(scope="module", params=SOURCES)
def release(request):
    if not is_available(request.param):
        pytest.skip(f"{request.param} cannot be installed here")
    return request.param


@pytest.fixture(scope="module")
def written(release, tmp_path_factory):
    """Files that this release wrote, each with its tensors."""
    return write_with(release, tmp_path_factory.mktemp("written"))


@pytest.fixture(scope="module")
def server(written, share_server):
    return share_server(next(iter(written)).parent)


def get_manifest(server, path):
    answer = requests.get(f"{server.url}/v1/models/{path.stem}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def component_url(server, model, name, role):
    return f"{server.url}/v1/models/{model}/objects/{quote(name, safe='')}/{role}"


def without_links(manifest):
    """The part of a manifest that depends on the content alone."""
    for shown in manifest["objects"].values():
        for component in shown["components"].values():
            component.pop("href", None)
    return {key: manifest[key] for key in ("attributes", "objects")}


def test_the_manifest_shows_what_was_written(release, written, server):
    for path, expected in written.items():
        manifest = get_manifest(server, path)
        source = manifest["source"]
        assert (source["format"], source["version"]) == (SOURCES[release][0] or path.suffix[1:], SOURCES[release][1])
        assert (source["size"], source["href"]) == (path.stat().st_size, f"/files/{path.name}")
        attributes = Path(f"{path}.attributes.json")
        if attributes.is_file():
            assert manifest["attributes"] == json.loads(attributes.read_text())
        assert set(manifest["objects"]) == set(expected)
        for name, wanted in expected.items():
            shown = manifest["objects"][name]
            assert (shown["shape"], sorted(shown["components"])) == (wanted["shape"], sorted(wanted["components"]))
            assert shown["format"] == wanted.get("format", shown["format"])
            assert shown["attributes"] == wanted.get("attributes", shown["attributes"])
            for role, types in wanted.get("types", {}).items():
                component = shown["components"][role]
                assert [component["dtype"], component["type"]] == types, name
                assert component["encoding"] in ENCODINGS.get(path.stem, ENCODINGS.get(release, {"raw"}))


def test_every_component_is_served_byte_exact(written, server):
    for path, expected in written.items():
        for name, wanted in expected.items():
            for role, digest in wanted["components"].items():
                url = component_url(server, path.stem, name, role)
                answer = requests.get(url)
                assert answer.status_code == 200, answer.text
                assert hashlib.sha256(answer.content).hexdigest() == digest, url
                assert_ranges_are_of(url, answer.content)


def assert_ranges_are_of(url, content):
    half = len(content) // 2
    for field, wanted in ((f"bytes={half}-", content[half:]), ("bytes=-3", content[-3:]), ("bytes=1-4", content[1:5])):
        if wanted:
            part = requests.get(url, headers={"Range": field})
            assert (part.status_code, part.content) == (206, wanted), (url, field)


def wait_until_verified(server, model):
    url = f"{server.url}/v1/models/{model}/verification"
    requests.post(url)
    deadline = time.monotonic() + VERIFICATION_TIMEOUT_S
    while (report := requests.get(url).json())["state"] in ("unverified", "running"):
        assert time.monotonic() < deadline, report
        time.sleep(0.02)
    return report


def test_verification_and_the_command_line_find_them_good(written, server):
    for path in written:
        result = subprocess.run([PROGRAM, "verify", path], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        report = wait_until_verified(server, path.stem)
        assert report["state"] == "verified"
        assert report["failures"] == []
        counts = report["components"]
        assert counts["verified"] + counts["undigested"] == counts["total"]
        # A ZIP entry's CRC-32 is its digest.
        if path.suffix == ".npz":
            assert counts["undigested"] == 0


def test_ls_shows_the_same_as_the_server(written, server):
    for path in written:
        result = subprocess.run([PROGRAM, "ls", "--json", path], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert without_links(json.loads(result.stdout)) == without_links(get_manifest(server, path))
        table = subprocess.run([PROGRAM, "ls", path], capture_output=True, text=True)
        assert (table.returncode, table.stderr) == (0, "")


def test_canonical_check_agrees_with_the_canonical_writer(tmp_path):
    outcome = {
        path.stem: subprocess.run([PROGRAM, "verify", "--canonical", path], capture_output=True).returncode
        for path in write_with("2.1.2", tmp_path)
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
        if path.stem in EXTERNAL:
            assert answer.status_code == 422
            continue
        assert answer.status_code == 201, answer.text
        assert requests.get(f"{server.url}/files/stored/{path.name}").content == data
        if release in WRITES_ONLY:
            continue
        dense = {name: wanted["components"] for name, wanted in expected.items() if list(wanted["components"]) == ["data"]}
        read_back = read_with(release, root / "stored" / path.name)
        assert read_back == {name: components["data"] for name, components in dense.items()}
