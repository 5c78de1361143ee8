"""PyTorch's ZIP files, written without torch: the pickle's opcodes one by one, and views of storages as a test wants
them."""

import io
import math
import struct
import zipfile
from dataclasses import dataclass, field

CLASSES = {
    "f64": ("DoubleStorage", 8),
    "f32": ("FloatStorage", 4),
    "f16": ("HalfStorage", 2),
    "bf16": ("BFloat16Storage", 2),
    "i64": ("LongStorage", 8),
    "i32": ("IntStorage", 4),
    "i16": ("ShortStorage", 2),
    "i8": ("CharStorage", 1),
    "u8": ("ByteStorage", 1),
    "bool": ("BoolStorage", 1),
    "complex64": ("ComplexFloatStorage", 8),
    "complex128": ("ComplexDoubleStorage", 16),
}


@dataclass(eq=False)
class Storage:
    """An entry of the archive, which several tensors may be views of."""

    data: bytes
    dtype: str = "f32"
    deflated: bool = False


@dataclass
class Tensor:
    """A view of a storage; stride and offset count elements. Without strides it is row-major."""

    storage: Storage
    shape: list
    stride: list | None = None
    offset: int = 0
    metadata: dict = field(default_factory=dict)


def row_major(shape):
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def integer(value):
    if 0 <= value < 256:
        return b"K" + struct.pack("<B", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x08" + struct.pack("<q", value)


def text(value):
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def integers(values):
    return b"(" + b"".join(integer(value) for value in values) + b"t"


def pickled_storage(storage, key):
    kind, width = CLASSES[storage.dtype]
    count = integer(len(storage.data) // width)
    return b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + count + b"tQ"


def pickled_tensor(tensor, key):
    """torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata])."""
    stride = row_major(tensor.shape) if tensor.stride is None else tensor.stride
    metadata = b"".join(text(flag) + (b"\x88" if value else b"\x89") for flag, value in tensor.metadata.items())
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + pickled_storage(tensor.storage, key)
        + integer(tensor.offset)
        + integers(tensor.shape)
        + integers(stride)
        + b"\x89"
        + name("collections", "OrderedDict")
        + b")R"
        + (b"}(" + metadata + b"u" if metadata else b"")
        + b"tR"
    )


def pickled(tensors, keys):
    items = b"".join(text(label) + pickled_tensor(tensor, keys[tensor.storage]) for label, tensor in tensors.items())
    return b"\x80\x02}(" + items + b"u."


def pt(tensors, byteorder="little", root="archive"):
    """The file's bytes: tensors by name, each storage once, in the order of first use."""
    keys = {}
    for tensor in tensors.values():
        keys.setdefault(tensor.storage, str(len(keys)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:

        def add(path, data, deflated=False):
            entry = zipfile.ZipInfo(f"{root}/{path}", (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED)

        add("data.pkl", pickled(tensors, keys))
        add("byteorder", byteorder)
        for storage, key in keys.items():
            add(f"data/{key}", storage.data, storage.deflated)
        add("version", "3\n")
    return out.getvalue()
