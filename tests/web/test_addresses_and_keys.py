"""Which page an address means, what keys and clicks do, and what of a long list or a long name is seen at first."""

import hashlib
import json
import os
import shlex
import struct
import subprocess
import sys
import time

import numpy
import pytest
import requests

import joined
import models
from containers import Component, Object, dense, zt1
from server_process import PROGRAM

TOKEN = "reader-" + "x" * 30
LONG_NAME = "x" * 159 + "\U0001f600" * 60
UNUSUAL = "it's $HOME & 日本語,x"
VOCABULARY = [f"word {i}" for i in range(1_500)]
HELD_MAX = 512 << 20


@pytest.fixture(scope="module")
def site(folder, share_server):
    names = {name: dense(bytes(10)) for name in (".", "..", "", "inner/a", "inner/b", "outer/c", LONG_NAME)}
    halves = {part: Component(bytes(4), "u32") for part in ("values", "indices")}
    names["parts/sparse"] = Object([1, 1], {**halves, "indptr": Component(bytes([0] * 4 + [1, 0, 0, 0]), "u32")}, "sparse_csr")
    names["thin"] = models.array(numpy.zeros((5, 1), "<u1"))
    names["wide"] = models.array(numpy.zeros((1, 40), "<u1"))
    (folder / "named.zt").write_bytes(zt1(names, attributes={"vocabulary": VOCABULARY}))
    (folder / "objects.zt").write_bytes(models.small())
    (folder / f"{UNUSUAL}.zt").write_bytes(models.small())
    (folder / "unreadable.zt").write_bytes(b"ZTEN1000" + bytes(100))
    (folder / "many.safetensors").write_bytes(models.many(8_000))
    for path, content in joined.files_with_index("sharded/model", [b"abc", b"defg"]).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return share_server(folder)


def large_file(path):
    """A file that is more than a page holds, without using the disk."""
    size = HELD_MAX + 1
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + size)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("guarded")
    (root / "small.zt").write_bytes(models.small())
    large_file(root / "it's large.safetensors")
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"reader read {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    return share_server(root, "--tokens", tokens)


@pytest.fixture
def sign_in(guarded, browser):
    """Opens a page of the server that asks for a token."""

    def sign_in(path):
        browser.open(f"{guarded.url}/ui/{path}", ready="#token")
        browser.type("#token", TOKEN)
        browser.press("Enter")
        browser.wait("document.querySelector('#token') === null")
        browser.wait("document.querySelector('main:not([aria-busy]) h2') !== null")
        browser.settle()

    yield sign_in
    browser.run("sessionStorage.clear();")


def names_shown(browser):
    return browser.texts(".scroller tbody th .name")


# --- addresses ---


@pytest.mark.parametrize("path", ["models", "models/", "uploads/more", "nothing", "models/a/objects/b", "models/%zz", "models/a/objects/b/c/d"])
def test_an_address_that_means_nothing_says_so(site, browser, path):
    browser.open(f"{site.url}/ui/{path}")
    assert browser.text("h1") == "Page not found"


def test_a_model_may_be_called_like_a_part_of_an_address(site, browser):
    browser.open(f"{site.url}/ui/models/objects")
    assert browser.text("h1") == "objects"
    browser.open(f"{site.url}/ui/models/objects/objects/waves/data")
    assert browser.text("h1") == "waves"
    assert browser.texts("nav.path a") == ["Models", "objects"]


def test_names_that_no_address_holds_are_no_links(site, browser):
    browser.open(f"{site.url}/ui/models/named?sort=-name")
    linked = set(browser.texts(".scroller tbody a"))
    assert {".", "..", "(empty)"} <= set(names_shown(browser))
    assert not {".", "..", "(empty)"} & linked


@pytest.mark.parametrize("query, shown", [("?at=block.77", "77"), ("?at=block.7", "7"), ("?at=block.79.part", "part"), ("?at=lock", "whole model")])
def test_a_link_leads_to_this_module_and_to_no_other(site, browser, query, shown):
    browser.open(f"{site.url}/ui/models/many{query}")
    assert browser.text(".trail strong") == shown


def test_names_with_slashes_are_modules_too(site, browser):
    browser.open(f"{site.url}/ui/models/named?at=inner")
    assert browser.text(".trail strong") == "inner"


# --- keys and clicks ---


def test_a_slash_is_written_where_something_is_written(site, browser):
    browser.open(f"{site.url}/ui/")
    browser.press("/")
    browser.press("/", "m", "o")
    assert browser.get("document.querySelector('input[type=search]').value") == "/mo"


