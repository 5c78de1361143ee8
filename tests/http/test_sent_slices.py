"""Slices and other answers of many pieces that are sent straight from the mappings of files: the bytes for runs of every
length, the connection afterwards, and files that change while they are sent."""

import io
import json
import os
import random
import re
import shutil
import socket
import struct

import numpy
import pytest

from containers import dense, pattern, zt1
from server_process import ServerProcess
from wire import Connection, begin_answer, component_path, eventually, get, read_exactly, read_until_closed

# Rows for runs below, at and above every limit at which a run is sent in another way.
TABLE = numpy.frombuffer(pattern(3000 * 4099), dtype=numpy.uint8).reshape(3000, 4099)
NARROW = numpy.frombuffer(pattern(40_000 * 130, seed=2), dtype=numpy.uint8).reshape(40_000, 130)
# Two loops, runs of elements.
CUBE = numpy.frombuffer(pattern(60 * 160 * 640 * 4, seed=3), dtype="<f4").reshape(60, 160, 640)
# A few long runs.
LONG = numpy.frombuffer(pattern(6 * 3 * 400_000, seed=4), dtype="<i2").reshape(6, 3, 200_000)
OBJECTS = {"cube": CUBE, "long": LONG, "narrow": NARROW, "table": TABLE}
TYPES = {"cube": "f32", "long": "i16", "narrow": "u8", "table": "u8"}
SLICES = [
    *(("narrow", f":,{first}:{first + run}") for run in (63, 64, 65, 128) for first in (0, 2)),
    *(("table", f":,1:{1 + run}") for run in (400, 1023, 1024, 1025, 2048, 4095, 4098)),
    *(("cube", text) for text in ("...,:639", "3:57,5:155,7:300", "...,100:355", "20:40", "1:,:50,:")),
    *(("long", text) for text in (":,1", "1:5,1:,100000:199999", "5,1:,:199999")),
]
TARGET = component_path("m", "table") + "?slice=:,1:"
EXPECTED = TABLE[:, 1:].tobytes()


def cut(array, text):
    """What NumPy selects."""
    items = []
    for item in text.split(","):
        bounds = [int(bound) if bound.strip(".") else None for bound in item.split(":")]
        items.append(Ellipsis if item == "..." else slice(*bounds) if len(bounds) > 1 else bounds[0])
    return array[tuple(items)].tobytes()


def write_model(folder):
    path = folder / "m.zt"
    path.write_bytes(zt1({key: dense(array.tobytes(), TYPES[key], list(array.shape)) for key, array in OBJECTS.items()}))
    return path


def read_all(server):
    """Whatever must be verified is, and it is in the page cache."""
    for key, array in OBJECTS.items():
        assert get(server, component_path("m", key)).body == array.tobytes()
    return server


@pytest.fixture(scope="module")
def server(folder, share_server):
    write_model(folder)
    return read_all(share_server(folder))


@pytest.fixture
def file(tmp_path):
    return write_model(tmp_path)


@pytest.fixture
def own(file, start_server):
    """A server whose file may be changed."""
    return read_all(start_server(file.parent))


@pytest.mark.parametrize(("key", "text"), SLICES)
def test_slices_are_those_of_numpy_and_the_connection_is_kept(server, key, text):
    expected, target = cut(OBJECTS[key], text), component_path("m", key) + f"?slice={text}"
    random_ = random.Random(text)
    with Connection(server) as connection:
        whole = connection.ask("GET", target)
        assert whole.status == 200
        assert whole.body == expected
        for _ in range(2):
            first = random_.randrange(len(expected))
            last = random_.randrange(first, len(expected))
            part = connection.ask("GET", target, {"Range": f"bytes={first}-{last}", "If-Range": whole["ETag"]})
            assert part.status == 206
            assert part.body == expected[first : last + 1], (first, last)


