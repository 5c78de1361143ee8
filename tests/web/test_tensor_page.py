"""The page of one tensor shows what the API answers."""

import numpy
import pytest
import requests

import models

# Where a picture and its statistics are not to be had, the console has the refused request.
refused = pytest.mark.complains("a refused request")


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    return share_server(folder)


@pytest.fixture
def show(site, browser):
    def show(name, component="data", query=""):
        browser.open(f"{site.url}/ui/models/small/objects/{name}/{component}{query}")

    return show


@pytest.fixture
def ask(site):
    def ask(name, what, component="data"):
        answer = requests.get(f"{site.url}/v1/models/small/objects/{name}/{component}{what}")
        answer.raise_for_status()
        return answer.json()

    return ask


def readout(browser):
    """What the page says of the cell pointed at: where it is, and its value."""
    where, value = browser.text("#heatmap-cell").rsplit(": ", 1)
    return where, value


def shown_values(browser):
    return browser.get(
        "[...document.querySelectorAll('table.values tbody tr')]"
        ".map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )


# --- statistics ---


@pytest.mark.parametrize(
    "name", ["waves", "odd", "cube", "wide", "unsigned", "half", "brain", "flags", "scalar", "eight"]
)
def test_statistics_are_those_of_the_api(show, browser, ask, name):
    show(name)
    expected = ask(name, "/statistics")
    # The titles hold all digits; JavaScript writes powers of ten in another way than Python.
    titles = browser.get(
        "Object.fromEntries([...document.querySelectorAll('table.statistics td')].map((e) => [e.dataset.key, e.title]))"
    )
    for key, text in titles.items():
        if isinstance(expected[key], int):
            assert int(text) == expected[key], key
        else:
            assert float(text) == expected[key], key


def test_statistics_as_they_are_read(show, browser, ask):
    show("odd")
    expected = ask("odd", "/statistics")
    texts = browser.get(
        "Object.fromEntries([...document.querySelectorAll('table.statistics td')].map((e) => [e.dataset.key, e.textContent]))"
    )
    assert [texts[key] for key in ("count", "nan", "positive_inf", "negative_inf")] == ["40", "1", "1", "1"]
    assert float(texts["mean"]) == pytest.approx(expected["mean"], rel=1e-8)


def test_histogram_has_the_counts_of_the_api(show, browser, ask):
    show("waves")
    expected = ask("waves", "/statistics")["histogram"]
    counts = [int(text.replace(",", "")) for text in browser.texts("table.bins tbody td:nth-child(3)")]
    heights = browser.get(
        "[...document.querySelectorAll('.histogram .column')].map((e) => Number(e.getAttribute('height')))"
    )
    edges = browser.get(
        "[...document.querySelectorAll('table.bins tbody td:nth-child(1)')].map((e) => Number(e.title))"
    )
    assert counts == expected["counts"]
    assert edges == expected["edges"][:-1]
    assert heights.index(max(heights)) == counts.index(max(counts))
    assert heights[32] / max(heights) == pytest.approx(counts[32] / max(counts), rel=1e-6)
    # Few elements are seen too.
    assert 0 < min(counts) < 1.5 / max(heights) * max(counts)
    assert min(heights) >= 1.5


def test_statistics_of_the_part_shown(show, browser, ask):
    show("cube", query="?index=2,1&slice=...,3:9,10:20")
    browser.click("#part")
    browser.settle()
    browser.wait("document.querySelector('td[data-key=count]').textContent === '60'")
    assert float(browser.get("document.querySelector('td[data-key=mean]').title")) == pytest.approx(
        ask("cube", "/statistics?slice=2,1,3:9,10:20")["mean"]
    )
    assert "part" in browser.get("location.search")


# --- the heat map ---


def test_hovering_tells_the_cell_that_the_api_tells(show, browser, ask):
    show("waves")
    expected = ask("waves", "/preview?rows=256&cols=256&reduce=mean")
    browser.point("#heatmap", 0.25, 0.75)
    where, value = readout(browser)
    row, column = (int(part.split()[0]) for part in (where.split("row ")[1], where.split("column ")[1]))
    block = expected["block"]
    assert float(value) == pytest.approx(expected["values"][row // block[0]][column // block[1]], rel=1e-5)
    assert row / 600 == pytest.approx(0.75, abs=0.02)
    assert column / 500 == pytest.approx(0.25, abs=0.02)


def test_colours_go_from_the_lowest_to_the_highest_value(show, browser, ask):
    show("waves", query="?map=gray")
    expected = ask("waves", "/preview?rows=256&cols=256&reduce=mean")
    pixels = browser.get(
        "(() => { const c = document.querySelector('#heatmap');"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 0); })()"
    )
    values = numpy.array(expected["values"]).ravel()
    wanted = (values - expected["low"]) / (expected["high"] - expected["low"]) * 255
    assert abs(numpy.array(pixels) - wanted).max() <= 1.5


