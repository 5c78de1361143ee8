"""Differences between two versions of a tensor: how fast they are made, how long they are."""

import hashlib
import json

from context import Skipped
from figures import Figure, Limit
from workload import workload

OBJECTS, BYTES = 8, 128 << 20
CHANGED = 0.01


def write_models(context):
    """Two models of bf16 as safetensors, where one element in a hundred has another value."""
    try:
        import numpy
    except ImportError as missing:
        raise Skipped("needs numpy (tests/requirements.txt)") from missing
    root = context.memory_folder("differences", 3 * OBJECTS * BYTES)
    names = [f"layer{i}" for i in range(OBJECTS)]
    header = json.dumps(
        {name: {"dtype": "BF16", "shape": [BYTES // 2], "data_offsets": [i * BYTES, (i + 1) * BYTES]} for i, name in enumerate(names)}
    ).encode()
    header += b" " * (-len(header) % 8)
    random = numpy.random.default_rng(1)
    digests = []
    with (root / "old.safetensors").open("wb") as old, (root / "new.safetensors").open("wb") as new:
        for file in (old, new):
            file.write(len(header).to_bytes(8, "little") + header)
        for _ in names:
            values = (random.standard_normal(BYTES // 2, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
            old.write(values.tobytes())
            digests.append(hashlib.sha256(values.tobytes()).hexdigest())
            chosen = random.choice(values.size, int(values.size * CHANGED), replace=False)
            values[chosen] ^= random.integers(1, 8, chosen.size, numpy.uint16)
            new.write(values.tobytes())
    return root, list(zip(names, digests))


@workload("differences", "differences between two versions of 1 GiB in bf16, 1 % of the elements changed")
def differences(context):
    root, objects = context.once("differences", lambda: write_models(context))
    server = context.ztserve(root)
    for model in ("old", "new"):
        context.fetch(server, f"/v1/models/{model}/verification", method="POST")
        context.warm(root / f"{model}.safetensors")
    for name, _ in objects:
        for model in ("old", "new"):
            context.fetch(server, f"/v1/models/{model}/objects/{name}/data")
    server.settle()
    rates, shares = [], []
    with context.watch() as others:
        for name, digest in objects:
            before = server.processor_seconds()
            body = context.fetch(server, f"/v1/models/new/objects/{name}/data?base=sha256:{digest}&coding=xor-zstd")
            rates.append(BYTES / 1e9 / (server.processor_seconds() - before))
            shares.append(len(body) / BYTES)
    row = "difference of 128 MiB of bf16, 1 % changed"
    yield Figure("differences", row, "bytes of the base per processor second", "GB/cpu s", rates, beside="", others=others[0],
                 limit=Limit(least=1.0, of="value"))  # fmt: skip
    yield Figure("differences", row, "length, share of the tensor", "", shares, beside="", limit=Limit(most=0.02, of="value"))
    context.stop(server)
