// Elements of the page. Whatever comes from a file or the server goes in as text, never as HTML.

const LIMIT = 160; // characters of a name that are shown at once
const TITLE_LIMIT = 1000; // characters that hovering shows
const SEEN = /[^\p{C}\p{Z}]/u; // neither controls nor blanks
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false)
      continue;
    if (name.startsWith("on"))
      element.addEventListener(name.slice(2), value);
    else
      element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// el("a", {href, class, onclick: function}, "text", node, …): strings become text nodes.
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Cuts between characters, not within one.
export function cut(text, limit = LIMIT) {
  if (text.length <= limit)
    return text;
  const end = text.charCodeAt(limit - 1) >= 0xd800 && text.charCodeAt(limit - 1) < 0xdc00 ? limit - 1 : limit;
  return `${text.slice(0, end)}…`;
}

// A name from a file as it is shown: cut if it is long, and spelled if nothing of it is seen.
export function shownName(text, limit = LIMIT) {
  if (text === "")
    return "(empty)";
  if (SEEN.test(text))
    return cut(text, limit);
  return cut(`(${Array.from(text, (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ")})`, limit);
}

// The same as an element: text of its own direction; hovering shows more.
export function name(text, limit = LIMIT) {
  return el("bdi", { class: "name", title: text.length > 24 ? cut(text, TITLE_LIMIT) : null }, shownName(text, limit));
}

// The same, with a button that shows all of it.
export function wholeName(text, limit = LIMIT) {
  if (text.length <= limit)
    return name(text, limit);
  const short = name(text, limit);
  const button = el("button", { type: "button", class: "small", "aria-expanded": "false" },
    `Show all ${text.length.toLocaleString("en")} characters`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? `Show all ${text.length.toLocaleString("en")} characters` : "Show less";
    short.textContent = open ? cut(text, limit) : text;
  });
  return el("span", { class: "whole-name" }, short, " ", button);
}

// What went wrong, with the words of the server (Problem of api.js). again, if it is given, is what the reader may do.
export function errorBox(error, again = null) {
  const problem = error.detail !== undefined;
  return el("div", { class: "error", role: "alert" },
    el("p", {}, el("strong", {}, problem ? `${error.title}:` : "The request failed."), " ",
      el("bdi", {}, cut(problem ? error.detail : String(error.message ?? error), 2000))),
    problem && el("p", { class: "note" }, `${error.status} ${error.code}`,
      error.requestId ? ` · request ${error.requestId}` : ""),
    again !== null && el("p", {}, el("button", { type: "button", onclick: () => again() }, "Try again")));
}

// Says something to those who cannot see it change.
export function announce(text) {
  document.getElementById("status").textContent = text;
}
