"""docs/recipes.md is true: its lines of curl, its Python and its nginx configuration work as they stand."""

import re
import subprocess

import numpy as np
import pytest
import requests

from caching_proxy import Nginx
from server_process import PROGRAM, TOP

PAGE = (TOP / "docs" / "recipes.md").read_text()
HERE = "http://127.0.0.1:8080"
USER = ("uploader", "secret")
# More than nginx accepts by default.
LARGE_BYTES = 3 << 20


def block(language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture
def server(tmp_path, start_server):
    root = tmp_path / "models"
    (root / "org").mkdir(parents=True)
    for name in ("example.zt", "org/model.zt"):
        subprocess.run([PROGRAM.parent / "ztserve-example", root / name], check=True)
    return start_server(root, "--writable")


@pytest.fixture
def nginx(server, tmp_path):
    password = subprocess.run(["openssl", "passwd", "-apr1", USER[1]], capture_output=True, text=True, check=True).stdout
    (tmp_path / "uploaders").write_text(f"{USER[0]}:{password}")

    def start(recipe):
        recipe = recipe.replace("/etc/nginx/uploaders", str(tmp_path / "uploaders")).replace(HERE, server.url)
        return Nginx(tmp_path, lambda port: recipe.replace("listen 80;", f"listen 127.0.0.1:{port};"))

    return start


@pytest.fixture
def large(tmp_path):
    source, model = tmp_path / "large.npy", tmp_path / "large.zt"
    np.save(source, np.zeros(LARGE_BYTES, np.uint8))
    subprocess.run([PROGRAM, "convert", source, model], check=True, stdout=subprocess.DEVNULL)
    return model.read_bytes()


def test_the_lines_of_curl_work(server, tmp_path):
    script = "set -eo pipefail\n" + block("sh").replace(HERE, server.url)
    result = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "models" / "checked.zt").read_bytes() == (tmp_path / "example.zt").read_bytes()


def test_the_python_for_numpy_works(server):
    found = {}
    exec(block("python").replace(HERE, server.url), found)
    assert found["whole"].shape == (256, 64)
    assert np.array_equal(found["rows"], found["whole"][0:8, -16:])
    assert np.array_equal(found["half"], found["whole"][128:])


def test_nginx_passes_encoded_slashes_and_large_uploads_of_known_users_on(nginx, large):
    proxy = nginx(block("nginx"))
    try:
        assert requests.get(f"{proxy.url}/v1/models/org%2Fmodel").status_code == 200
        assert requests.put(f"{proxy.url}/v1/models/org%2Flarge", data=large).status_code == 401
        assert requests.put(f"{proxy.url}/v1/models/org%2Flarge", data=large, auth=USER).status_code == 201
        assert requests.head(f"{proxy.url}/v1/models/org%2Flarge").status_code == 200
    finally:
        proxy.stop()


def test_nginx_without_the_recipe_shows_the_problems_that_the_page_names(nginx, large):
    recipe = block("nginx").replace(f"proxy_pass {HERE};", f"proxy_pass {HERE}/;").replace("client_max_body_size 0;", "")
    proxy = nginx(recipe)
    try:
        assert requests.get(f"{proxy.url}/v1/models/org%2Fmodel").json()["detail"] == "there is nothing at this path"
        assert requests.put(f"{proxy.url}/v1/models/large", data=large, auth=USER).status_code == 413
    finally:
        proxy.stop()
