// A table of any length: only the rows that can be seen are in the document. Columns sort, rows are reached with the
// arrow keys. A column that says the same in every row is left out, and said once instead.
//
// columns: [{key, label, value(row), cell(row), numeric, from, stays}]. value is what sorting compares, cell a node or text
// (left out: the value). from: the screen that a column needs, "tablet" or "desk". stays: it is never left out.
//
// tree, if there is one (tree.js), has the rows of the table as long as nothing is filtered and the first column sorts. Its
// rows have a level, and those with others below them open, which is true or false.

import { cut, el, name } from "./dom.js";
import { count, plural } from "./format.js";

const ROW_PX = 34; // with style.css
const SPARE = 12; // rows beyond either edge, so that scrolling does not show gaps
// Browsers stop placing things at about 17 million pixels; what is beyond it can be found by filtering.
const ROWS_MAX = 450000;

const collator = new Intl.Collator("en", { numeric: true });

// What has no value comes last, in either direction.
function compare(a, b, sign) {
  const noA = a === null || a === undefined;
  const noB = b === null || b === undefined;

  if (noA || noB)
    return Number(noA) - Number(noB);
  return sign * (typeof a === "string" && typeof b === "string" ? collator.compare(a, b) : a < b ? -1 : Number(a > b));
}

function classesOf({ numeric, from }) {
  return [numeric && "numeric", from && `from-${from}`].filter(Boolean).join(" ");
}

