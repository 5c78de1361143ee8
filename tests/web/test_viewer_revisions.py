"""A model's page lists the revisions that the server keeps, and each can be compared with the current one."""

import numpy
import pytest
import requests

import axe
import models
from containers import zt1

RANDOM = numpy.random.default_rng(13)
VALUES = [RANDOM.normal(size=(30, 20)).astype("<f4") for _ in range(25)]


@pytest.fixture(scope="module")
def site(folder, share_server):
    server = share_server(folder, "--writable", "--keep-versions", "100")
    for values in VALUES:
        content = zt1({"weight": models.array(values), "same": models.array(VALUES[0])})
        requests.put(f"{server.url}/v1/models/acme/tiny/model", data=content, timeout=60).raise_for_status()
    commits = requests.get(f"{server.url}/v1/models/acme/tiny/model/revisions", timeout=60).json()["revisions"]
    server.commits = [revision["commit"] for revision in commits]
    requests.put(
        f"{server.url}/v1/models/acme/tiny/model/revisions/v1", json={"commit": server.commits[1], "kind": "tag"}, timeout=60
    ).raise_for_status()
    return server


@pytest.fixture
def page(site, browser):
    browser.open(f"{site.url}/ui/models/acme%2Ftiny%2Fmodel")
    browser.wait("document.querySelector('.revisions tbody tr') !== null")
    return browser


def shown(browser):
    return browser.get("[...document.querySelectorAll('.revisions code')].map((code) => code.title)")


def test_revisions_are_listed_and_older_ones_follow(page, site):
    assert len(site.commits) == len(VALUES)
    assert shown(page) == site.commits[:20]
    rows = page.get("[...document.querySelectorAll('.revisions tbody tr')].slice(0, 2).map((row) => row.textContent)")
    assert "main" in rows[0] and "Compare" not in rows[0]
    assert "v1" in rows[1] and "Compare" in rows[1]
    assert axe.broken(page) == []
    page.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Older revisions').click()")
    page.wait(f"document.querySelectorAll('.revisions code').length === {len(VALUES)}")
    assert shown(page) == site.commits
    assert page.get("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Older revisions').hidden")


def test_a_revision_is_compared_with_the_current_one(page, site):
    page.run("document.querySelector('.revisions tbody tr:nth-child(2) a').click()")
    page.wait("document.querySelector('[data-state=changed]') !== null")
    assert page.get("a.value") == page.get("b.value") == "acme/tiny/model"
    assert page.get("document.getElementById('a-at').value") == site.commits[1]
    page.run("document.querySelector('button[aria-label=\"Compare the values of weight\"]').click()")
    page.wait("document.querySelector('td[data-key=most]') !== null")
    largest = numpy.abs(VALUES[-1].astype("<f8") - VALUES[-2]).max()
    assert float(page.get("document.querySelector('td[data-key=most]').textContent")) == pytest.approx(largest, rel=1e-5)


def test_a_tag_names_a_revision(site, browser):
    browser.open(f"{site.url}/ui/compare?a=acme%2Ftiny%2Fmodel&a-at=v1&b=acme%2Ftiny%2Fmodel")
    browser.wait("document.querySelector('[data-state=changed]') !== null")
    assert browser.get("document.querySelector('[data-state=equal] dd').textContent").startswith("1 tensor")
