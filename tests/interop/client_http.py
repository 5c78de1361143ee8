"""Reads over HTTP with common clients: fsspec's file system, and huggingface_hub's reading of a header.

Prints one line of JSON: what the client made of the URL.
"""

import hashlib
import json
import sys
from unittest import mock
from urllib.parse import unquote

import fsspec
import huggingface_hub
from huggingface_hub import file_download


def look_with_fsspec(url):
    """Blocks in random order, the end before the beginning, several at once, and the whole."""
    system = fsspec.filesystem("http")
    info = system.info(url)
    size = info["size"]
    with system.open(url, block_size=1 << 16) as file:
        file.seek(size - 100)
        tail = file.read()
        file.seek(12345)
        middle = file.read(200_000)
    spans = system.cat_ranges([url] * 3, [0, 70_000, size - 5], [10, 70_001, size])
    return {
        "size": size,
        "tail": tail.hex(),
        "middle": hashlib.sha256(middle).hexdigest(),
        "spans": [span.hex() for span in spans],
        "whole": hashlib.sha256(system.cat_file(url)).hexdigest(),
    }


def look_with_hub(url):
    """The hub's own function, pointed at this URL: it fetches the start of a header by range, and the rest if necessary."""
    with mock.patch.object(file_download, "hf_hub_url", return_value=url):
        metadata = huggingface_hub.HfApi().parse_safetensors_file_metadata("any/model", "model.safetensors")
    return {
        name: [info.dtype, list(info.shape), list(info.data_offsets)] for name, info in metadata.tensors.items()
    }


def walk_with_fsspec(url):
    """What the index of a folder, and those of the folders below it, lead to: {path: size}."""
    system = fsspec.filesystem("http")
    return {unquote(found.removeprefix(url)): len(system.cat_file(found)) for found in system.find(url)}


LOOKS = {"fsspec": look_with_fsspec, "walk": walk_with_fsspec, "hub": look_with_hub}
print(json.dumps(LOOKS[sys.argv[1]](sys.argv[2])))
