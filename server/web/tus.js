// Sends a file by tus 1.0 (https://tus.io/protocols/resumable-upload), piece by piece. After an interruption it asks how
// much has arrived and goes on from there, also after the page was closed: where an upload is, is remembered by the
// file's name, size and time of change.

import { authorization, base, isPassing, pause, Problem, request, unauthorized, Unreachable } from "./api.js";

const TUS = { "Tus-Resumable": "1.0.0" };
const PIECE = 8 * 1024 * 1024; // what an interruption loses at most
const RETRIES = 8; // in a row, without a byte having arrived
const RETRY_MS = 1000; // doubled each time
const RETRY_MAX_MS = 30000;
const KEY = "ztserve.upload:";
const EXTENSION = /\.(zt|safetensors|gguf|mag|npz|npy|onnx|pt|pth|bin|ckpt)$/i;

// --- what is remembered ---

function keyOf(file) {
  return `${KEY}${JSON.stringify([file.name, file.size, file.lastModified])}`;
}

function recall(file) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(file)));
  } catch {
    return null;
  }
}

function remember(file, memory) {
  try {
    localStorage.setItem(keyOf(file), JSON.stringify(memory));
  } catch { /* Storage is turned off or full: the upload cannot be resumed after the page is closed. */ }
}

function forget(key) {
  try {
    localStorage.removeItem(key);
  } catch { /* As above. */ }
}

// Uploads that were begun in this browser and not finished: [{key, fileName, size, model, address}].
export function unfinished() {
  const found = [];

  try {
    for (const key of Object.keys(localStorage).filter((one) => one.startsWith(KEY))) {
      const [fileName, size] = JSON.parse(key.slice(KEY.length));
      found.push({ key, fileName, size, ...JSON.parse(localStorage.getItem(key)) });
    }
  } catch { /* Nothing is remembered. */ }
  return found;
}

// Removes what has arrived of one of them.
export async function abandon({ key, address }) {
  forget(key);
  try {
    await request(address, { method: "DELETE", headers: TUS });
  } catch (error) {
    if (error.status !== 404)
      throw error;
  }
}

// --- requests ---

// "bert-base.safetensors" is the model bert-base.
export function modelOf(fileName) {
  return fileName.replace(EXTENSION, "");
}

function base64(bytes) {
  let text = "";

  for (const byte of bytes)
    text += String.fromCharCode(byte);
  return btoa(text);
}

function metadata(model, file) {
  const encode = (text) => base64(new TextEncoder().encode(text));

  return `model ${encode(model)},filename ${encode(file.name)}`;
}

// Where the browser may (pages of localhost, and over TLS), each piece carries its digest.
async function checksum(bytes) {
  if (crypto.subtle === undefined)
    return {};
  return { "Upload-Checksum": `sha256 ${base64(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))}` };
}

function problemOf(xhr) {
  let body = {};

  try {
    body = JSON.parse(xhr.responseText);
  } catch { /* Not the server itself: a proxy's page. */ }
  return new Problem(xhr.status, body ?? {});
}

// PATCH, by the older interface, which tells how much has been sent. Resolves to the new offset and the model's address.
function sendPiece(address, offset, bytes, headers, signal, onSent) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    const stop = () => xhr.abort();

    xhr.open("PATCH", address);
    const all = { ...TUS, ...authorization(), ...headers, "Upload-Offset": String(offset),
      "Content-Type": "application/offset+octet-stream" };
    for (const [name, value] of Object.entries(all))
      xhr.setRequestHeader(name, value);
    xhr.upload.addEventListener("progress", (event) => onSent(event.loaded));
    xhr.addEventListener("load", () => {
      if (xhr.status >= 200 && xhr.status < 300) {
        resolve(Number(xhr.getResponseHeader("Upload-Offset") ?? offset + bytes.byteLength));
        return;
      }
      const problem = problemOf(xhr);
      if (xhr.status === 401)
        unauthorized(problem);
      reject(problem);
    });
    xhr.addEventListener("error", () => reject(new Unreachable()));
    xhr.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    xhr.addEventListener("loadend", () => signal.removeEventListener("abort", stop));
    signal.addEventListener("abort", stop, { once: true });
    xhr.send(bytes);
  });
}

// --- one upload ---

// Where the upload is, and how much of it has arrived; begins one if there is none.
async function locate(upload, signal) {
  const memory = recall(upload.file);

  if (memory !== null && memory.model === upload.model) {
    try {
      const response = await request(memory.address, { method: "HEAD", headers: TUS, signal });
      return { address: memory.address, offset: Number(response.headers.get("Upload-Offset")) };
    } catch (error) {
      if (error.status !== 404)
        throw error;
      forget(keyOf(upload.file));
    }
  }
  const response = await request(`${base}/v1/resumable`, {
    method: "POST",
    headers: {
      ...TUS,
      "Upload-Length": String(upload.file.size),
      "Upload-Metadata": metadata(upload.model, upload.file),
      ...(upload.replace ? {} : { "If-None-Match": "*" }),
    },
    // Not to be aborted: where an upload is that has been begun must be known, to go on with it or to remove it.
  });
  const address = new URL(response.headers.get("Location"), location.href).pathname;
  remember(upload.file, { model: upload.model, address });
  return { address, offset: 0 };
}

// Whether another attempt may do: as of any request, or another one still sends, or a piece was damaged on its way.
function mayDoLater(error) {
  return isPassing(error) || [409, 423, 460].includes(error.status);
}

async function sendAll(upload, signal, progress) {
  const place = await locate(upload, signal);

  upload.address = place.address;
  signal.throwIfAborted();
  progress(place.offset);
  while (place.offset < upload.file.size && !signal.aborted) {
    const bytes = await upload.file.slice(place.offset, place.offset + PIECE).arrayBuffer();
    const from = place.offset;
    place.offset = await sendPiece(place.address, from, bytes, await checksum(bytes), signal,
      (sent) => progress(from + Math.min(sent, bytes.byteLength)));
    progress(place.offset, true);
  }
}

// Sends upload ({file, model, replace}) until all of it has arrived and is published. progress(offset, arrived) is
// called as bytes are sent; retrying(error, seconds) before another attempt. What it throws is final.
export async function send(upload, signal, { progress, retrying }) {
  let attempts = 0;

  for (;;) {
    try {
      await sendAll(upload, signal, (offset, arrived) => {
        if (arrived)
          attempts = 0;
        progress(offset);
      });
      signal.throwIfAborted();
      forget(keyOf(upload.file));
      return;
    } catch (error) {
      if (signal.aborted || !mayDoLater(error) || attempts >= RETRIES) {
        // A file that the server has judged is gone there.
        if (error instanceof Problem && [412, 413, 422].includes(error.status))
          forget(keyOf(upload.file));
        throw error;
      }
      const delay = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** attempts++);
      retrying(error, Math.round(delay / 1000));
      await pause(delay, signal);
      signal.throwIfAborted();
    }
  }
}

// Removes what has arrived.
export async function cancel(upload) {
  forget(keyOf(upload.file));
  if (upload.address !== undefined)
    await abandon({ key: keyOf(upload.file), address: upload.address });
}
