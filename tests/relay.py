"""A way to a server that passes everything on, and can be cut, slowed down or watched."""

import socket
import threading
from contextlib import suppress
from types import SimpleNamespace


class Relay:
    """Listens on a free port. `passing(data, is_request, connection)` sees each piece on its way, with what is kept for its
    connection (`carried`: bytes so far in that direction); it may wait, ends the connection by returning False, and
    replaces the piece by returning bytes."""

    def __init__(self, host, port):
        self.target, self.is_open, self.ends = (host, port), True, set()
        self.refused = 0  # connections for which the server could not be reached
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def passing(self, data, is_request, connection):
        return True

    def cut(self):
        for end in list(self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        # Whoever is inside accept would keep the port.
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        with near, suppress(OSError):
            if not self.is_open:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                self.refused += 1
                raise
            with far:
                self.ends |= {near, far}
                back = threading.Thread(target=self._pass, args=(far, near, False), daemon=True)
                back.start()
                self._pass(near, far, True)
                back.join()
                self.ends -= {near, far}

    def _pass(self, source, drain, is_request):
        connection = SimpleNamespace(carried=0)
        with suppress(OSError, threading.BrokenBarrierError):
            while data := source.recv(1 << 16):
                connection.carried += len(data)
                passed = self.passing(data, is_request, connection)
                if not passed:
                    break
                drain.sendall(passed if isinstance(passed, bytes) else data)
        for end in (source, drain):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
