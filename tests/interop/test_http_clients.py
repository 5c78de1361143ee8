"""Common clients, unchanged: curl, numpy, safetensors, fsspec, huggingface_hub, aria2, and nginx as a cache."""

import hashlib
import io
import json
import shutil
import subprocess

import numpy as np
import pytest
import requests

import caching_proxy
import proxies
from environments import run_client

import containers
from wire import eventually

SHAPE = (1024, 3000)
HEADER_DTYPES = {"f32": "F32", "u8": "U8", "i64": "I64"}


def make_tensors():
    random = np.random.default_rng(4)
    return {
        "layers.0.weight": random.standard_normal(SHAPE, dtype=np.float32),
        "layers.0.bias": random.standard_normal(SHAPE[0], dtype=np.float32),
        "tokens": random.integers(0, 1 << 40, (17, 5)),
        "mask": random.integers(0, 255, 77, dtype=np.uint8),
    }


TENSORS = make_tensors()
NAMES = {np.dtype(np.float32): "f32", np.dtype(np.int64): "i64", np.dtype(np.uint8): "u8"}
LARGE = TENSORS["layers.0.weight"].tobytes()


def write_model(path):
    objects = {
        name: containers.dense(array.tobytes(), NAMES[array.dtype], list(array.shape))
        for name, array in TENSORS.items()
    }
    path.write_bytes(containers.zt1(objects))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    write_model(folder / "m.zt")
    return folder


@pytest.fixture
def server(root, start_server):
    return start_server(root)


@pytest.fixture
def component(server):
    return f"{server.url}/v1/models/m/objects/layers.0.weight/data"


@pytest.fixture
def export(server):
    return f"{server.url}/v1/models/m/export?format=safetensors"


def curl(*arguments):
    result = subprocess.run(["curl", "-sS", "--fail", *arguments], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


def look(kind, url):
    return json.loads(run_client("http", kind, url))


def test_curl_resumes_a_component_and_an_export_where_they_were_cut(component, export, tmp_path):
    for number, url in enumerate([component, export]):
        whole = requests.get(url).content
        path = tmp_path / f"part{number}"
        path.write_bytes(whole[:1_234_567])
        curl("-C", "-", "-o", path, url)
        assert path.read_bytes() == whole


def test_curl_takes_one_range_and_several(component):
    assert curl("-r", "1000-1999", component) == LARGE[1000:2000]
    parts = curl("-r", "0-3,500-503", component)
    assert LARGE[:4] in parts and LARGE[500:504] in parts


def test_curl_unpacks_a_compressed_manifest(server):
    url = f"{server.url}/v1/models/m"
    assert json.loads(curl("--compressed", url)) == requests.get(url, headers={"Accept-Encoding": "identity"}).json()


def test_numpy_loads_the_npy_answer(component, server):
    assert np.array_equal(np.load(io.BytesIO(requests.get(f"{component}?format=npy").content)), TENSORS["layers.0.weight"])
    part = requests.get(f"{component}?slice=3:900,7&format=npy").content
    assert np.array_equal(np.load(io.BytesIO(part)), TENSORS["layers.0.weight"][3:900, 7])
    tokens = requests.get(f"{server.url}/v1/models/m/objects/tokens/data", headers={"Accept": "application/x-npy"})
    assert np.array_equal(np.load(io.BytesIO(tokens.content)), TENSORS["tokens"])


def test_safetensors_reads_an_export(export, tmp_path):
    path = tmp_path / "export.safetensors"
    curl("-o", path, export)
    listing = json.loads(run_client("safetensors", "digests", path, script="client_safetensors_digests.py"))
    assert listing == {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in TENSORS.items()}


@pytest.mark.parametrize("what", ["component", "export"])
def test_fsspec_reads_blocks_in_any_order(what, request):
    url = request.getfixturevalue(what)
    whole = requests.get(url).content
    seen = look("fsspec", url)
    assert seen == {
        "size": len(whole),
        "tail": whole[-100:].hex(),
        "middle": hashlib.sha256(whole[12345:212_345]).hexdigest(),
        "spans": [whole[0:10].hex(), whole[70_000:70_001].hex(), whole[-5:].hex()],
        "whole": hashlib.sha256(whole).hexdigest(),
    }


def test_the_hub_client_reads_the_head_of_an_export(export):
    seen = look("hub", export)
    assert set(seen) == set(TENSORS)
    whole = requests.get(export).content
    data = whole[8 + int.from_bytes(whole[:8], "little") :]
    for name, (dtype, shape, (begin, end)) in seen.items():
        array = TENSORS[name]
        assert (dtype, tuple(shape)) == (HEADER_DTYPES[NAMES[array.dtype]], array.shape)
        assert data[begin:end] == array.tobytes()


@pytest.mark.skipif(shutil.which("aria2c") is None, reason="aria2 is not installed")
@pytest.mark.parametrize("what", ["component", "export"])
def test_aria2_fetches_with_eight_connections(what, request, tmp_path):
    url = request.getfixturevalue(what)
    command = ["aria2c", "-q", "-x8", "-s8", "-k1M", "--file-allocation=none", "-d", tmp_path, "-o", "fetched", url]
    assert subprocess.run(command, timeout=60).returncode == 0
    assert (tmp_path / "fetched").read_bytes() == requests.get(url).content


@pytest.fixture
def proxy(server, tmp_path):
    folder = tmp_path / "nginx"
    folder.mkdir()
    proxy = caching_proxy.start_caching_proxy(folder, server)
    yield proxy
    proxy.stop()


@pytest.mark.skipif(proxies.program("nginx") is None, reason="nginx is not installed")
def test_a_caching_proxy_revalidates_by_etag(proxy, server):
    url = f"{proxy.url}/v1/models/m/objects/layers.0.weight/data"
    first = requests.get(url)
    second = requests.get(url, headers={"Range": "bytes=10-99"})
    third = eventually(lambda: (answer := requests.get(url)).headers["X-Cache"] != "HIT" and answer)
    seen = [(answer.status_code, answer.headers["X-Cache"]) for answer in (first, second, third)]
    assert seen == [(200, "MISS"), (206, "HIT"), (200, "REVALIDATED")]
    assert first.content == third.content == LARGE
    assert second.content == LARGE[10:100]
    # The line is written once the loop has nothing else to do.
    eventually(lambda: " 304 " in server.log)


@pytest.mark.skipif(proxies.program("nginx") is None, reason="nginx is not installed")
def test_a_caching_proxy_does_not_keep_replaced_models(start_server, tmp_path):
    root = tmp_path / "root"
    folder = tmp_path / "nginx"
    for made in (root, folder):
        made.mkdir()
    path = root / "m.zt"
    path.write_bytes(containers.zt1({"a": containers.dense(b"old bytes")}))
    proxy = caching_proxy.start_caching_proxy(folder, start_server(root))
    url = f"{proxy.url}/v1/models/m/objects/a/data"
    assert requests.get(url).content == b"old bytes"
    fresh = path.with_suffix(".new")
    fresh.write_bytes(containers.zt1({"a": containers.dense(b"new bytes")}))
    fresh.rename(path)
    assert eventually(lambda: (body := requests.get(url).content) != b"old bytes" and body) == b"new bytes"
    proxy.stop()
