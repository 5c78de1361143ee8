// Elements as text: little-endian bytes of a type, exactly as they are. Integers of 64 bits keep all their digits;
// floats are shown with the fewest digits that tell them from their neighbours of the same type.

// --- floats of 16 bits and fewer ---

// IEEE 754 binary16.
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;

  if (exponent === 0x1f)
    return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0)
    return sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

const word = new DataView(new ArrayBuffer(4));

// The upper half of a binary32.
function brain(bits) {
  word.setUint32(0, bits * 0x10000);
  return word.getFloat32(0);
}

// OCP 8-bit floats; `fnuz` have one zero, one NaN and no infinity, and a bias that is one higher.
function small({ fractionBits, bias, fnuz, infinities }) {
  const ones = 2 ** (7 - fractionBits) - 1;

  return (bits) => {
    const sign = bits & 0x80 ? -1 : 1;
    const exponent = (bits & 0x7f) >> fractionBits;
    const fraction = bits & (2 ** fractionBits - 1);

    if (fnuz && bits === 0x80)
      return NaN;
    if (infinities && exponent === ones)
      return fraction === 0 ? sign * Infinity : NaN;
    if (!fnuz && !infinities && (bits & 0x7f) === 0x7f)
      return NaN;
    if (exponent === 0)
      return sign * fraction * 2 ** (1 - bias - fractionBits);
    return sign * (2 ** fractionBits + fraction) * 2 ** (exponent - bias - fractionBits);
  };
}

const e4m3fn = small({ fractionBits: 3, bias: 7 });
const e5m2 = small({ fractionBits: 2, bias: 15, infinities: true });
const e4m3fnuz = small({ fractionBits: 3, bias: 8, fnuz: true });
const e5m2fnuz = small({ fractionBits: 2, bias: 16, fnuz: true });

function scale(bits) {
  return bits === 0xff ? NaN : 2 ** (bits - 127);
}

// --- texts ---

// Rounded figures from here on are written with a power of ten.
const PLAIN_MAX = 1e15;

export function number(value) {
  return Number.isNaN(value) ? "NaN" : Object.is(value, -0) ? "-0" : String(value).replace("Infinity", "inf");
}

// With the fewest digits, up to `most`, for which `nearest` gives the value back.
function shortest(value, most, nearest) {
  if (!Number.isFinite(value) || Number.isInteger(value) && Math.abs(value) < 1e6)
    return number(value);
  for (let digits = 3; digits < most; digits++) {
    const shorter = Number(value.toPrecision(digits));

    if (nearest(shorter) === value)
      return number(shorter);
  }
  return number(Number(value.toPrecision(most)));
}

const single = (value) => shortest(value, 9, Math.fround);
// Five digits are enough for 11 bits of precision, four for 8: an ulp is wider than a step of them.
const rounded = (digits) => (value) => shortest(value, digits, () => NaN);

function complex(read, text, half_width) {
  return (view, at) => {
    const imaginary = text(read(view, at + half_width));
    return `${text(read(view, at))}${/^[-]/.test(imaginary) ? "" : "+"}${imaginary}j`;
  };
}

const readSingle = (view, at) => view.getFloat32(at, true);
const readDouble = (view, at) => view.getFloat64(at, true);
const byteFloat = (decode) => [1, (view, at) => number(decode(view.getUint8(at)))];

// The width of an element, and its text, by the name of the type.
const TYPES = {
  f64: [8, (view, at) => number(readDouble(view, at))],
  f32: [4, (view, at) => single(readSingle(view, at))],
  f16: [2, (view, at) => rounded(5)(half(view.getUint16(at, true)))],
  bf16: [2, (view, at) => rounded(4)(brain(view.getUint16(at, true)))],
  i64: [8, (view, at) => String(view.getBigInt64(at, true))],
  u64: [8, (view, at) => String(view.getBigUint64(at, true))],
  i32: [4, (view, at) => String(view.getInt32(at, true))],
  u32: [4, (view, at) => String(view.getUint32(at, true))],
  i16: [2, (view, at) => String(view.getInt16(at, true))],
  u16: [2, (view, at) => String(view.getUint16(at, true))],
  i8: [1, (view, at) => String(view.getInt8(at))],
  u8: [1, (view, at) => String(view.getUint8(at))],
  bool: [1, (view, at) => (view.getUint8(at) === 0 ? "false" : "true")],
  f8_e4m3fn: byteFloat(e4m3fn),
  f8_e5m2: byteFloat(e5m2),
  f8_e4m3fnuz: byteFloat(e4m3fnuz),
  f8_e5m2fnuz: byteFloat(e5m2fnuz),
  f8_e8m0: byteFloat(scale),
  complex64: [8, complex(readSingle, single, 4)],
  complex128: [16, complex(readDouble, number, 8)],
};

// Bytes an element takes; undefined for types that are not shown as they are (sub-byte ones, blocks).
export function width(type) {
  return Object.hasOwn(TYPES, type) ? TYPES[type][0] : undefined;
}

// The texts of all elements in an ArrayBuffer.
export function texts(type, buffer) {
  const [step, text] = TYPES[type];
  const view = new DataView(buffer);
  const all = [];

  for (let at = 0; at + step <= buffer.byteLength; at += step)
    all.push(text(view, at));
  return all;
}

// Types whose elements JavaScript has arrays for. Buffers are little-endian, as all browsers' machines are.
const ARRAYS = {
  f64: Float64Array, f32: Float32Array, i64: BigInt64Array, u64: BigUint64Array, i32: Int32Array, u32: Uint32Array,
  i16: Int16Array, u16: Uint16Array, i8: Int8Array, u8: Uint8Array, bool: Uint8Array,
};

// Whether numbers() reads a type.
export function isNumeric(type) {
  return type === "f16" || Object.hasOwn(ARRAYS, type);
}

// The elements in an ArrayBuffer, as an array of numbers or BigInts.
export function numbers(type, buffer) {
  return type === "f16" ? Float32Array.from(new Uint16Array(buffer), half) : new ARRAYS[type](buffer);
}

// A cell of a preview, or a moment: a double, short enough to read. Integers that are known exactly have all of their
// digits; what is rounded and long is written with a power of ten, so that its zeros are not taken for digits.
export function rough(value, digits = 6) {
  if (value === null || value === undefined)
    return "none";
  if (typeof value !== "number")
    return String(value);
  if (!Number.isFinite(value) || Number.isSafeInteger(value))
    return number(value);
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) < PLAIN_MAX ? number(rounded) : rounded.toExponential();
}
