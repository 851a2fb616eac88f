// The servers that programs of the tests reach: web.test and names below it, by http and https.
//
// Owns their answers. Rules: they listen on loopback only. A browser finds them by a rule of its
// resolver, Node by the option `hosts`. Every answer allows every page (CORS).

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";

/** What the cases know of the servers. */
export interface OutsidePlace {
  plainPort: number;
  securePort: number;
  /** Where a page or Node reads which requests were made. */
  log: string;
  /** The option `hosts`, where it is needed. */
  hosts: Record<string, string> | null;
}

export interface SeenRequest {
  method: string;
  host: string;
  path: string;
  headers: Record<string, string>;
}

const CORS = {
  "access-control-allow-origin": "*", "access-control-allow-headers": "*",
  "access-control-allow-methods": "*", "access-control-expose-headers": "*",
};

export async function startOutside(): Promise<OutsidePlace & { close(): Promise<void> }> {
  const seen: SeenRequest[] = [];
  const stored = new Map<string, Buffer>();
  let ports = { plain: 0, secure: 0 };

  const answers: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
    "/log": (_request, response) => response.end(JSON.stringify(seen)),
    "/big": (_request, response) => response.end(Buffer.alloc(3_000_000, "x")),
    "/endless": (_request, response) => {
      const piece = Buffer.alloc(65_536, "e");
      const more = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on("drain", more);
      more();
    },
    "/cut": (_request, response) => {
      response.writeHead(200, { "content-length": 1000 });
      response.write("beginning");
      setTimeout(() => response.destroy(), 50);
    },
    "/silent": () => {},
    "/elsewhere": (_request, response) =>
      response.writeHead(302, { location: `http://other.web.test:${ports.plain}/found` }).end(),
    "/cookie": (_request, response) =>
      response.writeHead(200, { "set-cookie": "a=b; path=/; SameSite=None; Secure" }).end("set\n"),
  };

  const listener: RequestListener = (request, response) => {
    const path = request.url!.split("?")[0]!;
    if (path !== "/no-cors") {
      for (const [name, value] of Object.entries(CORS)) response.setHeader(name, value);
    }
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    const host = (request.headers.host ?? "").split(":")[0]!;
    const headers = request.headers as Record<string, string>;
    if (path !== "/log") seen.push({ method: request.method!, host, path, headers });
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces);
      const answer = answers[path];
      if (answer) answer(request, response);
      else if (path.startsWith("/store/")) {
        if (request.method === "PUT") stored.set(path, body);
        const found = stored.get(path);
        response.writeHead(found ? 200 : 404).end(request.method === "PUT" ? "" : found);
      } else response.end(`${request.method} ${request.url} ${body.length}\n`);
    });
  };

  const read = (name: string) => readFileSync(new URL(`../../tests/${name}`, import.meta.url));
  const key = read("server-key.pem"), cert = read("server-certificate.pem");
  const servers = [createServer(listener), createSecureServer({ key, cert }, listener)];
  const [plainPort, securePort] = await Promise.all(
    servers.map((server) => new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    })),
  ) as [number, number];
  ports = { plain: plainPort, secure: securePort };
  return {
    plainPort, securePort, log: `http://127.0.0.1:${plainPort}/log`, hosts: null,
    close: async () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}
