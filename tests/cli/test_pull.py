"""pull brings whole and right files, whatever server, network and a killed process do; what it cannot bring has no name."""

import http.server
import json
import os
import random
import signal
import subprocess
import threading
from dataclasses import replace
from types import SimpleNamespace

import joined
import meddler as meddling
import pytest
from containers import dense, dense_in_shard, pattern, shard_entry, zt1, zt2, zt2_data_shard
from server_process import PROGRAM
from wire import eventually

SIZE = 2_000_000
MODEL = zt1({"a": dense(pattern(SIZE // 2, seed=1), digest="sha256"), "b": dense(pattern(SIZE // 2, seed=2), digest="sha256")})
OTHER = zt1({"a": dense(pattern(SIZE, seed=3), digest="sha256")})


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "org").mkdir(parents=True)
    (folder / "org/m.zt").write_bytes(MODEL)
    return folder


@pytest.fixture
def server(start_server, root):
    return start_server(root)


@pytest.fixture
def pull(ztserve, here):
    def run(url, *arguments, **options):
        return ztserve("pull", url, *arguments, folder=here, **options)

    return run


def is_data(request):
    """A range of more than the first bytes."""
    return request.method == "GET" and request.range is not None and request.range[1] > 100


def is_first_data(request):
    """However often it is asked again: what came is not asked for once more."""
    return is_data(request) and request.range[0] == 0


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_failed(result, here, *words, left=()):
    """One clear line, and nothing under the file's name."""
    assert result.status == 1, result.errors
    assert len(result.error_lines) == 1, result.errors
    assert all(word in result.errors for word in words), result.errors
    assert names(here) == sorted(left)


# --- what URLs name ---


@pytest.mark.parametrize("path", ["/v1/models/org%2Fm", "/v1/models/org/m", "/org/m", "/files/org/m.zt"])
def test_every_form_of_url_brings_the_file_under_its_own_name(server, pull, here, path):
    result = pull(server.url + path)
    assert (result.status, result.errors) == (0, "")
    assert names(here) == ["m.zt"]
    assert (here / "m.zt").read_bytes() == MODEL
    assert "2 verified" in result.output


@pytest.mark.parametrize("output, path", [("x.zt", "x.zt"), ("new.zt", "new.zt"), ("sub/", "sub/m.zt"), ("sub", "sub/m.zt")])
def test_the_file_goes_where_it_is_wanted(server, pull, here, output, path):
    (here / "sub").mkdir()
    assert pull(server.url + "/org/m", "-o", output, "-q").output == ""
    assert (here / path).read_bytes() == MODEL


def test_a_folder_that_is_not_there_is_made(server, pull, here):
    assert pull(server.url + "/org/m", "-o", "new/deep/").status == 0
    assert (here / "new/deep/m.zt").read_bytes() == MODEL


def test_a_folder_that_cannot_be_made_is_named(server, pull, here):
    (here / "file").write_bytes(b"x")
    result = pull(server.url + "/org/m", "-o", "file/deep/")
    assert result.status == 1 and "file/deep/: the folder cannot be made" in result.errors
    assert names(here) == ["file"]


def test_what_is_selected_is_the_servers_export(server, pull, here, ztserve):
    assert pull(server.url + "/org/m", "--match", "b*", "--format", "npz").status == 0
    assert names(here) == ["m.npz"]
    listed = json.loads(ztserve("ls", "--json", here / "m.npz").output)
    assert list(listed["objects"]) == ["b"]


@pytest.mark.parametrize(
    ("output", "options", "kind"),
    [("x.safetensors", [], "safetensors"), ("x.NPZ", [], "npz"), ("x.safetensors", ["--match", "a"], "safetensors"),
     ("x.safetensors", ["--match", "a", "--format", "npz"], "npz"), ("x.zt", [], "zt"), ("x", [], "zt"),
         ("x.gguf", ["--force"], "zt")],
)  # fmt: skip
def test_the_extension_of_the_path_says_which_format(server, pull, here, ztserve, output, options, kind):
    result = pull(server.url + "/org/m", "-o", output, *options)
    assert (result.status, result.errors) == (0, "")
    assert json.loads(ztserve("ls", "--json", here / output).output)["source"]["format"] == kind
    if (output, options) == ("x.zt", []):
        assert (here / output).read_bytes() == MODEL


def test_a_model_in_several_files_comes_as_one_where_the_path_says_so(server, root, pull, here, ztserve):
    for name, data in joined.files_with_index("s", [pattern(4000, seed=4), pattern(3000, seed=5)]).items():
        (root / "org" / name).write_bytes(data)
    wait_for_model(ztserve, server.url + "/org/s")
    result = pull(server.url + "/org/s", "-o", "all.safetensors")
    assert (result.status, result.errors) == (0, "")
    assert names(here) == ["all.safetensors"]
    assert set(json.loads(ztserve("ls", "--json", here / "all.safetensors").output)["objects"]) == {"w1", "w2"}


def test_each_axis_rule_is_passed_on(server, pull, here, ztserve):
    rules = ("--axis", "a:none", "--axis", "0")
    assert pull(server.url + "/org/m", "--format", "npz", "--shard", "1/4", *rules).status == 0
    listed = json.loads(ztserve("ls", "--json", here / "m.npz").output)
    assert [entry["shape"] for entry in listed["objects"].values()] == [[SIZE // 2], [SIZE // 8]]


def test_identical_bytes_are_not_transferred_again(between, pull, here):
    url = between.endpoint + "/org/m"
    assert pull(url).status == 0
    counted = between.counting()
    result = pull(url)
    assert (result.status, result.errors) == (0, "")
    assert "already exists" in result.output
    assert sum(one.sent_bytes for one in counted.seen) < 1000
    assert names(here) == ["m.zt"]


def test_other_bytes_of_that_name_are_replaced(server, pull, here):
    (here / "m.zt").write_bytes(bytes(len(MODEL)))
    assert pull(server.url + "/org/m").status == 0
    assert (here / "m.zt").read_bytes() == MODEL


@pytest.mark.parametrize("url, word", [("/nothing", "404"), ("/files/nothing.zt", "404"), ("/files/none/", "no repository"), ("/org/m/", "no repository")])
def test_what_is_not_there_is_said(server, pull, here, url, word):
    result = pull(server.url + url)
    assert result.status in (1, 2) and len(result.error_lines) == 1
    assert word in result.errors
    assert names(here) == []


def test_what_the_server_says_of_a_corrupt_component_is_shown(start_server, pull, here, root):
    content = bytearray(zt1({"a\x1b[31m": dense(pattern(4000, seed=8), "f32", [1000], digest="sha256")}))
    content[content.index(pattern(4000, seed=8)) + 5] ^= 1
    (root / "bad.zt").write_bytes(content)
    result = pull(start_server(root).url + "/bad", "--format", "safetensors")
    assert_failed(result, here, "the service returned 500: ", "digest")
    assert "\x1b" not in result.errors


def test_the_object_that_the_server_refuses_is_named(server, pull, here):
    assert_failed(pull(server.url + "/org/m", "--shard", "0/3"), here, "422", "object a")


@pytest.mark.parametrize(
    "url, word",
    [("", "http://HOST/NAME"), ("/v1/models", "lists the models"), ("/", "ztserve ls"), ("/v1/models/m?format=npz", "options")],
)
def test_a_url_that_names_no_model_is_told_what_one_is(server, pull, here, url, word):
    result = pull(server.url + url)
    assert result.status == 2 and len(result.error_lines) == 1 and word in result.errors
    assert names(here) == []


def test_a_server_that_is_none_of_models_is_told_from_one_without_the_model(plain, server, pull):
    elsewhere = pull(plain + "/org/m")
    assert elsewhere.status == 1 and "extension" in elsewhere.errors and len(elsewhere.error_lines) == 1
    assert "extension" not in pull(server.url + "/nothing").errors


@pytest.mark.parametrize(
    "arguments", [[], ["ftp://host/x"], ["m.zt"], ["http://h/a", "http://h/b"], ["http://h/a", "--jobs", "0"],
     ["http://h/a", "--axis", "1"], ["http://h/a", "-o", "-"],
     *(["http://h/a", "--shard", shard] for shard in ("x", "2/2", "0", "0/", "/1", "-1/2", "0/2x", "0/0"))],  # fmt: skip
)
def test_wrong_usage_is_told_before_anything_is_asked(refused, arguments):
    refused("pull", *arguments)


# --- models in several files ---


@pytest.mark.parametrize("make", [joined.files_with_index, joined.files_of_split, joined.files_of_split_in_capitals])
@pytest.mark.parametrize("path", ["/v1/models/org/s", None])
def test_a_model_in_several_files_comes_with_all_of_them(server, root, pull, here, ztserve, make, path):
    files = make("s", [pattern(4000, seed=4), pattern(3000, seed=5)])
    for name, data in files.items():
        (root / "org" / name).write_bytes(data)
    main = [name for name in files if "index" in name or "00001" in name][-1]
    wait_for_model(ztserve, server.url + "/v1/models/org/s")
    result = pull(server.url + (path or f"/files/org/{main}"))
    assert (result.status, result.errors) == (0, "")
    assert {name: (here / name).read_bytes() for name in names(here)} == files
    assert ztserve("verify", here / main).status == 0


def wait_for_model(ztserve, url):
    eventually(lambda: ztserve("ls", url).status == 0)


def test_the_shards_of_a_model_are_called_after_it(server, root, pull, here, ztserve):
    data = pattern(70_000, seed=6)
    shard = zt2_data_shard(data)
    model = zt2({"x": dense_in_shard("w", 4096, data)}, fields={"shards": {"w": shard_entry(shard)}})
    (root / "t-w.zt").write_bytes(shard)
    (root / "t.zt").write_bytes(model)
    wait_for_model(ztserve, server.url + "/t")
    result = pull(server.url + "/files/t.zt", "-o", "u.zt")
    assert (result.status, result.errors) == (0, "")
    assert names(here) == ["u-w.zt", "u.zt"]
    assert ztserve("verify", here / "u.zt").status == 0


# --- interruptions ---


def test_fifty_interruptions_at_random_bytes_end_with_the_right_file(between, pull, here):
    chance = random.Random(14)
    rule = between.meddle(
        lambda request, handler: meddling.reset_after(chance.randrange(1, 60_000))(request, handler), when=is_data, times=50
    )
    result = pull(between.endpoint + "/org/m")
    assert (result.status, result.errors) == (0, "")
    assert rule.used == 50
    assert (here / "m.zt").read_bytes() == MODEL
    assert names(here) == ["m.zt"]


def begin(url, here, *arguments):
    return subprocess.Popen([str(PROGRAM), "pull", url, *arguments], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_journal(process, here, before=None):
    """Until the journal says another thing than before; gives what it says."""
    journal = here / "m.zt.part.json"

    def told():
        text = journal.read_bytes() if journal.exists() else before
        if text != before and b'"pieces":"00' + b"00" * 3 + b'"' not in text:
            return text
        assert process.poll() is None, process.communicate()
        return None

    return eventually(told)


def test_a_pull_that_is_killed_again_and_again_goes_on_where_it_was(between, pull, here):
    url = between.endpoint + "/org/m"
    counted = between.counting()
    rule = between.meddle(meddling.stall_after(300_000), when=is_data)
    said = None
    for _ in range(4):
        process = begin(url, here, "--jobs", "1")
        said = wait_for_journal(process, here, said)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert names(here) == ["m.zt.part", "m.zt.part.json"]
    between.stop(rule)
    result = pull(url)
    assert (result.status, result.errors) == (0, "")
    assert "of them received earlier" in result.output
    assert (here / "m.zt").read_bytes() == MODEL
    assert names(here) == ["m.zt"]
    last = [one.request.range for one in counted.seen if is_data(one.request)][-1]
    assert last[0] > 500_000


def test_where_another_version_begins_the_pull_begins_anew(between, root, pull, here):
    url = between.endpoint + "/files/org/m.zt"
    rule = between.meddle(meddling.stall_after(300_000), when=is_data)
    process = begin(url, here, "--jobs", "1")
    wait_for_journal(process, here)
    process.kill()
    process.communicate()
    between.stop(rule)
    swap(root, OTHER)
    result = pull(url)
    assert (result.status, result.errors) == (0, "")
    assert "received earlier" not in result.output
    assert (here / "m.zt").read_bytes() == OTHER


def swap(root, data):
    (root / "org/.new").write_bytes(data)
    (root / "org/.new").rename(root / "org/m.zt")


def test_a_journal_of_nonsense_is_no_journal(server, pull, here):
    (here / "m.zt.part").write_bytes(bytes(len(MODEL)))
    for text in [b"", b"{", b'{"url": 1}', os.urandom(100), b"[]" * 40_000]:
        (here / "m.zt.part.json").write_bytes(text)
        (here / "m.zt").unlink(missing_ok=True)
        assert pull(server.url + "/org/m").status == 0
        assert (here / "m.zt").read_bytes() == MODEL


def test_one_process_at_a_time_writes_a_part_file(between, pull, here):
    between.meddle(meddling.stall_after(300_000), when=is_data)
    first = begin(between.endpoint + "/org/m", here)
    wait_for_journal(first, here)
    result = pull(between.endpoint + "/org/m")
    first.kill()
    first.communicate()
    assert result.status == 1
    assert "another process" in result.errors


# --- servers that are not to be trusted ---


def test_a_model_that_changes_meanwhile_comes_as_its_new_version(between, root, pull, here):
    """The server holds versions that are being read open, so that the new one shows in the tag."""

    def change(request, handler):
        swap(root, OTHER)
        return handler.forward(request)

    between.meddle(change, when=is_data, times=1)
    result = pull(between.endpoint + "/files/org/m.zt", "--jobs", "1")
    assert (result.status, result.errors) == (0, "")
    assert (here / "m.zt").read_bytes() == OTHER


def test_a_model_that_changes_all_the_time_is_given_up(between, pull, here):
    count = iter(range(1000))

    def other_tag(true):
        return true.with_fields(ETag=f'"{next(count)}"')

    between.meddle(meddling.changed(other_tag), when=lambda request: request.method == "GET")
    assert_failed(pull(between.endpoint + "/files/org/m.zt"), here, "has changed")


def test_wrong_bytes_of_a_file_without_digests_are_found_by_the_servers(between, root, pull, here, ztserve):
    (root / "n.safetensors").write_bytes(joined.safetensors({"w": pattern(100_000, seed=7)}))
    wait_for_model(ztserve, between.endpoint + "/n")
    between.meddle(meddling.flipped(position=50_000), when=is_data)
    assert_failed(pull(between.endpoint + "/files/n.safetensors"), here, "server's digest of the file")


def test_what_a_files_own_digests_do_not_cover_the_servers_does(between, root, pull, here, ztserve):
    (root / "m.zt").write_bytes(zt1({"a": dense(pattern(SIZE // 2), digest=None), "b": dense(pattern(100), digest="sha256")}))
    wait_for_model(ztserve, between.endpoint + "/m")
    whole = pull(between.endpoint + "/m")
    assert whole.status == 0 and "1 without digest; SHA-256 matches the server" in whole.output
    (here / "m.zt").unlink()
    between.meddle(meddling.flipped(position=200_000), when=is_data)
    assert_failed(pull(between.endpoint + "/m"), here, "server's digest of the file")


FILE = "/files/org/m.zt"
# What the server does, to which requests, the URL's path, and what pull says.
REFUSED = {
    "a flipped bit": (meddling.flipped(position=100_000), is_data, "/org/m", "digest"),
    "a short response": (meddling.shorter_answer(5), is_data, "/org/m", "the server's response is too short"),
    "a long response": (meddling.longer_answer(5), is_data, "/org/m", "the server's response is too long"),
    "an early end": (meddling.short_body(SIZE), is_data, "/org/m", "closed with"),
    "a reset": (meddling.reset, is_data, "/org/m", "m.zt"),
    "a coding in the middle": (meddling.with_fields(Content_Encoding="gzip"), is_data, FILE, "has changed"),
    "a coding": (meddling.with_fields(Content_Encoding="gzip"), lambda request: request.range is not None, FILE, "compresses"),
    "redirects in circles": (meddling.reply(302, Location="/files/org/m.zt?again"), None, FILE, "circles"),
    **{f"a redirect to '{place}'": (meddling.reply(302, Location=place), None, FILE, "an invalid URL")
       for place in ("", "ftp://x/y", "javascript:1", "http://user:pw@h/")},
    "commands for a terminal": (meddling.reply(404, b'{"detail": "no \\u001b[31m luck"}'), None, FILE, "\\u001b[31m"),
}  # fmt: skip
# They leave what had come before.
LEAVE_PARTS = ("a short response", "a long response", "an early end")


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_server_may_not_do_is_refused_and_named(between, pull, here, name):
    act, when, path, words = REFUSED[name]
    between.meddle(act, when=when)
    result = pull(between.endpoint + path, "--timeout", "1")
    assert result.status == 1 and len(result.error_lines) == 1 and words in result.errors, result.errors
    assert not (here / "m.zt").exists()
    assert names(here) == [] or name in LEAVE_PARTS


def test_a_server_that_stalls_is_given_up_and_what_came_is_kept(between, pull, here):
    between.meddle(meddling.stall_after(0), when=is_data)
    between.meddle(meddling.stall_after(100_000), when=is_first_data)
    result = pull(between.endpoint + "/org/m", "--timeout", "1")
    assert_failed(result, here, left=["m.zt.part", "m.zt.part.json"])


@pytest.mark.waits
def test_a_server_that_gives_a_few_bytes_before_each_stall_is_given_up(between, pull, here):
    between.meddle(meddling.stall_after(5), when=is_data)
    assert_failed(pull(between.endpoint + "/org/m", "--timeout", "1"), here, "too slow", left=["m.zt.part"])


def test_a_part_file_that_was_replaced_meanwhile_does_not_get_the_name(between, pull, here):
    def replace_part(request, handler):
        (here / "other").write_bytes(b"of somebody else")
        (here / "other").rename(here / "m.zt.part")
        return handler.forward(request)

    between.meddle(replace_part, when=is_data, times=1)
    assert_failed(pull(between.endpoint + "/org/m", "--jobs", "1"), here, "replaced meanwhile", left=["m.zt.part", "m.zt.part.json"])
    assert (here / "m.zt.part").read_bytes() == b"of somebody else"


def test_a_token_goes_to_the_server_that_was_named_and_to_no_other(server, between, pull, here, tmp_path):
    asked = []
    other = meddling.Meddler(SimpleNamespace(endpoint=server.url))
    other.meddle(lambda request, handler: asked.append(request) or handler.forward(request))
    between.meddle(meddling.reply(307, Location=other.endpoint + "/files/org/m.zt"))
    (tmp_path / "token").write_text("  secret-1 \nmore\n")
    counted = between.counting()
    result = pull(between.endpoint + "/files/org/m.zt", "--token-file", tmp_path / "token")
    other.close()
    assert (result.status, result.errors) == (0, "")
    assert {one.request.fields.get("authorization") for one in counted.seen} == {"Bearer secret-1"}
    assert asked and all("authorization" not in request.fields for request in asked)
    assert (here / "m.zt").read_bytes() == MODEL


def test_the_token_of_the_environment_is_sent(between, pull):
    counted = between.counting()
    pull(between.endpoint + "/org/m", environment={**os.environ, "ZTSERVE_TOKEN": "t0"})
    assert {one.request.fields.get("authorization") for one in counted.seen} == {"Bearer t0"}


# --- servers that know less ---


class Plain(http.server.SimpleHTTPRequestHandler):
    """No ranges, no tags."""

    def log_message(self, *arguments):
        pass


@pytest.fixture
def plain(root):
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *rest: Plain(*rest, directory=root))
    threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_address[1]}"
    listener.shutdown()
    listener.server_close()


def test_a_server_without_ranges_gives_one_stream(plain, pull, here):
    result = pull(plain + "/org/m.zt")
    assert (result.status, result.errors) == (0, "")
    assert (here / "m.zt").read_bytes() == MODEL
    assert names(here) == ["m.zt"]


def test_a_model_in_several_files_comes_from_a_server_without_ranges_too(plain, root, pull, here):
    files = joined.files_with_index("s", [pattern(4000, seed=4), pattern(3000, seed=5)])
    for name, data in files.items():
        (root / name).write_bytes(data)
    result = pull(plain + "/s.safetensors.index.json")
    assert (result.status, result.errors) == (0, "")
    assert {name: (here / name).read_bytes() for name in names(here)} == files


def test_parts_in_subfolders_come_into_subfolders(server, plain, root, pull, here):
    made = {"./p.safetensors": {"w1": pattern(4000, seed=4)}, "sub/deep/q.safetensors": {"w2": pattern(3000, seed=5)}}
    files = {path: joined.safetensors(held) for path, held in made.items()}
    (root / "sub" / "deep").mkdir(parents=True)
    for path, data in {**files, "s.safetensors.index.json": joined.index_of(made)}.items():
        (root / path).write_bytes(data)
    for url in (f"{plain}/s.safetensors.index.json", f"{server.url}/s"):
        assert eventually(lambda: pull(url).status == 0)
        for path, data in files.items():
            assert (here / path).read_bytes() == data
            (here / path).unlink()
        (here / "s.safetensors.index.json").unlink()
    (here / "sub" / "deep").rmdir()
    (here / "sub" / "deep").symlink_to(root)
    assert "Not a directory" in pull(f"{server.url}/s").errors
    assert not (root / "q.safetensors").exists()


@pytest.mark.parametrize("form", [0, 1])
def test_the_index_of_a_variant_comes_with_its_parts(server, plain, root, pull, here, form):
    files = joined.files_with_variant_index("s", "fp16", [pattern(4000, seed=4), pattern(3000, seed=5)], form)
    for name, data in files.items():
        (root / name).write_bytes(data)
    index = list(files)[-1]
    for url in (f"{plain}/{index}", f"{server.url}/s.fp16", f"{server.url}/files/{index}"):
        assert eventually(lambda: pull(url).status == 0)
        assert {name: (here / name).read_bytes() for name in names(here)} == files
        for name in files:
            (here / name).unlink()


@pytest.mark.parametrize("text", [b"", b"{}", b'{"weight_map": {"x": "../m.safetensors"}}'])
def test_an_index_that_names_no_files_of_its_own_brings_nothing(plain, root, pull, here, text):
    (root / "s.safetensors.index.json").write_bytes(text)
    assert_failed(pull(plain + "/s.safetensors.index.json"), here)


def test_without_anything_to_tell_versions_apart_there_is_one_stream(between, pull, here):
    def bare(true):
        return true.with_fields(ETag=None, Last_Modified=None)

    between.meddle(meddling.changed(bare))
    counted = between.counting()
    assert pull(between.endpoint + "/files/org/m.zt").status == 0
    assert (here / "m.zt").read_bytes() == MODEL
    assert [one for one in counted.seen if is_data(one.request)] == []


def test_a_file_that_is_no_model_gets_no_name(plain, root, pull, here):
    (root / "page.zt").write_text("<html>" * 1000)
    assert_failed(pull(plain + "/page.zt"), here)


def test_a_proxy_of_the_environment_is_used(between, pull, here):
    counted = between.counting()
    result = pull("http://models.invalid/files/org/m.zt", environment={**os.environ, "http_proxy": between.endpoint, "no_proxy": ""})
    assert counted.seen[0].request.target.startswith("http://models.invalid/") or result.status == 0


# --- progress ---


def test_progress_for_programs_is_one_object_a_line(server, pull):
    result = pull(server.url + "/org/m", "--progress", "json")
    last = json.loads(result.error_lines[-1])
    assert (last["event"], last["bytes"], last["total_bytes"]) == ("end", len(MODEL), len(MODEL))
    assert (last["name"], last["file"], last["files"]) == ("m.zt", 1, 1)


# --- looking without downloading ---


def test_ls_of_a_url_reads_head_and_manifest_only(between, root, ztserve):
    big = zt1({"a": dense(pattern(8_000_000, seed=8))})
    (root / "big.zt").write_bytes(big)
    wait_for_model(ztserve, between.endpoint + "/big")
    counted = between.counting()
    listed = ztserve("ls", "--json", between.endpoint + "/files/big.zt")
    assert (listed.status, listed.errors) == (0, "")
    mine = json.loads(listed.output)
    local = json.loads(ztserve("ls", "--json", root / "big.zt").output)
    assert mine["objects"] == local["objects"] and mine["name"] == "big"
    assert mine["source"]["modified"] == local["source"]["modified"]
    assert sum(one.sent_bytes for one in counted.seen) < 1_200_000


def test_a_time_that_no_server_tells_is_left_out(between, ztserve):
    between.meddle(meddling.with_fields(Last_Modified=None))
    listed = ztserve("ls", "--json", between.endpoint + "/files/org/m.zt")
    assert (listed.status, listed.errors) == (0, "")
    assert "modified" not in json.loads(listed.output)["source"]


def test_verify_of_a_url_reads_all_and_finds_what_is_wrong(server, root, ztserve):
    good = ztserve("verify", server.url + "/org/m")
    assert good.status == 0 and "2 verified" in good.output
    (root / "bad.zt").write_bytes(bytes(MODEL.flipped("a", at=700_000)))
    wait_for_model(ztserve, server.url + "/bad")
    bad = ztserve("verify", server.url + "/files/bad.zt")
    assert bad.status == 1 and "digest" in bad.errors


def test_a_file_that_changes_while_it_is_looked_at_is_told(between, ztserve):
    between.meddle(meddling.changed(lambda true: replace(true, fields={**true.fields, "Etag": '"new"'})), when=is_data)
    result = ztserve("verify", between.endpoint + "/files/org/m.zt")
    assert result.status == 1 and "has changed" in result.errors
