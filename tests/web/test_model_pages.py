"""The catalog and a model's page show what the API answers, however much it is."""

import re

import pytest
import requests

import models
from containers import dense, zt1

MANY = 100_000
# Rows that are drawn, and what surrounds them.
NODES_MAX = 3_000


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    (folder / "many.safetensors").write_bytes(models.many(MANY))
    (folder / "meta").mkdir()
    (folder / "meta" / "some-model.zt").write_bytes(zt1({"one": dense(bytes(5000))}))
    (folder / "broken.zt").write_bytes(b"ZTEN1000" + bytes(100))
    damaged = zt1({"good": dense(bytes(100)), "bad": dense(bytes(range(100)))})
    (folder / "damaged.zt").write_bytes(damaged.flipped("bad"))
    return share_server(folder)


def get(site, path):
    answer = requests.get(f"{site.url}{path}")
    answer.raise_for_status()
    return answer.json()


def names(browser):
    """The models or tensors that a table shows, in order."""
    return browser.texts("main .table tbody tr > :first-child bdi.name")


def cells(browser, key):
    """What is in a column, whichever is the how-manieth."""
    return browser.run(
        "const at = [...document.querySelectorAll('main .table thead th')].findIndex((e) => e.dataset.key === arguments[0]);"
        "return [...document.querySelectorAll('main .table tbody:not(.spacer) tr')].map((row) => row.cells[at].textContent);",
        key,
    )


def bytes_of(text):
    amount, unit = re.fullmatch(r"([\d.,]+) (B|KiB|MiB|GiB)", text).groups()
    return float(amount.replace(",", "")) * 1024 ** ["B", "KiB", "MiB", "GiB"].index(unit)


# --- the catalog ---


def test_catalog_rows_are_those_of_the_api(site, browser):
    browser.open(f"{site.url}/ui/")
    expected = get(site, "/v1/models")["models"]
    assert names(browser) == [model["name"] for model in expected]
    assert [bytes_of(text) for text in cells(browser, "size")] == pytest.approx(
        [model["size"] for model in expected], rel=0.01
    )
    counts = [None if text == "–" else int(text.replace(",", "")) for text in cells(browser, "objects")]
    assert counts == [model["objects"] for model in expected]
    formats = [f"{model['format']} {model['version']}" if model["version"] else model["format"] for model in expected]
    assert cells(browser, "format") == [text or "" for text in formats]


def test_an_unreadable_model_is_shown_with_its_error(site, browser):
    browser.open(f"{site.url}/ui/")
    error = next(model["error"] for model in get(site, "/v1/models")["models"] if model["name"] == "broken")
    row = browser.get(
        "[...document.querySelectorAll('main tbody tr')].find((e) => e.querySelector('a')?.textContent === 'broken').textContent"
    )
    assert "unreadable" in row
    assert error["detail"][:100] in row


def test_search_and_sort_are_kept_in_the_address(site, browser):
    browser.open(f"{site.url}/ui/")
    browser.press("/")
    browser.type("input[type=search]", "ma")
    browser.wait("document.querySelector('main .table table').getAttribute('aria-rowcount') === '4'")
    assert names(browser) == ["damaged", "many", "small"]
    browser.click("th[data-key=size] button")
    assert names(browser)[0] == "many"
    browser.click("th[data-key=size] button")
    assert names(browser) == ["damaged", "small", "many"]
    assert browser.get("document.querySelector('th[data-key=size]').getAttribute('aria-sort')") == "ascending"
    browser.open(browser.get("location.href"))
    assert names(browser) == ["damaged", "small", "many"]


def test_a_name_of_several_parts_leads_to_its_model(site, browser):
    browser.open(f"{site.url}/ui/")
    browser.run(
        "[...document.querySelectorAll('main tbody a')].find((e) => e.textContent === 'meta/some-model').click()"
    )
    browser.wait("document.querySelector('h1')?.textContent === 'meta/some-model'")
    browser.settle()
    assert names(browser)[0] == "one"


# --- a model ---