def test_a_cell_without_a_finite_element_is_shown_as_such(show, browser):
    show("odd")
    browser.point("#heatmap", 2.5 / 8, 1.5 / 5)
    assert readout(browser) == ("row 1, column 2", "no finite element")
    pixel = browser.get("[...document.querySelector('#heatmap').getContext('2d').getImageData(2, 1, 1, 1).data]")
    assert pixel == [255, 0, 255, 255]


def test_clicking_zooms_until_cells_are_elements(show, browser):
    show("waves")
    browser.point("#heatmap", 0.5, 0.5, click=True)
    browser.wait("location.search.includes('slice=')")
    browser.settle()
    browser.point("#heatmap", 0.3, 0.3)
    where, value = readout(browser)
    row, column = int(where.split("row ")[1].split(",")[0]), int(where.split("column ")[1])
    assert float(value) == pytest.approx(models.waves(600, 500)[row, column], rel=1e-5)
    assert "A cell" not in where


def test_zooming_leads_the_table_of_values_to_the_part_shown(show, browser):
    show("waves")
    browser.point("#heatmap", 0.5, 0.5, click=True)
    browser.wait("location.search.includes('slice=')")
    browser.settle()
    rows, columns = (part.split(":")[0] for part in browser.text(".crumbs [aria-current]").split(", "))
    assert browser.texts("table.values tbody th")[0] == rows
    assert browser.texts("table.values thead th")[0] == columns


def test_a_finger_that_scrolls_draws_no_frame(show, browser):
    show("waves")
    browser.run(
        "const map = document.querySelector('#heatmap'), box = map.getBoundingClientRect();"
        "const at = (kind, x, y, target = map) => target.dispatchEvent(new PointerEvent(kind, {bubbles: true, button: 0,"
        "clientX: box.left + x * box.width, clientY: box.top + y * box.height}));"
        "at('pointerdown', 0.1, 0.1); at('pointercancel', 0.1, 0.3); at('pointermove', 0.8, 0.8);"
    )
    width = browser.get("parseFloat(document.querySelector('.mark-cell').style.width)")
    assert width == pytest.approx(100 / 250)


def test_the_lines_to_copy_follow_the_leading_axes(show, browser):
    show("cube")
    assert "slice" not in browser.text(".snippet")
    show("cube", query="?index=2,1")
    assert "slice=2,1,0:20,0:30" in browser.text(".snippet")


def test_keys_zoom_in_and_out_and_a_link_can_be_shared(show, browser):
    show("waves")
    whole = browser.get("location.href")
    browser.run("document.querySelector('#heatmap').focus()")
    browser.press("Home", "PageUp", "PageUp", "PageUp", "Right", "Right", "Enter")
    browser.wait("location.search.includes('slice=')")
    browser.settle()
    inside = browser.get("location.href")
    shown = browser.text(".crumbs"), browser.texts("table.values tbody th")
    browser.open(inside)
    assert (browser.text(".crumbs"), browser.texts("table.values tbody th")) == shown
    browser.run("document.querySelector('#heatmap').focus()")
    browser.press("Escape")
    browser.wait("location.href === arguments[0]", whole)


def test_the_browsers_back_zooms_out(show, browser):
    show("waves")
    browser.point("#heatmap", 0.5, 0.5, click=True)
    browser.wait("location.search.includes('slice=')")
    browser.settle()
    browser.run("history.back()")
    browser.wait("location.search === ''")
    browser.settle()
    browser.wait("document.querySelector('.crumbs').childElementCount === 0")


