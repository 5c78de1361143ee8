"""PutObject, CopyObject, DeleteObject and DeleteObjects of the S3 API, their conditions, and the fields that objects keep."""

import base64
import hashlib
import re
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from s3_parts import Upload
from s3_sign import error_code
from wire import ask, get, head

MODEL = zt1({"w": dense(pattern(64))})
PLACED = pattern(1_000_000)
ETAG = r'"[0-9a-f]{32}-1"'
ABSENT = '"00000000000000000000000000000000-1"'


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "placed.bin").write_bytes(PLACED)
    return share_server(folder, "--writable")


def key(name):
    return "/s3/models/" + quote(name)


def put(server, name, data=b"data", fields=None):
    return ask(server, "PUT", key(name), fields, data)


def made(server, name, data=b"data", fields=None):
    """The tag of a new object."""
    answer = put(server, name, data, fields)
    assert answer.status == 200, answer
    return answer["ETag"]


def copied(server, source, name, fields=None):
    return ask(server, "PUT", key(name), {"x-amz-copy-source": "models/" + quote(source), **(fields or {})}, b"")


def delete(server, name, fields=None):
    return ask(server, "DELETE", key(name), fields)


def delete_all(server, document):
    return ask(server, "POST", "/s3/models?delete", {}, document.encode())


def texts(answer, name):
    return [element.text for element in ElementTree.fromstring(answer.body).iter() if element.tag.split("}")[-1] == name]


def refusal(answer):
    return answer.status, error_code(answer)


# --- put ---


@pytest.mark.parametrize("name, data", [("a/x.txt", b"text"), ("größe 1+2/ü", b"u"), ("empty", b""), ("model.zt", MODEL)], ids=range(4))
def test_an_object_is_put_and_read_by_every_api(server, folder, name, data):
    answer = put(server, name, data)
    assert (answer.status, answer.body) == (200, b"")
    assert re.fullmatch(ETAG, answer["ETag"])
    for read in (get(server, key(name)), get(server, "/files/" + quote(name))):
        assert (read.status, read.body) == (200, data)
    assert head(server, key(name))["ETag"] == answer["ETag"]
    assert answer["x-amz-checksum-sha256"] == base64.b64encode(hashlib.sha256(data).digest()).decode()
    replaced = made(server, name, data + (b"" if name.endswith(".zt") else b"2"))
    assert head(server, key(name))["ETag"] == replaced


def test_a_model_that_is_none_is_refused_with_the_rule(server, folder):
    answer = put(server, "broken.zt", b"x" * 100)
    assert refusal(answer) == (400, "InvalidRequest")
    assert "format" in answer.body.decode()
    assert get(server, key("broken.zt")).status == 404
    assert not [path for path in folder.iterdir() if path.name.startswith(".ztserve-upload-")]


@pytest.mark.parametrize("field", ["x-amz-server-side-encryption-customer-algorithm", "x-amz-write-offset-bytes", "x-amz-tagging"])
def test_what_is_not_supported_is_refused(server, field):
    assert refusal(put(server, "refused", b"x", {field: "4"})) == (501, "NotImplemented")
    assert head(server, key("refused")).status == 404


@pytest.mark.parametrize("name", ["a//b", ".hidden", "a/../b", "a/.b"])
def test_a_key_that_no_file_can_have_is_refused(server, name):
    assert refusal(put(server, name)) == (400, "InvalidArgument")


def test_the_mark_of_a_folder_is_accepted_and_not_stored(server, folder):
    for fields in ({}, {"Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": "0"}):
        answer = ask(server, "PUT", "/s3/models/marked/", fields, b"0\r\n\r\n" if fields else b"")
        assert (answer.status, answer["ETag"]) == (200, '"d41d8cd98f00b204e9800998ecf8427e"')
    assert ask(server, "PUT", "/s3/models/marked%2F", {}, b"").status == 200
    assert not (folder / "marked").exists()
    assert refusal(ask(server, "PUT", "/s3/models/marked/", {}, b"x")) == (400, "InvalidArgument")
    assert delete(server, "marked/").status == 204


