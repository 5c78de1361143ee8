"""Rare types, very many models, long lists, links that fit no longer, and the keys that go with them."""

import numpy
import pytest
import requests

import models
from containers import Component, Object, zt1

PAGE = 1_000  # models of one request
EVERY_BYTE = bytes(range(256))
SMALL_FLOATS = ["f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0"]
# Zeros, subnormals, ordinary numbers and what is no number.
HALVES = numpy.array([0, 0x8000, 1, 0x8003, 0x3FF, 0x400, 0x3C00, 0xC248, 0x7BFF, 0x7C00, 0xFC00, 0x7E00], "<u2")
LONG_INTEGER = 2**63 - 3
WAVES = models.waves(600, 500)


def types():
    objects = {name: Object([256], {"data": Component(EVERY_BYTE, "u8", name)}) for name in SMALL_FLOATS}
    objects["half"] = models.dense(HALVES.tobytes(), "f16", [len(HALVES)])
    objects["signs"] = Object([3], {"data": Component(numpy.array([1 + 2j, 1 - 2j, -0.0], "<c8").tobytes(), "f32", "complex64")})
    for name, shape in (("i4", [7, 9]), ("u2", [70]), ("i2", [])):
        each, count = 8 // int(name[1]), int(numpy.prod(shape))
        codes = [i % (1 << int(name[1])) if i < count else 0 for i in range(count + -count % each)]
        packed = bytes(sum(codes[i + j] << (j * 8 // each) for j in range(each)) for i in range(0, len(codes), each))
        objects[name] = Object(shape, {"data": Component(packed, "u8", name)})
    objects["waves"] = models.array(WAVES)
    for i in range(250):
        objects[f"long.list.{i}"] = models.array(numpy.zeros(1, "<u1"))
    attributes = {f"key {i}": i for i in range(40)}
    return zt1(objects, attributes={**attributes, "vocabulary": LONG_INTEGER})


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "types.zt").write_bytes(types())
    without = zt1({"plain": Object([4], {"data": Component(bytes(4), digest=None)})})
    (folder / "undigested.zt").write_bytes(without)
    damaged = zt1({"good": models.dense(bytes(100)), "bad": models.dense(bytes(range(100)))})
    (folder / "damaged.zt").write_bytes(damaged.flipped("bad"))
    numpy.save(folder / "one.npy", numpy.zeros(1))
    content = (folder / "one.npy").read_bytes()
    (folder / "many").mkdir()
    for i in range(PAGE):
        (folder / "many" / f"m{i:04}.npy").write_bytes(content)
    return share_server(folder)


def page(site, name, query=""):
    return f"{site.url}/ui/models/types/objects/{name}/data{query}"


def values(browser):
    return numpy.array([float(text) for text in browser.texts("table.values td") if text])


# --- types ---


@pytest.mark.parametrize("name", [*SMALL_FLOATS, "half"])
def test_small_floats_are_those_that_the_server_widens(site, browser, name):
    answer = requests.get(f"{site.url}/v1/models/types/objects/{name}/data?dtype=f32")
    with numpy.errstate(invalid="ignore"):  # NaNs that signal.
        expected = numpy.frombuffer(answer.content, "<f4").astype("f8")
    shown = []
    for at in range(0, len(expected), 128):
        browser.open(page(site, name, f"?at={at}" if at else ""))
        shown.append(values(browser))
    shown = numpy.concatenate(shown)
    assert numpy.allclose(shown, expected, rtol=1e-3, atol=0, equal_nan=True)
    assert numpy.array_equal(numpy.signbit(shown)[~numpy.isnan(shown)], numpy.signbit(expected)[~numpy.isnan(shown)])


@pytest.mark.parametrize("name, shape", [("i4", (7, 9)), ("u2", (70,)), ("i2", ())])
def test_integers_of_less_than_a_byte_are_shown(site, browser, name, shape):
    bits = int(name[1])
    codes = numpy.arange(int(numpy.prod(shape))) % (1 << bits)
    expected = numpy.where((name[0] == "i") & (codes >> (bits - 1) == 1), codes - (1 << bits), codes)
    browser.open(page(site, name))
    across = min(8, shape[-1]) if shape else 1
    shown = expected.reshape(shape)[:, :across] if len(shape) == 2 else expected
    assert values(browser).tolist() == shown.reshape(-1).tolist()


@pytest.mark.complains("refused pictures and statistics")
def test_both_parts_of_a_complex_number_have_their_signs(site, browser):
    browser.open(page(site, "signs"))
    assert [complex(text) for text in browser.texts("table.values td") if text] == [1 + 2j, 1 - 2j, 0]


# --- the heat map ---


def ranges(browser):
    return browser.text(".crumbs [aria-current]")


def test_a_frame_is_drawn_around_what_is_to_be_seen(site, browser):
    browser.open(page(site, "waves", "?slice=0:200,0:200"))
    browser.run("document.querySelector('#heatmap').scrollIntoView({block: 'center'});")
    box = browser.get("document.querySelector('#heatmap').getBoundingClientRect().toJSON()")

    def at(x, y):
        where = {"x": round(box["left"] + x * box["width"]), "y": round(box["top"] + y * box["height"])}
        return {"type": "pointerMove", "duration": 0, "origin": "viewport", **where}

    press, release = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
    actions = [at(20.5 / 200, 40.5 / 200), press, at(79.5 / 200, 59.5 / 200), release]
    browser.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": actions}])
    browser.wait("location.search.includes('slice=') && !location.search.includes('0:200')")
    rows, columns = ([int(end) for end in part.split(":")] for part in ranges(browser).split(", "))
    assert rows == pytest.approx([40, 60], abs=1)
    assert columns == pytest.approx([20, 80], abs=1)


def test_zooming_out_goes_back_step_by_step(site, browser):
    browser.open(page(site, "waves"))
    browser.run("document.querySelector('#heatmap').focus()")
    seen = []
    for key in ("Enter", "Enter", "Escape", "Escape"):
        before = browser.get("location.search")
        browser.press(key)
        browser.wait("location.search !== arguments[0]", before)
        browser.settle()
        seen.append(ranges(browser))
    first, second, out, whole = seen
    assert first != second and out == first and whole == ""


# --- links ---


@pytest.mark.parametrize("query", ["slice=0:99999,0:99999&at=99999,3", "slice=5:2,junk&at=x", "index=4,4&reduce=no&map=no", "slice=1:2"])
def test_a_link_that_fits_no_longer_shows_all(site, browser, query):
    browser.open(page(site, "waves", f"?{query}"))
    assert browser.texts(".error") == browser.texts(".refusal") == []
    assert browser.texts(".crumbs li") == []
    row = int(browser.texts("table.values tbody th")[0])
    column = int(browser.texts("table.values thead th")[0])
    assert values(browser)[0] == pytest.approx(WAVES[row, column], rel=1e-6)


# --- long lists ---


def test_models_beyond_the_first_thousand_are_listed(site, browser):
    browser.open(f"{site.url}/ui/")
    assert browser.text(".bar output") == f"{PAGE + 4:,} models"
    browser.press("/")
    assert browser.get("document.activeElement.type") == "search"
    browser.type("input[type=search]", "undigested")
    assert browser.texts(".scroller tbody th .name") == ["undigested"]
    browser.press("Escape")
    assert browser.text(".bar output") == f"{PAGE + 4:,} models"
    assert browser.get("location.search") == ""
    browser.run("document.querySelector('.scroller').focus()")
    browser.press("Down", "End")
    assert browser.get("document.activeElement.textContent") == "undigested"
    seen = browser.get(
        "document.activeElement.getBoundingClientRect().bottom <= document.querySelector('.scroller').getBoundingClientRect().bottom"
    )
    assert seen


def test_very_many_models_are_not_sorted_again_with_each_page(site, browser):
    pages = 100
    browser.open(f"{site.url}/ui/nothing")
    browser.run(
        "const real = window.fetch; let page = 0;"
        "window.fetch = async (...what) => { if (!String(what[0]).includes('/v1/models?')) return real(...what);"
        "const at = page++; (window.counts ??= new Set()).add(document.querySelector('.bar output')?.textContent);"
        "return new Response(JSON.stringify({next: page < arguments[0] ? String(page) : null, models: Array.from({length: 1000},"
        "(_, i) => ({name: `m-${at}-${i}`, format: 'zt', version: '1', size: i, objects: i, modified: null}))})); };"
        "document.querySelector('main a').click();".replace("arguments[0]", str(pages))
    )
    browser.wait("document.querySelector('.bar output')?.textContent === '100,000 models'", seconds=60)
    assert 2 <= browser.get("counts.size") < pages // 2


def test_all_attributes_are_shown_when_asked_for(site, browser):
    browser.open(f"{site.url}/ui/models/types")
    browser.run("[...document.querySelectorAll('button')].find((e) => e.textContent === 'Show all 41 attributes').click()")
    names = browser.texts("[aria-labelledby=attributes] dt")
    assert names == [*(f"key {i}" for i in range(40)), "vocabulary"]
    assert browser.texts("[aria-labelledby=attributes] dd")[-1] == str(LONG_INTEGER)


def test_the_rest_of_a_long_level_is_shown_when_asked_for(site, browser):
    browser.open(f"{site.url}/ui/models/types")
    browser.run("[...document.querySelectorAll('.scroller tr')].find((e) => e.innerText.startsWith('1–249')).click()")
    browser.run("const row = [...document.querySelectorAll('.scroller tr')].find((e) => e.innerText.startsWith('1–249'));"
                "document.querySelector('.scroller').scrollTop = row.dataset.index * 34;")  # fmt: skip
    browser.wait("[...document.querySelectorAll('.scroller a')].some((e) => e.getAttribute('href').endsWith('/long.list.20/data'))")
    browser.run("document.querySelector('.scroller').scrollTop = 1e6")
    browser.wait("[...document.querySelectorAll('.scroller a')].some((e) => e.textContent === 'waves')")
    assert int(browser.get("document.querySelector('.scroller table').getAttribute('aria-rowcount')")) > 250


# --- verification ---


@pytest.mark.parametrize("model, word", [("undigested", "no digests to check"), ("damaged", "failed")])
def test_verification_says_what_it_could_not_or_did_find(site, browser, model, word):
    browser.open(f"{site.url}/ui/models/{model}")
    browser.click("[aria-labelledby=verification] button")
    browser.wait("document.querySelector('[aria-labelledby=verification] .mark').textContent === arguments[0]", word)
    failures = browser.texts("[aria-labelledby=verification] li bdi")
    assert failures == (["bad · data"] if model == "damaged" else [])
    # Nothing of a model without digests has been checked.
    assert browser.text("[aria-labelledby=verification] button") == ("Verify again" if model == "damaged" else "Verify")
