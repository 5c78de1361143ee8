#!/usr/bin/env python3
"""image.py DOCKERFILE VERSION ARCHITECTURE LAYER: writes a container image to standard output, in the form that `docker load`
and `podman load` read: the files of LAYER, a tar, with the settings of the Dockerfile's last stage.

SOURCE_DATE_EPOCH is the time of everything in it. No engine is needed, and the same layer gives the same bytes.
"""

import datetime
import hashlib
import io
import json
import os
import re
import shlex
import sys
import tarfile
from pathlib import Path

UNITS_NS = {"s": 10**9, "m": 60 * 10**9}


def last_stage(dockerfile):
    """(instruction, arguments) of the last stage, in order."""
    text = re.sub(r"^#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    begin = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[begin + 1 :]


def duration_ns(text):
    return int(text[:-1]) * UNITS_NS[text[-1]]


def health_check(arguments):
    options, command = arguments.split("CMD", 1)
    times = dict(word.removeprefix("--").split("=") for word in options.split())
    return {
        "Test": ["CMD", *json.loads(command)],
        "Interval": duration_ns(times["interval"]),
        "Timeout": duration_ns(times["timeout"]),
        "StartPeriod": duration_ns(times["start-period"]),
    }


def settings(dockerfile, values):
    """The image's settings; `values` are those of the build arguments."""
    made = {"Env": [], "Labels": {}}
    for word, arguments in last_stage(dockerfile):
        filled = re.sub(r"\$\{(\w+)\}", lambda match: values[match.group(1)], arguments)
        if word == "LABEL":
            made["Labels"].update(pair.split("=", 1) for pair in shlex.split(filled))
        elif word == "ENV":
            made["Env"] += shlex.split(filled)
        elif word == "USER":
            made["User"] = arguments
        elif word == "EXPOSE":
            made["ExposedPorts"] = {f"{port}/tcp": {} for port in arguments.split()}
        elif word == "HEALTHCHECK":
            made["Healthcheck"] = health_check(arguments)
        elif word in ("ENTRYPOINT", "CMD"):
            made[word.capitalize()] = json.loads(arguments)
        # Build arguments are in `values`, and what is copied is in the layer.
        elif word not in ("ARG", "COPY"):
            raise SystemExit(f"image.py: the Dockerfile's {word} is not known here")
    return made


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def add(archive, name, content, epoch):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(content), epoch
    archive.addfile(entry, io.BytesIO(content))


def main(dockerfile, version, architecture, layer):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    time = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"VERSION": version, "REVISION": os.environ.get("REVISION", "")}
    content = Path(layer).read_bytes()
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": time,
        "config": settings(Path(dockerfile), values),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(content)}"]},
        "history": [{"created": time, "created_by": "deploy/release.sh"}],
    }
    described = json.dumps(config, sort_keys=True).encode()
    names = {"config": f"{sha256(described)}.json", "layer": f"{sha256(content)}.tar"}
    listed = [{"Config": names["config"], "RepoTags": [f"localhost/ztserve:{version}"], "Layers": [names["layer"]]}]
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        add(archive, names["layer"], content, epoch)
        add(archive, names["config"], described, epoch)
        add(archive, "manifest.json", json.dumps(listed).encode(), epoch)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
