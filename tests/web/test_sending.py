"""Sending files from the page of uploads: several of them, into folders, in place of what is there, stopped, resumed, and
across a restart of the server."""

import base64
import hashlib

import pytest
import requests

import models
from containers import dense, pattern, zt1
from cutting import CutWay

PIECE = 8 << 20
LARGE = 2 * PIECE + (1 << 20)
REFUSED = pytest.mark.complains("a refused or a cut request")
READER, WRITER = "reader-token", "writer-token"
STATES = "[...document.querySelectorAll('.upload[data-state]')].map((e) => e.dataset.state).join()"
# The fields of each piece are on record.
RECORD_PIECES = (
    "const send = XMLHttpRequest.prototype.send, set = XMLHttpRequest.prototype.setRequestHeader;"
    "window.sent = [];"
    "XMLHttpRequest.prototype.setRequestHeader = function (name, value) {"
    "  (this.fields ??= {})[name] = value; set.call(this, name, value); };"
    "XMLHttpRequest.prototype.send = function (body) {"
    "  sent.push(this.fields); send.call(this, body); };"
)


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    return share_server(folder, "--writable")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "large.zt"
    path.write_bytes(zt1({"all": dense(pattern(LARGE))}))
    return path


@pytest.fixture
def guarded(tmp_path, start_server):
    """A server that knows who reads and who writes."""
    tokens = tmp_path / "tokens"
    scopes = {READER: "read", WRITER: "write"}
    tokens.write_text("".join(f"{token} {scope} {hashlib.sha256(token.encode()).hexdigest()}\n" for token, scope in scopes.items()))
    (tmp_path / "root").mkdir()
    return start_server(tmp_path / "root", "--writable", "--tokens", tokens)


def files(tmp_path, *names):
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(zt1({"w": dense(bytes([number]) * 1000)}))
    return [tmp_path / name for name in names]


def choose(browser, *paths):
    browser.type("#files", "\n".join(str(path) for path in paths))


def button(browser, text, at=0):
    browser.run("[...document.querySelectorAll('.upload button')].filter((e) => e.textContent === arguments[0])[arguments[1]].click()", text, at)


def stored(site, name):
    answer = requests.get(f"{site.url}/files/{name}")
    return answer.content if answer.status_code == 200 else None


