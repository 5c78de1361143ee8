"""Files that are dropped or chosen on the page of uploads become models, also when the way is cut meanwhile."""

import base64
import hashlib

import pytest
import requests

import models
from containers import dense, pattern, zt1
from cutting import CutWay

# More than the page sends at a time.
PIECE = 8 << 20
LARGE = PIECE + (1 << 20)
REFUSED = pytest.mark.complains("a refused or a cut request")


@pytest.fixture(scope="module")
def site(folder, share_server):
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "large.zt"
    path.write_bytes(zt1({"all": dense(pattern(LARGE))}))
    return path


@pytest.fixture
def way(site):
    way = CutWay(site)
    yield way
    way.close()


def drop(browser, name, content):
    browser.run(
        "const bytes = Uint8Array.from(atob(arguments[1]), (letter) => letter.charCodeAt(0));"
        "const transfer = new DataTransfer(); transfer.items.add(new File([bytes], arguments[0]));"
        "const zone = document.querySelector('.drop');"
        "for (const kind of ['dragenter', 'dragover', 'drop'])"
        "  zone.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));",
        name,
        base64.b64encode(content).decode(),
    )


def wait_for(browser, state):
    browser.wait("document.querySelector('.upload[data-state]')?.dataset.state === arguments[0]", state, seconds=60)


def served(site, model):
    answer = requests.get(f"{site.url}/files/{model}.zt")
    answer.raise_for_status()
    return hashlib.sha256(answer.content).hexdigest()


def arrived(site):
    """Bytes of unfinished uploads that the server has."""
    return sum(upload["received"] for upload in requests.get(f"{site.url}/v1/uploads").json()["uploads"])


def test_a_dropped_file_becomes_a_model(site, browser):
    content = models.small()
    browser.open(f"{site.url}/ui/uploads")
    drop(browser, "dropped.zt", content)
    wait_for(browser, "done")
    assert served(site, "dropped") == hashlib.sha256(content).hexdigest()
    browser.run("[...document.querySelectorAll('.upload a')].at(-1).click()")
    browser.wait("document.querySelector('h1')?.textContent === 'dropped'")


def test_a_part_that_another_client_sends_is_listed_without_a_name(site, browser):
    fields = {"Tus-Resumable": "1.0.0", "Upload-Concat": "partial", "Upload-Length": "1000"}
    part = site.url + requests.post(f"{site.url}/v1/resumable", headers=fields).headers["Location"]
    browser.open(f"{site.url}/ui/uploads")
    browser.wait("[...document.querySelectorAll('.upload .name')].some((one) => one.textContent === 'Part of a file')")
    assert requests.delete(part, headers={"Tus-Resumable": "1.0.0"}).status_code == 204


@REFUSED
def test_what_is_no_model_is_refused_with_the_servers_words(site, browser):
    browser.open(f"{site.url}/ui/uploads")
    drop(browser, "rubbish.zt", b"ZTEN1000" + bytes(100))
    wait_for(browser, "failed")
    assert "422" in browser.text(".upload .error")
    assert requests.get(f"{site.url}/v1/models/rubbish").status_code == 404


@REFUSED
def test_a_cut_is_waited_out(site, browser, way, large):
    browser.open(f"{way.url}/ui/uploads")
    way.cut_after(PIECE + (1 << 19))
    browser.type("#files", str(large))
    wait_for(browser, "retrying")
    assert "again in" in browser.text(".upload")
    way.open()
    wait_for(browser, "done")
    assert way.cuts == 1
    assert served(site, "large") == hashlib.sha256(large.read_bytes()).hexdigest()
    requests.delete(f"{site.url}/v1/models/large").raise_for_status()


@REFUSED
def test_an_upload_goes_on_after_the_page_was_left(site, browser, way, large):
    browser.open(f"{way.url}/ui/uploads")
    way.cut_after(PIECE + (1 << 19))
    browser.type("#files", str(large))
    wait_for(browser, "retrying")
    browser.open("about:blank", ready=None)
    kept = arrived(site)
    way.open()
    assert kept >= PIECE
    browser.open(f"{way.url}/ui/uploads")
    browser.wait("document.querySelector('main').innerText.includes('choose the file again')")
    # Less than all of it passes.
    way.cut_after(LARGE - kept + (2 << 20))
    browser.type("#files", str(large))
    wait_for(browser, "done")
    assert way.cuts == 1
    assert served(site, "large") == hashlib.sha256(large.read_bytes()).hexdigest()


def test_a_server_that_does_not_write_says_so(folder, share_server, browser):
    site = share_server(folder)
    browser.open(f"{site.url}/ui/uploads")
    assert "turned off" in browser.text("main")
    assert browser.get("document.querySelector('#files')") is None