def test_conditions_decide_over_put(server):
    assert put(server, "once", b"1", {"If-None-Match": "*"}).status == 200
    assert refusal(put(server, "once", b"2", {"If-None-Match": "*"})) == (412, "PreconditionFailed")
    etag = head(server, key("once"))["ETag"]
    assert refusal(put(server, "once", b"2", {"If-Match": ABSENT})) == (412, "PreconditionFailed")
    second = made(server, "once", b"2", {"If-Match": etag})
    assert refusal(put(server, "once", b"3", {"If-Match": etag})) == (412, "PreconditionFailed")
    # Some clients leave the quotes out.
    assert put(server, "once", b"3", {"If-Match": second.strip('"')}).status == 200
    assert refusal(put(server, "absent", b"1", {"If-Match": etag})) == (404, "NoSuchKey")
    model = made(server, "once.zt", MODEL)
    assert put(server, "once.zt", MODEL, {"If-Match": model}).status == 200
    assert get(server, key("once")).body == b"3"


# --- fields that are kept ---


KEPT = {
    "Content-Type": "text/x-kept; charset=utf-8",
    "Cache-Control": "max-age=60",
    "Content-Disposition": 'attachment; filename="a"',
    "Content-Language": "de",
    "Expires": "Thu, 01 Dec 2033 16:00:00 GMT",
    "x-amz-meta-mtime": "1700000000.5",
    "x-amz-meta-name": "a  b=c",
}


def kept(answer):
    return {name: answer[name] for name in KEPT if answer[name] is not None}


def test_fields_of_an_object_are_returned_until_it_changes(server, folder):
    made(server, "kept.bin", b"kept", {**KEPT, "X-Amz-Meta-CAPITAL": "x", "Content-Encoding": "aws-chunked"})
    for answer in (get(server, key("kept.bin")), head(server, key("kept.bin")), get(server, key("kept.bin"), Range="bytes=1-2")):
        assert kept(answer) == KEPT
        assert (answer["x-amz-meta-capital"], answer["Content-Encoding"]) == ("x", None)
        assert answer["Content-Security-Policy"].startswith("sandbox")
    assert kept(get(server, "/files/kept.bin")).keys() == {"Content-Type", "Cache-Control"}
    overridden = get(server, key("kept.bin") + "?response-content-disposition=inline&response-content-type=text/x-other")
    assert (overridden["Content-Disposition"], overridden["Content-Type"]) == ("inline", "text/x-other")
    ask(server, "PUT", "/files/kept.bin", {}, b"other")
    assert head(server, key("kept.bin"))["x-amz-meta-mtime"] is None
    # Nor does a new object at a place inherit them.
    made(server, "again.bin", b"1", KEPT)
    made(server, "again.bin", b"2")
    assert head(server, key("again.bin"))["x-amz-meta-mtime"] is None


def test_an_empty_value_of_metadata_is_returned(server):
    made(server, "empty.bin", b"x", {"x-amz-meta-a": "1", "x-amz-meta-b": ""})
    assert copied(server, "empty.bin", "copy of empty.bin").status == 200
    made(server, "empty.bin", b"x", {"x-amz-meta-a": "", "x-amz-meta-c": "2"})
    for name, expected in (("empty.bin", ("", None, "2")), ("copy of empty.bin", ("1", "", None))):
        for answer in (head(server, key(name)), get(server, key(name))):
            assert tuple(answer["x-amz-meta-" + letter] for letter in "abc") == expected


