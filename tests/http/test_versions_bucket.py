"""Versions over a bucket: the same as over a folder, with any number of servers, whatever the store ignores, and at every moment
that a server may be killed."""

import random
import re
import threading
from dataclasses import replace
from urllib.parse import quote, unquote

import pytest

import lfs
from clients import Client, write_tokens
from histories import Repository, listed_commits, listed_refs, oid_of
from kept import KEEPS, assert_content, component, content, head_of, model, publish, revisions, set_revision
from test_revisions_wait import Waiting
from wire import ask, eventually, get, model_path

NAME = "org/model/weights"
FILE = "/files/org/model/config.json"
HIDDEN = ".ztserve/versions/"
# How long writers of one repository wait for each other.
DECIDED_S = 120


def serve(serve_bucket, bucket, *arguments, **options):
    return serve_bucket(bucket, *arguments, environment=KEEPS, **options)


def kept_keys(bucket):
    return [key for key in bucket.keys(hidden=True) if key.startswith(f"{HIDDEN}objects/")]


def claims(bucket):
    return [key for key in bucket.keys(hidden=True) if key.startswith(".ztserve/claims/")]


def put_file(server, path, data, **fields):
    return ask(server, "PUT", path, {name.replace("_", "-"): value for name, value in fields.items()}, data)


# --- one server ---


def test_revisions_are_read_tagged_and_restored(bucket, serve_bucket):
    server = serve(serve_bucket, bucket, "--writable")
    commits = [publish(server, NAME, seed) for seed in (1, 2, 3)]
    assert [one["commit"] for one in revisions(server, NAME)] == commits[::-1]
    for commit, seed in zip(commits, (1, 2, 3)):
        assert_content(server, component(NAME, commit), seed)
    assert set_revision(server, NAME, "best", commits[0]).status == 201
    assert put_file(server, FILE, b"{}").status == 201
    assert set_revision(server, NAME, "main", "best", "branch").status == 200
    assert_content(server, component(NAME), 1)
    assert get(server, FILE).status == 404
    assert head_of(server, NAME) == commits[0]
    assert bucket.get(f"{NAME}.zt") == model(1)
    eventually(lambda: claims(bucket) == [])


def test_deleted_model_is_still_in_its_commit(moto_bucket, serve_bucket):
    server = serve(serve_bucket, moto_bucket, "--writable")
    commit = publish(server, NAME, 1)
    assert ask(server, "DELETE", model_path(NAME)).status == 204
    assert get(server, model_path(NAME)).status == 404
    assert_content(server, component(NAME, commit), 1)
    assert ask(server, "DELETE", f"{model_path(NAME)}?purge").status == 204
    assert get(server, component(NAME, commit)).status == 404


def test_uploads_are_not_read_back_to_hash_them(moto_bucket, meddler, serve_bucket):
    server = serve(serve_bucket, moto_bucket, "--writable", endpoint=meddler.endpoint)
    tally = meddler.counting()
    for seed in (1, 2, 3):
        publish(server, NAME, seed)
        assert put_file(server, FILE, b"%d" % seed).status in (201, 204)
    assert lfs.commit(server, lfs.inline("notes.txt", b"notes"), repo="org/model").status == 200
    assert tally.count("read") == 0, tally


def test_bytes_that_are_kept_do_not_pass_through_the_server(moto_bucket, meddler, serve_bucket):
    server = serve(serve_bucket, moto_bucket, "--writable", endpoint=meddler.endpoint)
    publish(server, NAME, 1)
    tally = meddler.counting()
    publish(server, NAME, 2)
    copies = [one.request for one in tally.seen if "x-amz-copy-source" in one.request.fields]
    assert [one.key for one in copies] == kept_keys(moto_bucket)
    assert all(one.body == b"" for one in copies)


