"""The files of TLS: what is refused at the start and what is only warned of, how they are replaced while the server
runs, and which certificates of clients are taken."""

import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading

import pytest

from certificates import Authority, openssl
from containers import dense, pattern, zt1
from server_process import PROGRAM, TOP
from wire import component_path, connect, eventually, get, read_head

CONTENT = pattern(400_000)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder):
    return Authority(folder)


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.sign("server")


def refusal(tmp_path, *arguments):
    """The one line of a server that does not start."""
    result = subprocess.run(
        [str(PROGRAM), "serve", "--root", str(tmp_path), "--listen", "127.0.0.1:0", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2 and result.stdout == "", result
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result.stderr


# --- the start ---


@pytest.mark.parametrize("argument", ["--tls-cert", "--tls-key", "--tls-client-ca"])
@pytest.mark.parametrize("content", [None, b"no PEM at all\n"])
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, certificate, authority, argument, content):
    files = {"--tls-cert": certificate.cert, "--tls-key": certificate.key, "--tls-client-ca": authority.cert}
    bad = tmp_path / "bad.pem"
    if content is not None:
        bad.write_bytes(content)
    files[argument] = bad
    line = refusal(tmp_path, *(word for pair in files.items() for word in pair))
    assert str(bad) in line and argument[2:].replace("-", ".", 1).replace("-", "_") in line


def test_a_key_of_another_certificate_is_refused(tmp_path, authority, certificate):
    other = authority.sign("other")
    line = refusal(tmp_path, "--tls-cert", certificate.cert, "--tls-key", other.key)
    assert "tls.key" in line and str(other.key) in line and str(certificate.cert) in line


def test_an_encrypted_key_is_refused(tmp_path, certificate):
    encrypted = tmp_path / "encrypted.key"
    openssl("pkey", "-in", certificate.key, "-aes256", "-passout", "pass:secret", "-out", encrypted)
    assert "password" in refusal(tmp_path, "--tls-cert", certificate.cert, "--tls-key", encrypted)


def test_folders_and_pipes_are_refused(tmp_path, certificate):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert str(path) in refusal(tmp_path, "--tls-cert", path, "--tls-key", certificate.key)


@pytest.mark.parametrize("begins, ends, words", [(-5, -1, "expired on"), (1, 5, "not valid before")])
def test_a_certificate_out_of_its_time_is_warned_of(start_server, tmp_path, authority, begins, ends, words):
    made = authority.sign(f"from{begins}", begins_days=begins, ends_days=ends)
    server = start_server(tmp_path, *made.arguments, tls=authority)
    line = server.wait_for_line(words)
    assert " warn " in line and "tls.cert" in line and str(made.cert) in line
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(server)


def test_a_key_that_everybody_may_read_is_warned_of(start_server, tmp_path, authority):
    made = authority.sign("open")
    made.key.chmod(made.key.stat().st_mode | stat.S_IROTH)
    server = start_server(tmp_path, *made.arguments, tls=authority)
    line = server.wait_for_line("every user")
    assert " warn " in line and "tls.key" in line and str(made.key) in line
    assert get(server, "/healthz").status == 200


def test_the_chain_is_sent(start_server, tmp_path, authority, certificate):
    """A client knows the root only; the certificate is signed by an intermediate authority."""
    between = Authority(tmp_path, "between")
    request, settings = tmp_path / "between.csr", tmp_path / "between.cnf"
    openssl("req", "-new", "-key", between.key, "-subj", "/CN=between", "-out", request)
    settings.write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n")
    openssl("x509", "-req", "-in", request, "-CA", authority.cert, "-CAkey", authority.key, "-days", 2, "-extfile",
            settings, "-out", between.cert)
    made = between.sign("leaf")
    made.cert.write_bytes(made.cert.read_bytes() + between.cert.read_bytes())
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, *made.arguments, tls=authority)
    assert get(server, "/healthz").status == 200


