// Numbers as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const LARGE = [[1e3, "K"], [1e6, "M"], [1e9, "B"], [1e12, "T"]];
const EXACT_BELOW = 10000;
const counts = new Intl.NumberFormat("en");

// "1.46 GiB": three digits that count.
export function bytes(value) {
  let amount = Number(value);
  let unit = 0;

  if (!Number.isFinite(amount))
    return "?";
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  if (unit === 0)
    return `${counts.format(amount)} B`;
  return `${amount >= 100 ? amount.toFixed(0) : amount.toPrecision(3)} ${UNITS[unit]}`;
}

// "12,345"
export function count(value) {
  return counts.format(value);
}

// "8.03 B": parameters as people name them, with three digits that count.
export function compact(value) {
  const amount = Number(value);
  const unit = LARGE.findLast(([size]) => amount >= size);

  if (amount < EXACT_BELOW)
    return counts.format(amount);
  // A figure that would be rounded up to the next unit is cut.
  return `${Math.min(amount / unit[0], 999).toPrecision(3)} ${unit[1]}`;
}

// "1 tensor", "2 tensors"
export function plural(value, word, several = `${word}s`) {
  return `${count(value)} ${Number(value) === 1 ? word : several}`;
}

// "768 × 768"; a scalar has no axes.
export function shape(axes) {
  return axes === null || axes === undefined ? "" : axes.length === 0 ? "scalar" : axes.join(" × ");
}

// How many elements a shape has: exact, as a BigInt.
export function elements(axes) {
  return (axes ?? []).reduce((product, axis) => product * BigInt(axis), 1n);
}

// "2026-11-20 09:30", in the reader's time zone.
export function date(text) {
  const when = new Date(text);
  const two = (number) => String(number).padStart(2, "0");

  if (text === null || text === undefined || Number.isNaN(when.getTime()))
    return "";
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ` +
    `${two(when.getHours())}:${two(when.getMinutes())}`;
}

// "42 %"; never 100 % before the end.
export function percent(part, whole) {
  if (!(whole > 0))
    return "100 %";
  return part >= whole ? "100 %" : `${Math.min(99, Math.floor((part / whole) * 100))} %`;
}

// "3 s", "2 min 5 s", "1 h 4 min"
export function duration(seconds) {
  const whole = Math.ceil(seconds);

  if (!Number.isFinite(seconds))
    return "";
  if (whole < 60)
    return `${whole} s`;
  if (whole < 3600)
    return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
