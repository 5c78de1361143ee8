"""A proxy between ztserve and an object store that misbehaves on demand and counts what it sees.

Without rules it passes everything on; `meddle` adds a rule: which requests, and what they get instead. What it counts is
by kind: "list", "read" (GET of an object), "head", "write" (PUT, POST, multipart), "delete".
"""

import contextlib
import http.client
import re
import socket
import struct
import threading
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

RANGE = re.compile(r"bytes=(\d+)-(\d+)$")
UPSTREAM_TIMEOUT_S = 60
PIECE = 1 << 18
HOP_BY_HOP = ("connection", "transfer-encoding", "keep-alive", "content-length", "server", "date")


@dataclass
class Request:
    """What ztserve asked."""

    method: str
    target: str
    fields: dict
    body: bytes

    @property
    def path(self):
        return unquote(urlsplit(self.target).path)

    @property
    def query(self):
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def kind(self):
        if self.method == "GET":
            return "list" if "list-type" in self.query else "read"
        return {"HEAD": "head", "DELETE": "delete"}.get(self.method, "write")

    @property
    def key(self):
        """Without the bucket."""
        return self.path.lstrip("/").partition("/")[2]

    @property
    def range(self):
        """First and last byte, or None."""
        found = RANGE.match(self.fields.get("range", ""))
        return (int(found[1]), int(found[2])) if found else None


@dataclass
class Reply:
    """What ztserve gets. length: what Content-Length says, if not the truth; below 0: no such field."""

    status: int
    fields: dict = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None

    def with_fields(self, **fields):
        """Other fields; None removes one."""
        changed = {**self.fields, **{name.replace("_", "-").title(): value for name, value in fields.items()}}
        return replace(self, fields={name: value for name, value in changed.items() if value is not None})


@dataclass
class Seen:
    """A request and what became of it; sent_bytes of bodies only."""

    request: Request
    status: int = 0
    sent_bytes: int = 0
    at: float = field(default_factory=time.monotonic)


