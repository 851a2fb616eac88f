// The messages of a TLS 1.3 handshake, as far as this server needs them (RFC 8446, section 4).
//
// Owns reading the first message of a client, and writing those of the server. Rules: the client is
// a guest: every length is checked before it is used, and what is wrong throws an `Alert`.

import { joined, type Bytes } from "./der.js";

/** Ends the connection, with the number of an alert. */
export class Alert extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

export const DECODE_ERROR = 50, HANDSHAKE_FAILURE = 40, PROTOCOL_VERSION = 70;
export const UNEXPECTED_MESSAGE = 10, UNRECOGNIZED_NAME = 112, NO_APPLICATION_PROTOCOL = 120;
export const BAD_RECORD_MAC = 20, RECORD_OVERFLOW = 22, DECRYPT_ERROR = 51;

const AES_128_GCM_SHA256 = 0x1301, ECDSA_P256_SHA256 = 0x0403, TLS_1_3 = 0x0304;
const SERVER_NAME = 0, SIGNATURE_ALGORITHMS = 13, PROTOCOLS = 16, VERSIONS = 43, KEY_SHARE = 51;
const HTTP_1_1 = "http/1.1";
export const X25519 = 0x001d, P256 = 0x0017;

/** Reads fields, each within the one around it. */
class Fields {
  private at = 0;

  constructor(private readonly bytes: Bytes) {}

  get left(): number {
    return this.bytes.length - this.at;
  }

  take(count: number): Bytes {
    if (count > this.left) throw new Alert(DECODE_ERROR, "a field is too short");
    this.at += count;
    return this.bytes.slice(this.at - count, this.at);
  }

  number(size: number): number {
    return this.take(size).reduce((sum, byte) => sum * 256 + byte, 0);
  }

  /** A field that begins with its length in `size` bytes. */
  block(size: number): Bytes {
    return this.take(this.number(size));
  }

  fields(size: number): Fields {
    return new Fields(this.block(size));
  }

  numbers(): number[] {
    const found: number[] = [];
    while (this.left) found.push(this.number(2));
    return found;
  }
}

export interface ClientHello {
  session: Bytes;
  /** The name that the client asks for, in lower case. */
  serverName: string | null;
  /** Whether the client named protocols, among them HTTP/1.1. */
  namesProtocols: boolean;
  group: number;
  share: Bytes;
}

export function readClientHello(body: Bytes): ClientHello {
  const fields = new Fields(body);
  fields.take(2 + 32);
  const session = fields.block(1);
  if (session.length > 32) throw new Alert(DECODE_ERROR, "the session is too long");
  const suites = fields.fields(2).numbers();
  fields.block(1);
  const extensions = new Map<number, Bytes>();
  const list = fields.fields(2);
  while (list.left) extensions.set(list.number(2), list.block(2));
  const extension = (kind: number) => {
    const found = extensions.get(kind);
    return found && new Fields(found);
  };
  if (!extension(VERSIONS)?.fields(1).numbers().includes(TLS_1_3)) {
    throw new Alert(PROTOCOL_VERSION, "the program does not speak TLS 1.3");
  }
  const algorithms = extension(SIGNATURE_ALGORITHMS)?.fields(2).numbers() ?? [];
  if (!suites.includes(AES_128_GCM_SHA256) || !algorithms.includes(ECDSA_P256_SHA256)) {
    throw new Alert(HANDSHAKE_FAILURE, "the program offers no common cipher");
  }
  const named = extension(SERVER_NAME)?.fields(2);
  let serverName: string | null = null;
  if (named && named.number(1) === 0) {
    serverName = String.fromCharCode(...named.block(2)).toLowerCase().replace(/\.$/, "");
  }
  const protocols = extension(PROTOCOLS)?.fields(2);
  let hasHttp = false;
  while (protocols?.left) {
    if (String.fromCharCode(...protocols.block(1)) === HTTP_1_1) hasHttp = true;
  }
  if (protocols && !hasHttp) {
    throw new Alert(NO_APPLICATION_PROTOCOL, "the program offers no HTTP/1.1");
  }
  return { session, serverName, namesProtocols: hasHttp, ...readShare(extension(KEY_SHARE)) };
}

function readShare(fields: Fields | undefined): { group: number; share: Bytes } {
  const list = fields?.fields(2);
  while (list?.left) {
    const group = list.number(2);
    const share = list.block(2);
    if ((group === X25519 && share.length === 32) || (group === P256 && share.length === 65)) {
      return { group, share };
    }
  }
  throw new Alert(HANDSHAKE_FAILURE, "the program offers neither X25519 nor P-256");
}

// Messages of the server.

const uint16 = (value: number) => new Uint8Array([value >> 8, value & 0xff]);
const block16 = (...parts: Uint8Array[]) => {
  const body = joined(...parts);
  return joined(uint16(body.length), body);
};
const extensionOf = (kind: number, ...content: Uint8Array[]) =>
  joined(uint16(kind), block16(...content));

export function message(type: number, ...content: Uint8Array[]): Bytes {
  const body = joined(...content);
  return joined(new Uint8Array([type, body.length >> 16, (body.length >> 8) & 0xff, body.length & 0xff]), body);
}

export function serverHello(hello: ClientHello, share: Bytes): Bytes {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return message(
    2, uint16(0x0303), random, new Uint8Array([hello.session.length]), hello.session,
    uint16(AES_128_GCM_SHA256), new Uint8Array([0]),
    block16(
      extensionOf(VERSIONS, uint16(TLS_1_3)),
      extensionOf(KEY_SHARE, uint16(hello.group), block16(share)),
    ),
  );
}

export function encryptedExtensions(hello: ClientHello): Bytes {
  const protocol = new TextEncoder().encode(HTTP_1_1);
  const chosen = extensionOf(PROTOCOLS, block16(new Uint8Array([protocol.length]), protocol));
  return message(8, block16(hello.namesProtocols ? chosen : new Uint8Array(0)));
}

export function certificateMessage(certificate: Bytes): Bytes {
  const length = (size: number) => new Uint8Array([size >> 16, (size >> 8) & 0xff, size & 0xff]);
  const entry = joined(length(certificate.length), certificate, uint16(0));
  return message(11, new Uint8Array([0]), length(entry.length), entry);
}

export function certificateVerify(signature: Bytes): Bytes {
  return message(15, uint16(ECDSA_P256_SHA256), block16(signature));
}

/** What the server signs. */
export function signedContent(transcript: Bytes): Bytes {
  return joined(
    new Uint8Array(64).fill(0x20), new TextEncoder().encode("TLS 1.3, server CertificateVerify"),
    new Uint8Array(1), transcript,
  );
}
