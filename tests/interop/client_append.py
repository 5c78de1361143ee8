"""Appends a generation to a zTensor 2 file, or prints the contents of a file and its shards, with ztensor 2.1.2."""

import hashlib
import json
import sys

import ztensor

command, path = sys.argv[1:3]
if command == "append":
    with ztensor.Writer(path, canonical=False, append=True) as writer:
        writer.add(sys.argv[3], bytes.fromhex(sys.argv[4]), [len(sys.argv[4]) // 2], "u8")
else:
    checked = ztensor.verify(path, deep=True).checked
    with ztensor.open(path) as source:
        contents = {name: hashlib.sha256(source[name].tobytes()).hexdigest() for name in source}
    print(json.dumps({"checked": checked, "contents": contents}))
