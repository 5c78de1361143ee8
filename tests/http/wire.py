"""HTTP from outside, with nothing in between: targets go out as they are written, and no field is added but Host.

`ask` is for requests that are well formed; `talk` sends any bytes and reads what comes back until the server closes.
"""

import base64
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import re
import socket
import time
from pathlib import Path
from urllib.parse import quote

# Bounds for what should happen at once; generous, since sanitized builds on shared machines are slow.
TIMEOUT_S = 180
NOTICED_S = 180


class Answer:
    """One response: status, fields (names in any case), body."""

    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.body = body

    def __repr__(self):
        return f"<{self.status} {dict(self.fields.items())} {self.body[:300]!r}>"

    def __getitem__(self, name):
        return self.fields[name]

    def json(self):
        assert self["Content-Type"].split(";")[0].endswith("json"), self
        assert self.body.endswith((b"}\n", b"]\n")), f"at a terminal, the prompt stands behind the bracket: {self}"
        return json.loads(self.body)


def look_at_folder(server):
    """Before a request: what the test changed in the folder is there. `server` may be a proxy, which has none."""
    if getattr(server, "mirror", None):
        server.look_at_folder()


def look_at_bucket(server):
    """After a request that may have written."""
    if getattr(server, "mirror", None):
        server.look_at_bucket()


def ask(server, method, target, fields=None, body=None):
    """One request on a connection of its own."""
    with Connection(server) as connection:
        return connection.ask(method, target, fields, body)


def get(server, target, **fields):
    """GET; fields as keywords, with _ for -."""
    return ask(server, "GET", target, {name.replace("_", "-"): value for name, value in fields.items()})


def head(server, target, **fields):
    return ask(server, "HEAD", target, {name.replace("_", "-"): value for name, value in fields.items()})


def http_connection(server):
    if server.context is None:
        return http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT_S)
    return http.client.HTTPSConnection(server.host, server.port, timeout=TIMEOUT_S, context=server.context)


def at_once(*calls):
    """What they return; all run at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


class Connection:
    """A connection that is kept from request to request."""

    def __init__(self, server):
        self.http = http_connection(server)
        self.server, self.writes = server, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.http.close()

    def ask(self, method, target, fields=None, body=None):
        self.send(method, target, fields, body)
        return self.receive()

    def send(self, method, target, fields=None, body=None):
        fields = dict(fields or {})
        look_at_folder(self.server)
        self.writes = method not in ("GET", "HEAD", "OPTIONS")
        self.http.putrequest(method, target, skip_accept_encoding=True)
        if body is not None and "Transfer-Encoding" not in fields:
            fields.setdefault("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.http.putheader(name, value)
        self.http.endheaders(body)

    def receive(self):
        response = self.http.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if self.writes:
            look_at_bucket(self.server)
        return answer


class BareSocket(socket.socket):
    """When it is closed, what was written through it is looked for."""

    server = None

    def close(self):
        super().close()
        look_at_bucket(self.server)


@dataclasses.dataclass
class SecondAddress:
    """The address of s3.listen, for the functions of wire.py."""

    host: str
    port: int
    context: object = None


def second_address(server):
    line = server.wait_for_line("clients of S3 find the bucket")
    host, port = re.search(r"://([^/ ]+):(\d+)", line).groups()
    return SecondAddress(host, int(port), server.context)


def connect(server, receive_buffer=None):
    """A bare socket; a small receive buffer makes a reader that the server has to wait for."""
    look_at_folder(server)
    connection = BareSocket(socket.AF_INET, socket.SOCK_STREAM)
    connection.server = server
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(TIMEOUT_S)
    connection.connect((server.host, server.port))
    if server.context is None:
        return connection
    return server.context.wrap_socket(connection, server_hostname=server.host)


def read_until_closed(connection):
    received = b""
    try:
        while chunk := connection.recv(1 << 16):
            received += chunk
    except ConnectionResetError:
        pass
    return received


def begin_answer(server, target, fields="", receive_buffer=4096):
    """An answer whose reader stops at its beginning: the connection, the status, the fields, and what came of the body."""
    connection = connect(server, receive_buffer)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
    return connection, *read_head(connection)


def talk(server, data):
    """Sends bytes as they are; returns what the server sent until it closed the connection."""
    with connect(server) as connection:
        connection.sendall(data)
        return read_until_closed(connection)


def read_head(connection):
    """Status and fields of a response (names in lower case), and the first bytes of its body if they came along."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(1 << 16)
        assert chunk, received
        received += chunk
    block, body = received.split(b"\r\n\r\n", 1)
    lines = block.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    return int(lines[0].split()[1]), fields, body


