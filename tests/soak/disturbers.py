"""What goes wrong around a server: clients that break off, send nonsense or take their time, operators that reload."""

import copy
import json
import os
import random
import signal
import socket
import struct
import time

from wire import component_path, connect, get, model_path

NONSENSE = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/models/x/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + b"X-Long: " + b"a" * 40000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n" * 100,
    bytes(range(256)) * 8,
    b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


def reset(connection):
    """Closes with a reset instead of an orderly end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Disturber:
    """A client that breaks the rules, differently each time. What it gets does not matter."""

    def __init__(self, soak):
        self.soak = soak
        self.ways = [self.nonsense, self.half_header, self.half_body, self.slow_reader, self.gone_while_waiting]

    def step(self):
        try:
            random.choice(self.ways)()
        except OSError:
            pass
        self.soak.count("disturbed")
        time.sleep(0.02)

    def nonsense(self):
        with connect(self.soak.server) as connection:
            connection.sendall(random.choice(NONSENSE))
            connection.settimeout(1)
            connection.recv(4096)

    def half_header(self):
        with connect(self.soak.server) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: local")
            time.sleep(random.random() / 5)

    def half_body(self):
        length = random.choice((10, 5000, 3 << 20))
        connection = connect(self.soak.server)
        target = model_path(random.choice(self.soak.histories).model)
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
        connection.sendall(b"x" * random.randrange(length))
        reset(connection)

    def slow_reader(self):
        connection = connect(self.soak.server, receive_buffer=4096)
        connection.settimeout(1)
        target = component_path(random.choice(self.soak.histories).model, "z")
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            for _ in range(10):
                connection.recv(512)
                time.sleep(0.02)
        finally:
            reset(connection)

    def gone_while_waiting(self):
        connection = connect(self.soak.server)
        target = f"{model_path(random.choice(self.soak.histories).model)}/export?format=npz"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        reset(connection)

    def close(self):
        pass


class Operator:
    """Reloads with changed limits, asks for health and figures, starts verifications."""

    def __init__(self, soak):
        self.soak = soak
        self.round = 0

    def step(self):
        self.round += 1
        configuration = copy.deepcopy(self.soak.configuration)
        configuration["limits"] |= {"idle_timeout_s": 30 + self.round % 3, "connections": 1000 + self.round % 2}
        text = json.dumps(configuration)
        # Every seventh file is broken: it must change nothing.
        written = self.soak.config_path.with_suffix(".new")
        written.write_text(text[:-1] if self.round % 7 == 0 else text)
        os.replace(written, self.soak.config_path)
        self.soak.server.signal(signal.SIGHUP)
        for path in ("/healthz", "/readyz", "/v1/models", "/openapi.json", "/metrics", "/v1/uploads"):
            answer = get(self.soak.server, path)
            if answer.status not in (200, 503):
                raise AssertionError(f"{path}: {answer}")
        self.soak.count("reloaded")
        time.sleep(1)

    def close(self):
        pass
