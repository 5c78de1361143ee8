"""Builds zTensor files of every version in pure Python, so that tests control every byte of them.

`zt01`, `zt10`, `zt1` and `zt2` take a dict of `Object` by name and give `Built`: the file's bytes, which know where
each component's stored bytes are. `dense` makes the common object. A digest is named by its algorithm and computed here
over what that version covers (stored bytes up to 1.2, decoded bytes in 2); a text with a colon goes in as it is.
"""

import hashlib
import struct
from dataclasses import dataclass, field

import xxhash
import zstandard

import cbor

ALIGNMENT_1 = 64
ALIGNMENT_2 = 4096
MAGIC_01 = b"ZTEN0001"
MAGIC_1 = b"ZTEN1000"
MAGIC_2 = b"\x89ZT2\r\n\x1a\n"
LONG_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
}  # fmt: skip
WIDTHS = {
    "f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4,
    "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "bool": 1,
}  # fmt: skip


@dataclass
class Component:
    """One component: its stored bytes, and its entry in the manifest."""

    stored: bytes
    dtype: str = "u8"
    type: str | None = None
    encoding: str | None = None
    decoded: bytes | None = None
    digest: str | None = "sha256"
    states_length: bool = True
    fields: dict = field(default_factory=dict)

    @property
    def content(self):
        return self.stored if self.decoded is None else self.decoded


@dataclass
class Object:
    shape: list
    components: dict
    format: str = "dense"
    attributes: dict | None = None
    fields: dict = field(default_factory=dict)


class Built(bytes):
    """A file's bytes; `offsets` has the position of each component's stored bytes by (object, component)."""

    offsets: dict

    def flipped(self, name, role="data", at=0):
        """The same file with one bit of a component flipped."""
        return self.with_bit_flipped(self.offsets[name, role] + at)

    def with_bit_flipped(self, position):
        changed = bytearray(self)
        changed[position] ^= 1
        return bytes(changed)


def dense(data, dtype="u8", shape=None, attributes=None, **options):
    count = len(data) // WIDTHS[dtype]
    return Object(
        [count] if shape is None else shape, {"data": Component(data, dtype, **options)}, attributes=attributes
    )


def zstd_frame(data, level=3, content_size=False):
    """One frame as the 1.x writers make them: no content size, no checksum."""
    return zstandard.ZstdCompressor(level=level, write_content_size=content_size).compress(data)


def zstd_dense(data, dtype="u8", shape=None, **options):
    return dense_encoded(data, zstd_frame(data), "zstd", dtype, shape, **options)


def dense_encoded(data, stored, encoding, dtype="u8", shape=None, **options):
    made = dense(data, dtype, shape)
    made.components["data"] = Component(stored, dtype, encoding=encoding, decoded=data, **options)
    return made


