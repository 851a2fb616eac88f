// Requests of guests in a browser: `fetch`.
//
// Owns `makeRequest`. Rules: no cookies, no credentials, no referrer, no cache. The browser applies
// CORS. A redirect is never followed, because a page does not learn where it leads, so nothing could
// decide about it. The browser unpacks bodies, so the length that the server names is not passed on.

import type { OutsideAnswer, OutsideRequest } from "../../kernel/network/request.js";

/** Headers that browsers set themselves, or that only cause a preflight. */
const OWN = new Set([
  "accept-charset", "accept-encoding", "connection", "cookie", "date", "dnt", "expect", "host",
  "keep-alive", "origin", "referer", "te", "trailer", "upgrade", "user-agent", "via",
]);
const CHANGED = new Set(["content-encoding", "content-length"]);

export type { OutsideAnswer } from "../../kernel/network/request.js";

/** The browser looks up names, and does not say what it finds. */
export const findsNames = false;

export async function makeRequest(request: OutsideRequest): Promise<OutsideAnswer> {
  const { method, url, body, signal } = request;
  if (new URL(url).origin !== new URL(url.split("/", 3).join("/")).origin) {
    throw new Error("the browser understands the URL differently");
  }
  let response: Response;
  try {
    response = await fetch(url, {
      method, signal, headers: request.headers.filter(([name]) => !OWN.has(name.toLowerCase())),
      body: body.length ? body : null, mode: "cors", credentials: "omit", cache: "no-store",
      redirect: "manual", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new Error(
      "the browser refused the request, or could not reach the host: the server must allow it by " +
        "CORS (Access-Control-Allow-Origin), and a page from https cannot use http",
      { cause: error },
    );
  }
  if (response.type === "opaqueredirect") {
    throw new Error(
      "the server redirects, and a page does not learn where to: use the final address",
    );
  }
  const reader = response.body?.getReader();
  return {
    status: response.status,
    reason: response.statusText,
    headers: [...response.headers].filter(([name]) => method === "HEAD" || !CHANGED.has(name)),
    read: async () => (await reader?.read())?.value ?? null,
  };
}
