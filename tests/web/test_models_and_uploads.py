"""The pages of models and uploads show what the API answers, also where there is very much of it."""

import time

import pytest
import requests

import models

COUNT = 100_000
BYTES = "document.querySelector('.treemap svg').getAttribute('aria-label')"


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "org").mkdir()
    (folder / "org/small.zt").write_bytes(models.small())
    (folder / "many.zt").write_bytes(models.many(COUNT))
    (folder / "broken.zt").write_bytes(b"ZTEN1000" + bytes(100))
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def reading(tmp_path_factory, share_server):
    return share_server(tmp_path_factory.mktemp("reading"))


def listed(site):
    return requests.get(f"{site.url}/v1/models").json()["models"]


def names_shown(browser):
    return browser.texts(".scroller tbody th .name")


def column(browser, key):
    return browser.run(
        "const at = [...document.querySelectorAll('.table thead th')].findIndex((e) => e.dataset.key === arguments[0]);"
        "return [...document.querySelectorAll('.table tbody:not(.spacer) tr')].map((row) => row.cells[at].textContent);",
        key,
    )


def bytes_of(text):
    amount, unit = text.split()
    return float(amount.replace(",", "")) * 1024 ** ["B", "KiB", "MiB"].index(unit)


def test_the_catalog_shows_what_the_server_lists(site, browser):
    browser.open(f"{site.url}/ui/")
    models_listed = listed(site)
    assert names_shown(browser) == [model["name"] for model in models_listed] == sorted(model["name"] for model in models_listed)
    formats = [f"{model['format']} {model['version'] or ''}".strip() if model["format"] else "" for model in models_listed]
    assert column(browser, "format") == formats
    assert [bytes_of(text) for text in column(browser, "size")] == pytest.approx([model["size"] for model in models_listed], rel=0.01)
    counts = [None if text == "–" else int(text.replace(",", "")) for text in column(browser, "objects")]
    assert counts == [model["objects"] for model in models_listed]
    figures = dict(zip(names_shown(browser), column(browser, "parameters")))
    assert figures == {"broken": "–", "many": "100 K", "org/small": "309 K"}
    (broken,) = [model for model in models_listed if "error" in model]
    row = browser.get("[...document.querySelectorAll('.scroller tbody tr')].find((e) => e.querySelector('a')?.textContent === 'broken').textContent")
    assert "unreadable" in row and broken["error"]["detail"] in row
    browser.click(".column-size button")
    by_size = [model["name"] for model in sorted(models_listed, key=lambda model: -model["size"])]
    assert names_shown(browser) == by_size
    browser.click(".column-size button")
    assert names_shown(browser) == by_size[::-1]
    assert browser.get("document.querySelector('th[data-key=size]').getAttribute('aria-sort')") == "ascending"
    browser.type("input[type=search]", "org sma")
    assert names_shown(browser) == ["org/small"]
    browser.open(browser.get("location.href"))
    assert names_shown(browser) == ["org/small"] and "q=org+sma" in browser.get("location.search")


def test_a_model_shows_its_manifest(site, browser):
    browser.open(f"{site.url}/ui/models/org%2Fsmall?sort=-name")
    manifest = requests.get(f"{site.url}/v1/models/org%2Fsmall").json()
    expected = {name if part == "data" else f"{name} · {part}": (value, stored)
                for name, value in manifest["objects"].items() for part, stored in value["components"].items()}  # fmt: skip
    shown = names_shown(browser)
    assert sorted(shown) == sorted(expected)
    assert column(browser, "type") == [expected[name][1]["type"] for name in shown]
    assert column(browser, "format") == [expected[name][0]["format"] for name in shown]
    shapes = [[int(axis) for axis in text.split(" × ") if axis.isdigit()] for text in column(browser, "shape")]
    assert shapes == [expected[name][0]["shape"] for name in shown]
    sizes = [bytes_of(text) for text in column(browser, "size")]
    assert sizes == pytest.approx([expected[name][1]["length"] for name in shown], rel=0.01)
    text = browser.text("main")
    assert f"{manifest['source']['size']:,} bytes" in text
    for key, value in manifest["attributes"].items():
        assert key in text and str(value) in text
    download = browser.get("document.querySelector('a[download]').href")
    assert requests.get(download).content == models.small()
    browser.click("[aria-labelledby=verification] button")
    browser.wait("document.querySelector('[aria-labelledby=verification] .mark').textContent === 'verified'")


def test_the_map_of_bytes_is_in_proportion(site, browser):
    browser.open(f"{site.url}/ui/models/org%2Fsmall")
    areas = browser.wait(
        "[...document.querySelectorAll('.treemap svg a')].map((e) => { const box = e.getBBox();"
        "return [box.width * box.height, e.getAttribute('aria-label')]; })"
    )
    objects = requests.get(f"{site.url}/v1/models/org%2Fsmall").json()["objects"]
    lengths = [stored["length"] for value in objects.values() for stored in value["components"].values()]
    whole = browser.get("(() => { const b = document.querySelector('.treemap svg').viewBox.baseVal; return b.width * b.height; })()")
    largest, label = max(areas)
    assert "waves" in label and largest / whole == pytest.approx(max(lengths) / sum(lengths), abs=0.03)


