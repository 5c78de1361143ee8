"""Every row of hostile_requests.py, each on a bare socket of its own and followed by one more request, the canary.

A row is answered as it says and exactly as often as it says, and nothing in it is obeyed that is not a request: its
victim is still there at the end. So it is when the bytes arrive a few at a time. All rows are sent by some threads before
the first test, since a few of them take seconds.
"""

import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from hostile_requests import TABLE
from hostile_rows import FILE, to
from wire import connect, eventually, get, read_until_closed

# Each has two files of its own, which are thousands of requests to a store that no row reaches.
pytestmark = pytest.mark.folder("rows that are answered before a store is asked")

CANARY = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r\n]+\Z")
FIELD = re.compile(rb"[A-Za-z0-9-]+: [^\r\n]*\Z")
AT_A_TIME = 32
PIECE_BYTES = 11
# Far longer than any row takes, and shorter than a test may take.
PATIENCE_S = 60


class Received:
    """One answer: its status, its fields (names in lower case) and its body."""

    def __init__(self, status, fields, body, head_repeated=False):
        self.status = status
        self.fields = fields
        self.body = body
        self.head_repeated = head_repeated

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:200]!r}>"

    def is_canary_s(self):
        return self.status == 200 and b'"version"' in self.body


def parse_head(block):
    """Refuses anything that is not a status line and fields, such as a second head in place of a body."""
    first, *lines = block.split(b"\r\n")
    assert STATUS_LINE.match(first), block
    assert all(FIELD.match(line) for line in lines), block
    fields = dict(line.lower().split(b": ", 1) for line in lines)
    assert len(fields) == len(lines), f"a repeated field: {block}"
    return int(STATUS_LINE.match(first)[1]), fields


def parse_answers(data, to_head):
    """What was received, as answers. Those to HEAD have a length but no body; only the first can be one."""
    answers = []
    while data:
        block, end, data = data.partition(b"\r\n\r\n")
        assert end, block
        status, fields = parse_head(block)
        # libmicrohttpd 0.9.75 sends the head of some of its own pages twice.
        head_repeated = data.startswith(block + b"\r\n\r\n")
        data = data[len(block) + 4 :] if head_repeated else data
        has_body = status >= 200 and status not in (204, 304) and not (to_head and not answers)
        length = int(fields[b"content-length"]) if has_body else 0
        assert len(data) >= length, (block, data)
        answers.append(Received(status, fields, data[:length], head_repeated))
        data = data[length:]
    return answers


NAMES = list(TABLE)
# Sent a few bytes at a time too.
SHORT_NAMES = [name for name in NAMES if len(TABLE[name][0]) < 2000]


def has_canary(name):
    return not name.startswith("unfinished")


class Round:
    """One way of sending rows, with models of its own."""

    def __init__(self, folder, names, letters, piece_bytes):
        self.folder = folder
        self.names = names
        self.victim_letter, self.target_letter = letters
        self.piece_bytes = piece_bytes
        for name in names:
            self.victim(name).write_bytes(FILE)

    # The names of models are as long as those in the table, so that lengths stay right.

    def victim(self, name):
        return self.folder / f"{self.victim_letter}{NAMES.index(name):05}.zt"

    def target(self, name):
        return self.folder / f"{self.target_letter}{NAMES.index(name):05}.zt"

    def bytes_of(self, name):
        data = TABLE[name][0]
        for word, path in ((b"victim", self.victim(name)), (b"target", self.target(name))):
            data = data.replace(word, path.stem.encode())
        return data + CANARY if has_canary(name) else data

    def send(self, server, name):
        """What came back for a row."""
        data = self.bytes_of(name)
        with connect(server) as connection:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for at in range(0, len(data), self.piece_bytes):
                    connection.sendall(data[at : at + self.piece_bytes])
                if not has_canary(name):
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_until_closed(connection)

    def run(self, server):
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            received = pool.map(lambda name: self.send(server, name), self.names)
            self.received = dict(zip(self.names, received))


@pytest.fixture(scope="module")
def rounds(folder):
    whole = Round(folder, NAMES, "vt", 1 << 30)
    pieces = Round(folder, SHORT_NAMES, "wu", PIECE_BYTES)
    return {"whole": whole, "pieces": pieces}


@pytest.fixture(scope="module")
def server(folder, rounds, share_server):
    """Has answered all rows."""
    (folder / "m.zt").write_bytes(zt1({"w": dense(pattern(1000))}))
    limits = {"ZTSERVE_LIMITS_HEADER_TIMEOUT_S": "5", "ZTSERVE_LIMITS_IDLE_TIMEOUT_S": "5"}
    server = share_server(folder, "--writable", environment={**limits, "ZTSERVE_UPLOAD_MAX_BYTES": str(1 << 40)})
    server.sockets_at_start = sockets(server)
    for one in rounds.values():
        one.run(server)
    return server


def sockets(server):
    return sum(is_socket(path) for path in Path(f"/proc/{server.process.pid}/fd").iterdir())


def is_socket(path):
    try:
        return os.readlink(path).startswith("socket:")
    except FileNotFoundError:
        return False


def fits(answers, wanted, has_canary):
    """Whether the answers before the canary's, and whether there is one, are as wanted."""
    is_kept = has_canary and wanted.kept
    others = answers[:-1] if is_kept else answers
    if is_kept and not (answers and answers[-1].is_canary_s()):
        return False
    finals = [answer for answer in others if answer.status >= 200]
    return len(finals) == wanted.count and all(has_code(answer, wanted) for answer in finals)


def has_code(answer, wanted):
    if answer.status != wanted.status:
        return False
    if wanted.code is None:
        return answer.status >= 400 or not answer.head_repeated
    return not answer.head_repeated and b'"code":"%b"' % wanted.code.encode() in answer.body


def assert_as_wanted(one, name):
    data, wanted = TABLE[name]
    answers = parse_answers(one.received[name], data.startswith(b"HEAD "))
    assert any(fits(answers, each, has_canary(name)) for each in wanted), (answers, wanted)
    assert one.victim(name).read_bytes() == FILE
    assert one.target(name).exists() == any(answer.status == 201 for answer in answers)


@pytest.mark.parametrize("name", NAMES)
def test_row_is_answered_as_it_says(server, rounds, name):
    assert_as_wanted(rounds["whole"], name)


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_row_in_pieces_is_answered_as_it_says(server, rounds, name):
    assert_as_wanted(rounds["pieces"], name)


def test_line_that_begins_with_nul_between_requests_is_refused(server):
    with connect(server) as connection:
        connection.sendall(to(b"/healthz") + b"\x00X\r\n" + to(b"/healthz") + CANARY)
        answers = parse_answers(read_until_closed(connection), to_head=False)
    assert [answer.status for answer in answers] == [200, 400]


def test_no_connection_stays_open(server):
    """Not even one whose line never ended."""
    eventually(lambda: sockets(server) == server.sockets_at_start)


def test_server_is_as_before(server, rounds, folder):
    """No row left anything behind that was not stored on purpose."""
    assert get(server, "/v1/models/m/objects/w/data").body == pattern(1000)
    expected = {folder / "m.zt"}
    for one in rounds.values():
        expected |= {one.victim(name) for name in one.names}
        expected |= {one.target(name) for name in one.names if b" 201 " in one.received[name]}
    assert {path for path in folder.iterdir() if path.is_file()} == expected
