"""Names and attributes of files are text on every page, and words in the lines to copy."""

import io
import json
import shlex
import struct
import subprocess
import sys
from urllib.parse import quote

import numpy
import pytest
import requests

import models
from containers import Component, Object, zt1
from server_process import PROGRAM

EXPECTED = numpy.arange(6, dtype="<f4").reshape(2, 3)
# Of models: with a part that ends such a name in an address, and with what shells and addresses give a meaning to.
NAMES = ["deep/objects/model", "uploads", "it's $HOME & co,x", "日本語 モデル", "模" * 70, f"{'b' * 200}/{'c' * 200}/deep"]


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "hostile.zt").write_bytes(models.hostile())
    (folder / "small.zt").write_bytes(models.small())
    future = Object([8], {"data": Component(bytes(range(8)), "u8", "x.future/1")})
    packed = Object([2], {"data": Component(b"packed", "f32", encoding="lz4", decoded=bytes(8))})
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.zt").write_bytes(zt1({"w": models.array(EXPECTED)}))
    four = Object([3], {"data": Component(bytes([0x21, 0x03]), "u8", "f4_e2m1")})
    (folder / "types.zt").write_bytes(zt1({"future": future, "packed": packed, "four": four}))
    (folder / "blocks.gguf").write_bytes(models.blocks())
    return share_server(folder)


def tensor_page(site, name):
    return f"{site.url}/ui/models/hostile/objects/{quote(name, safe='')}/data"


def nothing_ran(browser):
    return browser.get("document.title") != "owned"


def test_the_models_page_shows_them_as_text(site, browser):
    browser.open(f"{site.url}/ui/models/hostile")
    shown = browser.get("document.querySelector('main').textContent")
    assert models.SCRIPT in shown
    assert models.RIGHT_TO_LEFT in shown
    assert models.QUOTES in shown
    assert browser.get("document.querySelectorAll('main script, main img').length") == 0
    assert nothing_ran(browser)
    # Each name keeps its direction to itself.
    assert browser.get(
        "[...document.querySelectorAll('main a, main td')].filter((e) => e.children.length === 0 && "
        "e.textContent.includes('\\u202e')).length"
    ) == 0  # fmt: skip
    assert browser.get("document.documentElement.scrollWidth") <= 1280


def test_links_go_to_each_of_them(site, browser):
    browser.open(f"{site.url}/ui/models/hostile")
    hrefs = set(browser.get("[...document.querySelectorAll('main a')].map((e) => e.getAttribute('href'))"))
    for name in models.HOSTILE:
        assert any(requests.utils.unquote(href).endswith(f"/objects/{name}/data") for href in hrefs), name[:40]
    assert [href for href in hrefs if not href.startswith(("/", "#", "?"))] == []


@pytest.mark.parametrize("name", models.HOSTILE, ids=range(len(models.HOSTILE)))
def test_a_tensors_page_shows_its_name_as_text(site, browser, name):
    browser.resize(380)
    browser.open(tensor_page(site, name))
    heading = browser.get("document.querySelector('h1 bdi').textContent")
    assert heading.rstrip("…") == name[: len(heading.rstrip("…"))]
    assert len(heading) >= min(len(name), 100)
    assert browser.get("document.querySelectorAll('main script, main img').length") == 0
    assert nothing_ran(browser)
    assert browser.get("document.documentElement.scrollWidth") <= 380
    assert [float(text) for text in browser.texts("table.values td") if text] == EXPECTED.ravel().tolist()


def test_a_name_too_long_for_an_address_is_no_link(site, browser):
    browser.open(f"{site.url}/ui/models/hostile")
    assert any("long.xxx" in text for text in browser.texts("main table bdi"))
    assert (
        browser.get("[...document.querySelectorAll('main a')].filter((e) => e.textContent.includes('long.xxx')).length")
        == 0
    )
    assert requests.get(tensor_page(site, models.LONG)).status_code == 414


def test_attributes_are_text(site, browser):
    browser.open(tensor_page(site, models.SCRIPT))
    browser.click("details:has(dl) summary")
    texts = browser.texts("details dt bdi") + browser.texts("details dd bdi")
    assert texts.count(models.SCRIPT) == 2
    assert texts.count(models.RIGHT_TO_LEFT) == 2
    assert nothing_ran(browser)


def lines(browser):
    return dict(zip(("curl", "python", "ztserve"), browser.texts(".snippet code")))


PULL = f"ztserve() {{ {shlex.quote(str(PROGRAM))} \"$@\"; }}"