@pytest.mark.parametrize("key", ["ctrlKey", "metaKey", "shiftKey", "altKey", None])
def test_links_open_elsewhere_for_those_who_hold_a_key(site, browser, key):
    browser.open(f"{site.url}/ui/")
    browser.run("addEventListener('click', (event) => { window.taken = event.defaultPrevented; event.preventDefault(); });")
    browser.run("document.querySelector('.scroller tbody a').dispatchEvent(new MouseEvent('click',"
                "{bubbles: true, cancelable: true, ...(arguments[0] === null ? {} : {[arguments[0]]: true})}));", key)  # fmt: skip
    assert browser.get("taken") is (key is None)


def test_rows_that_keys_lead_to_are_seen(site, browser):
    browser.open(f"{site.url}/ui/models/many?sort=-name")
    browser.run("document.querySelector('.scroller a').focus()")
    for key, name in (("End", "block.0.part.0"), ("Home", "block.79.part.99"), ("PageDown", None), ("PageDown", None), ("Up", None), ("PageUp", None)):
        browser.press(key)
        if name is not None:
            browser.wait("document.activeElement.textContent === arguments[0]", name)
        row, head, box = browser.get("[document.activeElement.closest('tr'), document.querySelector('.scroller thead'),"
                                     "document.querySelector('.scroller')].map((e) => e.getBoundingClientRect().toJSON())")  # fmt: skip
        assert head["bottom"] - 1 <= row["top"] and row["bottom"] <= box["bottom"] + 1, key
    assert browser.get("document.querySelectorAll('.scroller tbody [tabindex=\"0\"]').length") == 1


def test_a_component_counts_its_tensor_once_in_its_module_too(site, browser):
    browser.open(f"{site.url}/ui/models/named?at=parts")
    assert browser.get("document.querySelector('.treemap svg').getAttribute('aria-label')") == "Bytes of parts: 16 B in 1 tensor"


# --- long lists, long names ---


def test_the_parts_of_models_are_not_listed(site, browser):
    browser.open(f"{site.url}/ui/")
    everything = [model["name"] for model in requests.get(f"{site.url}/v1/models").json()["models"]]
    parts = [name for name in everything if "-of-" in name]
    assert len(parts) == 2
    assert names_shown(browser) == [name for name in everything if name not in parts]


def test_the_column_of_shapes_sorts_by_elements(site, browser):
    browser.open(f"{site.url}/ui/models/named")
    browser.click("th[data-key=shape] button")
    assert names_shown(browser)[0] == "wide"
    browser.click("th[data-key=shape] button")
    order = names_shown(browser)
    assert order[-1] == "wide" and order.index("thin") < order.index("inner/a")


@pytest.mark.parametrize("order", ["objects", "-objects"])
def test_what_has_no_figure_comes_last_in_either_order(site, browser, order):
    browser.open(f"{site.url}/ui/?sort={order}")
    assert names_shown(browser)[-1] == "unreadable"


def test_the_map_has_no_slivers(site, browser):
    browser.open(f"{site.url}/ui/models/named")
    boxes = browser.get("[...document.querySelectorAll('.treemap svg > * > rect:not(.inner)')].map((e) => [e.width, e.height].map((side) => side.baseVal.value))")
    assert len(boxes) > 5
    assert max(max(box) / min(box) for box in boxes if min(box) > 10) < 5


def test_the_focus_stays_in_the_map(site, browser):
    browser.open(f"{site.url}/ui/models/named")
    browser.run("document.querySelector('.treemap [role=button]').focus()")
    browser.press("Enter")
    browser.wait("document.querySelector('.trail strong').textContent !== 'whole model'")
    assert browser.get("document.activeElement.closest('.treemap') !== null")


def test_an_unknown_order_in_a_link_is_the_usual_one(site, browser):
    browser.open(f"{site.url}/ui/?sort=-nonsense")
    assert names_shown(browser) == sorted(names_shown(browser))
    assert browser.get("document.querySelector('th[data-key=name]').getAttribute('aria-sort')") == "ascending"


def test_a_long_list_is_opened_as_far_as_it_is_read(site, browser):
    browser.open(f"{site.url}/ui/models/named")
    browser.click("[aria-labelledby=attributes] summary")
    browser.wait("document.querySelector('pre.folded') !== null")
    assert json.loads(f"[{browser.text('pre.folded')}]") == VOCABULARY[:1_000]
    assert "The first 1,000 of 1,500." in browser.text("[aria-labelledby=attributes]")


