"""What serve warns of at its start and after SIGHUP: settings that are right by their form, but shut clients out or let
everybody in. Each warning comes once."""

import errno
import json
import os
import signal
import time

import pytest

from certificates import Authority
from clients import Client, write_tokens
from web_tokens import AUDIENCE, ISSUER, Key, write_keys

WAIT_S = 180


class Served:
    """A server whose settings and tokens file tests change."""

    def __init__(self, start_server, folder, settings, *arguments):
        self.folder = folder
        (folder / "root").mkdir()
        self.write(settings)
        self.server = start_server(folder / "root", "--config", folder / "c.json", *arguments)
        # It follows the warnings of the start.
        self.server.wait_for_line(" confined: ")

    def write(self, settings):
        (self.folder / "c.json").write_text(json.dumps(settings))

    @property
    def warnings(self):
        """What follows the key, of those about access."""
        lines = [line.split(" warn ", 1)[1] for line in self.server.log_lines if " warn " in line]
        return [line for line in lines if line.startswith(("auth.", "tls."))]

    def reload(self, settings=None):
        """The warnings of this reload."""
        before = len(self.warnings)
        done = self.server.log.count("reloaded the configuration")
        if settings is not None:
            self.write(settings)
        self.server.signal(signal.SIGHUP)
        end = time.monotonic() + WAIT_S
        while self.server.log.count("reloaded the configuration") == done:
            assert time.monotonic() < end, self.server.log
            time.sleep(0.02)
        return self.warnings[before:]


@pytest.fixture
def serve(start_server, tmp_path):
    return lambda settings, *arguments: Served(start_server, tmp_path, settings, *arguments)


def tokens_settings(folder, *clients, lines=(), **auth):
    return {"auth": {"tokens": str(write_tokens(folder / "tokens", *clients, lines=list(lines))), **auth}}


def test_a_tokens_file_without_clients_shuts_everybody_out(serve, tmp_path):
    one = serve(tokens_settings(tmp_path, lines=["# nobody"]))
    words = [f"auth.tokens: {tmp_path / 'tokens'} has no clients: all requests return 401, except /healthz and /readyz"]
    assert one.warnings == words
    assert one.reload() == words
    assert one.reload(tokens_settings(tmp_path, Client("a", "read"))) == []


def test_lines_that_fit_nobody_are_named(serve, tmp_path):
    one = serve(tokens_settings(tmp_path, lines=["a read jwt:a", "b read jwt:b", "c read mtls:c"]))
    path = tmp_path / "tokens"
    assert one.warnings == [
        f"auth.tokens: {path}, line 2: jwt: never matches, because auth.jwks is not set",
        f"auth.tokens: {path}, line 4: mtls: never matches, because tls.client_ca is not set",
    ]


def test_keys_without_a_line_for_their_tokens_are_of_no_use(serve, tmp_path):
    jwks = write_keys(tmp_path / "keys.json", Key(tmp_path / "k.key", "ES256", "k"))
    auth = {"jwks": str(jwks), "issuer": ISSUER, "audience": AUDIENCE}
    one = serve(tokens_settings(tmp_path, Client("a", "read"), **auth))
    assert one.warnings == [f"auth.jwks: {jwks} has no effect, because {tmp_path / 'tokens'} (auth.tokens) has no line with jwt:"]
    assert one.reload(tokens_settings(tmp_path, lines=["a read jwt:a"], **auth)) == []


@pytest.mark.parametrize("arguments, deeds", [([], "read"), (["--writable"], "read and write")])
def test_a_reload_that_takes_the_tokens_away_says_who_may_enter(serve, tmp_path, arguments, deeds):
    one = serve(tokens_settings(tmp_path, Client("a", "read")), *arguments)
    assert one.warnings == []
    assert one.reload({}) == [f"auth.tokens is no longer set: any client may now {deeds}"]
    assert one.reload({}) == []


def test_a_reload_that_leaves_only_certificates_says_so(start_server, tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.sign("server")
    tls = {"tls": {"cert": str(certificate.cert), "key": str(certificate.key), "client_ca": str(authority.cert)}}
    settings = {**tls, **tokens_settings(tmp_path, Client("a", "read"))}
    one = Served(lambda *given: start_server(*given, tls=authority), tmp_path, settings)
    assert one.reload(tls) == ["auth.tokens is no longer set: any client with a certificate may now read"]
    del tls["tls"]["client_ca"]
    assert one.reload(tls) == ["tls.client_ca is no longer set: any client may now read"]


def test_permissions_of_the_tokens_file_are_warned_of_when_they_change(serve, tmp_path):
    one = serve(tokens_settings(tmp_path, Client("a", "read")))
    path = tmp_path / "tokens"
    words = [f"auth.tokens: {path} can be read by every user of this machine"]
    path.chmod(0o644)
    assert one.reload() == words
    assert one.reload() == []
    path.chmod(0o600)
    assert one.reload() == []
    path.chmod(0o644)
    assert one.reload() == words


def test_a_state_folder_that_cannot_be_written_is_named(start_server, tmp_path):
    (tmp_path / "file").touch()
    state = tmp_path / "file" / "state"
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", environment={"ZTSERVE_STATE_DIR": str(state)})
    line = server.wait_for_line("verification results are kept in memory only")
    assert f"the state folder {state} is not writable ({os.strerror(errno.ENOTDIR)})" in line
