"""pull --have copies tensors from local files and fetches the rest. The file is right even if the local files are not."""

import random
import re
import struct

import joined
import meddler as meddling
import pytest
from containers import dense, dense_encoded, pattern, zstd_dense, zstd_frame, zt1, zt2
from kept import head_of
from repositories import wait_for_model
from wire import ask

LAYERS = 8
LAYER_BYTES = 200_003
# Headers, edges of pieces and small tensors.
EDGES_BYTES = 20_000


def layers(changed=()):
    return {f"layers.{i}": pattern(LAYER_BYTES + i, seed=i + (100 if i in changed else 0)) for i in range(LAYERS)}


def as_zt1(tensors):
    return zt1({name: dense(data, digest="sha256") for name, data in tensors.items()})


def as_zt2(tensors):
    return zt2({name: dense(data, digest="xxh3") for name, data in tensors.items()})


MAKERS = {"safetensors": joined.safetensors, "zt": as_zt1, "zt2": as_zt2}


@pytest.fixture
def pull(ztserve, here):
    def run(url, *arguments):
        return ztserve("pull", url, *arguments, folder=here)

    return run


@pytest.fixture
def serve(server, root):
    """Writes a model's file, and waits until the server has seen it."""

    def run(name, data):
        (root / name).write_bytes(data)
        wait_for_model(f"{server.url}/v1/models/{name.rpartition('.')[0]}")

    return run


def counts(result):
    """Bytes copied and fetched, of all files."""
    found = re.findall(r", (\d+) copied from local files, (\d+) fetched", result.output)
    return sum(int(copied) for copied, _ in found), sum(int(fetched) for _, fetched in found)


def assert_pulled(result, path, data, changed):
    assert (result.status, result.errors) == (0, "")
    assert path.read_bytes() == data
    copied, fetched = counts(result)
    assert copied + fetched == len(data)
    assert fetched < changed * (LAYER_BYTES + LAYERS) + EDGES_BYTES


@pytest.mark.parametrize("local", MAKERS)
@pytest.mark.parametrize("remote", MAKERS)
def test_only_the_layer_that_changed_is_fetched(between, serve, here, pull, remote, local):
    data = MAKERS[remote](layers(changed=[3]))
    name = "m." + remote.removesuffix("2")
    serve(name, data)
    (here / "old").write_bytes(MAKERS[local](layers()))
    counted = between.counting()
    assert_pulled(pull(f"{between.endpoint}/files/{name}", "--have", "old"), here / name, data, 1)
    # Up to three readers of the header fetch blocks of 256 KiB.
    assert sum(one.sent_bytes for one in counted.seen) < LAYER_BYTES + EDGES_BYTES + 3 * (256 << 10)


def test_the_file_that_is_replaced_may_be_the_local_one(server, serve, here, pull):
    data = as_zt1(layers(changed=[0, 7]))
    serve("m.zt", data)
    (here / "m.zt").write_bytes(as_zt1(layers()))
    assert_pulled(pull(server.url + "/m", "--have", "m.zt"), here / "m.zt", data, 2)


def test_an_export_is_compared_by_its_own_digests(server, serve, here, pull, ztserve):
    serve("m.safetensors", joined.safetensors(layers(changed=[5])))
    (here / "old").write_bytes(joined.safetensors(layers()))
    result = pull(server.url + "/m", "--have", "old", "-o", "m.zt")
    assert result.status == 0 and counts(result)[0] > 7 * LAYER_BYTES
    assert ztserve("verify", here / "m.zt").status == 0


def test_files_and_tensors_of_a_folder_are_found_for_a_repository(server, root, here, pull):
    new = {"config.json": b'{"a": 1}' * 2000, "other.bin": pattern(70_000), "x.safetensors": joined.safetensors(layers(changed=[1]))}
    old = {"other.bin": new["other.bin"], "deep/old.zt": as_zt1(layers()), "copy.json": new["config.json"]}
    for folder, files in ((root / "acme/m", new), (here / "old", old)):
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    wait_for_model(server.url + "/v1/models/acme/m/x")
    result = pull(server.url + "/acme/m/", "--have", "old", "-o", "made")
    assert (result.status, result.errors) == (0, "")
    assert {name: (here / "made" / name).read_bytes() for name in new} == new
    copied, fetched = counts(result)
    assert copied + fetched == sum(map(len, new.values())) and fetched < LAYER_BYTES + EDGES_BYTES
    assert "other.bin: 70000 bytes, 70000 copied from local files, 0 fetched" in result.output


def test_a_compressed_tensor_is_copied_only_if_its_stored_bytes_are_equal(server, root, serve, here, pull):
    data = bytes(300_000) + pattern(1000)
    serve("m.zt", zt1({"a": zstd_dense(data, digest="sha256"), "b": dense(pattern(400_000), digest="sha256")}))
    for level, stored in ((1, zstd_frame(data, level=19)), (0, zstd_frame(data))):
        (here / f"old{level}").write_bytes(zt1({"a": dense_encoded(data, stored, "zstd")}))
        result = pull(server.url + "/m", "--have", f"old{level}", "-o", f"new{level}.zt")
        assert (result.status, result.errors) == (0, "")
        assert counts(result)[0] == (0 if level else len(stored))
        assert (here / f"new{level}.zt").read_bytes() == (root / "m.zt").read_bytes()


