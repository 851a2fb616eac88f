// The form in which programs run here: their memory is imported, so that the kernel reaches it, and
// their data is copied into it by the kernel, before the program starts. In workers of their own,
// programs share their memory with the kernel's worker, and look at their signal flag in loops; in
// the kernel's worker, they count their work and let others run.
//
// Owns `reshape`, which rewrites a module to that form and describes it. Rules: the bytes may come
// from a hostile guest. What this cannot read is refused; what it passes on is validated by the
// engine when it compiles it. Sections that it does not know are copied.

import { addFuel } from "./fuel.js";
import { limitDeclarations } from "./module-limits.js";
import {
  CODE, DATA, EXPORT, FUNCTION, GLOBAL, IMPORT, MEMORY, named, Sections, TYPE,
} from "./module-sections.js";
import { POLL, withPolls } from "./polls.js";
import { leb, Output, Reader, Refused } from "./wasm-reader.js";

export { POLL, Refused };

/** A part of the initial memory. */
export interface Segment {
  address: number;
  bytes: Uint8Array;
}

/** A rewritten module and what the kernel needs to know of it. */
export interface Form {
  bytes: Uint8Array;
  segments: Segment[];
  firstPages: number;
  mostPages: number;
  imports: [module: string, name: string][];
  procedures: string[];
  addresses: [name: string, value: number][];
  variables: [name: string, value: number][];
  /** Whether it exports the entry of further threads. */
  startsThreads: boolean;
}

export const MEMORY_MODULE = "wasmsand";
export const MEMORY_NAME = "memory";
const PAGES_MAX = 65536;
const THREAD_ENTRY = "__thread_start";
const HANDLERS = "__signal_run";

const I32 = 0x7f;

/** How programs run: in workers of their own, or suspended in the kernel's worker. */
export type Driver = "workers" | "suspending";

/** Rewrite a module. If it is of a guest, or counts its work, which is so for "suspending", it must be
 *  valid. In a worker, programs of guests count too: engines end a worker only where its program looks whether
 *  it should end, and a loop of instructions that take long need not. Throws `Refused`. */
export function reshape(bytes: Uint8Array, driver: Driver, isOfGuest = false): Form {
  const form: Form = {
    bytes, segments: [], firstPages: 0, mostPages: PAGES_MAX,
    imports: [], procedures: [], addresses: [], variables: [], startsThreads: false,
  };
  const parts = new Sections(bytes);
  if (isOfGuest) limitDeclarations(parts);
  const body = (id: number) => parts.body(id);
  const types = readTypes(body(TYPE));
  const functions: number[] = [];
  const globals: { mutable: boolean; value: number | null }[] = [];
  if (body(IMPORT)) {
    const reader = new Reader(body(IMPORT)!);
    for (let left = reader.u32(); left; left--) {
      const pair: [string, string] = [reader.name(), reader.name()];
      form.imports.push(pair);
      const kind = reader.byte();
      if (kind === 0) functions.push(reader.u32());
      else throw new Refused(`imports ${pair.join(".")}, which is not a function`);
    }
  }
  for (const index of numbers(body(FUNCTION))) functions.push(index);
  const memory = body(MEMORY);
  if (!memory) throw new Refused("has no memory");
  const reader = new Reader(memory);
  if (reader.u32() !== 1) throw new Refused("has several memories");
  const limits = reader.limits();
  form.firstPages = limits.first;
  form.mostPages = Math.min(limits.most, PAGES_MAX);
  if (limits.first > PAGES_MAX) throw new Refused("needs more memory than there can be");
  if (body(GLOBAL)) readGlobals(new Reader(body(GLOBAL)!), globals);
  let handlers = -1;
  if (body(EXPORT)) {
    handlers = readExports(new Reader(body(EXPORT)!), form, functions, types, globals);
  }
  if (body(DATA)) parts.put(DATA, readData(new Reader(body(DATA)!), form));
  if (driver === "suspending") addFuel(parts, functions.length, handlers);
  else {
    const added = addPolls(parts, form, types, functions.length) ? 1 : 0;
    if (isOfGuest) addFuel(parts, functions.length + added, -1);
  }
  parts.remove(MEMORY);
  const shared = driver === "workers" ? 2 : 0;
  parts.append(IMPORT, [
    ...named(MEMORY_MODULE), ...named(MEMORY_NAME), 2, 1 | shared,
    ...leb(limits.first), ...leb(PAGES_MAX),
  ]);
  form.bytes = parts.bytes();
  return form;
}

