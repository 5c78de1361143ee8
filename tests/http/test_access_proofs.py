"""Clients that prove who they are by a JSON Web Token of somebody else, or by a certificate."""

import json
import signal
import subprocess
import time

import pytest

from certificates import Authority
from clients import Client, write_tokens
from containers import dense, pattern, zt1
from web_tokens import AUDIENCE, ISSUER, Key, base64url, write_keys
from wire import assert_problem, ask, component_path, connect, eventually, get, model_path, read_exactly, read_head

OWN = pattern(2000, seed=91)
POD = "system:serviceaccount:ml:web"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proofs")
    (folder / "root/team").mkdir(parents=True)
    for name in ("team/own", "other"):
        (folder / f"root/{name}.zt").write_bytes(zt1({"t": dense(OWN)}))
    return folder


@pytest.fixture(scope="module")
def keys(folder):
    return {algorithm: Key(folder / f"{algorithm}.key", algorithm, f"key-{algorithm}") for algorithm in ("RS256", "ES256")}


@pytest.fixture(scope="module")
def server(folder, keys, share_server):
    lines = ["trainer write jwt:system:serviceaccount:ml:trainer", "pods read jwt:system:serviceaccount:ml:* team/*"]
    tokens = write_tokens(folder / "tokens", lines=lines)
    config = folder / "config.json"
    auth = {"jwks": str(write_keys(folder / "keys.json", *keys.values())), "issuer": ISSUER, "audience": AUDIENCE, "skew_s": 5}
    config.write_text(json.dumps({"writable": True, "auth": {**auth, "tokens": str(tokens)}}))
    return share_server(folder / "root", "--config", config, "--shared")


def with_token(server, token, target="/v1/models", method="GET", body=None):
    return ask(server, method, target, {"Authorization": f"Bearer {token}"}, body)


# --- JSON Web Tokens ---


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_subject_has_the_scope_and_the_globs_of_its_line(server, keys, algorithm):
    pod = keys[algorithm].token(POD)
    for _ in range(3):  # also when it is remembered
        assert [one["name"] for one in with_token(server, pod).json()["models"]] == ["team/own"]
        assert with_token(server, pod, component_path("team/own", "t")).body == OWN
        assert_problem(with_token(server, pod, model_path("other")), 403, "forbidden")
        assert_problem(with_token(server, pod, model_path("team/own"), "DELETE"), 403, "forbidden")


@pytest.mark.parametrize("claims, detail", [
    ({"iss": "https://other.example"}, "another issuer"), ({"aud": ["other"]}, "another audience"), ({"exp": 1_700_000_000}, "has expired"),
    ({"nbf": 4_000_000_000, "exp": 4_000_000_001}, "not valid yet"), ({"sub": "system:serviceaccount:other:web"}, "no client has"),
])  # fmt: skip
def test_claims_that_do_not_fit_are_refused(server, keys, claims, detail):
    answer = with_token(server, keys["ES256"].token(POD, **claims))
    assert detail in assert_problem(answer, 401, "unauthorized")["detail"]
    assert answer["WWW-Authenticate"] == 'Bearer realm="ztserve", error="invalid_token"'


def test_forged_tokens_are_refused(server, keys, tmp_path):
    """All ways to forge one are in tests/unit/server/test_jwt.c."""
    good = keys["ES256"].token(POD)
    header, claims, signature = good.split(".")
    stranger = Key(tmp_path / "key", "ES256", "key-ES256")
    assert with_token(server, good).status == 200
    for token in (stranger.token(POD), f"{base64url(json.dumps({'alg': 'none'}).encode())}.{claims}.",
                  f"{header}.{base64url(json.dumps({'sub': POD}).encode())}.{signature}"):  # fmt: skip
        assert_problem(with_token(server, token), 401, "unauthorized")


def test_a_remembered_token_expires(server, keys):
    # The skew is 5 s.
    token = keys["ES256"].token(POD, exp=int(time.time()) + 5)
    assert with_token(server, token).status == 200
    eventually(lambda: with_token(server, token).status == 401)


def start_with_keys(tmp_path, start_server, *keys):
    root = tmp_path / "root"
    root.mkdir()
    tokens = write_tokens(tmp_path / "tokens", lines=["pods read jwt:system:serviceaccount:ml:*"])
    jwks = write_keys(tmp_path / "keys.json", *keys)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"auth": {"jwks": str(jwks), "issuer": ISSUER, "audience": AUDIENCE, "tokens": str(tokens)}}))
    return start_server(root, "--config", config), jwks


def reload(server, expected):
    before = server.log.count(expected)
    server.signal(signal.SIGHUP)
    eventually(lambda: server.log.count(expected) > before)


