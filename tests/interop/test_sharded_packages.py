"""Models over several files, and files of several generations: the reference package and the server read the same from
them. The package has no way to write shards, so those are made by the tests' own builder."""

import hashlib
import json
import subprocess

import pytest
import requests

from environments import run_client


from containers import dense, dense_in_shard, pattern, shard_entry, zt2, zt2_data_shard
from server_process import PROGRAM

DATA = {name: pattern(10_000, seed) for seed, name in enumerate(("own", "first", "second"), start=31)}


def digests(data):
    return {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}


def read_by_reference(path):
    return json.loads(run_client("2.1.2", "read", path, script="client_append.py"))


def served(server, model, names):
    url = f"{server.url}/v1/models/{model}/objects"
    return {name: hashlib.sha256(requests.get(f"{url}/{name}/data").content).hexdigest() for name in names}


@pytest.fixture
def three_files(tmp_path):
    first = zt2_data_shard(b"in front", DATA["first"])
    second = zt2({"its": dense(DATA["second"], digest="xxh3")})
    objects = {
        "own": dense(DATA["own"], digest="xxh3"),
        "first": dense_in_shard("a", first.offsets[1], DATA["first"], digest="xxh3"),
        "second": dense_in_shard("b.c", second.offsets["its", "data"], DATA["second"], digest="sha256"),
    }
    shards = {"a": shard_entry(first), "b.c": shard_entry(second, "xxh3")}
    for name, file in {"m": zt2(objects, fields={"shards": shards}), "m-a": first, "m-b.c": second}.items():
        (tmp_path / f"{name}.zt").write_bytes(file)
    return tmp_path / "m.zt"


def test_shards_are_read_as_the_reference_reads_them(three_files, start_server):
    wanted = digests(DATA)
    assert read_by_reference(three_files) == {"checked": 3, "contents": wanted}
    assert served(start_server(three_files.parent), "m", DATA) == wanted
    result = subprocess.run([PROGRAM, "verify", three_files], capture_output=True, text=True)
    assert "3 verified, 0 without digest)" in result.stdout, result.stderr


def test_components_appended_by_the_reference_are_served(tmp_path, start_server):
    path = tmp_path / "m.zt"
    path.write_bytes(zt2({"own": dense(DATA["own"], digest="xxh3")}))
    before = path.stat().st_size
    server = start_server(tmp_path)
    for name in ("first", "second"):
        run_client("2.1.2", "append", path, name, DATA[name].hex(), script="client_append.py")
    assert path.stat().st_size > before
    assert read_by_reference(path)["contents"] == digests(DATA)
    assert served(server, "m", DATA) == digests(DATA)
    assert subprocess.run([PROGRAM, "verify", path], capture_output=True).returncode == 0
