"""Servers that the tests of one file share, and object stores."""

import itertools

import pytest

import mirror
import s3_engines
from buckets import BucketServers
from meddler import Meddler
from mock_hub import MockHub
from pull_through import MirrorServers

LEFT_OUT = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "folder(reason): about folders themselves; left out where buckets take their place")


def pytest_unconfigure():
    mirror.end()


def pytest_collection_modifyitems(config, items):
    """Over a bucket, leaves out what is about folders, and what brings a bucket of its own."""
    if not mirror.wanted:
        return
    about_folders = [item for item in items if item.get_closest_marker("folder") or item.path.name.startswith("test_bucket")]
    config.hook.pytest_deselected(items=about_folders)
    items[:] = [item for item in items if item not in about_folders]
    reasons = {marker.args[0] for item in about_folders for marker in item.iter_markers("folder")}
    config.stash[LEFT_OUT] = sorted(reasons)


def pytest_terminal_summary(terminalreporter, config):
    for reason in config.stash.get(LEFT_OUT, []):
        terminalreporter.write_line(f"left out over a bucket: {reason}")


@pytest.fixture
def name(request):
    """A model's name that no other test uses."""
    letters = (letter if letter.isalnum() else "-" for letter in request.node.name)
    return "".join(letters)


@pytest.fixture
def root(tmp_path):
    """An empty folder to serve, which has neighbours that are not served."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def record(tmp_path):
    """Where a server notes its calls (recorded_calls.py)."""
    return tmp_path / "calls"


@pytest.fixture
def server(tmp_path, start_server):
    """A server that takes uploads, for one test; many files have another, which they share."""
    return start_server(tmp_path, "--writable")


# --- object stores ---


@pytest.fixture(scope="session")
def moto():
    """An imitation of an object store, for all tests of a run."""
    yield from s3_engines.moto()


@pytest.fixture(scope="session")
def ceph():
    """A real object store, for all tests of a run."""
    yield from s3_engines.ceph()


@pytest.fixture(scope="session", params=["moto", "ceph"])
def engine(request):
    """Each kind of object store, one after another."""
    return request.getfixturevalue(request.param)


PREFIXES = itertools.count(1)


@pytest.fixture(scope="module")
def shared_bucket(engine):
    """An empty bucket of each kind of store, for all tests of a file."""
    return engine.bucket()


@pytest.fixture
def bucket(engine):
    """An empty place of its own in a bucket, of each kind of store."""
    return engine.bucket().below(f"some/prefix {next(PREFIXES)}")


@pytest.fixture
def moto_bucket(moto):
    """An empty bucket of the imitation, for what does not depend on the store."""
    return moto.bucket()


@pytest.fixture
def meddler(moto):
    """A proxy before the imitation."""
    meddler = Meddler(moto)
    yield meddler
    meddler.close()


@pytest.fixture
def serve_bucket(start_server, tmp_path):
    """Starts servers over buckets for one test."""
    return BucketServers(start_server, tmp_path)


@pytest.fixture(scope="module")
def share_bucket_server(share_server, tmp_path_factory):
    """Starts servers over buckets for all tests of a file."""
    return BucketServers(share_server, tmp_path_factory.mktemp("replicas"))


# --- mirrors of a Hub ---


@pytest.fixture
def upstream():
    """A Hub for one test, from which a server mirrors."""
    hub = MockHub()
    yield hub
    hub.close()


@pytest.fixture
def mirror_of(start_server, tmp_path):
    """Starts servers that mirror the Hubs at these addresses, for one test."""
    return MirrorServers(start_server, tmp_path)


@pytest.fixture(scope="module")
def shared_upstream():
    """A Hub for all tests of a file."""
    hub = MockHub()
    yield hub
    hub.close()


@pytest.fixture(scope="module")
def share_mirror_of(share_server, tmp_path_factory):
    """Starts servers that mirror, for all tests of a file."""
    return MirrorServers(share_server, tmp_path_factory.mktemp("mirrors"))
