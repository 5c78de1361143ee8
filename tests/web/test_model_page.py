"""A model's page answers first how large the model is and what is in it: figures, a tree of its tensors, a map; then how to
get it, and what its folder says of it. A model that cannot be read says why."""

import hashlib
import json
import struct
import subprocess
import time

import numpy
import pytest
import requests

import axe
import joined
import models
from containers import Component, Object, dense, zt1

LAYERS = 12
WIDTH = 8
README = f"""---
license: mit
---
# A tiny model

Text with **bold**, *italic*, `code`, a [link](https://example.org/page) and {models.SCRIPT}.

### Two levels deeper

- first <b>item</b>
  continued
- [relative](other.md), [script](javascript:alert(1)), [data](data:text/html,x), ![picture](https://example.org/x.png)

1. one
2. two

> quoted

| a | b |
| - | - |

```python
print("<img src=x>")
```
<!-- a comment
that is not seen -->
The end, https://example.org/bare."""
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, models.SCRIPT: models.SCRIPT, "torch_dtype": "bfloat16"}
TYPE_COUNT = 20_000
# By name: the model's bytes, and the exports that the server can make, as they are or widened.
EXPORTED = {
    "one-type": lambda: zt1({"a": dense(bytes(8), "f32", [2]), "b": dense(bytes(8), "f32", [2])}),
    "brain": lambda: zt1({"w": dense(bytes(8), "bf16", [4])}),
    "small": models.small,
    "quantized.gguf": lambda: models.quantized()[0],
    "blocks.gguf": models.blocks,
    "undecodable": lambda: zt1({"w": Object([2], {"data": Component(b"packed", "f32", encoding="lz4", decoded=bytes(8))})}),
    "odd-fours": lambda: zt1({"w": Object([3], {"data": Component(bytes([0x21, 0x03]), "u8", "f4_e2m1")})}),
    "even-fours": lambda: zt1({"w": Object([4], {"data": Component(bytes([0x21, 0x03]), "u8", "f4_e2m1")})}),
    "reserved": lambda: zt1({"__metadata__": dense(bytes(4), "f32", [1])}),
    "long-complex": lambda: zt1({"w": Object([1], {"data": Component(bytes(16), "f64", "complex128")})}),
}


def layer(prefix):
    def matrix(rows=WIDTH):
        return dense(bytes(2 * rows * WIDTH), "bf16", [rows, WIDTH])

    return {
        f"{prefix}.input_layernorm.weight": dense(bytes(2 * WIDTH), "bf16", [WIDTH]),
        **{f"{prefix}.self_attn.{part}_proj.weight": matrix() for part in "qkvo"},
        **{f"{prefix}.mlp.{part}_proj.weight": matrix(4 * WIDTH) for part in ("gate", "up", "down")},
    }


def llama():
    """In the layout of transformers."""
    objects = {"model.embed_tokens.weight": dense(bytes(200 * WIDTH), "bf16", [100, WIDTH])}
    for number in range(LAYERS):
        objects.update(layer(f"model.layers.{number}"))
    objects["model.norm.weight"] = dense(bytes(2 * WIDTH), "bf16", [WIDTH])
    objects["lm_head.weight"] = dense(bytes(200 * WIDTH), "bf16", [100, WIDTH])
    return zt1(objects, attributes={"made_by": "a test"})


def elements(content_of):
    return sum(int(numpy.prod(value["shape"])) for value in content_of["objects"].values())


@pytest.fixture(scope="module")
def site(folder, share_server):
    tiny = folder / "acme/tiny"
    (tiny / "sub").mkdir(parents=True)
    (tiny / "model.zt").write_bytes(llama())
    (tiny / "sub/other.zt").write_bytes(models.small())
    (tiny / "sub/config.json").write_text("not JSON <b>")
    (tiny / "README.md").write_text(README)
    (tiny / "config.json").write_text(json.dumps(CONFIG))
    (tiny / "tokenizer.json").write_text("{}")
    for path, content in joined.files_with_index("sharded/model", [b"abc", b"defg"]).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    lost = joined.files_with_index("lost/model", [b"abc", b"defg"])
    for path in [*lost][:1] + [*lost][2:]:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(lost[path])
    for name, make in EXPORTED.items():
        (folder / (name if "." in name else f"{name}.zt")).write_bytes(make())
    (folder / "long").mkdir()
    (folder / "long/README.md").write_text("word " * 100_000)
    (folder / "long/model.zt").write_bytes(models.small())
    (folder / "twenty.safetensors").write_bytes(models.many(TYPE_COUNT))
    (folder / f"{'very-long-' * 6}name-Q4_0.zt").write_bytes(models.small())
    return share_server(folder, "--writable")


