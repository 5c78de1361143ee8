"""The Hub's own clients in Python, run unchanged against a server here: the `hf` command, and functions of the library.

Each client has a cache of its own that begins empty."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from environments import HERE, python_of

sys.path.insert(0, str(HERE.parent / "http"))
from wire import get  # noqa: E402

RELEASES = ["hub-2.4.0", "hub-1.33.0", "hub-0.36.2"]
# The last release with a `hf` that only downloads and uploads: no `hf models`, no `hf cache verify`.
OLDEST = "hub-0.36.2"
TRANSFORMERS = ["transformers-5.23.0", "transformers-4.57.6"]
TIMEOUT_S = 240
# Telemetry goes to the endpoint as everything does; news of other releases would come from elsewhere.
QUIET = {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_COLOR": "1", "COLUMNS": "200"}


class Raised(Exception):
    """What a function of the client raised: the names of the class and of those it is derived from, and the message."""

    def __init__(self, classes, message):
        super().__init__(f"{classes[0]}: {message}")
        self.classes, self.message = classes, message


class HubClient:
    """A release with a fresh HF_HOME; `url` is a server or what stands before one."""

    def __init__(self, release, home, url, token=None, **environment):
        self.release, self.home = release, Path(home)
        self.home.mkdir(parents=True, exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        self.environment = {**inherited, **QUIET, "HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": url, **environment}
        if token is not None:
            self.environment["HF_TOKEN"] = token

    def run(self, command, **options):
        command = [str(part) for part in command]
        return subprocess.run(
            command, env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=TIMEOUT_S, **options
        )

    def hf(self, *arguments):
        """The command; gives what it printed, on both streams, of a run that may have failed."""
        return self.run([python_of(self.release).parent / "hf", *arguments])

    def expect_hf(self, *arguments):
        result = self.hf(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def refused_hf(self, *arguments):
        """What it says of a command that must fail."""
        result = self.hf(*arguments)
        assert result.returncode != 0, result.stdout
        return result.stdout + result.stderr

    def call(self, function, *arguments, script="client_hub.py", **options):
        """A function of client_hub.py; what it raises is raised here as Raised."""
        asked = json.dumps({"function": function, "arguments": arguments, "options": options})
        result = self.run([python_of(self.release), HERE / script], input=asked)
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout.splitlines()[-1])
        if "raised" in answer:
            raise Raised(*answer["raised"])
        return answer["value"]

    @property
    def blobs(self):
        """Names of the files that lie in its cache."""
        return {path.name for path in self.home.glob("hub/models--*/blobs/*")}


def files_below(folder):
    """{path: bytes} of a folder that a client filled, without its own records."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and ".cache" not in path.relative_to(folder).parts
    }


def uploads_begun(server, kind):
    """Kind "staged": objects sent before their commit; "file": bodies, the commits' counted too; "xet": sessions."""
    text = get(server, "/metrics").body.decode()
    return int(re.search(rf'ztserve_uploads_begun_total\{{kind="{kind}"\}} (\d+)', text).group(1))


def look_with_transformers(client, kind, *repos):
    """What client_hub_transformers.py prints; its release is one of TRANSFORMERS."""
    result = client.run([python_of(client.release), HERE / "client_hub_transformers.py", kind, *repos])
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])
