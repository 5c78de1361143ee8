// Uploads a file with tus-js-client: client_tus.cjs ENDPOINT FILE MODEL FORM, and prints one line of JSON: the requests that
// were made, and the URL of the upload. FORM: parallel, resumed (interrupted halfway, then parallel again), deferred.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { PassThrough } = require("node:stream");
const tus = require("tus-js-client");

const [endpoint, file, model, form] = process.argv.slice(2);
const storage = new tus.FileUrlStorage(path.join(fs.mkdtempSync(path.join(os.tmpdir(), "tus-")), "urls.json"));
const requests = [];

function optionsOf(resolve, reject) {
  return {
    endpoint,
    metadata: { model },
    chunkSize: 300_000,
    retryDelays: [100, 200, 400, 800],
    urlStorage: storage,
    onAfterResponse: (request, response) => requests.push({
      method: request.getMethod(),
      concat: request.getHeader("Upload-Concat") ?? null,
      length: request.getHeader("Upload-Length") ?? null,
      deferred: request.getHeader("Upload-Defer-Length") ?? null,
      status: response.getStatus(),
    }),
    onSuccess: resolve,
    onError: reject,
  };
}

function input() {
  return form === "deferred" ? fs.createReadStream(file).pipe(new PassThrough()) : fs.createReadStream(file);
}

function run(options, stopAfter) {
  return new Promise((resolve, reject) => {
    const upload = new tus.Upload(input(), {
      ...optionsOf(() => resolve(upload), reject),
      ...options,
      onProgress: (sent) => {
        if (sent >= stopAfter)
          upload.abort().then(() => resolve(upload), reject);
      },
    });
    upload.findPreviousUploads().then((previous) => {
      if (previous.length > 0)
        upload.resumeFromPreviousUpload(previous[0]);
      upload.start();
    }, reject);
  });
}

async function main() {
  const options = form === "deferred" ? { uploadLengthDeferred: true } : { parallelUploads: 4 };
  if (form === "resumed")
    await run(options, fs.statSync(file).size / 2);
  const first = requests.length;
  const upload = await run(options, Infinity);
  console.log(JSON.stringify({ url: upload.url, first, requests }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
