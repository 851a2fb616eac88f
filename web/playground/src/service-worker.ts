// The service worker of the playground: it works offline, and on servers without our headers.
//
// Owns the copies of the page's own files. Rules: the network comes first, so that a new version
// is seen; without it, the copies answer. Assets with a hash in their name are kept by the worker
// that reads them. Every answer gets the headers of headers.json, which isolate the page, unless the
// server sends others: it may allow the kernel's worker more hosts.

import headersOfFiles from "../headers.json";

const CACHE_NAME = "wasmsand-playground-1";
interface FetchEvent extends Event {
  request: Request;
  respondWith(response: Promise<Response>): void;
}
interface Scope {
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
  addEventListener(type: string, listener: (event: FetchEvent & { waitUntil(done: Promise<unknown>): void }) => void): void;
  location: Location;
}
const scope = self as unknown as Scope;

const table = headersOfFiles as Record<string, Record<string, string>>;

/** The response with the headers that its file should have. */
function isolated(response: Response, url: string): Response {
  if (response.type === "opaque" || response.type === "error") return response;
  const headers = new Headers(response.headers);
  const file = new URL(url).pathname.split("/").at(-1) || "index.html";
  for (const [name, value] of Object.entries({ ...table["*"], ...table[file] })) {
    if (!headers.has(name)) headers.set(name, value);
  }
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

async function answer(request: Request): Promise<Response> {
  const hashed = new URL(request.url).pathname.endsWith(".bin");
  if (hashed) return isolated(await fetch(request), request.url);
  const cache = await caches.open(CACHE_NAME).catch(() => undefined);
  try {
    const response = isolated(await fetch(request), request.url);
    if (response.ok) await cache?.put(request, response.clone()).catch(() => {});
    return response;
  } catch (error) {
    const kept = await cache?.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (new URL(request.url).origin !== scope.location.origin) return;
  event.respondWith(answer(request));
});
