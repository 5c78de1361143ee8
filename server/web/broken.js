// A model that cannot be read: why, and what can be done with its files.

import { el, errorBox } from "./dom.js";
import { fileLink } from "./downloads.js";
import { bytes, date } from "./format.js";
import { filesBeside } from "./repository.js";

// The entry of a model in the list, which is there for broken ones too; undefined if there is none or it can be read.
export async function brokenEntry(model, api, signal) {
  const query = new URLSearchParams({ prefix: model, limit: 1 });
  const [entry] = (await api.json(`${api.base}/v1/models?${query}`, { signal })).models;

  return entry?.name === model && entry.error !== undefined ? entry : undefined;
}

// The files that the name of a model may stand for: x.gguf, x-00001-of-00002.gguf, x.safetensors.index.json.
async function filesOf(model, api, signal) {
  const stem = model.split("/").pop();
  const rest = /^(-\d+-of-\d+)?\.[^/]+$/;

  return (await filesBeside(model, stem, api, signal))
    .filter(({ name }) => name.startsWith(stem) && rest.test(name.slice(stem.length)));
}

// Whether the server, and the reader's token, let anything be written. Which models a token may write only the server knows.
async function mayWrite(api, signal) {
  const server = await api.json(`${api.base}/`, { headers: { Accept: "application/json" }, signal });

  if (server.writable !== true || !api.hasToken())
    return server.writable === true;
  return (await api.json(`${api.base}/api/whoami-v2`, { signal })).auth.accessToken.role === "write";
}

function removal(entry, api, signal) {
  const below = el("div");
  const first = el("button", { type: "button" }, "Remove…");
  const sure = el("div", { class: "bar", hidden: true },
    el("span", {}, "Remove this model from the server? This cannot be undone."),
    el("button", { type: "button", class: "danger", onclick: () => remove() }, "Remove"),
    el("button", { type: "button", onclick: () => ask(false) }, "Keep"));
  const ask = (asking) => {
    first.hidden = asking;
    sure.hidden = !asking;
    (asking ? sure.querySelector("button:last-child") : first).focus();
  };
  const remove = async () => {
    try {
      await api.request(api.modelPath(entry.name), { method: "DELETE", headers: { "If-Match": entry.etag }, signal });
      sure.replaceChildren(el("span", { role: "status" }, "Removed. "), el("a", { href: api.page("") }, "All models"));
      below.replaceChildren();
    } catch (error) {
      if (!signal.aborted)
        below.replaceChildren(errorBox(error));
    }
  };

  first.addEventListener("click", () => ask(true));
  return el("div", {}, first, sure, below);
}

export async function showBroken(root, entry, { api, signal }) {
  const below = el("div");

  root.append(el("div", { class: "error", role: "alert" }, el("p", {}, el("strong", {}, "This model cannot be read:"), " ",
    el("bdi", {}, entry.error.detail))),
  el("dl", { class: "facts" },
    el("dt", {}, "Format"), el("dd", {}, entry.format),
    el("dt", {}, "Size"), el("dd", {}, bytes(entry.size)),
    entry.modified && [el("dt", {}, "Modified"), el("dd", {}, date(entry.modified))]));
  const [files, isWritable] = await Promise.all([filesOf(entry.name, api, signal), mayWrite(api, signal)]);

  root.append(el("section", { "aria-labelledby": "files" }, el("h2", { id: "files" }, "Files"),
    el("ul", { class: "links" }, files.map(({ name, address }) => el("li", {}, fileLink(name, address, api, signal, below)))),
    below,
    isWritable && entry.part_of === undefined && removal(entry, api, signal)));
}
