// The folder that a model is in: its README.md and config.json, and lines to copy for clients of the Hugging Face Hub, for
// which such a folder is a repository.

import { attributeList } from "./attributes.js";
import { cut, el } from "./dom.js";
import { bytes } from "./format.js";
import { markdown } from "./markdown.js";
import { pythonQuote, shellQuote, snippet } from "./snippets.js";

const SHOWN_MAX = 256 * 1024; // bytes of a file
// Other addresses of the server begin with these.
const RESERVED = new Set(["api", "files", "ui", "v1", "datasets", "spaces", "kernels"]);
const CLASSES = new Set(["CausalLM", "MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering"]);

function segmentsOf(model) {
  return model.split("/").slice(0, -1);
}

function isRepositoryName(segment) {
  return /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?$/.test(segment) && !/--|\.\./.test(segment);
}

// The address of a file in a model's folder, or of the folder.
function address(api, model, name) {
  return `${api.base}/files/${[...segmentsOf(model), name].map(encodeURIComponent).join("/")}`;
}

// The names of the files in a model's folder, from one on: the first of them if there are very many. As HTML, because
// the index in JSON has hashes, which the server would begin to compute.
export async function filesBeside(model, from, api, signal) {
  const query = from === "" ? "" : `?after=${encodeURIComponent(from)}`;
  const text = await api.textOf(await api.request(address(api, model, "") + query, { headers: { Accept: "text/html" }, signal }));
  const page = new DOMParser().parseFromString(text, "text/html");

  return [...page.querySelectorAll("a[href]")].map((link) => link.getAttribute("href"))
    .filter((href) => /^[^/?#]+$/.test(href))
    .map((href) => ({ name: decodeURIComponent(href), address: address(api, model, decodeURIComponent(href)) }));
}

// { text, isWhole }
async function beginningOf(path, api, signal) {
  const reader = (await api.request(path, { signal })).body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;

  for (;;) {
    const { done, value } = await reader.read();
    if (done)
      return { text: text + decoder.decode(), isWhole: true };
    text += decoder.decode(value, { stream: true });
    length += value.length;
    if (length > SHOWN_MAX) {
      reader.cancel();
      return { text: text.slice(0, SHOWN_MAX), isWhole: false };
    }
  }
}

// --- what is shown ---

function section(id, title, ...content) {
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), content);
}

function readme({ text, isWhole }) {
  return section("readme", "README.md", el("div", { class: "readme" }, markdown(text)),
    !isWhole && el("p", { class: "note" }, `The first ${bytes(SHOWN_MAX)}.`));
}

function parsed(text, api) {
  try {
    return api.parse(text);
  } catch {
    return null;
  }
}

function config({ text }, value) {
  return section("config", "config.json", value !== null && typeof value === "object" && !Array.isArray(value)
    ? attributeList(value)
    : el("pre", { class: "folded", tabindex: "0" }, el("bdi", {}, cut(text, 10000))));
}

// "LlamaForCausalLM" is made by AutoModelForCausalLM.
function autoClass(value) {
  const kind = /For([A-Za-z]+)$/.exec(String(value?.architectures?.[0] ?? ""))?.[1];

  return CLASSES.has(kind) ? `AutoModelFor${kind}` : "AutoModel";
}

function transformersLines(endpoint, repository, folders, value, hasTokenizer) {
  const made = autoClass(value);
  const argument = pythonQuote(repository) + (folders.length > 0 ? `, subfolder=${pythonQuote(folders.join("/"))}` : "");

  return ["import os", `os.environ["HF_ENDPOINT"] = ${pythonQuote(endpoint)}`,
    `from transformers import ${made}${hasTokenizer ? ", AutoTokenizer" : ""}`,
    ...(hasTokenizer ? [`tokenizer = AutoTokenizer.from_pretrained(${argument})`] : []),
    `model = ${made}.from_pretrained(${argument})`].join("\n");
}

// Lines for the repository of a model, none if its folder is not one.
function linesOf(model, names, value, api) {
  const segments = segmentsOf(model);
  const repository = segments.slice(0, 2);
  const endpoint = location.origin + api.base;

  if (repository.length < (value === null ? 2 : 1) || RESERVED.has(segments[0]) || !repository.every(isRepositoryName))
    return [];
  const hub = snippet("hf", `HF_ENDPOINT=${shellQuote(endpoint)} hf download ${shellQuote(repository.join("/"))}`);
  if (value === null)
    return [hub];
  const hasTokenizer = names.has("tokenizer.json") || names.has("tokenizer_config.json");
  return [snippet("transformers", transformersLines(endpoint, repository.join("/"), segments.slice(2), value, hasTokenizer)), hub];
}

// { lines, sections }: of a model at the top, which is in no repository, there are none.
export async function repositoryOf(model, api, signal) {
  if (segmentsOf(model).length === 0)
    return { lines: [], sections: [] };
  const files = new Map((await filesBeside(model, "", api, signal)).map((file) => [file.name, file.address]));
  const [about, settings] = await Promise.all(["README.md", "config.json"].map((name) =>
    (files.has(name) ? beginningOf(files.get(name), api, signal) : null)));
  const value = settings?.isWhole ? parsed(settings.text, api) : null;

  return {
    lines: linesOf(model, files, value, api),
    sections: [settings && config(settings, value), about && readme(about)].filter(Boolean),
  };
}