def in_bash(line, folder, before=""):
    done = subprocess.run(["bash", "-c", f"{before}\n{line}"], cwd=folder, capture_output=True)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def safetensors_of(path):
    """The tensors of a file that is what its name says."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    entries = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    return {name: data[slice(*entry["data_offsets"])] for name, entry in entries.items() if name != "__metadata__"}


@pytest.mark.parametrize("name", models.HOSTILE, ids=range(len(models.HOSTILE)))
def test_the_lines_to_copy_fetch_the_tensor(site, browser, tmp_path, name):
    browser.open(tensor_page(site, name))
    copied = lines(browser)
    in_bash(copied["curl"], tmp_path)
    assert numpy.array_equal(numpy.load(next(tmp_path.glob("*.npy"))), EXPECTED)

    saved = f"{copied['python']}\nimport sys; sys.stdout.buffer.write(tensor.tobytes())"
    done = subprocess.run([sys.executable, "-c", saved], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == EXPECTED.tobytes()

    words = in_bash(copied["ztserve"], tmp_path, "ztserve() { printf '%s\\0' \"$@\"; }").decode().split("\0")
    assert words[:2] == ["pull", f"{site.url}/v1/models/hostile"]
    manifest = requests.get(f"{words[1]}?match={quote(words[2].removeprefix('--match='))}").json()
    assert list(manifest["objects"]) == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == [next(tmp_path.glob("*.npy")).name]
    in_bash(copied["ztserve"], tmp_path, PULL)
    assert safetensors_of(next(tmp_path.glob("*.safetensors"))) == {name: EXPECTED.tobytes()}
    unseen = [letter for line in copied.values() for letter in line if not letter.isprintable() and letter != "\n"]
    assert unseen == []


def test_the_lines_follow_the_part_shown(site, browser, tmp_path):
    browser.open(f"{site.url}/ui/models/small/objects/cube/data?index=2,1&slice=...,3:9,10:20")
    in_bash(lines(browser)["curl"], tmp_path)
    cube = numpy.load(io.BytesIO(requests.get(f"{site.url}/v1/models/small/objects/cube/data?format=npy").content))
    assert numpy.array_equal(numpy.load(tmp_path / "cube.npy"), cube[2, 1, 3:9, 10:20])


def test_types_that_numpy_does_not_have_come_widened(site, browser):
    browser.open(f"{site.url}/ui/models/small/objects/brain/data")
    assert "format=npy&dtype=f32" in lines(browser)["curl"]


@pytest.mark.complains("refused pictures and statistics")
def test_types_that_nothing_widens_come_as_they_are(site, browser, tmp_path):
    for name, type_ in (("future", "|u1"), ("eight", "<f4")):
        browser.open(f"{site.url}/ui/models/{'types' if name == 'future' else 'small'}/objects/{name}/data?at=5")
        copied = lines(browser)
        in_bash(copied["curl"], tmp_path)
        shown = f"{copied['python']}\nprint(tensor.dtype.str)"
        done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == type_
    assert (tmp_path / "future.bin").read_bytes() == bytes(range(8))


@pytest.mark.complains("refused pictures and statistics")
@pytest.mark.parametrize("name", models.BLOCKS)
def test_lines_of_blocks_are_ones_that_the_server_answers(site, browser, tmp_path, name):
    browser.open(f"{site.url}/ui/models/blocks/objects/{name}/data")
    copied = lines(browser)
    widened = requests.get(f"{site.url}/v1/models/blocks/objects/{name}/data?dtype=f32").status_code == 200
    assert [word in line for line in (copied["curl"], copied["python"]) for word in ("dtype=f32", "format=npy")] == [widened] * 4
    if name not in ("q8_0", "q8_1", "q8_k"):
        return
    _, elements, length = models.BLOCKS[name]
    in_bash(copied["curl"], tmp_path)
    in_bash(copied["ztserve"], tmp_path, PULL)
    made = f"{name}.{'npy' if widened else 'bin'}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([made, f"{name}.zt"])
    shown = f"{copied['python']}\nprint(tensor.dtype.str, tensor.size)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.split() == (["<f4", str(elements)] if widened else ["|u1", str(length)])


@pytest.mark.complains("refused pictures and statistics")
def test_an_odd_number_of_four_bits_is_pulled_as_what_holds_it(site, browser, tmp_path):
    browser.open(f"{site.url}/ui/models/types/objects/four/data")
    in_bash(lines(browser)["ztserve"], tmp_path, PULL)
    assert (tmp_path / "four.zt").read_bytes().startswith(b"ZTEN1000")


@pytest.mark.complains("refused pictures and statistics")
def test_what_the_server_cannot_decode_comes_as_it_is_stored(site, browser, tmp_path):
    browser.open(f"{site.url}/ui/models/types/objects/packed/data?slice=0:1")
    copied = lines(browser)
    in_bash(copied["curl"], tmp_path)
    assert (tmp_path / "packed.bin").read_bytes() == b"packed"
    shown = f"{copied['python']}\nprint(bytes(tensor))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "b'packed'"
    in_bash(copied["ztserve"], tmp_path, PULL)
    assert (tmp_path / "types.zt").read_bytes() == requests.get(f"{site.url}/files/types.zt").content


@pytest.mark.complains("refused pictures and statistics")
@pytest.mark.parametrize("name, component", [("sparse", "values"), ("complex", "data"), ("brain", "data"), ("eight", "data")])
def test_what_is_pulled_is_what_its_name_says(site, browser, tmp_path, name, component):
    browser.open(f"{site.url}/ui/models/small/objects/{name}/{component}")
    in_bash(lines(browser)["ztserve"], tmp_path, PULL)
    (path,) = tmp_path.iterdir()
    if name == "sparse":
        assert path.name == "sparse.zt" and path.read_bytes().startswith(b"ZTEN1000")
    else:
        stored = requests.get(f"{site.url}/v1/models/small/objects/{name}/data?representation=stored").content
        assert safetensors_of(path) == {name: stored}


@pytest.mark.parametrize("model", NAMES, ids=range(len(NAMES)))
def test_lines_of_models_with_unusual_names(site, browser, tmp_path, model):
    browser.open(f"{site.url}/ui/models/{quote(model, safe='')}/objects/w/data")
    copied = lines(browser)
    in_bash(copied["curl"], tmp_path)
    assert numpy.array_equal(numpy.load(tmp_path / "w.npy"), EXPECTED)
    in_bash(copied["ztserve"], tmp_path, PULL)
    assert safetensors_of(tmp_path / "w.safetensors") == {"w": EXPECTED.tobytes()}


def test_the_button_copies(site, browser):
    browser.open(f"{site.url}/ui/models/small/objects/brain/data")
    browser.cdp(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"], origin=site.url
    )
    browser.click("#copy-python")
    browser.wait("document.querySelector('#copy-python').textContent === 'Copied'")
    assert browser.run_async("return await navigator.clipboard.readText();") == lines(browser)["python"]
