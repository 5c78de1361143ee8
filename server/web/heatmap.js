// A heat map of two axes: a cell is a block of elements, and choosing one zooms into the part around it, until cells
// are elements. With a pointer: hover, click, or draw a frame; with keys: arrows, Enter, Escape or Backspace to go back.

import { colours, legend, limits } from "./colours.js";
import { rough } from "./decode.js";
import { el } from "./dom.js";
import { refusal } from "./statistics.js";
import { MAPS, picture, previewQuery, REDUCTIONS, zoomed } from "./view.js";

const CELLS = 256;
const CELLS_NARROW = 128;
const NARROW_PX = 600;
// One step of zooming shows this part of the axis, but no fewer elements than that.
const ZOOM = 8;
const LEAST = 8;

// --- what cells are ---

// The elements of cells from..to (inclusive) of one axis, within the range shown.
function elementsOf([start, stop], block, from, to = from) {
  return [Math.min(start + from * block, stop - 1), Math.min(start + (to + 1) * block, stop)];
}

// The elements of a frame of cells, as ranges of the axes. A vector is folded into rows.
function covered({ found, view }, a, b) {
  const [top, bottom] = [Math.min(a.row, b.row), Math.max(a.row, b.row)];
  const [left, right] = [Math.min(a.col, b.col), Math.max(a.col, b.col)];

  if (view.ranges.length === 0)
    return [];
  if (view.ranges.length === 1)
    return [elementsOf(view.ranges[0], found.block[1], top * found.cols + left, bottom * found.cols + right)];
  return [elementsOf(view.ranges[0], found.block[0], top, bottom), elementsOf(view.ranges[1], found.block[1], left, right)];
}

// A frame of cells becomes at least LEAST elements a side, or all there are.
function widened(ranges, shape) {
  return ranges.map(([start, stop], axis) => {
    const length = picture(shape)[axis];
    const size = Math.min(length, Math.max(stop - start, LEAST));
    const first = Math.min(Math.max(0, Math.floor((start + stop - size) / 2)), length - size);

    return [first, first + size];
  });
}

// The part around a cell that one step of zooming shows.
function around(drawn, shape, cell) {
  const { view } = drawn;
  const centre = covered(drawn, cell, cell);
  const sizes = view.ranges.map(([start, stop]) => Math.ceil((stop - start) / ZOOM));

  return widened(centre.map(([start, stop], axis) => {
    const middle = Math.floor((start + stop) / 2);
    const first = Math.max(view.ranges[axis][0], middle - Math.floor(sizes[axis] / 2));
    return [first, Math.min(view.ranges[axis][1], first + sizes[axis])];
  }), shape);
}

const rangeText = ([start, stop]) => (stop - start === 1 ? `${start}` : `${start} to ${stop - 1}`);

function position(drawn, cell) {
  const { view } = drawn;
  const ranges = covered(drawn, cell, cell);
  const leading = view.index.length > 0 ? `[${view.index.join(", ")}], ` : "";

  if (ranges.length === 0)
    return "the element";
  if (ranges.length === 1)
    return `element ${rangeText(ranges[0])}`;
  return `${leading}row ${rangeText(ranges[0])}, column ${rangeText(ranges[1])}`;
}

// --- drawing ---

function paint(canvas, { rows, cols, values }, colour) {
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(cols, rows);

  canvas.width = cols;
  canvas.height = rows;
  for (let row = 0, at = 0; row < rows; row++)
    for (let col = 0; col < cols; col++, at += 4) {
      const [red, green, blue] = colour(values[row][col]);
      pixels.data[at] = red;
      pixels.data[at + 1] = green;
      pixels.data[at + 2] = blue;
      pixels.data[at + 3] = 255;
    }
  context.putImageData(pixels, 0, 0);
}

function paintLegend(canvas, name) {
  const all = legend(name);
  paint(canvas, { rows: 1, cols: all.length, values: [all.map((_, step) => step)] }, (step) => all[step]);
}

// Cells of few rows or columns are not drawn huge, and a strip is still tall enough to hit.
function place(frame, { rows, cols }) {
  frame.style.maxWidth = `${Math.min(640, Math.max(cols * 24, 48))}px`;
  frame.style.aspectRatio = `${cols} / ${rows}`;
}

// --- controls ---

function select(id, label, choices, choose) {
  const list = el("select", { id }, Object.entries(choices).map(([value, text]) => el("option", { value }, text)));

  list.addEventListener("change", () => choose(list.value));
  return [el("span", { class: "choice" }, el("label", { for: id }, label), " ", list), list];
}

