"""Multipart uploads of the S3 API: parts in any order and side by side, replaced, over a restart; lists, limits, refusals."""

import base64
import hashlib
import itertools
import re
import threading
import xml.etree.ElementTree as ElementTree
import zlib

import pytest
from containers import dense, pattern, zt1
from s3_parts import NAMESPACE, UNIT, Upload, code_of, listed_uploads, part_data, stored, text_of, url
from uploads import Expiring
from wire import ask, at_once, connect, eventually, get, head

keys = (f"folder/file{number}.bin" for number in itertools.count())


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable")


def sha256(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def upload_folders(root):
    place = root / ".ztserve-uploads"
    return {path.name for path in place.iterdir() if not path.name.startswith(".")} if place.exists() else set()


# --- order, replacement ---


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (3, 2, 1), (2, 3, 1)])
@pytest.mark.parametrize("form", [{}, {"quoting": "&#34;%s&#34;"}, {"quoting": "%s"}])
def test_parts_in_any_order_become_the_file(server, order, form):
    upload = Upload(server, next(keys))
    data = {1: part_data(1), 2: part_data(2), 3: part_data(3, 12345)}
    for number in order:
        assert re.fullmatch('"[0-9a-f]{32}-1"', upload.put(number, data[number])["ETag"])
    assert upload.listed() == {number: (upload.etags[number], len(data[number])) for number in data}
    assert stored(server, upload.key) is None
    answer = upload.complete(namespace=f' xmlns="{NAMESPACE[1:-1]}"', **form)
    assert (text_of(answer, "Bucket"), text_of(answer, "Key")) == ("models", upload.key)
    assert re.fullmatch('"[0-9a-f]{32}-1"', text_of(answer, "ETag"))
    assert text_of(answer, "ChecksumSHA256") == sha256(b"".join(data[number] for number in sorted(data)))
    assert stored(server, upload.key) == b"".join(data[number] for number in sorted(data))


