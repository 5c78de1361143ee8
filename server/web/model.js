// One model: its figures, its tensors, where its bytes are, how to get it, and what its files say of it.

import { choose, chooseSort, chosen, chosenSort, queryBut } from "./address.js";
import { attributeList } from "./attributes.js";
import { brokenEntry, showBroken } from "./broken.js";
import { downloads } from "./downloads.js";
import { el, name, wholeName } from "./dom.js";
import { bytes, compact, count, date, shape } from "./format.js";
import { modulesOf } from "./modules.js";
import { repositoryOf } from "./repository.js";
import { revisions } from "./revisions.js";
import { Table, searchField } from "./table.js";
import { tree } from "./tree.js";
import { treemap } from "./treemap.js";
import { layoutName, typeName } from "./types.js";
import { verification } from "./verification.js";

const TYPES_SHOWN = 6; // of a model's, in its figures

// One row for each component: most objects have one, called data.
function rowsOf(manifest) {
  const rows = [];

  for (const [object, value] of Object.entries(manifest.objects))
    for (const [index, [component, stored]] of Object.entries(value.components).entries())
      rows.push({
        object,
        component,
        first: index === 0,
        shown: component === "data" ? object : `${object} · ${component}`,
        type: typeName(value, stored),
        shape: value.shape ?? [],
        elements: (value.shape ?? []).reduce((product, axis) => product * Number(axis), 1),
        format: layoutName(value),
        encoding: stored.encoding,
        bytes: Number(stored.length),
        reachable: stored.href !== undefined,
      });
  return rows;
}

// --- figures ---

function figure(label, value, more) {
  return value && el("div", {}, el("dt", {}, label), el("dd", {}, value, more && [" ", el("span", { class: "note" }, more)]));
}

function types(rows) {
  const sums = new Map();

  for (const row of rows)
    sums.set(row.type, (sums.get(row.type) ?? 0) + row.bytes);
  const ordered = [...sums].sort((a, b) => b[1] - a[1]);
  return [
    ordered.slice(0, TYPES_SHOWN).map(([type, sum], index) => [index > 0 && ", ", name(type, 60),
      ordered.length > 1 && el("span", { class: "note" }, ` ${bytes(sum)}`)]),
    ordered.length > TYPES_SHOWN && el("span", { class: "note" }, ` and ${count(ordered.length - TYPES_SHOWN)} more`),
  ];
}

function figures({ source, objects, parameters }, rows) {
  return el("dl", { class: "figures" },
    parameters !== null && figure("Parameters", compact(parameters), parameters >= 10000 && count(parameters)),
    figure("Tensors", count(Object.keys(objects).length)),
    rows.length > 0 && figure("Types", types(rows)),
    figure("Size", bytes(source.size), el("span", { class: "from-tablet" }, `${count(source.size)} bytes`)),
    figure("Format", `${source.format} ${source.version}`.trim()),
    source.modified && figure("Modified", date(source.modified)));
}

// --- tensors ---

// A row of the tree, or of the list of tensors that are looked for.
function nameCell(row, addressOf) {
  const isModule = row.open !== undefined;
  const address = isModule ? null : addressOf(row);
  const shown = name(row.level === undefined ? row.shown : row.label);
  const cell = el("span", { class: "entry" },
    el("span", { class: "front" }, address === null ? shown : el("a", { href: address }, shown)),
    row.note && el("span", { class: "note" }, row.note));

  if (row.level !== undefined)
    cell.style.setProperty("--level", String(row.level - 1));
  if (isModule)
    cell.classList.add("module");
  return cell;
}

