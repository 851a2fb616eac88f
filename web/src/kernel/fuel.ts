// Turns of programs that share one worker with the kernel.
//
// Owns `addFuel`, by which a program counts its own work and lets others run when enough is done.
// Each loop and each function that calls others takes from a counter, in proportion to its length;
// so do instructions that work on whole ranges. When the counter is used up, the program calls
// `due`, and if that says so, `yield`, which suspends it. Rules: no program may run for long between
// two calls of `due`, whatever it does, because nothing else can stop it. So a module with an
// instruction that is not known is refused. A module must be valid before this changes it: then
// nothing in it can refer to what is added.

import { GROW, scanFunction, type FunctionScan } from "./instructions.js";
import { limitFunction } from "./module-limits.js";
import {
  CODE, EXPORT, FUNCTION, GLOBAL, named, START, TABLE, TYPE, type Sections,
} from "./module-sections.js";
import { leb, Output, Reader, Refused, signedLeb } from "./wasm-reader.js";

/** How much work there is between two calls of `due`. */
const FUEL = 1 << 16;
/** So many bytes of code, or of memory, are one unit of work: 2 ** 8. */
const BYTES_SHIFT = 8;
/** The work of an instruction on a table or a data segment, and of memory.grow. */
const RANGE_WORK = 1 << 14;
const GROW_WORK = 1 << 10;
/** Functions that call no others are only counted if they are longer. */
const SHORT_BYTES = 256;

/** Exports of the changed module: a table with the functions `due` and `yield`, and a number that is
 *  not 0 while a handler runs that a loop has called. */
export const TURNS = "wasmsand_turns";
export const NESTED = "wasmsand_nested";
/** The function that the module wanted to be called when it is instantiated. */
export const STARTS = "wasmsand_start";

const I32 = 0x7f, FUNCREF = 0x70, EXNREF = 0x69;
const MEMORY_COPY = 10, MEMORY_FILL = 11, DROPS = [9, 13, 16];

interface Added {
  fuel: number[];
  poll: number[];
  copy: number[];
  fill: number[];
}

/** Change a module whose functions are `functionCount`, imported ones included. `handlers` is the
 *  index of the function that runs signal handlers, or -1. Throws `Refused`. */
export function addFuel(sections: Sections, functionCount: number, handlers: number): void {
  const code = sections.body(CODE);
  if (!code) throw new Refused("has no code");
  const global = sections.append(
    GLOBAL, [I32, 1, 0x41, ...signedLeb(FUEL), 0x0b], [I32, 1, 0x41, 0, 0x0b],
  );
  const table = sections.append(TABLE, [FUNCREF, 1, 2, 2]);
  const types = sections.append(
    TYPE, [0x60, 0, 0], [0x60, 0, 1, I32], [0x60, 3, I32, I32, I32, 0],
  );
  sections.append(FUNCTION, leb(types), leb(types + 2), leb(types + 2));
  sections.append(
    EXPORT, [...named(TURNS), 1, ...leb(table)], [...named(NESTED), 3, ...leb(global + 1)],
  );
  const start = sections.body(START);
  if (start) {
    sections.append(EXPORT, [...named(STARTS), 0, ...leb(new Reader(start).u32())]);
    sections.remove(START);
  }
  const added: Added = {
    fuel: leb(global), poll: leb(functionCount), copy: leb(functionCount + 1),
    fill: leb(functionCount + 2),
  };
  const { body, hasLegacyTry } = countedCode(code, added);
  sections.put(CODE, body);
  // An engine refuses modules with both forms of exception handling.
  const runs = handlers >= 0 && !hasLegacyTry ? handling(leb(handlers), leb(global + 1)) : [];
  sections.append(
    CODE,
    sized([0, ...pollCode(added.fuel, leb(types + 1), leb(table), runs), 0x0b]),
    sized([0, ...rangeCode(added, [0xfc, MEMORY_COPY, 0, 0]), 0x0b]),
    sized([0, ...rangeCode(added, [0xfc, MEMORY_FILL, 0]), 0x0b]),
  );
}

