// Requests of guests on Node: node:http and node:https.
//
// Owns `makeRequest`. Rules: a redirect is an answer like any other: the program follows it with
// another request, which is decided too. The addresses of a name are decided after the look-up, and
// only those are connected to. Unlike `fetch`, this shows redirects and addresses.

import { lookup, type LookupAddress } from "node:dns";
import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { OutsideAnswer, OutsideRequest } from "../../kernel/network/request.js";

export type { OutsideAnswer } from "../../kernel/network/request.js";

const plainAgent = new PlainAgent({ keepAlive: false });
const secureAgent = new SecureAgent({ keepAlive: false });

/** A look-up whose answers are decided. */
function decided(mayUse: (address: string) => boolean): LookupFunction {
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) return callback(error, []);
      const allowed = found.filter(({ address }) => mayUse(address));
      if (allowed.length === 0) {
        const where = found.map(({ address }) => address).join(", ");
        return callback(new Error(`${name} leads to ${where}, which no rule allows`), []);
      }
      if (options.all) callback(null, allowed);
      else callback(null, allowed[0]!.address, allowed[0]!.family);
    });
  };
}

/** A look-up that has one answer. */
function fixed(address: string): LookupFunction {
  const family = isIP(address);
  return (_name, options, callback) =>
    options.all ? callback(null, [{ address, family }]) : callback(null, address, family);
}

function headersOf(pairs: [string, string][]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [written, value] of pairs) {
    const name = written.toLowerCase();
    headers[name] = name in headers ? [headers[name]!, value].flat() : value;
  }
  return headers;
}

function pairsOf(raw: string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at]!, raw[at + 1]!]);
  return pairs;
}

/** Names are looked up here. */
export const findsNames = true;

export function makeRequest(request: OutsideRequest): Promise<OutsideAnswer> {
  const { method, url, body, signal, mayUse, place } = request;
  const isSecure = url.startsWith("https:");
  const options = {
    method, headers: headersOf(request.headers), signal,
    lookup: place ? fixed(place.address) : decided(mayUse), ...(place && { port: place.port }),
  };
  return new Promise((resolve, reject) => {
    const sent = isSecure
      ? secureRequest(url, { ...options, agent: secureAgent })
      : plainRequest(url, { ...options, agent: plainAgent });
    sent.on("error", reject);
    sent.on("response", (response) => resolve(answerOf(response)));
    sent.end(body.length ? body : undefined);
  });
}

function answerOf(response: IncomingMessage): OutsideAnswer {
  const pieces = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return {
    status: response.statusCode ?? 0,
    reason: response.statusMessage ?? "",
    headers: pairsOf(response.rawHeaders),
    read: async () => {
      const { done, value } = await pieces.next();
      return done ? null : new Uint8Array(value); // not a Buffer, which Pyodide does not know
    },
  };
}
