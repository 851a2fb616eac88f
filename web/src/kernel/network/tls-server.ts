// TLS 1.3 with a guest (RFC 8446), with WebCrypto.
//
// Owns `TlsServer`, one connection. Rules: it protects nothing, because both ends are on this machine
// and the guest is the one who must not be trusted: it exists so that unmodified programs can use
// https. So it has one cipher and no sessions, and every length that comes from the guest is checked.
// Calls are served in order. Every call is answered by one event with the number of its bytes.

import { addressBytes, type Authority } from "./certificates.js";
import { joined, type Bytes } from "./der.js";
import * as hello from "./hello.js";
import { Alert } from "./hello.js";
import { expand, hash, HASH_BYTES, hmac, nextStage, NO_SECRET, RecordKey } from "./key-schedule.js";

const CHANGE_CIPHER_SPEC = 20, ALERT = 21, HANDSHAKE = 22, DATA = 23;
const CLIENT_HELLO = 1, FINISHED = 20, KEY_UPDATE = 24;
const RECORD_MOST = 16384, SEALED_MOST = RECORD_MOST + 256, MESSAGE_MOST = 65536;
const COMPATIBLE = new Uint8Array([CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1]);
const NOTHING: Bytes = new Uint8Array(0);

/** Tells Python of an event: `ready`, `plain`, `records`, `closed`, `fail`. */
export type Tell = (event: string, text: string, data: Bytes | null) => void;

function plainRecord(type: number, content: Uint8Array): Bytes {
  const length = content.length;
  return joined(new Uint8Array([type, 3, 3, length >> 8, length & 0xff]), content);
}

function isEqual(one: Bytes, other: Bytes): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

export class TlsServer {
  private work: Promise<void> = Promise.resolve();
  private received: Bytes = NOTHING;
  private messages: Bytes = NOTHING;
  private transcript: Bytes = NOTHING;
  private reading: RecordKey | null = null;
  private writing: RecordKey | null = null;
  private expected: Bytes | null = null;
  private next: { reading: RecordKey; writing: RecordKey } | null = null;
  private over = false;

  constructor(
    private readonly authority: Promise<Authority>, private readonly host: string,
    private readonly tell: Tell,
  ) {}

  /** The guest has sent this. */
  receive(data: Bytes): void {
    this.later(async () => {
      this.received = joined(this.received, data);
      const plain: Bytes[] = [];
      try {
        await this.readRecords(plain);
      } finally {
        if (!this.over) this.tell("plain", String(data.length), joined(...plain));
      }
    });
  }

  /** Encrypt this for the guest. */
  send(data: Bytes): void {
    this.later(async () => {
      const records: Bytes[] = [];
      for (let at = 0; at < data.length; at += RECORD_MOST) {
        records.push(await this.writing!.protect(DATA, data.subarray(at, at + RECORD_MOST)));
      }
      this.tell("records", String(data.length), joined(...records));
    });
  }

  /** Say that nothing more follows. */
  finish(): void {
    this.later(async () => {
      this.tell("records", "1", await this.writing!.protect(ALERT, new Uint8Array([1, 0])));
    });
  }

  /** Say nothing more. */
  close(): void {
    this.over = true;
  }

  private later(act: () => Promise<void>): void {
    this.work = this.work.then(async () => {
      if (this.over) return;
      try {
        await act();
      } catch (error) {
        if (!this.over) await this.fail(error);
      }
    });
  }

  private async fail(error: unknown): Promise<void> {
    const code = error instanceof Alert ? error.code : hello.BAD_RECORD_MAC;
    const alert = new Uint8Array([2, code]);
    const record = this.writing ? await this.writing.protect(ALERT, alert) : plainRecord(ALERT, alert);
    this.tell("records", "0", record);
    this.over = true;
    this.tell("fail", `TLS: ${error instanceof Alert ? error.message : "a record is not genuine"}`, null);
  }

  // Records.

  private async readRecords(plain: Bytes[]): Promise<void> {
    while (!this.over && this.received.length >= 5) {
      const header = this.received.slice(0, 5);
      const length = header[3]! * 256 + header[4]!;
      if (header[1] !== 3 || length > SEALED_MOST) {
        throw new Alert(hello.RECORD_OVERFLOW, "the program sent something else than TLS");
      }
      if (this.received.length < 5 + length) return;
      const content = this.received.slice(5, 5 + length);
      this.received = this.received.slice(5 + length);
      if (header[0] === CHANGE_CIPHER_SPEC) continue;
      if (!this.reading) await this.take(header[0]!, content, plain);
      else if (header[0] !== DATA) throw new Alert(hello.UNEXPECTED_MESSAGE, "a record in clear");
      else {
        const opened = await this.reading.open(header, content);
        await this.take(opened.type, opened.content, plain);
      }
    }
  }

  private async take(type: number, content: Bytes, plain: Bytes[]): Promise<void> {
    if (type === HANDSHAKE) {
      this.messages = joined(this.messages, content);
      await this.readMessages();
    } else if (type === ALERT) {
      if (content[0] !== 1 || content[1] !== 0) {
        this.over = true;
        this.tell("fail", `TLS: the program sent the alert ${Number(content[1])}`, null);
      } else this.tell("closed", "", null);
    } else if (type === DATA && this.next === null && this.reading) plain.push(content);
    else throw new Alert(hello.UNEXPECTED_MESSAGE, "a record at the wrong time");
  }