def test_fields_survive_a_restart(tmp_path, start_server):
    first = start_server(tmp_path, "--writable")
    made(first, "kept.bin", b"kept", KEPT)
    made(first, "gone.bin", b"gone", KEPT)
    assert delete(first, "gone.bin").status == 204
    upload = Upload(first, "parts.bin", KEPT)
    upload.put(1, b"part")
    assert first.stop() == 0
    second = start_server(tmp_path, "--writable")
    assert kept(head(second, key("kept.bin"))) == KEPT
    upload.server = second
    upload.complete()
    assert kept(head(second, key("parts.bin"))) == KEPT
    made(second, "gone.bin", b"gone")
    assert head(second, key("gone.bin"))["x-amz-meta-name"] is None


def test_fields_have_a_bound(server):
    assert put(server, "much", b"x", {"x-amz-meta-a": "x" * 2047}).status == 200
    assert head(server, key("much"))["x-amz-meta-a"] == "x" * 2047
    assert refusal(put(server, "more", b"x", {"x-amz-meta-a": "x" * 2048})) == (400, "MetadataTooLarge")
    assert refusal(put(server, "more", b"x", {f"x-amz-meta-{i}": "x" for i in range(33)})) == (400, "MetadataTooLarge")
    many = {f"x-amz-meta-{i}": str(i) for i in range(32)}
    made(server, "many", b"x", many)
    answer = head(server, key("many"))
    assert {name: answer[name] for name in many} == many


# --- copy ---


@pytest.mark.parametrize("name, data", [("source.bin", pattern(3_000_000)), ("quelle ü/1+1.txt", b"text"), ("source.zt", MODEL), ("none", b"")], ids=range(4))
def test_an_object_is_copied_with_its_fields(server, name, data):
    made(server, name, data, KEPT)
    target = "copies/" + name
    answer = copied(server, name, target)
    assert answer.status == 200, answer
    assert texts(answer, "ETag") == [head(server, key(target))["ETag"]]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", texts(answer, "LastModified")[0])
    assert texts(answer, "ChecksumSHA256") == [base64.b64encode(hashlib.sha256(data).digest()).decode()]
    read = get(server, key(target))
    assert (read.body == data, kept(read)) == (True, KEPT)
    assert copied(server, name, target, {"x-amz-copy-source": "/models/" + quote(name), "x-amz-metadata-directive": "REPLACE", "x-amz-meta-name": "b"}).status == 200
    replaced = head(server, key(target))
    assert (replaced["x-amz-meta-name"], replaced["x-amz-meta-mtime"]) == ("b", None)


def test_a_file_of_unknown_digest_is_copied(server):
    answer = copied(server, "placed.bin", "placed copy.bin")
    assert (answer.status, texts(answer, "ChecksumSHA256")) == (200, [base64.b64encode(hashlib.sha256(PLACED).digest()).decode()])
    assert get(server, key("placed copy.bin")).body == PLACED


def test_an_object_is_copied_to_itself_only_with_other_fields(server):
    made(server, "self", b"self", KEPT)
    assert refusal(copied(server, "self", "self")) == (400, "InvalidRequest")
    assert copied(server, "self", "self", {"x-amz-metadata-directive": "REPLACE", "x-amz-meta-name": "new"}).status == 200
    answer = get(server, key("self"))
    assert (answer.body, answer["x-amz-meta-name"], answer["x-amz-meta-mtime"]) == (b"self", "new", None)


@pytest.mark.parametrize("source, status, code", [
    ("models/absent", 404, "NoSuchKey"), ("models/a//b", 404, "NoSuchKey"), ("models/.hidden", 404, "NoSuchKey"),
    ("other/absent", 404, "NoSuchBucket"), ("models", 400, "InvalidArgument"), ("models/", 400, "InvalidArgument"),
    ("models/%ZZ", 400, "InvalidArgument"), ("models/%00", 400, "InvalidArgument"), ("models/a?versionId=7", 404, "NoSuchVersion"),
])  # fmt: skip
def test_a_source_that_does_not_exist_is_refused(server, source, status, code):
    assert refusal(copied(server, "", "never", {"x-amz-copy-source": source})) == (status, code)
    assert head(server, key("never")).status == 404


