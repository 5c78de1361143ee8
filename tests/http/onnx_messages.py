"""Messages of ONNX, written without its package: graphs of initializers, with their data or that of files beside them."""


def varint(value):
    value %= 1 << 64
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, shape, *fields):
    return b"".join([*(field(1, extent) for extent in shape), field(2, kind), field(8, name.encode()), *fields])


def onnx(*tensors):
    graph = field(2, b"graph") + b"".join(field(5, one) for one in tensors)
    return field(1, 10) + field(2, b"test") + field(7, graph) + field(8, field(2, 21))


def raw(data):
    return field(9, data)


def single(number, value):
    """A number that is not packed; floats as their bytes."""
    if isinstance(value, int):
        return field(number, value)
    return varint(number << 3 | (5 if len(value) == 4 else 1)) + value


def external(location, **numbers):
    entries = {"location": location, **{key: str(number) for key, number in numbers.items()}}
    listed = (field(13, field(1, key.encode()) + field(2, value.encode())) for key, value in entries.items())
    return b"".join(listed) + field(14, 1)
