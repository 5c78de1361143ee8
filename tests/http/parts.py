"""Models in several files, made by hand: safetensors with an index, and split GGUF. A tensor is (name, bytes)."""

import json
import struct


def part_name(stem, number, count, extension):
    return f"{stem}-{number:05d}-of-{count:05d}.{extension}"


def safetensors_part(tensors, metadata=None):
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, value in tensors:
        header[name] = {"dtype": "U8", "shape": [len(value)], "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def index_of(weight_map, total_size=None):
    """As transformers writes it."""
    metadata = {} if total_size is None else {"total_size": total_size}
    return json.dumps({"metadata": metadata, "weight_map": weight_map}, indent=2, sort_keys=True).encode() + b"\n"


def safetensors_model(stem, parts):
    """The files of a model, by name: the parts' and the index."""
    names = [part_name(stem, number, len(parts), "safetensors") for number in range(1, len(parts) + 1)]
    files = {name: safetensors_part(tensors, {"format": "pt"}) for name, tensors in zip(names, parts)}
    weight_map = {tensor: name for name, tensors in zip(names, parts) for tensor, _ in tensors}
    size = sum(len(value) for tensors in parts for _, value in tensors)
    files[f"{stem}.safetensors.index.json"] = index_of(weight_map, size)
    return files


U8, U16, I32, STRING = 0, 2, 5, 8
I8_TENSOR = 24


def gguf_text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf_part(tensors, split=None, pairs=()):
    """split: (number from 0, count, tensors of all parts)."""
    keys = [gguf_text(key) + struct.pack("<I", STRING) + gguf_text(value) for key, value in pairs]
    if split is not None:
        keys += [
            gguf_text("split.no") + struct.pack("<IH", U16, split[0]),
            gguf_text("split.count") + struct.pack("<IH", U16, split[1]),
            gguf_text("split.tensors.count") + struct.pack("<Ii", I32, split[2]),
        ]
    entries, data = bytearray(), bytearray()
    for name, value in tensors:
        data += bytes(-len(data) % 32)
        entries += gguf_text(name) + struct.pack("<IQIQ", 1, len(value), I8_TENSOR, len(data))
        data += value
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + entries
    return head + bytes(-len(head) % 32) + data


def gguf_model(stem, parts):
    """The files of a model, by name. Only the first has the model's own keys, as gguf-split writes them."""
    total = sum(len(tensors) for tensors in parts)
    return {
        part_name(stem, number + 1, len(parts), "gguf"): gguf_part(
            tensors, (number, len(parts), total), [("general.name", stem)] if number == 0 else []
        )
        for number, tensors in enumerate(parts)
    }
