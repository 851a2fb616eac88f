// What a program of a guest may declare, so that it cannot take memory of the page that nobody counts.
//
// Owns `limitDeclarations`, `limitFunction` and reading the types of parameters. Linear memory is charged to the sandbox; tables,
// exceptions and what the compiler needs are memory of the JavaScript engine, and a page or process that
// has too little of it ends. Rules: the limits of tables are those of the server's engine. An exception must not be kept
// anywhere but on the stack, which is small: so no table and no global holds exceptions, and no exception
// holds another one. The module is valid.

import type { FunctionScan } from "./instructions.js";
import { GLOBAL, TABLE, TAG, TYPE, type Sections } from "./module-sections.js";
import { leb, Reader, Refused } from "./wasm-reader.js";

/** As in engine/wasmtime/config.py. */
const TABLES_MAX = 2;
const TABLE_ELEMENTS_MAX = 131_072;
/** How many numbers an exception may carry. Those of compilers carry one. */
const TAG_PARAMETERS_MAX = 16;

/** Compilers keep the state of each local variable for each block: about 12 bytes in V8. The largest
 *  function of our own programs has a fiftieth of this. */
const LOCALS_IN_BLOCKS_MAX = 1 << 22;

const FUNCREF = 0x70, HAS_MOST = 1, WITH_VALUE = 0x40;
/** The types of numbers: v128, f64, f32, i64, i32. */
const FIRST_NUMBER = 0x7b, LAST_NUMBER = 0x7f;

/** Throws `Refused` for a program of a guest that declares too much; else bounds its tables. */
export function limitDeclarations(sections: Sections): void {
  limitTables(sections);
  limitTags(sections);
  limitGlobals(sections);
}

/** Throws `Refused` for a function that takes too much memory to compile. */
export function limitFunction({ locals, blocks }: FunctionScan): void {
  if (locals * blocks > LOCALS_IN_BLOCKS_MAX) {
    throw new Refused(`has a function with ${locals} local variables and ${blocks} blocks`);
  }
}

function limitTables(sections: Sections): void {
  const body = sections.body(TABLE);
  if (!body) return;
  const reader = new Reader(body);
  const count = reader.u32();
  if (count > TABLES_MAX) throw new Refused(`has ${count} tables; ${TABLES_MAX} are allowed`);
  const tables = Array.from({ length: count }, () => limitedTable(reader));
  sections.put(TABLE, [...leb(count), ...tables.flat()]);
}

function limitedTable(reader: Reader): number[] {
  const type = reader.byte();
  if (type === WITH_VALUE) throw new Refused("has a table with a first value");
  if (type !== FUNCREF) throw new Refused("has a table of something else than functions");
  const { flags, first, most } = reader.limits();
  if (flags & ~HAS_MOST) throw new Refused("has a table of an unknown kind");
  if (first > TABLE_ELEMENTS_MAX) {
    throw new Refused(`has a table of ${first} elements; ${TABLE_ELEMENTS_MAX} are allowed`);
  }
  const bound = Math.min(flags & HAS_MOST ? most : TABLE_ELEMENTS_MAX, TABLE_ELEMENTS_MAX);
  return [FUNCREF, HAS_MOST, ...leb(first), ...leb(bound)];
}

function limitTags(sections: Sections): void {
  const body = sections.body(TAG);
  if (!body) return;
  const carried = parameterTypes(sections.body(TYPE));
  const reader = new Reader(body);
  for (let left = reader.u32(); left; left--) {
    reader.byte();
    const parameters = carried[reader.u32()] ?? [];
    if (parameters.length > TAG_PARAMETERS_MAX) {
      throw new Refused(`has exceptions with more than ${TAG_PARAMETERS_MAX} numbers`);
    }
    if (!parameters.every(isNumber)) throw new Refused("has exceptions that carry references");
  }
}

function limitGlobals(sections: Sections): void {
  const body = sections.body(GLOBAL);
  if (!body) return;
  const reader = new Reader(body);
  for (let left = reader.u32(); left; left--) {
    const { type } = reader.globalType();
    if (!isNumber(type) && type !== FUNCREF) throw new Refused("has a global that keeps a reference");
    reader.skipConstant();
  }
}

export function isNumber(type: number): boolean {
  return type >= FIRST_NUMBER && type <= LAST_NUMBER;
}

/** The first byte of each parameter's type, of each type of a function. */
export function parameterTypes(body: Uint8Array | undefined): number[][] {
  const reader = new Reader(body ?? Uint8Array.of(0));
  return Array.from({ length: reader.u32() }, () => {
    reader.byte();
    const parameters = valueTypes(reader);
    valueTypes(reader);
    return parameters;
  });
}

function valueTypes(reader: Reader): number[] {
  return Array.from({ length: reader.u32() }, () => {
    const type = reader.bytes[reader.at] ?? 0;
    reader.skipType();
    return type;
  });
}
