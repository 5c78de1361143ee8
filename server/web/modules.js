// The modules of a model: a tree of the parts of its tensors' dotted names, with what lies below each.
//
// A node is {label, path, bytes, count, children: Map or null, row}. row is the tensor of a leaf.

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

function node(label, path) {
  return { label, path, bytes: 0, count: 0, children: null, row: null };
}

// A child of that name; a tensor may be called as a module is, so their keys differ.
function childOf(parent, key, label, path) {
  parent.children ??= new Map();
  let child = parent.children.get(key);
  if (child === undefined) {
    child = node(label, path);
    parent.children.set(key, child);
  }
  return child;
}

// The tree of rows ({object, component, bytes}).
export function modulesOf(rows) {
  const separator = separatorOf(rows);
  const top = node("", "");

  for (const row of rows) {
    const parts = split(row.object, separator);
    const label = row.component === "data" ? parts[parts.length - 1] : `${parts[parts.length - 1]} (${row.component})`;
    let at = top;
    let path = "";

    at.bytes += row.bytes;
    at.count++;
    for (const part of parts.slice(0, -1)) {
      path = path === "" ? part : path + separator + part;
      at = childOf(at, `m${part}`, part, path);
      at.bytes += row.bytes;
      at.count++;
    }
    const leaf = childOf(at, `t${label}\0${row.component}`, label, row.object);
    leaf.bytes += row.bytes;
    leaf.count++;
    leaf.row = row;
  }
  top.separator = separator;
  return top;
}

// A module that holds nothing but another module is shown as one with it.
function joined(child, separator) {
  let at = child;
  let label = child.label;

  while (at.children !== null && at.children.size === 1) {
    const [only] = at.children.values();
    if (only.children === null)
      break;
    label += separator + only.label;
    at = only;
  }
  return at === child ? child : { ...at, label };
}

// What is in a module, by name as people count, or from the largest.
export function childrenOf(parent, separator, order) {
  const children = [...(parent.children?.values() ?? [])].map((child) => joined(child, separator));

  return children.sort(order === "bytes"
    ? (a, b) => b.bytes - a.bytes
    : (a, b) => collator.compare(a.label, b.label));
}

// The module at a path, or the whole model.
export function moduleAt(top, path) {
  let at = top;

  while (at.path !== path) {
    const next = [...(at.children?.values() ?? [])]
      .find((child) => child.children !== null && (child.path === path || path.startsWith(child.path + top.separator)));
    if (next === undefined)
      return top;
    at = next;
  }
  return at;
}
