// The tensors of a model as rows of a tree by module, for a table (table.js). Repeated layers are one row after the first.
//
// A row is {node, key, label, note, level, open, run} or a tensor's own row with label and level: open is true or false for
// a row that has others below it, run the layers that a row stands for.

import { plural } from "./format.js";
import { childrenOf, runLabel, runsOf } from "./modules.js";

const OPEN_ROWS = 24; // as many rows as a screen shows are open at first

// The rows right below a module.
function sections(module, separator) {
  return runsOf(childrenOf(module, separator, "name"), separator).flatMap((run) => (run.length <= 2
    ? run.map(rowOf)
    : [rowOf(run[0]), moreOf(run.slice(1))]));
}

function rowOf(node) {
  return node.row !== null
    ? { ...node.row, label: node.label }
    : { node, key: node.path, label: node.label, note: plural(node.count, "tensor"), type: node.type, bytes: node.bytes,
      elements: node.elements, count: node.count };
}

function moreOf(run) {
  const sum = (of) => run.reduce((total, one) => total + one[of], 0);
  const [{ type }] = run;

  return { run, key: `${run[0].path}…`, label: runLabel(run),
    note: `${run.length} more with the same structure`, type: run.every((one) => one.type === type) ? type : null,
    bytes: sum("bytes"), elements: sum("elements"), count: sum("count") };
}

function below(row, separator) {
  return row.run !== undefined ? row.run.map(rowOf) : sections(row.node, separator);
}

// The keys of the modules that are open at first: level by level, as long as there is room.
function openAtFirst(top) {
  const open = new Set();
  let waiting = sections(top, top.separator);
  let rows = waiting.length;

  while (waiting.length > 0) {
    const next = [];
    for (const row of waiting.filter(({ node }) => node !== undefined)) {
      const inside = sections(row.node, top.separator);
      if (rows + inside.length > OPEN_ROWS)
        continue;
      rows += inside.length;
      open.add(row.key);
      next.push(...inside);
    }
    waiting = next;
  }
  return open;
}

// { rows(), toggle(row) }. opened: the keys of an earlier visit, or null; onToggle(keys) hears of changes.
export function tree(top, opened, onToggle) {
  const open = opened === null ? openAtFirst(top) : new Set(opened);
  const add = (list, rows, level) => {
    for (const row of rows) {
      row.level = level;
      list.push(row);
      if (row.key === undefined)
        continue;
      row.open = open.has(row.key);
      if (row.open)
        add(list, below(row, top.separator), level + 1);
    }
    return list;
  };

  return {
    rows: () => add([], sections(top, top.separator), 1),
    toggle: (row) => {
      if (!open.delete(row.key))
        open.add(row.key);
      onToggle([...open]);
    },
  };
}
