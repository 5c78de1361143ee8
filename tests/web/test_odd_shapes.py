"""Models of odd shapes, parts without names and empty folders: what is shown of them is right, and fits."""

import shutil
import time

import numpy
import pytest
import requests

import axe
import models
from containers import Component, Object, zt1

REFUSED = pytest.mark.complains("a refused request")
SPARSE = numpy.arange(300, dtype="<c8") - 100j
LONG_KEY = "a key without blanks ".replace(" ", "_") * 20
# One more than fits into blocks of two.
EDGE = models.waves(513, 511)
INTEGERS = [2**63 - 3, -(2**63), 2**53 + 1]


def odd():
    return zt1({
        # An axis that no double holds: there are no elements on it.
        "giant": Object([2**60 + 1, 0], {"data": Component(b"", "u8")}),
        "giant.leading": Object([0, 2**60 + 1, 4], {"data": Component(b"", "u8")}),
        "ones": Object([1] * 20 + [2, 3], {"data": Component(bytes(range(6)), "u8")}),
        "edge": models.array(EDGE),
        "far": models.array(numpy.array([1.7e308, -1.7e308], "<f8")),
        "sparse": Object([1, 1000], {
            "values": Component(SPARSE.tobytes(), "f32", "complex64"),
            "indices": Component(numpy.arange(300, dtype="<u4").tobytes(), "u32"),
            "indptr": Component(numpy.array([0, 300], "<u4").tobytes(), "u32"),
        }, "sparse_csr"),
        "attributed": models.dense(bytes(4), attributes={"integers": INTEGERS, LONG_KEY: "x " * 300}),
    }, attributes={LONG_KEY: "x " * 300})  # fmt: skip


def dotted():
    """Names whose parts are empty, and ones that look like what a language has already."""
    names = [".a.b", ".a.c", "a.b", "..", "", "__proto__.x", "constructor.y", "toString", "\u200b", " \u3000"]
    return zt1({name: models.dense(bytes(10)) for name in names})


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "odd.zt").write_bytes(odd())
    (folder / "dotted.zt").write_bytes(dotted())
    (folder / "small.zt").write_bytes(models.small())
    # Longer than names of zTensor 2 may be.
    (folder / "long.zt").write_bytes(zt1({"x" * 2_000: models.dense(bytes(10))}))
    (folder / "blocks.gguf").write_bytes(models.quantized()[0])
    return share_server(folder)


def page(site, name, component="data", query=""):
    return f"{site.url}/ui/models/odd/objects/{name}/{component}{query}"


# --- shapes ---


@pytest.mark.parametrize("name, shape", [("giant", f"{2**60 + 1} × 0"), ("giant.leading", f"0 × {2**60 + 1} × 4")])
def test_an_axis_that_no_double_holds_is_shown_exactly(site, browser, name, shape):
    browser.open(page(site, name))
    assert browser.texts(".facts dd")[:2] == [shape, "0"]
    assert browser.texts(".error") == []
    assert browser.text("main").count("There are no elements") == 2
    assert browser.get("document.querySelector('#axis-0')?.checkVisibility() ?? false") is False


def test_there_is_nothing_to_choose_on_axes_of_one(site, browser):
    browser.open(page(site, "ones"))
    assert browser.get("[...document.querySelectorAll('input.index')].filter((e) => e.checkVisibility()).length") == 2
    assert not browser.get("document.querySelector('#part').checkVisibility()")
    assert [text for text in browser.texts("table.values td") if text] == list("012345")


def test_the_last_cell_is_as_small_as_what_is_left(site, browser):
    browser.open(page(site, "edge"))
    browser.run("document.querySelector('#heatmap').focus()")
    browser.press("End", *["PageDown"] * 20)
    where, value = browser.text("#heatmap-cell").rsplit(": ", 1)
    assert where == "row 510 to 512, column 510"
    assert float(value) == pytest.approx(float(EDGE[510:, 510:].mean(dtype="f8")), rel=1e-5)


@pytest.mark.parametrize("component", ["nothing", "constructor", "__proto__"])
def test_a_component_that_is_none_is_said_to_be_none(site, browser, component):
    browser.open(page(site, "edge", component))
    assert "The object has no component of this name." in browser.text(".error")


def test_why_there_is_no_histogram(site, browser):
    browser.open(page(site, "far"))
    assert requests.get(f"{site.url}/v1/models/odd/objects/far/data/statistics").json()["histogram"] is None
    assert "No histogram: the elements are too far apart." in browser.text("main")


@REFUSED
def test_a_link_leads_to_values_beyond_the_shape_of_a_sparse_tensor(site, browser):
    browser.open(page(site, "sparse", "values"))
    browser.click(".moves [data-key=End]")
    browser.wait("[...document.querySelectorAll('table.values td')].at(-1)?.textContent === '299-100j'")
    browser.settle()
    rows = browser.texts("table.values tbody th")
    browser.open(browser.get("location.href"))
    assert browser.texts("table.values tbody th") == rows
    assert [complex(text) for text in browser.texts("table.values td") if text] == SPARSE[int(rows[0]) :].tolist()


def test_quantized_tensors_are_shown_as_what_they_stand_for(site, browser):
    _, expected = models.quantized()
    browser.open(f"{site.url}/ui/models/blocks/objects/blk.0.weight/data?at=1,8")
    assert browser.texts(".refusal") == browser.texts(".error") == []
    shown = [float(text) for text in browser.texts("table.values td") if text]
    assert shown == pytest.approx(expected[1:4, 8:16].ravel().tolist(), rel=1e-6)
    browser.point("#heatmap", 0.5 / 64, 2.5 / 4)
    assert float(browser.text("#heatmap-cell").rsplit(": ", 1)[1]) == pytest.approx(float(expected[2, 0]), rel=1e-5)
    assert float(browser.get("document.querySelector('td[data-key=max]').title")) == float(expected.max())


