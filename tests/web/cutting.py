"""A way to a server that can be cut."""

import socket
import threading


class CutWay:
    """Listens on a free port, and passes everything on to a server; `cut_after` bytes towards it all connections are
    closed, and new ones too until `open`."""

    def __init__(self, server):
        self.server = (server.host, server.port)
        self.left = None
        self.cuts = 0
        self.is_open = True
        self.connections = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, count):
        self.left = count

    def shut(self):
        """Cuts at once."""
        self.is_open = False
        self._cut()

    def open(self):
        self.is_open = True

    def close(self):
        self.listener.close()
        self._cut()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.is_open:
                near.close()
                continue
            far = socket.create_connection(self.server)
            self.connections |= {near, far}
            threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _cut(self):
        for one in list(self.connections):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.connections.discard(one)

    def _pass(self, source, target, counted):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                if counted and self.left is not None:
                    self.left -= len(data)
                    if self.left <= 0:
                        self.left = None
                        self.cuts += 1
                        self.is_open = False
                        self._cut()
        except OSError:
            pass
        self.connections -= {source, target}
        source.close()
        target.close()