def test_conditions_decide_over_copy(server):
    etag = made(server, "conditional", b"1")
    source, past, future = "x-amz-copy-source-if-", "Thu, 01 Dec 1994 16:00:00 GMT", "Thu, 01 Dec 2033 16:00:00 GMT"
    for fields, is_met in [
        ({source + "match": etag}, True),
        ({source + "match": etag.strip('"')}, True),
        ({source + "match": ABSENT}, False),
        ({source + "none-match": ABSENT}, True),
        ({source + "none-match": etag}, False),
        ({source + "modified-since": past}, True),
        ({source + "unmodified-since": past}, False),
        ({source + "unmodified-since": future}, True),
        ({"If-None-Match": "*"}, False),
    ]:
        answer = copied(server, "conditional", "conditional copy", fields)
        assert (answer.status == 200) == is_met, (fields, answer)
        if not is_met:
            assert refusal(answer) == (412, "PreconditionFailed")


# --- delete ---


def test_an_object_is_deleted_and_so_is_an_absent_one(server, folder):
    made(server, "deleted/x", b"x")
    for _ in range(2):
        answer = delete(server, "deleted/x")
        assert (answer.status, answer.body) == (204, b"")
    assert head(server, key("deleted/x")).status == 404


def test_a_version_that_is_not_there_is_not_deleted(server):
    made(server, "kept")
    for query in ("versionId=7", "versionId=%zz"):
        answer = ask(server, "DELETE", key("kept") + "?" + query)
        assert (answer.status, error_code(answer)) == (404, "NoSuchVersion")
    # Nor does a malformed id of an upload, or number of a part, make the request one for the object.
    assert ask(server, "DELETE", key("kept") + "?uploadId=%zz").status in (400, 404)
    assert ask(server, "PUT", key("kept") + "?uploadId=%zz&partNumber=%zz", {}, b"other").status in (400, 404)
    assert get(server, key("kept")).body == b"data"
    assert head(server, key("kept")).status == 200
    assert ask(server, "DELETE", key("kept") + "?versionId=null").status == 204


def test_conditions_decide_over_delete(server):
    etag = made(server, "guarded", b"x")
    assert refusal(delete(server, "guarded", {"If-Match": ABSENT})) == (412, "PreconditionFailed")
    for unknown in ("x-amz-if-match-size", "x-amz-if-match-last-modified-time"):
        assert refusal(delete(server, "guarded", {unknown: "1"})) == (501, "NotImplemented")
    assert delete(server, "guarded", {"If-Match": etag}).status == 204
    assert refusal(delete(server, "guarded", {"If-Match": etag})) == (404, "NoSuchKey")


