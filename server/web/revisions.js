// The revisions of a model that the server keeps, the youngest first. A server that keeps none has no such section.

import { el, errorBox, name } from "./dom.js";
import { date } from "./format.js";

const PAGE = 20;
const COMMIT_SHOWN = 10; // digits of a commit

function compareAddress(api, model, revision) {
  return `${api.page("compare")}?${new URLSearchParams({ a: model, "a-at": revision, b: model })}`;
}

function line(api, model, revision, isCurrent) {
  const { commit, time, title, client, tags, branches } = revision;

  return el("tr", {},
    el("th", { scope: "row" }, el("code", { title: commit }, commit.slice(0, COMMIT_SHOWN)), " ",
      [...(branches ?? []), ...(tags ?? [])].map((ref) => [el("span", { class: "mark" }, name(ref, 40)), " "])),
    el("td", {}, date(time)),
    el("td", { class: "from-tablet" }, name(title ?? "", 80), client && el("span", { class: "note" }, " ", name(client, 40))),
    el("td", {}, !isCurrent && el("a", { href: compareAddress(api, model, commit), "aria-label": `Compare ${commit.slice(0, COMMIT_SHOWN)} with the current revision` }, "Compare")));
}

async function pageOf(api, model, cursor, signal) {
  const query = new URLSearchParams({ limit: PAGE, ...(cursor === null ? {} : { cursor }) });

  return api.json(`${api.modelPath(model)}/revisions?${query}`, { signal });
}

// Returns a section, or null if there is nothing to show.
export async function revisions(model, api, signal) {
  const body = el("tbody");
  const more = el("button", { type: "button", hidden: true }, "Older revisions");
  const failed = el("div");
  let current = null;
  let cursor = null;

  const add = (page) => {
    current ??= page.revisions[0]?.commit;
    body.append(...page.revisions.map((revision) => line(api, model, revision, revision.commit === current)));
    cursor = page.next;
    more.hidden = cursor === null;
  };
  more.addEventListener("click", async () => {
    more.disabled = true;
    failed.replaceChildren();
    try {
      add(await pageOf(api, model, cursor, signal));
    } catch (error) {
      if (!signal.aborted)
        failed.replaceChildren(errorBox(error));
    }
    more.disabled = false;
  });
  const first = await pageOf(api, model, null, signal);
  if (first.revisions.length === 0)
    return null;
  add(first);
  return el("section", { "aria-labelledby": "revisions" }, el("h2", { id: "revisions" }, "Revisions"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of revisions" }, el("table", { class: "revisions" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Commit"), el("th", { scope: "col" }, "Time"),
        el("th", { scope: "col", class: "from-tablet" }, "Change"), el("th", { scope: "col" }, el("span", { class: "unseen" }, "Compare")))), body)),
    failed, el("p", {}, more));
}
