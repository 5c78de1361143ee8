"""Lists of keys as S3's clients ask for them, in both versions: pages, prefixes, delimiters, encodings, and what may be seen."""

import io
import os
import re
import xml.etree.ElementTree as ElementTree
from email.utils import parsedate_to_datetime
from urllib.parse import quote, unquote, urlencode

import numpy
import pytest

import uploads
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from wire import ask, cpu_seconds, eventually, get, head

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
MODEL = zt1({"w": dense(pattern(64))})
ODD = ["a+b %&<>.txt", "größe/日本 1.txt", "quote\"'.txt", "100%25.txt", "[]]>.txt"]
KEYS = sorted(
    ["both.txt/below", "both", "top.json", "org/a/x", "org/a-b/x", "org/a.txt", "org/b/c/d.bin", "org/m.zt", "z", *ODD],
    key=str.encode,
)
VERSIONS = [1, 2]


class Page:
    def __init__(self, answer):
        assert answer.status == 200, answer
        assert answer["Content-Type"] == "application/xml" and answer["x-amz-request-id"]
        self.root = ElementTree.fromstring(answer.body)
        assert self.root.tag == NAMESPACE + "ListBucketResult"
        self.contents = {self.text_of(one, "Key"): one for one in self.root.findall(NAMESPACE + "Contents")}
        self.keys = list(self.contents)
        self.prefixes = [self.text_of(one, "Prefix") for one in self.root.findall(NAMESPACE + "CommonPrefixes")]
        self.is_truncated = {"true": True, "false": False}[self["IsTruncated"]]

    @staticmethod
    def text_of(element, name):
        found = element.find(NAMESPACE + name)
        return None if found is None else found.text or ""

    def __getitem__(self, name):
        return self.text_of(self.root, name)


def ask_list(server, version, parameters, fields=None):
    query = urlencode({"list-type": "2"} if version == 2 else {}, quote_via=quote)
    query += "&" + urlencode(parameters, quote_via=quote)
    return ask(server, "GET", f"/s3/models?{query}", fields)


def listed(server, version=2, fields=None, **parameters):
    return Page(ask_list(server, version, {name.replace("_", "-"): value for name, value in parameters.items()}, fields))


def pages(server, version, between=lambda page: None, fields=None, **parameters):
    """All pages, followed as SDKs do."""
    page = listed(server, version, fields, **parameters)
    found = [page]
    while page.is_truncated:
        between(page)
        if version == 2:
            more = {"continuation_token": page["NextContinuationToken"]}
        else:
            more = {"marker": page["NextMarker"] or page.keys[-1]}
        page = listed(server, version, fields, **{**parameters, **more})
        found.append(page)
    return found


@pytest.fixture(scope="module")
def server(folder, share_server):
    uploads.fill(folder, {key: MODEL if key.endswith(".zt") else key.encode() for key in KEYS})
    for hidden in (".hidden", "org/.hidden/x", "org/a/.x"):
        uploads.fill(folder, {hidden: b"x"})
    return share_server(folder, environment={"ZTSERVE_HUB_VIEWS": "false"})


def expected(prefix="", delimiter="", keys=KEYS):
    """Keys and common prefixes, by the definition."""
    found, prefixes = [], []
    for key in keys:
        if key.startswith(prefix):
            before, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (None, "", None)
            if not cut:
                found.append(key)
            elif prefix + before + cut not in prefixes:
                prefixes.append(prefix + before + cut)
    return found, prefixes


@pytest.mark.parametrize("version", VERSIONS)
def test_prefixes_and_delimiters(server, version):
    for delimiter in ("", "/", "a", "/a", "-b/", ".", "none"):
        for prefix in ("", "org", "org/", "org/a", "org/a/", "org/b/", "both", "z", "zz", "/", "org//", "größe/", "a+b %&<"):
            page = listed(server, version, prefix=prefix, delimiter=delimiter)
            assert (page.keys, page.prefixes) == expected(prefix, delimiter), (prefix, delimiter)
            assert page["Prefix"] == prefix and page["Delimiter"] == (delimiter or None)
            assert page["Name"] == "models" and page["MaxKeys"] == "1000" and not page.is_truncated
            assert page["KeyCount"] == (str(len(page.keys) + len(page.prefixes)) if version == 2 else None)
            assert page["Marker"] == ("" if version == 1 else None)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("delimiter", ["", "/", "o"])
