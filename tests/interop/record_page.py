#!/usr/bin/env python3
"""Runs the blocks of docs/sixty-seconds.md against an installed package, and writes what they print into the page.

ZTSERVE=build/ztserve .venv/bin/python tests/interop/record_page.py $(deploy/package.sh)

The package is installed in a minimal Debian, and its server runs as its service does. Everything runs in a network name
space without other interfaces, so that the page's address is free. Needs root. test_page_commands.py runs the page against
every build, and fails if something else is printed.
"""

import ctypes
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "http")]

from bare_root import BareRoot, os_release, run_checked  # noqa: E402
from environments import python_of  # noqa: E402
from page_blocks import blocks_of, commands_of  # noqa: E402
from server_process import PROGRAM, TOP  # noqa: E402
from test_page_commands import Shell, environment_of  # noqa: E402

PAGE = "docs/sixty-seconds.md"
ADDRESS = "http://127.0.0.1:8080"
MODELS = "var/lib/ztserve/models"
SERVER = ["/usr/bin/ztserve", "serve", "--config", "/etc/ztserve/ztserve.json"]
WAIT_S = 120
# The versions that readers may want to know, by the environment that has them.
PACKAGES = {"transformers-5.23.0": ["torch", "transformers"], "hub-2.4.0": ["huggingface_hub"]}
RECORDED = re.compile(r"(<!-- recorded: begin -->\n).*?(<!-- recorded: end -->)", re.DOTALL)


def install(package, work):
    """A Debian with the package, and the examples in its folder of models."""
    root = BareRoot(work / "root", os_release()["VERSION_CODENAME"], work)
    root.run("apt-get", "-q", "update")
    shutil.copyfile(package, root.path / "tmp" / package.name)
    root.apt("install", f"/tmp/{package.name}")
    models, example = root.path / MODELS, PROGRAM.parent / "ztserve-example"
    (models / "acme" / "tiny").mkdir(parents=True)
    run_checked([example, models / "example.zt"])
    run_checked([example, "--repository", models / "acme" / "tiny"])
    return root


@contextmanager
def serving(root):
    server = subprocess.Popen(root.command(*SERVER, user="ztserve:ztserve"), stderr=subprocess.DEVNULL)
    end = time.monotonic() + WAIT_S
    try:
        while not is_ready():
            assert time.monotonic() < end and server.poll() is None, "the server does not get ready"
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait(WAIT_S)


def is_ready():
    try:
        urllib.request.urlopen(f"{ADDRESS}/readyz").close()
        return True
    except OSError:
        return False


def shell_in(folder):
    home = folder / "home"
    home.mkdir()
    quiet = {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_COLOR": "1", "COLUMNS": "100"}
    return Shell(folder, {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **quiet})


def lasting(text, folder):
    """Without what differs between two recordings."""
    text = re.sub(rf"\S*{re.escape(str(folder))}\S*/", "…/", text)
    return re.sub(r"\b\d+(\.\d+)? (seconds|MB/s)", r"… \2", text)


def run(shell, folder, command):
    status, output, errors = shell.run(command)
    assert status == 0, f"{command}\n{output}{errors}"
    return lasting(output or errors, folder).splitlines()


def record_commands(shell, folder, block):
    lines, recorded = [line for line in block.text.splitlines() if not line.startswith("#>")], []
    commands = iter(commands_of(block))
    pending = next(commands)
    begun = ""
    for line in lines:
        recorded.append(line)
        begun = line if line.startswith("#") else f"{begun}\n{line}".strip()
        if begun.endswith(pending.text):
            if pending.text.startswith("ztserve serve "):
                shell.serve(pending.text)
            else:
                recorded += [f"#> {printed}".rstrip() for printed in run(shell, folder, pending.text)]
            pending, begun = next(commands, None), ""
            if pending is None:
                break
    return "\n".join(recorded) + "\n"


def record_program(shell, folder, block):
    program = folder / "program.py"
    program.write_text(block.text)
    printed = iter(run(shell, folder, f"python {program}"))
    text = re.sub(r"^( *print\(.*\))  #.*$", lambda match: f"{match[1]}  # {next(printed)}", block.text, flags=re.MULTILINE)
    assert next(printed, None) is None, f"{block}: prints more lines than it shows"
    return text


def versions(root):
    yield "ztserve " + root.run("dpkg-query", "-W", "-f", "${Version}", "ztserve")
    yield " ".join(run_checked(["curl", "--version"]).split()[:2])
    for environment, packages in PACKAGES.items():
        for package in packages:
            script = f"import importlib.metadata as m; print(m.version('{package}').split('+')[0])"
            yield f"{package} {run_checked([python_of(environment), '-c', script]).strip()}"


def record(shell, folder, page):
    """The page with what its blocks print, and the seconds that they took."""
    begun = time.monotonic()
    for block in blocks_of(PAGE):
        environment = environment_of(block)
        python = python_of(environment) if environment else Path(sys.executable)
        shell.run(f"PATH={folder}/bin:{python.parent}:/usr/local/bin:/usr/bin:/bin")
        recorded = record_program(shell, folder, block) if block.language == "python" else record_commands(shell, folder, block)
        assert page.count(block.text) == 1
        page = page.replace(block.text, recorded)
    return page, time.monotonic() - begun


def record_in(root, folder):
    (folder / "models").symlink_to(root.path / MODELS)
    (folder / "bin").mkdir()
    (folder / "bin" / "ztserve").symlink_to(root.path / "usr/bin/ztserve")
    run_checked(["ip", "link", "set", "lo", "up"])
    path, shell = TOP / PAGE, shell_in(folder)
    with serving(root):
        page, seconds = record(shell, folder, path.read_text())
        shell.close()
    said = f"Recorded on {datetime.date.today()} with {', '.join(versions(root))}. All blocks together took {seconds:.0f} seconds.\n"
    path.write_text(RECORDED.sub(lambda match: match[1] + said + match[2], page))


def leave_network():
    """os.unshare is new in Python 3.12."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def main():
    with tempfile.TemporaryDirectory(prefix="record-page-") as made:
        work = Path(made)
        # The user of the service must get to its files.
        work.chmod(0o755)
        root = install(Path(sys.argv[1]), work)
        for block in blocks_of(PAGE):
            if environment_of(block):
                python_of(environment_of(block))
        leave_network()
        (work / "here").mkdir()
        record_in(root, work / "here")


if __name__ == "__main__":
    main()
