"""Runs schemathesis with the given arguments; its output goes to standard error, which is shown on failure."""

import contextlib
import json
import os
import sys
import tempfile

from schemathesis import serializer
from schemathesis.cli import schemathesis

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)

# The pieces of a resumable upload are arbitrary bytes.
serializer.alias("application/offset+octet-stream", "application/octet-stream")


@serializer("application/x-ndjson")
def lines_of(context, value):
    lines = value if isinstance(value, list) else [value]
    return "\n".join(json.dumps(line) for line in lines).encode()


# It writes files to the current folder.
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
    os.chdir(folder)
    schemathesis(
        ["run", *sys.argv[1:], "--checks", ",".join(CHECKS)]
        + ["--seed", "20261120", "--generation-database", "none", "--suppress-health-check", "all"]
        + ["--request-timeout", "60", "--no-color", "--warnings", "off"]
    )
