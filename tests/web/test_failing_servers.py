"""A server that is away, busy or failing for a while: the page says so, and goes on when it is there again."""

import pytest
import requests

import models
from containers import dense, zt1
from cutting import CutWay

REFUSED = pytest.mark.complains("a refused or a cut request")
# The answers that fetch() gets next, in place of the server's own: [status, code].
ANSWER = (
    "const real = window.fetch; window.answers = arguments[0];"
    "window.fetch = (...what) => { const next = answers.shift(); if (next === undefined) return real(...what);"
    "if (next === null) return Promise.reject(new TypeError('no way')); const [status, code] = next;"
    "return Promise.resolve(new Response(JSON.stringify({title: 'Some title', detail: `because of ${code}`, code, status}),"
    "{status, headers: {'Content-Type': 'application/problem+json'}})); };"
)
SECTIONS = {"heat-map": "#heatmap", "statistics": "table.statistics", "values": "table.values"}
AGAIN = "[...document.querySelectorAll('main .error button')].find((e) => e.textContent === 'Try again')"


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    (folder / "large.zt").write_bytes(zt1({f"w{i}": dense(bytes(1 << 20)) for i in range(64)}))
    return share_server(folder, "--writable")


@pytest.fixture
def way(site):
    way = CutWay(site)
    yield way
    way.close()


@REFUSED
@pytest.mark.parametrize("section, part", SECTIONS.items())
def test_each_part_of_a_tensors_page_can_be_tried_again(browser, way, section, part):
    browser.open(f"{way.url}/ui/models/small/objects/waves/data")
    way.shut()
    # Each asks for something else then.
    browser.run("document.querySelector('#part').click()")
    browser.choose("#reduce", "absmax")
    browser.run("document.querySelector('.moves [data-key=PageDown]').click()")
    browser.run("history.replaceState(null, '', '?slice=0:8,0:8&part'); dispatchEvent(new PopStateEvent('popstate'));")
    error = f"document.querySelector('[aria-labelledby={section}] .error')"
    browser.wait(f"{error}?.textContent.includes('The server does not respond.')")
    way.open()
    browser.wait(f"(() => {{ {error}?.querySelector('button').click(); return {error} === null; }})()")
    browser.settle()
    assert browser.get("document.querySelector(arguments[0]).checkVisibility()", part)


@REFUSED
@pytest.mark.parametrize("status, code", [(500, "internal"), (429, "rate-limited"), (503, "overloaded")])
def test_a_refused_page_says_why_and_is_tried_again(site, browser, status, code):
    browser.open(f"{site.url}/ui/nothing")
    browser.run(ANSWER, [[status, code]])
    browser.run("document.querySelector('main a').click()")
    browser.wait("document.querySelector('.error') !== null")
    assert browser.text(".error strong") == "Some title:"
    assert f"because of {code}" in browser.text(".error") and f"{status} {code}" in browser.text(".error")
    browser.run(f"{AGAIN}.click()")
    browser.wait("document.querySelector('.scroller tbody a') !== null && document.querySelector('.error') === null")


def test_a_refused_part_of_the_catalog_keeps_what_came_before(site, browser):
    browser.open(f"{site.url}/ui/nothing")
    browser.run("const real = window.fetch; let count = 0; window.fetch = async (...what) => { count++;"
                "if (count > 1) return new Response('<html>', {status: 502}); const page = await (await real(...what)).json();"
                "return new Response(JSON.stringify({...page, next: 'more'})); };")  # fmt: skip
    browser.run("document.querySelector('main a').click()")
    browser.wait("document.querySelector('.error') !== null")
    assert "502" in browser.text(".error")
    assert browser.texts(".scroller tbody th .name") == ["large", "small"]


@pytest.mark.parametrize("answers", [[None, None], [[429, "rate-limited"], [503, "overloaded"]]], ids=["away", "busy"])
def test_verification_is_followed_when_the_server_is_there_again(site, browser, answers):
    browser.open(f"{site.url}/ui/models/large")
    mark = "document.querySelector('[aria-labelledby=verification] .mark').textContent"
    # It runs when the page begins to follow it.
    browser.run("const real = window.fetch; window.fetch = async (...what) => { if (what[1]?.method !== 'POST') return real(...what);"
                "window.fetch = real; const report = await (await real(...what)).json();"
                "return new Response(JSON.stringify({...report, state: 'running'}), {status: 202}); };")  # fmt: skip
    browser.click("[aria-labelledby=verification] button")
    browser.wait(f"{mark} === 'being checked'")
    # The error is gone at the next successful poll, which a slow browser might not be asked before.
    browser.run("new MutationObserver(() => { window.failed ||= document.querySelector('[aria-labelledby=verification] .error') !== null; })"
                ".observe(document.body, {subtree: true, childList: true, attributes: true});")  # fmt: skip
    browser.run(ANSWER, answers)
    browser.wait("window.failed")
    browser.wait(f"{mark} === 'verified' && document.querySelector('[aria-labelledby=verification] .error') === null")


@pytest.mark.complains("a refused request")
def test_verification_that_cannot_begin_can_be_tried_again(site, browser):
    browser.open(f"{site.url}/ui/models/large")
    browser.run(ANSWER, [[500, "internal"]])
    browser.click("[aria-labelledby=verification] button")
    browser.wait("document.querySelector('[aria-labelledby=verification] .error') !== null")
    browser.run(f"{AGAIN}.click()")
    browser.wait("document.querySelector('[aria-labelledby=verification] .error') === null")
    assert browser.get("document.querySelector('[aria-labelledby=verification] button').disabled") is False


def test_a_token_that_is_asked_for_in_the_middle_leads_back_to_where_one_was(site, browser):
    browser.open(f"{site.url}/ui/models/small/objects/waves/data?map=gray")
    browser.run(ANSWER, [[401, "unauthorized"]])
    browser.run("document.querySelector('.moves [data-key=PageDown]').click()")
    browser.wait("document.querySelector('#token') !== null")
    assert browser.get("document.title") == "Token – ztserve"
    browser.type("#token", "anything")
    browser.press("Enter")
    browser.wait("document.querySelector('table.values tbody th')?.textContent === '16'")
    assert browser.get("location.search") == "?map=gray&at=16,0"
    assert browser.get("document.querySelector('#map').value") == "gray"
    browser.click("#forget")
    browser.wait("document.querySelector('#forget').hidden")


def test_the_list_of_uploads_says_once_that_it_cannot_be_had(site, browser):
    browser.open(f"{site.url}/ui/uploads")
    browser.run("window.boxes = 0; new MutationObserver((list) => { for (const change of list) for (const node of change.addedNodes)"
                "if (node.matches?.('.error')) boxes++; }).observe(document.querySelector('[aria-labelledby=others]'),"
                "{childList: true, subtree: true});")  # fmt: skip
    browser.run(ANSWER, [None, None, None])
    browser.wait("answers.length === 0 && document.querySelector('[aria-labelledby=others] .error') === null")
    assert browser.get("boxes") == 1
    assert requests.get(f"{site.url}/v1/uploads").json()["uploads"] == []
