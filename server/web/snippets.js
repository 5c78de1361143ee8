// Lines to copy: the same bytes with curl, Python and ztserve. Names are quoted, whatever they hold.

import { announce, el } from "./dom.js";
import { NUMPY, fits, isDecoded, isWidened, typeOf } from "./types.js";

// Controls, marks that change a line's direction, and what is not seen: a terminal must not act on them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const ENDS = new Set(["objects", "export", "verification", "uploads", "revisions"]);
const OTHERS = /[^A-Za-z0-9._-]+/g;

// One word of a shell's line. $'…' is bash, zsh and newer POSIX shells'.
export function shellQuote(text) {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text))
    return text;
  if (!UNSEEN.test(text))
    return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = [...text].map((character) => {
    if (character === "'" || character === "\\")
      return `\\${character}`;
    if (!UNSEEN.test(character))
      return character;
    return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  });
  return `$'${escaped.join("")}'`;
}

// JSON's strings are Python's too; what is not ASCII is escaped, since it may not be seen.
export function pythonQuote(text) {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// A pattern that matches this text only.
export function globQuote(text) {
  return text.replace(/[*?[]/g, (character) => `[${character}]`);
}

// encodeURIComponent leaves some characters that shells and people stumble over.
function address(path, query) {
  const escaped = path.replace(/['()*!~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return location.origin + escaped + (query === "" ? "" : `?${query}`);
}

// The slashes of a model's name may stand as they are, unless a part of it says where such a name ends.
function pullPath(api, model) {
  const path = api.modelPath(model);
  return model.split("/").slice(1).some((part) => ENDS.has(part)) ? path : path.replaceAll("%2F", "/");
}

// The line for a whole model.
export function pullLine(api, model) {
  return `ztserve pull ${shellQuote(address(pullPath(api, model), ""))}`;
}

// A file's name that needs no quotes.
function fileName(text, extension) {
  const plain = text.replace(OTHERS, "_").replace(/^[.-]+/, "").slice(0, 60);
  return `${plain === "" ? "tensor" : plain}.${extension}`;
}

function lines({ api, path, model, object, part, name, slice }) {
  const type = typeOf(part);
  const stored = !isDecoded(part);
  const wide = !stored && isWidened(object, part);
  // Of other types there are only the bytes.
  const dense = wide || !stored && object.format === "dense" && NUMPY.has(type);
  const query = [...(stored ? ["representation=stored"] : []), ...(slice === null || !dense ? [] : [`slice=${slice}`]),
    ...(dense ? ["format=npy"] : []), ...(wide ? ["dtype=f32"] : [])].join("&");
  const url = address(path, query);
  const output = fileName(name, dense ? "npy" : "bin");
  const curlToken = api.hasToken() ? ' -H "Authorization: Bearer $ZTSERVE_TOKEN"' : "";
  const pythonToken = api.hasToken() ? ', headers={"Authorization": f"Bearer {os.environ[\'ZTSERVE_TOKEN\']}"}' : "";
  const load = dense ? "tensor = numpy.load(io.BytesIO(answer.content))"
    : `tensor = numpy.frombuffer(answer.content, "${stored ? "|u1" : NUMPY.get(type) ?? "|u1"}")`;
  const python = [`import io${pythonToken === "" ? "" : ", os"}, numpy, requests`,
    `answer = requests.get(${pythonQuote(url)}${pythonToken})`, "answer.raise_for_status()", load].join("\n");
  const format = fits("safetensors", name, object) ? "safetensors" : "zt";
  // What cannot be decoded can be selected for no file of its own: the model comes whole.
  const selected = stored ? ""
    : ` --match=${shellQuote(globQuote(name))} --format ${format} -o ${fileName(name, format)}`;

  return [["curl", `curl -fsS${curlToken} -o ${output} ${shellQuote(url)}`],
    ["Python", python],
    ["ztserve", pullLine(api, model) + selected]];
}

// Pages that came over plain HTTP have no clipboard: the text is selected and copied as in older browsers.
async function copy(code) {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch { /* Refused: the older way may still be allowed. */ }
  }
  getSelection().selectAllChildren(code);
  return document.execCommand("copy");
}

// { code, element }: lines under a heading, with a button that copies them.
export function snippet(label, text = "") {
  const code = el("code", {}, text);
  const id = `copy-${label.toLowerCase()}`;
  const button = el("button", { type: "button", class: "small", id, "aria-label": `Copy the lines for ${label}` }, "Copy");

  button.addEventListener("click", async () => {
    const done = await copy(code);
    button.textContent = done ? "Copied" : "Selected";
    announce(done ? "Copied" : "Selected: copy it with the keyboard");
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  return { code, element: el("div", { class: "snippet" }, el("div", { class: "bar" }, el("h3", {}, label), button),
    el("pre", { tabindex: "0", role: "region", "aria-label": `Lines for ${label}` }, code)) };
}

// { element, update(slice): null for the whole tensor }
export function make(what) {
  const all = ["curl", "Python", "ztserve"].map((label) => snippet(label));
  const element = el("section", { "aria-labelledby": "get-it" }, el("h2", { id: "get-it" }, "Get it"),
    what.api.hasToken() && el("p", { class: "note" }, "Put your token in the environment variable ZTSERVE_TOKEN."),
    all.map((one) => one.element));

  return {
    element,
    update(slice) {
      lines({ ...what, slice }).forEach(([, text], i) => {
        all[i].code.textContent = text;
      });
    },
  };
}
