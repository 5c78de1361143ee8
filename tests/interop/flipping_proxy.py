"""A proxy that flips one bit of the bodies that it passes on, as a bad cable or disk would."""

from relay import Relay

# Later than any header, and inside the first range of a client.
AFTER = 100_000
PIECE_BYTES = 4096


class FlippingProxy(Relay):
    """Flips `times` bits, each in another piece of the server's responses; `flips` counts them."""

    def __init__(self, server, times=1):
        super().__init__(server.host, server.port)
        self.times, self.flips = times, 0

    def passing(self, data, is_request, connection):
        is_body = connection.carried > AFTER and len(data) >= PIECE_BYTES and b"HTTP/1.1" not in data
        if is_request or not is_body or self.flips == self.times:
            return True
        self.flips += 1
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
