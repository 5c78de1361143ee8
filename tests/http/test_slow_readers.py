"""Clients that take their answers slowly: below limits.reader_min_bytes_per_s they are cut after the grace, in
whichever way the answer is sent; above it they are left alone, and so is a client whose server is the slow one."""

import time

import numpy
import pytest

from containers import dense, pattern, zstd_dense, zt1
from recorded_calls import FAULTS
from wire import NOTICED_S, begin_answer, component_path, eventually, get, read_exactly

LEAST = 100_000
GRACE_S = 1
LIMITS = {
    "ZTSERVE_LIMITS_READER_MIN_BYTES_PER_S": str(LEAST),
    "ZTSERVE_LIMITS_RATE_GRACE_S": str(GRACE_S),
    # Far longer than anything here may take.
    "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "600",
}
ROWS, COLUMNS = 3000, 4096
TABLE = numpy.frombuffer(pattern(ROWS * COLUMNS), dtype=numpy.uint8).reshape(ROWS, COLUMNS)
# How an answer is sent: the query, and the send buffer, on which it depends (sender.c).
WAYS = {
    "from a mapping": ("w", "", 65536),
    "by sendfile": ("w", "", 0),
    "runs of a mapping": ("w", "?slice=:,1:4000", 65536),
    "gathered runs": ("n", "?slice=:,1:129", 65536),
    "gathered by workers": ("s", "?slice=:,1:60", 65536),
    "decoded by workers": ("z", "", 65536),
}
# The same bytes in shorter rows.
NARROW, SHORT = TABLE.reshape(-1, 192), TABLE.reshape(-1, 64)
EXPECTED = {
    "w": TABLE.tobytes(), "w?slice=:,1:4000": TABLE[:, 1:4000].tobytes(), "n?slice=:,1:129": NARROW[:, 1:129].tobytes(),
    "s?slice=:,1:60": SHORT[:, 1:60].tobytes(), "z": pattern(20_000_000),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(folder):
    objects = {key: dense(array.tobytes(), shape=list(array.shape)) for key, array in (("w", TABLE), ("n", NARROW), ("s", SHORT))}
    objects["z"] = zstd_dense(EXPECTED["z"])
    (folder / "m.zt").write_bytes(zt1(objects))
    return folder


@pytest.fixture(scope="module", params=WAYS)
def way(request, files, share_server):
    key, query, buffer = WAYS[request.param]
    server = share_server(files, environment={**LIMITS, "ZTSERVE_LIMITS_SEND_BUFFER_BYTES": str(buffer)})
    # Whatever must be verified and decoded is.
    assert get(server, component_path("m", key) + query).body == EXPECTED[key + query]
    return server, key, query


def begin(server, target):
    connection, status, fields, begun = begin_answer(server, target, "Connection: close\r\n")
    assert status == 200
    return connection, int(fields["content-length"]), begun


def take(connection, bytes_per_s, until):
    """Takes about so much a second, in twenty pieces; gives the number of bytes at the end of the connection."""
    taken = 0
    latest = time.monotonic() + NOTICED_S
    try:
        while not until() and time.monotonic() < latest:
            time.sleep(0.05)
            piece = connection.recv(bytes_per_s // 20)
            if not piece:
                break
            taken += len(piece)
    except ConnectionResetError:
        pass
    return taken


def cut_lines(server, since):
    return [line for line in server.log_lines[since:] if " 200 " in line and " of the answer: timeout" in line]


def test_a_reader_that_trickles_is_cut(way):
    server, key, query = way
    since = len(server.log_lines)
    connection, _, _ = begin(server, component_path("m", key) + query)
    with connection:
        take(connection, LEAST // 20, lambda: cut_lines(server, since))
    eventually(lambda: cut_lines(server, since))


def test_a_reader_above_the_least_rate_is_left_alone(way):
    """For several times the grace; then it takes all the rest."""
    server, key, query = way
    connection, length, begun = begin(server, component_path("m", key) + query)
    began = time.monotonic()
    received = bytearray(begun)
    with connection:
        while time.monotonic() - began < 3 * GRACE_S:
            time.sleep(0.05)
            received += read_exactly(connection, LEAST // 4)
        assert read_exactly(connection, length, bytes(received)) == EXPECTED[key + query]


def test_readers_that_take_nothing_are_all_cut(way):
    """Beside one that takes all."""
    server, key, query = way
    since = len(server.log_lines)
    readers = [begin(server, component_path("m", key) + query)[0] for _ in range(20)]
    assert get(server, component_path("m", key) + query).body == EXPECTED[key + query]
    eventually(lambda: len(cut_lines(server, since)) == len(readers))
    for reader in readers:
        reader.close()


def test_without_a_least_rate_a_reader_may_trickle(files, start_server):
    server = start_server(files, environment={**LIMITS, "ZTSERVE_LIMITS_READER_MIN_BYTES_PER_S": "0", "ZTSERVE_DRAIN_S": "0"})
    connection, _, _ = begin(server, component_path("m", "w"))
    began = time.monotonic()
    with connection:
        assert take(connection, LEAST // 20, lambda: time.monotonic() - began > 4 * GRACE_S) > 0
    assert cut_lines(server, 0) == []


@pytest.mark.plain("a preloaded library makes reading slow")
def test_a_client_whose_server_is_slow_is_left_alone(start_server, tmp_path):
    """The bytes come at less than the least rate, but none of them waits for the client."""
    part = TABLE[:250]
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(part.tobytes(), shape=list(part.shape))}))
    slow = {"LD_PRELOAD": str(FAULTS), "ZT_SLOW_READ_MS": "200", "ZTSERVE_LIMITS_READER_MIN_BYTES_PER_S": "1000000"}
    server = start_server(tmp_path, "--verify", "off", environment={**LIMITS, **slow})
    began = time.monotonic()
    assert get(server, component_path("m", "w") + "?slice=:,1:4000").body == part[:, 1:4000].tobytes()
    assert time.monotonic() - began > 3 * GRACE_S
    assert cut_lines(server, 0) == []
