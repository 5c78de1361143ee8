"""A ztserve is an upstream too; a chain of them passes on what the first has, and its commits."""

import pytest

from containers import dense, zt1
from injector import Injector
from meddler import Meddler
from pull_through import MIB, REPO, MirrorServers, download, eventually_downloaded, noise, safetensors, v1_path
from uploads import fill
from wire import ask, eventually, get, metrics

FILES = {
    "config.json": b'{"a": 1}\n',
    "model.safetensors": safetensors(20 * MIB, seed=31),
    "sub/tensors.zt": zt1({"w": dense(noise(5 * MIB))}),
    "empty.txt": b"",
    "sub/a b+c#d%.txt": b"odd\n",
}


class Address:
    """What a meddler needs of a server."""

    def __init__(self, server):
        self.endpoint = server.url


@pytest.fixture
def first(start_server, tmp_path):
    fill(tmp_path / "first" / REPO, FILES)
    server = start_server(tmp_path / "first", "--writable")
    # Until all hashes are known, the commit is provisional.
    for path in FILES:
        eventually(lambda path=path: entry_of(server, path).get("lfs"))
    return server


def entry_of(server, path):
    listed = get(server, f"/api/models/{REPO}/tree/main?recursive=true").json()
    return next(one for one in listed if one["path"] == path)


def commit_of(server):
    return get(server, f"/api/models/{REPO}").json()["sha"]


@pytest.mark.parametrize("kind", ["hub", "ztserve"])
def test_a_chain_of_mirrors(first, mirror_of, kind):
    second = mirror_of(first.url, kind=kind, revalidate_s=1)
    third = mirror_of(second.url, kind=kind, revalidate_s=1)
    for path, content in FILES.items():
        got = eventually_downloaded(third, REPO, path, content)
        assert got.fields["X-Repo-Commit"] == commit_of(first)
    assert commit_of(third) == commit_of(second) == commit_of(first)
    assert get(third, v1_path(REPO, "sub/tensors.zt", "/objects/w/data?slice=5:15")).body == noise(5 * MIB)[5:15]
    for server in (first, second):
        assert server.stop() == 0
    for path, content in FILES.items():
        assert download(third, REPO, path).body == content


@pytest.mark.others
def test_a_ztserve_that_has_not_hashed_a_file(start_server, mirror_of, tmp_path):
    """Its list has an oid that is no hash of the file; the kind is that of --upstream URL."""
    content = bytes(256 * MIB)
    fill(tmp_path / "new" / REPO, {"long.bin": content})
    server = start_server(tmp_path / "new")
    second = mirror_of(server.url)
    eventually_downloaded(second, REPO, "long.bin", content)
    assert metrics(second)['ztserve_upstream_wrong_files_total{upstream="up0"}'] == 0


def test_a_change_of_the_first_arrives(first, mirror_of, tmp_path):
    second = mirror_of(first.url, revalidate_s=1)
    for path, content in FILES.items():
        eventually_downloaded(second, REPO, path, content)
    changed = zt1({"w": dense(noise(MIB, seed=7))})
    assert ask(first, "PUT", v1_path(REPO, "sub/tensors.zt"), {}, bytes(changed)).status in (200, 201, 204)
    eventually(lambda: entry_of(first, "sub/tensors.zt").get("lfs"))
    eventually(lambda: download(second, REPO, "sub/tensors.zt").body == changed)
    assert eventually(lambda: commit_of(second) == commit_of(first))


@pytest.mark.others
@pytest.mark.parametrize("seed", range(4))
def test_faults_before_a_ztserve(first, start_server, tmp_path, seed):
    meddler = Meddler(Address(first))
    try:
        server = MirrorServers(start_server, tmp_path)(meddler.endpoint, revalidate_s=1)
        injector = Injector(f"ztserve {seed}", meddler, has_bytes=lambda request: "/resolve/" in request.path)
        for path, content in FILES.items():
            for _ in range(3):
                got = download(server, REPO, path)
                assert not got.is_right or got.body == content
        injector.stop()
        for path, content in FILES.items():
            eventually_downloaded(server, REPO, path, content)
        meddler.go_away()
        for path, content in FILES.items():
            got = download(server, REPO, path)
            assert got.is_right and got.body == content
    finally:
        meddler.close()


@pytest.mark.others
def test_a_mirror_of_itself_ends(mirror_of, tmp_path):
    """Two servers that are each other's upstream answer that a repository does not exist, or that it cannot be had."""
    first = mirror_of("http://127.0.0.1:9")
    second = mirror_of(first.url)
    assert first.stop() == 0
    first = mirror_of.again(first, second.url, listen=f"127.0.0.1:{first.port}")
    got = download(first, "acme/none", "config.json")
    assert got.status in (404, 502, 503), got
    assert get(first, "/healthz").status == get(second, "/healthz").status == 200
