"""Who may use the S3 API: access keys and their signatures, tokens, and neither."""

import base64
import signal
import time
import zlib

import pytest

from clients import Client, write_tokens
from s3_sign import Key, error_code, sha256, write_keys
from wire import Connection, ask, eventually, get, metrics

BUCKET, BUCKETS, LOCATION = "/s3/models", "/s3/", "/s3/models?location"
DAY_S = 86400


def with_keys(path):
    return {"ZTSERVE_S3_KEYS": str(path)}


@pytest.fixture(scope="module")
def reader():
    return Key("AKIAREADER", "read")


@pytest.fixture(scope="module")
def writer():
    # Signs that clients must escape in a presigned address.
    return Key("ci/runner+1=", "write", secret="secret/with+signs=")


@pytest.fixture(scope="module")
def keyed(share_server, tmp_path_factory, reader, writer):
    """A server with keys and without tokens."""
    keys = write_keys(tmp_path_factory.mktemp("keys") / "keys", reader, writer)
    return share_server(tmp_path_factory.mktemp("root"), "--writable", environment=with_keys(keys))


@pytest.fixture(scope="module")
def token():
    return Client("bearer", "read")


@pytest.fixture(scope="module")
def both(share_server, tmp_path_factory, reader, token):
    """A server with keys and tokens."""
    folder = tmp_path_factory.mktemp("both")
    keys, tokens = write_keys(folder / "keys", reader), write_tokens(folder / "tokens", token)
    return share_server(tmp_path_factory.mktemp("root"), "--tokens", tokens, environment=with_keys(keys))


def refusal(answer):
    return answer.status, error_code(answer)


# --- what is right ---


@pytest.mark.parametrize("late_s", [0, -600, 600])
@pytest.mark.parametrize("options", [{}, {"region": "eu-nowhere-1"}])
def test_signed_requests_are_answered(keyed, reader, writer, options, late_s):
    options = options | {"when_s": time.time() + late_s}
    for key in (reader, writer):
        assert key.get(keyed, BUCKETS, **options).status == 200
        assert key.get(keyed, LOCATION, {"Range": "bytes=0-1", "x-amz-meta-a": " two   words "}, **options).status == 200
        assert get(keyed, key.presign(keyed, "GET", LOCATION, expires_s=DAY_S, **options)).status == 200


def test_requests_in_absolute_form_are_signed_without_authority(keyed, reader):
    fields = reader.fields(keyed, "GET", LOCATION)
    assert ask(keyed, "GET", f"http://{keyed.host}:{keyed.port}{LOCATION}", fields).status == 200


def test_the_log_and_the_metrics_name_the_key_and_the_reasons(keyed, reader):
    before = metrics(keyed)
    reader.get(keyed, BUCKETS)
    Key("nobody").get(keyed, BUCKETS)
    after = metrics(keyed)
    reason = 'ztserve_auth_failures_total{reason="unknown_key"}'
    assert after[reason] == before[reason] + 1
    keyed.wait_for_line(f'user="{reader.name}"')
    assert reader.secret not in keyed.log


# --- what is wrong ---


def test_wrong_secrets_and_unknown_keys_are_refused(keyed, reader):
    assert refusal(Key(reader.name, secret="x" * 20).get(keyed, BUCKETS)) == (403, "SignatureDoesNotMatch")
    assert refusal(Key("nobody").get(keyed, BUCKETS)) == (403, "InvalidAccessKeyId")
    for key in (Key(reader.name, secret="x" * 20), Key("nobody")):
        assert get(keyed, key.presign(keyed, "GET", BUCKETS)).status == 403
        answer = key.ask(keyed, "HEAD", BUCKET)
        assert (answer.status, answer.body) == (403, b"")


def test_requests_without_credentials_are_refused(keyed, both):
    for server in (keyed, both):
        for fields in ({}, {"Authorization": "Bearer abc"}, {"Authorization": "AWS AKIAREADER:c2lnbmF0dXJl"}):
            answer = ask(server, "GET", BUCKETS, fields)
            assert refusal(answer) == (403, "AccessDenied"), fields
            assert answer["WWW-Authenticate"] is None and answer["x-amz-request-id"], fields


@pytest.mark.parametrize("late_s", [-1000, 1000, -DAY_S])
def test_clocks_that_differ_are_refused(keyed, reader, late_s):
    answer = reader.get(keyed, BUCKETS, when_s=time.time() + late_s)
    assert refusal(answer) == (403, "RequestTimeTooSkewed")