/** Of each type: "" for `() -> ()`, "i" for `(i32) -> ()`, null for all others. */
function readTypes(body: Uint8Array | undefined): (string | null)[] {
  const kinds: (string | null)[] = [];
  if (!body) return kinds;
  const reader = new Reader(body);
  for (let left = reader.u32(); left; left--) {
    if (reader.byte() !== 0x60) throw new Refused("has types that are not of functions");
    let parameters: string | null = "";
    for (let n = reader.u32(); n; n--) {
      const isNumber = valueType(reader) === I32;
      parameters = isNumber && parameters === "" ? "i" : null;
    }
    let results = reader.u32();
    if (results) parameters = null;
    for (; results; results--) valueType(reader);
    kinds.push(parameters);
  }
  return kinds;
}

function valueType(reader: Reader): number {
  const type = reader.byte();
  if (type === 0x63 || type === 0x64) reader.u32();
  return type;
}

function* numbers(body: Uint8Array | undefined): Generator<number> {
  if (!body) return;
  const reader = new Reader(body);
  for (let left = reader.u32(); left; left--) yield reader.u32();
}

function readGlobals(
  reader: Reader, globals: { mutable: boolean; value: number | null }[],
): void {
  for (let left = reader.u32(); left; left--) {
    const { type, mutable } = reader.globalType();
    const start = reader.at;
    let value = type === I32 ? reader.constant() : null;
    if (value === null) {
      reader.at = start;
      reader.skipConstant();
    } else value >>>= 0;
    globals.push({ mutable, value });
  }
}

/** Returns the index of the function that runs signal handlers, or -1. */
function readExports(
  reader: Reader, form: Form, functions: number[], types: (string | null)[],
  globals: { mutable: boolean; value: number | null }[],
): number {
  let handlers = -1;
  for (let left = reader.u32(); left; left--) {
    const name = reader.name();
    const kind = reader.byte();
    const index = reader.u32();
    if (/[\t\n]/.test(name)) continue;
    if (kind === 0) {
      const type = functions[index];
      if (type === undefined) continue;
      if (types[type] === "") form.procedures.push(name);
      if (types[type] === "" && name === HANDLERS) handlers = index;
      if (types[type] === "i" && name === THREAD_ENTRY) form.startsThreads = true;
    } else if (kind === 3) {
      const found = globals[index];
      if (found && found.value !== null) {
        (found.mutable ? form.variables : form.addresses).push([name, found.value]);
      }
    }
  }
  return handlers;
}

/** The data section with the active segments taken out: they stay, without content. */
function readData(reader: Reader, form: Form): Uint8Array {
  const size = form.firstPages * 65536;
  const count = reader.u32();
  const rest = new Output(1024);
  rest.add(leb(count));
  for (let left = count; left; left--) {
    const flags = reader.u32();
    if (flags === 1) {
      const bytes = reader.take(reader.u32());
      rest.add([1, ...leb(bytes.length)]);
      rest.add(bytes);
      continue;
    }
    if (flags === 2 && reader.u32() !== 0) throw new Refused("has data for another memory");
    if (flags > 2) throw new Refused("has data of an unknown kind");
    const address = reader.constant();
    if (address === null) throw new Refused("has data at an address that is not constant");
    const bytes = reader.take(reader.u32());
    if ((address >>> 0) + bytes.length > size) throw new Refused("has data outside its memory");
    form.segments.push({ address: address >>> 0, bytes });
    rest.add([1, 0]);
  }
  return rest.bytes();
}

/** Let the program look at its signal flag in every loop, if it has one: whether a
 *  function was added. */
function addPolls(
  parts: Sections, form: Form, types: (string | null)[], functionCount: number,
): boolean {
  const flag = form.addresses.find(([name]) => name === "__signal_flag")?.[1];
  const syscall = form.imports.findIndex((pair) => pair.join(".") === "linux.syscall");
  const type = types.indexOf("");
  if (flag === undefined || syscall < 0 || type < 0 || !parts.body(CODE)) return false;
  if (flag % 4 || flag + 4 > form.firstPages * 65536) return false;
  if (!form.procedures.includes(HANDLERS)) return false;
  const code = withPolls(parts.body(CODE)!, flag, functionCount, syscall);
  if (code === null) return false;
  parts.append(FUNCTION, leb(type));
  parts.put(CODE, code);
  return true;
}
