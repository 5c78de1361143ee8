"""The viewer below a path of a proxy's (base_path)."""

import json

import pytest

import models

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


def test_a_shared_address_opens_the_same_page(site, browser):
    browser.open(f"{site.url}{BASE}/ui/models/org%2Fsmall")
    assert browser.text("h1") == "org/small"
