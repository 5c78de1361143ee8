// Links to a model's file and to its exports. A link cannot carry a token: with one, the page fetches what is small
// enough to be held in memory, and gives a line for the shell for the rest.

import { el, errorBox } from "./dom.js";
import { bytes } from "./format.js";

const HELD_MAX = 512 * 1024 * 1024;

const FORMATS = [
  ["zt", "zTensor 1.2"],
  ["zt2", "zTensor 2"],
  ["safetensors", "safetensors"],
  ["npz", "NPZ"],
];

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curlLine(address, fileName) {
  return `curl -H "Authorization: Bearer $ZTSERVE_TOKEN" -o ${quoted(fileName)} ${quoted(new URL(address, location.href).href)}`;
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
        el("p", {}, `${Number.isFinite(length) ? bytes(length) : "That"} is too much for a page to hold. In a shell:`),
        el("pre", { class: "folded", tabindex: "0" }, curlLine(address, fileName)));
      return;
    }
    const link = el("a", { href: URL.createObjectURL(await response.blob()), download: fileName });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    below.replaceChildren();
  } catch (error) {
    if (!signal.aborted)
      below.replaceChildren(errorBox(error));
  }
}

function control(label, file, api, signal, below) {
  if (!api.hasToken())
    return el("a", { class: "button", href: file.address, download: file.fileName }, label);
  return el("button", { type: "button", onclick: () => fetchWithToken(file, api, signal, below) }, label);
}

export function downloads(manifest, api, signal) {
  const below = el("div");
  const stem = manifest.name.split("/").pop();
  const path = api.modelPath(manifest.name);
  const { href, size } = manifest.source;
  const whole = href && {
    address: href,
    fileName: decodeURIComponent(href.split("/").pop()),
  };

  return el("section", { "aria-labelledby": "downloads" }, el("h2", { id: "downloads" }, "Download"),
    el("div", { class: "bar" },
      whole && control(`The file as it is, ${bytes(size)}`, whole, api, signal, below),
      FORMATS.map(([format, label]) => control(`as ${label}`, {
        address: `${path}/export?format=${format}`,
        fileName: `${stem}.${format === "zt2" ? "zt" : format}`,
      }, api, signal, below))),
    below);
}