def lying(tensors, make=as_zt1):
    """A local file that states the digests of the server's tensors, and has other bytes."""
    data = make(tensors)
    first = data.index(tensors["layers.4"]) + 100_000
    return data[:first] + bytes(1000) + data[first + 1000 :]


@pytest.mark.parametrize("remote", MAKERS)
def test_a_local_file_that_states_wrong_digests_does_not_make_a_wrong_file(server, serve, here, pull, remote):
    tensors = layers(changed=[3])
    data = MAKERS[remote](tensors)
    name = "m." + remote.removesuffix("2")
    serve(name, data)
    (here / "liar").write_bytes(lying(tensors, as_zt2 if remote == "zt2" else as_zt1))
    result = pull(f"{server.url}/files/{name}", "--have", "liar")
    assert result.status == 0 and len(result.error_lines) == 1 and "the whole was fetched" in result.errors
    assert (here / name).read_bytes() == data
    assert counts(result) == (0, len(data))


def test_an_interrupted_pull_remembers_nothing_of_local_files(between, serve, here, pull):
    tensors = layers(changed=[3])
    data = as_zt1(tensors)
    serve("m.zt", data)
    (here / "liar").write_bytes(lying(tensors))
    # Edges of tensors, but not the blocks that the manifest is read in.
    rule = between.meddle(meddling.reply(403), when=lambda request: request.range is not None and request.range[0] % (256 << 10))
    assert pull(between.endpoint + "/files/m.zt", "--have", "liar").status == 1
    assert tensors["layers.5"] in (here / "m.zt.part").read_bytes()
    between.stop(rule)
    result = pull(between.endpoint + "/files/m.zt")
    assert (result.status, result.errors) == (0, "")
    assert (here / "m.zt").read_bytes() == data


def test_a_local_file_that_is_missing_ends_the_pull(server, serve, here, pull):
    serve("m.zt", as_zt1(layers()))
    result = pull(server.url + "/m", "--have", "nowhere")
    assert result.status == 1 and "nowhere: cannot open: No such file" in result.errors and len(result.error_lines) == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("make", MAKERS)
def test_a_local_file_that_is_cut_off_is_reported(server, serve, here, pull, make):
    data = as_zt1(layers())
    serve("m.zt", data)
    (here / "old").write_bytes(MAKERS[make](layers())[:-5])
    (here / "notes.json").write_bytes(b"{}")
    result = pull(server.url + "/m", "--have", "old", "--have", "notes.json")
    assert result.status == 0 and (here / "m.zt").read_bytes() == data and counts(result) == (0, len(data))
    assert len(result.error_lines) == 1 and "old: its tensors cannot be used: " in result.errors


def test_without_a_digest_nothing_is_copied(between, serve, here, pull):
    data = joined.safetensors(layers())
    serve("m.safetensors", data)
    (here / "old").write_bytes(as_zt1(layers()))
    between.meddle(meddling.reply(404, b"{}"), when=lambda request: "/v1/models/" in request.path)
    result = pull(between.endpoint + "/files/m.safetensors", "--have", "old")
    assert result.status == 0 and counts(result) == (0, len(data))


# --- differences ---


def publish_version(server, name, data):
    answer = ask(server, "PUT", f"/files/{name}.safetensors", body=data)
    assert answer.status in (201, 204), answer
    return head_of(server, name)


TENSORS = 4
TENSOR_BYTES = 4 << 20


def with_changed_elements(data, share=0.01):
    """One percent of the elements of two bytes, with other low bits."""
    made = bytearray(data)
    for at in range(0, len(data), 2 * int(1 / share)):
        made[at] ^= 1 + at % 7
    return bytes(made)


def two_versions():
    old = {f"w{i}": random.Random(i).randbytes(TENSOR_BYTES + 2 * i) for i in range(TENSORS)}
    return old, {name: with_changed_elements(data) for name, data in old.items()}


def made_of_differences(result):
    found = re.search(r", (\d+) made of local tensors and (\d+) bytes of differences", result.output)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@pytest.mark.parametrize("make", MAKERS)
def test_changed_tensors_come_as_their_differences(between, serve, here, pull, make):
    extension = "." + make.removesuffix("2")
    old, new = two_versions()
    data = MAKERS[make](new)
    serve("a" + extension, MAKERS[make](old))
    serve("b" + extension, data)
    (here / "a").write_bytes(MAKERS[make](old))
    counted = between.counting()
    result = pull(f"{between.endpoint}/files/b{extension}", "--have", "a")
    assert (result.status, result.errors) == (0, "")
    assert (here / f"b{extension}").read_bytes() == data
    made, differences = made_of_differences(result)
    assert made == sum(map(len, new.values())) and differences < made / 50
    # Readers of the header fetch blocks of 256 KiB.
    assert sum(one.sent_bytes for one in counted.seen) < len(data) / 50 + 3 * (256 << 10)