def seekable(data, frame_bytes=1 << 16):
    """A zt.zstd-seekable/1 stream: frames of equal size, then the seek table in a skippable frame."""
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=False)
    pieces = [data[start : start + frame_bytes] for start in range(0, len(data), frame_bytes)]
    frames = [compressor.compress(piece) for piece in pieces]
    entries = b"".join(struct.pack("<II", len(frame), len(piece)) for frame, piece in zip(frames, pieces))
    table = entries + struct.pack("<IB", len(frames), 0) + b"\xb1\xea\x92\x8f"
    return b"".join(frames) + b"\x5e\x2a\x4d\x18" + struct.pack("<I", len(table)) + table


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = CRC_TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def crc_table_entry(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


CRC_TABLE = [crc_table_entry(index) for index in range(256)]


def digest_text(digest, data):
    """The digest as written in the file: computed and spelled as by the real writers, or a given text."""
    if digest is None or ":" in digest:
        return digest
    if digest == "sha256":
        return "sha256:" + hashlib.sha256(data).hexdigest()
    if digest == "crc32c":
        return f"crc32c:0x{crc32c(data):08X}"
    if digest == "xxh3":
        return f"xxh3:{xxhash.xxh3_64_intdigest(data):016x}"
    raise ValueError(digest)


# Texts of known algorithms that are the digest of no bytes. The older formats allow any text; zTensor 2 allows hex.
IMPOSSIBLE_DIGESTS = ["sha256:00", "sha256:", f"sha256:{'g' * 64}", "crc32c:xyz", "xxh3:00"]
IMPOSSIBLE_DIGESTS_2 = ["sha256:00", "xxh3:00", f"sha256:{'0' * 66}"]


def impossible_digests():
    """A builder and a digest that no bytes can have, of every version."""
    return [(build, digest) for build in (zt01, zt10, zt1) for digest in IMPOSSIBLE_DIGESTS] + [
        (zt2, digest) for digest in IMPOSSIBLE_DIGESTS_2
    ]


def without_none(fields):
    return {key: value for key, value in fields.items() if value is not None}


class Layout:
    """Places blobs one after another at multiples of the version's alignment."""

    def __init__(self, magic, alignment):
        self.data = bytearray(magic)
        self.alignment = alignment
        self.offsets = {}

    def align(self):
        self.data += bytes(-len(self.data) % self.alignment)
        return len(self.data)

    def place(self, name, role, stored):
        self.offsets[name, role] = self.align()
        self.data += stored
        return self.offsets[name, role]

    def built(self):
        built = Built(self.data)
        built.offsets = self.offsets
        return built


def zt01(tensors, definite=False):
    """A 0.1 file; `tensors` is a dict, or a list of pairs where names repeat. `fields` of an object add or replace."""
    layout = Layout(MAGIC_01, ALIGNMENT_1)
    maps = []
    for name, made in tensors.items() if isinstance(tensors, dict) else tensors:
        (component,) = made.components.values()
        offset = layout.place(name, "data", component.stored)
        fields = {
            "name": name,
            "offset": offset,
            "size": len(component.stored),
            "dtype": LONG_NAMES.get(component.dtype, component.dtype),
            "layout": made.format,
            "shape": list(made.shape),
            "encoding": component.encoding or "raw",
            "checksum": digest_text(component.digest, component.stored),
        }
        fields = without_none({**fields, **component.fields, **made.fields})
        maps.append(fields if definite else cbor.indefinite_map(fields))
    index = cbor.encode(maps)
    layout.data += index + struct.pack("<Q", len(index))
    return layout.built()


def component_1(component, offset, with_dtype=True):
    encoded = component.encoding is not None and component.states_length and with_dtype
    fields = {
        "dtype": component.dtype if with_dtype else None,
        "type": component.type,
        "offset": offset,
        "length": len(component.stored),
        "uncompressed_length": len(component.content) if encoded else None,
        "encoding": component.encoding,
        "digest": digest_text(component.digest, component.stored),
    }
    return {**without_none(fields), **component.fields}


def object_1(layout, name, made, with_dtype=True):
    components = {
        role: component_1(component, layout.place(name, role, component.stored), with_dtype)
        for role, component in made.components.items()
    }
    fields = {"shape": list(made.shape), "format": made.format, "attributes": made.attributes, "components": components}
    return {**without_none(fields), **made.fields}


def zt1(objects, version="1.2.0", attributes=None, fields=None):
    """A 1.1 or 1.2 file, depending on `version`."""
    layout = Layout(MAGIC_1, ALIGNMENT_1)
    shown = {name: object_1(layout, name, made) for name, made in objects.items()}
    root = without_none({"version": version, "attributes": attributes, "objects": shown})
    return zt1_with_manifest(layout, cbor.encode({**root, **(fields or {})}))


def zt1_with_manifest(layout, manifest, stated_length=None):
    length = len(manifest) if stated_length is None else stated_length
    layout.data += manifest + struct.pack("<Q", length) + MAGIC_1
    return layout.built()


def zt1_of_manifest(manifest, stated_length=None):
    """A 1.x file without blobs, around the bytes of a valid or invalid manifest."""
    return zt1_with_manifest(Layout(MAGIC_1, ALIGNMENT_1), manifest, stated_length)


def zt10(objects, attributes=None):
    """A 1.0 file: long type names on the tensor, no magic at the end."""
    layout = Layout(MAGIC_1, ALIGNMENT_1)
    tensors = {}
    for name, made in objects.items():
        main = made.components.get("data") or made.components["values"]
        shown = object_1(layout, name, made, with_dtype=False)
        tensors[name] = {"dtype": LONG_NAMES[main.dtype], **shown}
    manifest = cbor.encode({"version": "1.0", "generator": "tests", "attributes": attributes or {}, "tensors": tensors})
    layout.data += manifest + struct.pack("<Q", len(manifest))
    return layout.built()


def part_2(component, offset):
    fields = {
        "dtype": component.dtype,
        "type": component.type,
        "blob": [offset, len(component.stored)],
        "encoding": component.encoding,
        "decoded_length": len(component.content) if component.encoding else None,
        "digest": digest_text(component.digest, component.content),
    }
    return {**without_none(fields), **component.fields}


def placed_2(layout, name, role, component):
    """A part whose blob is given in its fields (in a shard, or that of another part) takes no place of its own."""
    offset = 0 if "blob" in component.fields else layout.place(name, role, component.stored)
    return part_2(component, offset)


def zt2(objects, attributes=None, fields=None, after=b""):
    """A zTensor 2 file, its manifest in deterministic CBOR. `after`: an earlier generation, to which it is appended."""
    layout = Layout(after or MAGIC_2, ALIGNMENT_2)
    shown = {}
    for name, made in objects.items():
        parts = {role: placed_2(layout, name, role, component) for role, component in made.components.items()}
        of_object = {"shape": list(made.shape), "layout": made.format, "parts": parts, "attributes": made.attributes}
        shown[name] = {**without_none(of_object), **made.fields}
    root = {**without_none({"objects": shown, "attributes": attributes}), **(fields or {})}
    return zt2_with_manifest(layout, cbor.encode(root, sort=True))


def zt2_with_manifest(layout, manifest, stated_length=None):
    offset = layout.align()
    length = len(manifest) if stated_length is None else stated_length
    layout.data += manifest
    layout.data += struct.pack("<QQQII", offset, length, xxhash.xxh3_64_intdigest(manifest), 2, 0) + MAGIC_2
    return layout.built()


def zt2_of_manifest(manifest, stated_length=None):
    return zt2_with_manifest(Layout(MAGIC_2, ALIGNMENT_2), manifest, stated_length)


def zt2_data_shard(*blobs):
    """A container without a manifest: blobs for other files only. `offsets` has the position of each, by its number."""
    layout = Layout(MAGIC_2, ALIGNMENT_2)
    for number, blob in enumerate(blobs):
        layout.offsets[number] = layout.align()
        layout.data += blob
    layout.data += struct.pack("<QQQII", 0, 0, 0, 2, 0) + MAGIC_2
    return layout.built()


def shard_entry(file, digest="sha256"):
    """The entry of a file in a table of shards."""
    return {"size": len(file), "digest": digest_text(digest, file)}


def in_shard(shard, offset, stored, dtype="u8", **options):
    """A component whose stored bytes are in a shard."""
    return Component(stored, dtype, fields={"shard": shard, "blob": [offset, len(stored)]}, **options)


def dense_in_shard(shard, offset, data, dtype="u8", shape=None, **options):
    count = len(data) // WIDTHS[dtype]
    return Object([count] if shape is None else shape, {"data": in_shard(shard, offset, data, dtype, **options)})


def pattern(length, seed=1):
    """Bytes that differ everywhere and from seed to seed, the same in every run."""
    return hashlib.shake_128(seed.to_bytes(8, "little")).digest(length)
