"""Shared by all tests from outside: servers that are stopped when a test ends, and the folder of test files."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from corpus_outcomes import ignored_folders
from server_process import ServerProcess, is_sanitized


# Whoever sleeps longer waits for a time instead of for what has to happen (tests/lint/pauses.py).
PAUSE_MAX_S = 0.2
TESTS = str(Path(__file__).parent)
long_pauses = []
real_sleep = time.sleep


def noted_sleep(seconds):
    caller = sys._getframe(1)
    if seconds > PAUSE_MAX_S and caller.f_code.co_filename.startswith(TESTS):
        long_pauses.append(f"{caller.f_code.co_filename}:{caller.f_lineno} sleeps for {seconds:.2f} s")
    real_sleep(seconds)


time.sleep = noted_sleep


def pytest_runtest_teardown():
    found = [long_pauses.pop() for _ in range(len(long_pauses))]
    assert not found, found


def corpus_folder():
    folder = os.environ.get("ZT_CORPUS")
    return Path(folder) if folder and Path(folder).is_dir() else None


def pytest_configure(config):
    # Shells let what runs in the background ignore this signal, and what tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "waits: waits for stores, clients and clocks more than it computes; left out under sanitizers")
    config.addinivalue_line("markers", "plain(reason): impossible with a program that is built with sanitizers")
    config.addinivalue_line("markers", "http: in tests/http")
    config.addinivalue_line("markers", "others: breaks by other people's releases; tests/run.sh runs it with --all")


# They take minutes, so they begin first: at the end, all processors but one would wait for them.
LONG = {"test_openapi", "test_packages", "test_parts", "test_bucket_faults", "test_bucket_uploads", "test_crash", "test_fairness"}


def pytest_collection_modifyitems(items):
    """Advances through the files of each folder at the same rate, so that some compute while others wait."""
    folders = {}
    for item in items:
        folders.setdefault(item.path.parent, {}).setdefault(item.path)
    places = {path: (at / len(paths), path) for paths in folders.values() for at, path in enumerate(paths)}
    items.sort(key=lambda item: (item.path.stem not in LONG, places[item.path]))
    without = pytest.mark.skip(reason="skipped: not with sanitizers")
    sanitized = is_sanitized()
    for item in items:
        if item.path.parent.name == "http":
            item.add_marker(pytest.mark.http)
        if sanitized and item.get_closest_marker("plain"):
            item.add_marker(without)


def pytest_report_header():
    folder = corpus_folder()
    ignored = ignored_folders(folder) if folder else []
    return f"corpus: not read by this release, and left out: {', '.join(ignored)}" if ignored else None


@pytest.fixture
def start_server(tmp_path):
    """Starts servers for one test; each must have ended well by the end of it."""
    servers = []

    def start(root=None, *arguments, **options):
        server = ServerProcess(root if root is not None else tmp_path, *arguments, **options)
        servers.append(server)
        return server

    yield start
    failures = []
    for server in servers:
        if server.process.returncode is not None:
            continue
        status = server.stop()
        if status != 0:
            failures.append(f"exit status {status}:\n{server.log}")
    assert not failures, "\n".join(failures)


@pytest.fixture(scope="module")
def share_server():
    """Like start_server, for servers that all tests of a file share; at its end they must stop with status 0."""
    servers = []

    def start(root, *arguments, **options):
        server = ServerProcess(root, *arguments, **options)
        servers.append(server)
        return server

    yield start
    statuses = [server.stop() for server in servers]
    assert statuses == [0] * len(servers), "\n".join(server.log for server in servers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty root for the servers of one file."""
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="session")
def corpus():
    folder = corpus_folder()
    if folder is None:
        pytest.skip("skipped: no corpus (ZT_CORPUS is not set)")
    return folder
