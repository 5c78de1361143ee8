"""JSON Web Tokens and their key sets, made with the openssl command, as an issuer of tokens would."""

import base64
import json
import subprocess
import time

from certificates import make_key

ISSUER = "https://issuer.example"
AUDIENCE = "ztserve"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def public_numbers(key):
    """The modulus of an RSA key; or the two coordinates of a point."""
    shown = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], capture_output=True, check=True)
    return shown.stdout


class Key:
    """A key pair of an issuer, for RS256 or ES256."""

    def __init__(self, path, algorithm, name):
        self.path, self.algorithm, self.name = path, algorithm, name
        make_key(path, rsa=algorithm == "RS256")

    @property
    def jwk(self):
        if self.algorithm == "ES256":
            point = public_numbers(self.path)[-64:]
            numbers = {"kty": "EC", "crv": "P-256", "x": base64url(point[:32]), "y": base64url(point[32:])}
        else:
            shown = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], capture_output=True, check=True)
            modulus = bytes.fromhex(shown.stdout.decode().strip().removeprefix("Modulus="))
            numbers = {"kty": "RSA", "n": base64url(modulus), "e": "AQAB"}
        return {**numbers, "kid": self.name, "use": "sig", "alg": self.algorithm}

    def sign(self, text):
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text, capture_output=True,
                                   check=True).stdout  # fmt: skip
        return plain(signature) if self.algorithm == "ES256" else signature

    def token(self, subject, header=None, **claims):
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": [AUDIENCE], "sub": subject, "exp": now + 600, "nbf": now, "iat": now, **claims}
        header = header or {"alg": self.algorithm, "kid": self.name, "typ": "JWT"}
        text = f"{base64url(json.dumps(header).encode())}.{base64url(json.dumps(claims).encode())}"
        return f"{text}.{base64url(self.sign(text.encode()))}"


def plain(der):
    """The two numbers of an ECDSA signature side by side."""
    numbers, at = b"", 2
    while at < len(der):
        length = der[at + 1]
        numbers += der[at + 2 : at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return numbers


def write_keys(path, *keys):
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"keys": [key.jwk for key in keys]}))
    new.rename(path)
    return path
