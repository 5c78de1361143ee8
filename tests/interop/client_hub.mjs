// Functions of @huggingface/hub, called by name: standard input is {"url", "function", "arguments"} as JSON, and the last line
// printed is the value or what was thrown. Runs in the folder where the package is installed.

import { readFileSync } from "node:fs";
import { readFile, readdir, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));
const asked = JSON.parse(readFileSync(0, "utf8"));
const common = { hubUrl: asked.url, accessToken: asked.token };

async function collected(entries) {
  const found = [];
  for await (const entry of entries) {
    found.push(entry);
  }
  return found;
}

async function base64(blob) {
  return Buffer.from(await blob.arrayBuffer()).toString("base64");
}

async function filesBelow(folder) {
  const found = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isDirectory()) {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      found[path.slice(folder.length + 1)] = (await readFile(await realpath(path))).toString("base64");
    }
  }
  return found;
}

const functions = {
  listFiles: (repo, options) => collected(hub.listFiles({ ...common, repo, recursive: true, ...options })),
  listModels: (search) => collected(hub.listModels({ ...common, search })),
  modelInfo: (name) => hub.modelInfo({ ...common, name, additionalFields: ["sha"] }),
  commits: (repo) => collected(hub.listCommits({ ...common, repo })),
  fileExists: (repo, path) => hub.fileExists({ ...common, repo, path }),
  pathsInfo: (repo, paths) => hub.pathsInfo({ ...common, repo, paths, expand: true }),
  downloadFile: async (repo, path) => {
    const blob = await hub.downloadFile({ ...common, repo, path });
    return blob === null ? null : base64(blob);
  },
  downloadPart: async (repo, path, begin, end) => {
    const blob = await hub.downloadFile({ ...common, repo, path });
    return base64(blob.slice(begin, end));
  },
  fileDownloadInfo: async (repo, path) => {
    const info = await hub.fileDownloadInfo({ ...common, repo, path });
    return info && { size: info.size, etag: info.etag };
  },
  snapshot: async (repo, cacheDir) => filesBelow(await hub.snapshotDownload({ ...common, repo, cacheDir })),
  safetensors: async (repo) => {
    const found = await hub.parseSafetensorsMetadata({ ...common, repo });
    const headers = found.sharded ? Object.values(found.headers) : [found.header];
    const names = headers.flatMap((header) => Object.keys(header).filter((name) => name !== "__metadata__"));
    return { sharded: found.sharded, names: names.sort() };
  },
  create: (repo, path) =>
    hub.createRepo({ ...common, repo, files: path && [{ path, content: new Blob(["content"]) }] }),
  upload: async (repo, path, length) => {
    const content = new Blob([Buffer.alloc(length, "0123456789abcdef")]);
    return (await hub.uploadFile({ ...common, repo, file: { path, content } })).commit.oid;
  },
  uploadSeveral: async (repo, paths, length) => {
    const content = new Blob([Buffer.alloc(length, "0123456789abcdef")]);
    return (await hub.uploadFiles({ ...common, repo, files: paths.map((path) => ({ path, content })) })).commit.oid;
  },
  uploadFrom: async (repo, path, source) =>
    (await hub.uploadFile({ ...common, repo, file: { path, content: pathToFileURL(source) } })).commit.oid,
  deleteFile: async (repo, path) => (await hub.deleteFile({ ...common, repo, path })).commit.oid,
  whoAmI: async () => (await hub.whoAmI(common)).name,
};

let answer;
try {
  answer = { value: (await functions[asked.function](...asked.arguments)) ?? null };
} catch (error) {
  answer = { thrown: String(error), status: error.statusCode ?? null };
}
console.log(`\n${JSON.stringify(answer)}`);
