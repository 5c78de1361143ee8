"""Certificates for tests, made by an authority of their own with the openssl command when they are needed."""

import atexit
import functools
import shutil
import ssl
import subprocess
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path


class Certificate:
    """Files of a certificate and its key."""

    def __init__(self, cert, key):
        self.cert = cert
        self.key = key

    @property
    def arguments(self):
        return ["--tls-cert", self.cert, "--tls-key", self.key]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)


class Authority:
    """Signs certificates; its own is at `cert`."""

    def __init__(self, folder, name="authority"):
        self.folder = Path(folder)
        self.name = name
        self.cert = self.folder / f"{name}.pem"
        self.key = self.folder / f"{name}.key"
        make_key(self.key)
        openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}", "-days", 2, "-out", self.cert)
        (self.folder / f"{name}.index").touch()

    def sign(self, name, alternatives="IP:127.0.0.1", purpose="serverAuth", begins_days=-1, ends_days=2, rsa=False,
             subject=None, string="utf8only"):  # fmt: skip
        """A new certificate of that common name, or with that subject, in files of that name. string: openssl's string_mask."""
        made = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request = self.folder / f"{name}.csr"
        settings = self.folder / f"{name}.cnf"
        make_key(made.key, rsa)
        settings.write_text(
            f"[req]\ndistinguished_name=nobody\nstring_mask={string}\n[nobody]\n[ca]\ndefault_ca=this\n[this]\ndatabase={self.folder}/{self.name}.index\nrand_serial=yes\n"
            f"new_certs_dir={self.folder}\ndefault_md=sha256\npolicy=any\nunique_subject=no\n"
            "[any]\norganizationName=optional\ncommonName=optional\n"
            f"[added]\nsubjectAltName={alternatives}\nextendedKeyUsage={purpose}\nbasicConstraints=CA:FALSE\n"
        )
        openssl("req", "-new", "-config", settings, "-utf8", "-key", made.key, "-subj", subject or f"/CN={name}", "-out", request)
        openssl("ca", "-batch", "-utf8", "-notext", "-config", settings, "-extensions", "added", "-cert", self.cert, "-keyfile",
                self.key, "-startdate", moment(begins_days), "-enddate", moment(ends_days), "-in", request, "-out",
                made.cert)
        return made

    def context(self, client=None, version=None):
        """For a client that trusts this authority, and perhaps shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.cert))
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


def make_key(path, rsa=False):
    kind = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if rsa else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    openssl("genpkey", "-algorithm", *kind, "-out", path)
    path.chmod(0o600)


def moment(days):
    return (datetime.now(timezone.utc) + timedelta(days=days)).strftime("%y%m%d%H%M%SZ")


@functools.cache
def common_authority():
    """For servers that are tested with TLS without being about it; lasts as long as the tests."""
    folder = tempfile.mkdtemp(prefix="ztserve-tls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Authority(folder)


@functools.cache
def common_certificate():
    return common_authority().sign("server")