class Tally:
    """Counts of the requests since a moment, by kind; it grows."""

    def __init__(self, seen):
        self.all, self.start = seen, len(seen)

    @property
    def seen(self):
        return self.all[self.start :]

    def of(self, *kinds):
        """Of these kinds, without what servers keep for themselves."""
        return [one for one in self.seen if one.request.kind in kinds and ".ztserve/" not in one.request.path]

    def count(self, *kinds):
        return len(self.of(*kinds))

    def sent_bytes(self, *kinds):
        return sum(one.sent_bytes for one in self.of(*kinds))

    def __repr__(self):
        return "\n".join(f"{one.request.method} {one.request.target} {one.request.range} {one.status}" for one in self.seen)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self):
        super().setup()
        self.upstream = None
        self.server.meddler.connections.add(self.connection)

    def finish(self):
        self.server.meddler.connections.discard(self.connection)
        if self.upstream:
            self.upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments):
        pass

    def handle_expect_100(self):
        """At once: a client waits a second for it."""
        is_wanted = super().handle_expect_100()
        self.wfile.flush()
        return is_wanted

    def exchange(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fields = {name.lower(): value for name, value in self.headers.items()}
        meddler = self.server.meddler
        request = meddler.request_class(self.command, self.path, fields, body)
        self.seen = seen = Seen(request)
        with meddler.lock:
            meddler.seen.append(seen)
        meddler.ended.wait(meddler.delay_s)
        reply = meddler.answer(request, self)
        if reply is None:
            self.close_connection = True
            return
        seen.status = reply.status
        self.send(request, reply, seen)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = exchange

    def forward(self, request):
        """The store's own reply; one more try, since a kept connection may have been closed."""
        for is_last in (False, True):
            if self.upstream is None:
                self.upstream = http.client.HTTPConnection(self.server.meddler.upstream, timeout=UPSTREAM_TIMEOUT_S)
            try:
                self.upstream.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
                for name, value in request.fields.items():
                    if name not in ("expect", "connection"):
                        self.upstream.putheader(name, value)
                self.upstream.endheaders(request.body or None)
                response = self.upstream.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                self.upstream.close()
                self.upstream = None
                if is_last:
                    raise OSError("the store does not answer") from None
                continue
            fields = {name.title(): value for name, value in response.getheaders()}
            length = int(response.headers.get("Content-Length", 0)) if request.method == "HEAD" else None
            kept = {name: value for name, value in fields.items() if name.lower() not in HOP_BY_HOP or name == "Date"}
            return Reply(response.status, kept, body, length)

    def send(self, request, reply, seen):
        lines = [f"HTTP/1.1 {reply.status} Meddled"]
        length = len(reply.body) if reply.length is None else reply.length
        if length >= 0 and reply.status != 204:
            lines.append(f"Content-Length: {length}")
        lines += [f"{name}: {value}" for name, value in reply.fields.items()]
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        if request.method != "HEAD":
            self.write_body(reply.body, seen)
            if reply.length is not None and reply.length != len(reply.body):
                self.close_connection = True
        self.wfile.flush()

    def write_body(self, body, seen):
        """Counted as it goes."""
        for start in range(0, len(body), PIECE):
            self.wfile.write(body[start : start + PIECE])
            self.wfile.flush()
            seen.sent_bytes += len(body[start : start + PIECE])

    def reset(self):
        """Ends the connection with a reset instead of an end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass

    def shutdown_request(self, request):
        """Only closes: an orderly end beforehand would rule out a reset."""
        self.close_request(request)


@dataclass
class Rule:
    matches: object
    act: object
    times: int | None
    used: int = 0


class Meddler:
    """`endpoint` is its address, for ZTSERVE_S3_ENDPOINT. The engine may be any server with an `endpoint`."""

    request_class, handler_class = Request, Handler

    def __init__(self, engine):
        self.engine = engine
        self.upstream = urlsplit(engine.endpoint).netloc if engine else None
        self.seen, self.rules, self.connections = [], [], set()
        self.lock = threading.Lock()
        self.delay_s = 0
        self.ended = threading.Event()
        # Keeps the port while nothing listens on it: connections are then refused.
        self.place = socket.socket()
        self.place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.place.bind(("127.0.0.1", 0))
        self.port = self.place.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.listener = None
        self.come_back()

    def come_back(self):
        """Listens (again)."""
        self.listener = Listener(("127.0.0.1", self.port), self.handler_class)
        self.listener.meddler = self
        threading.Thread(target=self.listener.serve_forever, args=(0.02,), daemon=True).start()

    def go_away(self):
        """Refuses connections and ends those there are."""
        if self.listener:
            self.listener.shutdown()
            self.listener.server_close()
            self.listener = None
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.ended.set()
        self.go_away()
        self.place.close()

    # --- rules ---

    def meddle(self, act, *kinds, key=None, when=None, times=None):
        """What requests of these kinds (all: none given) get; key: a text that is in their key; when: a condition; at most
        so many times. The last rule that fits counts. Gives the rule, for `used` and `stop`."""

        def matches(request):
            fits = not kinds or request.kind in kinds
            return fits and (key is None or key in request.key) and (when is None or when(request))

        rule = Rule(matches, act, times)
        with self.lock:
            self.rules.append(rule)
        return rule

    def stop(self, rule=None):
        """Takes back a rule, or all."""
        with self.lock:
            self.rules = [one for one in self.rules if rule is not None and one is not rule]

    def answer(self, request, handler):
        with self.lock:
            rule = next((one for one in reversed(self.rules) if one.matches(request) and one.used != one.times), None)
            if rule:
                rule.used += 1
        return rule.act(request, handler) if rule else handler.forward(request)

    # --- counting ---

    def counting(self):
        """From now on."""
        return Tally(self.seen)


# --- what may be done to a request: functions of the request and its handler, which give a reply or None ---


def changed(change):
    """The store's reply, changed by a function of it."""
    return lambda request, handler: change(handler.forward(request))


def reply(status, body=b"", **fields):
    """A reply of our own."""
    made = Reply(status, body=body).with_fields(**fields)
    return lambda request, handler: made


def store_error(status, code, message="of the meddler", **fields):
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return reply(status, text.encode(), Content_Type="application/xml", **fields)


def slow_down():
    return store_error(503, "SlowDown")


def reset(request, handler):
    handler.reset()


def hang(request, handler):
    """Takes the request and never answers."""
    handler.server.meddler.ended.wait(600)


def trickle(request, handler):
    """Takes the request and sends a line of the head now and then."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 206 Partial Content\r\n")
    while not handler.server.meddler.ended.wait(0.2):
        try:
            handler.wfile.write(b"X-Line: more\r\n")
            handler.wfile.flush()
        except OSError:
            return


def cut_after(length, then):
    """A true head, so many bytes of the body, and then that."""

    def act(request, handler):
        true = handler.forward(request)
        handler.seen.status = true.status
        handler.send(request, replace(true, body=true.body[:length], length=len(true.body)), handler.seen)
        then(request, handler)

    return act


def reset_after(length):
    return cut_after(length, reset)


def stall_after(length):
    return cut_after(length, hang)


def paused_after(length, event):
    """A true head, so many bytes of the body, and the rest once the event has happened."""

    def then(request, handler):
        event.wait(600)
        true = handler.forward(request)
        handler.write_body(true.body[length:], handler.seen)
        handler.wfile.flush()
        handler.close_connection = False

    return cut_after(length, then)


def drip_after(length):
    """A true head, so many bytes of the body, and then a byte now and then, and none after the last."""

    def then(request, handler):
        rest = handler.forward(request).body[length:]
        at = 0
        while not handler.server.meddler.ended.wait(0.1):
            handler.write_body(rest[at : at + 1], handler.seen)
            at += 1

    return cut_after(length, then)


def short_body(missing):
    """Fewer bytes than Content-Length says, and then the end of the connection."""
    return changed(lambda true: replace(true, body=true.body[:-missing], length=len(true.body)))


def shorter_answer(missing):
    """Fewer bytes than were asked for, consistently: Content-Length agrees, Content-Range does not."""
    return changed(lambda true: replace(true, body=true.body[:-missing]))


def longer_answer(more):
    return changed(lambda true: replace(true, body=true.body + bytes(more)))


def flipped(position=0):
    """One bit of the body is another; the head is true."""

    def change(true):
        body = bytearray(true.body)
        body[position % max(1, len(body))] ^= 1
        return replace(true, body=bytes(body))

    return changed(change)


def whole_instead_of_range(data):
    """A 200 with the whole object, as of a store that knows no ranges; data: bytes of an object."""

    def act(request, handler):
        true = handler.forward(request)
        kept = true.with_fields(Content_Range=None)
        return replace(kept, status=200, body=data)

    return act


def with_fields(**fields):
    """The true body under another head."""
    return changed(lambda true: true.with_fields(**fields))


def of_another_version(data, etag=None):
    """The range asked for, but of other bytes; with the true ETag unless another is given."""

    def act(request, handler):
        true = handler.forward(request)
        first, last = request.range or (0, len(data) - 1)
        other = replace(true, body=data[first : last + 1])
        return other.with_fields(ETag=f'"{etag}"') if etag else other

    return act


def listing(body):
    """This instead of a list."""
    return reply(200, body if isinstance(body, bytes) else body.encode(), Content_Type="application/xml")
