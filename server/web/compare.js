// Two models, or two revisions of a model, side by side: which tensors are new, gone, reshaped, retyped, changed or equal,
// and by how much the values of a changed tensor differ.
//
//   /ui/compare?a=MODEL&b=MODEL          a: before, b: after
//              &a-at=REVISION&b-at=REVISION

import { choose, chooseSort, chosen, chosenSort } from "./address.js";
import { isNumeric, numbers, rough } from "./decode.js";
import { el, errorBox, name } from "./dom.js";
import { bytes, count, plural, shape } from "./format.js";
import { Table, searchField } from "./table.js";
import { isDense } from "./view.js";
import { isWidened, typeName, typeOf } from "./types.js";

const POLL_MS = 500; // while the server computes digests
const READ_MAX = 64 << 20; // bytes of a tensor whose values are compared here
const STATES = {
  changed: ["changed", "bad"],
  new: ["new", "good"],
  gone: ["gone", "bad"],
  reshaped: ["reshaped", "bad"],
  retyped: ["retyped", "bad"],
  unknown: ["not compared", ""],
  equal: ["equal", ""],
};
const ORDER = Object.keys(STATES);

// --- what is compared ---

// A file may state the SHA-256 itself; otherwise the server computes it.
function sha256Of(stored) {
  return stored.sha256 ?? /^sha256:(.*)$/.exec(stored.digest ?? "")?.[1];
}

function digestsOf(object) {
  return Object.entries(object.components).map(([component, stored]) =>
    `${component} ${stored.encoding} ${stored.length} ${sha256Of(stored)}`);
}

function isHashed(object) {
  return Object.values(object.components).every((stored) => sha256Of(stored) !== undefined);
}

function typesOf(object) {
  return Object.values(object.components).map((stored) => typeName(object, stored)).join(", ");
}

function stateOf(before, after) {
  if (before === undefined)
    return "new";
  if (after === undefined)
    return "gone";
  if (JSON.stringify(before.shape) !== JSON.stringify(after.shape))
    return "reshaped";
  if (before.format !== after.format || typesOf(before) !== typesOf(after))
    return "retyped";
  if (!isHashed(before) || !isHashed(after))
    return "unknown";
  if (JSON.stringify(digestsOf(before)) === JSON.stringify(digestsOf(after)))
    return "equal";
  // The same values may be compressed differently.
  const isStoredAlike = Object.values(before.components).every(({ encoding }) => encoding === "raw") &&
    Object.values(after.components).every(({ encoding }) => encoding === "raw");
  return isStoredAlike ? "changed" : "unknown";
}

function sizeOf(object) {
  return Object.values(object.components).reduce((sum, stored) => sum + Number(stored.length), 0);
}

function rowsOf(before, after) {
  const names = new Set([...Object.keys(before.objects), ...Object.keys(after.objects)]);

  return [...names].map((object) => {
    const [a, b] = [before.objects[object], after.objects[object]];
    return { object, before: a, after: b, state: stateOf(a, b), bytes: sizeOf(b ?? a) };
  });
}

// Waits until the server has the digests of all components.
async function manifestOf(side, api, signal, onWait) {
  for (;;) {
    const manifest = await api.json(`${api.modelPath(side.model, side.revision)}?digests&attributes=false`, { signal });

    if (!(manifest.pending_digests > 0) || signal.aborted)
      return manifest;
    onWait(manifest.pending_digests);
    await api.pause(POLL_MS, signal);
  }
}

// --- values of one tensor ---

function isReadable(object) {
  const part = object.components.data;

  return part !== undefined && isDense(object) && (isWidened(object, part) || isNumeric(typeOf(part)));
}

function canRead(row) {
  return row.before !== undefined && row.after !== undefined &&
    row.state !== "reshaped" && [row.before, row.after].every(isReadable) && row.bytes <= READ_MAX;
}

