"""Figures of many digits: drawn, shown as far as they are known, and no wider than the screen."""

import numpy
import pytest
import requests

RANDOM = numpy.random.default_rng(11)
LONGEST = numpy.array([[-(2**63), 2**63 - 1], [5, 6]], "<i8")
# Beyond the integers that a double has all of, and short enough for JSON to have them without a power of ten.
BEYOND = 12_345_678_901_234_567
WITHIN = 2_901_295_543_210_987
ARRAYS = {
    "beyond.i64": numpy.array([BEYOND, 1], "<i8"),
    "beyond.u64": numpy.array([[BEYOND, 2**53 + 1], [7, 2**60]], "<u8"),
    "beyond.f64": numpy.array([[BEYOND, -1.5], [-BEYOND, 1e300]], "<f8"),
    "all.i64": RANDOM.integers(-(2**63), 2**63, size=(40, 30), dtype="<i8"),
    "all.u64": RANDOM.integers(0, 2**64, size=(40, 30), dtype="<u8"),
    "within": numpy.array([[WITHIN, 1], [-(2**53) + 1, 10**15]], "<i8"),
    "within.f64": numpy.array([[WITHIN, 1], [-WITHIN + 2, 10**15]], "<f8"),
    "longest": LONGEST,
    "range": numpy.array([[1.7e308, -1.7e308], [0, 1]], "<f8"),
}


@pytest.fixture(scope="module")
def site(folder, share_server):
    for name, array in ARRAYS.items():
        numpy.save(folder / f"{name}.npy", array)
    return share_server(folder)


@pytest.fixture
def show(site, browser):
    def show(name, query=""):
        (tensor,) = requests.get(f"{site.url}/v1/models/{name}").json()["objects"]
        browser.open(f"{site.url}/ui/models/{name}/objects/{tensor}/data{query}")

    return show


def value_at(browser, row, column, shape):
    browser.point("#heatmap", (column + 0.5) / shape[1], (row + 0.5) / shape[0])
    return browser.text("#heatmap-cell").rsplit(": ", 1)[1]


# --- the heat map ---


@pytest.mark.parametrize("name, colours", [*((name, "viridis") for name in ARRAYS), ("all.i64", "diverging"), ("range", "diverging")])
def test_every_number_of_64_bits_is_drawn(show, browser, name, colours):
    show(name, f"?map={colours}")
    assert browser.texts(".error") == browser.texts(".refusal") == []
    array = numpy.atleast_2d(ARRAYS[name])
    for row, column in ((0, 0), (0, 1), (len(array) - 1, 0)):
        shown = value_at(browser, row, column, array.shape)
        assert float(shown) == pytest.approx(float(array[row, column]), rel=1e-5)


def test_the_ends_of_the_colours_are_the_extremes(show, browser):
    show("range")
    pixels = browser.get("[...document.querySelector('#heatmap').getContext('2d').getImageData(0, 0, 2, 1).data]")
    legend = browser.get(
        "(() => { const bar = document.querySelector('canvas.legend'); const all = bar.getContext('2d').getImageData(0, 0, "
        "bar.width, 1).data; return [...all.slice(-4), ...all.slice(0, 4)]; })()"
    )
    assert pixels == legend


def test_a_cell_that_is_rounded_does_not_look_exact(show, browser):
    show("beyond.i64")
    assert value_at(browser, 0, 0, (1, 2)) == "1.23457e+16"
    show("within")
    assert value_at(browser, 0, 0, (2, 2)) == str(WITHIN)


# --- statistics ---


@pytest.mark.parametrize("name", ["within", "within.f64", "beyond.i64", "beyond.u64", "all.i64", "all.u64", "longest"])
def test_extremes_of_integers_have_all_digits(show, browser, name):
    show(name)
    shown = browser.get(
        "Object.fromEntries([...document.querySelectorAll('table.statistics td')].map((e) => [e.dataset.key, e.textContent]))"
    )
    values = [int(value) for value in ARRAYS[name].ravel()]
    assert [int(shown[key]) for key in ("min", "max", "abs_max")] == [min(values), max(values), max(map(abs, values))]


# --- widths ---


@pytest.mark.parametrize("width", [320, 768, 1280])
@pytest.mark.parametrize("name", ["longest", "within", "range"])
def test_long_figures_are_no_wider_than_the_screen(show, browser, name, width):
    browser.resize(width)
    show(name)
    assert browser.get("document.documentElement.scrollWidth") <= width


def test_figures_stay_on_one_line_of_a_small_screen(show, browser):
    browser.resize(380)
    show("longest")
    lines = browser.get(
        "[...document.querySelectorAll('table.statistics td')].map((e) => { const range = document.createRange();"
        "range.selectNodeContents(e); return range.getClientRects().length; })"
    )
    assert set(lines) == {1}
