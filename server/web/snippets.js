// Lines to copy: the same bytes with curl, Python and ztserve. Names are quoted, whatever they hold.

import { announce, el } from "./dom.js";

// Types that NumPy has, and so NPY files.
const NUMPY = new Map(Object.entries({ f64: "<f8", f32: "<f4", f16: "<f2", i64: "<i8", i32: "<i4", i16: "<i2", i8: "|i1",
  u64: "<u8", u32: "<u4", u16: "<u2", u8: "|u1", bool: "|b1", complex64: "<c8", complex128: "<c16" }));
// Types that the server widens to f32, as it does GGUF's blocks.
const WIDENED = new Set(["bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0", "f4_e2m1"]);
// Blocks of GGUF that it widens too. q8_1 and q8_k are of computations: nothing widens them.
const BLOCKS = new Set(["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq2_xxs", "iq2_xs",
  "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "iq1_m", "tq1_0", "tq2_0", "mxfp4", "nvfp4", "q1_0", "q2_0"]);
// What safetensors can hold, whatever the shape; of the others, an export is a zTensor file.
const SAFETENSORS = new Set([...NUMPY.keys(), ...WIDENED].filter((type) => type !== "complex128" && type !== "f4_e2m1"));
// Encodings that the server decodes; of others there are only the stored bytes.
const DECODED = new Set(["raw", "zstd", "zt.zstd-seekable/1", "deflate", "strided", "varint", "protobuf"]);
// Controls, marks that change a line's direction, and what is not seen: a terminal must not act on them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const ENDS = new Set(["objects", "export", "verification", "uploads"]);
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

// Whether the server widens the elements to f32.
function isWidened(object, type) {
  const blocks = /^gguf\.(.+)\/1$/.exec(object.format);
  return blocks === null ? object.format === "dense" && WIDENED.has(type) : BLOCKS.has(blocks[1]);
}

function lines({ api, path, model, object, part, name, slice }) {
  const type = part.type ?? part.dtype;
  const stored = !DECODED.has(part.encoding);
  const wide = !stored && isWidened(object, type);
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
  const format = object.format === "dense" && SAFETENSORS.has(type) && name !== "__metadata__" ? "safetensors" : "zt";
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

function snippet(label) {
  const code = el("code", {});
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
  const all = ["curl", "Python", "ztserve"].map(snippet);
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
