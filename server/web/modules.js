// The modules of a model: a tree of the parts of its tensors' dotted names, with what lies below each.
//
// A node is {label, path, bytes, elements, count, type, modules, rows, row}: path is what the names below it begin with,
// null for the whole model (a name may begin with a dot: its first part is empty); type is the type of all tensors below,
// null if they differ; a module has modules (a Map by name, or null) and rows, the tensors right in it; a leaf has row, its
// tensor. Leaves are made when they are asked for: there may be very many.

const DEPTH_MAX = 32; // of names; what follows is one part
const RUNS_MAX = 4; // structures among the layers of a model, as with a few dense ones before those of experts

const collator = new Intl.Collator("en", { numeric: true });

// Names with dots, or as other frameworks write them with slashes.
function separatorOf(rows) {
  const sample = rows.slice(0, 1000);
  const slashes = sample.filter(({ object }) => object.includes("/")).length;
  const dots = sample.filter(({ object }) => object.includes(".")).length;

  return slashes > dots ? "/" : ".";
}

function split(name, separator) {
  const parts = name.split(separator);

  return parts.length <= DEPTH_MAX
    ? parts
    : [...parts.slice(0, DEPTH_MAX - 1), parts.slice(DEPTH_MAX - 1).join(separator)];
}

function moduleNode(label, path) {
  return { label, path, bytes: 0, elements: 0, count: 0, type: undefined, modules: null, rows: [], row: null };
}

function leafLabel(row, separator) {
  const parts = split(row.object, separator);
  const last = parts[parts.length - 1];

  return row.component === "data" ? last : `${last} (${row.component})`;
}

function leafNode(row, separator) {
  return { label: leafLabel(row, separator), path: row.object, bytes: row.bytes, elements: row.elements, count: 1,
    type: row.type, modules: null, rows: [], row };
}

function moduleIn(parent, part, separator) {
  let child = parent.modules?.get(part);

  if (child === undefined) {
    child = moduleNode(part, parent.path === null ? part : parent.path + separator + part);
    parent.modules ??= new Map();
    parent.modules.set(part, child);
  }
  return child;
}

function addTo(module, row) {
  module.bytes += row.bytes;
  if (row.first) {
    module.count++;
    module.elements += row.elements;
  }
  if (module.type === undefined)
    module.type = row.type;
  else if (module.type !== row.type)
    module.type = null;
}

// The tree of rows ({object, component, first, type, elements, bytes}): first is true for one component of each object,
// so that an object is counted once.
export function modulesOf(rows) {
  const separator = separatorOf(rows);
  const top = moduleNode("", null);

  for (const row of rows) {
    const parts = split(row.object, separator);
    let at = top;

    addTo(at, row);
    for (let i = 0; i < parts.length - 1; i++) {
      at = moduleIn(at, parts[i], separator);
      addTo(at, row);
    }
    at.rows.push(row);
  }
  top.separator = separator;
  return top;
}

// A module that holds nothing but another module, or one tensor, is shown as one with it.
function joined(child, separator) {
  let at = child;
  let label = child.label;

  while (at.rows.length === 0 && at.modules?.size === 1) {
    [at] = at.modules.values();
    label += separator + at.label;
  }
  if (at.rows.length === 1 && at.modules === null) {
    const leaf = leafNode(at.rows[0], separator);
    return { ...leaf, label: label + separator + leaf.label, own: child };
  }
  return { ...at, label, own: child };
}

// What is in a module, by name as people count, or from the largest. own is the node as it is in the tree, before it was
// shown as one with what it holds.
export function childrenOf(parent, separator, order) {
  const children = [
    ...[...(parent.modules?.values() ?? [])].map((child) => joined(child, separator)),
    ...parent.rows.map((row) => ({ ...leafNode(row, separator), own: null })),
  ];

  return children.sort(order === "bytes"
    ? (a, b) => b.bytes - a.bytes || collator.compare(a.label, b.label)
    : (a, b) => collator.compare(a.label, b.label));
}

// --- repeated layers ---

// What the names below a module are: equal for layers of the same structure.
function structureOf(module, separator) {
  module.structure ??= [
    ...module.rows.map((row) => leafLabel(row, separator)),
    ...[...(module.modules?.values() ?? [])].map((child) => `${child.label}{${structureOf(child, separator)}}`),
  ].sort().join("\n");
  return module.structure;
}

// What a numbered child is one of, null if it has no number: repeated children differ only in their number.
function seriesOf(child, separator) {
  const name = child.own?.label ?? child.label;
  const stem = /^(.*?)\d+$/.exec(name);

  return stem === null ? null : `${stem[1]}\n${child.own === null ? "" : structureOf(child.own, separator)}`;
}

// Children by name, with runs of repeated ones together, as in a model's layers: an array of arrays.
export function runsOf(children, separator) {
  const runs = [];
  let before = null;

  for (const child of children) {
    const series = seriesOf(child, separator);
    if (series !== null && series === before)
      runs.at(-1).push(child);
    else
      runs.push([child]);
    before = series;
  }
  return runs;
}

// "0–31"
export function runLabel(run) {
  return `${run[0].own?.label ?? run[0].label}–${/\d+$/.exec(run.at(-1).own?.label ?? run.at(-1).label)[0]}`;
}

// Adds what is in a module to what is in another one of the same names.
function merge(into, module, separator) {
  into.bytes += module.bytes;
  into.named ??= new Map();
  for (const row of module.rows) {
    const label = leafLabel(row, separator);
    const same = into.named.get(label);
    if (same !== undefined) {
      same.bytes += row.bytes;
      continue;
    }
    into.named.set(label, { ...row });
    into.rows.push(into.named.get(label));
  }
  for (const child of module.modules?.values() ?? [])
    merge(moduleIn(into, child.label, separator), child, separator);
}

// A module of repeated layers as { label: "0–31", count, sum: a module of what is in all of them }; null for any other.
export function layersOf(module, separator) {
  const children = module.modules === null ? [] : childrenOf(module, separator, "name");
  const runs = runsOf(children, separator);
  const sum = moduleNode(module.label, module.path);

  if (runs.length > RUNS_MAX || !runs.some((run) => run.length > 1) || children.some((child) => child.own === null))
    return null;
  for (const child of children)
    merge(sum, child.own, separator);
  return { label: runLabel(children), count: children.length, sum };
}

// --- paths ---

// The module in another one that is on the way to a path.
export function towards(module, path, separator) {
  return [...(module.modules?.values() ?? [])]
    .find((child) => child.path === path || path.startsWith(child.path + separator));
}

// The module at a path, or the whole model if there is none or path is null.
export function moduleAt(top, path) {
  let at = top;

  while (at !== undefined && at.path !== path)
    at = towards(at, path, top.separator);
  return at ?? top;
}
