"""Split GGUF, written by the package gguf: `FOLDER TENSORS [small]` writes model.gguf in parts of at most that many tensors and
prints SHA-256 by tensor as JSON. small: the first part has no tensors."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quants

folder, count = Path(sys.argv[1]), int(sys.argv[2])
writer = GGUFWriter(folder / "model.gguf", "test", split_max_tensors=count, small_first_shard="small" in sys.argv)
random = np.random.default_rng(62)
digests = {}
for layer in range(7):
    array = random.standard_normal((4, 64)).astype(np.float32)
    blocks = quants.quantize(array, GGMLQuantizationType.Q8_0)
    writer.add_tensor(f"blk.{layer}.weight", blocks, raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor(f"blk.{layer}.bias", array[0])
    digests[f"blk.{layer}.weight"] = hashlib.sha256(blocks.tobytes()).hexdigest()
    digests[f"blk.{layer}.bias"] = hashlib.sha256(array[0].tobytes()).hexdigest()
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
print(json.dumps(digests))
