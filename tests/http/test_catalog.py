"""Files that are added, changed and removed while the server runs, and downloads in progress at that time."""

import mmap
import os
import signal
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import pytest

from containers import dense, pattern, zt1, zt2
from wire import (
    assert_problem,
    component_path,
    connect,
    eventually,
    get,
    model_path,
    read_exactly,
    read_head,
    read_until_closed,
)

# More than the socket buffers of both ends hold, so that the server is still sending when the file is removed.
BIG_BYTES = 24 << 20
BIG = {seed: pattern(BIG_BYTES, seed) for seed in (1, 2)}


def publish(path, data):
    """Replaces a file atomically, as writers should."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(data)
    temporary.rename(path)


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


def test_file_changed_in_place_is_noticed(server, tmp_path):
    (tmp_path / "old.zt").write_bytes(version_of("changed"))
    eventually(lambda: is_served(server, "old", b"changed"))


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
        for turn in range(200):
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
@pytest.mark.parametrize("year", [2100, 2400])
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


def test_removed_folder_takes_its_models_along(server, tmp_path):
    (tmp_path / "dir" / "m.zt").unlink()
    (tmp_path / "dir").rmdir()
    eventually(lambda: is_gone(server, "dir/m"))


def test_shadowed_file_takes_over_when_the_other_is_removed(server, tmp_path):
    publish(tmp_path / "old.safetensors", version_of("by another extension"))
    publish(tmp_path / "old.zt", version_of("still"))
    eventually(lambda: is_served(server, "old", b"still"))
    (tmp_path / "old.zt").unlink()
    eventually(lambda: is_served(server, "old", b"by another extension"))


def test_many_files_at_once_are_all_noticed(server, tmp_path):
    for index in range(300):
        publish(tmp_path / f"many-{index:03}.zt", version_of(str(index)))
    eventually(lambda: len(get(server, "/v1/models?prefix=many-&limit=1000").json()["models"]) == 300)
    assert is_served(server, "many-299", b"299")


def test_sighup_is_survived_and_reloads(server, tmp_path):
    publish(tmp_path / "new.zt", version_of("new"))
    server.signal(signal.SIGHUP)
    eventually(lambda: is_served(server, "new", b"new"))
    assert is_served(server, "old", b"old")


class Download:
    """A reader that has read the head of a big component and then pauses."""

    def __init__(self, server, path):
        self.connection = connect(server, receive_buffer=16384)
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        self.status, self.fields, self.begun = read_head(self.connection)

    def finish(self):
        body = read_exactly(self.connection, int(self.fields["content-length"]), self.begun)
        self.connection.close()
        return body


@pytest.mark.folder("files that stay readable while they are open")
@pytest.mark.parametrize("build", [zt1, zt2])
@pytest.mark.parametrize("digest", ["sha256", None])
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


@pytest.mark.folder("files that change under a download")
def test_file_cut_under_a_download_ends_the_connection_and_not_the_server(start_server, tmp_path):
    path = tmp_path / "cut.zt"
    (tmp_path / "old.zt").write_bytes(version_of("old"))
    # The kernel may send up to the cut without an error; then the connection ends because it is idle.
    server = start_server(tmp_path, environment={"ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "2"})
    publish(path, zt1({"w": dense(BIG[1])}))
    eventually(lambda: get(server, component_path("cut", "w"), Range="bytes=0-0").status == 206)
    download = Download(server, component_path("cut", "w"))
    os.truncate(path, 1 << 20)
    received = download.finish()
    assert len(received) < BIG_BYTES
    assert BIG[1].startswith(received[: 1 << 20])
    assert is_served(server, "old", b"old")
    eventually(lambda: get(server, model_path("cut")).status == 422)


@pytest.mark.folder("files that change under a download")
def test_component_of_a_cut_file_is_an_error(server, tmp_path):
    path = tmp_path / "cut.zt"
    publish(path, zt1({"w": dense(BIG[1]), "x": dense(b"1")}))
    eventually(lambda: get(server, model_path("cut")).status == 200)
    os.truncate(path, 4096)
    answer = get(server, component_path("cut", "w"))
    assert answer.status in (422, 500)
    assert is_served(server, "old", b"old")


def test_reader_that_leaves_does_not_harm_the_server(server, tmp_path):
    publish(tmp_path / "big.zt", zt1({"w": dense(BIG[1])}))
    eventually(lambda: get(server, component_path("big", "w"), Range="bytes=0-0").status == 206)
    for _ in range(20):
        Download(server, component_path("big", "w")).connection.close()
    assert get(server, component_path("big", "w")).body == BIG[1]


def test_pipelined_requests_read_the_version_of_their_time(server, tmp_path):
    with connect(server) as connection:
        request = f"GET {component_path('old', 'w')} HTTP/1.1\r\nHost: x\r\n"
        connection.sendall((f"{request}\r\n" * 3 + f"{request}Connection: close\r\n\r\n").encode())
        assert read_until_closed(connection).count(b"\r\n\r\nold") == 4
