// The server's API: requests with the reader's token, answers and errors as values.

// What the server's addresses begin with if a proxy serves it below a path ("/models"); else empty.
export const base = new URL(import.meta.url).pathname.replace(/\/ui\/assets\/[^/]*\/[^/]*$/, "");

const KEY = "ztserve.token";
// The server takes targets of up to 8192 bytes; some are left for the query.
const ADDRESS_MAX = 7800;
// An integer that a double may not hold.
const LONG_INTEGER = /[:[,]\s*-?\d{16,}\s*[,\]}]/;

let token = null;
try {
  token = sessionStorage.getItem(KEY);
} catch { /* Storage is turned off: the token lasts as long as the page. */ }

// An answer of problem details (RFC 9457).
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `status ${status}`);
    this.status = status;
    this.code = String(body.code ?? "");
    this.title = String(body.title ?? "Error");
    this.detail = String(body.detail ?? "");
    this.requestId = body.request_id;
    this.members = body;
  }
}

// No answer, or not all of one: the server is away, or the network.
export class Unreachable extends Error {
  constructor() {
    super("The server does not respond.");
  }
}

// What fetch() and bodies fail with, besides being aborted, is that the connection does not hold.
async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable();
  }
}

// Whether the same request may do later: the server is away or busy.
export function isPassing(error) {
  return error instanceof Unreachable || [408, 429, 502, 503, 504].includes(error.status);
}

async function problemOf(response) {
  let body = {};

  try {
    body = await response.json();
  } catch { /* Not the server itself: a proxy's page. */ }
  return new Problem(response.status, body ?? {});
}

export function hasToken() {
  return token !== null;
}

// null forgets it.
export function setToken(text) {
  token = text;
  try {
    if (text === null)
      sessionStorage.removeItem(KEY);
    else
      sessionStorage.setItem(KEY, text);
  } catch { /* As above. */ }
  dispatchEvent(new Event("ztserve:token"));
}

// The fields that a request of one's own (XMLHttpRequest) needs.
export function authorization() {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

// To be called on a 401: the shell then asks for a token (app.js).
export function unauthorized(problem) {
  dispatchEvent(new CustomEvent("ztserve:unauthorized", { detail: problem }));
}

// fetch() with the token. Answers of 400 and above are thrown as Problem.
export async function request(path, init = {}) {
  const response = await reached(fetch(path, {
    ...init,
    headers: { ...authorization(), ...init.headers },
    credentials: "same-origin",
    redirect: "error",
  }));

  if (response.ok || response.status === 304)
    return response;
  const problem = await problemOf(response);
  if (response.status === 401)
    unauthorized(problem);
  throw problem;
}

// JSON in which integers that a double does not hold are BigInt, where the browser can.
export function parse(text) {
  if (!LONG_INTEGER.test(text))
    return JSON.parse(text);
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source)
      : value);
}

export async function textOf(response) {
  return reached(response.text());
}

export async function bytesOf(response) {
  return reached(response.arrayBuffer());
}

export async function json(path, init) {
  return parse(await textOf(await request(path, init)));
}

// Which version of a model's file an answer is of: what its ETag begins with. null if it does not tell.
export function versionOf(response) {
  return /^(?:W\/)?"([0-9a-f]+)/.exec(response.headers.get("ETag") ?? "")?.[1] ?? null;
}

// Ends early when signal is aborted.
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

// In an address, an "@" that is not escaped begins a revision.
export function modelPath(model, revision = "") {
  return `${base}/v1/models/${encodeURIComponent(model)}${revision === "" ? "" : `@${encodeURIComponent(revision)}`}`;
}

export function componentPath(model, object, component, revision = "") {
  return `${modelPath(model, revision)}/objects/${encodeURIComponent(object)}/${encodeURIComponent(component)}`;
}

// Addresses of the viewer's own pages. Browsers resolve the segments "." and "..", escaped or not, and an empty one
// has no address: null then.
const reachable = (segment) => segment !== "" && segment !== "." && segment !== "..";

export function page(path) {
  return `${base}/ui/${path}`;
}

export function modelPage(model) {
  return `${base}/ui/models/${encodeURIComponent(model)}`;
}

export function tensorPage(model, object, component) {
  if (!reachable(object) || !reachable(component))
    return null;
  const page = `${modelPage(model)}/objects/${encodeURIComponent(object)}/${encodeURIComponent(component)}`;
  return page.length > ADDRESS_MAX ? null : page;
}