# --- attributes ---


def test_attributes_of_a_tensor_keep_all_digits(site, browser):
    browser.open(page(site, "attributed"))
    browser.click("details:has(dl) > summary")
    assert browser.text("dl.long dd") == f"[{','.join(map(str, INTEGERS))}]"


@pytest.mark.parametrize("path", ["models/odd", "models/odd/objects/attributed/data"])
@pytest.mark.parametrize("width", [380, 768, 1280])
def test_a_long_key_leaves_room_for_its_value(site, browser, width, path):
    browser.resize(width)
    browser.open(f"{site.url}/ui/{path}")
    if "objects" in path:
        browser.click("details:has(dl) > summary")
    assert browser.get("document.documentElement.scrollWidth") <= width
    value = browser.get("[...document.querySelectorAll('dl.long dd')].at(-1).getBoundingClientRect().width")
    assert value >= 0.5 * (min(width, 1200) - 32)


# --- the map ---


def cell(label):
    return f"[...document.querySelectorAll('.treemap svg > *')].find((e) => e.getAttribute('aria-label').startsWith('{label}:'))"


def test_the_map_goes_into_modules_without_a_name(site, browser):
    browser.open(f"{site.url}/ui/models/dotted")
    browser.run(f"{cell('(empty)')}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}));")
    browser.wait("document.querySelector('.trail strong').textContent === '(empty)'")
    inside = browser.get("location.href")
    assert "?at=" in inside
    browser.run(f"{cell('a')}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}));")
    browser.wait("document.querySelector('.trail strong').textContent === 'a'")
    assert "Bytes of .a: 20 B in 2 tensors" in browser.get("document.querySelector('.treemap svg').getAttribute('aria-label')")
    browser.run("history.back()")
    browser.wait("location.href === arguments[0] && document.querySelector('.trail strong').textContent === '(empty)'", inside)
    browser.open(inside)
    assert browser.text(".trail strong") == "(empty)"


def test_names_that_a_language_has_are_modules_like_others(site, browser):
    browser.open(f"{site.url}/ui/models/dotted?at=__proto__")
    assert browser.text(".trail strong") == "__proto__"
    browser.open(f"{site.url}/ui/models/dotted")
    assert {"__proto__", "constructor", "toString", "(empty)"} <= {text.split(".")[0] for text in browser.texts(".scroller tbody .name")}


def test_names_of_which_nothing_is_seen_are_spelled(site, browser):
    browser.open(f"{site.url}/ui/models/dotted")
    assert {"(U+200B)", "(U+0020 U+3000)"} <= set(browser.texts(".scroller tbody a"))
    browser.open(f"{site.url}/ui/models/dotted/objects/%E2%80%8B/data")
    assert browser.text("h1") == "(U+200B)"


def test_the_map_is_one_stop_of_the_tab_key_and_arrows_move_in_it(site, browser):
    browser.open(f"{site.url}/ui/models/small")
    stops = "[...document.querySelectorAll('.treemap svg [tabindex=\"0\"]')]"
    label = "document.activeElement.getAttribute('aria-label')"
    labels = browser.get("[...document.querySelectorAll('.treemap svg > *')].map((e) => e.getAttribute('aria-label'))")
    browser.run(f"{stops}[0].focus()")
    seen = [browser.get(label)]
    for key in ("Right", "Down", "Left", "End", "Home", "Up"):
        browser.press(key)
        seen.append(browser.get(label))
        assert browser.get(f"{stops}.length") == 1
    assert seen == [labels[at] for at in (0, 1, 2, 1, -1, 0, 0)]
    assert axe.broken(browser) == []


# --- downloads ---


@REFUSED
def test_an_export_that_is_refused_says_why(site, browser):
    browser.open(f"{site.url}/ui/models/long")
    detail = requests.get(f"{site.url}/v1/models/long/export?format=zt2").json()["detail"]
    browser.run("[...document.querySelectorAll('a[download]')].find((e) => e.textContent === 'as zTensor 2').click()")
    browser.wait("document.querySelector('.error') !== null")
    assert detail in browser.text(".error")


def test_an_export_is_downloaded(site, browser):
    browser.open(f"{site.url}/ui/models/dotted")
    into = browser.downloads / "here"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(into))
    browser.run("[...document.querySelectorAll('a[download]')].find((e) => e.textContent === 'as zTensor 1.2').click()")
    expected = requests.get(f"{site.url}/v1/models/dotted/export?format=zt").content
    end = time.monotonic() + 30
    while not ((into / "dotted.zt").exists() and (into / "dotted.zt").read_bytes() == expected):
        assert time.monotonic() < end, list(into.iterdir())
        time.sleep(0.05)
    assert browser.texts(".error") == []


# --- an empty folder ---


def test_an_empty_folder_is_looked_at_until_there_is_a_model(tmp_path, start_server, browser):
    site = start_server(tmp_path)
    browser.open(f"{site.url}/ui/")
    assert "There are no models yet." in browser.text("main")
    (tmp_path / "first.zt").write_bytes(models.small())
    browser.wait("document.querySelector('.scroller tbody a')?.textContent === 'first'")
    assert "There are no models yet." not in browser.text("main")
    assert browser.text(".bar output") == "1 model"
