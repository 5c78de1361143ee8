"""A bucket behind a store that may misbehave, and what a server over it may answer: right bytes or an error."""

import pytest

from containers import dense, pattern, zt1
from wire import component_path, connect, get, model_path

MIB = 1 << 20
DATA = pattern(10 * MIB, seed=1)
OTHER = pattern(10 * MIB, seed=2)
# Without a digest only the answers' heads can tell that bytes are wrong.
BARE, OTHER_BARE = zt1({"w": dense(DATA, digest=None)}), zt1({"w": dense(OTHER, digest=None)})
TARGET = component_path("m", "w")
# Longer than all retries of a client's read.
SETTLED_S = 180


@pytest.fixture
def bucket(moto_bucket):
    moto_bucket.put("m.zt", BARE)
    return moto_bucket


@pytest.fixture
def server(bucket, meddler, serve_bucket):
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert get(server, model_path("m")).status == 200
    return server


def sent_to(server, target=TARGET):
    """Status and what came of the body, also when the connection was cut."""
    with connect(server) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = bytearray()
        try:
            while chunk := connection.recv(1 << 20):
                received += chunk
        except ConnectionResetError:
            pass
    top, _, body = bytes(received).partition(b"\r\n\r\n")
    return int(top.split()[1]) if top else None, body


def is_right(server, target=TARGET, data=DATA):
    """An error and a cut are not right either: a block that was asked for before the store was mended may still fail."""
    status, body = sent_to(server, target)
    if status != 200:
        return False
    assert body == data[: len(body)]
    return len(body) == len(data)


def assert_nothing_wrong(server, target=TARGET, data=DATA):
    """What was sent is right as far as it goes, or the store is unavailable."""
    status, body = sent_to(server, target)
    assert status in (200, 503), (status, body[:300])
    assert body == data[: len(body)] or status == 503
    return status == 200 and len(body) == len(data)