def test_presigned_addresses_are_refused_before_and_after_their_time(keyed, reader):
    def presigned(**options):
        return get(keyed, reader.presign(keyed, "GET", BUCKETS, **options))

    now = time.time()
    assert presigned(when_s=now - 3 * DAY_S, expires_s=7 * DAY_S).status == 200
    assert refusal(presigned(when_s=now - 100, expires_s=60)) == (403, "AccessDenied")
    assert refusal(presigned(when_s=now + 2000)) == (403, "AccessDenied")
    for expires_s in (0, -1, 7 * DAY_S + 1, "soon"):
        assert refusal(presigned(expires_s=expires_s)) == (400, "AuthorizationQueryParametersError")


def test_scopes_of_other_services_and_days_are_malformed(keyed, reader):
    assert refusal(reader.get(keyed, BUCKETS, service="ec2")) == (400, "AuthorizationHeaderMalformed")
    fields = reader.fields(keyed, "GET", BUCKETS)
    for name, value in {
        "x-amz-date": "20200101T000000Z",
        "Authorization": fields["Authorization"].replace("SignedHeaders=host;", "SignedHeaders="),
    }.items():
        assert refusal(ask(keyed, "GET", BUCKETS, {**fields, name: value})) == (400, "AuthorizationHeaderMalformed"), name
    presigned = reader.presign(keyed, "GET", BUCKETS)
    assert refusal(ask(keyed, "GET", presigned, fields)) == (400, "AuthorizationHeaderMalformed")
    assert refusal(get(keyed, presigned.replace("%2Fs3%2F", "%2Fec2%2F"))) == (400, "AuthorizationQueryParametersError")


def test_changed_requests_are_refused(keyed, reader):
    signed = {"x-amz-meta-a": "b", "Range": "bytes=0-1"}
    fields = reader.fields(keyed, "GET", LOCATION, signed)
    assert ask(keyed, "GET", LOCATION, fields).status == 200
    wrong = (403, "SignatureDoesNotMatch")
    for method, target in [("GET", BUCKETS), ("GET", f"{LOCATION}&a=b"), ("GET", "/s3/models?Location"), ("PUT", LOCATION)]:
        assert refusal(ask(keyed, method, target, fields)) == wrong, (method, target)
    for name in ("x-amz-meta-a", "Range", "x-amz-content-sha256"):
        assert refusal(ask(keyed, "GET", LOCATION, {**fields, name: "0" * 64})) == wrong, name
        rest = {key: value for key, value in fields.items() if key != name}
        assert refusal(ask(keyed, "GET", LOCATION, rest)) == wrong, name
    # Escapes that mean the same are no change.
    assert ask(keyed, "GET", LOCATION.replace("models", "%6dodels"), fields).status == 200
    presigned = reader.presign(keyed, "GET", LOCATION)
    for changed in (presigned + "&a=b", presigned.replace("Expires=600", "Expires=601"), presigned.replace("models", "model")):
        assert refusal(get(keyed, changed)) == wrong, changed


def test_amz_fields_must_be_signed(keyed, writer):
    presigned = writer.presign(keyed, "PUT", "/s3/models/k")
    answer = ask(keyed, "PUT", presigned, {"x-amz-copy-source": "models/other", "Content-Length": "0"})
    assert refusal(answer) == (403, "AccessDenied") and b"x-amz-copy-source" in answer.body
    fields = writer.fields(keyed, "GET", BUCKETS)
    assert refusal(ask(keyed, "GET", BUCKETS, {**fields, "X-Amz-Checksum-Mode": "ENABLED"})) == (403, "AccessDenied")


# --- rights ---


def test_a_read_key_may_not_write(keyed, reader, writer):
    for method, target in [("PUT", "/s3/models/a.bin"), ("DELETE", "/s3/models/a.bin"), ("POST", "/s3/models?delete")]:
        assert refusal(reader.ask(keyed, method, target, body=b"")) == (403, "AccessDenied"), (method, target)
    assert error_code(writer.ask(keyed, "DELETE", "/s3/models?policy", body=b"")) != "AccessDenied"


def test_keys_open_only_the_s3_api(keyed, both, reader):
    for server, status in ((keyed, 200), (both, 401)):
        assert get(server, "/v1/models").status == status
        assert ask(server, "GET", "/v1/models", reader.fields(server, "GET", "/v1/models")).status == status
    keyed.wait_for_line("s3.keys protects only the S3 API")
    assert "s3.keys protects only the S3 API" not in both.log


def test_tokens_work_beside_keys(both, reader, token):
    assert token.get(both, BUCKETS).status == 200
    assert reader.get(both, BUCKETS).status == 200
    assert refusal(token.ask(both, "PUT", "/s3/models/a.bin", body=b"")) == (403, "AccessDenied")
    assert refusal(Key("nobody").get(both, BUCKETS)) == (403, "InvalidAccessKeyId")


