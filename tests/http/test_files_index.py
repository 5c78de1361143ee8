"""The index of a folder, /files/…/: for people, for programs that follow links, and as JSON."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urljoin

import pytest
from wire import ask, assert_problem, eventually, get, head

HOSTILE = ["<img src=x onerror=alert(1)>.txt", "a&b\"c'd.txt", "100%.txt", "a:b.txt", "#?.txt", " lead.txt", "日本.txt"]
MANY = [f"file-{number:04}.txt" for number in range(2001)]
JSON = {"Accept": "application/json"}


class Links(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.hrefs = []
        self.tags = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.hrefs += [value for name, value in attributes if name == "href"]


def links(answer):
    return Links(answer.body.decode()).hrefs


def index(server, path, fields=JSON):
    answer = ask(server, "GET", path, fields)
    assert answer.status == 200, answer
    return answer.json()


def names(server, path):
    return [entry["name"] for entry in index(server, path)["entries"]]


def write(root, name, data=b"x"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture(scope="module")
def server(folder, share_server):
    write(folder, "top.json", b"{}")
    write(folder, "org/model/config.json", b'{"a": 1}')
    write(folder, "org/model/sub dir/x.txt")
    write(folder, "org/model/.hidden")
    write(folder, "org/.hidden/x.txt")
    write(folder, "org/a/x.txt")
    write(folder, "org/a-b/x.txt")
    write(folder, "org/a.txt")
    for name in HOSTILE:
        write(folder, f"hostile/{name}", name.encode())
    return share_server(folder)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("crowded")
    for name in MANY:
        write(root, f"many/{name}")
    return share_server(root)


def test_json_names_what_is_served(server):
    page = index(server, "/files/org/model/")
    assert page["path"] == "org/model/" and page["next"] is None
    file, below = page["entries"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", file.pop("modified"))
    file.pop("sha256", None)
    assert file == {"name": "config.json", "type": "file", "size": 8, "href": "config.json"}
    assert below == {"name": "sub dir", "type": "folder", "href": "sub%20dir/"}
    assert index(server, "/files/")["path"] == ""
    assert names(server, "/files/") == ["hostile", "org", "top.json"]


def test_entries_are_in_order_of_their_bytes(server):
    assert names(server, "/files/org/") == ["a", "a-b", "a.txt", "model"]
    assert names(server, "/files/hostile/") == sorted(HOSTILE, key=str.encode)


def test_html_is_what_others_get(server):
    for accept in (None, "*/*", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "text/html, application/json;q=0.5"):
        answer = ask(server, "GET", "/files/org/model/", {"Accept": accept} if accept else {})
        assert answer["Content-Type"] == "text/html; charset=utf-8"
        assert links(answer) == ["../", "config.json", "sub%20dir/"]
        assert "Accept" in answer["Vary"]
    assert links(get(server, "/files/")) == ["hostile/", "org/", "top.json"]
    assert "<h1>Index of /org/model/</h1>" in get(server, "/files/org/model/").body.decode()
    for accept in ("application/json", "application/json, text/html;q=0.5"):
        assert ask(server, "GET", "/files/org/", {"Accept": accept})["Content-Type"] == "application/json"


def test_lines_have_time_and_size(server):
    page = get(server, "/files/org/model/").body.decode()
    assert re.search(r'<a href="config.json">config.json</a> +\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d +8\n', page)
    assert re.search(r'<a href="sub%20dir/">sub dir/</a> +- +-\n', page)


def test_hostile_names_are_text(server):
    answer = get(server, "/files/hostile/")
    page = Links(answer.body.decode())
    assert page.tags <= {"html", "head", "meta", "title", "body", "h1", "hr", "pre", "a", "p"}
    assert [unquote(href) for href in page.hrefs[1:]] == sorted(HOSTILE, key=str.encode)
    assert all(re.fullmatch(r"[A-Za-z0-9._~%-]+", href) for href in page.hrefs[1:])
    assert html.escape(HOSTILE[0]) in answer.body.decode()
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_every_reference_leads_to_the_file(server):
    for fields in ({}, JSON):
        answer = ask(server, "GET", "/files/hostile/", fields)
        hrefs = [e["href"] for e in answer.json()["entries"]] if fields else links(answer)[1:]
        for href, name in zip(hrefs, sorted(HOSTILE, key=str.encode), strict=True):
            assert get(server, urljoin("/files/hostile/", href)).body == name.encode()


def next_of(answer):
    field = answer["Link"]
    return re.fullmatch(r'<([^>]*)>; rel="next"', field)[1] if field else None


@pytest.mark.folder("thousands of keys take long to make")
@pytest.mark.parametrize("fields", [{}, JSON])
def test_more_than_a_thousand_come_in_pages(crowded, fields):
    seen, path, sizes = [], "/files/many/", []
    while path is not None:
        answer = ask(crowded, "GET", path, fields)
        if fields:
            page = answer.json()
            found = [entry["name"] for entry in page["entries"]]
            further = page["next"]
        else:
            hrefs = links(answer)
            found = [href for href in hrefs[1:] if not href.startswith("?")]
            further = next((href for href in hrefs if href.startswith("?")), None)
        seen += found
        sizes.append(len(found))
        address = next_of(answer)
        assert (address is None) == (further is None)
        if address is not None:
            assert address == urljoin(f"{crowded.url}/files/many/", further)
        path = None if further is None else "/files/many/" + further
    assert seen == MANY
    assert sizes == [1000, 1000, 1]


@pytest.mark.folder("thousands of keys take long to make")
def test_a_page_of_exactly_the_rest_is_the_last(crowded):
    page = index(crowded, "/files/many/?after=file-1000.txt")
    assert (len(page["entries"]), page["next"]) == (1000, None)
    assert index(crowded, "/files/many/?after=file-2000.txt")["entries"] == []


def test_limit_and_after(server):
    page = index(server, "/files/hostile/?limit=2")
    assert len(page["entries"]) == 2
    rest = index(server, "/files/hostile/" + page["next"])
    assert rest["entries"][0]["name"] == sorted(HOSTILE, key=str.encode)[2]
    assert index(server, f"/files/hostile/?after={quote(sorted(HOSTILE, key=str.encode)[-2])}")["next"] is None
    for limit in ("0", "1001", "-1", "x", ""):
        assert_problem(get(server, f"/files/org/?limit={limit}"), 400, "invalid-request")
    assert_problem(get(server, "/files/org/?after=%2"), 400, "invalid-request")
    assert index(server, "/files/org/?C=M;O=D")["entries"], "parameters of other servers mean nothing"


def test_without_the_slash_it_leads_there(server):
    for path, location in [("/files", "./files/"), ("/files/org", "./org/"), ("/files/org/model/sub%20dir", "./sub%20dir/")]:
        answer = get(server, path)
        assert (answer.status, answer["Location"]) == (308, location)
        assert get(server, urljoin(path, location)).status == 200


def test_an_index_can_be_revalidated(server):
    # What is found of files meanwhile changes it.
    eventually(lambda: all("sha256" in one for one in index(server, "/files/org/")["entries"] if one["type"] == "file"))
    for fields in ({}, JSON):
        answer = ask(server, "GET", "/files/org/", fields)
        assert ask(server, "GET", "/files/org/", {**fields, "If-None-Match": answer["ETag"]}).status == 304
    assert ask(server, "GET", "/files/org/", {})["ETag"] != ask(server, "GET", "/files/org/", JSON)["ETag"]
    bare = head(server, "/files/org/")
    assert (bare.status, bare.body, int(bare["Content-Length"])) == (200, b"", len(get(server, "/files/org/").body))


def test_an_index_shows_what_is_there_now(server, folder):
    write(folder, "new/first.txt")
    eventually(lambda: head(server, "/files/new/first.txt").status == 200)
    assert names(server, "/files/new/") == ["first.txt"]
    (folder / "new/first.txt").unlink()
    write(folder, "new/second.txt")
    eventually(lambda: names(server, "/files/new/") == ["second.txt"])


@pytest.mark.parametrize("path", ["nowhere/", "org/.hidden/", "top.json/", "org/%2e%2e/", "org%2Fmodel/"])
def test_what_is_no_folder_is_not_found(server, path):
    for fields in ({}, JSON):
        assert_problem(ask(server, "GET", f"/files/{path}", fields), 404, "not-found")


@pytest.mark.folder("a bucket has no empty folders, and no links")
def test_folders_of_all_kinds(server, folder):
    (folder / "kinds/empty").mkdir(parents=True)
    (folder / "kinds/link").symlink_to(folder / "org/model")
    (folder / "kinds/up").symlink_to("..")
    assert names(server, "/files/kinds/") == ["empty", "link", "up"]
    assert index(server, "/files/kinds/empty/")["entries"] == []
    assert "config.json" in names(server, "/files/kinds/link/")
    assert names(server, "/files/kinds/up/kinds/up/kinds/") == ["empty", "link", "up"]
