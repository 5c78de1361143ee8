"""Object stores for tests: moto, an imitation in a process of its own, and a real Ceph where $ZT_S3_ENGINE names the script
that starts one."""

import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from s3_client import Bucket

# Ceph is there after two to six seconds on an idle machine.
CEPH_TIMEOUT_S = 120
CEPH_TRIES = 2
# Has a Ceph in its care until its standard input ends. In a session of its own: what ends the tests, even a signal to their
# whole group, leaves it to clean up.
CEPH = """
trap '' PIPE
"$0" up "$@" </dev/null 2>&1
echo "status=$?"
cat
exec >/dev/null 2>&1
"$0" down "$1" --wipe
rm -rf "$1"
"""
# Serves until its standard input ends, so that it cannot outlive the tests. One request at a time: it looks whether a
# condition holds, and writes afterwards, so that of two writers at once both may win.
MOTO = """
import logging, sys, threading
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

def in_turn(method):
    def call(*arguments):
        with turn:
            return method(*arguments)
    return call

turn = threading.RLock()
S3Response._key_response = in_turn(S3Response._key_response)
S3Response._bucket_response = in_turn(S3Response._bucket_response)
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
# Whatever the machine has must not decide which store, and as whom, a server asks.
NO_CREDENTIALS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "AWS_CONFIG_FILE": "/nonexistent",
}


@dataclass
class Engine:
    """How to reach an object store."""

    name: str
    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    disk: int = 0  # the process that has the bytes, if there is one
    numbers = itertools.count(1)

    @property
    def environment(self):
        """That of a server which uses it."""
        return {
            **NO_CREDENTIALS,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "ZTSERVE_S3_ENDPOINT": self.endpoint,
            "ZTSERVE_S3_REGION": self.region,
        }

    def bucket(self):
        """A new, empty bucket."""
        return Bucket(self, f"models-{os.getpid()}-{next(self.numbers)}").make()

    def stop_disk(self):
        """It stands still: requests hang."""
        os.kill(self.disk, signal.SIGSTOP)

    def continue_disk(self):
        os.kill(self.disk, signal.SIGCONT)


def moto():
    """Yields a running one; its process ends with the generator."""
    if subprocess.run([sys.executable, "-c", "import moto.server"], capture_output=True).returncode != 0:
        pytest.skip("skipped: moto is not installed (tests/requirements.txt)")
    process = subprocess.Popen(
        [sys.executable, "-c", MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        port = int(process.stdout.readline())
        yield Engine("moto", f"http://127.0.0.1:{port}", "test", "test")
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
        process.stdout.close()


def free_port():
    """Below those that the kernel gives out: it stays free until the store takes it, some seconds later."""
    while True:
        port = random.SystemRandom().randrange(10000, 20000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def started_ceph(script):
    """The process that has it in its care, and what was said at its start."""
    # Its paths must be short: unix sockets.
    folder = Path(tempfile.mkdtemp(prefix="ceph-", dir="/tmp"))
    options = [str(free_port()), "--bucket", "models", "--timeout", str(CEPH_TIMEOUT_S)]
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", CEPH, script, str(folder), *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    lines = []
    for line in keeper.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("status="):
            break
    return keeper, lines


def end_ceph(keeper):
    keeper.stdin.close()
    keeper.wait(CEPH_TIMEOUT_S)
    keeper.stdout.close()


def ceph():
    """Yields a running one; its processes and files are gone with the generator, and with the tests if they are killed."""
    script = os.environ.get("ZT_S3_ENGINE")
    if not script or not os.access(script, os.X_OK):
        pytest.skip("skipped: no script that starts a Ceph (ZT_S3_ENGINE is not set)")
    for _ in range(CEPH_TRIES):
        keeper, lines = started_ceph(script)
        if lines[-1:] == ["status=0"]:
            break
        end_ceph(keeper)
    if lines[-1:] == ["status=3"]:
        pytest.skip(f"skipped: no Ceph here: {' '.join(lines[-2:-1])}")
    assert lines[-1:] == ["status=0"], "\n".join(lines)
    try:
        said = dict(line.split("=", 1) for line in lines if "=" in line)
        keys = said["S3_ACCESS_KEY"], said["S3_SECRET_KEY"]
        disk = int(Path(said["OSD_PIDFILE"]).read_text())
        yield Engine("ceph", said["S3_ENDPOINT"], *keys, said["S3_REGION"], disk)
    finally:
        end_ceph(keeper)
