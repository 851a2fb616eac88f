// TLS with programs, tried with Node's own client and with damaged bytes.
//
// Rules: the server has no sockets; a duplex stream joins it with the client.

import assert from "node:assert/strict";
import { once } from "node:events";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { Authority } from "../src/kernel/network/certificates.js";
import { TlsServer } from "../src/kernel/network/tls-server.js";

const authority = Authority.make();

/** A client and a server for `host`, which answers everything that it gets. */
async function talk(
  host: string, options: ConnectionOptions = {},
): Promise<{ client: TLSSocket; events: string[]; server: TlsServer }> {
  const events: string[] = [];
  const socket = new Duplex({
    read() {},
    write(data: Buffer, _encoding, done) {
      server.receive(new Uint8Array(data));
      done();
    },
  });
  const server = new TlsServer(authority, host, (event, text, data) => {
    events.push(event === "fail" ? text : event);
    if (event === "records") socket.push(data);
    if (event === "plain" && data!.length) server.send(data!);
    if (event === "closed") server.finish();
  });
  const ca = (await authority).pem;
  return { client: connect({ socket, ca, servername: host, ...options }), events, server };
}

async function failure(host: string, options: ConnectionOptions): Promise<[string, string[]]> {
  const { client, events } = await talk(host, options);
  const [error] = (await once(client, "error")) as [NodeJS.ErrnoException];
  return [error.code ?? error.message, events];
}

for (const ecdhCurve of ["X25519", "P-256"]) {
  test(`TLS: Node's client talks by ${ecdhCurve}`, { timeout: 60_000 }, async () => {
    const { client } = await talk("a.test", { ecdhCurve, ALPNProtocols: ["h2", "http/1.1"] });
    await once(client, "secureConnect");
    assert.equal(client.authorized, true);
    assert.equal(client.alpnProtocol, "http/1.1");
    const sent = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
    client.write(sent);
    const got: Buffer[] = [];
    for await (const piece of client) {
      got.push(piece as Buffer);
      if (Buffer.concat(got).length === sent.length) break;
    }
    assert.ok(Buffer.concat(got).equals(sent));
  });
}

test("TLS: what a client wants and cannot have is an alert", { timeout: 60_000 }, async () => {
  const [name, events] = await failure("a.test", { servername: "b.test" });
  assert.match(name, /UNRECOGNIZED_NAME/);
  assert.match(events.at(-1)!, /another host than a.test/);
  assert.match((await failure("a.test", { maxVersion: "TLSv1.2" }))[0], /PROTOCOL_VERSION/);
  assert.match((await failure("a.test", { ALPNProtocols: ["h2"] }))[0], /NO_APPLICATION_PROTOCOL/);
  assert.match((await failure("a.test", { ca: [] }))[0], /UNABLE_TO|SELF_SIGNED/);
});

/** The bytes with which a client begins. */
async function firstBytes(): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve) => {
    const socket = new Duplex({ read() {}, write: (data: Buffer) => resolve(new Uint8Array(data)) });
    connect({ socket, servername: "a.test" }).on("error", () => {});
  });
}

test("TLS: damaged bytes end the connection or wait for more", { timeout: 120_000 }, async () => {
  const good = await firstBytes();
  let state = 12345;
  const random = (below: number) => (state = (state * 1103515245 + 12345) % 2 ** 31) % below;
  for (let round = 0; round < 400; round++) {
    const bytes = good.slice(0, random(4) ? good.length : random(good.length));
    for (let left = random(4); left >= 0; left--) bytes[random(bytes.length)] = random(256);
    const events: string[] = [];
    await new Promise<void>((resolve) => {
      const server = new TlsServer(authority, "a.test", (event) => {
        events.push(event);
        if (event === "plain" || event === "fail") resolve();
      });
      server.receive(bytes);
      if (bytes.length === 0) resolve();
    });
    assert.ok(!events.includes("ready"), "no handshake ends with one message");
  }
});
