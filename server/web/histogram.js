// A histogram: drawn for those who see it, and as a table for everybody.

import { rough } from "./decode.js";
import { el, svg } from "./dom.js";
import { count } from "./format.js";

const WIDTH = 640;
const HEIGHT = 160;

function describe(edges, counts) {
  const most = counts.indexOf(counts.reduce((a, b) => (b > a ? b : a), counts[0]));
  return `Histogram of ${counts.length} bins from ${rough(edges[0])} to ${rough(edges.at(-1))}; most elements, ` +
    `${count(counts[most])}, are from ${rough(edges[most])} to ${rough(edges[most + 1])}`;
}

function bars(edges, counts, readout) {
  const highest = Math.max(1, ...counts.map(Number));
  const step = WIDTH / counts.length;

  return counts.map((value, i) => {
    // A bin with few elements is still seen.
    const height = Number(value) === 0 ? 0 : Math.max(1.5, (Number(value) / highest) * HEIGHT);
    const text = `${rough(edges[i])} to ${rough(edges[i + 1])}: ${count(value)}`;
    const bin = svg("g", { class: "bin" },
      svg("rect", { class: "reach", x: i * step, y: 0, width: step, height: HEIGHT }),
      svg("rect", { class: "column", x: i * step, y: HEIGHT - height, width: Math.max(step - 0.6, 0.4), height }),
      svg("title", {}, text));

    bin.addEventListener("pointerenter", () => {
      readout.textContent = text;
    });
    return bin;
  });
}

function rows(edges, counts) {
  return counts.map((value, i) => el("tr", {},
    el("td", { title: String(edges[i]) }, rough(edges[i])),
    el("td", { title: String(edges[i + 1]) }, rough(edges[i + 1])),
    el("td", {}, count(value))));
}

// histogram: {edges, counts} of the API. Edges are doubles, also those that came as long integers.
export function draw({ edges: found, counts }) {
  const edges = found.map(Number);
  const readout = el("p", { class: "note readout" }, "Point at a bar to see its bin.");
  const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${WIDTH} ${HEIGHT + 2}`, preserveAspectRatio: "none",
    role: "img", "aria-label": describe(edges, counts) }, bars(edges, counts, readout));
  const table = el("details", {}, el("summary", {}, `The ${counts.length} bins in a table`),
    el("div", { class: "scroll short", tabindex: "0", role: "region", "aria-label": "Bins of the histogram" },
      el("table", { class: "numbers bins" },
        el("thead", {}, el("tr", {}, ["from", "to", "elements"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, rows(edges, counts)))));

  return el("figure", {}, picture,
    el("figcaption", { class: "ends" }, el("span", {}, rough(edges[0])), el("span", {}, rough(edges.at(-1)))),
    readout, table);
}