@pytest.mark.parametrize("run", [100, 2048])
def test_several_long_ranges_of_a_slice(server, run):
    key, array = ("narrow", NARROW) if run < 130 else ("table", TABLE)
    expected = array[:, :run].tobytes()
    ranges = [(3, 700_000), (800_001, 800_001), (1_000_000, len(expected) - 1)]
    asked = ", ".join(f"{first}-{last}" for first, last in ranges)
    answer = get(server, component_path("m", key) + f"?slice=:,:{run}", Range=f"bytes={asked}")
    boundary = b"--" + re.search("boundary=(.*)", answer["Content-Type"])[1].strip('"').encode()
    parts = answer.body.split(boundary)[1:-1]
    assert answer.status == 206
    assert [part.split(b"\r\n\r\n", 1)[1][:-2] for part in parts] == [expected[first : last + 1] for first, last in ranges]


@pytest.mark.parametrize("text", [":,:2048", "500:2500,:1000"])
def test_arrays_have_their_head_before_the_slice(server, text):
    answer = get(server, component_path("m", "table") + f"?slice={text}&format=npy")
    loaded = numpy.load(io.BytesIO(answer.body))
    assert loaded.tobytes() == cut(TABLE, text)


# --- files that change ---

# An answer that became whole after all would otherwise not end.
CLOSE = "Connection: close\r\n"


def test_many_clients_each_get_their_own_slice(server):
    """All wait with the first bytes; then they read in turns."""
    texts = [f"{start}:,{first}:{first + run}" for start, first, run in
             ((0, 0, 1024), (1, 5, 4000), (2, 7, 512), (3, 0, 2048), (4, 1, 4098), (5, 0, 700))]  # fmt: skip
    clients = []
    for text in texts:
        connection, begun = begin(server, component_path("m", "table") + f"?slice={text}")
        clients.append([connection, begun, cut(TABLE, text)])
    while any(len(received) < len(expected) for _, received, expected in clients):
        for client in clients:
            connection, received, expected = client
            client[1] = read_exactly(connection, min(len(expected), len(received) + 300_000), received)
    for connection, received, expected in clients:
        assert received == expected
        connection.close()


def begin(server, target=TARGET, fields="", status=200):
    """An answer whose reader stops at its beginning, long before the end is in the buffers."""
    connection, answered, _, begun = begin_answer(server, target, fields)
    assert answered == status
    return connection, begun


def end_of_data(server):
    placed = json.loads(get(server, "/v1/models/m").body)["objects"]["table"]["components"]["data"]
    return placed["offset"] + placed["length"]


@pytest.mark.folder("files that change under a download")
@pytest.mark.parametrize("text", [":,1:", ":,3599:"], ids=["from the mapping", "gathered"])
@pytest.mark.parametrize("missing", [1, 6_000_000])
def test_a_slice_of_a_file_that_was_truncated_never_becomes_whole(own, file, text, missing):
    """However few bytes are missing: the rest of the last page reads as zeros."""
    connection, begun = begin(own, component_path("m", "table") + f"?slice={text}", CLOSE)
    end = end_of_data(own)
    assert cut(TABLE, text)[-1] != 0
    os.truncate(file, end - missing)
    received = begun + read_until_closed(connection)
    assert len(received) < len(cut(TABLE, text))
    assert get(own, "/healthz").status == 200


@pytest.mark.folder("files that change under a download")
def test_a_truncated_end_that_is_sent_first_never_becomes_whole(own, file):
    """The end of the answer is there: only what was sent before it is not."""
    ranges = f"Range: bytes=1000000-{len(EXPECTED) - 1}, 0-899999\r\n"
    connection, begun = begin(own, fields=CLOSE + ranges, status=206)
    assert EXPECTED[-1] != 0
    os.truncate(file, end_of_data(own) - 1)
    assert EXPECTED[:900_000] not in begun + read_until_closed(connection)
    assert get(own, "/healthz").status == 200


@pytest.mark.folder("files that change under a download")
def test_a_file_that_is_replaced_while_a_slice_is_sent_is_sent_as_it_was(own, file):
    connection, begun = begin(own)
    other = file.with_name("other")
    other.write_bytes(zt1({"table": dense(TABLE[::-1].tobytes(), "u8", list(TABLE.shape))}))
    os.replace(other, file)
    assert eventually(lambda: get(own, TARGET).body == TABLE[::-1, 1:].tobytes())
    assert read_exactly(connection, len(EXPECTED), begun) == EXPECTED


