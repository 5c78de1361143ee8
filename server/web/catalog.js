// The models that the server has. Files that are parts of a model are not models.

import { choose, chooseSort, chosen, chosenSort } from "./address.js";
import { cut, el, name } from "./dom.js";
import { bytes, compact, count, date } from "./format.js";
import { Table, searchField } from "./table.js";

const PAGE = 1000; // models of one request
const SHOW_MS = 500; // between two looks at very many, since each sorts them
const LOOK_MS = 3000; // how often an empty folder is looked at

function format(model) {
  return model.version ? `${model.format} ${model.version}` : model.format ?? "";
}

// What is unreadable is said first: on narrow screens the beginning of a row's name is cut.
function nameCell(api, { name: model, error }) {
  return el("span", { class: "entry" },
    error && el("span", { class: "mark bad", title: cut(error.detail ?? "", 1000) }, "unreadable"),
    el("span", { class: "front" }, el("a", { href: api.modelPage(model) }, name(model))),
    error && el("span", { class: "why" }, el("bdi", {}, cut(error.detail ?? "", 300))));
}

// Figures that are not known have none.
function figure(value, text) {
  return value === null || value === undefined ? "–" : text(value);
}

function columns(api) {
  return [
    { key: "name", label: "Name", value: (model) => model.name, cell: (model) => nameCell(api, model) },
    { key: "parameters", label: "Parameters", value: (model) => model.parameters, numeric: true,
      cell: (model) => figure(model.parameters, compact) },
    { key: "size", label: "Size", value: (model) => model.size, cell: (model) => bytes(model.size), numeric: true },
    { key: "objects", label: "Tensors", value: (model) => model.objects, numeric: true, from: "desk",
      cell: (model) => figure(model.objects, count) },
    { key: "format", label: "Format", value: format, from: "tablet" },
    { key: "modified", label: "Modified", value: (model) => model.modified, cell: (model) => date(model.modified), from: "desk" },
  ];
}

function matches(model, words) {
  const text = `${model.name} ${format(model)} ${model.error ? "unreadable error" : ""}`.toLowerCase();

  return words.every((word) => text.includes(word));
}

// Asks for page after page, and shows what has come.
async function load(api, signal, onPage) {
  const models = [];
  let shownAt = -Infinity;
  let cursor = null;

  do {
    const query = new URLSearchParams({ limit: PAGE, parts: false });
    if (cursor !== null)
      query.set("cursor", cursor);
    const page = await api.json(`${api.base}/v1/models?${query}`, { signal });
    models.push(...page.models);
    cursor = page.next;
    if (cursor === null || performance.now() - shownAt > SHOW_MS) {
      onPage(models);
      shownAt = performance.now();
    }
  } while (cursor !== null);
}

function nothing(api) {
  return el("p", {}, "There are no models yet. Files in the server's folder appear here within ",
    "seconds; if uploads are turned on, files can also be ", el("a", { href: api.page("uploads") }, "uploaded"), ".");
}

// Until there is a model.
async function watch(api, signal, table, onPage) {
  while (table.rows.length === 0 && !signal.aborted) {
    await api.pause(LOOK_MS, signal);
    try {
      await load(api, signal, onPage);
    } catch { /* The next time will tell. */ }
  }
}

export async function show(root, { api, signal }) {
  const sortable = columns(api);
  const table = new Table({
    caption: "Models",
    columns: sortable,
    sort: chosenSort(sortable.map(({ key }) => key), "name"),
    onSort: (sort) => chooseSort(sort, "name"),
    empty: "No model matches.",
  });
  const search = searchField({
    label: "Search models",
    table,
    units: ["model"],
    value: chosen("q") ?? "",
    match: matches,
    onChange: (text) => choose("q", text),
  });
  const more = el("span", { class: "note", role: "status" }, "Loading…");
  const none = nothing(api);
  const onPage = (models) => {
    if (signal.aborted)
      return;
    table.element.hidden = models.length === 0;
    none.hidden = models.length > 0;
    table.setRows(models);
    search.tell();
  };

  root.append(el("h1", {}, "Models"), el("div", { class: "bar" }, search.field, search.result, more),
    table.element, search.same, none);
  table.element.hidden = true;
  none.hidden = true;
  search.apply();
  search.result.textContent = "";
  try {
    await load(api, signal, onPage);
  } finally {
    more.remove();
  }
  watch(api, signal, table, onPage);
}
