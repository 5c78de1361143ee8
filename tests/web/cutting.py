"""A way to a server that can be cut."""

from relay import Relay


class CutWay(Relay):
    """`cut_after` bytes towards the server all connections are closed, and new ones too until `open`."""

    def __init__(self, server):
        super().__init__(server.host, server.port)
        self.left, self.cuts = None, 0

    def cut_after(self, count):
        self.left = count

    def shut(self):
        """Cuts at once."""
        self.is_open = False
        self.cut()

    def open(self):
        self.is_open = True

    def passing(self, data, is_request, connection):
        if is_request and self.left is not None:
            self.left -= len(data)
            if self.left <= 0:
                self.left, self.cuts = None, self.cuts + 1
                self.shut()
        return self.is_open
