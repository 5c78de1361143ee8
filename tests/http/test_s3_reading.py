"""Buckets and objects as clients of S3 read them: heads, conditions, ranges, checksums, errors. The lists are in test_s3_lists.py."""

import base64
import contextlib
import hashlib
import re
import xml.etree.ElementTree as ElementTree
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import pytest
from containers import dense, pattern, zt1
from wire import Connection, ask, eventually, get, head, second_address, talk

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
BIG = pattern(3_000_000)
TEXT = b"hello\n"
MODEL = zt1({"w": dense(pattern(64))})


def checksum(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def key(name):
    return "/s3/models/" + quote(name)


def assert_error(answer, status, code):
    """S3's document, with the id of the field."""
    assert (answer.status, answer["Content-Type"]) == (status, "application/xml"), answer
    document = ElementTree.fromstring(answer.body)
    assert (document.tag, document.findtext("Code")) == ("Error", code), answer
    assert document.findtext("RequestId") == answer["x-amz-request-id"]
    assert document.findtext("Message")


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "org/sub").mkdir(parents=True)
    (folder / "org/big.dat").write_bytes(BIG)
    (folder / "org/größe 1+2.txt").write_bytes(TEXT)
    (folder / "org/empty").write_bytes(b"")
    (folder / "org/model.zt").write_bytes(MODEL)
    (folder / ".hidden").write_bytes(b"secret")
    return share_server(folder, "--writable")


# --- buckets ---


def test_the_bucket_is_listed_found_and_located(server):
    for path in ("/s3", "/s3/"):
        document = ElementTree.fromstring(get(server, path).body)
        assert [name.text for name in document.iter(NAMESPACE + "Name")] == ["models"]
    for path in ("/s3/models", "/s3/models/"):
        answer = head(server, path)
        assert (answer.status, answer.body) == (200, b"")
        location = ElementTree.fromstring(get(server, path + "?location").body)
        assert (location.tag, location.text) == (NAMESPACE + "LocationConstraint", None)
    assert head(server, "/s3/other").status == 404
    assert_error(get(server, "/s3/other?location"), 404, "NoSuchBucket")


def test_the_bucket_can_be_created_again_but_not_deleted(server):
    body = b"<CreateBucketConfiguration/>"
    assert ask(server, "PUT", "/s3/models", body=body).status == 200
    assert_error(ask(server, "PUT", "/s3/other", body=b""), 404, "NoSuchBucket")
    assert_error(ask(server, "DELETE", "/s3/models"), 403, "AccessDenied")


@pytest.mark.parametrize(
    "method, target, status, code",
    [
        ("GET", "/s3/models?acl", 501, "NotImplemented"),
        ("GET", "/s3/models?versions&prefix=a", 501, "NotImplemented"),
        ("PUT", "/s3/models?policy=", 501, "NotImplemented"),
        ("GET", key("org/big.dat") + "?tagging", 501, "NotImplemented"),
        ("PUT", key("org/new") + "?acl", 501, "NotImplemented"),
        ("POST", key("org/big.dat") + "?select&select-type=2", 501, "NotImplemented"),
        ("POST", key("org/big.dat"), 405, "MethodNotAllowed"),
        ("PATCH", key("org/big.dat"), 405, "MethodNotAllowed"),
        ("DELETE", "/s3", 405, "MethodNotAllowed"),
        ("GET", key("absent"), 404, "NoSuchKey"),
        ("GET", key("org"), 404, "NoSuchKey"),
        ("GET", key("org/"), 404, "NoSuchKey"),
        ("GET", key(".hidden"), 404, "NoSuchKey"),
        ("GET", key("org//big.dat"), 404, "NoSuchKey"),
        ("GET", key("org/../org/big.dat"), 404, "NoSuchKey"),
        ("GET", "/s3/models/%FF", 404, "NoSuchKey"),
        ("GET", "/s3/models/a%00", 404, "NoSuchKey"),
        ("GET", "/s3/other/org/big.dat", 404, "NoSuchBucket"),
        ("GET", key("org/big.dat") + "?versionId=7", 404, "NoSuchVersion"),
        ("GET", key("org/big.dat") + "?partNumber=2", 416, "InvalidPartNumber"),
        ("GET", key("org/big.dat") + "?partNumber=0", 400, "InvalidArgument"),
        ("GET", key("org/big.dat") + "?response-expires=a%0D%0Ab", 400, "InvalidArgument"),
        ("GET", key("org/big.dat") + "?response-expires=%ZZ", 400, "InvalidRequest"),
    ],
)  # fmt: skip
def test_refusals_have_the_form_and_code_of_s3(server, method, target, status, code):
    assert_error(ask(server, method, target), status, code)


def test_a_refusal_of_head_has_no_body(server):
    answer = head(server, key("absent"))
    assert (answer.status, answer.body, answer["Content-Type"]) == (404, b"", "application/xml")
    assert answer["x-amz-request-id"]


