"""Files that are added, changed and removed while the server runs, and downloads in progress at that time."""

import mmap
import os
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import pytest

from containers import dense, pattern, zt1, zt2
from wire import assert_problem, begin_answer, component_path, connect, eventually, get, model_path, publish, read_exactly, read_head

# More than the socket buffers of both ends hold, so that the server is still sending when the file is removed.
BIG_BYTES = 24 << 20
BIG = {seed: pattern(BIG_BYTES, seed) for seed in (1, 2)}


def tag_of_file(connection):
    """The tag of the file, asked for over a connection that is kept."""
    connection.sendall(b"HEAD /files/old.zt HTTP/1.1\r\nHost: x\r\n\r\n")
    return read_head(connection)[1]["etag"]


def version_of(text, dtype="u8"):
    return zt1({"w": dense(text.encode(), dtype)})


def is_served(server, model, data):
    answer = get(server, component_path(model, "w"))
    return answer.status == 200 and answer.body == data


def is_gone(server, model):
    return get(server, model_path(model)).status == 404


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "old.zt").write_bytes(version_of("old"))
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "m.zt").write_bytes(version_of("in a folder"))
    return start_server(tmp_path)


def test_new_file_is_served(server, tmp_path):
    publish(tmp_path / "new.zt", version_of("new"))
    eventually(lambda: is_served(server, "new", b"new"))
    assert "new" in [model["name"] for model in get(server, "/v1/models").json()["models"]]


def test_file_written_in_place_is_served_when_it_is_whole(server, tmp_path):
    data = version_of("slowly")
    with (tmp_path / "slow.zt").open("wb") as file:
        file.write(data[:50])
        file.flush()
        eventually(lambda: get(server, model_path("slow")).status in (404, 422))
        file.write(data[50:])
    eventually(lambda: is_served(server, "slow", b"slowly"))


def test_replaced_file_is_served_with_a_new_tag(server, tmp_path):
    before = get(server, component_path("old", "w"))["ETag"]
    listed = get(server, model_path("old"))["ETag"]
    publish(tmp_path / "old.zt", version_of("two"))
    eventually(lambda: is_served(server, "old", b"two"))
    assert get(server, component_path("old", "w"))["ETag"] != before
    assert get(server, model_path("old"))["ETag"] != listed


@pytest.mark.folder("times of files")
def test_file_changed_with_its_time_set_back_has_a_new_tag(server, tmp_path):
    path = tmp_path / "old.zt"
    before = path.stat()
    targets = [model_path("old"), component_path("old", "w"), "/files/old.zt"]
    tags = [get(server, target)["ETag"] for target in targets]
    data = bytearray(path.read_bytes())
    data[data.index(b"old")] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert all(get(server, target)["ETag"] not in (None, tag) for target, tag in zip(targets[::2], tags[::2]))
    assert get(server, targets[1]).status == 500


@pytest.mark.folder("changes to a file that are seen at once")
def test_a_write_is_seen_by_the_next_request(server, tmp_path):
    """Between two looks at a file the server relies on the kernel's reports, which each loop has to heed."""
    path = tmp_path / "old.zt"
    size = path.stat().st_size
    connections = [connect(server) for _ in range(4)]
    get(server, "/files/old.zt")
    with path.open("r+b") as file:
        for turn in range(40):
            connection = connections[turn % len(connections)]
            before = tag_of_file(connection)
            os.pwrite(file.fileno(), bytes([turn]), size - 1)
            assert tag_of_file(connection) != before, turn


@pytest.mark.folder("changes to a file that are seen at once")
def test_a_change_through_a_mapping_is_seen_soon(server, tmp_path):
    path = tmp_path / "old.zt"
    before = get(server, "/files/old.zt")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[len(mapping) - 1] ^= 1
        mapping.flush()
        eventually(lambda: get(server, "/files/old.zt")["ETag"] != before["ETag"])


