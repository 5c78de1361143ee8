"""A bucket is an upstream too: its folders are repositories, and a list of objects is a commit."""

import base64
import hashlib

import pytest

import meddler as acts
from containers import dense, zt1
from injector import Injector
from pull_through import (
    MIB,
    REPO,
    download,
    eventually_downloaded,
    fetch,
    files_path,
    model_name,
    noise,
    resolve_path,
    safetensors,
    sha256,
    v1_path,
)
from uploads import fill
from wire import eventually, get, metrics

BIG = safetensors(9 * MIB, seed=41)
SUMMED = noise(3 * MIB, seed=42)
BARE = noise(5 * MIB + 7, seed=43)
ZT = bytes(zt1({"w": dense(noise(2 * MIB, seed=44))}))
OTHER = noise(len(BARE), seed=45)


@pytest.fixture
def bucket(moto_bucket):
    """Objects that state a SHA-256, as this program writes them and as the service computes it, and others."""
    bucket = moto_bucket.below("models")
    bucket.put(f"{REPO}/model.safetensors", BIG, x_amz_meta_ztserve_sha256=sha256(BIG))
    bucket.put(f"{REPO}/summed.bin", SUMMED)
    bucket.put(f"{REPO}/bare.bin", BARE)
    bucket.put(f"{REPO}/sub/w.zt", ZT)
    bucket.put(f"{REPO}/empty.txt", b"")
    bucket.put(f"{REPO}/sub/", b"")
    bucket.put(f"{REPO}/.hidden", b"h")
    bucket.put(f"{REPO}/conflict", b"a key that others use as a folder")
    bucket.put(f"{REPO}/conflict/x.txt", b"x")
    bucket.put("single/only.txt", b"only")
    bucket.put("elsewhere/acme.txt", b"not below the prefix of a repository")
    return bucket


FILES = {"model.safetensors": BIG, "summed.bin": SUMMED, "bare.bin": BARE, "sub/w.zt": ZT, "empty.txt": b"", "conflict/x.txt": b"x"}
PROFILE = "[default]\naws_access_key_id = {0.access_key}\naws_secret_access_key = {0.secret_key}\n"
NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
STATED = ("model.safetensors", "summed.bin")


def state_checksum(meddler):
    """As AWS does it; the imitation does not."""
    text = base64.b64encode(hashlib.sha256(SUMMED).digest()).decode()

    def asks(request):
        return request.path.endswith("summed.bin") and request.fields.get("x-amz-checksum-mode") == "ENABLED"

    meddler.meddle(acts.changed(lambda true: true.with_fields(x_amz_checksum_sha256=text)), "head", when=asks)


@pytest.fixture
def mirror(bucket, meddler, mirror_of):
    state_checksum(meddler)

    def start(root=None, environment=None, **settings):
        made = {**bucket.engine.environment, "ZTSERVE_S3_ENDPOINT": meddler.endpoint, **(environment or {})}
        return mirror_of(bucket.root, root=root, environment=made, **{"revalidate_s": 1, **settings})

    return start


def commit_of(server):
    return get(server, f"/api/models/{REPO}").json()["sha"]


def count(server, name):
    return metrics(server)[f'ztserve_upstream_{name}{{upstream="up0"}}']


def reads(tally):
    """GETs of objects."""
    return [one for one in tally.of("read") if "/acme/" in one.request.path and one.request.method == "GET"]


def test_the_files_of_a_bucket_are_those_of_a_repository(mirror, meddler):
    server = mirror(revalidate_s=300)
    for path, content in FILES.items():
        got = download(server, REPO, path)
        assert got.is_right and got.body == content, (path, got)
        assert got.fields["X-Repo-Commit"] == commit_of(server)
    assert len(commit_of(server)) == 40
    listed = get(server, f"/api/models/{REPO}/tree/main?recursive=true").json()
    assert sorted(one["path"] for one in listed if one["type"] == "file") == sorted(FILES)
    assert {one["path"] for one in listed if one.get("lfs")} >= set(STATED)
    for path, content in FILES.items():
        if path in STATED:
            assert eventually(lambda path=path: "ZT-Verified" not in download(server, REPO, path).fields or None)
        elif content:
            assert download(server, REPO, path).fields["ZT-Verified"] == "no", path
    tally = meddler.counting()
    assert fetch(server, files_path(REPO, "bare.bin")).body == BARE
    assert get(server, v1_path(REPO, "sub/w.zt", "/objects/w/data?slice=5:15")).body == noise(2 * MIB, seed=44)[5:15]
    assert model_name(REPO, "sub/w.zt") in get(server, "/v1/models").body.decode()
    assert not reads(tally), tally
    shown = get(server, "/v1/upstreams").json()["upstreams"][0]
    assert (shown["kind"], shown["state"]) == ("s3", "reached")
    assert count(server, "fetched_bytes_total") == sum(map(len, FILES.values()))
    assert count(server, "wrong_files_total") == 0


