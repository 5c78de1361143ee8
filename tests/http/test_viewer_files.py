"""The viewer's files: headers, codings, conditions and addresses; and what is at the root of the server."""

import gzip
import hashlib
import re

import pytest
import zstandard

from wire import ask, assert_problem, get

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
FOREVER = "public, max-age=31536000, immutable"
PAGES = ["/ui", "/ui/", "/ui/uploads", "/ui/models/m", "/ui/models/m/", "/ui/models/a%2Fb/objects/%3Cscript%3E/data",
         "/ui/models/m/objects/%2E%2E/data", "/ui/models/%zz", "/ui/models/m?q=x&sort=-size&sort=2&q=%zz"]  # fmt: skip
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder)


@pytest.fixture(scope="module")
def page(server):
    answer = get(server, "/ui/")
    assert answer.status == 200, answer
    return answer


def policy_of(answer):
    directives = (one.strip().split() for one in answer["Content-Security-Policy"].split(";"))
    return {name: set(values) for name, *values in directives}


def assets_of(page):
    return re.findall(r'(?:src|href)="(/ui/assets/[^"]+)"', page.body.decode())


def imports_of(server, path):
    """The modules that a module imports, and theirs."""
    found, left = set(), [path]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        text = get(server, path).body.decode()
        left += [path.rsplit("/", 1)[0] + "/" + name for name in re.findall(r'from "\./([^"]+)"', text)]
    return found


# --- the page ---


@pytest.mark.parametrize("path", PAGES)
def test_every_address_of_the_viewer_is_the_page(server, page, path):
    answer = get(server, path)
    assert (answer.status, answer["Content-Type"], answer.body) == (200, "text/html; charset=utf-8", page.body)
    assert answer["Cache-Control"] == "no-cache" and answer["ETag"] == page["ETag"]


def test_the_page_may_use_nothing_but_the_server(page):
    policy = policy_of(page)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == {"'none'"}
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == {"'self'"}
    assert policy["img-src"] == {"'self'"}
    assert page["X-Content-Type-Options"] == "nosniff" and page["Referrer-Policy"] == "no-referrer"


def test_the_page_names_only_files_of_its_own_and_has_no_script_in_it(page):
    text = page.body.decode()
    assert "@" not in text and "://" not in text and "style=" not in text
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == ["", ""]
    assert len(assets_of(page)) >= 4


def test_other_methods_are_405(server):
    for path in ("/", "/ui/", "/ui/models/m", "/ui/assets/x/app.js"):
        assert_problem(ask(server, "PUT", path, {}, b"x"), 405, "method-not-allowed")
        assert ask(server, "OPTIONS", path)["Allow"] == "GET, HEAD, OPTIONS"


# --- its files ---


def test_files_are_kept_for_good_and_typed(server, page):
    modules = imports_of(server, next(path for path in assets_of(page) if path.endswith("app.js")))
    assert len(modules) > 5
    for path in modules | set(assets_of(page)):
        answer = get(server, path)
        assert answer.status == 200 and answer["Cache-Control"] == FOREVER, path
        assert answer["Content-Type"] == TYPES[path.rsplit(".", 1)[1]]
        assert answer["X-Content-Type-Options"] == "nosniff" and answer["Content-Security-Policy"]
        assert answer["ETag"] == f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'


def test_modules_use_neither_html_nor_other_servers(server, page):
    for path in imports_of(server, next(path for path in assets_of(page) if path.endswith("app.js"))):
        text = get(server, path).body.decode()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, (path, word)
        others = set(re.findall(r"https?://[^\s\"')]+", text))
        assert others <= {"http://www.w3.org/2000/svg", "https://tus.io/protocols/resumable-upload"}, (path, others)


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_files_are_sent_compressed(server, page, coding):
    for path in ("/ui/", *assets_of(page)):
        plain, coded = get(server, path), get(server, path, Accept_Encoding=coding)
        unpacked = gzip.decompress(coded.body) if coding == "gzip" else zstandard.ZstdDecompressor().decompressobj().decompress(coded.body)
        assert unpacked == plain.body and coded["Content-Encoding"] == coding
        assert coded["ETag"] == plain["ETag"][:-1] + f'-{coding}"' and coded["Vary"] == "Accept-Encoding"
        assert get(server, path, Accept_Encoding=coding, If_None_Match=coded["ETag"]).status == 304
        assert len(coded.body) < len(plain.body) or path.endswith((".svg", "tensor.css"))


def test_files_of_another_release_are_404(server, page):
    path = assets_of(page)[-1]
    other = path.replace(path.split("/")[3], "0" * 16)
    for missing in (other, path + "x", path.rsplit("/", 1)[0], path.rsplit("/", 1)[0] + "/..%2Fapp.js"):
        answer = get(server, missing)
        assert_problem(answer, 404, "not-found")
        assert answer["Cache-Control"] == "no-store"


# --- the root ---


def test_browsers_get_the_page_at_the_root_and_programs_get_links(server, page):
    answer = get(server, "/", Accept=HTML)
    assert answer.body == page.body and answer["Vary"] == "Accept, Accept-Encoding" and answer["Cache-Control"] == "no-cache"
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}, {"Accept": "application/json, text/html;q=0.5"}):
        answer = get(server, "/", **accept)
        assert answer.json() == {"name": "ztserve", "version": get(server, "/version").json()["version"], "models": "/v1/models",
                                 "openapi": "/openapi.json", "ui": "/ui/", "writable": False}  # fmt: skip
        assert answer["Vary"] == "Accept"
        for link in ("models", "openapi", "ui"):
            assert get(server, answer.json()[link]).status == 200


def test_clients_that_are_known_learn_the_version_with_the_links(start_server, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"reader read {hashlib.sha256(b'a-long-token-of-a-reader').hexdigest()}\n")
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--tokens", tokens)
    known = {"Authorization": "Bearer a-long-token-of-a-reader"}
    answer = get(server, "/", **known)
    assert answer.json()["version"] == get(server, "/version", **known).json()["version"]
    assert answer["Vary"] == "Accept, Authorization"
    for fields in ({}, {"Authorization": "Bearer another"}):
        answer = get(server, "/", **fields)
        assert answer.status == 200 and "version" not in answer.json() and answer["Vary"] == "Accept, Authorization"


def test_the_links_say_whether_models_may_be_uploaded(start_server, tmp_path):
    assert get(start_server(tmp_path, "--writable"), "/").json()["writable"] is True


def test_without_the_viewer_there_are_links_only(start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_UI": "false"})
    for path in ("/ui", "/ui/", "/ui/models/m", "/ui/assets/x/app.js"):
        assert_problem(get(server, path), 404, "not-found")
    links = get(server, "/", Accept=HTML).json()
    assert "ui" not in links and links["models"] == "/v1/models"


def test_the_viewer_needs_no_token_and_tells_nothing(start_server, tmp_path):
    tokens, root = tmp_path / "tokens", tmp_path / "root"
    root.mkdir()
    tokens.write_text(f"reader read {hashlib.sha256(b'secret').hexdigest()}\n")
    server = start_server(root, "--tokens", tokens)
    page = get(server, "/", Accept=HTML)
    assert page.status == 200 and get(server, "/ui/models/m").body == page.body
    assert get(server, assets_of(page)[0]).status == 200
    assert "version" not in get(server, "/").json()
    assert_problem(get(server, "/v1/models"), 401, "unauthorized")
