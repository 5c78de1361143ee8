// Which part of a tensor the page shows, and how: kept in the address, so that it can be shared.
//
//   index=0,3            where on the leading axes (all but the last two)
//   slice=...,0:64,8:16  which part of the last two axes; a vector has one
//   reduce=absmax        what a cell of the picture is of its block
//   map=gray             colours of the picture
//   at=16,0              the first row and column of the table of values
//   part                 statistics of the part shown, not of the whole

export const REDUCTIONS = { mean: "mean", absmax: "largest magnitude", sample: "first element" };
export const MAPS = { viridis: "viridis", gray: "gray", diverging: "diverging around 0" };

// Whether the elements are in GGUF's blocks, which the server widens.
export function isBlocks(object) {
  return /^gguf\./.test(object.format);
}

// Whether the elements are those of the tensor's shape: other layouts have them in several components.
export function isDense(object) {
  return object.format === "dense" || isBlocks(object);
}

// The last two axes, as rows and columns. A vector is one axis, a scalar none.
export function picture(shape) {
  return shape.slice(Math.max(0, shape.length - 2));
}

function whole(shape) {
  return picture(shape).map((length) => [0, length]);
}

// Ranges of the axes of the picture; what cannot be read counts as all.
function parseSlice(text, shape) {
  const lengths = picture(shape);
  const parts = text.replace(/^\.\.\.,/, "").split(",");

  if (parts.length !== lengths.length)
    return whole(shape);
  const ranges = parts.map((part, axis) => {
    const found = /^(\d+):(\d+)$/.exec(part);
    const [start, stop] = found === null ? [0, 0] : [Number(found[1]), Math.min(Number(found[2]), lengths[axis])];

    return start < stop ? [start, stop] : [0, lengths[axis]];
  });
  return ranges;
}

function parseNumbers(text, lengths) {
  const parts = text.split(",");

  return lengths.map((length, i) => {
    const value = /^\d+$/.test(parts[i] ?? "") ? Number(parts[i]) : 0;
    return value < length ? value : 0;
  });
}

// { index, ranges, reduce, map, at, part }
export function read(search, shape) {
  const query = new URLSearchParams(search);
  const reduce = query.get("reduce");
  const map = query.get("map");
  const ranges = parseSlice(query.get("slice") ?? "", shape);

  return {
    index: parseNumbers(query.get("index") ?? "", shape.slice(0, Math.max(0, shape.length - 2))),
    ranges,
    reduce: Object.hasOwn(REDUCTIONS, reduce ?? "") ? reduce : "mean",
    map: Object.hasOwn(MAPS, map ?? "") ? map : "viridis",
    at: query.has("at") ? parseNumbers(query.get("at"), picture(shape)) : ranges.map((range) => range[0]),
    part: query.has("part"),
  };
}

function isWhole(ranges, shape) {
  return ranges.every(([start, stop], axis) => start === 0 && stop === picture(shape)[axis]);
}

export function isAll(view, shape) {
  return isWhole(view.ranges, shape) && shape.slice(0, -2).every((length) => length <= 1);
}

// Whether the reader has chosen a part of it.
export function isChosen(view, shape) {
  return view.part || view.index.some((value) => value !== 0) || !isWhole(view.ranges, shape);
}

const rangeTexts = (ranges) => ranges.map(([start, stop]) => `${start}:${stop}`);

// "...,0:64,8:16", or null for all.
function shortSlice(view, shape) {
  if (isWhole(view.ranges, shape))
    return null;
  return [...(shape.length > 2 ? ["..."] : []), ...rangeTexts(view.ranges)].join(",");
}

// What is shown as the API's `slice`: "0,3,0:64,8:16", or null for all of the tensor.
export function slice(view, shape) {
  return isAll(view, shape) ? null : [...view.index, ...rangeTexts(view.ranges)].join(",");
}

// Text of commas and colons, which an address holds as they are.
function queryText(pairs) {
  const text = pairs.map(([key, value]) => (value === "" ? key : `${key}=${value}`)).join("&");
  return text === "" ? "" : `?${text}`;
}

export function previewQuery(view, shape, cells) {
  const part = shortSlice(view, shape);
  const index = view.index.some((value) => value !== 0);

  return queryText([["rows", cells], ["cols", cells], ["reduce", view.reduce],
    ...(index ? [["index", view.index.join(",")]] : []), ...(part === null ? [] : [["slice", part]])]);
}

// The address's query; what is as it is at first is left out.
export function search(view, shape) {
  const part = shortSlice(view, shape);
  const pairs = [];

  if (view.index.some((value) => value !== 0))
    pairs.push(["index", view.index.join(",")]);
  if (part !== null)
    pairs.push(["slice", part]);
  if (view.reduce !== "mean")
    pairs.push(["reduce", view.reduce]);
  if (view.map !== "viridis")
    pairs.push(["map", view.map]);
  if (view.at.some((value, axis) => value !== view.ranges[axis][0]))
    pairs.push(["at", view.at.join(",")]);
  if (view.part)
    pairs.push(["part", ""]);
  return queryText(pairs);
}

// The view of another part of the picture's axes.
export function zoomed(view, ranges) {
  return { ...view, ranges, at: ranges.map((range) => range[0]) };
}