def test_the_certificates_of_the_page_satisfy_strict_clients(start_server, tmp_path):
    """Those that docs/tls.md makes, with what Python checks since 3.13."""
    page = (TOP / "docs" / "tls.md").read_text().split("## Your own certificates\n", 1)[1]
    made, root = tmp_path / "made", tmp_path / "root"
    for folder in (made, root):
        folder.mkdir()
    commands = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1]
    subprocess.run(["bash", "-euc", commands], cwd=made, check=True, capture_output=True, timeout=60)
    server = start_server(root, "--tls-cert", made / "models.pem", "--tls-key", made / "models.key")
    context = ssl.create_default_context(cafile=made / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with socket.create_connection((server.host, server.port), timeout=60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(HEALTH)
            assert read_head(connection)[0] == 200


# --- replacing them ---


class Files:
    """Copies that are replaced as certbot and Kubernetes do it: at once, by renaming."""

    def __init__(self, folder, made):
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        self.replace(made)

    @property
    def arguments(self):
        return ["--tls-cert", self.cert, "--tls-key", self.key]

    def replace(self, made):
        for source, target in ((made.cert, self.cert), (made.key, self.key)):
            shutil.copy(source, target.with_suffix(".new"))
            target.with_suffix(".new").rename(target)


@pytest.fixture
def files(tmp_path, certificate):
    (tmp_path / "tls").mkdir()
    return Files(tmp_path / "tls", certificate)


@pytest.fixture
def server(start_server, tmp_path, authority, files):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(zt1({"w": dense(CONTENT)}))
    return start_server(root, *files.arguments, "--log-level", "warn", tls=authority)


def shown(connection):
    """The common name of the server's certificate."""
    return dict(field for group in connection.getpeercert()["subject"] for field in group)["commonName"]


def name_shown(server):
    with connect(server) as connection:
        return shown(connection)


def test_a_new_certificate_is_for_new_connections(server, files, authority):
    with connect(server) as old:
        files.replace(authority.sign("second"))
        server.signal(signal.SIGHUP)
        eventually(lambda: name_shown(server) == "second")
        assert shown(old) == "server"
        old.sendall(HEALTH)
        assert read_head(old)[0] == 200


def test_replacing_it_disturbs_no_request(server, files, authority):
    stop = threading.Event()
    failures, fetched = [], []

    def fetch():
        while not stop.is_set():
            try:
                if get(server, component_path("m", "w")).body != CONTENT:
                    failures.append("other bytes")
                fetched.append(1)
            except OSError as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(3):
        files.replace(authority.sign(f"round{number}"))
        server.signal(signal.SIGHUP)
        eventually(lambda name=f"round{number}": name_shown(server) == name)
        seen = len(fetched)
        eventually(lambda seen=seen: len(fetched) > seen)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_broken_new_file_keeps_the_old_one(server, files, authority, certificate):
    other = authority.sign("mismatched")
    for broken in (b"", b"junk", other.cert.read_bytes()):
        before = len(server.log_lines)
        files.cert.write_bytes(broken)
        server.signal(signal.SIGHUP)
        eventually(lambda before=before: len(server.log_lines) > before)
        assert " error " in server.log_lines[before] and str(files.cert) in server.log_lines[before]
        assert name_shown(server) == "server"
    files.replace(certificate)
    server.signal(signal.SIGHUP)
    eventually(lambda: name_shown(server) == "server")


def test_sessions_of_the_old_certificate_are_not_resumed(server, files, authority):
    context = authority.context(version=ssl.TLSVersion.TLSv1_2)

    def begin(session=None):
        raw = socket.create_connection((server.host, server.port), timeout=60)
        return context.wrap_socket(raw, server_hostname=server.host, session=session)

    with begin() as first:
        session = first.session
    with begin(session) as again:
        assert again.session_reused
    files.replace(authority.sign("afterwards"))
    server.signal(signal.SIGHUP)
    eventually(lambda: name_shown(server) == "afterwards")
    with begin(session) as later:
        assert not later.session_reused


# --- certificates of clients ---


@pytest.fixture
def mutual(start_server, tmp_path, authority, certificate):
    return start_server(tmp_path, *certificate.arguments, "--tls-client-ca", authority.cert, tls=authority)


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def answer_with(server, context):
    """The status of a request; with TLS 1.3 a refusal shows only when something is read."""
    raw = socket.create_connection((server.host, server.port), timeout=60)
    with context.wrap_socket(raw, server_hostname=server.host) as connection:
        connection.sendall(HEALTH)
        return read_head(connection)[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_good_certificate_is_taken(mutual, authority, version):
    client = authority.sign("client", "DNS:worker.example", "clientAuth")
    assert answer_with(mutual, authority.context(client, version)) == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("flaw", ["authority", "expired", "not yet", "purpose", "self-signed"])
def test_a_bad_certificate_ends_the_handshake(mutual, authority, tmp_path, version, flaw):
    signer = Authority(tmp_path, "stranger") if flaw == "authority" else authority
    begins, ends = {"expired": (-5, -1), "not yet": (1, 5)}.get(flaw, (-1, 2))
    client = signer.sign(flaw.replace(" ", "-"), "DNS:x", "serverAuth" if flaw == "purpose" else "clientAuth", begins, ends)
    if flaw == "self-signed":
        openssl("req", "-x509", "-new", "-key", client.key, "-subj", "/CN=me", "-days", 2, "-out", client.cert)
    with pytest.raises(ssl.SSLError) as refused:
        answer_with(mutual, authority.context(client, version))
    assert "ALERT" in str(refused.value).upper()
    assert answer_with(mutual, authority.context(version=version)) == 200
    eventually(lambda: any("certificate was refused" in line for line in mutual.log_lines))
    assert sum("certificate was refused" in line for line in mutual.log_lines) == 1


def test_authorities_are_replaced_too(start_server, tmp_path, authority, certificate):
    (tmp_path / "root").mkdir()
    trusted = tmp_path / "trusted.pem"
    shutil.copy(authority.cert, trusted)
    stranger = Authority(tmp_path, "stranger")
    client = stranger.sign("client", "DNS:x", "clientAuth")
    server = start_server(tmp_path / "root", *certificate.arguments, "--tls-client-ca", trusted, "--log-level", "warn", tls=authority)
    with pytest.raises(ssl.SSLError):
        answer_with(server, authority.context(client))
    shutil.copy(stranger.cert, trusted)
    server.signal(signal.SIGHUP)

    def is_taken():
        try:
            return answer_with(server, authority.context(client)) == 200
        except ssl.SSLError:
            return False

    eventually(is_taken)
