// The table of values: a window of rows and columns, fetched as bytes and shown as the numbers they are.

import { texts, width } from "./decode.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { refusal } from "./statistics.js";
import { isBlocks, isDense } from "./view.js";

const ROWS = 16;
const COLUMNS = 8;
const COLUMNS_NARROW = 4;
const NARROW_PX = 600;

// Integers of less than a byte: windows of them are previews, whose cells are single elements.
const PACKED = new Set(["i4", "u4", "i2", "u2"]);

// How the elements can be read: their own bytes, widened by the server, or as cells.
function reading(object, part) {
  const type = part.type ?? part.dtype;

  // The type of GGUF's blocks is that of their bytes.
  if (width(type) !== undefined && !isBlocks(object))
    return { type, query: [] };
  if (PACKED.has(type) && isDense(object))
    return { type, query: [], cells: true };
  return { type: "f32", query: ["dtype=f32"] };
}

// The axes of the elements: those of the tensor, or one for a component of another layout. A number holds the length of
// each axis that has elements on it.
export function axesOf(object, part) {
  if (isDense(object))
    return object.shape.map(Number);
  return [Math.floor(Number(part.uncompressed_length ?? part.length) / (width(part.type ?? part.dtype) ?? 1))];
}

// Where the window is, in rows and columns of the table. A vector fills rows one after another.
function geometry(axes, columns) {
  const matrix = axes.length >= 2;
  const elements = axes.reduce((product, axis) => product * axis, 1);
  const across = matrix ? axes.at(-1) : Math.min(columns, elements);
  const down = matrix ? axes.at(-2) : Math.ceil(elements / Math.max(1, across));

  return { axes, matrix, elements, across, down };
}

// The first row and column shown for the element that the view points at.
function origin(plan, at) {
  if (plan.matrix)
    return [at[0], at[1]];
  return [Math.floor((at[0] ?? 0) / Math.max(1, plan.across)), 0];
}