def open_page(site, browser, name, query=""):
    browser.open(f"{site.url}/ui/models/{requests.utils.quote(name, safe='')}{query}")


def tree_rows(browser):
    """[level, label, note, open]"""
    return browser.get(
        "[...document.querySelectorAll('.scroller tbody:not(.spacer) tr')].map((e) => [Number(e.ariaLevel), "
        "e.querySelector('.name').textContent, e.querySelector('.entry > .note')?.textContent ?? null, e.ariaExpanded])"
    )


def labels(browser):
    return [row[1] for row in tree_rows(browser)]


def row_of(label):
    return f"[...document.querySelectorAll('.scroller tbody tr')].find((e) => e.querySelector('.name')?.textContent === {json.dumps(label)})"


# --- figures ---


def figures(browser):
    return dict(zip(browser.texts(".figures dt"), browser.texts(".figures dd")))


def test_parameters_tensors_and_types_are_the_first_figures(site, browser):
    open_page(site, browser, "acme/tiny/model")
    manifest = requests.get(f"{site.url}/v1/models/acme%2Ftiny%2Fmodel").json()
    shown = figures(browser)
    assert shown["Parameters"] == "14.0 K 13,992" and elements(manifest) == 13_992
    assert shown["Tensors"] == "99" == str(len(manifest["objects"]))
    assert shown["Types"] == "bf16"


@pytest.mark.parametrize("width, height, rows", [(1280, 800, 10), (380, 800, 5)])
def test_figures_and_tensors_are_seen_without_scrolling(site, browser, width, height, rows):
    browser.resize(width, height)
    open_page(site, browser, "acme/tiny/model")
    assert browser.get("scrollY") == 0
    bottom = browser.get("document.querySelector('.figures').getBoundingClientRect().bottom")
    assert bottom < height
    seen = browser.get(
        "[...document.querySelectorAll('.scroller tbody tr[data-index]')].filter((e) => e.getBoundingClientRect().bottom <= arguments[0]).length", height
    )
    assert seen >= rows


def test_blocks_of_gguf_are_called_by_their_names(site, browser):
    open_page(site, browser, "blocks", "?sort=-name")
    assert sorted(browser.texts(".scroller tbody tr[data-index] td:nth-of-type(2)")) == sorted(name.upper() for name in models.BLOCKS)
    open_page(site, browser, "quantized")
    assert figures(browser)["Types"] == "Q8_0"
    browser.open(f"{site.url}/ui/models/quantized/objects/blk.0.weight/data")
    assert "Q8_0" in browser.text("dl.facts")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 380])
def test_nothing_serious_keeps_people_out(site, browser, width, scheme):
    """Of a page with a tree and a README."""
    browser.resize(width, 800)
    browser.prefer(scheme)
    open_page(site, browser, "acme/tiny/model")
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = true;")
    assert browser.get("document.querySelector('[role=treegrid]') !== null && document.querySelector('.readme') !== null")
    assert axe.broken(browser) == []
    assert browser.get("document.documentElement.scrollWidth") <= width


# --- the tree ---


def test_the_tree_shows_the_first_layer_and_the_others_as_one_row(site, browser):
    open_page(site, browser, "acme/tiny/model")
    assert tree_rows(browser)[:2] == [[1, "lm_head.weight", None, None], [1, "model", "98 tensors", "true"]]
    shown = labels(browser)
    assert shown[shown.index("layers") + 1] == "0" and "1–11" in shown and "1" not in shown
    more = tree_rows(browser)[shown.index("1–11")]
    assert more[2:] == ["11 more with the same structure", "false"]
    assert "q_proj.weight" in shown and shown.count("q_proj.weight") == 1
    href = browser.get(f"({row_of('q_proj.weight')}).querySelector('a').getAttribute('href')")
    assert href.endswith("/objects/model.layers.0.self_attn.q_proj.weight/data")