def test_a_long_name_is_cut_between_characters_and_shown_when_asked_for(site, browser):
    browser.open(f"{site.url}/ui/models/named/objects/{requests.utils.quote(LONG_NAME)}/data")
    shown = browser.get("document.querySelector('h1 bdi').textContent")
    assert shown == "x" * 159 + "…"
    for expected in (LONG_NAME, shown):
        browser.click("h1 button")
        assert browser.get("document.querySelector('h1 bdi').textContent") == expected


# --- files ---


def pulled(browser, folder):
    """What the line of a model's page brings: the bytes of each file."""
    line = browser.text("[aria-labelledby=downloads] .snippet:has(#copy-ztserve) code")
    subprocess.run(["bash", "-c", f"ztserve() {{ {shlex.quote(str(PROGRAM))} \"$@\"; }}; {line}"], cwd=folder, check=True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_line_for_the_shell_brings_a_model_in_several_files(site, folder, browser, tmp_path):
    browser.open(f"{site.url}/ui/models/sharded%2Fmodel")
    assert pulled(browser, tmp_path) == {path.name: path.read_bytes() for path in (folder / "sharded").iterdir()}


@pytest.mark.parametrize("name", ["objects", UNUSUAL])
def test_the_line_for_the_shell_brings_the_file_as_it_is(site, browser, tmp_path, name):
    browser.open(f"{site.url}/ui/models/{requests.utils.quote(name)}")
    assert pulled(browser, tmp_path) == {f"{name}.zt": models.small()}


# --- tokens ---


@pytest.mark.complains("a refused request")
@pytest.mark.parametrize("text", ["two words", "é", "a\u200bb", "=", ""])
def test_what_no_token_can_be_is_not_sent(guarded, browser, text):
    browser.open(f"{guarded.url}/ui/models/small", ready="#token")
    browser.network()
    browser.run("document.querySelector('#token').value = arguments[0];", text)
    browser.click("form.token button")
    assert browser.get("document.querySelector('#token').validationMessage") != ""
    assert browser.network() == []
    browser.run("sessionStorage.clear();")


# --- files for those with a token ---


@pytest.mark.complains("a refused request")
def test_a_file_is_fetched_with_the_token_if_a_page_can_hold_it(guarded, browser, sign_in, tmp_path):
    sign_in("models/small")
    assert "HF_TOKEN and ZTSERVE_TOKEN" in browser.text("[aria-labelledby=downloads]")
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.click("[aria-labelledby=downloads] button")
    end = time.monotonic() + 30
    while not ((tmp_path / "small.zt").exists() and (tmp_path / "small.zt").read_bytes() == models.small()):
        assert time.monotonic() < end, list(tmp_path.iterdir())
        time.sleep(0.05)

    browser.open(f"{guarded.url}/ui/models/it's%20large")
    browser.click("[aria-labelledby=downloads] button")
    browser.wait("document.querySelector('pre.folded') !== null")
    line = browser.text("pre.folded")
    assert TOKEN not in line
    said = f'curl() {{ printf "%s\\n" "$@"; }}; {line}'
    words = subprocess.run(["bash", "-c", said], env={"ZTSERVE_TOKEN": TOKEN}, capture_output=True, text=True, check=True).stdout
    assert words.splitlines() == [
        "-H", f"Authorization: Bearer {TOKEN}", "-o", "it's large.safetensors", f"{guarded.url}/files/it%27s%20large.safetensors",
    ]  # fmt: skip


@pytest.mark.complains("a refused request")
def test_the_lines_to_copy_read_the_token_from_the_environment(browser, sign_in, tmp_path):
    sign_in("models/small/objects/odd/data")
    curl, python, pull = browser.texts(".snippet code")
    environment = {**os.environ, "ZTSERVE_TOKEN": TOKEN}
    run = {"cwd": tmp_path, "env": environment, "check": True}
    subprocess.run(["bash", "-c", curl], **run)
    assert numpy.array_equal(numpy.load(tmp_path / "odd.npy"), models.odd(), equal_nan=True)
    subprocess.run([sys.executable, "-c", f"{python}\nassert tensor.shape == (5, 8)"], **run)
    subprocess.run(["bash", "-c", f"ztserve() {{ {shlex.quote(str(PROGRAM))} \"$@\"; }}; {pull}"], **run)
    assert models.odd().tobytes() in (tmp_path / "odd.safetensors").read_bytes()
