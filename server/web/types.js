// Types of tensors: their names, and which formats the server can write them to.

// Types that NumPy has, and so NPY files.
export const NUMPY = new Map(Object.entries({ f64: "<f8", f32: "<f4", f16: "<f2", i64: "<i8", i32: "<i4", i16: "<i2", i8: "|i1",
  u64: "<u8", u32: "<u4", u16: "<u2", u8: "|u1", bool: "|b1", complex64: "<c8", complex128: "<c16" }));
// Types that the server widens to f32, as it does GGUF's blocks.
const WIDENED = new Set(["bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0", "f4_e2m1"]);
// Blocks of GGUF that it widens too. q8_1 and q8_k are of computations: nothing widens them.
const BLOCKS = new Set(["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq2_xxs", "iq2_xs",
  "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "iq1_m", "tq1_0", "tq2_0", "mxfp4", "nvfp4", "q1_0", "q2_0"]);
const SAFETENSORS = new Set([...NUMPY.keys(), ...WIDENED, "f6_e3m2", "f6_e2m3"].filter((type) => type !== "complex128"));
// Encodings that the server decodes; of others there are only the stored bytes.
const DECODED = new Set(["raw", "zstd", "zt.zstd-seekable/1", "deflate", "strided", "varint", "protobuf"]);

// The type of GGUF's blocks ("q4_0"), or null for every other layout.
function blocksOf(object) {
  return /^gguf\.(.+)\/1$/.exec(object.format)?.[1] ?? null;
}

export function typeOf(part) {
  return String(part.type ?? part.dtype);
}

// A type as people call it: GGUF's blocks are stored as bytes.
export function typeName(object, part) {
  return blocksOf(object)?.toUpperCase() ?? typeOf(part);
}

// A layout as it is shown: the type says which blocks.
export function layoutName(object) {
  return blocksOf(object) === null ? object.format : "blocks";
}

// Whether the server can decode a component.
export function isDecoded(part) {
  return DECODED.has(part.encoding);
}

// Whether the server can widen an object's elements to f32.
export function isWidened(object, part) {
  const blocks = blocksOf(object);
  return blocks === null ? object.format === "dense" && WIDENED.has(typeOf(part)) : BLOCKS.has(blocks);
}

function isOdd(object) {
  return object.shape.reduce((product, axis) => (product * (Number(axis) % 2)) % 2, 1) === 1;
}

// Whether an object fits into a file of these formats, which hold dense tensors only.
export function fits(format, name, object) {
  const part = object.components.data;

  if (object.format !== "dense" || Object.keys(object.components).length !== 1 || part === undefined)
    return false;
  if (format === "npz")
    return NUMPY.has(typeOf(part));
  return SAFETENSORS.has(typeOf(part)) && name !== "__metadata__" && !(typeOf(part) === "f4_e2m1" && isOdd(object));
}

// How a whole model can be written to a format: "as it is", "as f32", or null if it cannot.
export function exportOf(format, objects) {
  const all = Object.entries(objects);
  const decoded = all.every(([, { components }]) => Object.values(components).every(isDecoded));

  if (!decoded || format === "zt" || format === "zt2")
    return decoded ? "as it is" : null;
  if (all.every(([name, object]) => fits(format, name, object)))
    return "as it is";
  return all.every(([name, object]) => name !== "__metadata__" &&
    (fits(format, name, object) || object.components.data !== undefined && isWidened(object, object.components.data)))
    ? "as f32" : null;
}