def test_rows_open_and_close_with_the_mouse_and_with_keys(site, browser):
    open_page(site, browser, "acme/tiny/model")
    browser.run(f"{row_of('1–11')}.click()")
    assert labels(browser)[labels(browser).index("1–11") + 1 :][:11] == [str(number) for number in range(1, 12)]
    browser.run(f"{row_of('1–11')}.focus()")
    browser.press("Left")
    assert "2" not in labels(browser) and browser.get("document.activeElement === " + row_of("1–11"))
    browser.press("Right", "Right", "Right")
    assert browser.get("document.activeElement.querySelector('.name').textContent") == "1"
    assert browser.get("document.activeElement.ariaExpanded") == "true"
    browser.press("Left", "Left")
    assert browser.get("document.activeElement.querySelector('.name').textContent") == "1–11"
    browser.press("Enter")
    assert "2" not in labels(browser)


def test_what_is_looked_for_or_sorted_is_a_list_with_whole_names(site, browser):
    open_page(site, browser, "acme/tiny/model")
    browser.click("th[data-key=size] button")
    assert labels(browser)[0] in ("lm_head.weight", "model.embed_tokens.weight")
    browser.click("th[data-key=name] button")
    assert "1–11" in labels(browser)
    browser.type("input[type=search]", "layers.3 up_proj")
    assert labels(browser) == ["model.layers.3.mlp.up_proj.weight"]
    browser.press("Escape")
    assert "1–11" in labels(browser)


def test_going_back_finds_the_tree_as_it_was(site, browser):
    open_page(site, browser, "acme/tiny/model")
    browser.run(f"{row_of('1–11')}.click()")
    before = labels(browser)
    browser.run(f"{row_of('lm_head.weight')}.querySelector('a').click()")
    browser.wait("document.querySelector('h1').textContent === 'lm_head.weight'")
    browser.settle()
    browser.run("history.back()")
    browser.wait("document.querySelector('main:not([aria-busy]) .scroller') !== null")
    assert labels(browser) == before


def test_a_section_is_gone_to_and_back_from(site, browser):
    browser.resize(1280, 500)
    open_page(site, browser, "acme/tiny/model")
    browser.run("document.querySelector('.scroller').scrollTop = 68")
    browser.wait("history.state?.places?.[1] === 68")
    browser.click(".contents a[href='#downloads']")
    browser.wait("Math.abs(document.querySelector('#downloads').getBoundingClientRect().top) < 5 && history.state?.places?.[0] > 0")
    browser.run("history.back()")
    browser.wait("scrollY === 0 && location.hash === ''")
    assert browser.get("document.querySelector('.scroller').scrollTop") == 68


def test_a_column_that_says_the_same_in_every_row_is_said_once(site, browser):
    open_page(site, browser, "acme/tiny/model")
    assert browser.texts(".scroller thead th") == ["Name", "Shape", "Parameters", "Size"]
    assert "Same for all: type bf16, layout dense, encoding raw" in browser.text("[aria-labelledby=tensors]")
    open_page(site, browser, "small")
    assert "Type" in browser.texts(".scroller thead th") and "type" not in browser.text("[aria-labelledby=tensors] p.note")


@pytest.mark.parametrize("page", ["", "models/twenty?q=99"])
def test_names_are_cut_at_the_front_at_380_pixels(site, browser, page):
    browser.resize(380)
    browser.open(f"{site.url}/ui/{page}")
    ends = browser.get(
        "[...document.querySelectorAll('.scroller tbody .front')].map((e) => { const range = document.createRange();"
        "const text = e.querySelector('.name').firstChild; range.setStart(text, text.length - 1); range.setEnd(text, text.length);"
        "const [box, last] = [e.getBoundingClientRect(), range.getBoundingClientRect()];"
        "return [box.left <= last.left, last.right <= box.right + 1, e.scrollWidth > e.clientWidth]; })"
    )
    assert ends and all(begin and end for begin, end, _ in ends)
    if page == "":
        assert any(is_cut for _, _, is_cut in ends)
    assert browser.get("document.documentElement.scrollWidth") <= 380


def test_twenty_thousand_tensors_are_shown_within_a_second_of_processor_time(site, browser):
    """What the page itself takes: requests and other programs on the machine do not count."""
    browser.open(f"{site.url}/ui/")
    browser.cdp("Performance.enable", timeDomain="threadTicks")

    def taken():
        return next(one["value"] for one in browser.cdp("Performance.getMetrics")["metrics"] if one["name"] == "TaskDuration")

    before = taken()
    browser.run(f"{row_of('twenty')}.querySelector('a').click()")
    browser.wait("document.querySelector('h1')?.textContent === 'twenty'")
    browser.settle()
    spent = taken() - before
    assert figures(browser)["Tensors"] == f"{TYPE_COUNT:,}"
    assert labels(browser)[0] == "block"
    assert spent < 1, spent


