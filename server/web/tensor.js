// The page of one tensor.

import { el, wholeName } from "./dom.js";

export async function show(root, { model, object, component, api, signal }) {
  root.append(el("h1", {}, wholeName(object)));
}
