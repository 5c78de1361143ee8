// A picture of where a model's bytes are: a rectangle for each module and tensor, its area the bytes below it, and in it
// what it holds. Repeated layers are one rectangle with what is in all of them. Choosing a module goes into it, choosing a
// tensor opens its page. The tree above it says the same in words.

import { announce, cut, el, shownName, svg } from "./dom.js";
import { bytes, count, percent, plural } from "./format.js";
import { childrenOf, layersOf, moduleAt, towards } from "./modules.js";

const HEIGHT_PX = 320;
// How many cells are drawn, the smaller ones as one, and the share of the bytes that makes a single one of them too large;
// then the same of what is inside a cell.
const CELLS = { most: 80, dominant: 0.8 };
const INNER = { most: 40, dominant: 0.9 };
const COLOURS = 8; // of style.css
const LETTER_PX = 8; // about the width of one

// --- where the rectangles are (Bruls, Huizing, van Wijk: Squarified Treemaps) ---

// How far the worst rectangle of a row is from a square.
function worst(row, sum, side) {
  const thickness = sum / side;
  let ratio = 1;

  for (const { area } of row) {
    const length = area / thickness;
    ratio = Math.max(ratio, length / thickness, thickness / length);
  }
  return ratio;
}

// Places items ({area}, from the largest) in a rectangle of their total area.
function place(items, x, y, width, height) {
  const placed = [];
  let at = 0;

  while (at < items.length) {
    const side = Math.min(width, height);
    const row = [items[at]];
    let sum = items[at].area;

    while (at + row.length < items.length) {
      const next = items[at + row.length];
      if (worst([...row, next], sum + next.area, side) > worst(row, sum, side))
        break;
      row.push(next);
      sum += next.area;
    }
    const thickness = side > 0 ? sum / side : 0;
    let along = 0;
    for (const item of row) {
      const length = thickness > 0 ? item.area / thickness : 0;
      placed.push(width >= height
        ? { ...item, x, y: y + along, width: thickness, height: length }
        : { ...item, x: x + along, y, width: length, height: thickness });
      along += length;
    }
    if (width >= height) {
      x += thickness;
      width -= thickness;
    } else {
      y += thickness;
      height -= thickness;
    }
    at += row.length;
  }
  return placed;
}

// What a module holds, from the largest. One that has this share of its bytes is replaced by what is in it, unless that is
// repeated layers: a map of one rectangle says nothing.
function contentsOf(module, separator, dominant) {
  let children = childrenOf(module, separator, "bytes").filter((child) => child.bytes > 0);

  for (;;) {
    const [first] = children;
    if (first === undefined || first.row !== null || first.bytes < dominant * module.bytes)
      return children;
    if (children.length > 1 && layersOf(first, separator) !== null)
      return children;
    const inside = childrenOf(first, separator, "bytes").filter((child) => child.bytes > 0);
    const prefix = children.length > 1 ? first.label + separator : "";
    children = [...inside.map((child) => ({ ...child, label: prefix + child.label })), ...children.slice(1)]
      .sort((one, other) => other.bytes - one.bytes);
  }
}

// The largest children as they are, and one cell for the others.
function cellsOf(module, separator, area, { most, dominant }) {
  const children = contentsOf(module, separator, dominant);
  const large = children.slice(0, most).map((child) => ({ child, bytes: child.bytes }));
  const small = children.slice(most);

  if (small.length > 0)
    large.push({ child: null, others: small.length, bytes: small.reduce((sum, child) => sum + child.bytes, 0) });
  large.sort((a, b) => b.bytes - a.bytes);
  return large.map((cell) => ({ ...cell, area: (cell.bytes / module.bytes) * area }));
}

// --- drawing ---

// The same module has the same colour at every level.
function colourOf(text) {
  let hash = 7;

  for (let i = 0; i < Math.min(text.length, 64); i++)
    hash = (hash * 31 + text.charCodeAt(i)) % 65521;
  return hash % COLOURS;
}

function labels(cell, text, amount) {
  const letters = Math.floor((cell.width - 10) / LETTER_PX);

  return [
    letters >= 3 && cell.height >= 20 && svg("text", { x: cell.x + 5, y: cell.y + 16 }, shownName(text, letters)),
    letters >= 7 && cell.height >= 38 &&
      svg("text", { x: cell.x + 5, y: cell.y + 33, class: "amount" }, cut(amount, letters)),
  ];
}

// What is inside a module, below its label.
function inner(cell, layers, separator) {
  const [x, y, width, height] = [cell.x + 4, cell.y + 40, cell.width - 8, cell.height - 44];
  const module = layers?.sum ?? cell.child;

  if (module === null || module.row !== null || width < 24 || height < 24)
    return null;
  return place(cellsOf(module, separator, width * height, INNER), x, y, width, height).map((one) => [
    svg("rect", { class: "inner", x: one.x, y: one.y, width: one.width, height: one.height }),
    labels(one, one.child === null ? plural(one.others, "smaller one") : one.child.label, bytes(one.bytes)),
  ]);
}

