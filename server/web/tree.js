// The tree of modules: each level is made when it is opened.

import { el, name } from "./dom.js";
import { bytes, percent, plural } from "./format.js";
import { childrenOf } from "./modules.js";

const AT_ONCE = 200; // children that are shown before asking for more

function measure(node, whole) {
  const share = el("span", { class: "share", "aria-hidden": "true" });

  share.style.setProperty("--share", String(whole > 0 ? node.bytes / whole : 0));
  return [share, el("span", { class: "note" }, bytes(node.bytes), ` · ${percent(node.bytes, whole)}`,
    node.row === null && ` · ${plural(node.count, "tensor")}`)];
}

function leaf(node, context) {
  const address = context.addressOf(node.row);

  return el("li", {}, el("span", { class: "leaf" },
    address === null ? name(node.label, 80) : el("a", { href: address }, name(node.label, 80)), " ",
    measure(node, context.whole)));
}

function branch(node, context) {
  const details = el("details", {}, el("summary", {}, name(node.label, 80), " ", measure(node, context.whole)));

  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1)
      details.append(level(node, context));
  });
  return el("li", {}, details);
}

function level(node, context) {
  const children = childrenOf(node, context.separator, "name");
  const list = el("ul", { class: "tree" });
  const addSome = (from) => {
    const some = children.slice(from, from + AT_ONCE);

    list.append(...some.map((child) => (child.row !== null ? leaf(child, context) : branch(child, context))));
    const left = children.length - from - some.length;
    if (left > 0) {
      const button = el("button", { type: "button", class: "small" }, `Show more (${left} left)`);
      const item = el("li", {}, button);
      button.addEventListener("click", () => {
        item.remove();
        addSome(from + AT_ONCE);
        list.children[from + AT_ONCE]?.querySelector("a, summary")?.focus();
      });
      list.append(item);
    }
  };

  addSome(0);
  return list;
}

// addressOf(row) is the page of a tensor, or null.
export function tree(top, addressOf) {
  return level(top, { separator: top.separator, whole: top.bytes, addressOf });
}
