#!/usr/bin/env python3
"""Widening to f32 beside the package gguf (numpy), on one processor: `widening.py BENCH-WIDEN [ELEMENTS]` prints a table.

For a Python that has gguf, such as that of tests/interop (build/interop/gguf/bin/python). Blocks are random, with finite
scales where these stand first or last; both sides read them from memory, and the best of several rounds counts."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, quants

COLUMNS = 4096
ROUNDS = 5


def has_dequantizer(kind):
    elements, size = GGML_QUANT_SIZES[kind]
    if elements == 1:
        return kind.name in ("F16", "BF16")
    try:
        quants.dequantize(numpy.zeros((1, size), numpy.uint8), kind)
    except NotImplementedError:
        return False
    return True


def blocks_of(kind, elements):
    per_block, size = GGML_QUANT_SIZES[kind]
    random = numpy.random.default_rng(kind.value)
    blocks = random.integers(0, 256, (elements // per_block, size), numpy.uint8)
    if size > 2:
        blocks[:, [1, -1]] &= 0xBF
    return blocks.reshape(elements // COLUMNS, -1)


def seconds_of(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main(program, elements=1 << 22):
    kinds = {kind.name.lower(): kind for kind in GGMLQuantizationType if has_dequantizer(kind)}
    tensors = {name: blocks_of(kind, elements) for name, kind in kinds.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "blocks.gguf")
        writer = GGUFWriter(path, "bench")
        for name, blocks in tensors.items():
            shown = blocks.view(numpy.float16) if name == "f16" else blocks
            writer.add_tensor(name, shown, raw_dtype=None if name == "f16" else kinds[name])
        for step in ("header", "kv_data", "tensors"):
            getattr(writer, f"write_{step}_to_file")()
        writer.close()
        printed = subprocess.run([program, path, str(ROUNDS)], check=True, capture_output=True, text=True).stdout
    print("| type | GB/s of f32 | gguf.quants | ratio |\n| --- | --- | --- | --- |")
    for name, seconds, length in map(str.split, printed.splitlines()):
        with numpy.errstate(all="ignore"):
            peer_s = min(seconds_of(lambda: quants.dequantize(tensors[name], kinds[name])) for _ in range(3))
        rate, peer = (int(length) / took / 1e9 for took in (float(seconds), peer_s))
        print(f"| {name} | {rate:.1f} | {peer:.2f} | {rate / peer:.0f} |", flush=True)


main(sys.argv[1], *map(int, sys.argv[2:]))