def test_without_the_base_the_server_is_asked_a_few_times(between, serve, here, pull):
    old = {f"w{i}": pattern(100_000, seed=i) for i in range(30)}
    data = as_zt1({name: with_changed_elements(tensor) for name, tensor in old.items()})
    serve("b.zt", data)
    (here / "a").write_bytes(as_zt1(old))
    counted = between.counting()
    result = pull(f"{between.endpoint}/files/b.zt", "--have", "a", "--jobs", "1")
    assert (result.status, result.errors) == (0, "") and (here / "b.zt").read_bytes() == data
    assert sum("coding=" in one.request.target for one in counted.seen) == 3 and made_of_differences(result) == (0, 0)


def test_a_tensor_of_another_shape_is_fetched(server, serve, here, pull):
    old, new = two_versions()
    serve("a.zt", as_zt1(old))
    serve("b.zt", zt1({name: dense(data, digest="sha256", shape=[1, len(data)]) for name, data in new.items()}))
    (here / "a").write_bytes(as_zt1(old))
    result = pull(server.url + "/b", "--have", "a", "-o", "b.zt")
    assert result.status == 0 and made_of_differences(result) == (0, 0)


def hostile(change):
    """Changes what the server sends of a difference."""

    def reply(request, handler):
        answer = handler.forward(request)
        answer.body = change(answer.body)
        return answer

    return reply


@pytest.mark.parametrize("change", [lambda body: bytes(len(body)), lambda body: body[:-1] + bytes([body[-1] ^ 1])], ids=["zeros", "flipped"])
def test_a_wrong_difference_does_not_make_a_wrong_file(between, serve, here, pull, change):
    old, new = two_versions()
    data = as_zt1(new)
    serve("a.zt", as_zt1(old))
    serve("b.zt", data)
    (here / "a").write_bytes(as_zt1(old))
    between.meddle(hostile(change), when=lambda request: "coding=" in request.target and request.range[1] > 0)
    result = pull(f"{between.endpoint}/files/b.zt", "--have", "a")
    assert (result.status, result.errors) == (0, "") and (here / "b.zt").read_bytes() == data
    assert made_of_differences(result) == (0, 0)


def wrong_everywhere(request, handler):
    """Another difference of the same length, which decodes to as many bytes. A skippable frame fills it up."""
    answer = handler.forward(request)
    index = int(re.search(r"/w(\d)/", request.target)[1])
    frame = zstd_frame(b"\1" * (TENSOR_BYTES + 2 * index))
    rest = len(answer.body) - len(frame) - 8
    answer.body = frame + struct.pack("<II", 0x184D2A50, rest) + bytes(rest)
    return answer


def test_a_wrong_difference_leaves_bytes_that_arrived_before(between, serve, here, pull):
    old, new = two_versions()
    data = as_zt1(new)
    serve("a.zt", as_zt1(old))
    serve("b.zt", data)
    (here / "a").write_bytes(as_zt1(old))

    def is_data(request):
        return request.range is not None and request.range[1] - request.range[0] > 1 << 20

    # The second tensor arrives in part.
    rules = [between.meddle(meddling.reply(403), when=is_data), between.meddle(meddling.reset_after(6 << 20), when=is_data, times=1)]
    assert pull(between.endpoint + "/files/b.zt", "--jobs", "1").status == 1
    for rule in rules:
        between.stop(rule)
    between.meddle(wrong_everywhere, when=lambda request: "coding=" in request.target and request.range[1] > 0)
    result = pull(between.endpoint + "/files/b.zt", "--have", "a")
    assert (result.status, result.errors) == (0, "") and (here / "b.zt").read_bytes() == data
    assert "received earlier" in result.output and made_of_differences(result) == (0, 0)


@pytest.mark.parametrize("name", ["m", "org/model/m"])
def test_a_pinned_commit_comes_as_the_difference_from_its_parent(start_server, root, here, pull, name):
    old, _ = two_versions()
    first = start_server(root, "--writable", "--keep-versions", "30")
    versions, commits = [], []
    for share in (0.01, 0.005, 0.002):
        versions.append(joined.safetensors({tensor: with_changed_elements(data, share) for tensor, data in old.items()}))
        commits.append(publish_version(first, name, versions[-1]))
    # Digests of kept files are not known after a restart.
    first.stop()
    server = start_server(root, "--writable", "--keep-versions", "30")
    (here / "old").write_bytes(versions[0])
    result = pull(f"{server.url}/{name}@{commits[1]}", "--have", "old", "-o", "new")
    assert (result.status, result.errors) == (0, "") and (here / "new").read_bytes() == versions[1]
    made, differences = made_of_differences(result)
    assert made == sum(map(len, old.values())) and differences < made / 20