@pytest.mark.parametrize("xmlns", ["", ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'])
def test_several_objects_are_deleted_and_each_is_answered(server, xmlns):
    names = ["several/1", "several/&<ü>"]
    for name in names:
        made(server, name)
    keys = ["several/1", "several/&amp;&lt;ü&gt;", "several/absent", "several//empty", "several/"]
    document = f"<Delete{xmlns}>" + "".join(f"<Object><Key>{name}</Key></Object>" for name in keys) + "</Delete>"
    answer = delete_all(server, document)
    assert answer.status == 200, answer
    assert texts(answer, "Key") == ["several/1", "several/&<ü>", "several/absent", "several//empty", "several/"]
    assert texts(answer, "Deleted") and not texts(answer, "Error")
    assert [head(server, key(name)).status for name in names] == [404, 404]


def test_quiet_answers_only_failures(server):
    made(server, "quiet/1")
    etag = made(server, "quiet/2")
    made(server, "quiet/3")
    objects = "<Object><Key>quiet/1</Key></Object>"
    objects += f"<Object><Key>quiet/2</Key><ETag>{etag}</ETag></Object>"
    objects += f"<Object><Key>quiet/3</Key><ETag>{etag}</ETag></Object>"
    objects += "<Object><Key>quiet/4</Key><VersionId>7</VersionId></Object>"
    objects += "<Object><Key>quiet/5</Key><Size>7</Size></Object>"
    answer = delete_all(server, f"<Delete><Quiet>true</Quiet>{objects}</Delete>")
    assert list(zip(texts(answer, "Key"), texts(answer, "Code"))) == [
        ("quiet/3", "PreconditionFailed"), ("quiet/4", "NoSuchVersion"), ("quiet/5", "NotImplemented"),
    ]  # fmt: skip
    assert [head(server, key(f"quiet/{i}")).status for i in (1, 2, 3)] == [404, 404, 200]


ONE = "<Object><Key>kept by all</Key></Object>"


@pytest.mark.parametrize("document", [
    "", "no XML", "<Delete/>", "<Delete></Delete>", "<Other>" + ONE + "</Other>", "<Delete><Object/></Delete>",
    "<Delete><Object><Key></Key></Object></Delete>", "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
    "<Delete>" + ONE, "<Delete>" + ONE + "<Object></Object></Delete>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]><Delete>" + ONE + "</Delete>", "<Delete>" + 1001 * ONE + "</Delete>",
], ids=range(12))  # fmt: skip
def test_a_list_that_is_none_deletes_nothing(server, document):
    made(server, "kept by all")
    assert refusal(delete_all(server, document)) == (400, "MalformedXML")
    assert head(server, key("kept by all")).status == 200


def test_the_checksum_of_a_list_is_verified(server):
    made(server, "checked")
    document = b"<Delete><Object><Key>checked</Key></Object></Delete>"
    for digest, expected in [(hashlib.md5(b"other"), 400), (hashlib.md5(document), 200)]:
        fields = {"Content-MD5": base64.b64encode(digest.digest()).decode()}
        answer = ask(server, "POST", "/s3/models?delete", fields, document)
        assert answer.status == expected, answer
    assert head(server, key("checked")).status == 404


# --- rights ---


def test_a_read_only_server_refuses_every_write(tmp_path, start_server):
    (tmp_path / "x").write_bytes(b"x")
    server = start_server(tmp_path)
    for answer in (put(server, "x"), copied(server, "x", "y"), delete(server, "x"), delete_all(server, "<Delete>" + ONE + "</Delete>")):
        assert refusal(answer) == (403, "AccessDenied")
    assert get(server, key("x")).body == b"x"


def test_a_client_writes_only_where_its_globs_allow(tmp_path, start_server):
    root = tmp_path / "root"
    root.mkdir()
    (root / "theirs").mkdir()
    (root / "theirs/x").write_bytes(b"x")
    client = Client("ours", "write", "ours/*")
    server = start_server(root, "--writable", "--tokens", write_tokens(tmp_path / "tokens", client))
    assert client.ask(server, "PUT", key("ours/x"), body=b"1").status == 200
    for answer in (
        client.ask(server, "PUT", key("theirs/y"), body=b"1"),
        client.ask(server, "PUT", key("theirs/x"), {"x-amz-copy-source": "models/ours/x"}, b""),
        client.ask(server, "DELETE", key("theirs/x")),
    ):
        assert refusal(answer) == (403, "AccessDenied")
    # What it may not read does not exist for it.
    assert refusal(client.ask(server, "PUT", key("ours/y"), {"x-amz-copy-source": "models/theirs/x"}, b"")) == (404, "NoSuchKey")
    document = b"<Delete><Object><Key>theirs/x</Key></Object><Object><Key>ours/x</Key></Object></Delete>"
    answer = client.ask(server, "POST", "/s3/models?delete", body=document)
    assert (texts(answer, "Code"), texts(answer, "Key")) == (["AccessDenied"], ["theirs/x", "ours/x"])
    assert (root / "theirs/x").read_bytes() == b"x"
    assert not (root / "ours/x").exists()
