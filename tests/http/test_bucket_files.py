"""Files that are no models, and folders, in a bucket: keys of every kind, whatever the store."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from containers import dense, pattern, zt1
from wire import assert_problem, ask, eventually, get, head

JSON = {"Accept": "application/json"}


def listed(server, folder):
    answer = get(server, f"/files/{quote(folder)}", **JSON)
    assert answer.status == 200, answer
    return [entry["name"] + "/" * (entry["type"] == "folder") for entry in answer.json()["entries"]]


def test_keys_of_every_kind(bucket, serve_bucket):
    names = ["config.json", "both", "both/below.txt", "sub dir/größe.txt", "a+b&c=d.txt", "100%.txt", "model.zt", "deep/er/x"]
    for name in names:
        bucket.put(f"org/{name}", name.encode() if name != "model.zt" else zt1({"w": dense(pattern(64))}))
    for name in (".hidden", ".git/config", "marker/", "org/.secret", "org/deep/.x/y", "two//slashes"):
        bucket.put(name, b"x")
    server = serve_bucket(bucket)
    for name in names[:-2]:
        assert get(server, "/files/" + quote(f"org/{name}")).body == name.encode()
    assert listed(server, "") == ["marker/", "org/", "two/"]
    assert listed(server, "org/") == ["100%.txt", "a+b&c=d.txt", "both", "both/", "config.json", "deep/", "model.zt", "sub dir/"]
    assert listed(server, "org/deep/") == ["er/"]
    assert listed(server, "marker/") == []
    assert get(server, "/files/org/both").body == b"both", "the file, not the folder"
    assert get(server, "/files/org/deep").status == 308
    for path in (".hidden", "org/.secret", "org/nowhere", "org/nowhere/", "two//slashes", "org/deep/.x/"):
        assert get(server, f"/files/{path}").status in (400, 404), path
    page = get(server, "/files/org/?limit=3", **JSON).json()
    assert [entry["name"] for entry in page["entries"]] == ["100%.txt", "a+b&c=d.txt", "both", "both"], "both on one page"


def test_keys_that_xml_cannot_hold_hide_no_others(bucket, serve_bucket):
    for name in ("\x01first", "a/a", "a/ctrl\x01", "b\x01/y", "c/z", "d"):
        bucket.put(name, b"x")
    server = serve_bucket(bucket)
    assert listed(server, "") == ["a/", "c/", "d"]
    assert listed(server, "a/") == ["a"]


def test_more_folders_than_a_store_lists_at_once(bucket, serve_bucket):
    folders = [f"f{number:04}" for number in range(1010)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: bucket.put(f"many/{name}/x", b""), folders))
    bucket.put("many/zzz.txt", b"last")
    server = serve_bucket(bucket)
    assert listed(server, "many/") == [f"{name}/" for name in folders[:1000]]
    rest = get(server, "/files/many/?after=f0999", **JSON).json()
    assert [entry["name"] for entry in rest["entries"]] == [*folders[1000:], "zzz.txt"]


def test_a_replaced_key_is_another_version_at_once(bucket, serve_bucket):
    bucket.put("x.json", b"[1]")
    server = serve_bucket(bucket)
    before = get(server, "/files/x.json")
    bucket.put("x.json", b"[2]")
    after = get(server, "/files/x.json")
    assert (before.body, after.body) == (b"[1]", b"[2]")
    assert before["ETag"] != after["ETag"]
    eventually(lambda: head(server, "/files/x.json")["Repr-Digest"])
    bucket.delete("x.json")
    assert_problem(get(server, "/files/x.json"), 404, "not-found")


def test_what_is_uploaded_has_its_tag_and_digest_at_once(bucket, serve_bucket):
    server = serve_bucket(bucket, "--writable")
    for content, status in ((b"{}", 201), (b'{"a": 1}', 204)):
        put = ask(server, "PUT", "/files/org/config.json", {}, content)
        assert put.status == status, put
        found = get(server, "/files/org/config.json")
        assert (found.body, found["ETag"]) == (content, put["ETag"])
        assert found["Repr-Digest"] == put["Repr-Digest"]
        assert bucket.get("org/config.json") == content
