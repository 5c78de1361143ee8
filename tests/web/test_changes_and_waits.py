"""What a reader sees while answers are on their way, where none come, and when what is looked at changes."""

import os
import time

import numpy
import pytest
import requests

import models
from containers import zt1
from cutting import CutWay

REFUSED = pytest.mark.complains("a refused or a cut request")
# Answers stay away until release() is called in the page.
HOLD = (
    "window.held = []; const real = window.fetch;"
    "window.fetch = (...what) => new Promise((resolve) => held.push(() => resolve(real(...what))));"
    "window.release = () => { window.fetch = real; held.splice(0).forEach((go) => go()); };"
)
RAMP = numpy.arange(600 * 500, dtype="<f4").reshape(600, 500)


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    (folder / "ramp.zt").write_bytes(zt1({"t": models.array(RAMP)}))
    (folder / "many.safetensors").write_bytes(models.many(2_000))
    return share_server(folder, "--writable")


@pytest.fixture
def way(site):
    way = CutWay(site)
    yield way
    way.close()


def replace(site, folder, name, objects, shape):
    (folder / "next.part").write_bytes(zt1(objects))
    os.replace(folder / "next.part", folder / f"{name}.zt")
    end = time.monotonic() + 30
    while requests.get(f"{site.url}/v1/models/{name}").json()["objects"]["t"]["shape"] != shape:
        assert time.monotonic() < end
        time.sleep(0.05)


def values(browser):
    return [float(text) for text in browser.texts("table.values td") if text]


# --- a model that is replaced ---


@pytest.mark.parametrize("shape", [[20, 10], [200]], ids=["another answer", "a refused one"])
@REFUSED
def test_a_replaced_model_is_not_mixed_with_what_it_was(site, folder, browser, shape):
    replace(site, folder, "ramp", {"t": models.array(RAMP)}, [600, 500])
    browser.open(f"{site.url}/ui/models/ramp/objects/t/data")
    before = values(browser)
    small = numpy.arange(200, dtype="<i4").reshape(shape)
    replace(site, folder, "ramp", {"t": models.array(small)}, shape)
    browser.click(".moves [data-key=PageDown]")
    browser.wait("document.querySelector('.error')?.textContent.includes('has been replaced')")
    browser.settle()
    assert values(browser) == before
    assert len(browser.texts(".error")) == 1
    browser.click(".error a")
    facts = " × ".join(map(str, shape))
    browser.wait("document.querySelector('.facts').textContent.includes(arguments[0]) && document.querySelector('table.values')", facts)
    browser.settle()
    assert values(browser)[:8] == list(range(8))


# --- a server that is away ---


@REFUSED
@pytest.mark.parametrize("page, shown", [("", "small"), ("models/small", "waves"), ("uploads", "Upload")])
def test_a_server_that_is_away_is_tried_again(browser, way, page, shown):
    browser.open(f"{way.url}/ui/nothing")
    way.shut()
    browser.run("const link = document.createElement('a'); link.href = arguments[0];"
                "document.querySelector('main').append(link); link.click();", f"/ui/{page}")  # fmt: skip
    browser.wait("document.querySelector('.error')?.textContent.includes('The server does not respond.')")
    way.open()
    browser.run("[...document.querySelectorAll('main button')].find((e) => e.textContent === 'Try again').click()")
    browser.wait("document.querySelector('.error') === null && document.querySelector('main').innerText.includes(arguments[0])", shown)


# --- answers that are on their way ---


def test_a_tensors_page_says_what_it_waits_for(site, browser):
    browser.open(f"{site.url}/ui/models/small")
    browser.run(HOLD)
    browser.run("[...document.querySelectorAll('tbody a')].find((e) => e.textContent === 'waves').click()")
    browser.wait("document.querySelector('h1')?.textContent === 'waves'")
    assert "Loading" in browser.text("main")
    assert browser.get("document.querySelector('main nav a:last-child').textContent") == "small"
    browser.run("release()")
    browser.wait("document.querySelector('table.values') !== null")
    assert "Loading" not in browser.text("main")


def test_going_back_to_what_is_drawn_waits_for_nothing(site, browser):
    browser.open(f"{site.url}/ui/models/small/objects/waves/data")
    low = browser.text("#low")
    browser.run(HOLD)
    browser.choose("#reduce", "absmax")
    assert browser.get("document.querySelector('[aria-labelledby=heat-map]').getAttribute('aria-busy')") == "true"
    browser.choose("#reduce", "mean")
    browser.run("release()")
    browser.settle()
    assert browser.text("#low") == low


def test_the_answer_to_what_was_asked_last_is_shown(site, browser):
    """Also if what was asked before comes later, in each part of the page."""
    go = "history.replaceState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'));"
    browser.open(f"{site.url}/ui/models/small/objects/waves/data?slice=0:20,0:20&at=9,9&part")
    shown = ("[document.querySelector('#low').textContent, document.querySelector('td[data-key=count]').textContent,"
             "document.querySelector('table.values tbody th').textContent, document.querySelector('.crumbs').textContent]")  # fmt: skip
    expected = browser.get(shown)
    browser.run(go, "?slice=0:8,0:8&at=5,5&part")
    browser.settle()
    browser.run("window.held = []; window.open_ = 0; const real = window.fetch;"
                "window.fetch = (...what) => new Promise((resolve) => held.push(() => real(...what).then((answer) => {"
                "resolve(answer); })));")  # fmt: skip
    browser.run(go, "?slice=0:30,0:30&at=11,11&part")
    browser.run(go, "?slice=0:20,0:20&at=9,9&part")
    assert browser.get("held.length") == 6
    browser.run_async("await Promise.all(held.slice(3).map((go) => go()));")
    browser.wait(f"{shown}.join() === arguments[0]", ",".join(expected))
    browser.run_async("await Promise.all(held.slice(0, 3).map((go) => go())); await new Promise((go) => setTimeout(go, 200));")
    assert browser.get(shown) == expected


