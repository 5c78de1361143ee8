"""What operators ask of a mirror: the list of upstreams, prefetches, metrics, readiness and settings that reload."""

import json
import re
import signal
import subprocess

import pytest

from clients import Client, write_tokens
from mock_hub import MockHub
from pull_through import safetensors
from server_process import PROGRAM, TOP
from wire import ask, assert_problem, eventually, get

REPO = "acme/tiny"
FILES = {"config.json": b'{"model_type": "tiny"}\n', "weights.bin": bytes(range(256)) * 12000}
SIZE = sum(map(len, FILES.values()))


@pytest.fixture
def hub():
    hub = MockHub()
    hub.add(REPO, FILES)
    yield hub
    hub.close()


@pytest.fixture
def mirror(start_server, hub, tmp_path):
    """Starts a server on a folder, with upstreams of the hub that have these settings; `write` changes them."""

    def write(**settings):
        file.write_text(json.dumps({"upstreams": [{"name": "up", "url": hub.endpoint, **settings}], **(top or {})}))

    def start(folder="root", beside=None, **settings):
        nonlocal top
        top = beside
        (tmp_path / folder).mkdir(exist_ok=True)
        write(**settings)
        server = start_server(tmp_path / folder, "--config", file)
        server.write = write
        return server

    top, file = None, tmp_path / "ztserve.json"
    return start


def prefetch_path(repo=REPO, upstream="up", **query):
    return f"/v1/upstreams/{upstream}/prefetch?" + "&".join(f"{name}={value}" for name, value in {"repository": repo, **query}.items())