def test_object_above_the_limit_of_one_copy_is_copied_in_parts(moto_bucket, meddler, serve_bucket):
    # One request copies 320 times as much as a part has, and a copied part has 64 times as much.
    part_bytes = 1 << 17
    server = serve(serve_bucket, moto_bucket, "--writable", endpoint=meddler.endpoint, s3__part_bytes=part_bytes)
    large = b"1" * (320 * part_bytes + 1)
    path = "/files/org/model/large.bin"
    moto_bucket.put("org/model/large.bin", large)
    tally = meddler.counting()
    assert put_file(server, path, b"small").status == 204
    parts = [one for one in tally.seen if "x-amz-copy-source-range" in one.request.fields]
    assert len(parts) == 6
    commit = listed_commits(server, "org/model")[0]
    answer = get(server, f"{path}?revision={commit}")
    assert (answer.status, oid_of(answer.body)) == (200, oid_of(large))


def test_server_that_only_reads_serves_revisions_of_others(moto_bucket, serve_bucket):
    writer = serve(serve_bucket, moto_bucket, "--writable")
    first = publish(writer, NAME, 1)
    reader = serve(serve_bucket, moto_bucket, s3__poll_s=3600)
    second = publish(writer, NAME, 2)
    assert set_revision(writer, NAME, "v1", first).status == 201
    assert eventually(lambda: get(reader, component(NAME, "v1")).status == 200)
    assert_content(reader, component(NAME, "v1"), 1)
    assert eventually(lambda: [one["commit"] for one in revisions(reader, NAME)] == [second, first])
    assert_content(reader, component(NAME, second), 2)


def test_single_writer_needs_no_claims(moto_bucket, meddler, serve_bucket):
    server = serve(serve_bucket, moto_bucket, "--writable", endpoint=meddler.endpoint, s3__single_writer=True)
    tally = meddler.counting()
    commits = [publish(server, NAME, seed) for seed in (1, 2)]
    assert set_revision(server, NAME, "main", commits[0], "branch").status == 200
    assert_content(server, component(NAME), 1)
    assert [one for one in tally.seen if ".ztserve/claims/" in one.request.path] == []


def without_conditions(request, handler):
    """As a store that ignores them."""
    request.fields = {name: value for name, value in request.fields.items() if not re.search("if-(none-)?match$", name)}
    return handler.forward(request)


def test_store_that_ignores_conditions_keeps_versions_of_one_server(moto_bucket, meddler, serve_bucket):
    meddler.meddle(without_conditions)
    server = serve(serve_bucket, moto_bucket, "--writable", endpoint=meddler.endpoint, s3__single_writer=True)
    commits = [publish(server, NAME, seed) for seed in (1, 2, 3)]
    assert set_revision(server, NAME, "main", commits[0], "branch").status == 200
    for commit, seed in zip(commits, (1, 2, 3)):
        assert_content(server, component(NAME, commit), seed)
    assert "unconditional writes" in server.log


def test_hub_clients_commit_tag_and_branch(moto_bucket, serve_bucket):
    hub = pytest.importorskip("huggingface_hub", reason="skipped: huggingface_hub is not installed")
    server = serve(serve_bucket, moto_bucket, "--writable")
    api = hub.HfApi(endpoint=server.url, token=False)
    repo = "acme/tiny"
    api.create_repo(repo)
    for seed in (1, 2):
        api.upload_file(repo_id=repo, path_or_fileobj=model(seed), path_in_repo="model.zt", commit_message=f"v{seed}")
    commits = api.list_repo_commits(repo)
    assert [one.title for one in commits][:2] == ["v2", "v1"]
    api.create_tag(repo, tag="v1", revision=commits[1].commit_id)
    api.create_branch(repo, branch="side", revision="v1")
    api.upload_file(repo_id=repo, revision="side", path_or_fileobj=b"{}", path_in_repo="notes.json", commit_message="notes")
    assert sorted(api.list_repo_files(repo, revision="side")) == ["model.zt", "notes.json"]
    assert api.list_repo_files(repo, revision="main") == ["model.zt"]
    path = api.hf_hub_download(repo, "model.zt", revision="v1", cache_dir=server.place / "hub")
    assert open(path, "rb").read() == model(1)
    api.delete_tag(repo, tag="v1")
    api.delete_branch(repo, branch="side")