def test_very_many_tensors_are_a_few_rows_at_a_time(site, browser):
    browser.open(f"{site.url}/ui/models/many?sort=-name")
    rows = "document.querySelectorAll('.scroller tbody tr').length"
    assert browser.get("document.querySelector('.scroller table').getAttribute('aria-rowcount')") == str(COUNT + 1)
    assert browser.get(rows) < 100
    browser.run("document.querySelector('.scroller a').focus()")
    browser.press("End")
    browser.wait("document.activeElement.textContent === 'block.0.part.0'")
    browser.run("const box = document.querySelector('.scroller'); box.scrollTop = box.scrollHeight / 2;")
    browser.wait("[...document.querySelectorAll('.scroller tbody .name')].some((e) => e.textContent === 'block.499.part.99')")
    assert browser.get(rows) < 100
    browser.type("input[type=search]", "block.777 part.99")
    assert names_shown(browser) == ["block.777.part.99"] and f"1 of {COUNT:,} tensors" in browser.text("main")


def test_the_map_goes_into_modules_and_says_what_they_hold(site, browser):
    browser.open(f"{site.url}/ui/models/many?at=block.7")
    assert browser.get(BYTES) == "Bytes of block.7: 100 B in 100 tensors"
    browser.click(".trail button")
    assert browser.get(BYTES) == "Bytes of the whole model: 97.7 KiB in 100,000 tensors"
    browser.run("document.querySelector('.treemap g[role=button]').focus()")
    browser.press("Enter")
    assert browser.get("location.search").startswith("?at=block.") and "100 tensors" in browser.get(BYTES)


# --- uploads ---


def choose(browser, *paths):
    browser.type("#files", "\n".join(str(path) for path in paths))


def done(browser, state="done"):
    browser.wait(f"document.querySelector('.upload')?.dataset.state === '{state}'")


def test_a_chosen_file_becomes_a_model(site, browser, tmp_path):
    (tmp_path / "fresh.zt").write_bytes(models.small())
    browser.open(f"{site.url}/ui/uploads")
    browser.type("#folder", "mine")
    choose(browser, tmp_path / "fresh.zt")
    done(browser)
    assert requests.get(f"{site.url}/files/mine/fresh.zt").content == models.small()
    browser.click(".upload a")
    browser.wait("document.querySelector('h1').textContent === 'mine/fresh'")
    assert browser.get("Object.keys(localStorage).length") == 0


@pytest.mark.complains("refused requests")
def test_what_is_refused_says_why_and_nothing_is_replaced_unasked(site, browser, tmp_path):
    (tmp_path / "bad.zt").write_bytes(b"junk" * 100)
    (tmp_path / "many.zt").write_bytes(models.small())
    browser.open(f"{site.url}/ui/uploads")
    choose(browser, tmp_path / "bad.zt")
    done(browser, "failed")
    assert "invalid-model" in browser.text(".upload .error")
    browser.open(f"{site.url}/ui/uploads")
    choose(browser, tmp_path / "many.zt")
    done(browser, "failed")
    assert "A model of this name already exists" in browser.text(".upload")
    assert requests.get(f"{site.url}/v1/models/many?prefix=block.0.part.1").status_code == 200


def entry(site):
    (upload,) = requests.get(f"{site.url}/v1/uploads").json()["uploads"]
    return upload["received"], upload["length"]


@pytest.mark.complains("a page that would ask before it is left")
def test_an_upload_goes_on_where_it_was_after_the_page_was_closed(site, browser, tmp_path):
    big = tmp_path / "long.zt"
    big.write_bytes(models.zt1({"w": models.dense(bytes(20 << 20), "u8", [20 << 20])}))
    browser.open(f"{site.url}/ui/uploads")
    # The second piece does not leave: as if the connection were gone.
    browser.run("const send = XMLHttpRequest.prototype.send; let sent = 0;"
                "XMLHttpRequest.prototype.send = function (body) { if (sent++ === 0) send.call(this, body); };")  # fmt: skip
    choose(browser, big)
    browser.wait("document.querySelector('.upload .note').textContent.startsWith('8.00 MiB of 20.0 MiB')")
    end = time.monotonic() + 30
    while entry(site) != (8 << 20, big.stat().st_size):
        assert time.monotonic() < end, entry(site)
        time.sleep(0.05)
    browser.open(f"{site.url}/ui/uploads")
    assert "choose the file again" in browser.text(".uploads ~ div")
    browser.run("const set = XMLHttpRequest.prototype.setRequestHeader; window.offsets = [];"
                "XMLHttpRequest.prototype.setRequestHeader = function (name, value) {"
                "if (name === 'Upload-Offset') offsets.push(value); set.call(this, name, value); };")  # fmt: skip
    choose(browser, big)
    done(browser)
    assert browser.get("offsets") == [str(8 << 20), str(16 << 20)]
    assert requests.get(f"{site.url}/files/long.zt").content == big.read_bytes()


def test_where_writing_is_off_the_page_says_so(reading, browser):
    browser.open(f"{reading.url}/ui/uploads")
    assert "Uploads are turned off" in browser.text("main") and browser.get("document.querySelector('#files')") is None