  private async readMessages(): Promise<void> {
    while (this.messages.length >= 4) {
      const length = (this.messages[1]! << 16) | (this.messages[2]! << 8) | this.messages[3]!;
      if (length > MESSAGE_MOST) throw new Alert(hello.DECODE_ERROR, "a message is too long");
      if (this.messages.length < 4 + length) return;
      const whole = this.messages.slice(0, 4 + length);
      this.messages = this.messages.slice(4 + length);
      const [type, body] = [whole[0]!, whole.slice(4)];
      if (type === CLIENT_HELLO && !this.reading) await this.answerHello(whole, body);
      else if (type === FINISHED && this.next) await this.finishHandshake(body);
      else if (type === KEY_UPDATE && !this.next && this.reading) await this.updateKeys(body);
      else throw new Alert(hello.UNEXPECTED_MESSAGE, "a message at the wrong time");
    }
  }

  // The handshake.

  private async answerHello(whole: Bytes, body: Bytes): Promise<void> {
    const client = hello.readClientHello(body);
    const isAddress = addressBytes(this.host) !== null;
    if (client.serverName === null ? !isAddress : client.serverName !== this.host) {
      const message = `the program asked by TLS (SNI) for another host than ${this.host}`;
      throw new Alert(hello.UNRECOGNIZED_NAME, message);
    }
    const { share, secret } = await agree(client);
    const answer = hello.serverHello(client, share);
    this.transcript = joined(whole, answer);
    const early = await hmac(NO_SECRET, NO_SECRET);
    const handshake = await nextStage(early, secret);
    const soFar = await hash(this.transcript);
    const [theirs, ours] = await Promise.all([
      expand(handshake, "c hs traffic", soFar, HASH_BYTES),
      expand(handshake, "s hs traffic", soFar, HASH_BYTES),
    ]);
    const writing = await RecordKey.of(ours);
    const host = await (await this.authority).forHost(this.host);
    const flight = [hello.encryptedExtensions(client), hello.certificateMessage(host.certificate)];
    let transcript = joined(this.transcript, ...flight);
    const signature = await host.sign(hello.signedContent(await hash(transcript)));
    flight.push(hello.certificateVerify(signature));
    transcript = joined(transcript, flight[2]!);
    flight.push(hello.message(FINISHED, await verifyData(ours, await hash(transcript))));
    this.transcript = joined(transcript, flight[3]!);
    const records = joined(
      plainRecord(HANDSHAKE, answer), COMPATIBLE, await writing.protect(HANDSHAKE, joined(...flight)),
    );
    const all = await hash(this.transcript);
    const master = await nextStage(handshake, NO_SECRET);
    this.expected = await verifyData(theirs, all);
    this.next = {
      reading: await RecordKey.of(await expand(master, "c ap traffic", all, HASH_BYTES)),
      writing: await RecordKey.of(await expand(master, "s ap traffic", all, HASH_BYTES)),
    };
    this.reading = await RecordKey.of(theirs);
    this.writing = writing;
    this.tell("records", "0", records);
  }

  private async finishHandshake(body: Bytes): Promise<void> {
    if (!isEqual(body, this.expected!)) throw new Alert(hello.DECRYPT_ERROR, "a wrong handshake");
    this.reading = this.next!.reading;
    this.writing = this.next!.writing;
    this.next = null;
    this.transcript = NOTHING;
    this.tell("ready", "", null);
  }

  private async updateKeys(body: Bytes): Promise<void> {
    this.reading = await this.reading!.next();
    if (body[0] === 1) {
      const answer = hello.message(KEY_UPDATE, new Uint8Array(1));
      this.tell("records", "0", await this.writing!.protect(HANDSHAKE, answer));
      this.writing = await this.writing!.next();
    }
  }
}

async function verifyData(secret: Bytes, transcript: Bytes): Promise<Bytes> {
  return hmac(await expand(secret, "finished", NOTHING, HASH_BYTES), transcript);
}

/** Our share of the key exchange, and the common secret. */
async function agree(client: hello.ClientHello): Promise<{ share: Bytes; secret: Bytes }> {
  const algorithm =
    client.group === hello.X25519 ? { name: "X25519" } : { name: "ECDH", namedCurve: "P-256" };
  try {
    const pair = (await crypto.subtle.generateKey(algorithm, true, ["deriveBits"])) as CryptoKeyPair;
    const theirs = await crypto.subtle.importKey("raw", client.share, algorithm, false, []);
    const secret = await crypto.subtle.deriveBits(
      { name: algorithm.name, public: theirs }, pair.privateKey, 256,
    );
    const share = await crypto.subtle.exportKey("raw", pair.publicKey);
    return { share: new Uint8Array(share), secret: new Uint8Array(secret) };
  } catch {
    throw new Alert(hello.HANDSHAKE_FAILURE, "the program's key is not valid");
  }
}
