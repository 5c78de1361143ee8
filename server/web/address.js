// What the reader has chosen on a page, in the query of its address, so that a link shows the same again.

export function chosen(key) {
  return new URLSearchParams(location.search).get(key);
}

// The usual value is left out. step: the way back is the browser's Back.
export function choose(key, value, usual = "", { step = false } = {}) {
  const query = new URLSearchParams(location.search);

  if (value === usual)
    query.delete(key);
  else
    query.set(key, value);
  const text = query.toString();
  const address = location.pathname + (text === "" ? "" : `?${text}`);
  if (step)
    history.pushState(history.state, "", address);
  else
    history.replaceState(history.state, "", address);
}

// The query without one key.
export function queryBut(key) {
  const query = new URLSearchParams(location.search);

  query.delete(key);
  return query.toString();
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
