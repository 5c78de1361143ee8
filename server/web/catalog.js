import { el } from "./dom.js";

export async function show(root) {
  root.append(el("h1", {}, "catalog"));
}
