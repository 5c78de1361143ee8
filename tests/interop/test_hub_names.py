"""What clients of a Hub write into its URLs beside what tests/http/test_hub_reading.py has: names that are escaped whole, bytes
that no name has, ranges from the end, and codings."""

from urllib.parse import quote

import pytest

from hub_repositories import ODD_NAMES, SECRET, make_model
from wire import ask, get, head

MODEL = "/org/model/resolve"


@pytest.fixture(scope="module")
def served(folder):
    (folder / "outside.txt").write_bytes(SECRET)
    (folder / ".hidden/model").mkdir(parents=True)
    (folder / ".hidden/model/config.json").write_bytes(SECRET)
    return make_model(folder / "org/model")


@pytest.fixture(scope="module")
def hub(folder, served, share_server):
    return share_server(folder)


@pytest.fixture(scope="module")
def commit(hub):
    return get(hub, "/api/models/org/model").json()["sha"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_found_however_it_is_escaped(hub, served, commit, name):
    for written in (quote(name), quote(name, safe="")):
        assert get(hub, f"{MODEL}/{commit}/{written}").body == served[name], written
    found = get(hub, f"/api/models/org/model/tree/main/{quote(name.rpartition('/')[0], safe='')}").json()
    assert name in [entry["path"] for entry in found]


@pytest.mark.parametrize("path", [
    "../../../outside.txt", "%2e%2e/%2e%2e/outside.txt", "..%5coutside.txt", "./config.json", "%2e/config.json", "%2ehidden.json",
    "link.txt", "sub/.cache/file.txt", "config.json%2f", "config.json%00", "config.json%00.txt", "%c0%ae%c0%ae/outside.txt", "%zz",
])  # fmt: skip
def test_what_names_no_file_is_refused(hub, commit, path):
    answer = get(hub, f"{MODEL}/{commit}/{path}")
    assert answer.status in (400, 404) and SECRET not in answer.body
    assert answer.status == 400 or answer["X-Error-Code"] == "EntryNotFound"
    assert head(hub, f"{MODEL}/{commit}/{path}").status == answer.status


def test_a_hidden_folder_is_no_repository(hub):
    assert get(hub, "/.hidden/model/resolve/main/config.json")["X-Error-Code"] == "RepoNotFound"


def test_ranges_from_the_end_and_past_it(hub, served, commit):
    content, target = served["model.safetensors"], f"{MODEL}/{commit}/model.safetensors"
    for asked, wanted in (("bytes=100-", content[100:]), ("bytes=-7", content[-7:])):
        answer = get(hub, target, Range=asked)
        assert (answer.status, answer.body, answer["X-Repo-Commit"]) == (206, wanted, commit)
    assert get(hub, target, Range=f"bytes={len(content)}-").status == 416
    # 416 ends npm's and Rust's downloads, and 200 npm's; here only.
    assert get(hub, f"{MODEL}/{commit}/empty.txt", Range="bytes=0-")["Content-Range"] == "bytes 0-0/0"


def test_files_are_sent_uncoded(hub, commit):
    for accept in ("gzip, deflate", "", "identity"):
        assert "Content-Encoding" not in ask(hub, "GET", f"{MODEL}/{commit}/config.json", {"Accept-Encoding": accept}).fields