def test_a_client_that_sends_no_more_gets_the_whole_slice(server):
    if server.context is not None:
        pytest.skip("with TLS the end of what a client sends is not that of the socket")
    connection, begun = begin(server)
    connection.shutdown(socket.SHUT_WR)
    assert read_exactly(connection, len(EXPECTED), begun) == EXPECTED
    assert connection.recv(1) == b""


# --- how they are sent ---


@pytest.mark.folder("how a file goes to a socket")
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.plain("measures memory, or is traced")
def test_runs_go_from_the_mapping_unless_they_are_short(file, tmp_path):
    trace = tmp_path / "trace"
    server = ServerProcess(file.parent, launcher=["strace", "-D", "-f", "-e", "trace=sendmsg", "-o", str(trace)])
    try:
        for text in (":,:1024", ":,:1023"):
            assert get(server, component_path("m", "table") + f"?slice={text}").body == cut(TABLE, text)
    finally:
        assert server.stop() == 0
    if server.context is not None:
        pytest.skip("with TLS they are copied")
    parts = [int(count) for count in re.findall(r"msg_iovlen=(\d+)", trace.read_text())]
    assert 512 in parts and 1 in parts
    # The rest of a run, and the whole ones.
    assert max(parts) <= 513


# --- exports ---

LENGTHS = [1, 3, 4096, 65_536, 131_071, 131_072, 262_144, 300_001, 3_000_000, 7, 2_000_001]


def tensors_of(data):
    """The tensors of a safetensors file."""
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + length])
    first = {key: value["data_offsets"] for key, value in header.items() if key != "__metadata__"}
    return {key: data[8 + length + begin : 8 + length + end] for key, (begin, end) in first.items()}


def components_of(manifest, data):
    """The parts of a zTensor file that its manifest names."""
    places = {key: object_["components"]["data"] for key, object_ in manifest["objects"].items()}
    return {key: data[place["offset"] : place["offset"] + place["length"]] for key, place in places.items()}


def own_copy(server, folder, data):
    """The manifest of a file, as the server reads it from a copy of it."""
    (folder / "copy.part").write_bytes(data)
    os.rename(folder / "copy.part", folder / "copy.zt")
    eventually(lambda: get(server, "/v1/models/copy").status == 200)
    return json.loads(get(server, "/v1/models/copy").body)


@pytest.fixture
def exporting(tmp_path, start_server):
    arrays = {f"t{i}": pattern(length, seed=i + 1) for i, length in enumerate(LENGTHS)}
    # The last in the file and in the export.
    arrays["z"] = pattern(5000, seed=99)
    objects = {key: dense(data) for key, data in arrays.items()}
    (tmp_path / "many.zt").write_bytes(zt1(objects))
    return start_server(tmp_path), arrays


@pytest.mark.parametrize("format_", ["safetensors", "npz", "zt"])
def test_exports_of_tensors_of_all_sizes(exporting, tmp_path, format_):
    server, arrays = exporting
    target = f"/v1/models/many/export?format={format_}"
    with Connection(server) as connection:
        whole = connection.ask("GET", target)
        if format_ == "safetensors":
            assert tensors_of(whole.body) == arrays
        if format_ == "zt":
            assert components_of(own_copy(server, tmp_path, whole.body), whole.body) == arrays
        if format_ == "npz":
            assert {key: value.tobytes() for key, value in numpy.load(io.BytesIO(whole.body)).items()} == arrays
        random_ = random.Random(format_)
        for _ in range(3):
            first = random_.randrange(len(whole.body) - (2 << 20))
            last = first + (1 << 20) + random_.randrange(1 << 20)
            part = connection.ask("GET", target, {"Range": f"bytes={first}-{last}"})
            assert part.status == 206
            assert part.body == whole.body[first : last + 1]


@pytest.mark.folder("files that change under a download")
def test_an_export_of_a_file_that_was_truncated_never_becomes_whole(exporting, tmp_path):
    server, arrays = exporting
    target = "/v1/models/many/export?format=safetensors"
    length = len(get(server, target).body)
    connection, begun = begin(server, target, CLOSE)
    placed = json.loads(get(server, "/v1/models/many").body)["objects"]["z"]["components"]["data"]
    assert arrays["z"][-1] != 0
    os.truncate(tmp_path / "many.zt", placed["offset"] + placed["length"] - 1)
    assert len(begun + read_until_closed(connection)) < length
