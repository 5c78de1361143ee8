// A small part of Markdown as elements: headings, paragraphs, lists, quotes, code, emphasis and links to other pages. All
// else, HTML too, is shown as the text that it is: nothing of a file becomes markup or an address that is loaded.

import { el } from "./dom.js";

const HEADING_FIRST = 3; // of the elements: a README is shown in a section of a page
const HEADING_LAST = 6;

// --- within a line ---

// Bounded, since a file may hold anything: badge, image or link, address, code, bold, italic.
const INLINE = new RegExp([
  /\[!\[([^[\]\n]{0,300})\]\([^()\n]{0,1000}\)\]\(([^()\s]{0,1000})\)/,
  /!?\[([^[\]\n]{1,300})\]\(([^()\s]{0,1000})[^()\n]{0,300}\)/,
  /<?(https?:\/\/[^\s<>()[\]"'`]{1,1000}[^\s<>()[\]"'`.,;:!?])>?/,
  /(?<tick>`{1,2})([^`\n]{1,1000})\k<tick>/,
  /\*\*([^*\n]{1,500})\*\*/,
  /(?<![\w*])[*_]([^*_\s][^*_\n]{0,500})[*_](?![\w*])/,
].map(({ source }) => source).join("|"), "g");

function link(text, address) {
  return /^https?:\/\/[^/]/.test(address)
    ? el("a", { href: address, rel: "noreferrer noopener nofollow", title: address }, text)
    : text;
}

function inlineOf([whole, badge, badgeTo, text, to, address, , code, bold, italic]) {
  if (badge !== undefined)
    return link(badge || "link", badgeTo);
  if (text !== undefined)
    return whole.startsWith("!") ? `[${text}]` : link(text, to);
  if (address !== undefined)
    return link(address, address);
  if (code !== undefined)
    return el("code", {}, code);
  return bold !== undefined ? el("strong", {}, inline(bold)) : el("em", {}, inline(italic));
}

function inline(text) {
  const found = [];
  let at = 0;

  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(at, match.index), inlineOf(match));
    at = match.index + match[0].length;
  }
  found.push(text.slice(at));
  return el("bdi", {}, found);
}

// --- blocks ---

const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;

// Lines from at as long as they are of a kind, and where they end.
function take(lines, at, isOne) {
  let end = at;

  while (end < lines.length && isOne(lines[end]))
    end++;
  return [lines.slice(at, end), end];
}

function plain(lines) {
  return el("pre", { class: "folded", tabindex: "0" }, el("bdi", {}, lines.join("\n")));
}

function isParagraph(line) {
  return line.trim() !== "" && ![FENCE, HEADING, ITEM, RULE, /^\s*[>|]/, /^\s*<!--/].some((kind) => kind.test(line));
}

// A heading is at most one level below the one before it.
function heading([, marks, text], depth) {
  const level = Math.min(marks.length, depth.now + 1);

  depth.now = level;
  return el(`h${Math.min(HEADING_FIRST + level - 1, HEADING_LAST)}`, {}, inline(text.replace(/\s#+\s*$/, "")));
}

function list(lines, at) {
  const isOrdered = ITEM.exec(lines[at])[1] !== undefined;
  const items = [];
  let end = at;

  // What is indented below an item continues it.
  while (end < lines.length && (ITEM.test(lines[end]) || items.length > 0 && /^\s+\S/.test(lines[end]))) {
    if (ITEM.test(lines[end]))
      items.push(lines[end].replace(ITEM, ""));
    else
      items[items.length - 1] += ` ${lines[end].trim()}`;
    end++;
  }
  return [el(isOrdered ? "ol" : "ul", {}, items.map((item) => el("li", {}, inline(item)))), end];
}

// The block at a line, or null, and where it ends.
function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  const found = HEADING.exec(line);

  if (line.trim() === "")
    return [null, at + 1];
  if (fence !== null) {
    const [code, end] = take(lines, at + 1, (one) => !one.trimStart().startsWith(fence[1]));
    return [plain(code), end + 1];
  }
  if (/^\s*<!--/.test(line)) {
    const [, end] = take(lines, at, (one) => !one.includes("-->"));
    return [null, end + 1];
  }
  if (found !== null)
    return [heading(found, depth), at + 1];
  if (RULE.test(line))
    return [el("hr"), at + 1];
  if (ITEM.test(line))
    return list(lines, at);
  if (/^\s*\|/.test(line)) {
    const [rows, end] = take(lines, at, (one) => /^\s*\|/.test(one));
    return [plain(rows), end];
  }
  if (/^\s*>/.test(line)) {
    const [quoted, end] = take(lines, at, (one) => /^\s*>/.test(one));
    return [el("blockquote", {}, inline(quoted.map((one) => one.replace(/^\s*>\s?/, "")).join(" "))), end];
  }
  const [text, end] = take(lines, at, isParagraph);
  // Two blanks at the end of a line are a new line.
  return [el("p", {}, inline(text.map((one) => (one.endsWith("  ") ? `${one.trimEnd()}\n` : `${one} `)).join(""))), end];
}

// The elements of a text. A leading block of metadata ("---") comes as it is.
export function markdown(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const elements = [];
  const depth = { now: 0 };
  let at = 0;

  if (lines[0] === "---") {
    const end = lines.indexOf("---", 1);
    if (end > 0) {
      elements.push(el("details", {}, el("summary", {}, "Metadata"), plain(lines.slice(1, end))));
      at = end + 1;
    }
  }
  while (at < lines.length) {
    const [element, next] = block(lines, at, depth);
    if (element !== null)
      elements.push(element);
    at = next;
  }
  return elements;
}
