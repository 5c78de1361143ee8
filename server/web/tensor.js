// The page of one tensor: what it is, its statistics, a picture, its values, and how to get it. Its state is in the
// address (view.js).

import { width } from "./decode.js";
import { el, name, wholeName } from "./dom.js";
import { bytes, count, elements, shape as shapeText } from "./format.js";
import * as heatmap from "./heatmap.js";
import * as snippets from "./snippets.js";
import * as statistics from "./statistics.js";
import * as values from "./values.js";
import * as views from "./view.js";

// More are in the answer of the API.
const ATTRIBUTES = 200;

function fact(label, ...value) {
  return [el("dt", {}, label), el("dd", {}, ...value.flat())];
}

function facts(object, part) {
  const length = Number(part.length);
  const decoded = Number(part.uncompressed_length ?? part.length);
  const type = part.type ?? part.dtype;

  return el("dl", { class: "facts" },
    ...fact("Shape", shapeText(object.shape)),
    ...fact("Elements", count(elements(object.shape))),
    ...fact("Type", name(type), type !== part.dtype && [" (stored as ", name(part.dtype), ")"]),
    ...fact("Format", name(object.format)),
    ...fact("Size", bytes(decoded), part.encoding !== "raw" && [`, stored as ${bytes(length)} (`, name(part.encoding), ")"]),
    ...(part.digest === undefined ? [] : fact("Digest", el("code", {}, name(part.digest, 100)))));
}

// CBOR's values, as JSON; long ones are cut.
function attributes(object) {
  const all = Object.entries(object.attributes ?? {});

  if (all.length === 0)
    return null;
  return el("details", {}, el("summary", {}, `Attributes (${count(all.length)})`),
    el("dl", { class: "facts long" }, all.slice(0, ATTRIBUTES).flatMap(([key, value]) => [el("dt", {}, name(key)),
      el("dd", {}, wholeName(typeof value === "string" ? value : text(value), 400))])));
}

function text(value) {
  return JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner)) ?? "";
}

// The other parts of an object that is made of several.
function siblings({ api, model, object, component }, found) {
  const all = Object.keys(found.components);

  if (all.length < 2)
    return null;
  return el("nav", { "aria-label": "Components" }, el("ul", { class: "components" }, all.map((one) => {
    const href = one === component ? null : api.tensorPage(model, object, one);
    return el("li", {}, href === null ? el("span", { "aria-current": one === component ? "page" : null }, name(one))
      : el("a", { href }, name(one)));
  })));
}

function heading({ api, model, object, component }, found) {
  const part = found.components[component];

  return [el("nav", { class: "path", "aria-label": "Breadcrumb" }, el("a", { href: api.page("") }, "Models"), " / ",
    el("a", { href: api.modelPage(model) }, name(model))),
  el("h1", {}, wholeName(object), Object.keys(found.components).length > 1 && [" / ", name(component)]),
  siblings({ api, model, object, component }, found), facts(found, part), attributes(found)];
}

// Whether the bytes can be shown as numbers: element-wise, or blocks that the server widens.
function hasValues(object, part) {
  return object.format === "dense" || /^gguf\./.test(object.format) || width(part.type ?? part.dtype) !== undefined;
}

export async function show(root, { model, object, component, api, signal }) {
  const path = api.componentPath(model, object, component);
  const found = await api.json(`${api.modelPath(model)}/objects/${encodeURIComponent(object)}`, { signal });
  const part = Object.hasOwn(found.components, component) ? found.components[component] : null;

  if (part === null)
    throw new Error("The object has no component of this name.");
  const { shape } = found;
  let view = views.read(location.search, shape);
  const common = { api, path, shape, signal, change, object: found, part, model, name: object };
  const sections = [heatmap.make(common), statistics.make(common),
    ...(hasValues(found, part) ? [values.make(common)] : [])];
  const ready = snippets.make(common);

  function update() {
    for (const section of sections)
      section.update(view);
    ready.update(views.isChosen(view, shape) ? views.slice(view, shape) : null);
  }

  // step: the way back is the browser's Back too.
  function change(next, { step = false } = {}) {
    view = next(view);
    const address = location.pathname + views.search(view, shape);
    if (step)
      history.pushState(null, "", address);
    else
      history.replaceState(null, "", address);
    update();
  }

  const own = location.pathname;
  // Before the shell, which would make the page anew.
  addEventListener("popstate", (event) => {
    if (location.pathname !== own)
      return;
    event.stopImmediatePropagation();
    view = views.read(location.search, shape);
    update();
  }, { signal, capture: true });

  root.classList.add("tensor");
  root.append(...heading({ api, model, object, component }, found).filter((child) => child !== null),
    el("div", { class: "side-by-side" }, sections.slice(0, 2).map((section) => section.element)),
    ...sections.slice(2).map((section) => section.element), ready.element);
  update();
}
