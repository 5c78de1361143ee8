"""Runs behind a fault injector, each by a seed that says what goes wrong: no wrong byte is kept, and a retry mends any failed
read. `pytest -m others` runs all of them; a failure names its seed."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from injector import Injector
from mock_hub import MockHub
from pull_through import MIB, MirrorServers, fetch, files_path, noise, resolve_path
from server_process import ServerProcess
from wire import eventually, get

# 75 and 149 once met a catalog that remembered a failure for too long.
ORDINARY = [*range(10), 75, 149]
ALL = range(int(os.environ.get("ZT_MIRROR_SEEDS", "1000")))
# How many of the thousand one test takes, and how many of these at a time.
EACH = 50
SIDE_BY_SIDE = 8
READERS = 4
READS = 5
SETTLED_S = 300


class Run:
    """A Hub with one repository, a server that mirrors it, and readers that never believe a wrong byte."""

    def __init__(self, seed, folder, mirrors):
        self.seed, self.chance = seed, random.Random(f"mirror {seed}")
        self.hub = MockHub(page=self.chance.choice([1, 2, 1000]))
        sizes = [self.chance.choice([0, 1, 4000, MIB, MIB + 1, 2 * MIB + 5, 5 * MIB, 11 * MIB]) for _ in range(self.chance.randint(2, 4))]
        self.files = {
            f"f{number}.{self.chance.choice(['bin', 'txt', 'json'])}": noise(size, seed=seed * 10 + number) for number, size in enumerate(sizes)
        }
        self.commit = self.hub.add("acme/m", self.files)
        self.root = folder / f"run-{seed}"
        self.root.mkdir()
        self.mirrors, self.urls = mirrors, [self.hub.endpoint]
        self.settings = {"strict": self.chance.random() < 0.2, "revalidate_s": self.chance.choice([1, 300])}
        self.server = mirrors(*self.urls, root=self.root, **self.settings)

    def close(self):
        self.server.stop()
        self.hub.close()

    def target(self, chance, path):
        return chance.choice(
            [resolve_path("acme/m", path), resolve_path("acme/m", path, self.commit), files_path("acme/m", path), f"/s3/models/acme/m/{path}"]
        )

    def read(self, chance):
        """One read; whatever came of it must be right, or be said to be unverified, or be an error."""
        path = chance.choice(list(self.files))
        content = self.files[path]
        target = self.target(chance, path)
        fields, begin, end = {}, 0, len(content)
        if content and chance.random() < 0.5:
            begin = chance.randrange(len(content))
            end = len(content) if chance.random() < 0.3 else min(len(content), begin + chance.choice([1, 1000, 3 * MIB]))
            fields = {"Range": f"bytes={begin}-{'' if end == len(content) else end - 1}"}
        got = fetch(self.server, target, fields)
        if got.status == 200:
            begin, end = 0, len(content)
        assert got.status in (0, 200, 206, 502, 503), got
        # A connection that is cut may have had the wrong beginning of a file; a whole one may not.
        is_promised = got.is_right and got.fields.get("ZT-Verified") != "no"
        is_whole_file = got.is_right and len(got.body) == len(content)
        assert not (is_promised or is_whole_file) or got.body == content[begin:end], f"wrong bytes of {target} {fields}: {got}"
        return got.is_right

    def disturb(self, injector):
        """Readers side by side, and a kill between two rounds of them."""
        with ThreadPoolExecutor(READERS) as pool:
            for number in range(2):
                chances = [random.Random(f"{self.seed} {number} {reader}") for reader in range(READERS)]
                list(pool.map(lambda chance: [self.read(chance) for _ in range(READS)], chances))
                if number == 0 and self.chance.random() < 0.5:
                    self.server.kill()
                    self.server = self.mirrors(*self.urls, root=self.root, **self.settings)

    def settle(self):
        """Upstream is well: each file is read wholly in the end, by a client that only tries again."""
        for path, content in self.files.items():
            got = eventually(
                lambda path=path: (found := fetch(self.server, resolve_path("acme/m", path))).is_right and found, within_s=SETTLED_S
            )
            assert got.body == content, path

    def check_what_is_kept(self):
        """Upstream is away: what was read wholly is served, and is right, also after a restart."""
        self.hub.go_away()
        for is_last in (False, True):
            for path, content in self.files.items():
                for target in (resolve_path("acme/m", path), files_path("acme/m", path)):
                    got = fetch(self.server, target)
                    assert got.is_right and got.body == content, f"{target}: {got}"
                    assert "ZT-Verified" not in got.fields
            assert get(self.server, "/readyz").status == 200
            if not is_last:
                assert self.server.stop() == 0, self.server.log
                self.server = self.mirrors(*self.urls, root=self.root, **self.settings)


def run(seed, folder, mirrors):
    one = Run(seed, folder, mirrors)
    injector = Injector(seed, one.hub, one.hub.store, share=one.chance.choice([0.1, 0.3, 0.6]))
    try:
        one.disturb(injector)
        injector.stop()
        one.settle()
        one.check_what_is_kept()
    except BaseException as error:
        log = "\n".join(one.server.log_lines[-40:])
        raise AssertionError(f"seed {seed}: {error!r}\ninjected:\n" + "\n".join(injector.log) + f"\nthe server's log:\n{log}") from error
    finally:
        one.close()


@pytest.mark.parametrize("seed", ORDINARY)
def test_no_wrong_byte_is_kept_and_a_retry_mends_every_read(seed, tmp_path, mirror_of):
    run(seed, tmp_path, mirror_of)


@pytest.mark.others
@pytest.mark.waits
@pytest.mark.parametrize("first", range(0, len(ALL), EACH))
def test_a_thousand_runs(first, tmp_path):
    mirrors = MirrorServers(ServerProcess, tmp_path)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = [(seed, pool.submit(run, seed, tmp_path, mirrors)) for seed in ALL[first : first + EACH]]
    failed = [f"{seed}: {result.exception()}" for seed, result in results if result.exception()]
    assert not failed, "\n\n".join(failed)
