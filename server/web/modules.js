// The modules of a model: a tree of the parts of its tensors' dotted names, with what lies below each.
//
// A node is {label, path, bytes, count, modules, rows, row}: path is what the names below it begin with, null for the whole
// model (a name may begin with a dot: its first part is empty); a module has modules (a Map by name, or null) and rows, the
// tensors right in it; a leaf has row, its tensor. Leaves are made when they are asked for: there may be very many.

const DEPTH_MAX = 32; // of names; what follows is one part

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
  return { label, path, bytes: 0, count: 0, modules: null, rows: [], row: null };
}

function leafNode(row, separator) {
  const parts = split(row.object, separator);
  const last = parts[parts.length - 1];

  return { label: row.component === "data" ? last : `${last} (${row.component})`, path: row.object, bytes: row.bytes,
    count: 1, modules: null, rows: [], row };
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

// The tree of rows ({object, component, first, bytes}): first is true for one component of each object, so that an
// object is counted once.
export function modulesOf(rows) {
  const separator = separatorOf(rows);
  const top = moduleNode("", null);

  for (const row of rows) {
    const parts = split(row.object, separator);
    let at = top;

    at.bytes += row.bytes;
    at.count += Number(row.first);
    for (let i = 0; i < parts.length - 1; i++) {
      at = moduleIn(at, parts[i], separator);
      at.bytes += row.bytes;
      at.count += Number(row.first);
    }
    at.rows.push(row);
  }
  top.separator = separator;
  return top;
}

// A module that holds nothing but another module is shown as one with it.
function joined(child, separator) {
  let at = child;
  let label = child.label;

  while (at.rows.length === 0 && at.modules?.size === 1) {
    [at] = at.modules.values();
    label += separator + at.label;
  }
  return at === child ? child : { ...at, label };
}

// What is in a module, by name as people count, or from the largest.
export function childrenOf(parent, separator, order) {
  const children = [
    ...[...(parent.modules?.values() ?? [])].map((child) => joined(child, separator)),
    ...parent.rows.map((row) => leafNode(row, separator)),
  ];

  return children.sort(order === "bytes"
    ? (a, b) => b.bytes - a.bytes || collator.compare(a.label, b.label)
    : (a, b) => collator.compare(a.label, b.label));
}

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
