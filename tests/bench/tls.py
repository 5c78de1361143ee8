"""Reads over TLS beside nginx, from the page cache: version 1.3, one cipher suite, connections that are kept.

Judged is the server's processor time: the client decrypts, which costs it as much as encrypting costs the server."""

import subprocess
from dataclasses import replace

from figures import Limit
from reading import Sides, compare, make_root, manifest_sides, named, range_sides
from workload import workload

# The only suite that the client offers: what OpenSSL's clients prefer.
SUITE = "TLS_AES_256_GCM_SHA384"
OPTIONS = "ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.3;"
SMALL_CONNECTIONS, BULK_CONNECTIONS = (16, 64), (1, 4)
BULK_BYTES = 64 << 20


def make_certificate(context):
    """A certificate that signs itself, and its key."""
    certificate, key = context.folder / "tls.pem", context.folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def servers(context):
    """ztserve, nginx and nginx, as for the rows without TLS."""

    def make():
        root = context.once("root", lambda: make_root(context))
        certificate, key = make_certificate(context)
        arguments = ("--tls-cert", certificate, "--tls-key", key)
        options = {"listen": "ssl", "location": OPTIONS.format(certificate=certificate, key=key)}
        return context.ztserve(root, *arguments), context.nginx(root, **options), context.nginx(root, **options)

    return context.once("tls-servers", make)


def with_tls(context, sides):
    """The same requests of the servers with TLS."""
    both = zip(sides.all(), servers(context))
    return Sides(*(replace(side, server=server, tls=SUITE) for side, server in both))


@workload("tls-small", "manifest of 1 KiB and range of 4 KiB over TLS")
def tls_small(context):
    for what, sides in (("manifest of 1 KiB", manifest_sides(context)), ("range of 4 KiB", range_sides(context, 4096))):
        sides = with_tls(context, sides)
        context.load(sides.ztserve, requests=1)
        sides.ztserve.server.settle()
        for connections in SMALL_CONNECTIONS:
            row = named(f"{what} over TLS", connections)
            yield from compare(context, "tls-small", row, sides, connections, "requests", (None, Limit(least=1.0)))


@workload("tls-bulk", "range of 64 MiB over TLS")
def tls_bulk(context):
    sides = with_tls(context, range_sides(context, BULK_BYTES))
    context.load(sides.ztserve, requests=1)
    sides.ztserve.server.settle()
    for connections in BULK_CONNECTIONS:
        row = named("64 MiB over TLS", connections)
        yield from compare(context, "tls-bulk", row, sides, connections, "bytes", (None, Limit(least=1.2)))
