// Uploads: sending files from here, and what is on its way to the server from everywhere.

import { cut, el, errorBox, name } from "./dom.js";
import { bytes, date, percent } from "./format.js";
import * as queue from "./queue.js";
import * as tus from "./tus.js";

const POLL_MS = 2000;

// --- sending ---

function picker(onFiles) {
  const input = el("input", { type: "file", multiple: true, id: "files", class: "unseen" });
  const zone = el("div", { class: "drop" },
    el("p", {}, "Drop model files here, or ", el("label", { for: "files", class: "button" }, "choose files"), input),
    el("p", { class: "note" }, "A model is named after its file, without the extension. It appears once the upload is complete and checked. ",
      "To resume an interrupted upload, choose the same file again."));

  input.addEventListener("change", () => {
    onFiles([...input.files]);
    input.value = "";
  });
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    onFiles([...event.dataTransfer.files]);
  });
  return zone;
}

// A file dropped beside the zone must not replace the page.
function guard(signal) {
  for (const kind of ["dragover", "drop"])
    addEventListener(kind, (event) => event.preventDefault(), { signal });
}

// Uploads that this browser began and that are not in the queue.
function unfinishedList(api, signal) {
  const list = el("ul", { class: "uploads" });
  const section = el("div", { hidden: true }, el("h3", {}, "Interrupted"), list);
  const fill = () => {
    const left = tus.unfinished().filter(({ fileName, size }) => !queue.holds(fileName, size));

    section.hidden = left.length === 0;
    list.replaceChildren(...left.map((one) => {
      const drop = el("button", { type: "button", class: "small" }, "Cancel");
      drop.addEventListener("click", () => tus.abandon(one).catch(() => { /* It expires by itself. */ }).then(fill));
      return el("li", { class: "upload" }, name(one.fileName), el("span", { class: "note" },
        ` ${bytes(one.size)}, as ${cut(String(one.model), 100)}: choose the file again to resume. `), drop);
    }));
  };

  addEventListener("ztserve:uploads", fill, { signal });
  fill();
  return { section, fill };
}

function sender(api, signal) {
  const folder = el("input", { id: "folder", type: "text", placeholder: "owner/name", autocomplete: "off", spellcheck: "false" });
  const replace = el("input", { id: "replace", type: "checkbox" });
  const list = el("ul", { class: "uploads", "aria-label": "Uploads from this tab" }, queue.elements());
  const unfinished = unfinishedList(api, signal);
  const onFiles = (files) => {
    const prefix = folder.value.trim().replace(/^\/+|\/+$/g, "");

    for (const file of files) {
      const model = (prefix === "" ? "" : `${prefix}/`) + tus.modelOf(file.name);
      list.append(queue.add({ file, model, replace: replace.checked }, api.modelPage));
    }
    unfinished.fill();
  };

  guard(signal);
  return el("section", { "aria-labelledby": "send" }, el("h2", { id: "send" }, "Upload"),
    picker(onFiles),
    el("div", { class: "bar" },
      el("span", {}, el("label", { for: "folder" }, "Into folder"), " ", folder),
      el("span", {}, replace, " ", el("label", { for: "replace" }, "Replace models of the same name"))),
    list, unfinished.section);
}

// --- what is on its way ---

const KINDS = { file: "whole file", writer: "by components", resumable: "resumable", staged: "for a commit", xet: "chunks", multipart: "in parts" };

function row(upload) {
  const known = upload.length > 0;
  const model = upload.model ?? "Part of a file";
  const bar = el("progress", { "aria-label": `Progress of ${cut(model, 100)}`, max: known ? upload.length : null,
    value: known ? upload.received : null });

  return el("li", { class: "upload" },
    el("p", {}, name(model), " ", el("span", { class: "mark" }, KINDS[upload.kind] ?? cut(String(upload.kind), 20)), " ",
      el("span", { class: "note" }, bytes(upload.received),
        known && ` of ${bytes(upload.length)}, ${percent(upload.received, upload.length)}`,
        ` · begun ${date(upload.created)}`, upload.expires && ` · kept until ${date(upload.expires)}`)),
    bar);
}

async function follow(api, signal, below) {
  let shown = null;

  while (!signal.aborted) {
    try {
      const { uploads } = await api.json(`${api.base}/v1/uploads`, { signal });
      const text = JSON.stringify(uploads);

      if (text !== shown)
        below.replaceChildren(uploads.length === 0 ? el("p", { class: "note" }, "No uploads in progress.")
          : el("ul", { class: "uploads" }, uploads.map(row)));
      shown = text;
    } catch (error) {
      if (signal.aborted)
        return;
      if (error.status === 403) {
        below.replaceChildren(el("p", { class: "note" }, "The list of all uploads requires a token with the scope admin."));
        return;
      }
      // Announced only once to screen readers.
      if (String(error) !== shown)
        below.replaceChildren(errorBox(error));
      shown = String(error);
    }
    do
      await api.pause(POLL_MS, signal);
    while (document.hidden && !signal.aborted);
  }
}

export async function show(root, { api, signal }) {
  root.append(el("h1", {}, "Uploads"));
  const server = await api.json(`${api.base}/`, { headers: { Accept: "application/json" }, signal });
  if (server.writable !== true) {
    root.append(el("p", {}, "Uploads are turned off: the server was started without ", el("code", {}, "--writable"), "."));
    return;
  }
  const below = el("div", {}, el("p", { class: "note" }, "Loading…"));
  root.append(sender(api, signal),
    el("section", { "aria-labelledby": "others" }, el("h2", { id: "others" }, "In progress on this server"), below));
  follow(api, signal, below);
}