// A number for each leading axis.
function indexInputs(shape, change) {
  return shape.slice(0, -2).map((length, axis) => {
    const input = el("input", { type: "number", id: `axis-${axis}`, min: 0, max: length - 1, step: 1, class: "index" });

    input.addEventListener("change", () => {
      const value = Math.min(Math.max(0, Math.floor(Number(input.value) || 0)), length - 1);
      input.value = value;
      change((view) => ({ ...view, index: view.index.map((old, i) => (i === axis ? value : old)) }));
    });
    return [el("span", { class: "choice", hidden: length <= 1 }, el("label", { for: `axis-${axis}` }, `Axis ${axis}`), " ",
      input, el("span", { class: "note" }, ` of ${length}`)), input];
  });
}

// The ways back out: all of the axes, then each wider part that was chosen on the way here.
function crumbs(trail, view, shape, change) {
  const text = (ranges) => ranges.map(([start, stop]) => `${start}:${stop}`).join(", ");
  const all = picture(shape).map((length) => [0, length]);
  const same = (a, b) => text(a) === text(b);
  const steps = [all, ...trail.filter((ranges) => !same(ranges, all) && !same(ranges, view.ranges))];

  if (same(view.ranges, all))
    return [];
  return [...steps.map((ranges) => el("li", {}, el("button", { type: "button", class: "small",
    onclick: () => change((now) => zoomed(now, ranges), { step: true }) }, same(ranges, all) ? "All" : text(ranges)))),
  el("li", { "aria-current": "location" }, text(view.ranges))];
}