def test_leading_axes_are_chosen_by_number(show, browser):
    show("cube")
    browser.fill("#axis-0", "2")
    browser.press("Tab")
    browser.fill("#axis-1", "3")
    browser.press("Tab")
    browser.settle()
    assert browser.get("location.search") == "?index=2,3"
    cube = numpy.random.default_rng(3).normal(size=(3, 4, 20, 30)).astype("<f4")
    assert float(shown_values(browser)[0][0]) == pytest.approx(cube[2, 3, 0, 0], rel=1e-6)
    browser.point("#heatmap", 0.5 / 30, 0.5 / 20)
    assert float(readout(browser)[1]) == pytest.approx(cube[2, 3, 0, 0], rel=1e-5)


def test_a_vector_is_folded(show, browser):
    show("vector")
    browser.point("#heatmap", 0.001, 0.4)
    where, value = readout(browser)
    assert where == f"element {value}"


# --- values ---


@pytest.mark.parametrize(
    "name, kind", [("half", "<f2"), ("waves", "<f4"), ("wide", "<i8"), ("unsigned", "<u8"), ("vector", "<i4")]
)
def test_values_are_those_of_the_tensor(site, show, browser, name, kind):
    show(name)
    content = requests.get(f"{site.url}/v1/models/small/objects/{name}/data")
    shape = [int(axis) for axis in content.headers["ZT-Shape"].split(",")]
    expected = numpy.frombuffer(content.content, kind).reshape(shape)
    expected = expected[:16, :8] if expected.ndim == 2 else expected[:128]
    texts = [text for row in shown_values(browser) for text in row]
    if expected.dtype.kind in "iu":
        assert [int(text) for text in texts] == expected.ravel().tolist()
    else:
        assert numpy.array_equal(numpy.array(texts, "f8").astype(kind), expected.ravel())


def test_values_of_bfloat16(site, show, browser):
    show("brain")
    stored = requests.get(f"{site.url}/v1/models/small/objects/brain/data").content
    brain = (numpy.frombuffer(stored, "<u2").astype("<u4") << 16).view("<f4").reshape(8, 9)
    texts = [text for row in shown_values(browser) for text in row]
    assert [float(text) for text in texts] == pytest.approx(brain[:, :8].ravel().tolist(), rel=1e-3)


@refused
def test_a_complex_tensor_has_values_and_says_why_there_is_no_picture(show, browser):
    show("complex")
    assert shown_values(browser) == [["1+2j", "-0-3.5j"]]
    refusals = browser.texts(".refusal")
    assert len(refusals) == 2
    assert all("real numbers" in text for text in refusals)
    assert browser.texts(".error") == []


@refused
def test_components_of_a_sparse_tensor_have_values(show, browser):
    show("sparse", "indptr")
    assert shown_values(browser) == [["0", "1", "1", "2", "3"]]
    assert len(browser.texts(".refusal")) == 2
    assert browser.texts(".components li") == ["indices", "indptr", "values"]


def test_an_empty_tensor_and_a_scalar(show, browser):
    show("scalar")
    assert shown_values(browser) == [["2.5"]]
    show("nothing")
    assert "There are no elements." in browser.text("main")


def test_values_are_paged_by_keyboard(show, browser):
    show("waves")
    expected = models.waves(600, 500)
    browser.run("document.querySelector('[aria-labelledby=values] [role=region]').focus()")
    browser.press("PageDown", "Right")
    browser.wait("document.querySelector('table.values tbody th')?.textContent === '16'")
    browser.settle()
    assert browser.texts("table.values thead th")[0] == "8"
    assert float(shown_values(browser)[0][0]) == pytest.approx(expected[16, 8], rel=1e-6)
    browser.press("End")
    browser.wait("document.querySelector('table.values tbody tr:last-child th')?.textContent === '599'")


def test_values_are_found_by_number(show, browser):
    show("waves")
    browser.fill("#at-0", "599")
    browser.fill("#at-1", "499")
    browser.press("Enter")
    browser.settle()
    browser.wait("document.querySelector('table.values tbody th')?.textContent === '599'")
    assert float(shown_values(browser)[0][0]) == pytest.approx(models.waves(600, 500)[599, 499], rel=1e-6)