def test_keys_are_replaced_by_a_reload(tmp_path, start_server, keys):
    server, jwks = start_with_keys(tmp_path, start_server, keys["RS256"])
    old, new = keys["RS256"].token(POD), keys["ES256"].token(POD)
    assert with_token(server, old).status == 200
    assert with_token(server, new).status == 401
    write_keys(jwks, keys["ES256"])
    reload(server, "reloaded the configuration")
    eventually(lambda: with_token(server, old).status == 401)
    assert with_token(server, new).status == 200


def test_a_wrong_key_set_stops_the_start_and_leaves_the_old_one_at_a_reload(tmp_path, start_server, keys):
    content, expected = '{"keys": [{"kty": "oct", "k": "AAAA"}]}', "none of the 1 keys can check RS256 or ES256"
    server, jwks = start_with_keys(tmp_path, start_server, keys["ES256"])
    token = keys["ES256"].token(POD)
    jwks.write_text(content)
    reload(server, "the configuration is unchanged: auth.jwks: ")
    assert str(jwks) in server.log and expected in server.log
    assert with_token(server, token).status == 200
    again = subprocess.run([*server.process.args], capture_output=True, text=True, timeout=60)
    assert again.returncode == 2 and "auth.jwks" in again.stderr and expected in again.stderr


def test_web_tokens_stay_out_of_the_log(tmp_path, start_server, keys):
    server, _ = start_with_keys(tmp_path, start_server, keys["ES256"])
    token = keys["ES256"].token(POD)
    answers = [with_token(server, token), with_token(server, token[:-4]), with_token(server, token + "x")]
    assert [one.status for one in answers] == [200, 401, 401]
    for part in token.split("."):
        assert part not in server.log + "".join(map(repr, answers))


# --- certificates ---


@pytest.fixture(scope="module")
def authority(folder):
    return Authority(folder)


@pytest.fixture(scope="module")
def certificates(authority):
    """Of the server, and of four clients."""
    alternatives = {"trainer": "DNS:trainer.example.org", "web": "URI:spiffe://cluster/ns/ml/sa/web",
                    "person": "email:person@example.org", "stranger": "DNS:stranger"}  # fmt: skip
    made = {name: authority.sign(name, names, "clientAuth") for name, names in alternatives.items()}
    return {**made, "server": authority.sign("server")}


def start_with_certificates(folder, start_server, authority, certificates, *arguments):
    return start_server(folder / "root", *certificates["server"].arguments, "--tls-client-ca", authority.cert, "--shared",
                        *arguments, tls=authority)  # fmt: skip


def as_client(server, authority, certificate):
    """The same server, as somebody with another certificate, or none, talks to it."""
    server.context = authority.context(certificate)
    return server


def test_names_in_certificates_are_clients(folder, start_server, authority, certificates):
    token = Client("token", "read")
    lines = ["trainer write mtls:trainer.example.org", "web read mtls:spiffe://cluster/ns/ml/sa/web team/*",
             "person admin mtls:person@example.org", "common read mtls:server"]  # fmt: skip
    tokens = write_tokens(folder / "mtls", token, lines=lines)
    server = start_with_certificates(folder, start_server, authority, certificates, "--tokens", tokens, "--writable")
    statuses = {}
    for name in ("trainer", "web", "person", "stranger", None):
        as_client(server, authority, certificates.get(name))
        requests = [("GET", model_path("other")), ("DELETE", model_path("absent")), ("GET", "/v1/uploads")]
        statuses[name] = [ask(server, method, target).status for method, target in requests]
    assert statuses == {"trainer": [200, 404, 403], "web": [403, 403, 403], "person": [200, 404, 200],
                        "stranger": [401] * 3, None: [401] * 3}  # fmt: skip
    # A token counts rather than the certificate, even a wrong one.
    as_client(server, authority, certificates["person"])
    assert token.ask(server, "DELETE", model_path("absent")).status == 403
    assert_problem(get(server, "/v1/models", Authorization="Bearer wrong"), 401, "unauthorized")
    as_client(server, authority, None)
    assert token.get(server, "/v1/models").status == 200
    assert "Authorization: Bearer TOKEN), or present a client certificate" in get(server, "/v1/models").json()["detail"]