function tensorTable(rows, top, addressOf, noted) {
  const parts = rows.some((row) => !row.first);
  const columns = [
    { key: "name", label: "Name", value: (row) => row.shown, cell: (row) => nameCell(row, addressOf) },
    { key: "shape", label: "Shape", value: (row) => row.elements, numeric: true, stays: true, cell: (row) => shape(row.shape) },
    { key: "type", label: "Type", value: (row) => row.type,
      cell: (row) => (row.type === null ? el("span", { class: "note" }, "mixed") : name(row.type, 60)) },
    { key: "parameters", label: "Parameters", value: (row) => row.elements, numeric: true, stays: true, from: "tablet",
      cell: (row) => (row.first === false ? "" : compact(row.elements)) },
    { key: "size", label: "Size", value: (row) => row.bytes, numeric: true, stays: true, from: "tablet",
      cell: (row) => bytes(row.bytes) },
    { key: "format", label: "Layout", value: (row) => row.format, from: "desk",
      cell: (row) => row.format !== undefined && name(String(row.format), 60) },
    { key: "encoding", label: "Encoding", value: (row) => row.encoding, from: "desk",
      cell: (row) => row.encoding !== undefined && name(String(row.encoding), 60) },
  ];
  const table = new Table({
    caption: "Tensors",
    columns,
    sort: chosenSort(columns.map(({ key }) => key), "name"),
    onSort: (sort) => {
      chooseSort(sort, "name");
      noted();
    },
    empty: rows.length === 0 ? "The model has no tensors." : "No tensor matches.",
    tree: tree(top, history.state?.open ?? null, (open) => history.replaceState({ ...history.state, open }, "")),
  });
  const search = searchField({
    label: "Filter tensors by name, type or layout",
    table,
    units: parts ? ["component of tensors", "components of tensors"] : ["tensor"],
    value: chosen("q") ?? "",
    match: (row, words) => {
      row.text ??= `${row.shown} ${row.type} ${row.format} ${row.encoding} ${shape(row.shape)}`.toLowerCase();
      return words.every((word) => row.text.includes(word));
    },
    onChange: (text) => {
      choose("q", text);
      noted();
    },
  });

  table.setRows(rows);
  search.apply();
  return el("section", { "aria-labelledby": "tensors" }, el("h2", { id: "tensors" }, "Tensors"),
    el("div", { class: "bar" }, search.field, search.result), table.element, search.same);
}

// --- the page ---

// Where the sections are: the first one may fill the screen.
function contents(root) {
  return el("nav", { class: "contents", "aria-label": "On this page" },
    [...root.querySelectorAll("section > h2")].map((title) => el("a", { href: `#${title.id}` }, title.textContent)));
}

function mapSection(map) {
  return el("section", { "aria-labelledby": "modules" }, el("h2", { id: "modules" }, "Map of the bytes"), map.element);
}

async function manifestOf(root, { model, api, signal }) {
  const loading = el("p", { class: "note", role: "status" }, "Loading…");

  root.append(loading);
  try {
    return await api.json(api.modelPath(model), { signal });
  } finally {
    loading.remove();
  }
}

export async function show(root, { model, api, signal, onReturn }) {
  root.append(el("p", { class: "note" }, el("a", { href: api.page("") }, "Models")), el("h1", {}, wholeName(model)));
  let manifest;
  try {
    manifest = await manifestOf(root, { model, api, signal });
  } catch (error) {
    const entry = error.status === 422 ? await brokenEntry(model, api, signal) : undefined;
    if (entry === undefined)
      throw error;
    await showBroken(root, entry, { api, signal });
    return;
  }
  const rows = rowsOf(manifest);
  const top = modulesOf(rows);
  const addressOf = (row) => (row.reachable ? api.tensorPage(model, row.object, row.component) : null);
  const map = treemap(top, chosen("at"), addressOf, (path) => choose("at", path, null, { step: true }));
  // What else of the address is shown: back and forward between modules need no new page.
  let others = queryBut("at");
  const noted = () => {
    others = queryBut("at");
  };
  onReturn(() => {
    if (queryBut("at") !== others)
      return false;
    map.show(chosen("at"));
    return true;
  });
  const files = downloads(manifest, api, signal);
  const sections = el("div", {},
    tensorTable(rows, top, addressOf, noted),
    top.bytes > 0 && mapSection(map),
    files.element,
    verification(`${api.modelPath(model)}/verification`, api, signal),
    el("section", { "aria-labelledby": "attributes" }, el("h2", { id: "attributes" }, "Attributes"),
      attributeList(manifest.attributes ?? {})));
  const ways = el("div", {}, contents(sections));

  root.append(figures(manifest, rows), ways, sections);
  await addRepository(model, { files, sections, ways, api, signal });
  await addRevisions(model, { sections, ways, api, signal });
}

// Only servers that keep revisions list them.
async function addRevisions(model, { sections, ways, api, signal }) {
  try {
    const section = await revisions(model, api, signal);
    if (section === null)
      return;
    sections.append(section);
    ways.replaceChildren(contents(sections));
  } catch (error) {
    if (error.status === 401)
      throw error;
  }
}

// What is in the model's folder comes later, and may not come: the page is whole without it.
async function addRepository(model, { files, sections, ways, api, signal }) {
  try {
    const repository = await repositoryOf(model, api, signal);
    files.more.prepend(...repository.lines.map((one) => one.element));
    sections.append(...repository.sections);
    ways.replaceChildren(contents(sections));
  } catch (error) {
    if (error.status === 401)
      throw error;
  }
}