def test_parts_side_by_side_become_the_file(server):
    upload = Upload(server, next(keys))
    data = {number: part_data(number) for number in range(1, 9)}
    threads = [threading.Thread(target=upload.put, args=item) for item in data.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(upload.etags) == sorted(data)
    upload.complete()
    assert stored(server, upload.key) == b"".join(data.values())


def test_unequal_parts_and_a_gap_become_the_file(server):
    upload = Upload(server, next(keys))
    data = {2: part_data(2, UNIT + 1), 3: part_data(3, UNIT + 7), 9: part_data(9, UNIT), 10000: b"end"}
    for number in (9, 3, 10000, 2):
        upload.put(number, data[number])
    upload.complete()
    assert stored(server, upload.key) == b"".join(data.values())


def test_part_that_is_sent_again_replaces_the_first(server):
    upload = Upload(server, next(keys))
    first = upload.put(1, part_data(1))["ETag"]
    upload.put(2, part_data(2, 10))
    second = upload.put(1, part_data(3))["ETag"]
    assert first != second
    assert code_of(upload.try_complete([(1, first), (2, upload.etags[2])])) == (400, "InvalidPart")
    assert upload.listed()[1] == (second, UNIT)
    answer = upload.complete()
    assert stored(server, upload.key) == part_data(3) + part_data(2, 10)
    assert text_of(answer, "ChecksumSHA256") == sha256(part_data(3) + part_data(2, 10))


def test_part_that_is_sent_again_with_the_same_bytes_has_the_same_tag(server):
    upload = Upload(server, next(keys))
    assert upload.put(1, b"same")["ETag"] == upload.put(1, b"same")["ETag"]
    upload.complete()
    assert stored(server, upload.key) == b"same"


@pytest.mark.folder("it looks into the folders of uploads")
def test_part_that_is_cut_off_leaves_the_acknowledged_one(server, folder):
    upload = Upload(server, next(keys))
    upload.put(1, part_data(1))
    with connect(server) as connection:
        connection.sendall(
            f"PUT {upload.target('&partNumber=1')} HTTP/1.1\r\nHost: x\r\nContent-Length: {UNIT}\r\n\r\n".encode() + b"cut"
        )
        eventually(lambda: list((folder / ".ztserve-uploads" / upload.id).glob("part-00001-*")))
    upload.complete()
    assert stored(server, upload.key) == part_data(1)


# --- completing ---


def test_completion_that_is_repeated_has_the_same_answer(server):
    upload = Upload(server, next(keys))
    upload.put(1, b"once")
    first = upload.complete()
    again = upload.complete(fields={"If-None-Match": "*"})
    assert again.body == first.body
    assert code_of(upload.abort()) == (404, "NoSuchUpload")
    assert code_of(upload.try_put(1, b"late")) == (404, "NoSuchUpload")
    assert code_of(get(server, upload.target())) == (404, "NoSuchUpload")
    assert stored(server, upload.key) == b"once"


def test_completions_at_once_have_the_same_answer(server):
    for _ in range(5):
        upload = Upload(server, next(keys))
        for number in (1, 2, 3):
            upload.put(number, part_data(number))
        answers = at_once(*[upload.try_complete] * 4)
        assert [answer.status for answer in answers] == [200] * 4
        assert len({answer.body for answer in answers}) == 1
        assert stored(server, upload.key) == part_data(1) + part_data(2) + part_data(3)


def test_conditions_are_checked_when_the_upload_is_completed(server):
    upload = Upload(server, next(keys))
    upload.put(1, b"first")
    first = text_of(upload.complete(fields={"If-None-Match": "*"}), "ETag")
    other = Upload(server, upload.key)
    other.put(1, b"second")
    assert code_of(other.try_complete(fields={"If-None-Match": "*"})) == (412, "PreconditionFailed")
    assert code_of(other.try_complete(fields={"If-Match": f'"{"0" * 32}-1"'})) == (412, "PreconditionFailed")
    assert stored(server, upload.key) == b"first"
    other.complete(fields={"If-Match": first})
    assert stored(server, upload.key) == b"second"


@pytest.mark.folder("it looks into the folders of uploads")
def test_part_that_arrived_before_a_failed_completion_is_not_recorded_after_it(server, folder):
    """All bytes of the second part are in their place, and it ends after the completion cut them off."""
    upload = Upload(server, next(keys))
    upload.put(1, part_data(1))
    data = folder / ".ztserve-uploads" / upload.id / "data"
    # Lines after the end of the chunks, so that no byte of the part waits in a buffer.
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (UNIT, part_data(2)) + b"\r\n" * (1 << 19)
    rest = b"\r\n"
    fields = f"Content-Encoding: aws-chunked\r\nx-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nx-amz-decoded-content-length: {UNIT}"
    with connect(server) as connection:
        connection.sendall(
            f"PUT {upload.target('&partNumber=2')} HTTP/1.1\r\nHost: x\r\n{fields}\r\nContent-Length: {len(chunk + rest)}\r\n\r\n".encode()
            + chunk
        )
        eventually(lambda: data.read_bytes() == part_data(1) + part_data(2))
        wrong = {"x-amz-checksum-sha256": base64.b64encode(bytes(32)).decode()}
        assert code_of(upload.try_complete(fields=wrong)) == (400, "BadDigest")
        connection.sendall(rest)
        assert b" 404 " in connection.recv(100)
    assert list(upload.listed()) == [1]
    upload.put(2, part_data(2))
    upload.complete()
    assert stored(server, upload.key) == part_data(1) + part_data(2)


REFUSED = [
    (b"", (400, "MalformedXML")),
    (b"<CompleteMultipartUpload/>", (400, "MalformedXML")),
    (b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>", (400, "MalformedXML")),
    ([(1, "ETAG1"), (1, "ETAG1")], (400, "InvalidPartOrder")),
    ([(2, "ETAG2"), (1, "ETAG1")], (400, "InvalidPartOrder")),
    ([(1, "0" * 32)], (400, "InvalidPart")),
    ([(1, "ETAG1"), (7, "ETAG2")], (400, "InvalidPart")),
    ([(1, "ETAG1"), (2, "ETAG2"), (3, "ETAG3")], (400, "EntityTooSmall")),
]


def test_wrong_lists_of_parts_are_refused_and_keep_the_parts(server):
    upload = Upload(server, next(keys))
    upload.put(1, part_data(1))
    upload.put(2, b"too small")
    upload.put(3, b"last")
    for parts, expected in REFUSED:
        if isinstance(parts, bytes):
            answer = ask(server, "POST", upload.target(), {}, parts)
        else:
            answer = upload.try_complete([(number, upload.etags.get(int(tag[4:]), tag) if tag[0] == "E" else tag) for number, tag in parts])
        assert code_of(answer) == expected, parts
    size = {"x-amz-mp-object-size": str(UNIT)}
    two = [(1, upload.etags[1]), (3, upload.etags[3])]
    assert code_of(upload.try_complete(two, size)) == (400, "InvalidRequest")
    assert len(upload.listed()) == 3
    upload.complete(two, {"x-amz-mp-object-size": str(UNIT + 4)})
    assert stored(server, upload.key) == part_data(1) + b"last"


@pytest.mark.folder("it looks into the folders of uploads")
def test_file_that_is_no_model_as_its_name_says_is_refused_and_nothing_is_left(server, folder):
    upload = Upload(server, "folder/broken.zt")
    upload.put(1, b"not a model")
    status, code = code_of(upload.try_complete())
    assert (status, code) == (400, "InvalidRequest")
    assert stored(server, upload.key) is None
    assert upload.id not in upload_folders(folder)
    assert code_of(get(server, upload.target())) == (404, "NoSuchUpload")


def test_model_is_served_once_it_is_completed(server):
    upload = Upload(server, "folder/made.zt")
    upload.put(1, zt1({"w": dense(pattern(64))}))
    upload.complete()
    assert get(server, "/v1/models/folder%2Fmade/objects/w/data").body == pattern(64)


# --- aborting, expiry, restart ---


@pytest.mark.folder("it looks into the folders of uploads")
def test_aborting_during_a_part_removes_everything(server, folder):
    upload = Upload(server, next(keys))
    upload.put(1, part_data(1))
    with connect(server) as connection:
        connection.sendall(
            f"PUT {upload.target('&partNumber=2')} HTTP/1.1\r\nHost: x\r\nContent-Length: {UNIT}\r\n\r\n".encode() + b"x" * 100_000
        )
        assert upload.id in upload_folders(folder)
        assert upload.abort().status == 204
        assert upload.id not in upload_folders(folder)
        connection.sendall(b"x" * (UNIT - 100_000))
        assert b" 404 " in connection.recv(100)
    assert code_of(upload.abort()) == (404, "NoSuchUpload")
    assert (upload.key, upload.id) not in listed_uploads(server)


def test_parts_survive_a_restart(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    upload = Upload(server, "a.bin", {"x-amz-checksum-algorithm": "CRC32"})
    for number in (4, 1, 3):
        upload.put(number, part_data(number, 99 if number == 4 else UNIT))
    upload.put(3, part_data(8))
    listed = upload.listed()
    finished = Upload(server, "b.bin")
    finished.put(1, b"done")
    answer = finished.complete()
    assert server.stop() == 0

    server = upload.server = finished.server = start_server(tmp_path, "--writable")
    assert upload.listed() == listed
    assert get(server, "/v1/uploads").json()["uploads"][0]["received"] == 2 * UNIT + 99
    assert b"<ChecksumAlgorithm>CRC32<" in get(server, upload.target()).body
    upload.put(2, part_data(2))
    upload.complete()
    assert stored(server, "a.bin") == part_data(1) + part_data(2) + part_data(8) + part_data(4, 99)
    assert finished.complete().body == answer.body


@pytest.mark.folder("it looks into the folders of uploads")
def test_idle_uploads_expire_with_all_their_files(tmp_path, start_server):
    expiring = Expiring(start_server, tmp_path)
    upload = Upload(expiring.server, "a.bin")
    upload.put(2, part_data(2, 100))
    expiring.expire()
    eventually(lambda: not upload_folders(expiring.root))
    assert code_of(upload.try_complete()) == (404, "NoSuchUpload")
    eventually(lambda: 'ztserve_uploads_expired_total{kind="multipart"} 1' in get(expiring.server, "/metrics").body.decode())


# --- limits ---


def test_numbers_of_parts_are_bounded(server):
    upload = Upload(server, next(keys))
    for number in ("0", "10001", "-1", "x", "", "99999999999999999999"):
        assert code_of(upload.try_put(number, b"x")) == (400, "InvalidArgument"), number
    upload.put(10000, b"x")


def test_uploads_of_a_client_are_limited_together_with_other_kinds(tmp_path, start_server):
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "2"})
    tus = {"Tus-Resumable": "1.0.0", "Upload-Length": "10", "Upload-Metadata": "model bQ=="}
    assert ask(server, "POST", "/v1/resumable", tus).status == 201
    upload = Upload(server, "a.bin")
    assert code_of(ask(server, "POST", url("b.bin") + "?uploads")) == (503, "SlowDown")
    assert [one["kind"] for one in get(server, "/v1/uploads").json()["uploads"]] == ["resumable", "multipart"]
    assert upload.abort().status == 204
    Upload(server, "b.bin")


def test_too_large_parts_and_files_are_refused(tmp_path, start_server):
    most = UNIT + 10
    server = start_server(tmp_path, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": str(most)})
    upload = Upload(server, "a.bin")
    assert code_of(upload.try_put(1, bytes(most + 1))) == (400, "EntityTooLarge")
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (most + 1, bytes(most + 1)), {"Transfer-Encoding": "chunked"}
    assert code_of(upload.try_put(1, *chunked)) == (400, "EntityTooLarge")
    upload.put(1, part_data(1))
    upload.put(2, b"12345678901")
    assert code_of(upload.try_complete())[1] == "EntityTooLarge"
    # The parts have more bytes than any file may have: not even a part of unknown length is taken.
    chunked = b"1\r\nx\r\n0\r\n\r\n", {"Transfer-Encoding": "chunked"}
    for body, fields in ((b"x", {}), chunked):
        assert code_of(upload.try_put(3, body, fields)) == (400, "EntityTooLarge")


# --- uploads and keys that are not there ---


def test_upload_belongs_to_one_key(server):
    upload = Upload(server, next(keys))
    for target in (url("folder/other.bin") + f"?uploadId={upload.id}", url(upload.key) + f"?uploadId={'0' * 32}", url(upload.key) + "?uploadId=x"):
        for method, more, body in (("PUT", "&partNumber=1", b"x"), ("GET", "", None), ("POST", "", b"<a/>"), ("DELETE", "", None)):
            assert code_of(ask(server, method, target + more, {}, body)) == (404, "NoSuchUpload"), (method, target)


def test_read_only_server_refuses_uploads(tmp_path, start_server):
    server = start_server(tmp_path)
    assert code_of(ask(server, "POST", url("a.bin") + "?uploads")) == (403, "AccessDenied")


# --- lists ---


def test_parts_are_listed_in_pages(server):
    upload = Upload(server, next(keys))
    for number in (5, 1, 3):
        upload.put(number, bytes([number]))
    assert list(upload.listed()) == [1, 3, 5]
    assert list(upload.listed("&max-parts=2")) == [1, 3]
    assert list(upload.listed("&max-parts=2&part-number-marker=3")) == [5]
    assert list(upload.listed("&part-number-marker=10000")) == []
    page = ElementTree.fromstring(get(server, upload.target("&max-parts=2")).body)
    assert page.findtext(NAMESPACE + "IsTruncated") == "true"
    assert page.findtext(NAMESPACE + "NextPartNumberMarker") == "3"


def test_uploads_are_listed_by_key_with_prefixes_in_pages(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    uploads = [Upload(server, key) for key in ("b/x", "a", "b/y", "c", "b/x")]
    Upload(server, "gone").abort()
    ids = {upload.id for upload in uploads}
    assert [key for key, _ in listed_uploads(server)] == ["a", "b/x", "b/x", "b/y", "c"]
    assert {id for _, id in listed_uploads(server)} == ids
    assert [key for key, _ in listed_uploads(server, "&prefix=b/")] == ["b/x", "b/x", "b/y"]
    assert [key for key, _ in listed_uploads(server, "&delimiter=/")] == ["a", "c"]
    document = ElementTree.fromstring(get(server, "/s3/models?uploads&delimiter=/").body)
    assert [item.findtext(NAMESPACE + "Prefix") for item in document.iter(NAMESPACE + "CommonPrefixes")] == ["b/"]
    spaced = Upload(server, "d e/x")
    assert listed_uploads(server, "&prefix=d+e/") == [("d e/x", spaced.id)]
    spaced.abort()
    assert get(server, "/s3/models?uploads&encoding-type=base64").status == 400
    found, query = [], ""
    while True:
        document = ElementTree.fromstring(get(server, f"/s3/models?uploads&max-uploads=2{query}").body)
        found += [one.findtext(NAMESPACE + "UploadId") for one in document.iter(NAMESPACE + "Upload")]
        if document.findtext(NAMESPACE + "IsTruncated") == "false":
            break
        query = f"&key-marker={document.findtext(NAMESPACE + 'NextKeyMarker')}&upload-id-marker={document.findtext(NAMESPACE + 'NextUploadIdMarker')}"
    assert len(found) == 5 and set(found) == ids


# --- checksums ---


def test_wrong_checksum_of_a_part_is_refused(server):
    upload = Upload(server, next(keys), {"x-amz-checksum-algorithm": "CRC32"})
    data = part_data(1, 1000)
    right = crc32(data)
    assert code_of(upload.try_put(1, data, {"x-amz-checksum-crc32": "AAAAAA=="})) == (400, "BadDigest")
    assert code_of(upload.try_put(1, data, {"x-amz-content-sha256": hashlib.sha256(b"").hexdigest()})) == (
        400,
        "XAmzContentSHA256Mismatch",
    )
    assert upload.listed() == {}
    assert upload.put(1, data, {"x-amz-checksum-crc32": right})["x-amz-checksum-crc32"] == right
    wrong = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{upload.etags[1]}</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>"
    assert code_of(ask(server, "POST", upload.target(), {}, wrong.encode())) == (400, "InvalidPart")
    among = wrong.replace("</Part>", f"<ChecksumSHA256>{sha256(data)}</ChecksumSHA256></Part>")
    assert code_of(ask(server, "POST", upload.target(), {}, among.encode())) == (400, "InvalidPart")
    assert ask(server, "POST", upload.target(), {}, among.replace("AAAAAA==", right).encode()).status == 200


def crc32(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def test_fields_of_the_creation_are_kept_with_the_file(tmp_path, start_server):
    server = start_server(tmp_path, "--writable")
    fields = {"x-amz-meta-mtime": "17.5", "Content-Type": "text/x-test", "Cache-Control": "max-age=7"}
    upload = Upload(server, "a.txt", fields)
    upload.put(1, b"x", {"Content-Type": "application/octet-stream", "x-amz-meta-mtime": "1"})
    assert server.stop() == 0
    server = upload.server = start_server(tmp_path, "--writable")
    upload.complete()
    answer = head(server, url("a.txt"))
    assert {name: answer[name] for name in fields} == fields


def test_whole_checksum_is_answered_in_the_form_asked_for_and_verified(server):
    data = {1: part_data(1), 2: b"end"}
    whole = b"".join(data.values())
    parts = b"".join(zlib.crc32(part).to_bytes(4, "big") for part in data.values())
    expected = {"FULL_OBJECT": crc32(whole), "COMPOSITE": crc32(parts) + "-2"}
    for kind, value in expected.items():
        upload = Upload(server, next(keys), {"x-amz-checksum-algorithm": "crc32", "x-amz-checksum-type": kind})
        for number, part in data.items():
            upload.put(number, part, {"x-amz-checksum-crc32": crc32(part)})
        for name, wrong in (("crc32", "AAAAAA=="), ("sha256", base64.b64encode(bytes(32)).decode()), ("crc32c", "AAAAAA==")):
            assert code_of(upload.try_complete(fields={f"x-amz-checksum-{name}": wrong})) == (400, "BadDigest"), name
        right = {"x-amz-checksum-sha256": sha256(whole), "x-amz-checksum-crc32": crc32(whole)}
        answer = upload.complete(fields=right)
        assert (text_of(answer, "ChecksumCRC32"), text_of(answer, "ChecksumType")) == (value, kind)
        assert upload.complete().body == answer.body
        assert stored(server, upload.key) == whole


@pytest.mark.parametrize("algorithm", ["SHA1", "SHA256", "CRC32"])
def test_composite_checksum_of_a_completion_is_verified(server, algorithm):
    field = "x-amz-checksum-" + algorithm.lower()
    digest = {"SHA1": lambda data: hashlib.sha1(data).digest(), "SHA256": lambda data: hashlib.sha256(data).digest()}.get(
        algorithm, lambda data: zlib.crc32(data).to_bytes(4, "big")
    )
    data = {1: part_data(1), 2: b"end"}
    upload = Upload(server, next(keys), {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": "COMPOSITE"})
    for number, part in data.items():
        upload.put(number, part, {field: base64.b64encode(digest(part)).decode()})
    right = base64.b64encode(digest(b"".join(map(digest, data.values())))).decode()
    other = base64.b64encode(digest(b"other")).decode()
    for wrong, code in (
        (f"{other}-2", "BadDigest"),
        (f"{right}-3", "BadDigest"),
        (right, "BadDigest"),
        (f"{right}-0", "InvalidRequest"),
        (f"{right}-10001", "InvalidRequest"),
        (f"{right}-", "InvalidRequest"),
        ("-2", "InvalidRequest"),
    ):
        assert code_of(upload.try_complete(fields={field: wrong})) == (400, code), wrong
    # No part was uploaded with this one.
    assert code_of(upload.try_complete(fields={"x-amz-checksum-crc32c": "AAAAAA==-2"})) == (400, "InvalidRequest")
    answer = upload.complete(fields={field: f"{right}-2"})
    assert text_of(answer, "Checksum" + algorithm) == f"{right}-2"
    assert stored(server, upload.key) == b"".join(data.values())


def test_composite_checksum_is_only_of_a_completion(server):
    upload = Upload(server, next(keys))
    assert code_of(upload.try_put(1, b"x", {"x-amz-checksum-crc32": crc32(b"x") + "-1"})) == (400, "InvalidRequest")


def test_body_of_a_completion_is_verified(server):
    upload = Upload(server, next(keys))
    upload.put(1, b"x")
    assert code_of(upload.try_complete(fields={"x-amz-content-sha256": hashlib.sha256(b"").hexdigest()})) == (400, "XAmzContentSHA256Mismatch")
    upload.complete()


@pytest.mark.parametrize(
    "algorithm, kind", [("MD5", None), ("CRC33", None), ("SHA256", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"), ("CRC32", "OTHER")]
)
def test_impossible_checksums_are_refused(server, algorithm, kind):
    fields = {"x-amz-checksum-algorithm": algorithm, **({"x-amz-checksum-type": kind} if kind else {})}
    assert code_of(ask(server, "POST", url(next(keys)) + "?uploads", fields)) == (400, "InvalidRequest")


# --- parts that are copied ---


def copy_part(upload, number, source, fields=None):
    answer = ask(upload.server, "PUT", upload.target(f"&partNumber={number}"), {"x-amz-copy-source": source, **(fields or {})})
    if answer.status == 200:
        assert ElementTree.fromstring(answer.body).tag == NAMESPACE + "CopyPartResult"
        upload.etags[number] = text_of(answer, "ETag")
    return code_of(answer)


def test_parts_are_copied_from_objects(server):
    source = Upload(server, "folder/source é.bin")
    source.put(1, part_data(1))
    source.put(2, part_data(2))
    etag = text_of(source.complete(), "ETag")
    whole = part_data(1) + part_data(2)
    name = "models/folder/source%20%C3%A9.bin"
    upload = Upload(server, next(keys))
    assert copy_part(upload, 2, "/" + name, {"x-amz-copy-source-range": f"bytes=7-{UNIT + 6}"}) == (200, None)
    assert copy_part(upload, 1, name, {"x-amz-copy-source-if-match": etag}) == (200, None)
    upload.put(3, b"end")
    upload.complete()
    assert stored(server, upload.key) == whole + whole[7 : UNIT + 7] + b"end"
    for fields, expected in (
        ({"x-amz-copy-source-range": f"bytes=0-{2 * UNIT}"}, (416, "InvalidRange")),
        ({"x-amz-copy-source-range": "bytes=1-0"}, (400, "InvalidArgument")),
        ({"x-amz-copy-source-range": "bytes=-5"}, (400, "InvalidArgument")),
        ({"x-amz-copy-source-if-none-match": etag}, (412, "PreconditionFailed")),
        ({"x-amz-copy-source-server-side-encryption-customer-algorithm": "AES256"}, (501, "NotImplemented")),
    ):
        assert copy_part(Upload(server, next(keys)), 1, name, fields) == expected, fields
    assert copy_part(Upload(server, next(keys)), 1, "models/none") == (404, "NoSuchKey")