def test_repeated_answers_are_not_shared_between_certificates(folder, start_server, authority, certificates):
    """The requests are equal byte for byte, and one loop answers all connections."""
    tokens = write_tokens(folder / "repeated", lines=["person read mtls:person@example.org"])
    arguments = [*certificates["server"].arguments, "--tls-client-ca", authority.cert, "--tokens", tokens, "--shared"]
    server = start_server(folder / "root", *arguments, environment={"ZTSERVE_THREADS": "1"}, tls=authority)
    connections = {}
    for name in ("person", "stranger", None):
        connections[name] = connect(as_client(server, authority, certificates.get(name)))
    for _ in range(20):
        for name, connection in connections.items():
            connection.sendall(f"GET {component_path('other', 't')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            status, fields, body = read_head(connection)
            body = read_exactly(connection, int(fields["content-length"]), body)
            assert (status == 200 and body == OWN) if name == "person" else status == 401
    for connection in connections.values():
        connection.close()


# What a subject is in openssl's words, and its common name. Each is another client.
SUBJECTS = {
    "/CN=worker\\+1": "worker+1",
    "/CN=\\\\#lead": "\\#lead",
    '/CN=<"q">;': '<"q">;',
    "/CN=Jürgen": "Jürgen",
    "/O=somebody/CN=second": "second",
    "/O=somebody+CN=beside": "beside",
    "/CN=first/CN=other": "first",
}
# openssl's masks of types of text.
STRINGS = {"utf8": "utf8only", "printable": "MASK:0x2002", "teletex": "MASK:0x0004", "bmp": "MASK:0x0800"}


@pytest.mark.parametrize("string", STRINGS)
def test_common_names_are_compared_as_they_are(folder, start_server, authority, certificates, string):
    lines = [f"client-{at}. read mtls:{name}" for at, name in enumerate(SUBJECTS.values())]
    tokens = write_tokens(folder / "common-names", lines=lines)
    server = start_with_certificates(folder, start_server, authority, certificates, "--tokens", tokens)
    for at, (subject, name) in enumerate(SUBJECTS.items()):
        one = authority.sign(f"subject-{at}", "IP:127.0.0.1", "clientAuth", subject=subject, string=STRINGS[string])
        as_client(server, authority, one)
        answer = get(server, "/v1/models")
        if string == "teletex" and not name.isascii():
            # A TeletexString does not say which characters it has.
            assert "the certificate has no name" in assert_problem(answer, 401, "unauthorized")["detail"]
            continue
        assert answer.status == 200, (subject, answer)
        eventually(lambda wanted=at: f"client-{wanted}." in server.log)


@pytest.mark.parametrize("subject", ["/O=nameless", "/CN=a\nb"], ids=["none", "line"])
def test_a_certificate_without_a_name_to_compare_is_said_to_be_so(folder, start_server, authority, certificates, subject):
    tokens = write_tokens(folder / "unnamed", lines=["a read mtls:a", "ab read mtls:ab"])
    server = start_with_certificates(folder, start_server, authority, certificates, "--tokens", tokens)
    as_client(server, authority, authority.sign("unnamed", "IP:127.0.0.1", "clientAuth", subject=subject))
    detail = assert_problem(get(server, "/v1/models"), 401, "unauthorized")["detail"]
    assert "the certificate has no name" in detail and "present a client certificate" not in detail
    as_client(server, authority, None)
    assert "present a client certificate" in get(server, "/v1/models").json()["detail"]


def test_without_a_tokens_file_every_certificate_may_read_and_write(folder, start_server, authority, certificates):
    server = start_with_certificates(folder, start_server, authority, certificates, "--writable")
    as_client(server, authority, certificates["stranger"])
    body = zt1({"t": dense(OWN)})
    assert ask(server, "PUT", model_path("by-stranger"), body=body).status == 201
    assert ask(server, "DELETE", model_path("by-stranger")).status == 204
    assert_problem(get(server, "/v1/uploads"), 403, "forbidden")
    assert get(server, model_path("other"))["Cache-Control"] == "private, no-cache"
    as_client(server, authority, None)
    assert_problem(get(server, "/v1/models"), 401, "unauthorized")
    assert get(server, "/healthz").status == 200
    as_client(server, authority, certificates["stranger"])
    assert_problem(get(server, "/v1/models", Authorization="Bearer x"), 401, "unauthorized")


def test_clients_without_a_tokens_file_are_counted_by_their_certificates(folder, start_server, authority, certificates):
    config = folder / "limits.json"
    config.write_text(json.dumps({"upload": {"sessions_per_client": 1}}))
    server = start_with_certificates(folder, start_server, authority, certificates, "--writable", "--config", config)
    statuses = []
    for name in ("web", "web", "trainer"):
        as_client(server, authority, certificates[name])
        statuses.append(ask(server, "POST", f"{model_path('counted')}/uploads", body=b"{}").status)
    assert statuses == [201, 429, 201]
