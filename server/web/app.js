// The shell: which page an address means, going from one to the next, and asking for a token.
//
//   /ui/                                 models           catalog.js
//   /ui/models/{model}                   one model        model.js
//   /ui/models/{model}/objects/{o}/{c}   one tensor       tensor.js
//   /ui/compare?a={model}&b={model}      two models       compare.js
//   /ui/uploads                          uploads          uploads.js
//
// Below a path of a proxy's, all of them begin with that (api.base).
//
// A page is show(root, {model, object, component, api, signal, onReturn}): it fills root, and stops what it does when
// signal is aborted, because the reader has gone elsewhere. What it throws is shown. onReturn(follow) is for pages that
// can follow Back and Forward between their own addresses: follow() does it, or returns false to be made anew.

import * as api from "./api.js";
import * as catalog from "./catalog.js";
import * as compare from "./compare.js";
import { announce, cut, el, errorBox } from "./dom.js";
import * as model from "./model.js";
import * as scrolling from "./scrolling.js";
import * as tensor from "./tensor.js";
import * as uploads from "./uploads.js";

const main = document.getElementById("main");
let leaving = new AbortController();
let asking = false;
let shown = { path: null, follow: () => false };

// --- addresses ---

const missing = {
  async show(root) {
    root.append(el("h1", {}, "Page not found"), el("p", {}, el("a", { href: api.page("") }, "All models")));
  },
};

// A model's slashes may be escaped or not: its name then ends at "objects".
function find(path) {
  const segments = path.slice(api.base.length).replace(/^\/(ui(\/|$))?/, "").replace(/\/$/, "").split("/").map(decodeURIComponent);

  if (segments[0] === "")
    return { page: catalog, title: "Models" };
  if (segments[0] === "uploads" && segments.length === 1)
    return { page: uploads, title: "Uploads" };
  if (segments[0] === "compare" && segments.length === 1)
    return { page: compare, title: "Compare" };
  if (segments[0] !== "models" || segments.length < 2)
    return { page: missing, title: "Not found" };
  const at = segments.indexOf("objects", 2);
  const name = segments.slice(1, at < 0 ? undefined : at).join("/");
  if (at < 0)
    return { page: model, title: name, model: name };
  const [object, component, more] = segments.slice(at + 1);
  if (component === undefined || more !== undefined)
    return { page: missing, title: "Not found" };
  return { page: tensor, title: `${cut(object, 60)} – ${name}`, model: name, object, component };
}

function findSafely(path) {
  try {
    return find(path);
  } catch { // An escape that is none.
    return { page: missing, title: "Not found" };
  }
}

// --- pages ---

function markPage() {
  for (const link of document.querySelectorAll("header nav a")) {
    const own = new URL(link.href).pathname;
    const here = own === api.page("") ? !location.pathname.startsWith(api.page("uploads")) : location.pathname.startsWith(own);

    if (here)
      link.setAttribute("aria-current", "page");
    else
      link.removeAttribute("aria-current");
  }
}

async function showPage({ focus }) {
  const { page, title, ...what } = findSafely(location.pathname);
  const root = el("div", { class: "page" });

  leaving.abort();
  leaving = new AbortController();
  asking = false;
  const { signal } = leaving;
  const own = { path: location.pathname, follow: () => false };
  const onReturn = (follow) => {
    own.follow = follow;
  };
  shown = own;
  document.title = `${cut(title, 100)} – ztserve`;
  markPage();
  main.replaceChildren(root);
  main.setAttribute("aria-busy", "true");
  if (focus) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(title);
  }
  try {
    await page.show(root, { ...what, api, signal, onReturn });
  } catch (error) {
    if (!signal.aborted && error.status !== 401)
      root.append(...(root.querySelector("h1") === null ? [el("h1", {}, cut(title))] : []), 
        errorBox(error, () => showPage({ focus: true })));
  }
  if (signal.aborted)
    return;
  scrolling.restore();
  main.removeAttribute("aria-busy");
}

export function go(address) {
  scrolling.keep();
  history.pushState(null, "", address);
  showPage({ focus: true });
}

// Links to the viewer's own pages need no new document.
function followLink(event) {
  const link = event.target.closest?.("a[href]");

  if (event.defaultPrevented || event.button !== 0 || link === null || link === undefined)
    return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.hasAttribute("target") ||
      link.hasAttribute("download"))
    return;
  const address = new URL(link.getAttribute("href"), location.href);
  if (address.origin !== location.origin || !`${address.pathname}/`.startsWith(api.page("")))
    return;
  if (address.pathname === location.pathname && address.hash !== "")
    return;
  event.preventDefault();
  go(address.pathname + address.search);
}

// --- tokens ---

function askForToken(problem) {
  if (asking)
    return;
  leaving.abort();
  leaving = new AbortController();
  asking = true;
  const input = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const form = el("form", { class: "token" },
    el("p", {}, el("label", { for: "token" }, "Token")),
    el("p", {}, input, " ", el("button", { type: "submit" }, "Continue")),
    el("p", { class: "note" }, "The token is kept in this tab until you close it, and sent only to this server."));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // A header field holds no other characters (RFC 6750 section 2.1).
    if (!/^[A-Za-z0-9._~+/-]+=*$/.test(input.value.trim())) {
      input.setCustomValidity("A token may only contain letters, digits and - . _ ~ + /.");
      input.reportValidity();
      return;
    }
    api.setToken(input.value.trim());
    showPage({ focus: true });
  });
  input.addEventListener("input", () => input.setCustomValidity(""));
  main.removeAttribute("aria-busy");
  main.replaceChildren(el("div", { class: "page" }, el("h1", {}, "This server requires a token"),
    api.hasToken() && errorBox(problem), form));
  document.title = "Token – ztserve";
  input.focus();
}

// --- keys ---

function focusSearch(event) {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  const search = main.querySelector("input[type=search]");

  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing || search === null)
    return;
  event.preventDefault();
  search.focus();
  search.select();
}

function markToken() {
  document.getElementById("forget").hidden = !api.hasToken();
}

document.addEventListener("click", followLink);
document.addEventListener("keydown", focusSearch);
document.getElementById("forget").addEventListener("click", () => {
  api.setToken(null);
  showPage({ focus: true });
});
addEventListener("popstate", () => {
  scrolling.drop();
  if (asking || location.pathname !== shown.path || !shown.follow())
    showPage({ focus: true });
  else if (history.state?.places !== undefined)
    scrolling.restore();
});
addEventListener("ztserve:unauthorized", (event) => askForToken(event.detail));
addEventListener("ztserve:token", markToken);
markToken();
showPage({ focus: false });