// A query that makes the server send what this page can decode.
function queryOf(object) {
  return isWidened(object, object.components.data) ? "?dtype=f32" : "";
}

async function valuesOf(side, row, object, api, signal) {
  const path = api.componentPath(side.model, row.object, "data", side.revision);
  const query = queryOf(object);
  const response = await api.request(path + query, { signal });

  return numbers(query === "" ? typeOf(object.components.data) : "f32", await api.bytesOf(response));
}

// Integers of 64 bits are subtracted exactly.
function distanceOf(a, b) {
  return Math.abs(typeof a === "bigint" && typeof b === "bigint" ? Number(a - b) : Number(a) - Number(b));
}

// Not-a-number counts as equal to not-a-number.
function differenceOf(a, b) {
  let [changed, most, sum, compared] = [0, 0, 0, 0];

  for (let i = 0; i < a.length; i++) {
    const isEqual = a[i] == b[i] || Object.is(a[i], b[i]);
    const distance = isEqual ? 0 : distanceOf(a[i], b[i]);

    changed += Number(!isEqual);
    if (Number.isNaN(distance))
      continue;
    compared++;
    most = Math.max(most, distance);
    sum += distance;
  }
  return { count: a.length, changed, most, mean: compared > 0 ? sum / compared : 0 };
}

function differenceTable(found) {
  const row = (key, label, text) => el("tr", {}, el("th", { scope: "row" }, label), el("td", { "data-key": key }, text));
  const share = found.count > 0 ? (100 * found.changed) / found.count : 0;

  return el("table", { class: "numbers" }, el("tbody", {},
    row("changed", "Changed elements", `${count(found.changed)} of ${count(found.count)} (${rough(share, 3)} %)`),
    row("most", "Largest difference", rough(found.most, 6)),
    row("mean", "Mean difference", rough(found.mean, 6))));
}

function details(sides, api, signal) {
  const element = el("section", { "aria-labelledby": "values", hidden: true });
  let shown = null;

  async function show(row) {
    const body = el("div", { "aria-busy": "true" }, el("p", { class: "note", role: "status" }, "Reading …"));

    shown = row;
    element.hidden = false;
    element.replaceChildren(el("h2", { id: "values" }, "Values of ", name(row.object)), body);
    try {
      const [a, b] = await Promise.all([valuesOf(sides[0], row, row.before, api, signal),
        valuesOf(sides[1], row, row.after, api, signal)]);
      if (shown === row)
        body.replaceChildren(differenceTable(differenceOf(a, b)));
    } catch (error) {
      if (signal.aborted || shown !== row)
        return;
      body.replaceChildren(errorBox(error, () => show(row)));
    }
    body.removeAttribute("aria-busy");
    element.scrollIntoView({ block: "nearest" });
  }

  return { element, show };
}

// --- the table ---

function both(row, textOf) {
  const [a, b] = [row.before && textOf(row.before), row.after && textOf(row.after)];

  return a === undefined || b === undefined || a === b ? b ?? a : `${a} → ${b}`;
}

function stateCell(row, values) {
  const [word, kind] = STATES[row.state];
  const mark = el("span", { class: `mark ${kind}`.trim() }, word);

  if (row.state === "equal" || !canRead(row))
    return mark;
  return el("span", { class: "bar" }, mark,
    el("button", { type: "button", class: "small", "aria-label": `Compare the values of ${row.object}`, onclick: () => values.show(row) }, "values"));
}

