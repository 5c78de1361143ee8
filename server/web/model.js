// One model: what it is, whether it is verified, its attributes, where its bytes are, and all of its tensors.

import { choose, chooseSort, chosen, chosenSort, queryBut } from "./address.js";
import { attributeList } from "./attributes.js";
import { downloads } from "./downloads.js";
import { el, name, wholeName } from "./dom.js";
import { bytes, count, date, plural, shape } from "./format.js";
import { modulesOf } from "./modules.js";
import { Table, searchField } from "./table.js";
import { tree } from "./tree.js";
import { treemap } from "./treemap.js";
import { verification } from "./verification.js";

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
        type: stored.type ?? stored.dtype,
        shape: value.shape ?? [],
        format: value.format,
        encoding: stored.encoding,
        bytes: Number(stored.length),
        digest: stored.digest,
        reachable: stored.href !== undefined,
      });
  return rows;
}

function elementsOf(row) {
  return row.shape.reduce((product, axis) => product * Number(axis), 1);
}

function facts(manifest, rows) {
  const { source } = manifest;
  const types = new Map();

  for (const row of rows)
    types.set(row.type, (types.get(row.type) ?? 0) + row.bytes);
  const ordered = [...types].sort((a, b) => b[1] - a[1]);
  return el("dl", { class: "facts" },
    el("dt", {}, "Format"), el("dd", {}, `${source.format} ${source.version}`),
    el("dt", {}, "Size"), el("dd", {}, `${bytes(source.size)} (${count(source.size)} bytes)`),
    el("dt", {}, "Tensors"), el("dd", {}, count(Object.keys(manifest.objects).length)),
    el("dt", {}, "Types"), el("dd", {}, ordered.length === 0 ? "–" : ordered.slice(0, 8).map(([type, sum], index) => [
      index > 0 && ", ", el("bdi", {}, String(type).slice(0, 60)), ` ${bytes(sum)}`])),
    source.modified && [el("dt", {}, "Modified"), el("dd", {}, date(source.modified))]);
}

// noted() is called when the reader has chosen something else.
function tensorTable(rows, addressOf, noted) {
  const parts = rows.some((row) => !row.first);
  const columns = [
    { key: "name", label: "Name", value: (row) => row.shown,
      cell: (row) => (addressOf(row) === null ? name(row.shown) : el("a", { href: addressOf(row) }, name(row.shown))) },
    { key: "shape", label: "Shape", value: elementsOf, numeric: true, cell: (row) => shape(row.shape) },
    { key: "type", label: "Type", value: (row) => row.type, cell: (row) => el("bdi", {}, String(row.type).slice(0, 60)) },
    { key: "format", label: "Layout", value: (row) => row.format, cell: (row) => name(String(row.format), 60), wide: true },
    { key: "encoding", label: "Encoding", value: (row) => row.encoding, cell: (row) => name(String(row.encoding), 60), wide: true },
    { key: "size", label: "Bytes", value: (row) => row.bytes, cell: (row) => bytes(row.bytes), numeric: true },
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
    el("div", { class: "bar" }, search.field, search.result), table.element);
}

function bytesSection(top, map, addressOf) {
  return el("section", { "aria-labelledby": "modules" }, el("h2", { id: "modules" }, "Map of the bytes"),
    top.bytes > 0 && map.element,
    el("details", { class: "modules" }, el("summary", {}, `As a tree: ${plural(top.count, "tensor")} by module`),
      tree(top, addressOf)));
}

export async function show(root, { model, api, signal, onReturn }) {
  root.append(el("p", { class: "note" }, el("a", { href: api.page("") }, "Models")), el("h1", {}, wholeName(model)));
  const loading = el("p", { class: "note", role: "status" }, "Loading…");
  root.append(loading);
  let manifest;
  try {
    manifest = await api.json(api.modelPath(model), { signal });
  } finally {
    loading.remove();
  }
  const rows = rowsOf(manifest);
  const addressOf = (row) => (row.reachable ? api.tensorPage(model, row.object, row.component) : null);

  root.append(
    facts(manifest, rows),
    downloads(manifest, api, signal),
    verification(`${api.modelPath(model)}/verification`, api, signal),
    el("section", { "aria-labelledby": "attributes" }, el("h2", { id: "attributes" }, "Attributes"),
      attributeList(manifest.attributes ?? {})),
  );
  const top = modulesOf(rows);
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
  if (rows.length > 0)
    root.append(bytesSection(top, map, addressOf));
  root.append(tensorTable(rows, addressOf, noted));
}
