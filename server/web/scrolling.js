// Where the reader was on a page: kept with the browser's history, so that Back, and loading it again, lead to the same
// row of a table. The browser cannot do it, since a page's content comes later.

const SOON_MS = 150;

let timer;

function tables() {
  return [...document.querySelectorAll("main .scroller")];
}

// To be called before the address changes.
export function keep() {
  clearTimeout(timer);
  history.replaceState({ ...history.state, places: [scrollY, ...tables().map((table) => table.scrollTop)] }, "");
}

// To be called when the address has changed and the page has not: what was about to be kept is of another address.
export function drop() {
  clearTimeout(timer);
}

// To be called when the page has its content.
export function restore() {
  const [top, ...tops] = history.state?.places ?? [];

  tables().forEach((table, i) => {
    table.scrollTop = tops[i] ?? 0;
  });
  if (top !== undefined)
    scrollTo(0, top);
}

history.scrollRestoration = "manual";
// Scrolling of tables does not bubble.
document.addEventListener("scroll", () => {
  clearTimeout(timer);
  timer = setTimeout(keep, SOON_MS);
}, { capture: true, passive: true });
