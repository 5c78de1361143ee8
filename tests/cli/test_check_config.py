"""check-config looks at the files that a configuration names: it refuses what serve refuses, in the same words."""

import json
import re
import subprocess

import pytest

from certificates import Authority
from clients import Client, write_tokens
from s3_sign import Key as AccessKey, write_keys as write_access_keys
from server_process import PROGRAM
from web_tokens import AUDIENCE, ISSUER, Key, write_keys


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Files that are all right, by their keys."""
    folder = tmp_path_factory.mktemp("good")
    authority = Authority(folder)
    certificate = authority.sign("server")
    (folder / "root").mkdir()
    return {
        "root": folder / "root",
        "auth.tokens": write_tokens(folder / "tokens", Client("a", "read"), lines=["pods read jwt:pod-*", "web read mtls:web"]),
        "auth.jwks": write_keys(folder / "keys.json", Key(folder / "k.key", "ES256", "k")),
        "tls.cert": certificate.cert,
        "tls.key": certificate.key,
        "tls.client_ca": authority.cert,
        "s3.keys": write_access_keys(folder / "keys", AccessKey("a")),
    }


def write_settings(folder, files):
    settings = {"listen": "127.0.0.1:0", "auth": {"issuer": ISSUER, "audience": AUDIENCE}, "tls": {}, "s3": {}}
    for key, path in files.items():
        group, _, name = key.rpartition(".")
        (settings[group] if group else settings)[name] = str(path)
    path = folder / "settings.json"
    path.write_text(json.dumps(settings))
    return path


def serve_once(settings):
    return subprocess.run([str(PROGRAM), "serve", "--config", str(settings)], capture_output=True, text=True, timeout=60)


BROKEN = {
    "auth.tokens": (b"name sometimes 00\n", "line 1: the second field is the scope"),
    "auth.jwks": (b"{}", 'there is no list "keys"'),
    "tls.cert": (b"no certificate", "there is no certificate (PEM) in it"),
    "tls.key": (b"no key", "there is no private key (PEM) in it"),
    "tls.client_ca": (b"", "there is no certificate (PEM) in it"),
    "root": (b"a file", "Not a directory"),
    "s3.keys": (b"a short read\n", "line 1: the second field is the secret"),
}


def test_good_files_are_accepted_without_a_word(ztserve, good, tmp_path):
    result = ztserve("check-config", write_settings(tmp_path, good))
    assert (result.status, result.errors) == (0, "")
    assert json.loads(result.output)["tls"]["cert"] == str(good["tls.cert"])


@pytest.mark.parametrize("key", BROKEN)
def test_a_broken_file_is_refused_in_the_words_of_serve(refused, good, tmp_path, key):
    content, words = BROKEN[key]
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    broken.chmod(0o600)
    settings = write_settings(tmp_path, {**good, key: broken})
    line = refused("check-config", settings)
    assert str(broken) in line and words in line
    served = serve_once(settings)
    assert served.stderr.splitlines()[-1:] == line.splitlines()
    assert served.returncode == (1 if key == "root" else 2)


@pytest.mark.parametrize("key", BROKEN)
def test_a_file_that_is_not_here_is_one_warning(ztserve, good, tmp_path, key):
    absent = tmp_path / "absent"
    result = ztserve("check-config", write_settings(tmp_path, {**good, key: absent}))
    assert result.status == 0
    assert result.error_lines == [f"ztserve: {key}: {absent}: No such file or directory; it is not checked"]
    assert str(absent) in result.output


@pytest.mark.parametrize("key", [key for key in BROKEN if key != "root"])
def test_a_broken_file_is_found_even_if_all_others_are_missing(ztserve, good, tmp_path, key):
    content, words = BROKEN[key]
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    broken.chmod(0o600)
    files = {other: tmp_path / "absent" for other in good}
    result = ztserve("check-config", write_settings(tmp_path, {**files, key: broken}))
    assert result.status == 2 and result.output == ""
    assert len(result.error_lines) == len(files)
    assert words in result.error_lines[-1]


def test_a_key_of_another_certificate_is_refused(refused, good, tmp_path):
    other = Authority(tmp_path).sign("other")
    assert "not the key of" in refused("check-config", write_settings(tmp_path, {**good, "tls.key": other.key}))


def test_what_serve_warns_of_is_a_warning(ztserve, good, tmp_path):
    files = {key: good[key] for key in ("root", "auth.tokens")}
    result = ztserve("check-config", write_settings(tmp_path, files))
    assert result.status == 0
    assert len(result.error_lines) == 2
    assert re.search(r"line \d+: jwt: never matches", result.errors) and re.search(r"line \d+: mtls: never matches", result.errors)


def test_upstreams_are_checked_as_serve_does(ztserve, tmp_path):
    token = tmp_path / "token"
    settings = tmp_path / "settings.json"
    (tmp_path / "root").mkdir()

    def write(**upstream):
        settings.write_text(json.dumps({"root": str(tmp_path / "root"), "listen": "127.0.0.1:0", "upstreams": [{"url": "https://hub.example", **upstream}]}))

    for upstream, words in (
        ({"match": ["a[b"]}, 'upstream hub.example: match: "a[b" is not a valid glob'),
        ({"token_file": str(token)}, f"upstream hub.example: token_file: {token} has no token in its first line"),
        ({"tokenfile": "x"}, 'line 1: upstreams[0].tokenfile: unknown key; did you mean "token_file"?'),
    ):
        token.write_text("\nsecond\n")
        write(**upstream)
        checked, served = ztserve("check-config", settings), serve_once(settings)
        assert (checked.status, served.returncode) == (2, 2)
        assert words in checked.errors and words in served.stderr, (checked, served)
    token.write_text("secret\n")
    token.chmod(0o644)
    write(url="http://hub.example", token_file=str(token))
    result = ztserve("check-config", settings)
    assert result.status == 0 and "secret" not in result.output + result.errors
    assert "the token is sent without encryption" in result.errors and "can be read by every user" in result.errors
    token.unlink()
    assert f"{token}: No such file or directory; it is not checked" in ztserve("check-config", settings).errors