def test_pages_of_every_size_have_the_whole_list(server, version, delimiter):
    keys, prefixes = expected("", delimiter)
    for size in (1, 2, 7, 1000):
        found = pages(server, version, delimiter=delimiter, max_keys=size)
        assert [key for page in found for key in page.keys] == keys
        assert [prefix for page in found for prefix in page.prefixes] == prefixes
        assert all(len(page.keys) + len(page.prefixes) == size for page in found[:-1])
        assert found[0]["MaxKeys"] == str(size) and found[-1]["NextContinuationToken"] is None
        assert found[-1]["NextMarker"] is None


def test_starts_and_limits(server):
    assert listed(server, 2, start_after="org/b").keys == [key for key in KEYS if key.encode() > b"org/b"]
    assert listed(server, 1, marker="org/b").keys == [key for key in KEYS if key.encode() > b"org/b"]
    assert listed(server, 2, start_after="org/m.zt", delimiter="/").prefixes == []
    page = listed(server, 2, max_keys=1)
    both = listed(server, 2, start_after="z", continuation_token=page["NextContinuationToken"])
    assert both.keys == KEYS[1:] and both["StartAfter"] == "z" and both["ContinuationToken"] == page["NextContinuationToken"]
    empty = listed(server, 2, continuation_token="")
    assert empty.keys == KEYS and empty["ContinuationToken"] == ""
    for version in VERSIONS:
        none = listed(server, version, max_keys=0)
        assert none.keys == [] and not none.is_truncated
        assert listed(server, version, max_keys=100000)["MaxKeys"] == "1000"
    owner = listed(server, 2, fetch_owner="true", max_keys=1).root.find(f"{NAMESPACE}Contents/{NAMESPACE}Owner")
    assert Page.text_of(owner, "ID") == "ztserve"
    assert b"<Owner>" not in ask_list(server, 2, {}).body


@pytest.mark.parametrize("version", VERSIONS)
def test_url_encoding(server, version):
    page = listed(server, version, encoding_type="url", max_keys=1000)
    assert page["EncodingType"] == "url" and page.keys == [quote(key, safe="/") for key in KEYS]
    assert all(re.fullmatch(r"[A-Za-z0-9._~/%-]*", key) for key in page.keys)
    odd = listed(server, version, encoding_type="url", prefix="gr", delimiter="ö", max_keys=1)
    assert [unquote(prefix) for prefix in odd.prefixes] == ["grö"] and unquote(odd["Delimiter"]) == "ö"
    assert listed(server, version, encoding_type="url", prefix="\x01", delimiter="\n")["Delimiter"] == "%0A"
    assert [unquote(key) for one in pages(server, version, encoding_type="url", max_keys=3, delimiter="none") for key in one.keys] == KEYS \
        or version == 1, "clients of version 1 decode NextMarker"


def test_plus_is_a_blank_as_go_writes_it(server):
    assert Page(get(server, "/s3/models?prefix=a%2Bb+")).keys == ["a+b %&<>.txt"]


@pytest.mark.parametrize("query", [
    "max-keys=x", "max-keys=-1", "max-keys=1e3", "max-keys=4294967296", "encoding-type=base64", "prefix=%zz",
    "list-type=2&continuation-token=%2A", "list-type=2&continuation-token=YQ%3D%3D",
])  # fmt: skip
def test_arguments_that_are_refused(server, query):
    answer = get(server, f"/s3/models?{query}")
    assert answer.status == 400 and b"<Code>InvalidArgument</Code>" in answer.body, answer