def test_a_models_tensors_are_those_of_the_api(site, browser):
    browser.open(f"{site.url}/ui/models/small")
    objects = get(site, "/v1/models/small")["objects"]
    expected = {}
    for name, value in objects.items():
        for component, stored in value["components"].items():
            expected[name if component == "data" else f"{name} · {component}"] = (value, stored)
    shown = names(browser)
    assert sorted(shown) == sorted(expected)
    sizes = [bytes_of(text) for text in cells(browser, "size")]
    assert sizes == pytest.approx([expected[name][1]["length"] for name in shown], rel=0.01)
    assert cells(browser, "type") == [expected[name][1]["type"] for name in shown]
    shapes = [[int(axis) for axis in re.findall(r"\d+", text)] for text in cells(browser, "shape")]
    assert shapes == [expected[name][0]["shape"] for name in shown]
    assert "NumPy" in browser.text("[aria-labelledby=attributes]")


def test_the_map_of_bytes_is_in_proportion(site, browser):
    browser.open(f"{site.url}/ui/models/small")
    browser.wait("document.querySelector('.treemap svg a rect') !== null")
    areas = browser.get(
        "[...document.querySelectorAll('.treemap svg a')].map((e) => { const box = e.getBBox();"
        "return [e.getAttribute('aria-label'), box.width * box.height]; })"
    )
    objects = get(site, "/v1/models/small")["objects"]
    total = sum(stored["length"] for value in objects.values() for stored in value["components"].values())
    largest = max(area for _, area in areas)
    whole = browser.get(
        "(() => { const b = document.querySelector('.treemap svg').viewBox.baseVal; return b.width * b.height; })()"
    )
    assert "waves" in next(label for label, area in areas if area == largest)
    assert largest / whole == pytest.approx(objects["waves"]["components"]["data"]["length"] / total, abs=0.03)


@pytest.mark.parametrize("model, word", [("small", "verified"), ("damaged", "failed")])
def test_the_button_verifies(site, browser, model, word):
    browser.open(f"{site.url}/ui/models/{model}")
    browser.click("[aria-labelledby=verification] button")
    browser.wait("document.querySelector('[aria-labelledby=verification] .mark').textContent === arguments[0]", word)
    report = get(site, f"/v1/models/{model}/verification")
    assert report["state"] == word
    for failure in report["failures"]:
        assert failure["object"] in browser.text("[aria-labelledby=verification]")


@pytest.mark.complains("a refused request")
def test_a_model_that_cannot_be_read_says_why(site, browser):
    browser.open(f"{site.url}/ui/models/broken")
    detail = requests.get(f"{site.url}/v1/models/broken").json()["detail"]
    assert detail[:100] in browser.text(".error")


# --- very many tensors ---


def test_a_hundred_thousand_tensors_stay_few_elements(site, browser):
    browser.open(f"{site.url}/ui/models/many")
    count = "document.querySelectorAll('main *').length"
    assert browser.get(count) < NODES_MAX
    assert browser.get("document.querySelector('main table').getAttribute('aria-rowcount')") == str(MANY + 1)
    expected = sorted((f"block.{i // 100}.part.{i % 100}" for i in range(MANY)), key=natural)
    browser.run("const box = document.querySelector('main .scroller'); box.scrollTop = box.scrollHeight;")
    browser.wait(
        "[...document.querySelectorAll('main tbody bdi.name')].some((e) => e.textContent === arguments[0])",
        expected[-1],
    )
    assert browser.get(count) < NODES_MAX
    browser.run("const box = document.querySelector('main .scroller'); box.scrollTop = box.scrollHeight / 2;")
    browser.wait(
        "[...document.querySelectorAll('main tbody bdi.name')].some((e) => e.textContent === arguments[0])",
        expected[MANY // 2],
    )
    assert browser.get(count) < NODES_MAX


def test_one_of_a_hundred_thousand_is_found(site, browser):
    browser.open(f"{site.url}/ui/models/many")
    browser.type("input[type=search]", "block.777.part.42")
    browser.wait("document.querySelector('main .table table').getAttribute('aria-rowcount') === '2'")
    browser.run("document.querySelector('main .table tbody a').click()")
    browser.wait("document.querySelector('table.values td:nth-child(2)') !== null")
    assert browser.texts("table.values td")[-1] == str(77742 % 251)


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]
