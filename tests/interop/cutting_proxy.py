"""A proxy that cuts connections: the first answers longer than `after` bytes end there, as if a cable had been pulled."""

import re
import threading

from relay import Relay


class CuttingProxy(Relay):
    """`requests` are the heads that came through, `cuts` how many answers were cut."""

    def __init__(self, server, after, times=1):
        super().__init__(server.host, server.port)
        self.after, self.left = after, times
        self.requests, self.cuts = [], 0
        self.lock = threading.Lock()

    def ranges(self, path):
        """The Range fields of GETs of a file whose URL ends so; None for those that had none."""
        gets = [head for head in self.requests if re.match(rf"GET \S*{re.escape(path)} ", head)]
        found = [re.search(r"^range: *(\S+)", head, re.I | re.M) for head in gets]
        return [match and match.group(1) for match in found]

    def passing(self, data, is_request, connection):
        if is_request:
            if data.split(b" ", 1)[0] in (b"GET", b"HEAD", b"POST", b"PUT"):
                self.requests.append(data.split(b"\r\n\r\n")[0].decode("latin-1"))
            return True
        if connection.carried <= self.after:
            return True
        with self.lock:
            is_cut = self.left > 0
            self.left -= is_cut
            self.cuts += is_cut
        return not is_cut