def read_exactly(connection, length, received=b""):
    """Up to so many bytes; fewer if the connection ends before."""
    parts, missing = [received], length - len(received)
    try:
        while missing > 0 and (chunk := connection.recv(min(missing, 1 << 20))):
            parts.append(chunk)
            missing -= len(chunk)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def segment(name):
    """A name as one path segment."""
    return quote(name, safe="")


def model_path(model):
    return f"/v1/models/{segment(model)}"


def object_path(model, name):
    return f"{model_path(model)}/objects/{segment(name)}"


def component_path(model, name, role="data"):
    return f"{object_path(model, name)}/{segment(role)}"


def manifest(server, model):
    answer = get(server, model_path(model))
    assert answer.status == 200, answer
    return answer.json()


def eventually(condition, within_s=NOTICED_S):
    """Waits until the condition gives something true, and gives it on."""
    deadline = time.monotonic() + within_s
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return result


def unread_of(connection):
    """How many bytes lie in the server's end of a connection; None: it has none yet."""
    ends = [f":{end[1]:04X}" for end in (connection.getpeername(), connection.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues = line.split()[:5]
        if local.endswith(ends[0]) and remote.endswith(ends[1]):
            return int(queues.split(":")[1], 16)


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def is_running(server):
    """Whether a thread computes, or would if a processor was free."""
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False


def busy_share(server):
    """The share of looks at the server, one each 10 ms, that find it running. Other load on the machine does not lower it."""
    looks = []
    for _ in range(20):
        looks.append(is_running(server))
        time.sleep(0.01)
    return sum(looks) / len(looks)


def assert_rests(server):
    """Soon the server does next to nothing: what no client waits for any more has ended, and no thread spins."""
    eventually(lambda: busy_share(server) <= 0.2, within_s=120)


def metrics(server, client=None):
    """{name{labels}: value} of every sample that the server counts, as a client with a token sees it."""
    text = (client.get if client else get)(server, "/metrics").body.decode()
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def verification(server, model):
    return get(server, f"{model_path(model)}/verification").json()


def verify(server, model):
    """Has everything hashed and waits for the end; the state then."""
    answer = ask(server, "POST", f"{model_path(model)}/verification")
    assert answer.status == 202, answer
    return eventually(lambda: ended_state(server, model), within_s=TIMEOUT_S)


def ended_state(server, model):
    state = verification(server, model)
    return state if state["state"] in ("verified", "failed") else None


def sha256_field(data):
    """As Repr-Digest and Content-Digest write it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def publish(path, data):
    """Replaces a file atomically, as writers should."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(data)
    temporary.rename(path)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def memory_kib(server, name="VmRSS"):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith(f"{name}:")).split()[1])


def assert_problem(answer, status, code):
    """The shape that every error has, section 7 of the contract; gives the document for more."""
    assert answer.status == status, answer
    assert answer["Content-Type"].split(";")[0] == "application/problem+json", answer
    problem = json.loads(answer.body)
    assert problem["code"] == code, problem
    assert problem["type"] == f"/problems/{code}"
    assert problem["status"] == status
    assert problem["title"] and isinstance(problem["title"], str)
    assert problem["detail"] and isinstance(problem["detail"], str)
    assert problem["request_id"] == answer["X-Request-Id"]
    return problem
