"""Files of the formats beside zTensor, made by hand (numpy's by numpy): one object `w` of bytes, or `data` for .npy."""

import io
import json
import struct

import numpy

from containers import crc32c


def safetensors(data, name="w", metadata=None):
    header = {"__metadata__": metadata} if metadata else {}
    header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def gguf(data, name="w"):
    """Version 3, one tensor of i8; its layout has no unsigned bytes."""

    def text(value):
        return struct.pack("<Q", len(value)) + value

    key = text(b"general.architecture") + struct.pack("<I", 8) + text(b"test")
    entry = text(name.encode()) + struct.pack("<IQIQ", 1, len(data), 24, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + key + entry
    return head + bytes(-len(head) % 32) + data


def mag(data, name="w"):
    """The specification's layout, one tensor of bool: bytes must be 0 or 1 there."""
    key = name.encode()
    length = 24 + 73 + len(key)
    record = struct.pack("<I", len(key)) + key + struct.pack("<6q", len(data), 1, 1, 1, 1, 1)
    record += struct.pack("<BQQI", 2, len(data), length, 0)
    checked = struct.pack("<III", 1, 0, 0) + record
    return b"MAG!" + struct.pack("<II", 1, crc32c(checked)) + checked + data


def npy(data):
    file = io.BytesIO()
    numpy.save(file, numpy.frombuffer(data, numpy.uint8))
    return file.getvalue()


def npz(data, name="w", save=numpy.savez):
    file = io.BytesIO()
    save(file, **{name: numpy.frombuffer(data, numpy.uint8)})
    return file.getvalue()


def deflated_npz(data, name="w"):
    return npz(data, name, numpy.savez_compressed)
