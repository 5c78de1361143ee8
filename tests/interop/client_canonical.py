"""Copies a zTensor 2 file of dense parts with the package ztensor 2.1.2, in canonical form."""

import sys

import ztensor

with ztensor.open(sys.argv[1]) as source, ztensor.Writer(sys.argv[2], canonical=True) as writer:
    if source.attributes:
        writer.set_attributes(dict(source.attributes))
    for name in sorted(source, key=lambda name: name.encode()):
        tensor = source[name]
        writer.add(name, tensor.tobytes(), tensor.shape, tensor.dtype, logical=tensor.logical)