export class Table {
  // sort: {key, descending}, as the table begins; onSort(sort) hears of changes.
  constructor({ caption, columns, sort, onSort, empty, tree }) {
    this.all = columns;
    this.columns = columns;
    this.tree = tree ?? null;
    this.sort = sort ?? { key: columns[0].key, descending: false };
    this.onSort = onSort ?? (() => {});
    this.rows = [];
    this.sorted = null;
    this.shown = [];
    this.keep = null;
    this.active = 0;
    this.drawn = null;
    this.above = el("tbody", { class: "spacer", "aria-hidden": "true" });
    this.below = el("tbody", { class: "spacer", "aria-hidden": "true" });
    this.body = el("tbody");
    this.head = el("tr", { "aria-rowindex": "1" });
    this.empty = el("p", { class: "note", hidden: true }, empty ?? "Nothing matches.");
    this.table = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, this.head),
      this.above, this.body, this.below);
    this.scroller = el("div", { class: "scroller", role: "region", "aria-label": `Table of ${caption.toLowerCase()}`, tabindex: "0" }, this.table);
    this.element = el("div", { class: "table" }, this.scroller, this.empty);
    this.scroller.addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.#onKey(event));
    this.body.addEventListener("focusin", (event) => this.#onFocus(event));
    this.body.addEventListener("click", (event) => this.#onClick(event));
    this.observer = new ResizeObserver(() => this.#drawSoon());
    this.observer.observe(this.scroller);
  }

  // Shows these rows, an array that the table does not change.
  setRows(rows) {
    this.rows = rows;
    this.sorted = null;
    this.#chooseColumns();
    this.#arrange();
  }

  // Shows those of the rows for which keep(row) is true, all if it is null, and begins at the first again.
  setFilter(keep) {
    this.keep = keep;
    this.active = 0;
    this.scroller.scrollTop = 0;
    this.#arrange();
  }

  // How many rows the filter leaves.
  get length() {
    return this.keep === null ? this.rows.length : this.shown.length;
  }

  // The columns that say the same in every row, as [column, row].
  get same() {
    const [first] = this.rows;
    const isSame = (column) => !column.stays && this.rows.every((row) => column.value(row) === column.value(first));

    return this.rows.length < 2 ? [] : this.all.slice(1).filter(isSame).map((column) => [column, first]);
  }

  #chooseColumns() {
    const left = new Set(this.same.map(([column]) => column));
    const columns = this.all.filter((column) => !left.has(column));

    if (this.head.children.length === columns.length && columns.every((column, at) => column === this.columns[at]))
      return;
    this.columns = columns;
    this.drawn = null;
    this.head.replaceChildren(...columns.map((column) => this.#headCell(column)));
  }

  #headCell(column) {
    const button = el("button", { type: "button", onclick: () => this.#sortBy(column) }, column.label);

    return el("th", { scope: "col", class: `${classesOf(column)} column-${column.key}`, "data-key": column.key }, button);
  }

  #sortBy(column) {
    const same = this.sort.key === column.key;

    // Sizes and counts are looked at from the largest.
    this.sort = { key: column.key, descending: same ? !this.sort.descending : Boolean(column.numeric) };
    this.active = 0;
    this.scroller.scrollTop = 0;
    this.sorted = null;
    this.#arrange();
    this.onSort(this.sort);
  }

  // Sorting is what takes long, so filters choose from rows that are sorted already.
  #order() {
    const column = this.all.find(({ key }) => key === this.sort.key) ?? this.all[0];
    const sign = this.sort.descending ? -1 : 1;
    const keyed = this.rows.map((row) => ({ row, key: column.value(row) }));

    keyed.sort((a, b) => compare(a.key, b.key, sign));
    this.sorted = keyed.map(({ row }) => row);
  }

  #chooseRows() {
    const isTree = this.tree !== null && this.keep === null && this.sort.key === this.all[0].key && !this.sort.descending;

    if (isTree)
      return this.tree.rows();
    if (this.sorted === null)
      this.#order();
    return this.keep === null ? this.sorted : this.sorted.filter((row) => this.keep(row));
  }

  #arrange() {
    this.shown = this.#chooseRows();
    if (this.shown.some((row) => row.open !== undefined))
      this.table.setAttribute("role", "treegrid");
    else
      this.table.removeAttribute("role");
    for (const cell of this.head.children)
      if (cell.dataset.key === this.sort.key)
        cell.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
      else
        cell.removeAttribute("aria-sort");
    this.table.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.empty.hidden = this.shown.length > 0;
    this.scroller.hidden = this.shown.length === 0;
    this.active = Math.max(0, Math.min(this.active, this.shown.length - 1));
    this.drawn = null;
    this.#draw();
  }

  #drawSoon() {
    if (this.frame !== undefined)
      return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      this.#draw();
    });
  }

  #draw() {
    const length = Math.min(this.shown.length, ROWS_MAX);
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_PX) - SPARE);
    const seen = Math.ceil((this.scroller.clientHeight || 600) / ROW_PX);
    const last = Math.min(length, first + seen + 2 * SPARE);
    const focused = this.body.contains(document.activeElement);

    if (this.drawn !== null && this.drawn.first === first && this.drawn.last === last)
      return;
    this.drawn = { first, last };
    this.#space(this.above, first);
    this.#space(this.below, length - last);
    this.body.replaceChildren(...this.shown.slice(first, last).map((row, index) => this.#row(row, first + index)));
    if (focused)
      (this.#target(this.active) ?? this.scroller).focus({ preventScroll: true });
  }

  #space(body, rows) {
    if (rows <= 0) {
      body.replaceChildren();
      return;
    }
    const cell = el("td");
    cell.style.height = `${rows * ROW_PX}px`;
    body.replaceChildren(el("tr", {}, cell));
  }

  #row(row, index) {
    const cells = this.columns.map((column, at) => {
      const content = column.cell !== undefined ? column.cell(row) : String(column.value(row) ?? "");

      return el(at === 0 ? "th" : "td", { class: classesOf(column) || null, scope: at === 0 ? "row" : null }, content);
    });
    const element = el("tr", { "aria-rowindex": index + 2, "data-index": index, "aria-level": this.table.role === null ? null : row.level,
      "aria-expanded": row.open === undefined ? null : String(row.open) }, cells);

    this.#reach(element, index);
    return element;
  }

  // Of all rows, one is reached with the tab key; the arrows lead to the others.
  #reach(element, index) {
    const target = element.querySelector("a[href]") ?? element;

    for (const link of element.querySelectorAll("a[href], button"))
      link.tabIndex = -1;
    target.tabIndex = index === this.active ? 0 : -1;
  }

  #target(index) {
    const element = this.body.querySelector(`tr[data-index="${index}"]`);

    return element === null ? null : element.querySelector("a[href]") ?? element;
  }

  #onFocus(event) {
    const row = event.target.closest("tr");
    const index = Number(row?.dataset.index ?? -1);

    if (index < 0 || index === this.active)
      return;
    this.#target(this.active)?.setAttribute("tabindex", "-1");
    this.active = index;
    this.#target(index)?.setAttribute("tabindex", "0");
  }

  #onClick(event) {
    const row = this.shown[Number(event.target.closest("tr")?.dataset.index ?? -1)];

    if (row?.open !== undefined && event.target.closest("a, button") === null)
      this.#toggle(row);
  }

  #toggle(row) {
    this.tree.toggle(row);
    this.#arrange();
  }

  // Opens and closes rows of a tree, and leads into and out of them. Returns whether the key did something.
  #onTreeKey(key) {
    const row = this.shown[this.active];

    if (row?.level === undefined)
      return false;
    if (row.open !== undefined && (key === "Enter" || key === " " || key === (row.open ? "ArrowLeft" : "ArrowRight")))
      this.#toggle(row);
    else if (key === "ArrowRight" && row.open)
      this.#goTo(this.active + 1);
    else if (key === "ArrowLeft" && row.level > 1)
      this.#goTo(this.shown.findLastIndex((one, at) => at < this.active && one.level < row.level));
    else
      return false;
    return true;
  }

  #onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_PX) - 2);
    const last = Math.min(this.shown.length, ROWS_MAX) - 1;
    const steps = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    };

    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("thead"))
      return;
    const inside = this.body.contains(event.target);
    if (inside && this.#onTreeKey(event.key))
      event.preventDefault();
    if (!(event.key in steps))
      return;
    event.preventDefault();
    // From the table itself the first step leads to the row that is there already.
    this.#goTo(Math.max(0, Math.min(last, inside ? steps[event.key] : this.active)));
  }

  #goTo(index) {
    const headPx = this.head.offsetHeight;
    const top = index * ROW_PX;
    const { scrollTop, clientHeight } = this.scroller;

    this.active = index;
    if (top < scrollTop)
      this.scroller.scrollTop = top;
    else if (top + ROW_PX + headPx > scrollTop + clientHeight)
      this.scroller.scrollTop = top + ROW_PX + headPx - clientHeight;
    this.drawn = null;
    this.#draw();
    this.#target(index)?.focus({ preventScroll: true });
  }
}

