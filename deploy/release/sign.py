#!/usr/bin/env python3
"""sign.py KEY PROVENANCE CHECKSUMS: signs a release with a private key (PEM), by openssl. Writes two files: beside PROVENANCE
the same statement in a signed envelope (DSSE, as in-toto and SLSA define it; .intoto.jsonl), and CHECKSUMS.sig, a detached
signature of the checksums.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True).stdout


def sign(key, content):
    # openssl wants a file of known size for Ed25519.
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return openssl("pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", file.name)


def envelope(key, payload):
    kind = PAYLOAD_TYPE.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    public = openssl("pkey", "-in", key, "-pubout", "-outform", "DER")
    signature = {"keyid": hashlib.sha256(public).hexdigest(), "sig": base64.b64encode(sign(key, signed)).decode()}
    return {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}


def main(key, provenance, checksums):
    target = provenance.with_name(provenance.name.replace(".provenance.json", ".intoto.jsonl"))
    target.write_text(json.dumps(envelope(key, provenance.read_bytes())) + "\n")
    checksums.with_name(checksums.name + ".sig").write_bytes(sign(key, checksums.read_bytes()))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__.splitlines()[0])
    main(*map(Path, sys.argv[1:]))
