"""The description of the interface is true: requests that schemathesis derives from it get the answers it describes."""

import hashlib
import json
from pathlib import Path

import pytest
import requests

from environments import run_client

import containers

# Each test sends thousands of requests; a busy machine needs several minutes for them.
pytestmark = pytest.mark.timeout(1200)

RAW = containers.pattern(64, seed=3)
# The examples in the description use this model.
MODELS = {
    "example.zt": lambda: containers.zt1(
        {
            "layer1.weight": containers.dense(RAW, "f32", [4, 4], attributes={"a": [1, None, b"x"]}),
            "layer2.weight": containers.zstd_dense(containers.pattern(65536), "f32", [128, 128]),
        }
    ),
    "sub/v2.zt": lambda: containers.zt2({"layer1.weight": containers.dense(RAW, "f32", [4, 4], digest="xxh3")}),
    "broken.zt": lambda: b"nonsense" * 20,
}
# Values that exist, for a run that reads existing models.
VALUES = {
    "Model": ["example", "sub/v2", "broken", "other"],
    "Object": ["layer1.weight", "layer2.weight", "other"],
    "Component": ["data", "other"],
    "Path": ["example.zt", "broken.zt"],
    "Hex": [hashlib.sha256(RAW).hexdigest(), "0" * 64],
}
# Likewise, of parameters that each path describes.
REPOSITORY = {"repo": ["sub", "other"], "revision": ["main", "main/v2.zt", "main/other", "0" * 40]}


def narrow(document):
    for name, values in VALUES.items():
        document["components"]["parameters"][name]["schema"] = {"enum": values}
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter.get("name") in REPOSITORY:
                    parameter["schema"] = {"enum": REPOSITORY[parameter["name"]]}


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "root"
    for name, make in MODELS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(make())
    return start_server(root, "--writable", "--log-level", "error")


def test_the_description_is_served(server):
    answer = requests.get(f"{server.url}/openapi.json")
    assert answer.status_code == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json()["info"]["version"] == requests.get(f"{server.url}/version").json()["version"]
    tag = answer.headers["ETag"]
    assert requests.get(f"{server.url}/openapi.json", headers={"If-None-Match": tag}).status_code == 304
    plain = {"Accept-Encoding": "identity"}
    head = requests.head(f"{server.url}/openapi.json", headers=plain)
    whole = requests.get(f"{server.url}/openapi.json", headers=plain)
    assert head.headers["ETag"] == whole.headers["ETag"] != tag
    assert int(head.headers["Content-Length"]) == len(whole.content) == len(answer.content)


def test_answers_are_as_described(server):
    run_client("schemathesis", f"{server.url}/openapi.json", "-n", 5, "--phases", "examples,fuzzing")


@pytest.mark.others("the values at each bound of each parameter, several minutes of requests")
def test_answers_to_boundary_values_are_as_described(server):
    run_client("schemathesis", f"{server.url}/openapi.json", "-n", 5, "--phases", "coverage")


def test_answers_about_existing_models_are_as_described(server, tmp_path):
    document = requests.get(f"{server.url}/openapi.json").json()
    narrow(document)
    narrowed = tmp_path / "narrowed.json"
    narrowed.write_text(json.dumps(document))
    run_client("schemathesis", narrowed, "--url", server.url, "-n", 20, "--phases", "examples,coverage,fuzzing")
