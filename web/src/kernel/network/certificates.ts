// The certificate authority of a sandbox.
//
// Owns its key, its certificate, and the certificates of hosts. Rules: keys are made by the first
// use and cannot be taken out of this worker. Only programs of this sandbox trust the authority. All
// hosts share one key; their certificates are kept, up to a limit. The fields are those of
// machine/network/inspecting/authority.py.

import {
  bits, ecdsaSignature, integer, objectId, octets, sequence, set, tagged, text, time, TRUE,
  type Bytes,
} from "./der.js";

const HOSTS_KEPT = 128;
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const SIGNING = { name: "ECDSA", hash: "SHA-256" };
const ECDSA_WITH_SHA256 = sequence(objectId("1.2.840.10045.4.3.2"));
const VALID = sequence(time("20000101000000Z"), time("20991231000000Z"));

interface Key {
  pair: CryptoKeyPair;
  /** The public key as certificates have it. */
  info: Bytes;
  identifier: Bytes;
}

async function newKey(): Promise<Key> {
  const pair = await crypto.subtle.generateKey(CURVE, false, ["sign", "verify"]);
  const info = new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey));
  const point = info.slice(-65);
  return { pair, info, identifier: new Uint8Array(await crypto.subtle.digest("SHA-1", point)) };
}

function named(name: string): Bytes {
  return sequence(set(sequence(objectId("2.5.4.3"), text(name))));
}

function extension(name: string, critical: boolean, value: Uint8Array): Bytes {
  const id = objectId(name);
  return critical ? sequence(id, TRUE, octets(value)) : sequence(id, octets(value));
}

/** The bytes of an IP address; null if `host` is a name. */
export function addressBytes(host: string): Bytes | null {
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) return new Uint8Array(host.split(".").map(Number));
  if (!host.includes(":")) return null;
  const [before, after] = host.split("::") as [string, string | undefined];
  const words = (part: string | undefined) => (part ? part.split(":") : []);
  const [first, last] = [words(before), words(after)];
  const middle = new Array<string>(Math.max(0, 8 - first.length - last.length)).fill("0");
  const numbers = [...first, ...(after === undefined ? [] : middle), ...last];
  return new Uint8Array(
    numbers.flatMap((word) => [parseInt(word, 16) >> 8, parseInt(word, 16) & 0xff]),
  );
}

async function signed(
  issuer: Key, issuerName: Bytes, subject: Bytes, key: Key, extensions: Bytes[],
): Promise<Bytes> {
  const serial = crypto.getRandomValues(new Uint8Array(16));
  const body = sequence(
    tagged(0xa0, integer(new Uint8Array([2]))), integer(serial), ECDSA_WITH_SHA256, issuerName,
    VALID, subject, key.info,
    tagged(0xa3, sequence(
      extension("2.5.29.14", false, octets(key.identifier)), ...extensions,
    )),
  );
  const signature = await crypto.subtle.sign(SIGNING, issuer.pair.privateKey, body);
  return sequence(body, ECDSA_WITH_SHA256, bits(ecdsaSignature(signature)));
}

/** A certificate and how to sign with its key. */
export interface HostCertificate {
  certificate: Bytes;
  sign(content: Uint8Array<ArrayBuffer>): Promise<Bytes>;
}

export class Authority {
  private readonly hosts = new Map<string, Promise<Bytes>>();

  private constructor(
    private readonly key: Key, private readonly hostKey: Key, private readonly name: Bytes,
    private readonly certificate: Bytes,
  ) {}

  static async make(): Promise<Authority> {
    const [key, hostKey] = await Promise.all([newKey(), newKey()]);
    // Each authority has a name of its own: OpenSSL finds issuers by name.
    const random = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
      byte.toString(16).padStart(2, "0"),
    );
    const name = named(`wasmsand sandbox authority ${random.join("")}`);
    const certificate = await signed(key, name, name, key, [
      extension("2.5.29.19", true, sequence(TRUE, integer(new Uint8Array([0])))),
      extension("2.5.29.15", true, bits(new Uint8Array([0x06]), 1)), // signs certificates
    ]);
    return new Authority(key, hostKey, name, certificate);
  }

  /** The authority's certificate in PEM. */
  get pem(): string {
    const lines = btoa(String.fromCharCode(...this.certificate)).match(/.{1,64}/g)!;
    return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  }

  /** What a guest sees that connects to this host. */
  async forHost(host: string): Promise<HostCertificate> {
    let made = this.hosts.get(host);
    if (!made) {
      made = this.certify(host);
      this.hosts.set(host, made);
      if (this.hosts.size > HOSTS_KEPT) this.hosts.delete(this.hosts.keys().next().value!);
    }
    const certificate = await made;
    return {
      certificate,
      sign: async (content) =>
        ecdsaSignature(await crypto.subtle.sign(SIGNING, this.hostKey.pair.privateKey, content)),
    };
  }

  private certify(host: string): Promise<Bytes> {
    const address = addressBytes(host);
    const name = address ? tagged(0x87, address) : tagged(0x82, new TextEncoder().encode(host));
    return signed(this.key, this.name, named("wasmsand"), this.hostKey, [
      extension("2.5.29.19", true, sequence()),
      extension("2.5.29.17", false, sequence(name)),
      extension("2.5.29.15", true, bits(new Uint8Array([0x80]), 7)), // signs handshakes
      extension("2.5.29.37", false, sequence(objectId("1.3.6.1.5.5.7.3.1"))), // of servers
      extension("2.5.29.35", false, sequence(tagged(0x80, this.key.identifier))),
    ]);
  }
}