def slow(browser, bytes_per_s=3 << 20):
    """How fast the browser sends; -1: as it can."""
    browser.cdp("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=bytes_per_s)


def forget(site, browser, *names):
    browser.run("localStorage.clear();")
    for name in names:
        requests.delete(f"{site.url}/v1/models/{requests.utils.quote(name, safe='')}")


# --- several files ---


@REFUSED
def test_files_are_sent_one_after_the_other_whatever_becomes_of_them(site, browser, tmp_path):
    one, two, three = files(tmp_path, "one.zt", "two.zt", "three.zt")
    two.write_bytes(b"no model")
    browser.open(f"{site.url}/ui/uploads")
    choose(browser, one, two, three)
    browser.wait(f"{STATES} === 'done,failed,done'")
    assert stored(site, "one.zt") == one.read_bytes()
    assert stored(site, "two.zt") is None
    assert browser.texts(".upload[data-state=done] a") == ["Show one", "Show three"]
    button(browser, "Remove from this list")
    assert browser.get(STATES) == "failed,done"
    assert stored(site, "one.zt") is not None
    forget(site, browser, "one", "three")


@pytest.mark.parametrize("into, prefix", [("mine", "mine/"), (" /mine/deep/ ", "mine/deep/")])
def test_files_go_into_the_folder_that_is_named(site, browser, tmp_path, into, prefix):
    (path,) = files(tmp_path, "here.zt")
    browser.open(f"{site.url}/ui/uploads")
    browser.fill("#folder", into)
    choose(browser, path)
    browser.wait(f"{STATES} === 'done'")
    assert stored(site, f"{prefix}here.zt") == path.read_bytes()
    forget(site, browser, f"{prefix}here")


@REFUSED
def test_what_is_there_is_replaced_only_if_the_reader_says_so(site, browser, tmp_path):
    old, new = (zt1({"w": dense(bytes([number]) * 500)}) for number in (1, 2))
    requests.put(f"{site.url}/v1/models/there", data=old).raise_for_status()
    (tmp_path / "there.zt").write_bytes(new)
    browser.open(f"{site.url}/ui/uploads")
    choose(browser, tmp_path / "there.zt")
    browser.wait(f"{STATES} === 'failed'")
    assert stored(site, "there.zt") == old
    browser.click("#replace")
    choose(browser, tmp_path / "there.zt")
    browser.wait(f"{STATES} === 'failed,done'")
    assert stored(site, "there.zt") == new
    forget(site, browser, "there")


def test_a_dropped_file_becomes_a_model(site, browser):
    browser.open(f"{site.url}/ui/uploads")
    browser.run(
        "const bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));"
        "const transfer = new DataTransfer(); transfer.items.add(new File([bytes], 'dropped.zt'));"
        "for (const kind of ['dragenter', 'dragover', 'drop']) document.querySelector('.drop')"
        ".dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));",
        base64.b64encode(models.small()).decode(),
    )
    browser.wait(f"{STATES} === 'done'")
    assert stored(site, "dropped.zt") == models.small()
    forget(site, browser, "dropped")


def test_a_part_that_another_client_sends_is_listed_without_a_name(site, browser):
    fields = {"Tus-Resumable": "1.0.0", "Upload-Concat": "partial", "Upload-Length": "1000"}
    part = site.url + requests.post(f"{site.url}/v1/resumable", headers=fields).headers["Location"]
    browser.open(f"{site.url}/ui/uploads")
    browser.wait("[...document.querySelectorAll('.upload .name')].some((one) => one.textContent === 'Part of a file')")
    assert requests.delete(part, headers={"Tus-Resumable": "1.0.0"}).status_code == 204


# --- interruptions ---


def test_an_upload_is_stopped_and_goes_on_from_there(site, browser, large):
    browser.open(f"{site.url}/ui/uploads")
    slow(browser)
    choose(browser, large)
    browser.wait("document.querySelector('.upload progress').value > 0.01")
    button(browser, "Stop")
    browser.wait(f"{STATES} === 'stopped'")
    assert browser.texts(".upload .error") == []
    slow(browser, -1)
    button(browser, "Resume")
    browser.wait(f"{STATES} === 'done'", seconds=60)
    assert stored(site, "large.zt") == large.read_bytes()
    forget(site, browser, "large")


def test_each_piece_carries_its_digest(site, browser, large):
    browser.open(f"{site.url}/ui/uploads")
    browser.run(RECORD_PIECES)
    choose(browser, large)
    browser.wait(f"{STATES} === 'done'", seconds=60)
    digest = browser.get("sent[0]['Upload-Checksum']").split(" ")
    first = hashlib.sha256(large.read_bytes()[:PIECE]).digest()
    assert digest == ["sha256", base64.b64encode(first).decode()]
    forget(site, browser, "large")


@REFUSED
def test_an_upload_survives_a_restart_of_the_server(tmp_path, start_server, browser, large):
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable")
    way = CutWay(server)
    browser.open(f"{way.url}/ui/uploads")
    way.cut_after(PIECE + (1 << 19))
    choose(browser, large)
    browser.wait(f"{STATES} === 'retrying'", seconds=60)
    assert server.stop() == 0
    again = start_server(tmp_path / "root", "--writable")
    way.target = (again.host, again.port)
    # Less than all of it passes.
    way.cut_after(LARGE - PIECE + (2 << 20))
    way.open()
    browser.wait(f"{STATES} === 'done'", seconds=60)
    assert way.cuts == 1
    assert stored(again, "large.zt") == large.read_bytes()
    way.close()


@REFUSED
@pytest.mark.parametrize("status, code", [(503, "draining"), (429, "rate-limited"), (502, "")])
def test_a_server_that_is_busy_is_waited_for(site, browser, tmp_path, status, code):
    (path,) = files(tmp_path, "busy.zt")
    browser.open(f"{site.url}/ui/uploads")
    browser.run(
        "const [status, code] = arguments; const real = window.fetch;"
        "window.fetch = (...what) => { if (what[1]?.method !== 'POST') return real(...what); window.fetch = real;"
        "return Promise.resolve(new Response(JSON.stringify({code, detail: 'not now'}), {status})); };",
        status,
        code,
    )
    choose(browser, path)
    browser.wait(f"{STATES} === 'retrying'")
    assert "not now; retrying in 1 s" in browser.text(".upload")
    browser.wait(f"{STATES} === 'done'")
    forget(site, browser, "busy")


@REFUSED
def test_a_file_that_goes_elsewhere_than_before_begins_anew(site, browser, large):
    way = CutWay(site)
    browser.open(f"{way.url}/ui/uploads")
    way.cut_after(PIECE + (1 << 19))
    choose(browser, large)
    browser.wait(f"{STATES} === 'retrying'", seconds=60)
    way.open()
    browser.open("about:blank", ready=None)
    browser.open(f"{way.url}/ui/uploads")
    browser.fill("#folder", "other")
    choose(browser, large)
    browser.wait(f"{STATES} === 'done'", seconds=60)
    assert stored(site, "other/large.zt") == large.read_bytes()
    assert stored(site, "large.zt") is None
    way.close()
    forget(site, browser, "other/large")


# --- tokens ---


def sign_in(browser, site, token):
    browser.open(f"{site.url}/ui/uploads", ready="#token")
    browser.fill("#token", token)
    browser.press("Enter")
    browser.wait("document.querySelector('#files') !== null")


@REFUSED
def test_who_may_not_write_or_list_is_told(guarded, browser, tmp_path):
    (path,) = files(tmp_path, "refused.zt")
    sign_in(browser, guarded, READER)
    browser.wait("document.querySelector('main').innerText.includes('requires a token with the scope admin')")
    choose(browser, path)
    browser.wait(f"{STATES} === 'failed'")
    assert "403 forbidden" in browser.text(".upload .error")
    browser.run("sessionStorage.clear();")


@REFUSED
def test_a_token_that_is_no_longer_good_is_asked_for_in_the_middle(guarded, browser, large):
    sign_in(browser, guarded, WRITER)
    slow(browser)
    choose(browser, large)
    browser.wait("document.querySelector('.upload progress').value > 0.01")
    button(browser, "Stop")
    browser.wait(f"{STATES} === 'stopped'")
    slow(browser, -1)
    # It goes on with a token that nobody has.
    browser.run("const set = XMLHttpRequest.prototype.setRequestHeader; XMLHttpRequest.prototype.setRequestHeader ="
                "function (name, value) { set.call(this, name, name === 'Authorization' ? 'Bearer nobody' : value); };"
                "window.mend = () => { XMLHttpRequest.prototype.setRequestHeader = set; };")  # fmt: skip
    button(browser, "Resume")
    browser.wait("document.querySelector('#token') !== null")
    browser.run("mend()")
    browser.fill("#token", WRITER)
    browser.press("Enter")
    browser.wait(f"{STATES} === 'failed'")
    button(browser, "Resume")
    browser.wait(f"{STATES} === 'done'", seconds=60)
    answer = requests.get(f"{guarded.url}/files/large.zt", headers={"Authorization": f"Bearer {WRITER}"})
    assert answer.content == large.read_bytes()
    browser.run("sessionStorage.clear();")