@pytest.mark.others
def test_names_that_are_no_repositories(mirror):
    server = mirror()
    assert download(server, "single", "only.txt").body == b"only"
    for repo in ("acme", "acme/none", "none"):
        assert get(server, f"/api/models/{repo}").status == 404, repo
    assert get(server, f"/api/models/{REPO}/revision/v1").status == 404
    assert get(server, f"/api/models/{REPO}/revision/{'0' * 40}").status == 404
    assert get(server, f"/api/models/{REPO}/revision/{commit_of(server)}").status == 200


@pytest.mark.others
def test_main_moves_with_the_list_of_objects(mirror, bucket, meddler):
    server = mirror()
    for path, content in FILES.items():
        eventually_downloaded(server, REPO, path, content)
    first = commit_of(server)
    tally = meddler.counting()
    bucket.put(f"{REPO}/new.txt", b"new")
    bucket.put(f"{REPO}/empty.txt", b"not empty")
    assert eventually(lambda: download(server, REPO, "new.txt").body == b"new")
    assert download(server, REPO, "empty.txt").body == b"not empty"
    assert commit_of(server) != first
    for path in ("bare.bin", *STATED):
        assert download(server, REPO, path).body == FILES[path]
        assert download(server, REPO, path, first).body == FILES[path]
    assert {one.request.path.rsplit("/", 1)[1] for one in reads(tally)} == {"new.txt", "empty.txt"}


def test_an_object_that_changes_is_never_mixed_with_the_old_one(mirror, bucket):
    server = mirror(revalidate_s=3600)
    target = resolve_path(REPO, "bare.bin")
    old = commit_of(server)
    assert fetch(server, target, {"Range": "bytes=0-99"}).body == BARE[:100]
    bucket.put(f"{REPO}/bare.bin", OTHER)
    last = f"bytes={len(BARE) - 100}-"

    def read_end():
        got = fetch(server, target, {"Range": last})
        assert not got.is_right or (got.body == OTHER[-100:] and got.fields["X-Repo-Commit"] != old), got
        return got.is_right

    assert eventually(read_end)
    assert download(server, REPO, "bare.bin").body == OTHER
    assert not download(server, REPO, "bare.bin", old).is_right


def test_wrong_bytes_of_an_object_are_never_completed(mirror, bucket, meddler):
    bucket.put(f"{REPO}/lie.bin", SUMMED, x_amz_meta_ztserve_sha256=sha256(BIG))
    rule = meddler.meddle(acts.flipped(5), "read", key="summed.bin")
    server = mirror()
    for _ in range(3):
        for path in ("summed.bin", "lie.bin"):
            assert not download(server, REPO, path).is_right
    meddler.stop(rule)
    eventually_downloaded(server, REPO, "summed.bin", SUMMED)
    assert count(server, "wrong_files_total") >= 2


@pytest.mark.others
@pytest.mark.parametrize("seed", range(6))
def test_faults_before_a_bucket(mirror, meddler, seed):
    server = mirror()
    # The digests, which an injected answer to HEAD would leave out.
    commit_of(server)
    injector = Injector(f"bucket {seed}", meddler, has_bytes=lambda request: request.kind == "read")
    for path, content in FILES.items():
        for _ in range(3):
            got = download(server, REPO, path)
            assert not got.is_right or got.body == content or path not in STATED
    injector.stop()
    for path in STATED:
        eventually_downloaded(server, REPO, path, FILES[path])
    meddler.go_away()
    for path in STATED:
        assert download(server, REPO, path).body == FILES[path]


@pytest.mark.others
def test_a_bucket_that_is_away(mirror, meddler):
    server = mirror(revalidate_s=300)
    eventually_downloaded(server, REPO, "summed.bin", SUMMED)
    meddler.go_away()
    assert download(server, REPO, "summed.bin").body == SUMMED
    got = download(server, REPO, "bare.bin")
    assert got.status == 503 and got.fields["Retry-After"] and got.json()["code"] == "upstream-unavailable", got
    assert get(server, "/readyz").status == 200
    meddler.come_back()
    eventually_downloaded(server, REPO, "bare.bin", BARE)
    assert metrics(server).get("ztserve_store_away", 0) == 0


@pytest.mark.others
def test_a_bucket_that_refuses_the_credentials(mirror, meddler):
    meddler.meddle(acts.store_error(403, "AccessDenied", "SECRET WORDS"))
    server = mirror()
    got = download(server, REPO, "bare.bin")
    assert got.status == 502 and "credentials" in got.json()["detail"], got
    assert "SECRET" not in got.body.decode() + get(server, "/v1/upstreams").body.decode()


@pytest.mark.others
def test_credentials_of_a_profile(mirror, bucket, tmp_path):
    """The file is outside of the folders that a confined server reads."""
    file = tmp_path / "credentials" / "file"
    fill(tmp_path / "credentials", {"file": PROFILE.format(bucket.engine).encode()})
    server = mirror(environment={**NO_KEYS, "AWS_SHARED_CREDENTIALS_FILE": str(file)})
    eventually_downloaded(server, REPO, "sub/w.zt", ZT)
