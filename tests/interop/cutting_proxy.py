"""A proxy that cuts connections: the first answers longer than `after` bytes end there, as if a cable had been pulled."""

import re
import socket
import socketserver
import threading

PIECE = 1 << 16


class CuttingProxy:
    """Passes connections on to a server; `requests` are the heads that came through, `cuts` how many answers were cut."""

    def __init__(self, server, after, times=1):
        self.server, self.after, self.left = server, after, times
        self.requests, self.cuts = [], 0
        self._lock = threading.Lock()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                proxy._pass(self.request)

        self._listener = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._listener.daemon_threads = True
        self._listener.server_bind()
        self._listener.server_activate()
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def stop(self):
        self._listener.shutdown()
        self._listener.server_close()

    def ranges(self, path):
        """The Range fields of GETs of a file whose URL ends so; None for those that had none."""
        gets = [head for head in self.requests if re.match(rf"GET \S*{re.escape(path)} ", head)]
        found = [re.search(r"^range: *(\S+)", head, re.I | re.M) for head in gets]
        return [match and match.group(1) for match in found]

    def _pass(self, client):
        with socket.create_connection((self.server.host, self.server.port)) as upstream:
            back = threading.Thread(target=self._answers, args=(upstream, client), daemon=True)
            back.start()
            try:
                self._requests(client, upstream)
            except OSError:
                pass
            back.join(60)

    def _requests(self, client, upstream):
        while data := client.recv(PIECE):
            if data.split(b" ", 1)[0] in (b"GET", b"HEAD", b"POST", b"PUT"):
                self.requests.append(data.split(b"\r\n\r\n")[0].decode("latin-1"))
            upstream.sendall(data)
        upstream.shutdown(socket.SHUT_WR)

    def _answers(self, upstream, client):
        sent = 0
        try:
            while data := upstream.recv(PIECE):
                sent += len(data)
                if sent > self.after and self._cut():
                    break
                client.sendall(data)
        except OSError:
            pass
        for end in (client, upstream):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _cut(self):
        with self._lock:
            cut = self.left > 0
            self.left -= cut
            self.cuts += cut
            return cut