function draw(cell, whole, context) {
  const { child } = cell;
  const layers = child === null || child.row !== null ? null : layersOf(child, context.separator);
  const text = child === null ? plural(cell.others, "smaller one") : [child.label, layers?.label].filter(Boolean).join(" ");
  const amount = layers === null ? bytes(cell.bytes) : `${bytes(cell.bytes)} in ${count(layers.count)} layers`;
  const said = `${shownName(text, 200)}: ${amount}, ${percent(cell.bytes, whole)}`;
  const drawn = [
    svg("title", {}, said),
    svg("rect", { x: cell.x + 0.5, y: cell.y + 0.5, width: Math.max(0, cell.width - 1),
      height: Math.max(0, cell.height - 1), class: `map-${child === null ? 7 : colourOf(child.path)}` }),
    inner(cell, layers, context.separator),
    labels(cell, text, amount),
  ];

  if (child === null)
    return svg("g", { role: "img", "aria-label": said }, drawn);
  if (child.row !== null) {
    const address = context.addressOf(child.row);
    return address === null
      ? svg("g", { role: "img", "aria-label": said }, drawn)
      : svg("a", { href: address, "aria-label": said }, drawn);
  }
  const enter = () => context.enter(cell.child.path);
  return svg("g", {
    role: "button",
    "aria-label": said,
    onclick: enter,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ")
        return;
      event.preventDefault();
      enter();
    },
  }, drawn);
}

// The way from the whole model to the module, as buttons.
function trail(top, module, enter) {
  const steps = [{ label: "whole model", path: null }];
  let at = top;

  while (at !== module && at.path !== module.path) {
    at = towards(at, module.path, top.separator);
    if (at === undefined)
      break;
    steps.push({ label: at.label, path: at.path });
  }
  return el("nav", { class: "trail", "aria-label": "Path in the model" }, steps.map((step, index) => [
    index > 0 && el("span", { "aria-hidden": "true" }, " › "),
    index === steps.length - 1
      ? el("strong", { "aria-current": "location" }, el("bdi", {}, shownName(step.label, 60)))
      : el("button", { type: "button", class: "small", onclick: () => enter(step.path) },
        el("bdi", {}, shownName(step.label, 60))),
  ]));
}

// One cell is reached with the tab key; the arrows lead to the others, which are in the order of their size.
function reachable(picture) {
  const cells = () => [...picture.querySelectorAll("a, [role=button]")];
  const reach = (cell) => {
    for (const one of cells())
      one.setAttribute("tabindex", one === cell ? "0" : "-1");
  };

  picture.addEventListener("keydown", (event) => {
    const all = cells();
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };

    if (at < 0 || !Object.hasOwn(to, event.key) || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, to[event.key]))].focus();
  });
  picture.addEventListener("focusin", (event) => reach(event.target));
  return () => reach(cells()[0]);
}

// { element, show(path) }: the map, at the module of that path; addressOf(row) is the page of a tensor, or null; onEnter
// hears of each step of the reader's.
export function treemap(top, path, addressOf, onEnter) {
  const picture = svg("svg", { role: "group", height: HEIGHT_PX, preserveAspectRatio: "none", "aria-description": "Arrow keys move in it." });
  const reachFirst = reachable(picture);
  const above = el("div");
  const element = el("div", { class: "treemap" }, above, picture);
  let module = moduleAt(top, path);
  let widthPx = 0;

  const redraw = () => {
    const cells = place(cellsOf(module, top.separator, widthPx * HEIGHT_PX, CELLS), 0, 0, widthPx, HEIGHT_PX);

    above.replaceChildren(trail(top, module, enter));
    picture.setAttribute("viewBox", `0 0 ${widthPx} ${HEIGHT_PX}`);
    picture.setAttribute("aria-label",
      `Bytes of ${module.path === null ? "the whole model" : shownName(module.path, 200)}: ${bytes(module.bytes)} in ${plural(module.count, "tensor")}`);
    picture.replaceChildren(...cells.map((cell) => draw(cell, module.bytes, { addressOf, enter, separator: top.separator })));
    reachFirst();
  };
  const enter = (to) => {
    onEnter(to);
    show(to);
  };
  const show = (to) => {
    const hadFocus = element.contains(document.activeElement);

    module = moduleAt(top, to);
    redraw();
    announce(picture.getAttribute("aria-label"));
    if (hadFocus)
      (picture.querySelector("[tabindex='0']") ?? above.querySelector("button"))?.focus();
  };

  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && width !== widthPx) {
      widthPx = width;
      redraw();
    }
  }).observe(element);
  return { element, show };
}