def test_facts_are_those_of_the_file(server, folder):
    for key, element in listed(server).contents.items():
        stored = os.stat(folder / key)
        answer = head(server, "/s3/models/" + quote(key))
        when = parsedate_to_datetime(answer["Last-Modified"])
        assert Page.text_of(element, "Size") == str(stored.st_size) == answer["Content-Length"]
        assert Page.text_of(element, "LastModified") == when.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        assert re.fullmatch(r'"[0-9a-f]{32}-1"', Page.text_of(element, "ETag")) and Page.text_of(element, "ETag") == answer["ETag"]
        assert Page.text_of(element, "StorageClass") == "STANDARD"
    tags = {Page.text_of(element, "ETag") for element in listed(server).contents.values()}
    assert len(tags) == len(KEYS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("delimiter", ["", "/"])
def test_changes_between_pages(tmp_path, start_server, version, delimiter):
    names = [f"k{number:02}.txt" for number in range(0, 40, 2)]
    uploads.fill(tmp_path, {f"d/{name}": b"x" for name in names})
    server = start_server(tmp_path, "--writable")
    target, written, removed = "/files/d/", set(), set()

    def change(page):
        """Removes the last key of the page, which the next page continues after, and adds one before and one after it."""
        last = page.keys[-1]
        number = int(last[3:5])
        assert ask(server, "DELETE", target + last[2:]).status == 204
        removed.add(last)
        for new in (number - 1, number + 1):
            if new > 0 and ask(server, "PUT", f"{target}k{new:02}.txt", body=b"y").status == 201:
                written.add(f"d/k{new:02}.txt")

    found = [key for page in pages(server, version, change, prefix="d/", delimiter=delimiter, max_keys=3) for key in page.keys]
    assert found == sorted(set(found)), "in order, and each once"
    assert {f"d/{name}" for name in names} <= set(found), "what was there all the time is listed"
    assert set(found) - {f"d/{name}" for name in names} <= written and written & set(found)
    after = listed(server, version, prefix="d/", delimiter=delimiter).keys
    assert after == sorted(({f"d/{name}" for name in names} | written) - removed)


TEAM, NONE, ODD_ONES = Client("team", "read", "org/team*"), Client("none", "read", "absent/*"), Client("odd", "read", "*/x?")
RIGHTS = ["org/team/a.txt", "org/team/m.zt", "org/team-2/b", "org/other/x1", "org/other/y", "secret/only", "x1", "deep/er/x2.txt"]


def assert_sees_only_its_keys(server):
    views = {
        TEAM: ["org/team-2/b", "org/team/a.txt", "org/team/m.zt"],
        NONE: [],
        ODD_ONES: ["deep/er/x2.txt", "org/other/x1"],
    }
    for client, seen in views.items():
        for prefix, delimiter in (("", ""), ("", "/"), ("org/", "/"), ("org/team", "/"), ("org/o", ""), ("secret/", "/"), ("", "e")):
            for version in VERSIONS:
                found = pages(server, version, fields=client.fields, prefix=prefix, delimiter=delimiter, max_keys=1)
                keys_found = [key for page in found for key in page.keys]
                prefixes_found = [one for page in found for one in page.prefixes]
                assert (keys_found, prefixes_found) == expected(prefix, delimiter, seen), (client.name, prefix, delimiter)
    assert get(server, "/s3/models?list-type=2").status in (401, 403)


def test_only_what_may_be_seen(tmp_path, start_server):
    root = tmp_path / "root"
    uploads.fill(root, {key: MODEL if key.endswith(".zt") else b"x" for key in RIGHTS})
    (root / "org/team-3").mkdir()
    tokens = write_tokens(tmp_path / "tokens", TEAM, NONE, ODD_ONES)
    assert_sees_only_its_keys(start_server(root, "--tokens", tokens, environment={"ZTSERVE_HUB_VIEWS": "false"}))


def test_only_what_may_be_seen_in_a_bucket(moto_bucket, serve_bucket, tmp_path):
    for key in RIGHTS:
        moto_bucket.put(key, MODEL if key.endswith(".zt") else b"x")
    tokens = write_tokens(tmp_path / "tokens", TEAM, NONE, ODD_ONES)
    assert_sees_only_its_keys(serve_bucket(moto_bucket, "--tokens", tokens, hub__views=False))


@pytest.mark.folder("folders without files")
def test_folders_without_files_are_no_prefixes(tmp_path, start_server):
    (tmp_path / "empty/er").mkdir(parents=True)
    uploads.fill(tmp_path, {"full/er/.hidden": b"x", "seen/er/x": b"x"})
    server = start_server(tmp_path)
    page = listed(server, delimiter="/")
    assert page.prefixes == ["seen/"]


def test_what_is_published_is_listed_at_once(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    for number in range(20):
        assert listed(server).keys == listed(server, delimiter="/").keys == [f"k{one:02}.txt" for one in range(number)]
        assert ask(server, "PUT", f"/files/k{number:02}.txt", body=b"x").status == 201
    uploads.fill(tmp_path, {"other": b"x"})
    eventually(lambda: "other" in listed(server).keys)


@pytest.mark.folder("100,000 files, for which a store takes minutes")
def test_a_delimiter_costs_what_it_returns(tmp_path, start_server):
    """Keys below other prefixes are not read: the list of all keys takes many times as long."""
    (tmp_path / "x").write_bytes(b"x")
    for outer in range(100):
        below = tmp_path / f"big/{outer:02}"
        below.mkdir(parents=True)
        (below / "000").touch()
        for inner in range(1, 1000):
            os.link(below / "000", below / f"{inner:03}")
    server = start_server(tmp_path)
    eventually(lambda: get(server, "/readyz").status == 200)

    def cost_of(**parameters):
        before = cpu_seconds(server)
        page = listed(server, **parameters)
        return cpu_seconds(server) - before, page

    flat_s, flat = cost_of(delimiter="/")
    deep_s, deep = cost_of()
    assert (flat.keys, flat.prefixes, flat.is_truncated) == (["x"], ["big/"], False)
    assert len(deep.keys) == 1000 and deep.is_truncated
    assert flat_s * 4 < deep_s, (flat_s, deep_s)
    inside_s, inside = cost_of(prefix="big/4", delimiter="/")
    assert inside.prefixes == [f"big/{number}/" for number in range(40, 50)]
    assert inside_s * 4 < deep_s, (inside_s, deep_s)
    more_s = 0
    for _ in range(20):
        used_s, deep = cost_of(continuation_token=deep["NextContinuationToken"])
        more_s += used_s
    assert more_s < 10 * deep_s, "twenty pages do not walk the tree twenty times"


def test_a_bucket_as_the_store(moto_bucket, serve_bucket):
    every = sorted([*KEYS, "both/below", "top.json/x"], key=str.encode)
    for key in every:
        moto_bucket.put(key, MODEL if key.endswith(".zt") else key.encode())
    server = serve_bucket(moto_bucket, hub__views=False)
    for version in VERSIONS:
        for prefix, delimiter in (("", ""), ("", "/"), ("org/", "/"), ("org/a", ""), ("bo", "/"), ("none/", "/")):
            found = pages(server, version, prefix=prefix, delimiter=delimiter, max_keys=4)
            keys, prefixes = expected(prefix, delimiter, every)
            assert [key for page in found for key in page.keys] == keys, (prefix, delimiter)
            assert [one for page in found for one in page.prefixes] == prefixes
    moto_bucket.put("later", b"x")
    eventually(lambda: "later" in listed(server).keys)


# --- views ---

SHARDED = zt1({f"t{number}": dense(pattern(400, number), dtype="f32", shape=[100]) for number in range(3)})
PARTS = ["org/big-00001-of-00003.safetensors", "org/big-00002-of-00003.safetensors", "org/big-00003-of-00003.safetensors"]
VIEWS = ["a.safetensors", "n.safetensors", "org/x.y.safetensors", *PARTS, "org/big.safetensors.index.json",
         "part-00001-of-00003.safetensors", "part-00003-of-00003.safetensors", "part.safetensors.index.json"]  # fmt: skip
STORED = ["a.zt", "n.npz", "n.h", "n.q", "n-", "n", "org/x.y.zt", "org/x.y.npz", "org/x.y-", "org/x.t", "org/big.zt", "org/big-",
          "org/big-00001-of-00003.s", "org/big-1", "org/big.a", "org/big.t", "taken.zt", "taken.safetensors", "other.zt",
          "part.zt", "part-00002-of-00003.safetensors", "dir.zt", "dir.safetensors/x"]  # fmt: skip


def npz():
    file = io.BytesIO()
    numpy.savez(file, w=numpy.arange(4, dtype="f4"))
    return file.getvalue()


def content_of(key):
    if key == "other.zt":
        return b"no model"
    by_extension = {"zt": SHARDED if "big" in key or "part" in key else MODEL, "npz": npz()}
    return by_extension.get(key.rpartition(".")[2], b"x")


@pytest.fixture(scope="module")
def viewed(tmp_path_factory, share_server):
    root = tmp_path_factory.mktemp("viewed")
    uploads.fill(root, {key: content_of(key) for key in STORED})
    return share_server(root, environment={"ZTSERVE_HUB_SHARD_BYTES": "512"})


def test_views_are_listed_wherever_a_page_begins(viewed):
    eventually(lambda: len(get(viewed, "/v1/models?limit=100").json()["models"]) >= 6)
    every = sorted([*STORED, *VIEWS], key=str.encode)
    assert listed(viewed).keys == every
    for prefix in ("", "a", "a.s", "n", "n.s", "n.safetensors", "org/", "org/big", "org/big-", "org/big-00002", "org/big.s", "x"):
        for delimiter in ("", "/", ".", "s", "-0", "of"):
            keys, prefixes = expected(prefix, delimiter, every)
            for size in (1, 2, 1000):
                found = pages(viewed, 2, prefix=prefix, delimiter=delimiter, max_keys=size)
                assert [key for page in found for key in page.keys] == keys, (prefix, delimiter, size)
                assert [one for page in found for one in page.prefixes] == prefixes, (prefix, delimiter, size)
    for start in every:
        for after in (start, start + "!", start[:-1]):
            assert listed(viewed, start_after=after).keys == [key for key in every if key.encode() > after.encode()], after


def test_tags_of_views_follow_the_model(tmp_path, start_server):
    uploads.fill(tmp_path, {"m.zt": MODEL, "other.zt": MODEL})
    server = start_server(tmp_path, "--writable")

    def facts():
        return {key: (Page.text_of(one, "ETag"), Page.text_of(one, "Size")) for key, one in listed(server).contents.items()}

    first = facts()
    assert set(first) == {"m.zt", "m.safetensors", "other.zt", "other.safetensors"} and len(set(first.values())) == 4
    assert facts() == first
    assert ask(server, "PUT", "/files/m.zt", body=SHARDED).status == 204
    second = facts()
    changed = {key for key in first if first[key] != second[key]}
    assert changed == {"m.zt", "m.safetensors"}
    assert ask(server, "DELETE", "/files/m.zt").status == 204
    assert set(facts()) == {"other.zt", "other.safetensors"}


def test_views_of_models_that_may_not_be_seen_are_hidden(tmp_path, start_server):
    client = Client("team", "read", "seen*")
    root = tmp_path / "root"
    uploads.fill(root, {"seen.zt": MODEL, "hidden.zt": MODEL})
    server = start_server(root, "--tokens", write_tokens(tmp_path / "tokens", client))
    assert listed(server, fields=client.fields).keys == ["seen.safetensors", "seen.zt"]
    for prefix in ("hidden", "hidden.", "hidden.s"):
        assert listed(server, fields=client.fields, prefix=prefix).keys == []