// { element, update(view) }
export function make({ api, path, shape, signal, change }) {
  const canvas = el("canvas", { id: "heatmap", tabindex: "0", role: "application", "aria-roledescription": "heat map",
    "aria-label": "Heat map: arrow keys move between cells, Enter zooms in, Escape zooms out",
    "aria-describedby": "heatmap-cell" });
  const mark = el("div", { class: "mark-cell", hidden: true });
  const frame = el("div", { class: "heatmap" }, canvas, mark);
  const readout = el("output", { id: "heatmap-cell", class: "readout mono" });
  const scaleBar = el("canvas", { class: "legend", "aria-hidden": "true" });
  const ends = [el("span", { id: "low" }), el("span", { id: "high" })];
  const trailList = el("ol", { class: "crumbs" });
  const problem = el("div", {});
  const [reduceChoice, reduceList] = select("reduce", "A cell is its block's", REDUCTIONS,
    (reduce) => change((view) => ({ ...view, reduce })));
  const [mapChoice, mapList] = select("map", "Colours", MAPS, (map) => change((view) => ({ ...view, map })));
  const inputs = indexInputs(shape, change);
  const out = el("button", { type: "button", onclick: () => zoomOut() }, "Zoom out");
  const settings = el("div", { class: "bar" }, inputs.map(([choice]) => choice), reduceChoice, mapChoice);
  const way = el("nav", { class: "bar", "aria-label": "Part shown" }, trailList, out);
  const drawing = el("div", { hidden: true }, frame,
    el("div", { class: "scale" }, ends[0], scaleBar, ends[1]), readout);
  const element = el("section", { "aria-labelledby": "heat-map" }, el("h2", { id: "heat-map" }, "Heat map"),
    settings, way, problem, drawing);
  let current = null;
  // {wanted, found, view}: what is seen, while `current` is what has been asked for.
  let drawn = null;
  let trail = [];
  let cell = { row: 0, col: 0 };
  let pressed = null;

  // --- the cell pointed at ---

  function showCell(next, other = next) {
    const { found } = drawn;
    const percent = (part, all) => `${(part / all) * 100}%`;

    cell = next;
    mark.hidden = false;
    mark.style.left = percent(Math.min(next.col, other.col), found.cols);
    mark.style.top = percent(Math.min(next.row, other.row), found.rows);
    mark.style.width = percent(Math.abs(next.col - other.col) + 1, found.cols);
    mark.style.height = percent(Math.abs(next.row - other.row) + 1, found.rows);
    const value = found.values[next.row][next.col];
    const shown = value === null ? "no finite element" : rough(value);
    readout.textContent = `${position(drawn, next)}: ${shown}`;
  }

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const at = (part, length, count) => Math.max(0, Math.min(count - 1, Math.floor((part / length) * count)));

    return { row: at(event.clientY - box.top, box.height, drawn.found.rows),
      col: at(event.clientX - box.left, box.width, drawn.found.cols) };
  }

  // --- zooming ---

  function zoomTo(ranges) {
    if (ranges.every(([start, stop], axis) => start === current.ranges[axis][0] && stop === current.ranges[axis][1]))
      return;
    trail.push(current.ranges);
    change((view) => zoomed(view, ranges), { step: true });
  }

  function zoomOut() {
    const all = picture(shape).map((length) => [0, length]);
    const ranges = trail.pop() ?? all;
    change((view) => zoomed(view, ranges), { step: true });
  }

  function onKey(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-16, 0], PageDown: [16, 0], Home: [0, -CELLS], End: [0, CELLS] };

    if (drawn === null || event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (Object.hasOwn(moves, event.key)) {
      const [down, right] = moves[event.key];
      const within = (value, count) => Math.max(0, Math.min(count - 1, value));
      showCell({ row: within(cell.row + down, drawn.found.rows), col: within(cell.col + right, drawn.found.cols) });
    } else if (event.key === "Enter" || event.key === " ")
      zoomTo(around(drawn, shape, cell));
    else if ((event.key === "Escape" || event.key === "Backspace") && !out.disabled)
      zoomOut();
    else
      return;
    event.preventDefault();
  }

  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("focus", () => drawn !== null && showCell(cell));
  canvas.addEventListener("pointermove", (event) => drawn !== null && showCell(cellAt(event), pressed ?? undefined));
  canvas.addEventListener("pointerdown", (event) => {
    if (drawn !== null && event.button === 0)
      pressed = cellAt(event);
  });
  // A finger that scrolls the page draws no frame.
  addEventListener("pointercancel", () => {
    pressed = null;
  }, { signal });
  addEventListener("pointerup", (event) => {
    const from = pressed;

    pressed = null;
    if (from === null || drawn === null || event.target !== canvas)
      return;
    const to = cellAt(event);
    const isFrame = Math.abs(from.row - to.row) > 1 || Math.abs(from.col - to.col) > 1;
    zoomTo(isFrame ? widened(covered(drawn, from, to), shape) : around(drawn, shape, to));
  }, { signal });

  // --- drawing what the view asks for ---

  function draw() {
    const { found } = drawn;
    const [low, high] = limits(current.map, found.low ?? 0, found.high ?? 0);

    paint(canvas, found, colours(current.map, found.low ?? 0, found.high ?? 0));
    paintLegend(scaleBar, current.map);
    place(frame, found);
    ends[0].textContent = found.low === null ? "no finite element" : rough(low);
    ends[1].textContent = found.high === null ? "" : rough(high);
    mark.hidden = true;
    const [rows, cols] = found.block;
    readout.textContent = rows * cols === 1 ? "A cell is one element. Point at one, or use the arrow keys."
      : `A cell is a block of ${rows} × ${cols} elements. Point at one; click or Enter zooms in.`;
    if (document.activeElement === canvas)
      showCell(cell);
  }

  async function update(view) {
    const wanted = path + "/preview" + previewQuery(view, shape, innerWidth < NARROW_PX ? CELLS_NARROW : CELLS);

    current = view;
    reduceList.value = view.reduce;
    mapList.value = view.map;
    inputs.forEach(([, input], axis) => {
      input.value = view.index[axis];
    });
    trailList.replaceChildren(...crumbs(trail, view, shape, change));
    out.disabled = trailList.childElementCount === 0;
    way.hidden = out.disabled && document.activeElement !== out;
    if (drawn?.wanted === wanted) {
      drawn.view = view;
      draw();
      // An answer that is still on its way is no longer wanted.
      element.removeAttribute("aria-busy");
      return;
    }
    element.setAttribute("aria-busy", "true");
    try {
      // Cells are doubles, however long they are as integers: plain JSON is what they are written in.
      const found = JSON.parse(await api.textOf(await api.request(wanted, { signal })));
      if (current !== view)
        return;
      drawn = { wanted, found, view };
      settings.hidden = found.rows === 0 || found.cols === 0;
      cell = { row: Math.floor((found.rows - 1) / 2), col: Math.floor((found.cols - 1) / 2) };
      drawing.hidden = settings.hidden;
      problem.replaceChildren(...(drawing.hidden ? [el("p", { class: "note" }, "There are no elements to draw.")] : []));
      if (!drawing.hidden)
        draw();
    } catch (error) {
      if (signal.aborted || current !== view)
        return;
      drawn = null;
      drawing.hidden = true;
      settings.hidden = shape.length < 3;
      problem.replaceChildren(refusal(error, "heat map", () => update(view)));
    }
    element.removeAttribute("aria-busy");
  }

  return { element, update };
}

