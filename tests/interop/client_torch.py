"""Files as torch writes them: `write FOLDER`.

Runs under torch 1.6 (Python 3.8) and later, without numpy; what a release does not know is left out of its files.
"""

import collections
import ctypes
import hashlib
import io
import json
import sys
import warnings
from pathlib import Path

import torch

warnings.simplefilter("ignore")

# By torch's name: dtype and type in the manifest. Those not named here have one name for both.
TYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "bool": "bool",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "qint8": "i8", "quint8": "u8", "qint32": "i32",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
STRUCTURED = {
    "complex64": ["f32", "complex64"],
    "complex128": ["f64", "complex128"],
    "float8_e4m3fn": ["u8", "f8_e4m3fn"],
    "float8_e5m2": ["u8", "f8_e5m2"],
    "float8_e4m3fnuz": ["u8", "f8_e4m3fnuz"],
    "float8_e5m2fnuz": ["u8", "f8_e5m2fnuz"],
    "float8_e8m0fnu": ["u8", "f8_e8m0"],
}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def bytes_of(tensor):
    tensor = tensor.detach()
    for resolve in ("resolve_conj", "resolve_neg"):
        tensor = getattr(tensor, resolve, lambda unchanged=tensor: unchanged)()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def flat(value, path=()):
    """Names of tensors are keys and indices, joined by dots; a tensor alone is called data."""
    if isinstance(value, torch.Tensor):
        return {".".join(path) or "data": value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {name: found for key, inner in items for name, found in flat(inner, (*path, str(key))).items()}


def is_per_channel(tensor):
    return tensor.is_quantized and tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_dense(tensor):
    return tensor.layout == torch.strided and not is_per_channel(tensor)


def components(tensor):
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce() if not tensor.is_coalesced() else tensor
        parts = {"coords": tensor.indices(), "values": tensor.values()}
    elif tensor.layout != torch.strided:
        parts = {"indptr": tensor.crow_indices(), "indices": tensor.col_indices(), "values": tensor.values()}
    elif is_per_channel(tensor):
        parts = {
            "data": tensor,
            "scales": tensor.q_per_channel_scales(),
            "zero_points": tensor.q_per_channel_zero_points(),
        }
    else:
        parts = {"data": tensor}
    return {role: digest(bytes_of(part)) for role, part in parts.items()}


def expected(tensor):
    shown = {"shape": list(tensor.shape), "components": components(tensor)}
    if is_dense(tensor):
        name = str(tensor.dtype).split(".")[1]
        shown["types"] = {"data": STRUCTURED.get(name) or [TYPES[name], TYPES[name]]}
        shown["format"] = "dense"
    return shown


def expect(path, tensors):
    text = json.dumps({name: expected(tensor) for name, tensor in flat(tensors).items()})
    Path(f"{path}.expected.json").write_text(text)


def save(folder, stem, value, **options):
    path = folder / f"{stem}.pt"
    torch.save(value, str(path), **options)
    expect(path, value)


def can_save(name):
    if name.startswith("q") or not hasattr(torch, name):
        return False
    try:
        torch.save(torch.empty(1, dtype=getattr(torch, name)), io.BytesIO())
    except KeyError:
        # torch 2.1 has types of 8 bits that it cannot save.
        return False
    return True


def dtypes():
    names = [name for name in (*TYPES, *STRUCTURED) if can_save(name)]
    made = {}
    for name in names:
        dtype = getattr(torch, name)
        data = torch.randint(0, 2, (5, 7)) if name == "bool" else torch.arange(35).reshape(5, 7) * 3
        made[f"numbers.{name}"] = data.to(torch.float32).to(dtype) if "float8" in name else data.to(dtype)
    return made


def views():
    whole = torch.arange(720, dtype=torch.float32).reshape(8, 9, 10)
    made = {
        "whole": whole,
        "permuted": whole.permute(2, 0, 1),
        "columns": whole[:, 2:5, 1::3],
        "expanded": whole[0, 0].expand(6, 10),
        "windows": whole.reshape(-1).as_strided((100, 8), (3, 1), 5),
        "scalar": whole[3, 4, 5],
        "empty": whole[:, :0],
    }
    if hasattr(torch.Tensor, "resolve_conj"):
        turned, other = (torch.view_as_complex(torch.rand(5, 6, 2)) for _ in range(2))
        # Seen as float32 with the flag neg; torch refuses two types for one storage in a file.
        made.update({"conj": turned.conj(), "turned": turned.T.conj(), "imaginary": other.conj().imag})
    return made


def checkpoint():
    layers = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 6, bias=False))
    layers[2].weight = torch.nn.Parameter(layers[0].weight.t())
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01)
    layers(torch.rand(4, 6)).sum().backward()
    optimizer.step()
    state = collections.OrderedDict(layers.state_dict())
    return {"epoch": 3, "model": state, "optimizer": optimizer.state_dict(), "größe": [torch.rand(3), torch.rand(())]}


def sparse():
    dense = torch.tensor([[0, 2.5, 0, 0], [0, 0, 0, -1], [4, 0, 0.25, 0]])
    made = {"coo": dense.to_sparse()}
    if hasattr(dense, "to_sparse_csr"):
        made["csr"] = dense.to_sparse_csr()
    return made


def quantized():
    values = torch.linspace(-2, 2, 24).reshape(4, 6)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64), torch.tensor([0, 1, 2, 3])
    made = {kind: torch.quantize_per_tensor(values, 0.125, 3, getattr(torch, kind)) for kind in ("qint8", "quint8", "qint32")}
    made["channels"] = torch.quantize_per_channel(values, scales, zeros, 0, torch.qint8)
    return made


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("steps", torch.arange(5))

    def forward(self, data):
        return self.layer(data) * self.steps.sum()


def write(folder):
    torch.manual_seed(13)
    save(folder, "dtypes", dtypes())
    save(folder, "views", views())
    save(folder, "checkpoint", checkpoint())
    save(folder, "sparse", sparse())
    save(folder, "quantized", quantized())
    save(folder, "alone", torch.rand(3, 5))
    save(folder, "proto4", checkpoint(), pickle_protocol=4)
    # torch 1.6's legacy format with types that it has a storage for.
    save(folder, "legacy", checkpoint(), _use_new_zipfile_serialization=False)
    save(folder, "legacy-views", {"a": torch.rand(6, 7).t(), "b": torch.rand(5)[2:]}, _use_new_zipfile_serialization=False)
    module = Module()
    for stem, made in (("script", torch.jit.script(module)), ("trace", torch.jit.trace(module, torch.rand(4)))):
        path = folder / f"{stem}.pt"
        made.save(str(path))
        expect(path, module.state_dict())


assert sys.argv[1] == "write"
write(Path(sys.argv[2]))
