"""Opens a file with the safetensors package and prints the SHA-256 of each tensor, as JSON."""

import hashlib
import json
import sys

from safetensors.numpy import load_file

tensors = load_file(sys.argv[2])
print(json.dumps({name: hashlib.sha256(tensor.tobytes()).hexdigest() for name, tensor in tensors.items()}))
