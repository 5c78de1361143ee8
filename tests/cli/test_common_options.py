"""Options that many commands have may stand before the command; files that they name must be readable."""

import hashlib
import re

import pytest
from certificates import Authority
from containers import dense, pattern, zt1

MODEL = zt1({"a": dense(pattern(5000, seed=24), digest="sha256")})


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/m.zt").write_bytes(MODEL)
    return start_server(tmp_path / "root")


@pytest.mark.parametrize("options", [["--progress", "none"], ["--progress=none"], ["--quiet"], ["-q"], ["--quiet", "--progress", "none"]])
def test_options_before_the_command_are_the_commands(ztserve, server, here, options):
    result = ztserve(*options, "pull", server.url + "/m", folder=here)
    assert (result.status, result.errors) == (0, "")
    assert (here / "m.zt").read_bytes() == MODEL
    assert (result.output == "") == ("--quiet" in options or "-q" in options)


def test_a_token_file_before_the_command(ztserve, server, tmp_path):
    (tmp_path / "token").write_text("abc\n")
    assert ztserve("--token-file", tmp_path / "token", "ls", "--progress", "none", server.url + "/m").status == 0


@pytest.mark.parametrize("arguments", [["--quiet"], ["--progress"], ["--quiet", "frobnicate"], ["--quiet", "check-config", "x"], ["--progressive", "ls", "x"]])
def test_what_is_wrong_with_them_is_said(refused, arguments):
    refused(*arguments)


@pytest.mark.parametrize("option", ["--token-file", "--ca"])
@pytest.mark.parametrize("command", ["ls", "verify", "stats", "pull", "push", "convert", "healthcheck"])
def test_a_file_that_cannot_be_read_is_wrong_usage(refused, tmp_path, command, option):
    (tmp_path / "m.zt").write_bytes(MODEL)
    operands = {"push": [tmp_path / "m.zt", "http://127.0.0.1:9/m"], "convert": ["http://127.0.0.1:9/m", tmp_path / "x.npz"]}
    for path in (tmp_path / "nothere", tmp_path):
        errors = refused(command, *operands.get(command, ["http://127.0.0.1:9/m"]), option, path)
        assert errors.startswith(f"ztserve: {option} {path}: ")


def test_healthcheck_sends_the_token_and_checks_the_certificate(ztserve, start_server, tmp_path):
    token = "secret-of-the-reader"
    (tmp_path / "token").write_text(token + "\n")
    (tmp_path / "root").mkdir()
    (tmp_path / "tokens").write_text(f"reader read {hashlib.sha256(token.encode()).hexdigest()}\n")
    url = start_server(tmp_path / "root", "--tokens", tmp_path / "tokens").url + "/v1/models"
    assert ztserve("healthcheck", url).status == 1
    assert ztserve("--quiet", "healthcheck", url, "--progress", "none", "--token-file", tmp_path / "token").status == 0


def test_healthcheck_trusts_only_the_authorities_that_are_named(ztserve, start_server, tmp_path):
    (tmp_path / "root").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    url = f"https://127.0.0.1:{start_server(tmp_path / 'root', *authority.sign('server').arguments).port}"
    assert ztserve("healthcheck", url, "--ca", authority.cert).status == 0
    assert ztserve("healthcheck", url, "--ca", other.cert).status == 1


@pytest.mark.parametrize("command", ["verify", "stats", "pull"])
def test_a_url_that_names_no_model_is_wrong_usage(ztserve, command):
    # pull takes the last one for the repository "org".
    for path in ("/", "", "/v1/models", "/v1/models/org/")[: 3 if command == "pull" else 4]:
        result = ztserve(command, "http://127.0.0.1:9" + path)
        assert (result.status, len(result.error_lines), result.output) == (2, 1, ""), path
        assert re.search("does not name a model|names neither a model nor a repository", result.errors) and "bad" not in result.errors