// What a column says in every row; null if it says nothing.
function sameText(column, row) {
  const value = column.value(row);

  if (value === null || value === undefined || value === "")
    return null;
  const content = column.cell?.(row) ?? String(value);
  return content instanceof Node ? content : name(cut(content));
}

// A field that filters a table, the number of rows that are left, and what all rows have in common: units are the word for
// one of them, and for several. match(row, words) tells whether a row is found; words are in lower case.
export function searchField({ label, table, match, units, value = "", onChange = () => {} }) {
  const field = el("input", { type: "search", "aria-label": label, placeholder: label, autocomplete: "off",
    spellcheck: "false", "aria-keyshortcuts": "/" });
  const result = el("output", { class: "note" });
  const same = el("p", { class: "note" });
  const tell = () => {
    const all = plural(table.rows.length, ...units);
    const said = table.same.map(([column, row]) => [column.label.toLowerCase(), " ", sameText(column, row)])
      .filter(([, , text]) => text !== null);

    same.hidden = said.length === 0;
    same.replaceChildren(el("span", {}, "Same for all: ", said.map((one, index) => [index > 0 && ", ", one])));
    result.textContent = table.length === table.rows.length ? all : `${count(table.length)} of ${all}`;
  };
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);

    table.setFilter(words.length === 0 ? null : (row) => match(row, words));
    tell();
  };

  field.value = value;
  field.addEventListener("input", () => {
    apply();
    onChange(field.value);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && field.value !== "") {
      event.preventDefault();
      field.value = "";
      apply();
      onChange("");
    }
  });
  return { field, result, same, apply, tell };
}
