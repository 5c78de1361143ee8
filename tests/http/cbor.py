"""A CBOR encoder (RFC 8949) of the tests' own, byte by byte and without any code of the server.

Heads are the shortest, floats the narrowest that hold the value, maps keep the order of the dict unless told to sort:
the deterministic encoding that zTensor 2 demands. What is deliberately wrong or unusual goes in as `Raw`.
"""

import math
import struct


class Raw(bytes):
    """Encoded bytes that are taken over as they are."""


def head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * width:
            return bytes([major << 5 | info]) + argument.to_bytes(width, "big")
    raise ValueError(argument)


def encode_float(value):
    if math.isnan(value):
        return b"\xf9\x7e\x00"
    for prefix, letter in ((b"\xf9", "e"), (b"\xfa", "f"), (b"\xfb", "d")):
        try:
            packed = struct.pack(f">{letter}", value)
        except OverflowError:
            continue
        if struct.unpack(f">{letter}", packed)[0] == value:
            return prefix + packed
    raise ValueError(value)


def encode_map(value, sort):
    pairs = [(encode(key, sort), encode(item, sort)) for key, item in value.items()]
    if sort:
        pairs.sort()
    return head(5, len(pairs)) + b"".join(key + item for key, item in pairs)


def indefinite_map(value):
    """The form in which the 0.1 writer wrote each tensor."""
    return Raw(b"\xbf" + b"".join(encode(key) + encode(item) for key, item in value.items()) + b"\xff")


def encode_int(value):
    return head(0, value) if value >= 0 else head(1, -1 - value)


def encode(value, sort=False):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
    if isinstance(value, int):
        return encode_int(value)
    if isinstance(value, float):
        return encode_float(value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return head(3, len(text)) + text
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(encode(item, sort) for item in value)
    if isinstance(value, dict):
        return encode_map(value, sort)
    raise TypeError(type(value))
