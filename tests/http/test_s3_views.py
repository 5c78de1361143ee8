"""Models in other formats as safetensors objects: HEAD, GET and ranges agree with the list. Which views there are is in test_s3_lists.py."""

import base64
import hashlib
import json
import xml.etree.ElementTree as ElementTree
from email.utils import parsedate_to_datetime

import pytest
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from wire import ask, eventually, get, head

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
DATA = pattern(4096)


def listed(server, prefix, fields=None):
    """Of each key of the list: tag, size and time."""
    answer = ask(server, "GET", f"/s3/models?list-type=2&prefix={prefix}", fields)
    rows = ElementTree.fromstring(answer.body).iter(NAMESPACE + "Contents")
    return {row.findtext(NAMESPACE + "Key"): [row.findtext(NAMESPACE + name) for name in ("ETag", "Size", "LastModified")] for row in rows}


def write(folder, name, objects):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zt1(objects))


def of_safetensors(body):
    """Names of the tensors, and their bytes."""
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: body[8 + length :][slice(*entry["data_offsets"])] for name, entry in header.items()}


@pytest.fixture(scope="module")
def server(folder, share_server):
    write(folder, "org/one.zt", {"w": dense(DATA)})
    write(folder, "org/many.zt", {f"w{i}": dense(DATA) for i in range(3)})
    write(folder, "org/stored.zt", {"w": dense(DATA)})
    (folder / "org/stored.safetensors").write_bytes(b"not a view")
    return share_server(folder, environment={"ZTSERVE_HUB_SHARD_BYTES": "5000"})


def test_every_listed_view_is_an_object_of_this_tag_size_and_time(server):
    keys = listed(server, "org/")
    views = [key for key in keys if ".safetensors" in key and "stored" not in key]
    assert len(views) >= 4
    for key in views:
        answer = get(server, f"/s3/models/{key}")
        assert answer.status == 200, key
        tag, size, time = keys[key]
        assert (answer["ETag"], str(len(answer.body))) == (tag, size)
        assert parsedate_to_datetime(answer["Last-Modified"]).strftime("%Y-%m-%dT%H:%M:%S.000Z") == time
        asked = head(server, f"/s3/models/{key}")
        assert (asked["ETag"], asked["Content-Length"]) == (tag, size)


def test_a_view_has_the_tensors_of_the_model_and_ranges(server):
    body = get(server, "/s3/models/org/one.safetensors").body
    assert of_safetensors(body) == {"w": DATA}
    tag = head(server, "/s3/models/org/one.safetensors")["ETag"]
    part = ask(server, "GET", "/s3/models/org/one.safetensors",
               {"Range": "bytes=8-99", "If-Match": tag, "x-amz-checksum-mode": "ENABLED"})  # fmt: skip
    assert (part.status, part.body) == (206, body[8:100])
    assert part["x-amz-checksum-sha256"] == base64.b64encode(hashlib.sha256(body[8:100]).digest()).decode()
    assert get(server, "/s3/models/org/one.safetensors", If_None_Match=tag).status == 304


def test_the_checksum_of_a_view_is_stated_once_known(server):
    for key in ("org/one.safetensors", "org/many-00001-of-00003.safetensors", "org/many.safetensors.index.json"):
        answer = eventually(lambda key=key: (answer := get(server, f"/s3/models/{key}"))["x-amz-checksum-sha256"] and answer)
        assert answer["x-amz-checksum-sha256"] == base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
        assert answer["x-amz-checksum-type"] == "FULL_OBJECT"


def test_the_index_names_the_parts(server):
    index = json.loads(get(server, "/s3/models/org/many.safetensors.index.json").body)
    tensors = {}
    for part in sorted(set(index["weight_map"].values())):
        tensors |= of_safetensors(get(server, f"/s3/models/org/{part}").body)
    assert tensors == {f"w{i}": DATA for i in range(3)}


def test_a_stored_file_is_no_view_and_other_names_do_not_exist(server):
    assert get(server, "/s3/models/org/stored.safetensors").body == b"not a view"
    for key in ("org/none.safetensors", "org/many.safetensors", "org/many-00001-of-00009.safetensors", "org/one.safetensors.index.json"):
        answer = get(server, f"/s3/models/{key}")
        assert answer.status == 404 and b"NoSuchKey" in answer.body, key


def test_a_replaced_model_has_another_view(server, folder):
    target = "/s3/models/org/replaced.safetensors"
    write(folder, "org/replaced.zt", {"w": dense(DATA)})
    before = eventually(lambda: (answer := get(server, target)).status == 200 and answer)
    write(folder, "org/replaced.zt", {"v": dense(DATA[::-1])})
    after = eventually(lambda: (answer := get(server, target)).status == 200 and answer["ETag"] != before["ETag"] and answer)
    assert of_safetensors(before.body) == {"w": DATA}
    assert of_safetensors(after.body) == {"v": DATA[::-1]}
    assert get(server, target, If_Match=before["ETag"]).status == 412


def test_clients_see_views_of_models_that_they_may_read(folder, tmp_path, start_server):
    write(folder, "org/one.zt", {"w": dense(DATA)})
    clients = Client("in", "read", "org/*"), Client("out", "read", "other/*")
    server = start_server(folder, "--tokens", write_tokens(tmp_path / "tokens", *clients))
    statuses = [ask(server, "GET", "/s3/models/org/one.safetensors", client.fields).status for client in clients]
    assert statuses == [200, 404]


def test_there_are_no_views_if_the_setting_is_off(folder, start_server):
    write(folder, "org/one.zt", {"w": dense(DATA)})
    server = start_server(folder, environment={"ZTSERVE_HUB_VIEWS": "false"})
    assert get(server, "/s3/models/org/one.safetensors").status == 404
