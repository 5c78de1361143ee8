// The uploads of this tab, one after the other. They go on while the reader looks at other pages of the viewer.

import { cut, el, errorBox, name, announce } from "./dom.js";
import { bytes, duration, percent } from "./format.js";
import * as tus from "./tus.js";

const RATE_S = 5; // over which a rate is measured

const WORDS = {
  waiting: "waiting",
  sending: "sending",
  retrying: "interrupted",
  stopped: "stopped",
  done: "done",
  failed: "failed",
};

const queue = [];
let current = null;

// --- rate ---

function rateOf(upload, offset) {
  const now = performance.now() / 1000;

  upload.marks.push([now, offset]);
  while (upload.marks.length > 2 && now - upload.marks[0][0] > RATE_S)
    upload.marks.shift();
  const [[since, from]] = upload.marks;
  return now > since ? Math.max(0, (offset - from) / (now - since)) : 0;
}

// --- how one is shown ---

function makeItem(upload, modelPage) {
  const bar = el("progress", { "aria-label": `Upload of ${cut(upload.model, 100)}`, max: "1", value: "0" });
  const mark = el("span", { class: "mark" });
  const text = el("span", { class: "note" });
  const toggle = el("button", { type: "button", class: "small" });
  const drop = el("button", { type: "button", class: "small" }, "Cancel");
  const below = el("div");
  const element = el("li", { class: "upload" },
    el("p", {}, name(upload.model), " ", mark, " ", text), bar, el("p", {}, toggle, " ", drop), below);

  toggle.addEventListener("click", () => (["sending", "retrying", "waiting"].includes(upload.state) ? stop(upload) : resume(upload)));
  drop.addEventListener("click", () => remove(upload));
  upload.show = () => {
    const { size } = upload.file;
    const left = size - upload.offset;

    element.dataset.state = upload.state;
    mark.textContent = WORDS[upload.state];
    mark.className = `mark ${upload.state === "done" ? "good" : upload.state === "failed" ? "bad" : ""}`;
    bar.value = size > 0 ? upload.offset / size : Number(upload.state === "done");
    text.textContent = `${bytes(upload.offset)} of ${bytes(size)}, ${percent(upload.offset, size)}`;
    if (upload.state === "sending" && upload.rate > 0 && left > 0)
      text.textContent += ` · ${bytes(upload.rate)}/s · ${duration(left / upload.rate)} left`;
    if (upload.state === "sending" && left === 0)
      text.textContent += " · being checked";
    if (upload.state === "retrying")
      text.textContent += ` · ${upload.why}`;
    toggle.hidden = upload.state === "done";
    toggle.textContent = ["sending", "retrying", "waiting"].includes(upload.state) ? "Stop" : "Resume";
    drop.textContent = upload.state === "done" ? "Remove from this list" : "Cancel";
    below.replaceChildren(...[
      upload.error && errorBox(upload.error),
      upload.error?.status === 412 && !upload.replace &&
        el("p", {}, "A model of this name already exists. Cancel this upload, allow replacing above, and choose the file again."),
      upload.state === "done" && el("p", {}, el("a", { href: modelPage(upload.model) }, "Show ", name(upload.model, 60))),
    ].filter(Boolean));
  };
  upload.element = element;
  upload.show();
}

// --- what happens to one ---

async function run(upload) {
  current = upload;
  upload.stopper = new AbortController();
  upload.marks = [];
  upload.error = null;
  upload.state = "sending";
  upload.show();
  try {
    await tus.send(upload, upload.stopper.signal, {
      progress: (offset) => {
        upload.state = "sending";
        upload.rate = rateOf(upload, offset);
        upload.offset = offset;
        upload.show();
      },
      retrying: (error, seconds) => {
        upload.state = "retrying";
        upload.marks = [];
        upload.why = `${cut(String(error.detail ?? error.message), 200).replace(/\.$/, "")}; retrying in ${seconds} s`;
        upload.show();
      },
    });
    upload.offset = upload.file.size;
    upload.state = "done";
  } catch (error) {
    upload.state = upload.stopper.signal.aborted ? "stopped" : "failed";
    upload.error = upload.stopper.signal.aborted ? null : error;
  }
  current = null;
  upload.show();
  // Cancelled before it was known where it is.
  if (upload.removed)
    await tus.cancel(upload).catch(() => { /* It expires by itself. */ });
  announce(`${cut(upload.model, 60)}: ${WORDS[upload.state]}`);
  dispatchEvent(new Event("ztserve:uploads"));
  next();
}

function next() {
  const waiting = queue.find(({ state }) => state === "waiting");

  if (current === null && waiting !== undefined)
    run(waiting);
}

function stop(upload) {
  if (upload === current) {
    upload.stopper.abort();
    return;
  }
  upload.state = "stopped";
  upload.show();
}

function resume(upload) {
  upload.state = "waiting";
  upload.error = null;
  upload.show();
  next();
}

async function remove(upload) {
  const done = upload.state === "done";

  upload.removed = true;
  if (upload === current)
    upload.stopper.abort();
  queue.splice(queue.indexOf(upload), 1);
  upload.element.remove();
  if (!done) {
    upload.state = "stopped";
    await tus.cancel(upload).catch(() => { /* It expires by itself. */ });
    dispatchEvent(new Event("ztserve:uploads"));
  }
}

// Appends a file, and begins if nothing else is being sent. Returns the element that shows it.
export function add({ file, model, replace }, modelPage) {
  const upload = { file, model, replace, state: "waiting", offset: 0, rate: 0, marks: [], error: null };

  makeItem(upload, modelPage);
  queue.push(upload);
  next();
  return upload.element;
}

// Whether a file of that name and size is in the queue.
export function holds(fileName, size) {
  return queue.some(({ file, state }) => file.name === fileName && file.size === size && state !== "done");
}

export function elements() {
  return queue.map(({ element }) => element);
}

addEventListener("beforeunload", (event) => {
  if (current !== null)
    event.preventDefault();
});