export function make({ api, path, object, part, shape, signal, change }) {
  const columns = innerWidth < NARROW_PX ? COLUMNS_NARROW : COLUMNS;
  const plan = geometry(shape, columns);
  const source = reading(object, part);
  const where = el("p", { class: "note", role: "status" });
  const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of values" });
  const moves = [["First", "Home"], ["Up", "PageUp"], ["Down", "PageDown"], ["Last", "End"], ["Left", "ArrowLeft"],
    ["Right", "ArrowRight"]].map(([label, key]) => el("button", { type: "button", "data-key": key,
    onclick: () => move(key) }, label));
  const goTo = el("form", { class: "choice", novalidate: true });
  const fields = (plan.matrix ? ["Row", "Column"] : ["Element"]).map((label, axis) => [label,
    el("input", { type: "number", class: "index", id: `at-${axis}`, min: 0, step: 1 })]);
  const element = el("section", { "aria-labelledby": "values" }, el("h2", { id: "values" }, "Values"),
    el("div", { class: "bar" }, el("div", { class: "moves" }, moves), goTo), where, scroll);
  let view = null;
  let shown = null;

  goTo.append(...fields.flatMap(([label, input], axis) => [el("label", { for: `at-${axis}` }, label), " ", input, " "]),
    el("button", { type: "submit" }, "Go"));
  goTo.addEventListener("submit", (event) => {
    event.preventDefault();
    const limits = plan.matrix ? [plan.down, plan.across] : [plan.elements];
    const at = fields.map(([, input], axis) => Math.max(0, Math.min(limits[axis] - 1, Math.floor(Number(input.value) || 0))));
    go(at);
  });

  function go(at) {
    const next = plan.matrix ? at : [Math.floor(at[0] / Math.max(1, plan.across)) * plan.across];

    if (shape.length > 0)
      change((now) => ({ ...now, at: next }));
  }

  const lastRow = () => Math.max(0, plan.down - ROWS);
  const lastColumn = () => Math.max(0, plan.across - columns);

  function move(key) {
    const [row, column] = origin(plan, view.at);
    const to = { Home: [0, 0], PageUp: [row - ROWS, column], PageDown: [row + ROWS, column], End: [lastRow(), column],
      ArrowLeft: [row, column - columns], ArrowRight: [row, column + columns] }[key];
    const [down, right] = [Math.max(0, Math.min(to[0], lastRow())), Math.max(0, Math.min(to[1], lastColumn()))];

    go(plan.matrix ? [down, right] : [down * plan.across]);
  }

  scroll.addEventListener("keydown", (event) => {
    const known = moves.find((button) => button.dataset.key === event.key);
    const sideways = /^Arrow/.test(event.key);

    if (known === undefined || event.ctrlKey || event.metaKey || event.altKey || sideways && !plan.matrix)
      return;
    event.preventDefault();
    move(event.key);
  });

  // The request for the window of `down` rows and `right` columns that begins at row and column.
  function request(row, column, down, right) {
    const ranges = plan.matrix ? [`${row}:${row + down}`, `${column}:${column + right}`]
      : plan.axes.length === 0 ? [] : [`${row * plan.across}:${Math.min(plan.elements, (row + down) * plan.across)}`];

    if (!isDense(object)) {
      const step = width(source.type);
      const [start, stop] = ranges[0].split(":").map((text) => Number(text) * step);
      return [path, { headers: { Range: `bytes=${start}-${stop - 1}` } }];
    }
    const slice = [...view.index, ...ranges];
    const query = [...(slice.length > 0 ? [`slice=${slice.join(",")}`] : []), ...source.query];
    if (source.cells)
      return [`${path}/preview?${[...query, `rows=${down}`, `cols=${right}`].join("&")}`, {}];
    return [query.length > 0 ? `${path}?${query.join("&")}` : path, {}];
  }

  // The texts of the elements that an address has. A vector's last row of cells may not be full.
  async function elementsAt(address, init) {
    if (source.cells)
      return (await api.json(address, init)).values.flat().filter((cell) => cell !== null).map(String);
    return texts(source.type, await api.bytesOf(await api.request(address, init)));
  }

  function table(values, row, column, down, right) {
    const head = Array.from({ length: right }, (_, i) => el("th", { scope: "col" }, plan.matrix ? column + i : `+${i}`));
    const body = Array.from({ length: down }, (_, r) => el("tr", {},
      el("th", { scope: "row" }, plan.matrix ? row + r : (row + r) * plan.across),
      values.slice(r * right, (r + 1) * right).map((text) =>
        el("td", { class: /nan|inf/i.test(text) ? "odd" : null }, text))));

    return el("table", { class: "numbers values" }, el("thead", {}, el("tr", {}, el("td", {}), head)), el("tbody", {}, body));
  }

  function describe(row, column, down, right) {
    const leading = view.index.length > 0 ? `[${view.index.join(", ")}], ` : "";

    if (plan.matrix)
      return `${leading}rows ${count(row)} to ${count(row + down - 1)} of ${count(plan.down)}, columns ${count(column)} ` +
        `to ${count(column + right - 1)} of ${count(plan.across)}`;
    const last = Math.min(plan.elements, (row + down) * plan.across) - 1;
    return `elements ${count(row * plan.across)} to ${count(last)} of ${count(plan.elements)}`;
  }

  async function update(next) {
    view = next;
    if (plan.elements === 0) {
      element.replaceChildren(element.firstChild, el("p", { class: "note" }, "There are no elements."));
      return;
    }
    const [row, column] = origin(plan, view.at);
    const [down, right] = [Math.min(ROWS, plan.down - row), Math.min(columns, plan.across - column)];
    const [address, init] = request(row, column, down, right);
    const wanted = JSON.stringify([address, init]);

    fields.forEach(([, input], axis) => {
      input.value = plan.matrix ? [row, column][axis] : row * plan.across;
    });
    for (const button of moves) {
      const { key } = button.dataset;
      const atStart = row === 0;
      const atEnd = row >= lastRow();
      button.disabled = { Home: atStart && column === 0, PageUp: atStart, PageDown: atEnd, End: atEnd,
        ArrowLeft: column === 0, ArrowRight: column >= lastColumn() }[key];
      button.hidden = !plan.matrix && /^Arrow/.test(key);
    }
    if (wanted === shown)
      return;
    shown = wanted;
    scroll.setAttribute("aria-busy", "true");
    try {
      const values = await elementsAt(address, { ...init, signal });
      if (shown !== wanted)
        return;
      where.textContent = describe(row, column, down, right);
      scroll.replaceChildren(table(values, row, column, down, right));
    } catch (error) {
      if (signal.aborted || shown !== wanted)
        return;
      shown = null;
      where.textContent = "";
      scroll.replaceChildren(refusal(error, "table of values", () => update(view)));
    }
    scroll.removeAttribute("aria-busy");
  }

  return { element, update };
}