def test_the_cell_pointed_at_is_of_the_picture_that_is_seen(site, browser):
    browser.open(f"{site.url}/ui/models/small/objects/waves/data?slice=0:64,0:64")
    browser.run(HOLD)
    browser.point("#heatmap", 0.5, 0.5, click=True)
    browser.wait("!location.search.includes('0:64,0:64')")
    browser.point("#heatmap", 1.5 / 64, 2.5 / 64)
    before = browser.text("#heatmap-cell")
    browser.run("release()")
    assert before.startswith("row 2, column 1:")


# --- going back ---


def test_back_leads_to_the_same_rows(site, browser):
    browser.resize(1280, 500)
    browser.open(f"{site.url}/ui/models/many?sort=-name")
    browser.run("scrollTo(0, 300); document.querySelector('.scroller').scrollTop = 340 * 34;")
    browser.wait("document.querySelector('tbody tr[data-index=\"345\"] a')")
    before = browser.get("[scrollY, document.querySelector('.scroller').scrollTop]")
    assert before == [300, 340 * 34]
    browser.run("document.querySelector('tbody tr[data-index=\"345\"] a').click()")
    browser.wait("document.querySelector('table.values') !== null")
    assert browser.get("scrollY") == 0
    browser.run("history.back()")
    browser.wait("document.querySelector('main:not([aria-busy]) .scroller') !== null")
    assert browser.get("[scrollY, document.querySelector('.scroller').scrollTop]") == before


def test_back_leads_out_of_a_module(site, browser):
    browser.open(f"{site.url}/ui/models/many")
    browser.run("document.querySelector('.scroller').dataset.same = 'yes'")
    browser.run("document.querySelector('.treemap [role=button]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    inside = browser.wait("document.querySelector('.trail strong').textContent !== 'whole model' && location.search")
    assert inside.startswith("?at=block")
    browser.run("history.back()")
    browser.wait("document.querySelector('.trail strong').textContent === 'whole model' && location.search === ''")
    assert browser.get("document.querySelector('.scroller').dataset.same") == "yes"
    browser.run("history.forward()")
    browser.wait("document.querySelector('.trail strong').textContent !== 'whole model' && location.search === arguments[0]", inside)
    # What is filtered belongs to the address too.
    browser.type("input[type=search]", "block.7.")
    browser.run("history.back()")
    browser.wait("location.search === '' && document.querySelector('input[type=search]')?.value === ''")


# --- figures and widths ---


def test_tensors_of_several_components_are_counted_once(site, browser):
    objects = requests.get(f"{site.url}/v1/models/small").json()["objects"]
    parts = sum(len(value["components"]) for value in objects.values())
    browser.open(f"{site.url}/ui/models/small")
    assert browser.texts(".figures dd")[1] == str(len(objects))
    assert browser.get("document.querySelector('.treemap svg').getAttribute('aria-label')").endswith(f"in {len(objects)} tensors")
    assert browser.text("[aria-labelledby=tensors] output") == f"{parts} components of tensors"


def test_names_of_tensors_are_read_at_380_pixels(site, browser):
    browser.resize(380)
    browser.open(f"{site.url}/ui/models/many?sort=-name")
    assert browser.get("document.querySelector('.column-name').getBoundingClientRect().width") >= 200
    cut = "[...document.querySelectorAll('.scroller tbody th')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert browser.get(cut) == 0


def test_what_is_unreadable_is_said_at_380_pixels(site, folder, browser):
    name = "with-a-name-that-is-longer-than-a-telephone-is-wide"
    (folder / f"{name}.zt").write_bytes(b"ZTEN1000" + bytes(100))
    browser.resize(380)
    browser.open(f"{site.url}/ui/models/small")
    end = time.monotonic() + 30
    while not any(model["name"] == name for model in requests.get(f"{site.url}/v1/models").json()["models"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    browser.open(f"{site.url}/ui/")
    cell, mark = browser.get("['.scroller th:has(.mark.bad)', '.scroller .mark.bad'].map((e) => document.querySelector(e).getBoundingClientRect().right)")
    assert mark <= cell


# --- uploads ---


def test_what_is_cancelled_at_once_leaves_nothing(site, browser, tmp_path):
    (tmp_path / "never.zt").write_bytes(models.small())
    browser.open(f"{site.url}/ui/uploads")
    browser.run(HOLD)
    browser.type("#files", str(tmp_path / "never.zt"))
    browser.wait("held.length > 0")
    browser.run("[...document.querySelectorAll('.upload button')].find((e) => e.textContent === 'Cancel').click()")
    # The server begins the upload all the same.
    browser.run("window.asked = [];")
    browser.run("release(); const real = window.fetch;"
                "window.fetch = async (...what) => { const answer = await real(...what);"
                "asked.push(`${what[1]?.method} ${answer.status}`); return answer; };")  # fmt: skip
    browser.wait("asked.includes('DELETE 204')")
    assert requests.get(f"{site.url}/v1/uploads").json()["uploads"] == []
    assert browser.get("Object.keys(localStorage).filter((key) => key.includes('upload')).length") == 0
    assert requests.get(f"{site.url}/v1/models/never").status_code == 404