def prefetch(server, *arguments, **options):
    command = [str(PROGRAM), "prefetch", *arguments, "--server", server.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def finished(server, path):
    """The last report of a prefetch."""

    def ended():
        report = get(server, path).json()
        return report if report["state"] in ("done", "failed") else None

    return eventually(ended)


def shown(server):
    (upstream,) = get(server, "/v1/upstreams").json()["upstreams"]
    return upstream


def samples(server):
    """{(name, result): value} of the metrics of the upstream."""
    text = get(server, "/metrics").body.decode()
    found = re.findall(r'^(ztserve_upstream_\w+)\{upstream="up"(?:,result="(\w+)")?\} (\d+)$', text, re.MULTILINE)
    return {(name.removeprefix("ztserve_upstream_"), result): int(value) for name, result, value in found}


def test_a_prefetched_repository_is_served_without_its_upstream(mirror, hub):
    server = mirror()
    began = ask(server, "POST", prefetch_path())
    assert (began.status, began.json()["repository"], began.json()["revision"]) == (202, REPO, "main")
    report = finished(server, prefetch_path())
    assert (report["state"], report["files"], report["files_done"]) == ("done", 2, 2)
    assert (report["bytes"], report["bytes_done"], report["commit"]) == (SIZE, SIZE, hub.repositories[REPO].main.id)
    hub.go_away()
    for path, content in FILES.items():
        got = get(server, f"/files/{REPO}/{path}")
        assert (got.status, got.body, got["ZT-Verified"]) == (200, content, None)


def test_the_command_waits_and_shows_the_result(mirror, hub):
    server = mirror()
    result = prefetch(server, REPO, "--progress", "json")
    assert (result.returncode, result.stdout) == (0, f"{REPO}: 2 files, {SIZE} bytes from up, complete and verified\n")
    last = json.loads(result.stderr.splitlines()[-1])
    assert (last["bytes"], last["total_bytes"]) == (SIZE, SIZE)
    tally = hub.counting()
    assert prefetch(server, REPO, "--upstream", "up", "--quiet").stdout == ""
    assert tally.sent_bytes() == 0


def test_the_command_fails_with_the_reason(mirror, hub):
    server = mirror(match=["acme/*"])
    for arguments, words in (
        (["acme/none"], "acme/none: "),
        (["other/tiny"], "no upstream of the server has repositories of this name"),
        ([REPO, "--revision", "v9"], f"{REPO}: "),
        ([REPO, "--upstream", "down"], "there is no upstream of this name"),
    ):
        result = prefetch(server, *arguments)
        assert (result.returncode, result.stdout) == (1, "") and words in result.stderr, result
    hub.go_away()
    assert prefetch(server, "acme/later").returncode == 1
    for arguments in ([], [REPO, REPO], ["http://127.0.0.1/acme/tiny"]):
        assert prefetch(server, *arguments).returncode == 2


@pytest.mark.parametrize(
    "path, status, code",
    [
        (prefetch_path(upstream="down"), 404, "not-found"),
        (prefetch_path("other/tiny"), 404, "not-found"),
        (prefetch_path(""), 400, "invalid-request"),
        ("/v1/upstreams/up/prefetch", 400, "invalid-request"),
        (prefetch_path(revision=""), 400, "invalid-request"),
        (prefetch_path(commit="main"), 400, "invalid-request"),
        (prefetch_path() + "&repository=acme/other", 400, "invalid-request"),
    ],
)
def test_a_wrong_prefetch_is_refused(mirror, path, status, code):
    server = mirror(match=["acme/*"])
    assert_problem(ask(server, "POST", path), status, code)
    assert_problem(get(server, prefetch_path()), 404, "not-found")


def test_prefetching_needs_the_scope_write_for_the_repository(mirror, hub, tmp_path):
    reader, writer, other = Client("reader", "read"), Client("writer", "write", "acme/*"), Client("other", "write", "team/*")
    write_tokens(tmp_path / "tokens", reader, writer, other)
    server = mirror(beside={"auth": {"tokens": str(tmp_path / "tokens")}})
    tally = hub.counting()
    assert ask(server, "POST", prefetch_path()).status == 401
    assert reader.ask(server, "POST", prefetch_path()).status == 403
    assert other.ask(server, "POST", prefetch_path()).status == 403
    assert other.get(server, prefetch_path()).status == 403
    assert tally.requests == 0
    assert writer.ask(server, "POST", prefetch_path()).status == 202
    assert eventually(lambda: reader.get(server, prefetch_path()).json()["state"] == "done")
    assert reader.get(server, "/v1/upstreams").status == 200


def test_the_list_and_the_metrics_count_what_was_asked(mirror, hub):
    server = mirror(match=["acme/*"])
    assert shown(server)["state"] == "unasked"
    prefetch(server, REPO)
    before = samples(server)
    assert before["fetched_bytes_total", ""] >= SIZE and before["lookups_total", ""] > 0 and before["away", ""] == 0
    assert (before["repositories", ""], before["wrong_files_total", ""]) == (1, 0)
    for path, content in 2 * list(FILES.items()):
        assert get(server, f"/files/{REPO}/{path}").body == content
    after = samples(server)
    assert after["files_opened_total", "hit"] > before["files_opened_total", "hit"]
    assert after["saved_bytes_total", ""] >= SIZE
    assert after["fetched_bytes_total", ""] == before["fetched_bytes_total", ""]
    listed = shown(server)
    assert (listed["name"], listed["kind"], listed["url"], listed["match"]) == ("up", "hub", hub.endpoint, ["acme/*"])
    assert (listed["state"], listed["fetched_bytes"]) == ("reached", after["fetched_bytes_total", ""])
    assert get(server, "/readyz").json() == {"status": "ready", "upstreams": "reached"}


def test_an_upstream_that_is_away_is_named_with_its_reason(mirror, hub):
    server = mirror()
    hub.go_away()
    assert get(server, "/files/acme/none/config.json").status == 503
    listed = shown(server)
    assert listed["state"] == "away" and listed["failures"] > 0 and listed["reason"]
    assert samples(server)["away", ""] == 1
    ready = get(server, "/readyz")
    assert (ready.status, ready.json()) == (200, {"status": "ready", "upstreams": "away"})


def test_the_page_describes_exactly_the_metrics_of_upstreams(mirror):
    page = (TOP / "docs" / "operations.md").read_text().split("## Metrics", 1)[1].split("\n## ", 1)[0]
    described = set(re.findall(r"`(ztserve_upstream_[a-z_]+)`", page))
    assert {f"ztserve_upstream_{name}" for name, _ in samples(mirror())} == described


def test_a_reload_takes_the_upstream_offline_and_changes_its_token(mirror, hub, tmp_path):
    hub.tokens.add("right")
    hub.add("acme/private", {"a.json": b"{}"}, is_private=True)
    token = tmp_path / "token"
    token.write_text("wrong\n")
    token.chmod(0o600)
    server = mirror(token_file=str(token))
    assert get(server, "/files/acme/private/a.json").status in (404, 502, 503)
    assert server.wait_for_line('the upstream "up" refuses the token of token_file (401)')
    token.write_text("right\n")
    server.signal(signal.SIGHUP)
    assert eventually(lambda: get(server, "/files/acme/private/a.json").status == 200)
    server.write(offline=True)
    server.signal(signal.SIGHUP)
    assert eventually(lambda: shown(server)["state"] == "offline")
    tally = hub.counting()
    assert get(server, f"/files/{REPO}/config.json").status in (404, 503)
    assert tally.requests == 0
    assert "right" not in server.log and "wrong" not in server.log


def test_every_face_says_why_the_files_of_a_gated_repository_are_missing(mirror, hub):
    hub.add("acme/gated", {"model.safetensors": safetensors(100_000)}, is_gated=True)
    server = mirror()
    (commit,) = hub.repositories["acme/gated"].commits
    for path in (
        "/v1/models/acme%2Fgated%2Fmodel",
        "/v1/models/acme%2Fgated%2Fmodel/export?format=zt",
        "/files/acme/gated/model.safetensors",
        f"/acme/gated/resolve/{commit}/model.safetensors",
    ):
        assert "restricts access" in assert_problem(get(server, path), 502, "upstream-unavailable")["detail"]
    answer = get(server, "/s3/models/acme/gated/model.safetensors")
    assert answer.status == 503 and b"restricts access" in answer.body


def test_a_known_model_that_is_not_here_needs_its_upstream(mirror, hub):
    hub.add("acme/large", {"model.safetensors": safetensors(100_000), "config.json": b"{}"})
    server = mirror()
    assert get(server, "/files/acme/large/config.json").status == 200
    hub.go_away()
    for path in ("/v1/models/acme%2Flarge%2Fmodel", "/files/acme/large/model.safetensors"):
        assert "upstream" in assert_problem(get(server, path), 503, "upstream-unavailable")["detail"]


def repositories(server):
    return get(server, "/v1/upstreams/up/repositories").json()["repositories"]


def test_the_list_of_repositories_says_how_far_and_how_fresh_they_are(mirror, hub):
    hub.add("acme/large", {"config.json": b"{}", "weights.bin": bytes(3_000_000)})
    server = mirror()
    assert repositories(server) == []
    assert get(server, "/files/acme/large/config.json").status == 200
    assert prefetch(server, REPO).returncode == 0
    part, whole = repositories(server)
    assert (part["repository"], part["files"], part["files_verified"]) == ("acme/large", 2, 1)
    assert (part["bytes"], part["bytes_verified"]) == (3_000_002, 2)
    assert (whole["repository"], whole["commit"], whole["bytes_verified"]) == (REPO, hub.repositories[REPO].main.id, SIZE)
    assert whole["checked"] and whole["modified"]
    assert_problem(get(server, "/v1/upstreams/down/repositories"), 404, "not-found")


def test_prefetching_checks_again_whether_main_has_moved(mirror, hub):
    server = mirror(revalidate_s=100_000)
    assert prefetch(server, REPO).returncode == 0
    moved = hub.add(REPO, {"config.json": b"[]\n"})
    assert get(server, f"/files/{REPO}/config.json").body == FILES["config.json"]
    assert prefetch(server, REPO).returncode == 0
    assert get(server, f"/files/{REPO}/config.json").body == b"[]\n"
    assert repositories(server)[0]["commit"] == moved


def removal(repo=REPO):
    return f"/v1/upstreams/up/repositories?repository={repo}"


def test_a_removed_repository_frees_its_space_but_not_what_others_share(mirror, hub):
    shared = bytes(range(256)) * 9000
    hub.add("acme/large", {"model.safetensors": safetensors(4_000_000), "shared.bin": shared})
    hub.add("acme/other", {"shared.bin": shared})
    server = mirror("root", {"writable": True})
    for repo in ("acme/large", "acme/other"):
        assert prefetch(server, repo).returncode == 0
    assert get(server, "/v1/models/acme%2Flarge%2Fmodel").status == 200
    used = shown(server)["cache_used_bytes"]
    assert ask(server, "DELETE", removal("acme/large")).status == 204
    assert [one["repository"] for one in repositories(server)] == ["acme/other"]
    assert eventually(lambda: used - shown(server)["cache_used_bytes"] >= 4_000_000)
    assert eventually(lambda: get(server, "/v1/models").json()["models"] == [])
    assert_problem(ask(server, "DELETE", removal("acme/large")), 404, "not-found")
    hub.go_away()
    assert get(server, "/files/acme/other/shared.bin").body == shared
    assert get(server, "/files/acme/large/shared.bin").status == 503
    assert shown(server)["wrong_files"] == 0 and " error " not in server.log
    hub.come_back()
    assert eventually(lambda: get(server, "/v1/models/acme%2Flarge%2Fmodel").status == 200)
    assert server.stop() == 0
    assert len(repositories(mirror("root", {"writable": True}))) == 2


def test_a_download_that_resumes_after_the_removal_begins_again(mirror, hub):
    content = safetensors(4_000_000)
    hub.add("acme/large", {"model.safetensors": content})
    server = mirror(beside={"writable": True})
    assert get(server, "/files/acme/large/model.safetensors", Range="bytes=0-2999999").body == content[:3_000_000]
    assert ask(server, "DELETE", removal("acme/large")).status == 204
    resumed = get(server, "/files/acme/large/model.safetensors", Range="bytes=3000000-")
    assert (resumed.status, resumed.body) == (200, content)


def test_removing_needs_a_writable_server_or_the_scope_write(mirror, tmp_path):
    assert_problem(ask(mirror(), "DELETE", removal()), 403, "read-only")
    reader, writer = Client("reader", "read"), Client("writer", "write", "acme/*")
    write_tokens(tmp_path / "tokens", reader, writer)
    server = mirror("other", {"auth": {"tokens": str(tmp_path / "tokens")}})
    assert writer.get(server, f"/files/{REPO}/config.json").status == 200
    assert reader.ask(server, "DELETE", removal()).status == 403
    assert writer.ask(server, "DELETE", removal("team/tiny")).status == 403
    assert writer.ask(server, "DELETE", removal()).status == 204


WHOLE = ["acme/tiny/*", "acme/*", "ac?e/[st]iny/*", "*"]
PARTS = ["acme/tiny/w*", "acme/tiny/[!c]*", "acme/tiny/*s", "acme/tiny/config acme/tiny/weights", "acme/tiny"]


@pytest.mark.parametrize("globs", WHOLE + PARTS)
def test_only_a_token_for_all_of_a_repository_downloads_or_removes_it(mirror, hub, tmp_path, globs):
    """The class of a glob may deny files within the repository."""
    client, operator = Client("client", "write", *globs.split()), Client("operator", "write")
    write_tokens(tmp_path / "tokens", client, operator)
    server = mirror(beside={"auth": {"tokens": str(tmp_path / "tokens")}})
    tally = hub.counting()
    prefetched = client.ask(server, "POST", prefetch_path())
    assert prefetched.status == (202 if globs in WHOLE else 403)
    assert globs in WHOLE or tally.requests == 0
    assert operator.ask(server, "POST", prefetch_path()).status == 202
    assert eventually(lambda: operator.get(server, prefetch_path()).json()["state"] == "done")
    assert client.get(server, prefetch_path()).status == (403 if globs == "acme/tiny" else 200)
    assert client.ask(server, "DELETE", removal()).status == (204 if globs in WHOLE else 403)
    kept = operator.get(server, "/v1/upstreams/up/repositories").json()["repositories"]
    assert len(kept) == (0 if globs in WHOLE else 1)


def test_prefetching_more_than_may_be_kept_fails(mirror, hub):
    hub.add("acme/huge", {f"{number}.bin": bytes([number]) * (1 << 25) for number in range(3)})
    result = prefetch(mirror(keep=1 << 26), "acme/huge")
    assert result.returncode == 1 and "the repository has 100663296 bytes, but only 67108864 may be kept" in result.stderr


def test_prefetching_from_another_upstream_than_the_first_that_matches_is_refused(start_server, hub, tmp_path):
    upstreams = [{"name": "first", "url": hub.endpoint, "match": ["acme/*"]}, {"name": "up", "url": f"{hub.endpoint}/second"}]
    (tmp_path / "two.json").write_text(json.dumps({"upstreams": upstreams}))
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--config", tmp_path / "two.json")
    refused = assert_problem(ask(server, "POST", prefetch_path()), 404, "not-found")
    assert refused["detail"] == "this repository is mirrored from the upstream first"


def test_a_name_that_no_upstream_has_is_reported_so(mirror):
    server = mirror()
    missing = assert_problem(get(server, "/v1/models/acme%2Fnone%2Fmodel"), 404, "model-not-found")
    assert missing["detail"].startswith("there is no model named acme/none/model, here or upstream; models have the names of files")
    assert "here or upstream" in assert_problem(get(server, "/api/models/acme/none"), 404, "not-found")["detail"]


def test_a_proxy_of_the_environment_is_ignored_and_named(mirror, hub, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    server = mirror()
    assert get(server, f"/files/{REPO}/config.json").status == 200
    assert "upstream up: http_proxy is ignored" in server.log


def test_repositories_of_an_unknown_upstream_are_not_served_but_named(mirror, hub):
    server = mirror()
    assert get(server, f"/files/{REPO}/config.json").status == 200
    assert server.stop() == 0
    server = mirror(url="http://127.0.0.1:9")
    assert server.wait_for_line(f"not configured are not served (1, for example of {hub.endpoint})")
    assert shown(server)["repositories"] == 0
    assert server.stop() == 0
    assert shown(mirror(offline=True))["repositories"] == 1


def test_mirrored_files_in_the_root_are_not_served(mirror, hub, tmp_path):
    """Nor is the file with the token."""
    root = tmp_path / "root"
    (root / "kept").mkdir(parents=True)
    (root / "token.json").write_text("secret\n")
    hub.tokens.add("secret")
    server = mirror(beside={"cache": {"dir": str(root / "kept")}}, token_file=str(root / "token.json"))
    prefetch(server, REPO)
    listed = get(server, "/files/", Accept="application/json").json()
    assert "secret" not in get(server, "/files/token.json").body.decode() and "token.json" not in json.dumps(listed)
    assert get(server, "/files/kept/mirror/", Accept="application/json").status == 404
