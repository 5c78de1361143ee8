"""The viewer below a path of a proxy's (base_path)."""

import json
import shlex
import subprocess
import sys

import numpy
import pytest
import requests

import models
from server_process import PROGRAM

BASE = "/some/models"


@pytest.fixture(scope="module")
def site(folder, share_server, tmp_path_factory):
    (folder / "org").mkdir()
    (folder / "org/small.zt").write_bytes(models.small())
    settings = tmp_path_factory.mktemp("settings") / "c.json"
    settings.write_text(json.dumps({"base_path": BASE}))
    return share_server(folder, "--writable", "--config", str(settings))


def path_of(browser):
    return browser.get("location.pathname")


def asked_elsewhere(browser):
    return [address for address in browser.network() if address.startswith("http") and f"{BASE}/" not in address]


def test_its_pages_and_what_they_ask_for_are_below_it(site, browser):
    browser.network()
    browser.open(f"{site.url}{BASE}/")
    assert browser.texts(".scroller tbody th .name") == ["org/small"]
    assert browser.get("document.querySelector('header nav a[aria-current]').textContent") == "Models"
    browser.click(".scroller tbody th a")
    browser.wait("location.pathname.endsWith('org%2Fsmall') && document.querySelector('.scroller tbody th a') !== null")
    assert path_of(browser) == f"{BASE}/ui/models/org%2Fsmall"
    assert browser.get("new URL(document.querySelector('a[download]').href).pathname").startswith(f"{BASE}/")
    browser.click(".scroller tbody th a")
    browser.wait("location.pathname.includes('/objects/') && document.querySelector('nav.path a') !== null")
    assert path_of(browser).startswith(f"{BASE}/ui/models/org%2Fsmall/objects/")
    browser.click("nav.path a")
    browser.wait("document.querySelector('.column-size') !== null")
    assert path_of(browser) == f"{BASE}/ui/"
    browser.click("header nav a:nth-child(2)")
    browser.wait("location.pathname.endsWith('/ui/uploads')")
    assert browser.get("document.querySelector('header nav a[aria-current]').textContent") == "Uploads"
    assert asked_elsewhere(browser) == []


def test_files_are_sent_below_it(site, browser, tmp_path):
    (tmp_path / "sent.zt").write_bytes(models.small())
    browser.open(f"{site.url}{BASE}/ui/uploads")
    browser.network()
    browser.type("#files", str(tmp_path / "sent.zt"))
    browser.wait("document.querySelector('.upload')?.dataset.state === 'done'")
    assert requests.get(f"{site.url}{BASE}/files/sent.zt").content == models.small()
    assert asked_elsewhere(browser) == []
    requests.delete(f"{site.url}{BASE}/v1/models/sent").raise_for_status()


def test_the_lines_to_copy_are_below_it(site, browser, tmp_path):
    browser.open(f"{site.url}{BASE}/ui/models/org%2Fsmall/objects/odd/data")
    curl, python, pull = browser.texts(".snippet code")
    subprocess.run(["bash", "-c", curl], cwd=tmp_path, check=True)
    assert numpy.array_equal(numpy.load(tmp_path / "odd.npy"), models.odd(), equal_nan=True)
    subprocess.run([sys.executable, "-c", f"{python}\nassert tensor.shape == (5, 8)"], check=True)
    subprocess.run(["bash", "-c", f"ztserve() {{ {shlex.quote(str(PROGRAM))} \"$@\"; }}; {pull}"], cwd=tmp_path, check=True)
    assert models.odd().tobytes() in (tmp_path / "odd.safetensors").read_bytes()


def test_a_shared_address_opens_the_same_page(site, browser):
    browser.open(f"{site.url}{BASE}/ui/models/org%2Fsmall")
    assert browser.text("h1") == "org/small"