# --- several servers ---


def put_until_decided(server, target, data, **fields):
    """Repeats a write that another server kept waiting."""
    answers = []

    def is_decided():
        answers.append(put_file(server, target, data, **fields))
        return answers[-1].status not in (409, 503)

    eventually(is_decided, within_s=DECIDED_S)
    return answers[-1]


def test_servers_that_write_one_repository_lose_no_commit(bucket, serve_bucket):
    servers = [serve(serve_bucket, bucket, "--writable") for _ in range(2)]
    acknowledged, errors = [], []

    def write(index):
        try:
            for turn in range(4):
                target = f"/files/org/model/{index}.txt"
                answer = put_until_decided(servers[index], target, f"{index} {turn}".encode())
                assert answer.status in (201, 204), answer
                acknowledged.append(answer["ZT-Commit"])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for server in servers:
        listed = eventually(lambda server=server: (found := listed_commits(server, "org/model")) and set(acknowledged) <= set(found) and found)
        assert len(listed) == len(set(listed))
    assert listed_commits(servers[0], "org/model") == listed_commits(servers[1], "org/model")
    eventually(lambda: claims(bucket) == [])


def test_one_of_several_writers_wins_an_expected_commit(moto_bucket, serve_bucket):
    servers = [serve(serve_bucket, moto_bucket, "--writable") for _ in range(2)]
    commits = [publish(servers[0], NAME, seed) for seed in (1, 2)]
    assert set_revision(servers[0], NAME, "moving", commits[0]).status == 201
    path = f"/v1/models/{quote(NAME, safe='')}/revisions/moving"
    statuses = []

    def move(index):
        body = f'{{"commit": "{commits[1]}"}}'.encode()
        statuses.append(put_until_decided(servers[index % 2], path, body, If_Match=f'"{commits[0]}"').status)

    threads = [threading.Thread(target=move, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 412, 412, 412]


def test_uploads_of_another_server_are_not_read_to_hash_them(moto_bucket, meddler, serve_bucket):
    """Although neither has listed the bucket since the other's upload."""
    options = {"endpoint": meddler.endpoint, "s3__poll_s": 3600}
    servers = [serve(serve_bucket, moto_bucket, "--writable", **options) for _ in range(2)]
    assert put_file(servers[0], "/files/org/model/a.zt", model(1)).status == 201
    tally = meddler.counting()
    for turn in (2, 3, 4):
        assert put_file(servers[turn % 2], f"/files/org/model/{turn % 2}.zt", model(turn)).status in (201, 204)
    assert tally.count("read") == 0, tally
    titles = ["PUT 0.zt", "PUT 1.zt", "PUT 0.zt", "PUT a.zt"]
    for server in servers:
        eventually(lambda server=server: [one["title"] for one in revisions(server, "org/model/a")] == titles)


def test_file_that_another_server_removed_is_restored(moto_bucket, serve_bucket):
    """Although the server has not listed the bucket since the removal."""
    first, second = (serve(serve_bucket, moto_bucket, "--writable", s3__poll_s=3600) for _ in range(2))
    commit = publish(first, NAME, 1)
    assert eventually(lambda: ask(second, "DELETE", model_path(NAME)).status == 204)
    assert set_revision(first, NAME, "main", commit, "branch").status == 200
    assert moto_bucket.get(f"{NAME}.zt") == model(1)


def test_commit_of_another_server_is_found_at_once(moto_bucket, serve_bucket):
    writer, reader = (serve(serve_bucket, moto_bucket, "--writable", s3__poll_s=3600) for _ in range(2))
    # Other repositories each time: a log is read at most a few times a second.
    for seed in range(1, 6):
        repository = f"org/model{seed}"
        name = f"{repository}/weights"
        for wanted in (seed, seed + 10):
            commit = publish(writer, name, wanted)
        if seed % 2:
            assert_content(reader, component(name, commit), wanted)
        else:
            assert get(reader, f"/files/{repository}@{commit}/weights.zt").body == model(wanted)
        assert set_revision(writer, name, "tag", commit).status == 201
        assert get(reader, f"{model_path(name)}/revisions/tag").json()["commit"] == commit


def test_commits_that_were_not_read_yet_give_no_access(moto_bucket, serve_bucket, tmp_path):
    """The token is for models in the root, and the commit is of a folder whose model has such a name."""
    admin, root = Client("admin", "admin"), Client("root", "read", "w*")
    tokens = write_tokens(tmp_path / "tokens", admin, root)
    writer = serve(serve_bucket, moto_bucket, "--writable", "--tokens", tokens)
    commit = publish(writer, "twin/w", 1, admin.fields)
    publish(writer, "twin/w", 2, admin.fields)
    reader = serve(serve_bucket, moto_bucket, "--tokens", tokens)
    path = f"/v1/models/twin@{commit}/w/objects/w/data"
    assert root.get(reader, path).status == 403
    assert admin.get(reader, path).body == content(1)
    assert root.get(reader, path).status == 403


def test_reader_waits_for_a_commit_of_another_server(moto_bucket, serve_bucket):
    writer, reader = (serve(serve_bucket, moto_bucket, "--writable") for _ in range(2))
    first = publish(writer, NAME, 1)
    assert eventually(lambda: get(reader, component(NAME, first)).status == 200)
    waiting = Waiting(reader, NAME, first)
    second = publish(writer, NAME, 2)
    assert waiting.commit() == second


def test_model_that_another_server_replaced_is_read_at_its_commit(moto_bucket, serve_bucket):
    writer, reader = (serve(serve_bucket, moto_bucket, "--writable", s3__poll_s=3600) for _ in range(2))
    commits = [publish(writer, NAME, 1)]
    assert eventually(lambda: get(reader, component(NAME, commits[0])).status == 200)
    for seed in (2, 3):
        commits.append(publish(writer, NAME, seed))
        for number, commit in enumerate(commits):
            assert eventually(lambda commit=commit: get(reader, component(NAME, commit)).status == 200)
            assert_content(reader, component(NAME, commit), number + 1)



# --- killed between requests ---


class BucketRepository(Repository):
    """A repository of a bucket that a test changes, and whose promises it knows."""

    def settle(self, server, bucket):
        """Goes on from the files that the bucket has, whatever became of the change that was cut off."""
        below = f"{self.name}/"
        self.files = {key[len(below) :]: bucket.get(key) for key in bucket.keys() if key.startswith(below)}
        self.commits = listed_commits(server, self.name)
        self.tags, branches = listed_refs(server, self.name)
        self.branches = {name: branches[name] for name in branches if name != "main"}
        self.doubtful = None


def two_hours_ago(request, handler):
    """The store's answer, as if its kept files were two hours old."""
    true = handler.forward(request)
    if true.status != 200:
        return true
    if request.kind == "list":
        body = re.sub(rb"<LastModified>20..-", b"<LastModified>2001-", true.body)
        return replace(true, body=body)
    return true.with_fields(Last_Modified="Mon, 01 Jan 2001 00:00:00 GMT")


def is_of_history(request):
    return HIDDEN in unquote(request.target)


class BucketWalk:
    """A server over a bucket that is killed at a chosen request to the store."""

    def __init__(self, bucket, meddler, serve_bucket, keep=1000):
        self.bucket, self.meddler, self.serve_bucket, self.keep = bucket, meddler, serve_bucket, keep
        self.place = serve_bucket.place()
        self.repository = BucketRepository("org/r", random.Random(7), keep)
        self.count, self.kill_at = 0, None
        meddler.meddle(self.count_down, when=lambda request: self.kill_at is not None)
        self.server = self.start()

    def start(self):
        environment = {"ZTSERVE_VERSIONS_KEEP": str(self.keep)}
        return self.serve_bucket(
            self.bucket, "--writable", place=self.place, endpoint=self.meddler.endpoint, environment=environment, s3__poll_s=3600
        )

    def count_down(self, request, handler):
        """Kills the server before or after the request of that number is carried out."""
        self.count += 1
        if self.count != self.kill_at:
            return handler.forward(request)
        if self.kill_at % 2:
            handler.forward(request)
        self.server.kill()
        handler.reset()
        return None

    def restart(self):
        """As a minute later: claims of the killed server count as dead."""
        self.kill_at = None
        self.server.kill()
        for key in claims(self.bucket):
            self.bucket.delete(key)
        self.server = self.start()

    def is_killed_at(self, number, change):
        """Returns False if the change made fewer requests."""
        self.count, self.kill_at = 0, number
        is_made = self.repository.make(change, self.server)
        self.kill_at = None
        if is_made:
            return False
        self.restart()
        self.repository.check(self.server)
        self.repository.settle(self.server, self.bucket)
        return True

    def is_collected(self):
        """Only files that commits name are kept, once they are old."""
        return {key[-65:].replace("/", "") for key in kept_keys(self.bucket)} <= self.repository.named

    def collect(self):
        """As two hours later."""
        rule = self.meddler.meddle(two_hours_ago, "head", "list", when=is_of_history)
        self.restart()
        self.repository.check(self.server)
        eventually(self.is_collected)
        self.meddler.stop(rule)


KILLS = range(1, 60, 7)


@pytest.mark.parametrize("change", Repository.CHANGES, ids=lambda change: change.__name__)
def test_changes_survive_a_kill_at_a_request(change, moto_bucket, meddler, serve_bucket):
    walk = BucketWalk(moto_bucket, meddler, serve_bucket)
    for prepared in (Repository.commit, Repository.put_model, Repository.put_file, Repository.commit_to_branch):
        assert walk.repository.make(prepared, walk.server)
    kills = sum(walk.is_killed_at(number, change) for number in KILLS)
    assert kills > 0
    walk.collect()


def test_collections_survive_a_kill_at_a_request(moto_bucket, meddler, serve_bucket):
    walk = BucketWalk(moto_bucket, meddler, serve_bucket, keep=2)
    kills = 0
    for number in KILLS:
        for _ in range(3):
            assert walk.repository.make(Repository.put_new, walk.server)
        rule = meddler.meddle(two_hours_ago, "head", "list", when=is_of_history)
        walk.restart()
        walk.count, walk.kill_at = 0, number
        eventually(lambda: walk.server.process.poll() is not None or len(kept_keys(moto_bucket)) == 1)
        kills += walk.server.process.poll() is not None
        meddler.stop(rule)
        walk.restart()
        walk.repository.check(walk.server)
        walk.repository.settle(walk.server, moto_bucket)
    assert kills > 0
    walk.collect()


def test_two_servers_collect_what_no_commit_names(moto_bucket, meddler, serve_bucket):
    options = {"endpoint": meddler.endpoint, "environment": {"ZTSERVE_VERSIONS_KEEP": "2"}}
    servers = [serve_bucket(moto_bucket, "--writable", **options) for _ in range(2)]
    for turn in range(4):
        for index, server in enumerate(servers):
            answer = put_until_decided(server, "/files/org/r/a.txt", b"%d %d" % (turn, index))
            assert answer.status in (201, 204), answer
    assert len(kept_keys(moto_bucket)) == 7
    for server in servers:
        server.kill()
    meddler.meddle(two_hours_ago, "head", "list", when=is_of_history)
    servers = [serve_bucket(moto_bucket, "--writable", place=server.place, **options) for server in servers]
    eventually(lambda: len(kept_keys(moto_bucket)) == 1, within_s=DECIDED_S)
    for server in servers:
        for commit, data in zip(listed_commits(server, "org/r"), (b"3 0", b"3 1")):
            answer = get(server, f"/files/org/r/a.txt?revision={commit}")
            assert (answer.status, answer.body) == (200, data)
