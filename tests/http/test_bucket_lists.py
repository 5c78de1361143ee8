"""Lists of a bucket that are broken, hostile or missing: no model is lost by them."""

import threading

import pytest

import meddler as acts
from bare_bucket import BARE, SETTLED_S, bucket, is_right, server
from containers import dense, zt1
from wire import component_path, eventually, get, model_path


def entry(key, etag="d41d8cd98f00b204e9800998ecf8427e", size=9):
    return (
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>"
    )


def list_of(*entries, more=""):
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{''.join(entries)}</ListBucketResult>"
    )


BOMB = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 20}">' for i in range(8))
    + "]>"
    + list_of(entry("&i;.zt"))
)
BAD_LISTS = {
    "empty": b"",
    "not XML": b"hello",
    "cut": list_of(entry("other.zt")).encode()[:-30],
    "HTML": b"<html><body>It works!</body></html>",
    "an error": b"<Error><Code>InternalError</Code><Message>m</Message></Error>",
    "XML bomb": BOMB,
    "external entity": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + list_of(entry("&a;.zt")),
    "deep": "<a>" * 100_000,
    "truncated without a token": list_of(entry("other.zt"), more=" "),
    "the same page for ever": list_of(entry("other.zt"), more="<NextContinuationToken>x</NextContinuationToken>"),
    "endless key": list_of(entry("k" * 3_000_000)),
    "no size": list_of(entry("m.zt").replace("<Size>9</Size>", "")),
    "no number for a size": list_of(entry("m.zt", size="-1")),
    "no ETag": list_of(entry("m.zt", etag="")),
    "an ETag that is not UTF-8": list_of(entry("m.zt", etag="@")).encode().replace(b"@", b"\xff\xfe"),
}


@pytest.mark.parametrize("bad", BAD_LISTS)
def test_bad_lists_retire_nothing(bucket, server, meddler, bad):
    rule = meddler.meddle(acts.listing(BAD_LISTS[bad]), "list")
    eventually(lambda: rule.used >= 2, within_s=SETTLED_S)
    assert is_right(server)
    assert [one["name"] for one in get(server, "/v1/models").json()["models"]] == ["m"]
    meddler.stop()
    bucket.put("new.zt", zt1({"w": dense(b"new")}))
    eventually(lambda: is_right(server, component_path("new", "w"), b"new"), within_s=SETTLED_S)


@pytest.mark.parametrize("status, code", [(403, "AccessDenied"), (404, "NoSuchBucket"), (500, "InternalError"), (503, "SlowDown")])
def test_failed_lists_retire_nothing(server, meddler, status, code):
    rule = meddler.meddle(acts.store_error(status, code), "list")
    eventually(lambda: rule.used >= 2, within_s=SETTLED_S)
    assert is_right(server)


def test_key_that_xml_cannot_hold_blinds_nothing(bucket, meddler, serve_bucket):
    """As Ceph lists U+0001: a reference that no parser takes, unless keys are asked for in the encoding of URLs."""

    def act(request, handler):
        true = handler.forward(request)
        hostile = "bad%01.zt" if request.query.get("encoding-type") == "url" else "bad&#x01;.zt"
        return acts.replace(true, body=true.body.replace(b"</ListBucketResult>", f"{entry(hostile)}</ListBucketResult>".encode()))

    meddler.meddle(act, "list")
    bucket.put("later.zt", zt1({"w": dense(b"later")}))
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert {"m", "later"} <= {one["name"] for one in get(server, "/v1/models").json()["models"]}
    assert is_right(server)


HOSTILE_KEYS = [
    "../../etc/passwd.zt", "/etc/passwd.zt", "a//b.zt", "./a.zt", "a/../b.zt", "a/./b.zt", "..zt", ".zt", "x/.zt", "a\nb.zt",
    "a\\..\\b.zt", "%2e%2e/x.zt", "a%00b.zt", "k" * 1000 + ".zt", "&lt;script&gt;.zt", "a&#13;b.zt", "con.zt/", "/", "",
]  # fmt: skip


def test_hostile_keys_are_models_with_errors_or_nothing(bucket, meddler, serve_bucket):
    bad = list_of(*map(entry, HOSTILE_KEYS), entry("m.zt", bucket.etag("m.zt"), len(BARE)))
    meddler.meddle(acts.listing(bad), "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    names = {one["name"] for one in get(server, "/v1/models?limit=1000").json()["models"]}
    assert "m" in names
    parts = [part for name in names for part in name.split("/")]
    assert not [part for part in parts if part in ("", ".", "..") or part.startswith(".") or "\n" in part]
    for key in HOSTILE_KEYS:
        answer = get(server, "/files/" + key.replace("\n", "%0A").replace("&", "%26"))
        assert answer.status in (400, 404, 503) or b"<h1>Index of" in answer.body
    assert not list(server.place.rglob("passwd*"))


def test_keys_listed_twice_are_asked_for_side_by_side(bucket, meddler, serve_bucket):
    names = [f"m{i}.zt" for i in range(6)]
    asked, together = [], threading.Event()

    def held(request, handler):
        """Until another is there."""
        asked.append(request)
        if len(asked) > 1:
            together.set()
        together.wait(120)
        return handler.forward(request)

    for name in names:
        bucket.put(name, BARE)
    listed = [entry(name, etag, len(BARE)) for name in names for etag in (bucket.etag(name), "0" * 32)]
    meddler.meddle(acts.listing(list_of(*listed)), "list")
    meddler.meddle(held, "head")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert together.is_set() and all(is_right(server, component_path(name[:-3], "w")) for name in names)


def test_key_listed_twice_is_what_a_head_tells(bucket, meddler, serve_bucket):
    twice = [entry("m.zt", bucket.etag("m.zt"), len(BARE)), entry("m.zt", "0" * 32, 17)]
    meddler.meddle(acts.listing(list_of(*twice)), "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    eventually(lambda: [one["name"] for one in get(server, "/v1/models").json()["models"]] == ["m"])
    assert get(server, model_path("m")).status == 200