function sized(code: number[]): number[] {
  return [...leb(code.length), ...code];
}

/** Take from the counter, and call `poll` if it is used up. */
function take({ fuel, poll }: Added, work: number[]): number[] {
  return [
    0x23, ...fuel, ...work, 0x6b, 0x24, ...fuel, 0x23, ...fuel, 0x41, 0, 0x48, 0x04, 0x40,
    0x10, ...poll, 0x0b,
  ];
}

function takeConstant(added: Added, work: number): number[] {
  return take(added, [0x41, ...signedLeb(work)]);
}

/** A function that does what an instruction with a length as its third operand does. */
function rangeCode(added: Added, instruction: number[]): number[] {
  return [
    ...take(added, [0x20, 2, 0x41, BYTES_SHIFT, 0x76]),
    0x20, 0, 0x20, 1, 0x20, 2, ...instruction,
  ];
}

function pollCode(fuel: number[], type: number[], table: number[], runs: number[]): number[] {
  const call = (index: number) => [0x41, index, 0x11, ...type, ...table];
  return [
    0x41, ...signedLeb(FUEL), 0x24, ...fuel,
    ...call(0), 0x45, 0x04, 0x40, 0x0f, 0x0b,
    ...call(1), 0x04, 0x40, ...runs, 0x0b,
  ];
}

/** Run signal handlers; `nested` is 1 meanwhile, also if they leave by an exception. */
function handling(handlers: number[], nested: number[]): number[] {
  const set = (value: number) => [0x41, value, 0x24, ...nested];
  return [
    ...set(1), 0x02, EXNREF, 0x1f, 0x40, 1, 3, 0, 0x10, ...handlers, 0x0b, ...set(0), 0x0f, 0x0b,
    ...set(0), 0x0a,
  ];
}

function countedCode(code: Uint8Array, added: Added): { body: Uint8Array; hasLegacyTry: boolean } {
  const out = new Output(code.length + (code.length >> 1) + 1024);
  const reader = new Reader(code);
  let hasLegacyTry = false;
  const count = reader.u32();
  out.add(leb(count));
  for (let left = count; left; left--) {
    const size = reader.u32();
    const begin = reader.at;
    const scan = scanFunction(reader, begin + size);
    if (scan === null) throw new Refused("has an instruction that is not known here");
    limitFunction(scan);
    hasLegacyTry ||= scan.hasLegacyTry;
    const changes = changesOf(scan, size, added);
    const grown = changes.reduce((sum, { code, at, end }) => sum + code.length - (end - at), size);
    out.add(leb(grown));
    let from = begin;
    for (const { at, end, code: replacement } of changes) {
      out.add(code.subarray(from, at));
      out.add(replacement);
      from = end;
    }
    out.add(code.subarray(from, begin + size));
  }
  return { body: out.bytes(), hasLegacyTry };
}

interface Change {
  at: number;
  end: number;
  code: number[];
}

function changesOf(scan: FunctionScan, size: number, added: Added): Change[] {
  const changes: Change[] = [];
  const counted = (at: number, work: number) =>
    changes.push({ at, end: at, code: takeConstant(added, work) });
  if (scan.hasCalls || size > SHORT_BYTES) counted(scan.begin, 1 + (size >> BYTES_SHIFT));
  for (const loop of scan.loops) counted(loop.at, 1 + (loop.size >> BYTES_SHIFT));
  for (const { at, end, code } of scan.large) {
    if (code === MEMORY_COPY) changes.push({ at, end, code: [0x10, ...added.copy] });
    else if (code === MEMORY_FILL) changes.push({ at, end, code: [0x10, ...added.fill] });
    else if (code === GROW) counted(at, GROW_WORK);
    else if (!DROPS.includes(code)) counted(at, RANGE_WORK);
  }
  return changes.sort((one, other) => one.at - other.at);
}
