"""Signs requests as S3 clients do (AWS Signature Version 4): in a field, in the query, and chunk by chunk. Made by hand, so
that tests can sign what no client would."""

import hashlib
import hmac
import secrets
import time
from urllib.parse import quote, unquote_to_bytes, urlsplit

from wire import ask

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def keyed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def date_of(when_s):
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(when_s))


def escaped(text, safe=""):
    return quote(unquote_to_bytes(text), safe=f"{safe}~")


def canonical_query(query):
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted((escaped(name), escaped(value)) for name, _, value in pairs))


def canonical_request(method, target, fields, payload):
    """fields: all that are signed, with their names in lower case."""
    parts = urlsplit(target if target.startswith("http") else f"http://host{target}")
    lines = "".join(f"{name}:{' '.join(fields[name].split())}\n" for name in sorted(fields))
    names = ";".join(sorted(fields))
    return f"{method}\n{escaped(parts.path, '/')}\n{canonical_query(parts.query)}\n{lines}\n{names}\n{payload}"


class Signer:
    """Signs with one secret on one day; region and service may be anything."""

    def __init__(self, access_key, secret, date, region="us-east-1", service="s3"):
        self.date = date
        self.scope = f"{self.date[:8]}/{region}/{service}/aws4_request"
        self.credential = f"{access_key}/{self.scope}"
        self.key = f"AWS4{secret}".encode()
        for part in self.scope.split("/"):
            self.key = keyed(self.key, part)

    def sign(self, rest, algorithm=ALGORITHM):
        return keyed(self.key, f"{algorithm}\n{self.date}\n{self.scope}\n{rest}").hex()

    def sign_request(self, method, target, fields, payload):
        return self.sign(sha256(canonical_request(method, target, fields, payload).encode()))

    def authorization(self, method, target, fields, payload):
        signature = self.sign_request(method, target, fields, payload)
        return f"{ALGORITHM} Credential={self.credential}, SignedHeaders={';'.join(sorted(fields))}, Signature={signature}"


class Key:
    """An access key, with a secret, as a line of the keys file; asks a server as its client."""

    def __init__(self, name, scope="read", *globs, secret=None):
        self.name, self.scope, self.globs = name, scope, globs
        self.secret = secret or secrets.token_urlsafe(30)

    @property
    def line(self):
        return " ".join([self.name, self.secret, self.scope, *self.globs])

    def signer(self, when_s=None, **options):
        return Signer(self.name, self.secret, date_of(time.time() if when_s is None else when_s), **options)

    def fields(self, server, method, target, fields=None, payload=UNSIGNED, **options):
        """The fields of a request that is signed by header; fields: others, all of which are signed. payload None: no field
        says what the body is."""
        signer = self.signer(**options)
        own = {"Host": f"{server.host}:{server.port}", "x-amz-date": signer.date}
        own |= {"x-amz-content-sha256": payload} if payload else {}
        sent = {**own, **(fields or {})}
        signed = {name.lower(): value for name, value in sent.items()}
        # http.client adds Host by itself.
        del sent["Host"]
        return {**sent, "Authorization": signer.authorization(method, target, signed, payload or sha256(b""))}

    def presign(self, server, method, target, fields=None, expires_s=600, **options):
        """The target of a presigned address."""
        signer = self.signer(**options)
        signed = {"host": f"{server.host}:{server.port}"} | {name.lower(): value for name, value in (fields or {}).items()}
        parameters = {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": signer.credential,
            "X-Amz-Date": signer.date,
            "X-Amz-Expires": str(expires_s),
            "X-Amz-SignedHeaders": ";".join(sorted(signed)),
        }
        pairs = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
        target = f"{target}{'&' if '?' in target else '?'}{pairs}"
        return f"{target}&X-Amz-Signature={signer.sign_request(method, target, signed, UNSIGNED)}"

    def ask(self, server, method, target, fields=None, body=None, **options):
        """One request, signed by header with the SHA-256 of its body."""
        options.setdefault("payload", sha256(body or b""))
        return ask(server, method, target, self.fields(server, method, target, fields, **options), body)

    def get(self, server, target, fields=None, **options):
        return self.ask(server, "GET", target, fields, **options)

    def chunked(self, server, target, pieces, fields=None, trailer=None, method="PUT", **options):
        """Fields and body of an upload whose chunks are signed one by one; trailer: (name, value), or None."""
        payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
        own = {"Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": str(sum(map(len, pieces)))}
        own |= {"x-amz-trailer": trailer[0]} if trailer else {}
        options.setdefault("when_s", time.time())
        sent = self.fields(server, method, target, {**own, **(fields or {})}, payload, **options)
        signer = self.signer(**options)
        signature, body = sent["Authorization"].rpartition("=")[2], b""
        for piece in [*pieces, b""]:
            signature = signer.sign(f"{signature}\n{sha256(b'')}\n{sha256(piece)}", f"{ALGORITHM}-PAYLOAD")
            body += f"{len(piece):x};chunk-signature={signature}\r\n".encode() + piece + (b"\r\n" if piece else b"")
        if trailer:
            line = f"{trailer[0]}:{trailer[1]}"
            lines = sha256(line.encode() + b"\n")
            signature = signer.sign(f"{signature}\n{lines}", f"{ALGORITHM}-TRAILER")
            body += f"{line}\r\nx-amz-trailer-signature:{signature}\r\n".encode()
        return sent, body + b"\r\n"


def write_keys(path, *keys, lines=()):
    """Replaces the keys file at once, as an operator should."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(["# keys of a test", *[key.line for key in keys], *lines, ""]))
    new.chmod(0o600)
    new.rename(path)
    return path


def error_code(answer):
    """The code of an error of the S3 API."""
    text = answer.body.decode()
    assert answer["Content-Type"].split(";")[0] == "application/xml" and "<Error>" in text, answer
    return text.split("<Code>")[1].split("</Code>")[0]
