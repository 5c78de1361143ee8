// The page of one tensor: what it is, its statistics, a picture, its values, and how to get it. Its state is in the
// address (view.js).

import { attributeList } from "./attributes.js";
import { width } from "./decode.js";
import { el, name, wholeName } from "./dom.js";
import { bytes, count, elements, shape as shapeText } from "./format.js";
import * as heatmap from "./heatmap.js";
import * as snippets from "./snippets.js";
import * as statistics from "./statistics.js";
import { typeName, typeOf } from "./types.js";
import * as values from "./values.js";
import * as views from "./view.js";

function fact(label, ...value) {
  return [el("dt", {}, label), el("dd", {}, ...value.flat())];
}

function facts(object, part) {
  const length = Number(part.length);
  const decoded = Number(part.uncompressed_length ?? part.length);
  const type = typeName(object, part);

  return el("dl", { class: "facts" },
    ...fact("Shape", shapeText(object.shape)),
    ...fact("Elements", count(elements(object.shape))),
    ...fact("Type", name(type), type !== part.dtype && [" (stored as ", name(part.dtype), ")"]),
    ...fact("Format", name(object.format)),
    ...fact("Size", bytes(decoded), part.encoding !== "raw" && [`, stored as ${bytes(length)} (`, name(part.encoding), ")"]),
    ...(part.digest === undefined ? [] : fact("Digest", el("code", {}, name(part.digest, 100)))));
}

function attributes(object) {
  const all = object.attributes ?? {};
  const { length } = Object.keys(all);

  return length === 0 ? null
    : el("details", {}, el("summary", {}, `Attributes (${count(length)})`), attributeList(all));
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

function way({ api, model }) {
  return el("nav", { class: "path", "aria-label": "Breadcrumb" }, el("a", { href: api.page("") }, "Models"), " / ",
    el("a", { href: api.modelPage(model) }, name(model)));
}

function heading({ api, model, object, component }, found) {
  const part = found.components[component];

  return [way({ api, model }),
    el("h1", {}, wholeName(object), Object.keys(found.components).length > 1 && [" / ", name(component)]),
    siblings({ api, model, object, component }, found), facts(found, part), attributes(found)];
}

// The API as the sections of the page use it. Bytes of another version of the model would be read with the type and
// the shape of this one: replaced() is called instead, and the answer never comes.
function ofOneVersion(api, address, version, replaced) {
  const check = (response) => {
    const other = api.versionOf(response);

    if (other !== null && version !== null && other !== version) {
      replaced();
      throw new DOMException("replaced", "AbortError");
    }
    return response;
  };
  const request = async (path, init) => {
    try {
      return check(await api.request(path, init));
    } catch (error) {
      // What is refused may have been right for the version shown.
      if (error.code === "slice-out-of-range" || error.code === "object-not-found" || error.code === "component-not-found")
        check(await api.request(address, { signal: init?.signal }));
      throw error;
    }
  };

  return { ...api, request, json: async (path, init) => api.parse(await api.textOf(await request(path, init))) };
}

// Whether the bytes can be shown as numbers: element-wise, or blocks that the server widens.
function hasValues(object, part) {
  return views.isDense(object) || width(typeOf(part)) !== undefined;
}

export async function show(root, { model, object, component, api, signal, onReturn }) {
  const path = api.componentPath(model, object, component);
  const address = `${api.modelPath(model)}/objects/${encodeURIComponent(object)}`;
  const loading = el("p", { class: "note", role: "status" }, "Loading…");
  root.append(way({ api, model }), el("h1", {}, wholeName(object)), loading);
  let answer;
  try {
    answer = await api.request(address, { signal });
  } finally {
    loading.remove();
  }
  const found = api.parse(await api.textOf(answer));
  const part = Object.hasOwn(found.components, component) ? found.components[component] : null;

  if (part === null)
    throw new Error("The object has no component of this name.");
  const shape = values.axesOf(found, part);
  let view = views.read(location.search, shape);
  const using = new AbortController();
  signal.addEventListener("abort", () => using.abort(), { once: true });
  const one = ofOneVersion(api, address, api.versionOf(answer), replaced);
  const common = { api: one, path, shape, signal: using.signal, change, object: found, part, model, name: object };
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
    if (using.signal.aborted)
      return;
    view = next(view);
    const address = location.pathname + views.search(view, shape);
    if (step)
      history.pushState(null, "", address);
    else
      history.replaceState(history.state, "", address);
    update();
  }

  // The page stops reacting to input: new responses would not match what it shows.
  function replaced() {
    if (using.signal.aborted)
      return;
    using.abort();
    root.prepend(el("div", { class: "error", role: "alert" }, el("p", {},
      el("strong", {}, "The model has been replaced."), " This page shows the previous version."),
    el("p", {}, el("a", { class: "button", href: location.pathname }, "Show the current version"))));
    for (const section of sections)
      section.element.inert = true;
    for (const busy of root.querySelectorAll("[aria-busy]"))
      busy.removeAttribute("aria-busy");
    scrollTo(0, 0);
  }

  onReturn(() => {
    if (using.signal.aborted)
      return false;
    view = views.read(location.search, shape);
    update();
    return true;
  });

  root.classList.add("tensor");
  root.replaceChildren(...heading({ api, model, object, component }, found).filter((child) => child !== null),
    el("div", { class: "side-by-side" }, sections.slice(0, 2).map((section) => section.element)),
    ...sections.slice(2).map((section) => section.element), ready.element);
  update();
}
