"""Models for the browser to show."""

import json
import struct

import numpy

from containers import Component, Object, dense, zt1

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
RIGHT_TO_LEFT = "evil\u202egnp.\u2066exe"
LONG = "long." + "x" * 9_995
QUOTES = 'it\'s "$(touch owned)" `id` \\ & [*] ?'
HOSTILE = [SCRIPT, RIGHT_TO_LEFT, "y" * 1_000, QUOTES, "a/b?c#d%e", "line\nbreak", "javascript:alert(1)"]


def array(values, dtype=None, shape=None):
    return dense(
        values.tobytes(),
        dtype or values.dtype.str.replace("<", "").replace("|", "")[0] + str(values.itemsize * 8),
        list(values.shape) if shape is None else shape,
    )


def waves(rows, columns):
    down, right = numpy.mgrid[0:rows, 0:columns]
    noise = numpy.random.default_rng(7).normal(scale=0.3, size=(rows, columns))
    return (numpy.sin(down / rows * 9) * numpy.cos(right / columns * 7) + noise).astype("<f4")


def odd():
    values = numpy.arange(40, dtype="<f4").reshape(5, 8) - 20
    values[1, 2], values[3, 4], values[4, 7] = numpy.nan, numpy.inf, -numpy.inf
    return values


def bfloat16(values):
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def small():
    """One tensor of each kind, and what cannot be drawn."""
    random = numpy.random.default_rng(3)
    many = random.normal(size=(3, 4, 20, 30)).astype("<f4")
    whole = random.integers(-(2**62), 2**62, size=(6, 5), dtype="<i8")
    return zt1({
        "waves": array(waves(600, 500)),
        "odd": array(odd()),
        "cube": array(many),
        "half": array(random.normal(size=(20, 12)).astype("<f2")),
        "brain": dense(bfloat16(random.normal(size=(8, 9))).tobytes(), "bf16", [8, 9]),
        "wide": array(whole),
        "unsigned": array(numpy.array([0, 2**64 - 1, 2**53 + 1], "<u8")),
        "vector": array(numpy.arange(1000, dtype="<i4")),
        "scalar": array(numpy.array(2.5, "<f4")),
        "nothing": array(numpy.zeros((0, 4), "<f4")),
        "flags": dense(bytes([0, 1, 1, 0]), "bool", [2, 2]),
        "complex": Object([2], {"data": Component(numpy.array([1 + 2j, -3.5j], "<c8").tobytes(), "f32", "complex64")}),
        "eight": Object([256], {"data": Component(bytes(range(256)), "u8", "f8_e4m3fn")}),
        "sparse": Object([4, 4], {
            "values": Component(numpy.array([1.5, -2, 4], "<f4").tobytes(), "f32"),
            "indices": Component(numpy.array([0, 2, 3], "<u4").tobytes(), "u32"),
            "indptr": Component(numpy.array([0, 1, 1, 2, 3], "<u4").tobytes(), "u32"),
        }, "sparse_csr"),
    }, attributes={"framework": "NumPy", "epochs": 12})  # fmt: skip


def quantized():
    """GGUF with a tensor of 4 by 64 elements in blocks of Q8_0, and what they stand for."""
    random = numpy.random.default_rng(5)
    scales = random.uniform(0.01, 0.1, size=8).astype("<f2")
    steps = random.integers(-127, 128, size=(8, 32), dtype="i1")
    blocks = b"".join(scale.tobytes() + step.tobytes() for scale, step in zip(scales, steps))
    name = b"blk.0.weight"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<IQQIQ", 2, 64, 4, 8, 0)
    values = scales.astype("<f4")[:, None] * steps.astype("<f4")
    return head + bytes(-len(head) % 32) + blocks, values.reshape(4, 64)


# Each type of blocks: its number in GGUF, elements of a block, and their bytes.
BLOCKS = {
    "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24), "q8_0": (8, 32, 34),
    "q8_1": (9, 32, 36), "q2_k": (10, 256, 84), "q3_k": (11, 256, 110), "q4_k": (12, 256, 144), "q5_k": (13, 256, 176),
    "q6_k": (14, 256, 210), "q8_k": (15, 256, 292), "iq2_xxs": (16, 256, 66), "iq2_xs": (17, 256, 74),
    "iq3_xxs": (18, 256, 98), "iq1_s": (19, 256, 50), "iq4_nl": (20, 32, 18), "iq3_s": (21, 256, 110),
    "iq2_s": (22, 256, 82), "iq4_xs": (23, 256, 136), "iq1_m": (29, 256, 56), "tq1_0": (34, 256, 54),
    "tq2_0": (35, 256, 66), "mxfp4": (39, 32, 17), "nvfp4": (40, 64, 36), "q1_0": (41, 128, 18), "q2_0": (42, 64, 18),
}  # fmt: skip


def blocks():
    """GGUF with a tensor of one block of zeros for each type."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(BLOCKS), 0)
    data = b""
    for name, (number, elements, length) in BLOCKS.items():
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<IQIQ", 1, elements, number, len(data))
        data += bytes(length + -length % 32)
    return head + bytes(-len(head) % 32) + data


def hostile():
    objects = {name: array(numpy.arange(6, dtype="<f4").reshape(2, 3)) for name in [*HOSTILE, LONG]}
    objects[SCRIPT].attributes = {SCRIPT: SCRIPT, RIGHT_TO_LEFT: RIGHT_TO_LEFT, "long": LONG}
    return zt1(objects, attributes={SCRIPT: SCRIPT, "direction": RIGHT_TO_LEFT, "long": LONG})


def many(count=100_000):
    """Very many tensors of one element, as safetensors."""
    header = {
        f"block.{i // 100}.part.{i % 100}": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
        for i in range(count)
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(i % 251 for i in range(count))