function tableOf(rows, values) {
  const columns = [
    { key: "name", label: "Name", value: (row) => row.object, cell: (row) => name(row.object) },
    { key: "state", label: "Difference", value: (row) => ORDER.indexOf(row.state), stays: true, cell: (row) => stateCell(row, values) },
    { key: "shape", label: "Shape", value: (row) => both(row, (object) => shape(object.shape)), from: "tablet" },
    { key: "type", label: "Type", value: (row) => both(row, typesOf), from: "tablet" },
    { key: "size", label: "Size", value: (row) => row.bytes, numeric: true, stays: true, cell: (row) => bytes(row.bytes) },
  ];
  const table = new Table({
    caption: "Differences",
    columns,
    sort: chosenSort(columns.map(({ key }) => key), "state"),
    onSort: (sort) => chooseSort(sort, "state"),
    empty: "No tensor matches.",
  });
  const search = searchField({
    label: "Filter tensors by name or difference",
    table,
    units: ["tensor"],
    value: chosen("q") ?? "",
    match: (row, words) => words.every((word) => `${row.object} ${STATES[row.state][0]}`.toLowerCase().includes(word)),
    onChange: (text) => choose("q", text),
  });

  table.setRows(rows);
  search.apply();
  return el("section", { "aria-labelledby": "tensors" }, el("h2", { id: "tensors" }, "Tensors"),
    el("div", { class: "bar" }, search.field, search.result), table.element, search.same);
}

function summary(rows) {
  const sums = new Map();

  for (const { state, bytes: size } of rows) {
    const [tensors, total] = sums.get(state) ?? [0, 0];
    sums.set(state, [tensors + 1, total + size]);
  }
  const found = ORDER.filter((state) => sums.has(state));
  if (found.length === 1 && found[0] === "equal")
    return el("p", {}, `All ${plural(rows.length, "tensor")} are equal.`);
  return el("dl", { class: "figures" }, found.map((state) => {
    const [tensors, total] = sums.get(state);
    return el("div", { "data-state": state }, el("dt", {}, STATES[state][0]), el("dd", {}, plural(tensors, "tensor"), " ",
      el("span", { class: "note" }, bytes(total))));
  }));
}

// --- the page ---

function sideOf(key) {
  return { model: chosen(key) ?? "", revision: chosen(`${key}-at`) ?? "" };
}

function form(sides, api, go) {
  const fields = [["a", "Before"], ["b", "After"]].map(([key, label], index) => {
    const model = el("input", { id: key, name: key, value: sides[index].model, required: true, spellcheck: "false", autocomplete: "off" });
    const revision = el("input", { id: `${key}-at`, name: `${key}-at`, value: sides[index].revision, spellcheck: "false",
      autocomplete: "off", placeholder: "main", size: 14 });
    return el("p", {}, el("label", { for: key }, label), " ", model, " ",
      el("label", { for: `${key}-at` }, "Revision"), " ", revision);
  });
  const element = el("form", { class: "compare" }, fields, el("p", {}, el("button", { type: "submit" }, "Compare")));

  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const query = new URLSearchParams([...new FormData(element)].map(([key, value]) => [key, value.trim()]).filter(([, value]) => value !== ""));
    go(`${api.page("compare")}?${query}`);
  });
  return element;
}

// An address below the form's, so that Back leads to the comparison before.
function follow(address) {
  const link = el("a", { href: address, hidden: true });

  document.getElementById("main").append(link);
  link.click();
}

export async function show(root, { api, signal }) {
  const sides = [sideOf("a"), sideOf("b")];
  const waiting = el("p", { class: "note", role: "status" }, "Loading …");

  root.append(el("p", { class: "note" }, el("a", { href: api.page("") }, "Models")), el("h1", {}, "Compare"), form(sides, api, follow));
  if (sides.some(({ model }) => model === ""))
    return;
  root.append(waiting);
  try {
    const onWait = (pending) => {
      waiting.textContent = `The server computes digests: ${count(pending)} left …`;
    };
    const [before, after] = await Promise.all(sides.map((side) => manifestOf(side, api, signal, onWait)));
    if (signal.aborted)
      return;
    const rows = rowsOf(before, after);
    const values = details(sides, api, signal);
    root.append(summary(rows), values.element, tableOf(rows, values));
  } finally {
    waiting.remove();
  }
}
