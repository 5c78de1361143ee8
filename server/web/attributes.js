// Attributes of a model: any JSON, some of it very long (a vocabulary), shown as far as somebody asks for.

import { cut, el, name, wholeName } from "./dom.js";
import { count, plural } from "./format.js";

const AT_ONCE = 24; // attributes that are shown before asking for more
const INLINE = 120; // characters of a list that are shown without opening it
const PREVIEW = 8; // members of a long one that its line shows
const OPENED = 1000; // members of a long one that opening it shows

// JSON on one line; long integers exactly, where the browser can.
export function jsonText(value) {
  return JSON.stringify(value, (key, member) =>
    typeof member === "bigint" ? JSON.rawJSON?.(String(member)) ?? String(member) : member);
}

function membersOf(value) {
  return Array.isArray(value) ? value.map((member) => [null, member]) : Object.entries(value);
}

function memberText([key, member]) {
  return key === null ? jsonText(member) : `${jsonText(key)}: ${jsonText(member)}`;
}

// A list or an object that does not fit into a line.
function folded(value, members) {
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const first = members.slice(0, PREVIEW).map(memberText).join(", ");
  const details = el("details", {}, el("summary", {},
    el("code", {}, el("bdi", {}, `${open}${cut(first, INLINE)}${members.length > PREVIEW ? ", …" : ""}${close}`)),
    el("span", { class: "note" }, ` ${plural(members.length, Array.isArray(value) ? "value" : "member")}`)));

  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1)
      return;
    const lines = members.slice(0, OPENED).map((member) => cut(memberText(member), OPENED)).join(",\n");
    details.append(el("pre", { class: "folded", tabindex: "0" }, el("bdi", {}, lines)),
      ...(members.length > OPENED
        ? [el("p", { class: "note" }, `The first ${count(OPENED)} of ${count(members.length)}.`)]
        : []));
  });
  return details;
}

export function valueOf(value) {
  if (typeof value === "string")
    return wholeName(value, 300);
  if (value === null || typeof value !== "object")
    return el("code", {}, jsonText(value));
  const members = membersOf(value);
  const short = members.length <= PREVIEW ? jsonText(value) : null;
  return short !== null && short.length <= INLINE ? el("code", {}, el("bdi", {}, short)) : folded(value, members);
}

// All attributes of an object of JSON, as a list of facts.
export function attributeList(attributes) {
  const entries = Object.entries(attributes);
  const list = el("dl", { class: "facts long" });
  const element = el("div", {}, list);
  const add = (some) => {
    for (const [key, value] of some)
      list.append(el("dt", {}, name(key, 100)), el("dd", {}, valueOf(value)));
  };

  if (entries.length === 0)
    return el("p", { class: "note" }, "None.");
  add(entries.slice(0, AT_ONCE));
  if (entries.length > AT_ONCE) {
    const button = el("button", { type: "button" }, `Show all ${count(entries.length)} attributes`);
    button.addEventListener("click", () => {
      button.remove();
      add(entries.slice(AT_ONCE));
    });
    element.append(button);
  }
  return element;
}
