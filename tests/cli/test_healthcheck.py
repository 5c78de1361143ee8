"""healthcheck, against servers that answer, that do not, and that are not servers at all."""

import os
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from wire import eventually

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ZTSERVE_")}


@pytest.fixture
def check(ztserve):
    def run(*arguments, **variables):
        return ztserve("healthcheck", *arguments, environment={**ENVIRONMENT, **variables})

    return run


def assert_healthy(result, words):
    assert (result.status, result.errors) == (0, "")
    assert len(result.lines) == 1 and words in result.output


def assert_failed(result, words, status=1):
    assert (result.status, result.output) == (status, "")
    assert len(result.error_lines) == 1 and words in result.errors, result.errors


class Peer:
    """Accepts one connection and answers it with fixed bytes; what the client sent is kept."""

    def __init__(self, answer, context=None, everywhere=False):
        if everywhere:
            self.socket = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answer = answer
        self.context = context
        self.received = b""
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        connection, _ = self.socket.accept()
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            while b"\r\n\r\n" not in self.received:
                self.received += connection.recv(4096)
            if self.answer is None:
                connection.recv(1)
            else:
                connection.sendall(self.answer)
        except OSError:
            pass
        connection.close()

    def close(self):
        self.socket.close()
        self.thread.join(20)


@pytest.fixture
def peer():
    peers = []

    def start(*arguments):
        peers.append(Peer(*arguments))
        return peers[-1]

    yield start
    for one in peers:
        one.close()


@pytest.fixture
def certificate(tmp_path):
    files = [tmp_path / "cert.pem", tmp_path / "key.pem"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=models.example", "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    files[1].chmod(0o600)
    return files


# --- which server ---


def test_a_url_is_asked_for_health(check, start_server, tmp_path):
    server = start_server(tmp_path)
    assert_healthy(check(server.url), f"{server.url}/healthz: 200 OK")
    assert_healthy(check(f"{server.url}/"), f"{server.url}/healthz: 200 OK")
    assert_healthy(check("--ready", server.url), f"{server.url}/readyz: 200 OK")
    assert_healthy(check(f"{server.url}/version"), f"{server.url}/version: 200 OK")
    assert_failed(check(f"{server.url}/nowhere"), "404 Not Found")


def test_the_server_of_the_environment_is_asked(check, start_server, tmp_path):
    """One that listens on all addresses is asked on the loopback one."""
    server = start_server(tmp_path)
    expected = f"http://127.0.0.1:{server.port}/healthz: 200 OK"
    assert_healthy(check(ZTSERVE_LISTEN=f"0.0.0.0:{server.port}"), expected)
    assert_healthy(check(ZTSERVE_LISTEN=f"127.0.0.1:{server.port}"), expected)
    # It may be writable there by arguments that a check does not know.
    assert_healthy(check(ZTSERVE_LISTEN=f"0.0.0.0:{server.port}", ZTSERVE_WRITABLE="true"), expected)


def test_the_server_of_a_configuration_is_asked(check, start_server, tmp_path):
    server = start_server(tmp_path)
    config = tmp_path / "c.json"
    config.write_text(f'{{"listen": "127.0.0.1:{server.port}"}}')
    assert_healthy(check("--config", config), f"http://127.0.0.1:{server.port}/healthz: 200 OK")
    assert_healthy(check(f"--config={config}", "--ready"), f"http://127.0.0.1:{server.port}/readyz: 200 OK")


def test_a_server_of_ipv6_is_asked(check, tmp_path, start_server):
    server = start_server(tmp_path, "--listen", "[::1]:0")
    expected = f"http://[::1]:{server.port}/healthz: 200 OK"
    assert_healthy(check(f"http://[::1]:{server.port}"), expected)
    assert_healthy(check(ZTSERVE_LISTEN=f"[::]:{server.port}"), expected)


def test_the_name_is_one_that_the_server_accepts(check, peer):
    one = peer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert_healthy(check(ZTSERVE_LISTEN=f"127.0.0.1:{one.port}", ZTSERVE_HOSTS="models.example,other"), "200")
    assert b"\r\nHost: models.example\r\n" in one.received


def test_a_server_of_tls_is_asked_without_its_name_being_checked(check, start_server, certificate, tmp_path):
    cert, key = certificate
    server = start_server(tmp_path, "--tls-cert", cert, "--tls-key", key)
    assert_healthy(check(f"https://127.0.0.1:{server.port}"), "/healthz: 200 OK")
    assert_healthy(
        check(ZTSERVE_LISTEN=f"127.0.0.1:{server.port}", ZTSERVE_TLS_CERT=str(cert), ZTSERVE_TLS_KEY=str(key)),
        f"https://127.0.0.1:{server.port}/healthz: 200 OK",
    )
    result = check(f"http://127.0.0.1:{server.port}")
    assert_failed(result, "400 Bad Request")


def test_the_name_of_another_machine_is_checked(check, peer, certificate):
    """This machine, by a name that is not known to be loopback."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, 1)
    except OSError:
        pytest.skip("skipped: this machine's own name cannot be looked up")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    one = peer(b"HTTP/1.1 200 OK\r\n\r\n", context, True)
    assert_failed(check(f"https://{name}:{one.port}"), "certificate")


# --- failures ---


def test_a_server_that_leaves_is_alive_but_not_ready(check, start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_DRAIN_DELAY_S": "600"})
    server.signal(signal.SIGTERM)
    eventually(lambda: check("--ready", server.url).status == 1)
    assert_failed(check("--ready", server.url), "/readyz: 503 Service Unavailable")
    assert_healthy(check(server.url), "/healthz: 200 OK")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_nobody_there(check):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert_failed(check(f"http://127.0.0.1:{port}"), "Connection refused")
    assert_failed(check("http://name.invalid"), "http://name.invalid/healthz: ")


NO_ANSWERS = [
    b"",
    b"SSH-2.0-x\r\n",
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1\r\n",
    b"HTTP/1.1 2000 OK\r\n",
    b"HTTP/1.1 200OK\r\n",
    b"HTTP/1.1 20 OK\r\n",
    b"HTTP/1.x 200 OK\r\n",
    b"HTTP/1.11 200 OK\r\n",
    b"HTTP/1.1  200 OK\r\n",
    b"HTTP/1.1 503 no\x1b[31m\r\n",
    b"x" * 100000,
]


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_an_answer_that_is_none(check, peer, answer):
    assert_failed(check(f"http://127.0.0.1:{peer(answer).port}"), "not HTTP, or incomplete")


def test_silence_ends_after_five_seconds(check, peer):
    assert_failed(check(f"http://127.0.0.1:{peer(None).port}"), "no answer within 5 s")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["ftp://127.0.0.1"], "not an http or https URL"),
        (["127.0.0.1:8080"], "not an http or https URL"),
        (["http://"], "not an http or https URL"),
        (["http://[::1"], "not an http or https URL"),
        (["http://a:b"], "not an http or https URL"),
        (["http://a:99999999"], "not an http or https URL"),
        (["http://a/b c"], "not an http or https URL"),
        (["http://a/b\r\nX: y"], "not an http or https URL"),
        (["http://a", "http://b"], "one URL"),
        (["--frob"], "--frob"),
        (["--config"], "needs a value"),
        (["--config", "/nowhere.json"], "/nowhere.json"),
    ],
)
def test_wrong_usage_is_refused(check, arguments, words):
    assert_failed(check(*arguments), words, status=2)


def test_a_port_that_only_the_server_knows_is_refused(check):
    assert_failed(check(ZTSERVE_LISTEN="127.0.0.1:0"), "give a URL", status=2)