# --- objects ---


def test_an_object_has_the_head_that_clients_of_s3_expect(server, folder):
    for name, data in [("org/größe 1+2.txt", TEXT), ("org/model.zt", MODEL), ("org/empty", b"")]:
        answer = get(server, key(name))
        assert (answer.status, answer.body) == (200, data)
        assert re.fullmatch(r'"[0-9a-f]{32}-1"', answer["ETag"])
        assert answer["Accept-Ranges"] == "bytes"
        assert re.fullmatch("[0-9a-f]{16}", answer["x-amz-request-id"])
        asked = head(server, key(name))
        for field in ("ETag", "Last-Modified", "Content-Length", "Content-Type"):
            assert asked[field] == answer[field]
        if not getattr(server, "mirror", None):
            modified = parsedate_to_datetime(answer["Last-Modified"]).timestamp()
            assert modified == int((folder / name).stat().st_mtime)


def test_keys_may_have_escaped_slashes_and_unknown_parameters_are_ignored(server):
    assert get(server, "/s3/models/org%2Fbig.dat?x-id=GetObject&versionId=null&partNumber=1").body == BIG


def test_the_target_may_be_in_absolute_form(server):
    answer = talk(server, b"GET http://other:1/s3/models/org/gr%C3%B6%C3%9Fe%201+2.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(TEXT)


def test_an_object_is_never_encoded(server):
    answer = get(server, key("org/größe 1+2.txt"), Accept_Encoding="gzip, zstd")
    assert answer.body == TEXT and answer["Content-Encoding"] is None


def test_conditions_take_tags_with_and_without_quotes(server):
    tag = head(server, key("org/big.dat"))["ETag"]
    for text in (tag, tag.strip('"')):
        assert get(server, key("org/big.dat"), If_Match=text).status == 200
        answer = get(server, key("org/big.dat"), If_None_Match=text)
        assert (answer.status, answer.body) == (304, b"")
        assert answer["x-amz-request-id"]
    assert_error(get(server, key("org/big.dat"), If_Match='"x"'), 412, "PreconditionFailed")
    assert_error(get(server, key("org/big.dat"), If_Match="x", Range="bytes=0-1"), 412, "PreconditionFailed")


@pytest.mark.parametrize("field, first, last", [("0-9", 0, 9), ("5-", 5, len(BIG) - 1), ("-7", len(BIG) - 7, len(BIG) - 1),
                                                ("0-52428799", 0, len(BIG) - 1)])  # fmt: skip
def test_ranges_are_clipped(server, field, first, last):
    answer = get(server, key("org/big.dat"), Range=f"bytes={field}")
    assert (answer.status, answer.body) == (206, BIG[first : last + 1])
    assert answer["Content-Range"] == f"bytes {first}-{last}/{len(BIG)}"


def test_a_range_that_starts_behind_the_end_is_refused_and_several_are_ignored(server):
    assert_error(get(server, key("org/big.dat"), Range=f"bytes={len(BIG)}-"), 416, "InvalidRange")
    assert_error(get(server, key("org/empty"), Range="bytes=0-"), 416, "InvalidRange")
    assert_error(get(server, key("org/big.dat") + "?partNumber=1", Range="bytes=0-1"), 400, "InvalidRequest")
    assert get(server, key("org/big.dat"), Range="bytes=0-1,10-11").body == BIG


def test_parameters_replace_fields_and_nothing_runs_in_a_browser(server):
    query = "?response-content-type=text/html&response-cache-control=no-store&response-content-disposition=attachment%3B%20filename=a"
    query += "&response-content-language=de&response-content-encoding=x&response-expires=Thu,%2001%20Jan%202026%2000:00:00%20GMT"
    answer = get(server, key("org/big.dat") + query)
    assert (answer["Content-Type"], answer["Cache-Control"], answer["Content-Language"]) == ("text/html", "no-store", "de")
    assert answer["Content-Disposition"] == "attachment; filename=a"
    assert (answer["Content-Encoding"], answer["Expires"]) == ("x", "Thu, 01 Jan 2026 00:00:00 GMT")
    assert "sandbox" in answer["Content-Security-Policy"] and answer["X-Content-Type-Options"] == "nosniff"


# --- checksums ---


@pytest.mark.parametrize("name, data", [("org/big.dat", BIG), ("org/model.zt", MODEL)])
def test_the_checksum_of_the_whole_object_is_stated_once_known(server, name, data):
    def stated(answer):
        return answer["x-amz-checksum-sha256"] is not None and answer

    for ask_for in (head, get):
        answer = eventually(lambda ask_for=ask_for: stated(ask_for(server, key(name))))
        assert (answer["x-amz-checksum-sha256"], answer["x-amz-checksum-type"]) == (checksum(data), "FULL_OBJECT")


def test_a_part_has_only_its_own_checksum(server):
    eventually(lambda: head(server, key("org/big.dat"))["x-amz-checksum-sha256"] is not None)
    plain = get(server, key("org/big.dat"), Range="bytes=10-99")
    assert plain["x-amz-checksum-sha256"] is None and plain["x-amz-checksum-type"] is None
    for _ in range(2):  # The second time from memory.
        answer = get(server, key("org/big.dat"), Range="bytes=10-99", x_amz_checksum_mode="ENABLED")
        assert answer["x-amz-checksum-sha256"] == checksum(BIG[10:100]) and answer["x-amz-checksum-type"] is None
    whole = get(server, key("org/big.dat"), Range="bytes=0-")
    assert (whole.status, whole["x-amz-checksum-sha256"]) == (206, checksum(BIG))


def test_a_long_part_is_not_hashed(server, folder):
    data = pattern(17 << 20)
    (folder / "org/long.dat").write_bytes(data)
    for last, expected in [((16 << 20) - 1, checksum(data[: 16 << 20])), (16 << 20, None)]:
        answer = get(server, key("org/long.dat"), Range=f"bytes=0-{last}", x_amz_checksum_mode="ENABLED")
        assert (answer.status, answer["x-amz-checksum-sha256"]) == (206, expected)


def test_a_changed_file_has_another_tag_and_checksum(server, folder):
    (folder / "org/changed").write_bytes(b"one")
    field = {"Range": "bytes=0-1", "x-amz-checksum-mode": "ENABLED"}
    before = ask(server, "GET", key("org/changed"), field)
    (folder / "org/changed").write_bytes(b"another")
    after = ask(server, "GET", key("org/changed"), field)
    assert before["ETag"] != after["ETag"]
    assert (before["x-amz-checksum-sha256"], after["x-amz-checksum-sha256"]) == (checksum(b"on"), checksum(b"an"))


# --- settings ---


def test_path_and_bucket_are_settings_and_the_face_can_be_off(folder, start_server):
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_bytes(TEXT)
    moved = start_server(folder, environment={"ZTSERVE_S3_PATH": "/a/store", "ZTSERVE_S3_BUCKET": "weights"})
    assert get(moved, "/a/store/weights/a.txt").body == TEXT
    assert get(moved, "/s3/weights/a.txt").status == 404
    off = start_server(folder, environment={"ZTSERVE_S3_PATH": "false"})
    assert get(off, "/s3/models/a.txt")["Content-Type"] == "application/problem+json"


# --- s3.listen ---


@pytest.fixture(scope="module")
def both(folder, share_server):
    """A base path does not concern the second address, even if it has the bucket's name."""
    (folder / "both.txt").write_bytes(TEXT)
    return share_server(folder, environment={"ZTSERVE_S3_LISTEN": "127.0.0.1:0", "ZTSERVE_BASE_PATH": "/models"})


def test_a_second_address_has_the_bucket_at_its_root_and_nothing_else(server, both):
    second = second_address(both)
    assert get(second, "/models/both.txt").body == TEXT
    assert ElementTree.fromstring(get(second, "/").body).tag == NAMESPACE + "ListAllMyBucketsResult"
    for path in ("/s3/models/both.txt", "/files/both.txt", "/v1/models", "/healthz"):
        assert ElementTree.fromstring(get(second, path).body).tag == "Error"
        assert get(second, path).status in (404, 501)
    assert get(both, "/models/both.txt").status == 404
    assert get(both, "/s3/models/both.txt").body == TEXT


def test_both_addresses_keep_their_connections_and_answers_apart(both):
    second = second_address(both)
    with Connection(both) as first, Connection(second) as other:
        for _ in range(5):  # Small answers are soon kept and sent again.
            assert first.ask("GET", "/models/both.txt").status == 404
            assert other.ask("GET", "/models/both.txt").body == TEXT


def test_a_long_answer_leaves_the_connection_with_the_bucket(folder, both):
    (folder / "both.dat").write_bytes(BIG * 3)
    with Connection(second_address(both)) as connection:
        for _ in range(3):
            assert connection.ask("GET", "/models/both.dat").body == BIG * 3
            assert connection.ask("GET", "/models/both.txt").body == TEXT


def test_many_clients_of_the_second_address_are_served_at_once(folder, start_server):
    folder.joinpath("both.txt").write_bytes(TEXT)
    server = start_server(folder, environment={"ZTSERVE_S3_LISTEN": "127.0.0.1:0"})
    second = second_address(server)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(Connection(second)) for _ in range(200)]
        for connection in connections:
            connection.send("GET", "/models/both.txt")
        assert all(connection.receive().body == TEXT for connection in connections)
    assert server.stop() == 0


def test_a_writable_server_refuses_a_second_address_for_everybody(folder, start_server):
    with pytest.raises(RuntimeError, match="writable is refused with s3.listen"):
        start_server(folder, "--writable", environment={"ZTSERVE_S3_LISTEN": "0.0.0.0:0"})
