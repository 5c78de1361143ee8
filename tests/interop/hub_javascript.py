"""The Hub's client in JavaScript: installed from package.json into a folder of its own, and run by client_hub.mjs."""

import fcntl
import json
import shutil
import subprocess

from environments import ENVIRONMENTS, HERE

TIMEOUT_S = 240
INSTALL_S = 100
OLDEST_NODE = 18


def install():
    """The package, in a folder of its own; None where it is not to be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return None
    folder, wanted = ENVIRONMENTS / "hub-javascript", (HERE / "package.json").read_text()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / "hub-javascript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        marker = folder / "complete"
        if not marker.is_file() or marker.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "package.json").write_text(wanted)
            command = [npm, "install", "--silent", "--no-package-lock", "--omit=optional", "--no-audit", "--no-fund"]
            try:
                subprocess.run(command, cwd=folder, check=True, timeout=INSTALL_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                return None
            marker.write_text(wanted)
    return folder


class Thrown(Exception):
    pass


class JavaScriptClient:
    def __init__(self, folder, url, token=None):
        self.folder, self.url, self.token = folder, url, token

    def call(self, function, *arguments):
        asked = json.dumps({"url": self.url, "token": self.token, "function": function, "arguments": arguments})
        command = ["node", HERE / "client_hub.mjs"]
        result = subprocess.run(
            command, cwd=self.folder, input=asked, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout.splitlines()[-1])
        if "thrown" in answer:
            raise Thrown(answer["thrown"], answer["status"])
        return answer["value"]