@pytest.mark.folder("times of files")
@pytest.mark.parametrize("year", [2400])
def test_last_modified_is_never_in_the_future(server, tmp_path, year):
    path = tmp_path / "old.zt"
    seconds = (year - 1970) * 31556952
    os.utime(path, (seconds, seconds))
    assert path.stat().st_mtime > seconds - 86400
    for target in (model_path("old"), component_path("old", "w"), "/files/old.zt"):
        answer = get(server, target)
        modified = parsedate_to_datetime(answer["Last-Modified"])
        assert abs((datetime.now(timezone.utc) - modified).total_seconds()) < 60
        assert modified <= parsedate_to_datetime(answer["Date"])
    assert get(server, model_path("old")).json()["source"]["modified"] >= "2099"


def test_removed_file_is_gone(server, tmp_path):
    (tmp_path / "old.zt").unlink()
    eventually(lambda: is_gone(server, "old"))
    assert_problem(get(server, component_path("old", "w")), 404, "model-not-found")
    assert "old" not in [model["name"] for model in get(server, "/v1/models").json()["models"]]


def test_renamed_file_has_its_new_name(server, tmp_path):
    (tmp_path / "old.zt").rename(tmp_path / "renamed.zt")
    eventually(lambda: is_served(server, "renamed", b"old"))
    eventually(lambda: is_gone(server, "old"))


def test_file_that_turns_bad_says_so_and_comes_back(server, tmp_path):
    publish(tmp_path / "old.zt", b"rubbish")
    eventually(lambda: get(server, model_path("old")).status == 422)
    publish(tmp_path / "old.zt", version_of("good"))
    eventually(lambda: is_served(server, "old", b"good"))


def test_folder_that_appears_later_is_watched(server, tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    publish(tmp_path / "a" / "b" / "c" / "m.zt", version_of("deep"))
    eventually(lambda: is_served(server, "a/b/c/m", b"deep"))
    publish(tmp_path / "a" / "b" / "n.zt", version_of("later"))
    eventually(lambda: is_served(server, "a/b/n", b"later"))


def test_folder_moved_in_whole_is_served(server, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "set"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "m.zt").write_bytes(version_of("moved"))
    os.rename(outside, tmp_path / "set")
    eventually(lambda: is_served(server, "set/sub/m", b"moved"))
    publish(tmp_path / "set" / "sub" / "m.zt", version_of("again"))
    eventually(lambda: is_served(server, "set/sub/m", b"again"))
    os.rename(tmp_path / "set", tmp_path_factory.mktemp("away") / "set")
    eventually(lambda: is_gone(server, "set/sub/m"))


def test_many_files_at_once_are_all_noticed(server, tmp_path):
    for index in range(100):
        publish(tmp_path / f"many-{index:03}.zt", version_of(str(index)))
    eventually(lambda: len(get(server, "/v1/models?prefix=many-&limit=1000").json()["models"]) == 100)
    assert is_served(server, "many-099", b"99")


class Download:
    """A reader that has read the head of a big component and then pauses."""

    def __init__(self, server, path):
        self.connection, self.status, self.fields, self.begun = begin_answer(server, path, "Connection: close\r\n")

    def finish(self):
        body = read_exactly(self.connection, int(self.fields["content-length"]), self.begun)
        self.connection.close()
        return body


@pytest.mark.folder("files that stay readable while they are open")
@pytest.mark.parametrize("build, digest", [(zt1, "sha256"), (zt2, None)])
def test_download_of_a_replaced_and_removed_file_gets_the_old_bytes(server, tmp_path, build, digest):
    path = tmp_path / "big.zt"
    publish(path, build({"w": dense(BIG[1], digest=digest)}))
    eventually(lambda: get(server, component_path("big", "w"), Range="bytes=0-0").status == 206)
    downloads = [Download(server, component_path("big", "w")), Download(server, "/files/big.zt")]
    old = path.read_bytes()
    publish(path, build({"w": dense(BIG[2], digest=digest)}))
    eventually(lambda: get(server, component_path("big", "w"), Range="bytes=0-7").body == BIG[2][:8])
    downloads.append(Download(server, component_path("big", "w")))
    path.unlink()
    eventually(lambda: is_gone(server, "big"))
    assert downloads[0].finish() == BIG[1]
    assert downloads[1].finish() == old
    assert downloads[2].finish() == BIG[2]
