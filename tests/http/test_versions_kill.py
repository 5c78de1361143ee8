"""Killed during commits, tags and collections, and started again: every acknowledged commit is listed with the right bytes,
no file stays that no commit names, and no temporary file."""

import random
import threading
import time

import pytest

import faulty
import histories
import interrupted
from histories import Repository
from server_process import ServerProcess
from wire import eventually, get

# About the duration of three changes on an idle machine.
LONGEST_LIFE_S = 0.1
WRITERS = 3

pytestmark = pytest.mark.folder("versions of a folder")


def start(root, keep=1000):
    return ServerProcess(root, "--writable", "--keep-versions", str(keep), environment=histories.SETTINGS)


def check(server, root, repositories, active):
    """The promises. Then only files that commits name are kept, and no others are left."""
    for repository in active:
        repository.check(server)
    named = set().union(*(repository.named for repository in repositories))
    assert eventually(lambda: histories.kept_files(root) <= named and histories.temporary_files(root) == []), (
        histories.kept_files(root) - named,
        histories.temporary_files(root),
    )
    assert interrupted.hidden_files(root) == set()
    for repository in active:
        repository.settle(server, root)


def check_next_life(root, repositories, active, start=start):
    server = start(root)
    try:
        check(server, root, repositories, active)
    except BaseException:
        server.kill()
        raise
    return server


# --- at any moment ---


def live(server, repositories, life_s):
    threads = [threading.Thread(target=repository.run, args=(server,), daemon=True) for repository in repositories]
    for thread in threads:
        thread.start()
    time.sleep(life_s)
    server.kill()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def live_often(root, lives, seed):
    generator = random.Random(seed)
    server, repositories = start(root), []
    for number in range(lives):
        # Histories grow over several lives.
        if number % 5 == 0:
            repositories += [Repository(f"org/r{number}-{index}", generator) for index in range(WRITERS)]
        active = repositories[-2 * WRITERS :]
        live(server, active, generator.uniform(0, LONGEST_LIFE_S))
        server = check_next_life(root, repositories, active)
    assert server.stop() == 0


def test_acknowledged_commits_survive_kills_at_any_moment(tmp_path):
    live_often(tmp_path, 12, seed=2026)


# --- before each call ---

# The first call before which a change is killed in the ordinary run, and how many calls later the next kill is.
SOME = range(2, 400, 31)
EVERY = range(1, 400)


class Walk:
    """A server that is killed before a chosen call of the file system."""

    def __init__(self, tmp_path, keep):
        self.root = tmp_path / "root"
        self.root.mkdir()
        self.keep = keep
        self.control = faulty.Control(tmp_path / "control")
        self.server = self.start(self.root)
        self.repository = Repository("org/r", random.Random(7), keep)

    def start(self, root):
        return faulty.start(root, self.control, "--keep-versions", str(self.keep))

    def prepare(self):
        for change in (Repository.commit, Repository.put_model, Repository.put_file, Repository.tag, Repository.commit_to_branch):
            assert self.repository.make(change, self.server)

    def is_killed_before(self, number, change):
        """Returns False if the change made fewer calls."""
        self.control.fail(number, faulty.KILLS)
        is_made = self.repository.make(change, self.server)
        self.control.rest()
        if is_made:
            return False
        self.server.kill()
        self.server = check_next_life(self.root, [self.repository], [self.repository], self.start)
        return True


def walk_through(tmp_path, change, numbers):
    walk = Walk(tmp_path, 1000)
    walk.prepare()
    kills, misses = 0, 0
    for number in numbers:
        is_killed = walk.is_killed_before(number, change)
        kills += is_killed
        # A change that alters nothing makes few calls.
        misses = 0 if is_killed else misses + 1
        if misses == 5:
            break
    assert kills > 0 and misses == 5
    walk.repository.check(walk.server)
    assert walk.server.stop() == 0
    return kills


def collect_and_be_killed(walk, number):
    """Leaves files that no commit names, and kills the server that removes them. Returns False if it made fewer calls."""
    for _ in range(3):
        assert walk.repository.make(Repository.put_new, walk.server)
    walk.server.kill()
    walk.control.fail(number, faulty.KILLS)
    try:
        server = walk.start(walk.root)
    except RuntimeError:
        is_killed = True
    else:
        # Of two commits with one file, the folder has one, and one is kept.
        eventually(lambda: server.process.poll() is not None or len(histories.kept_files(walk.root)) == 1)
        is_killed = server.process.poll() is not None
        server.kill()
    walk.control.rest()
    walk.server = check_next_life(walk.root, [walk.repository], [walk.repository], walk.start)
    assert len(histories.kept_files(walk.root)) == 1
    return is_killed


def walk_through_collections(tmp_path, numbers):
    walk = Walk(tmp_path, 2)
    assert walk.repository.make(Repository.put_new, walk.server)
    kills = 0
    for number in numbers:
        if not collect_and_be_killed(walk, number):
            break
        kills += 1
    assert kills > 0
    assert walk.server.stop() == 0
    return kills


@pytest.mark.plain("a preloaded library kills the server")
@pytest.mark.parametrize("change", Repository.CHANGES, ids=lambda change: change.__name__)
def test_changes_survive_a_kill_before_a_call(change, tmp_path):
    walk_through(tmp_path, change, SOME)


@pytest.mark.plain("a preloaded library kills the server")
def test_collections_survive_a_kill_before_a_call(tmp_path):
    walk_through_collections(tmp_path, SOME)


# --- on demand: pytest -k thousand ---


@pytest.fixture
def on_demand(request):
    if "thousand" not in request.config.option.keyword:
        pytest.skip("skipped: -k thousand runs it")


@pytest.mark.timeout(3600)
def test_a_thousand_kills(on_demand, tmp_path):
    kills = 0
    for change in Repository.CHANGES:
        folder = tmp_path / change.__name__
        folder.mkdir()
        kills += walk_through(folder, change, EVERY)
    folder = tmp_path / "collections"
    folder.mkdir()
    kills += walk_through_collections(folder, EVERY)
    print(f"{kills} kills before calls")
    folder = tmp_path / "moments"
    folder.mkdir()
    live_often(folder, max(1000 - kills, 300), seed=2027)
