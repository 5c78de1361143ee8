// The statistics of a tensor, or of the part of it that is shown.

import { rough } from "./decode.js";
import { el, errorBox } from "./dom.js";
import { count, plural } from "./format.js";
import * as histogram from "./histogram.js";
import { isAll, slice } from "./view.js";

const MOMENTS = [["min", "Minimum"], ["max", "Maximum"], ["mean", "Mean"], ["std", "Standard deviation"],
  ["abs_max", "Largest magnitude"]];
const COUNTS = [["count", "Elements"], ["finite", "Finite"], ["zero", "Zero"], ["nan", "NaN"],
  ["positive_inf", "+inf"], ["negative_inf", "-inf"]];

// Why there is none: what the server refuses is not an error of the reader's. What may pass can be tried again.
export function refusal(error, what, again) {
  if (error.status === 422 || error.status === 413)
    return el("p", { class: "note refusal" }, `No ${what}: `, el("bdi", {}, error.detail));
  if (error.status === 404 && error.code === "not-found")
    return el("p", { class: "note refusal" }, `This server has no ${what}.`);
  return errorBox(error, again);
}

function table(found) {
  const row = (key, label, text) => el("tr", { class: Number(found[key]) > 0 && /nan|inf/.test(key) ? "odd" : null },
    el("th", { scope: "row" }, label), el("td", { "data-key": key, title: found[key] === null ? null : String(found[key]) }, text));

  return el("table", { class: "numbers statistics" },
    el("tbody", {}, MOMENTS.map(([key, label]) => row(key, label, rough(found[key], 9)))),
    el("tbody", {}, COUNTS.map(([key, label]) => row(key, label, count(found[key])))));
}

function address(path, view, shape) {
  const part = view.part ? slice(view, shape) : null;
  return `${path}/statistics${part === null ? "" : `?slice=${part}`}`;
}

// { element, update(view): draws anew if what the view asks for has changed }
export function make({ api, path, shape, signal, change }) {
  const body = el("div", { class: "statistics-body" });
  const box = el("input", { type: "checkbox", id: "part" });
  const choice = el("p", {}, box, " ", el("label", { for: "part" }, "Only for the part shown in the heat map"));
  const element = el("section", { "aria-labelledby": "statistics" },
    el("h2", { id: "statistics" }, "Statistics"), choice, body);
  let shown = null;

  box.addEventListener("change", () => change((view) => ({ ...view, part: box.checked })));

  async function update(view) {
    const wanted = address(path, view, shape);

    box.checked = view.part;
    choice.hidden = isAll(view, shape) && !view.part;
    if (wanted === shown)
      return;
    shown = wanted;
    body.setAttribute("aria-busy", "true");
    if (body.childElementCount === 0)
      body.append(el("p", { class: "note" }, "Counting …"));
    let made;
    try {
      const found = await api.json(wanted, { signal });
      made = [table(found), found.histogram === null
        ? el("p", { class: "note" }, found.finite > 0 ? "No histogram: the elements are too far apart."
          : `No histogram: ${plural(found.finite, "finite element")}.`)
        : histogram.draw(found.histogram)];
    } catch (error) {
      if (signal.aborted)
        return;
      if (shown !== wanted)
        return;
      shown = null;
      body.replaceChildren(refusal(error, "statistics", () => update(view)));
      body.removeAttribute("aria-busy");
      return;
    }
    if (shown !== wanted)
      return;
    body.replaceChildren(...made);
    body.removeAttribute("aria-busy");
  }

  return { element, update };
}
