// What the reader has chosen on a page, in the query of its address, so that a link shows the same again.

export function chosen(key) {
  return new URLSearchParams(location.search).get(key);
}

// An empty value, or the usual one, is left out.
export function choose(key, value, usual = "") {
  const query = new URLSearchParams(location.search);

  if (value === "" || value === usual)
    query.delete(key);
  else
    query.set(key, value);
  const text = query.toString();
  history.replaceState(history.state, "", location.pathname + (text === "" ? "" : `?${text}`));
}

// "size" or "-size"
export function chosenSort(keys, usual) {
  const text = chosen("sort") ?? usual;
  const key = text.replace(/^-/, "");

  return keys.includes(key) ? { key, descending: text.startsWith("-") } : { key: usual.replace(/^-/, ""), descending: false };
}

export function chooseSort({ key, descending }, usual) {
  choose("sort", descending ? `-${key}` : key, usual);
}
