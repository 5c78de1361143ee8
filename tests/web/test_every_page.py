"""What holds for every page: people can use it with any device and any sight. The fixture `browser` sees that it asks no other server."""

import hashlib

import pytest

import axe
import models

TOKEN = "reader-" + "x" * 30
PAGES = {
    "catalog": "",
    "model": "models/small",
    "hostile": "models/hostile",
    "unreadable": "models/broken",
    "tensor": "models/small/objects/waves/data",
    "sparse": "models/small/objects/sparse/values",
    "leading axes": "models/small/objects/cube/data",
    "uploads": "uploads",
    "compare": "compare?a=small&b=small",
    "unknown": "nothing",
}


REFUSED = ["models/broken", "models/small/objects/sparse/values"]


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    (folder / "hostile.zt").write_bytes(models.hostile())
    (folder / "broken.zt").write_bytes(b"ZTEN1000" + bytes(100))
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, share_server):
    """A server that asks for a token."""
    root = tmp_path_factory.mktemp("guarded")
    (root / "small.zt").write_bytes(models.small())
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"reader read {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    return share_server(root, "--tokens", tokens)


# The console has the refused request of some of them.
@pytest.fixture(params=[pytest.param(path, marks=pytest.mark.complains("a refused request") if path in REFUSED else ())
                        for path in PAGES.values()], ids=PAGES.keys())  # fmt: skip
def page(request, site, browser):
    def open_page():
        browser.open(f"{site.url}/ui/{request.param}")

    return open_page


def brightness(browser):
    colour = browser.get("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.strip("rgb()").split(",")[:3]) / 3


@pytest.mark.parametrize("width", [380, 1280])
def test_nothing_serious_keeps_people_out(page, browser, width):
    browser.resize(width)
    page()
    # What is folded is read too.
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = true;")
    assert axe.broken(browser) == []
    assert brightness(browser) > 200
    browser.prefer("dark")
    assert axe.broken(browser) == []
    assert brightness(browser) < 60


@pytest.mark.parametrize("width", [380, 768])
def test_there_is_nothing_to_scroll_to_at_the_side(page, browser, width):
    browser.resize(width)
    page()
    assert browser.get("document.documentElement.scrollWidth") <= width
    outside = browser.get(
        "[...document.querySelectorAll('h1, h2, button, input, select')].filter((e) => e.checkVisibility() && "
        "!e.closest('.scroll, .unseen, .table') && !e.classList.contains('skip') && e.getBoundingClientRect().right > arguments[0] + 0.5)"
        ".map((e) => e.outerHTML.slice(0, 200))",
        width,
    )
    assert outside == []


def test_the_reader_chooses_the_theme(site, browser):
    browser.open(f"{site.url}/ui/")
    try:
        browser.click("#theme")
        browser.click("#theme")
        assert browser.text("#theme") == "Theme: dark"
        browser.open(f"{site.url}/ui/uploads")
        assert browser.get("document.documentElement.dataset.theme") == "dark"
    finally:
        browser.run("localStorage.clear()")


def test_scripts_and_styles_within_the_page_are_refused(site, browser):
    browser.open(f"{site.url}/ui/")
    browser.run(
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        "document.body.append(script); const box = document.createElement('div'); box.innerHTML = '<img src=x onerror="
        '"window.ran = true"'
        ">'; document.body.append(box);"
    )
    assert browser.get("window.ran") is None
    assert browser.log()
    browser.open("about:blank", ready=None)


def test_every_page_is_reached_with_the_keyboard(site, browser):
    """From the catalog to a tensor and to its values: rows of a table are gone through with arrow keys."""

    def tab_to(condition):
        for _ in range(80):
            browser.press("Tab")
            if browser.get(f"(({condition}))(document.activeElement)"):
                return
        raise AssertionError(f"Tab never came to {condition}")

    def choose_row(end):
        tab_to("(e) => e.closest('table') !== null && e.matches('a')")
        for _ in range(20):
            if browser.get("document.activeElement.getAttribute('href') ?? ''").endswith(end):
                return
            browser.press("Down")
        raise AssertionError(f"no row leads to {end}")

    browser.open(f"{site.url}/ui/")
    browser.press("Tab")
    assert browser.get("document.activeElement.className") == "skip"
    choose_row("/ui/models/small")
    outline = browser.get("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    browser.press("Enter")
    browser.wait("document.querySelector('h1')?.textContent.includes('small')")
    browser.settle()
    choose_row("/objects/brain/data")
    browser.press("Enter")
    browser.wait("document.querySelector('h1')?.textContent.includes('brain')")
    browser.settle()
    tab_to("(e) => e.id === 'heatmap'")
    before = browser.text("#heatmap-cell")
    browser.press("Right")
    assert browser.text("#heatmap-cell") != before
    tab_to("(e) => e.getAttribute('aria-label') === 'Table of values'")
    tab_to("(e) => e.id === 'copy-curl'")


# --- tokens ---


@pytest.mark.complains("a refused request")
def test_a_token_is_asked_for_and_used(guarded, browser):
    page = f"{guarded.url}/ui/models/small/objects/waves/data?map=gray"
    browser.open(page, ready="#token")
    assert axe.broken(browser) == []
    browser.type("#token", "wrong")
    browser.press("Enter")
    browser.wait("document.querySelector('.error') !== null")
    browser.fill("#token", TOKEN)
    browser.press("Enter")
    browser.wait("document.querySelector('h1').textContent === 'waves'")
    browser.settle()
    assert browser.get("location.href") == page
    assert len(browser.texts("table.values tbody tr")) == 16
    assert 'Bearer $ZTSERVE_TOKEN"' in browser.text(".snippet")
    assert TOKEN not in browser.text("body")
    browser.open(f"{guarded.url}/ui/models/small")
    assert TOKEN not in browser.get("JSON.stringify(localStorage) + document.cookie + location.href")
    browser.click("#forget")
    browser.wait("document.querySelector('#token') !== null")