def test_signatures_are_refused_without_keys_if_there_are_tokens(tmp_path, start_server, token, reader):
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--tokens", write_tokens(tmp_path / "tokens", token))
    assert refusal(reader.get(server, BUCKETS)) == (403, "InvalidAccessKeyId")
    assert refusal(get(server, reader.presign(server, "GET", BUCKETS))) == (403, "InvalidAccessKeyId")
    assert refusal(get(server, BUCKETS)) == (403, "AccessDenied")
    assert token.get(server, BUCKETS).status == 200


def test_signatures_are_ignored_if_nobody_needs_credentials(share_server, tmp_path_factory, reader):
    server = share_server(tmp_path_factory.mktemp("root"))
    malformed = {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}
    for answer in (get(server, BUCKETS), reader.get(server, BUCKETS, when_s=0), ask(server, "GET", BUCKETS, malformed)):
        assert answer.status == 200


# --- the keys file ---


def reload(server):
    server.signal(signal.SIGHUP)


def test_a_reload_changes_keys_even_on_open_connections(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    old, kept, new = Key("old"), Key("kept"), Key("new")
    keys = write_keys(tmp_path / "keys", old, kept)
    server = start_server(tmp_path / "root", environment=with_keys(keys))
    with Connection(server) as connection:

        def status(key):
            return connection.ask("GET", BUCKETS, key.fields(server, "GET", BUCKETS)).status

        assert [status(key) for key in (old, kept, new)] == [200, 200, 403]
        kept_line = kept.line
        kept.secret = "another-secret"
        write_keys(keys, kept, new)
        reload(server)
        eventually(lambda: status(old) == 403 and status(new) == 200)
        assert status(kept) == 200
        # A broken file keeps the keys in force, and no message has a secret.
        write_keys(keys, kept, lines=["new new-secret-9 nonsense"])
        reload(server)
        server.wait_for_line(f"the configuration is unchanged: s3.keys: {keys}, line 3: the third field is the scope")
        write_keys(keys, new)
        keys.chmod(0o644)
        reload(server)
        server.wait_for_line(f"the configuration is unchanged: s3.keys: {keys}: contains secrets and must be private")
        assert status(new) == 200 and status(kept) == 200
        for text in (kept_line.split()[1], kept.secret, new.secret, "new-secret-9"):
            assert text not in server.log


def test_the_server_does_not_start_with_a_public_or_broken_file(tmp_path, start_server):
    (tmp_path / "root").mkdir()
    keys = write_keys(tmp_path / "keys", Key("a"), Key("a"))
    with pytest.raises(RuntimeError, match=r"s3\.keys: .*, line 3: line 2 already has this access key"):
        start_server(tmp_path / "root", environment=with_keys(keys))
    write_keys(keys, Key("a")).chmod(0o604)
    with pytest.raises(RuntimeError, match=r"s3\.keys: .*: contains secrets and must be private"):
        start_server(tmp_path / "root", environment=with_keys(keys))


@pytest.mark.folder("about the folder of the server")
def test_the_keys_file_is_never_served(tmp_path, start_server):
    key = Key("a")
    keys = write_keys(tmp_path / "keys.txt", key)
    server = start_server(tmp_path, environment=with_keys(keys))
    assert get(server, "/files/keys.txt").status == 404
    assert key.get(server, "/s3/models/keys.txt").status != 200


# --- globs ---


@pytest.fixture(scope="module")
def limited(share_server, tmp_path_factory):
    """A server with a key for some models, and one that may write others."""
    folder = tmp_path_factory.mktemp("limited")
    some, all_ = Key("some", "write", "team/*", "shared"), Key("all", "write")
    root = tmp_path_factory.mktemp("root")
    for path in ("team/a.bin", "team/deep/b.bin", "other/c.bin", "shared.bin", "secret.bin"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())
    server = share_server(root, "--writable", environment=with_keys(write_keys(folder / "keys", some, all_)))
    server.some, server.all = some, all_
    return server


def test_keys_outside_the_globs_do_not_exist(limited):
    for path, status in [("team/a.bin", 200), ("team/deep/b.bin", 200), ("shared.bin", 200), ("other/c.bin", 404), ("secret.bin", 404)]:
        for method in ("GET", "HEAD"):
            assert limited.some.ask(limited, method, f"/s3/models/{path}").status == status, path
        assert limited.all.get(limited, f"/s3/models/{path}").status == 200, path
        presigned = limited.some.presign(limited, "GET", f"/s3/models/{path}")
        assert get(limited, presigned).status == status, path
    assert error_code(limited.some.get(limited, "/s3/models/secret.bin")) == "NoSuchKey"


def test_lists_have_only_what_the_globs_match(limited):
    for query in ("?list-type=2", "?list-type=2&delimiter=/", "", "?delimiter=/&prefix=other/"):
        text = limited.some.get(limited, f"/s3/models{query}").body
        assert b"other" not in text.replace(b"<Prefix>other/</Prefix>", b"", 1) and b"secret" not in text, query
    text = limited.some.get(limited, "/s3/models?list-type=2").body
    assert b"<Key>team/deep/b.bin</Key>" in text and b"<Key>shared.bin</Key>" in text


def test_uploads_outside_the_globs_are_not_listed(limited):
    assert limited.all.ask(limited, "POST", "/s3/models/other/parts.bin?uploads", body=b"").status == 200
    assert b"parts.bin" in limited.all.get(limited, "/s3/models?uploads").body
    assert b"parts.bin" not in limited.some.get(limited, "/s3/models?uploads").body


def test_writes_outside_the_globs_are_refused(limited):
    inside = limited.some.ask(limited, "PUT", "/s3/models/team/new.bin", body=b"new")
    assert inside.status == 200, inside
    for path in ("other/new.bin", "secret.bin"):
        answer = limited.some.ask(limited, "PUT", f"/s3/models/{path}", body=b"new")
        assert refusal(answer) == (403, "AccessDenied"), path
        answer = limited.some.ask(limited, "POST", f"/s3/models/{path}?uploads", body=b"")
        assert refusal(answer) == (403, "AccessDenied"), path
    for source, code in ("secret.bin", "NoSuchKey"), ("team/a.bin", None):
        answer = limited.some.ask(limited, "PUT", "/s3/models/team/copy.bin", {"x-amz-copy-source": f"models/{source}"}, body=b"")
        assert error_code(answer) == code if code else answer.status == 200, answer
    assert limited.all.get(limited, "/s3/models/team/copy.bin").body == b"team/a.bin"
    limited.some.ask(limited, "DELETE", "/s3/models/other/c.bin", body=b"")
    for path in ("secret.bin", "other/c.bin"):
        assert limited.all.get(limited, f"/s3/models/{path}").body == path.encode()


# --- bodies ---


def test_bodies_must_be_what_was_signed(keyed, writer):
    target = "/s3/models/body.bin"
    fields = writer.fields(keyed, "PUT", target, payload=sha256(b"right"))
    assert refusal(ask(keyed, "PUT", target, fields, b"wrong")) == (400, "XAmzContentSHA256Mismatch")
    assert ask(keyed, "PUT", target, fields, b"right").status == 200
    presigned = writer.presign(keyed, "PUT", target)
    assert ask(keyed, "PUT", presigned, {}, b"presigned").status == 200
    assert writer.get(keyed, target).body == b"presigned"


def test_requests_that_do_not_state_their_body_must_have_none(keyed, writer):
    target = "/s3/models/none.bin"
    assert writer.get(keyed, LOCATION, payload=None).status == 200
    assert refusal(writer.ask(keyed, "PUT", target, body=b"some", payload=None)) == (400, "XAmzContentSHA256Mismatch")
    assert writer.ask(keyed, "PUT", target, body=b"", payload=None).status == 200


def test_chunks_must_be_signed_one_by_one(keyed, writer):
    target, pieces = "/s3/models/chunks.bin", [b"a" * 65536, b"b" * 1000]
    fields, body = writer.chunked(keyed, target, pieces)
    assert ask(keyed, "PUT", target, fields, body).status == 200
    assert writer.get(keyed, target).body == b"".join(pieces)
    for changed in (body.replace(b"b" * 1000, b"b" * 999 + b"c"), body.replace(b"3e8;chunk-signature=", b"3e8;chunk-signature=0", 1)):
        answer = ask(keyed, "PUT", target, fields, changed)
        assert answer.status in (400, 403) and error_code(answer) in ("SignatureDoesNotMatch", "InvalidRequest"), answer
    # Another key's chunks, behind the header of the first.
    other = Key(writer.name, secret="x" * 20)
    assert ask(keyed, "PUT", target, fields, other.chunked(keyed, target, pieces)[1]).status == 403
    assert writer.get(keyed, target).body == b"".join(pieces)


def test_trailers_are_signed_too(keyed, writer):
    target, trailer = "/s3/models/trailer.bin", ("x-amz-checksum-crc32", base64.b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode())
    fields, body = writer.chunked(keyed, target, [b"data"], trailer=trailer)
    assert ask(keyed, "PUT", target, fields, body).status == 200
    line = body.rindex(b"trailer-signature:") + len("trailer-signature:")
    changed = body[:line] + (b"0" if body[line : line + 1] != b"0" else b"1") + body[line + 1 :]
    assert refusal(ask(keyed, "PUT", target, fields, changed)) == (403, "SignatureDoesNotMatch")