# --- the map ---


def test_the_map_has_two_levels_of_labels_and_one_for_repeated_layers(site, browser):
    open_page(site, browser, "acme/tiny/model")
    texts = browser.wait("document.querySelector('.treemap text') && [...document.querySelectorAll('.treemap text')].map((e) => e.textContent)")
    assert "model.layers 0–11" in texts
    assert "mlp" in texts and "self_attn" in texts
    label = browser.get("document.querySelector('.treemap [role=button]').getAttribute('aria-label')")
    assert label.startswith("model.layers 0–11: ") and "in 12 layers" in label
    browser.run("document.querySelector('.treemap [role=button]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    browser.wait("document.querySelectorAll('.treemap [role=button]').length === arguments[0]", LAYERS)


# --- exports ---


@pytest.mark.parametrize("name", EXPORTED)
def test_only_exports_that_the_server_can_make_are_offered(site, browser, name):
    model = name.removesuffix(".gguf")
    open_page(site, browser, model)
    offered = browser.get("[...document.querySelectorAll('[aria-labelledby=downloads] a.button')].map((e) => e.getAttribute('href'))")
    exports = {path.split("format=")[1] for path in offered if "/export?" in path}

    def is_made(query):
        return requests.get(f"{site.url}/v1/models/{model}/export?format={query}").status_code == 200

    expected = set()
    for kind in ("zt", "zt2", "safetensors", "npz"):
        if is_made(kind):
            expected.add(kind)
        elif is_made(f"{kind}&dtype=f32"):
            expected.add(f"{kind}&dtype=f32")
    assert exports == expected


# --- the folder of a model ---


def test_the_readme_is_text_and_a_little_of_markdown(site, browser):
    open_page(site, browser, "acme/tiny/model")
    text = browser.get("document.querySelector('.readme').textContent")
    assert models.SCRIPT in text and "<b>item</b>" in text and 'print("<img src=x>")' in text
    assert "that is not seen" not in text and "license: mit" in text
    assert browser.get("document.querySelectorAll('main script, main img, main iframe, .readme b').length") == 0
    assert browser.texts(".readme a") == ["link", "https://example.org/bare"]
    assert {href.split(":")[0] for href in browser.get("[...document.querySelectorAll('.readme a')].map((e) => e.getAttribute('href'))")} == {"https"}
    assert browser.texts(".readme h3") == ["A tiny model"] and browser.texts(".readme h4") == ["Two levels deeper"]
    assert browser.texts(".readme strong") == ["bold"] and browser.texts(".readme em") == ["italic"]
    assert browser.texts(".readme ol li") == ["one", "two"] and browser.texts(".readme blockquote") == ["quoted"]
    assert browser.get("document.title") != "owned"


@pytest.mark.parametrize("mark", ["[", "![", "*a", "`", "[![", "https://", "> ", "#", "- "])
def test_a_readme_of_marks_is_shown_at_once(site, browser, mark):
    browser.open(f"{site.url}/ui/")
    spent = browser.run_async(
        "const base = [...document.querySelectorAll('script')].at(-1).src.replace(/[^/]*$/, '');"
        "const { markdown } = await import(`${base}markdown.js`); const begin = performance.now();"
        "markdown(arguments[0].repeat(Math.floor(250000 / arguments[0].length))); return performance.now() - begin;", mark,
    )  # fmt: skip
    assert spent < 5_000


def test_settings_are_shown_as_attributes(site, browser):
    open_page(site, browser, "acme/tiny/model")
    text = browser.text("[aria-labelledby=config]")
    assert "hidden_size" in text and models.SCRIPT in text
    open_page(site, browser, "acme/tiny/sub/other")
    assert browser.text("[aria-labelledby=config] pre") == "not JSON <b>"
    assert browser.get("document.querySelector('[aria-labelledby=readme]')") is None


def test_a_long_readme_is_shown_in_part(site, browser):
    open_page(site, browser, "long/model")
    assert "The first 256 KiB." in browser.text("[aria-labelledby=readme]")


def test_lines_for_clients_of_the_hub_are_for_repositories(site, browser):
    open_page(site, browser, "acme/tiny/model")
    transformers = browser.text(".snippet:has(#copy-transformers) code")
    assert transformers.splitlines() == [
        "import os", f'os.environ["HF_ENDPOINT"] = "{site.url}"', "from transformers import AutoModelForCausalLM, AutoTokenizer",
        'tokenizer = AutoTokenizer.from_pretrained("acme/tiny")', 'model = AutoModelForCausalLM.from_pretrained("acme/tiny")',
    ]  # fmt: skip
    assert browser.text(".snippet:has(#copy-hf) code") == f"HF_ENDPOINT={site.url} hf download acme/tiny"
    open_page(site, browser, "acme/tiny/sub/other")
    assert browser.texts("[aria-labelledby=downloads] .snippet h3") == ["hf", "ztserve"]
    open_page(site, browser, "small")
    assert browser.texts("[aria-labelledby=downloads] .snippet h3") == ["ztserve"]


def test_the_line_for_hf_fetches_the_repository(site, browser, tmp_path):
    open_page(site, browser, "acme/tiny/model")
    line = browser.text(".snippet:has(#copy-hf) code")
    words = subprocess.run(["bash", "-c", f'hf() {{ printf "%s\\n" "$HF_ENDPOINT" "$@"; }}; {line}'], capture_output=True, text=True, check=True)
    endpoint, verb, repository = words.stdout.split()
    assert verb == "download"
    names = {entry["rfilename"] for entry in requests.get(f"{endpoint}/api/models/{repository}").json()["siblings"]}
    assert {"README.md", "config.json", "model.safetensors"} <= names


# --- models that cannot be read ---


@pytest.mark.complains("a refused request")
def test_a_model_that_cannot_be_read_says_why_and_gives_its_files(site, browser):
    open_page(site, browser, "lost/model")
    assert requests.get(f"{site.url}/v1/models/lost%2Fmodel").json()["detail"] in browser.text(".error")
    files = browser.get("[...document.querySelectorAll('[aria-labelledby=files] a')].map((e) => [e.textContent, e.getAttribute('href')])")
    assert [name for name, _ in files] == ["model-00001-of-00002.safetensors", "model.safetensors.index.json"]
    for _, href in files:
        assert requests.get(site.url + href).status_code == 200
    browser.prefer("dark")
    assert axe.broken(browser) == []


@pytest.mark.complains("a refused request")
def test_a_model_that_cannot_be_read_is_removed_after_a_question(site, folder, browser):
    path = folder / "gone.zt"
    path.write_bytes(b"ZTEN1000" + bytes(100))
    end = time.monotonic() + 120
    while requests.get(f"{site.url}/v1/models/gone").status_code != 422:
        assert time.monotonic() < end
        time.sleep(0.05)
    open_page(site, browser, "gone")
    browser.click("[aria-labelledby=files] > div:last-child > button")
    assert browser.get("document.activeElement.textContent") == "Keep"
    browser.press("Shift+Tab", "Enter")
    browser.wait("document.querySelector('main').innerText.includes('Removed.')")
    assert not path.exists()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("guarded")
    (root / "bad.zt").write_bytes(b"ZTEN1000" + bytes(100))
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text("".join(f"{scope} {scope} {hashlib.sha256(token_of(scope).encode()).hexdigest()}\n" for scope in ("read", "write")))
    return share_server(root, "--writable", "--tokens", tokens)


def token_of(scope):
    return scope + "-" * 30


@pytest.mark.complains("refused requests")
@pytest.mark.parametrize("scope, is_offered", [("read", False), ("write", True)])
def test_removal_is_offered_to_those_who_may_write(guarded, browser, scope, is_offered):
    browser.open(f"{guarded.url}/ui/models/bad", ready="#token")
    browser.type("#token", token_of(scope))
    browser.press("Enter")
    browser.wait("document.querySelector('[aria-labelledby=files]') !== null")
    browser.settle()
    assert browser.get("[...document.querySelectorAll('main button')].some((e) => e.textContent === 'Remove…')") is is_offered
    browser.run("sessionStorage.clear();")


@pytest.fixture(scope="module")
def reading(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("reading")
    (root / "bad.safetensors").write_bytes(struct.pack("<Q", 10) + b"{" * 10)
    return share_server(root)


@pytest.mark.complains("a refused request")
def test_without_permission_nothing_can_be_removed(reading, browser):
    open_page(reading, browser, "bad")
    assert browser.texts("[aria-labelledby=files] a") == ["bad.safetensors"]
    assert browser.get("[...document.querySelectorAll('main button')].some((e) => e.textContent.startsWith('Remove'))") is False
