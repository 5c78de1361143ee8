// Whether a model's bytes are those that its digests state: the state, a button that checks again, and a bar.

import { announce, cut, el, errorBox } from "./dom.js";
import { bytes, count, percent, plural } from "./format.js";

const POLL_MS = 500;

const NO_DIGESTS = ["no digests to check", ""];
const WORDS = {
  unverified: ["not checked yet", ""],
  running: ["being checked", ""],
  verified: ["verified", "good"],
  failed: ["failed", "bad"],
};

// A model without digests counts as verified: nothing in it is wrong.
function hasResult(report) {
  return report.components.verified + report.components.failed > 0;
}

function wordOf(report) {
  return report.state === "verified" && !hasResult(report) && report.components.total > 0
    ? NO_DIGESTS
    : WORDS[report.state] ?? [report.state, ""];
}

function details(report) {
  const { components } = report;
  const parts = [
    [components.verified, "correct"],
    [components.failed, "wrong"],
    [components.undigested, "without a digest"],
    [components.unsupported, "cannot be checked"],
  ];
  const told = parts.filter(([number]) => number > 0).map(([number, what]) => `${count(number)} ${what}`);

  return `${plural(components.total, "component")}${told.length > 0 ? `: ${told.join(", ")}` : ""}`;
}

function failureList(failures) {
  return failures.length === 0 ? null : el("ul", {}, failures.slice(0, 100).map((failure) => el("li", {},
    el("bdi", { class: "name" }, cut(`${failure.object} · ${failure.component}`, 200)),
    el("span", { class: "note" }, " expected ", el("code", {}, cut(String(failure.expected), 100)), ", got ",
      el("code", {}, cut(String(failure.actual), 100))))));
}

export function verification(path, api, signal) {
  const mark = el("span", { class: "mark" });
  const text = el("span", { class: "note" });
  const bar = el("progress", { "aria-label": "Verification", max: "1", hidden: true });
  const button = el("button", { type: "button" }, "Verify");
  const below = el("div");
  const element = el("section", { "aria-labelledby": "verification" }, el("h2", { id: "verification" }, "Verification"),
    el("div", { class: "bar" }, mark, text, button), bar, below);

  const showReport = (report) => {
    const [word, kind] = wordOf(report);
    const running = report.state === "running";

    mark.textContent = word;
    mark.className = `mark ${kind}`;
    text.textContent = details(report) +
      (running ? ` · ${bytes(report.bytes.hashed)} of ${bytes(report.bytes.total)}, ${percent(report.bytes.hashed, report.bytes.total)}` : "");
    bar.hidden = !running;
    bar.value = report.bytes.total > 0 ? report.bytes.hashed / report.bytes.total : 0;
    button.disabled = running;
    // While it runs the button says what was chosen.
    if (!running)
      button.textContent = report.state !== "unverified" && hasResult(report) ? "Verify again" : "Verify";
    below.replaceChildren(...[failureList(report.failures)].filter(Boolean));
  };
  // null if there is no answer now, and the next may come.
  const asked = async () => {
    try {
      return await api.json(path, { signal });
    } catch (error) {
      if (!api.isPassing(error))
        throw error;
      if (below.querySelector(".error") === null)
        below.replaceChildren(errorBox(error));
      return null;
    }
  };
  const follow = async (first) => {
    let report = first;

    showReport(report);
    while (report.state === "running" && !signal.aborted) {
      await api.pause(POLL_MS, signal);
      if (signal.aborted)
        return;
      const next = await asked();
      if (next === null)
        continue;
      report = next;
      showReport(report);
      if (report.state !== "running")
        announce(`Verification: ${wordOf(report)[0]}`);
    }
  };
  const attempt = async (init) => {
    try {
      await follow(await api.json(path, { ...init, signal }));
    } catch (error) {
      button.disabled = false;
      if (!signal.aborted)
        below.replaceChildren(errorBox(error, () => attempt({})));
    }
  };

  button.addEventListener("click", () => {
    button.disabled = true;
    attempt({ method: "POST" });
  });
  attempt({});
  return element;
}
