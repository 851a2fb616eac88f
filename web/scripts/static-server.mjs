// A static web server for tests and for the playground.
//
// Rules: it listens on loopback only, and serves only files below its root, with the headers that
// playground/headers.json has for all files and for this one. It counts the bytes that it sends.

import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript",
  ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm",
  ".map": "application/json", ".bin": "application/octet-stream", ".svg": "image/svg+xml",
};
const HEADERS = JSON.parse(
  readFileSync(new URL("../playground/headers.json", import.meta.url), "utf8"),
);

/**
 * Serve a directory. `options.isolated` is false for a page without the headers; `options.change`
 * may replace the path of a file: (path) => path | null. `options.hold` may delay an answer:
 * (path) => promise.
 */
export function serve(root, options = {}) {
  const { isolated = true, port = 0, change = (path) => path, hold = async () => {} } = options;
  const sent = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    let path = normalize(decodeURIComponent(url.pathname));
    if (path.endsWith("/")) path += "index.html";
    const file = change(join(root, path));
    let size = -1;
    try {
      const found = file ? statSync(file) : null;
      if (found?.isFile() && !path.includes("\0")) size = found.size;
    } catch {
      // not there
    }
    const headers = isolated ? { ...HEADERS["*"], ...HEADERS[path.slice(1)] } : {};
    if (size < 0) return response.writeHead(404, headers).end("not found");
    const lasting = file.endsWith(".bin");
    sent.push({ path, bytes: size });
    await hold(path);
    response.writeHead(200, {
      ...headers,
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-length": size,
      "cache-control": lasting ? "public, max-age=31536000, immutable" : "no-cache",
    });
    createReadStream(file).pipe(response);
  });
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      resolve({
        origin: `http://localhost:${server.address().port}`,
        sent,
        close: () => new Promise((done) => {
          server.close(done);
          server.closeAllConnections();
        }),
      });
    });
  });
}
