// Links to a model's file and to its exports. The browser says nothing of why a link was refused: the page asks for the
// first byte before. A link cannot carry a token: with one, the page fetches what is small enough to be held in memory,
// and gives a line for the shell for the rest.

import { el, errorBox } from "./dom.js";
import { bytes } from "./format.js";
import { pullLine, shellQuote, snippet } from "./snippets.js";
import { exportOf } from "./types.js";

const HELD_MAX = 512 * 1024 * 1024;

const FORMATS = [
  ["zt", "zTensor 1.2"],
  ["zt2", "zTensor 2"],
  ["safetensors", "safetensors"],
  ["npz", "NPZ"],
];

function curlLine(address, fileName) {
  return `curl -H "Authorization: Bearer $ZTSERVE_TOKEN" -o ${shellQuote(fileName)} ${shellQuote(new URL(address, location.href).href)}`;
}

function save(address, fileName) {
  el("a", { href: address, download: fileName }).click();
}

async function follow({ address, fileName }, api, signal, below) {
  below.replaceChildren(el("p", { class: "note", role: "status" }, "The server is preparing the file …"));
  try {
    await api.bytesOf(await api.request(address, { headers: { Range: "bytes=0-0" }, signal }));
    below.replaceChildren();
    save(address, fileName);
  } catch (error) {
    if (!signal.aborted)
      below.replaceChildren(errorBox(error));
  }
}

async function fetchWithToken({ address, fileName }, api, signal, below) {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort(), { once: true });

  try {
    const response = await api.request(address, { signal: stop.signal });
    const length = Number(response.headers.get("Content-Length") ?? Infinity);
    if (!(length <= HELD_MAX)) {
      stop.abort();
      below.replaceChildren(
        el("p", {}, `${Number.isFinite(length) ? bytes(length) : "The file"} is too large for the browser to download. In a shell:`),
        el("pre", { class: "folded", tabindex: "0" }, curlLine(address, fileName)));
      return;
    }
    const held = URL.createObjectURL(await response.blob());
    save(held, fileName);
    setTimeout(() => URL.revokeObjectURL(held), 60000);
    below.replaceChildren();
  } catch (error) {
    if (!signal.aborted)
      below.replaceChildren(errorBox(error));
  }
}

function control(label, file, api, signal, below) {
  if (!api.hasToken())
    return el("a", { class: "button", href: file.address, download: file.fileName, onclick: (event) => {
      event.preventDefault();
      follow(file, api, signal, below);
    } }, label);
  return el("button", { type: "button", onclick: () => fetchWithToken(file, api, signal, below) }, label);
}

// A link to a file of the server's; what goes wrong is said below.
export function fileLink(label, href, api, signal, below) {
  return control(label, { address: href, fileName: decodeURIComponent(href.split("/").pop()) }, api, signal, below);
}

// { element, more }: links to the file and to each format that can hold the model; more is where lines to copy are.
export function downloads(manifest, api, signal) {
  const below = el("div");
  const stem = manifest.name.split("/").pop();
  const path = api.modelPath(manifest.name);
  const { href, size } = manifest.source;
  const exports = FORMATS.map(([format, label]) => ({ format, label, how: exportOf(format, manifest.objects) }))
    .filter(({ how }) => how !== null);
  const more = el("div", {}, snippet("ztserve", pullLine(api, manifest.name)).element);

  return {
    more,
    element: el("section", { "aria-labelledby": "downloads" }, el("h2", { id: "downloads" }, "Download"),
      el("div", { class: "bar" },
        href && fileLink(`The original file, ${bytes(size)}`, href, api, signal, below),
        exports.map(({ format, label, how }) => control(`as ${label}${how === "as f32" ? ", widened to f32" : ""}`, {
          address: `${path}/export?format=${format}${how === "as f32" ? "&dtype=f32" : ""}`,
          fileName: `${stem}.${format === "zt2" ? "zt" : format}`,
        }, api, signal, below))),
      below,
      api.hasToken() && el("p", { class: "note" }, "Put your token in the environment variables HF_TOKEN and ZTSERVE_TOKEN."),
      more),
  };
}
