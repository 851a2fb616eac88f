// Small WebAssembly modules, as hostile guests would write them.
//
// Owns the encoding. Rules: nothing here checks that a module is valid.

import { leb } from "../src/kernel/wasm-reader.js";

export type Bytes = number[];

const MAGIC: Bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
export const I32 = 0x7f, FUNCREF = 0x70, EXNREF = 0x69;

export const FUNCTION_KIND = 0, TABLE_KIND = 1, MEMORY_KIND = 2, GLOBAL_KIND = 3, TAG_KIND = 4;

export const named = (text: string): Bytes => {
  const bytes = [...new TextEncoder().encode(text)];
  return [...leb(bytes.length), ...bytes];
};
const section = (id: number, entries: Bytes[]): Bytes => {
  if (!entries.length) return [];
  const body = [...leb(entries.length), ...entries.flat()];
  return [id, ...leb(body.length), ...body];
};

export interface ModuleParts {
  /** Types of functions: parameters and results. Type 0 is () -> (). */
  types?: [parameters: Bytes, results: Bytes][];
  /** Module, name, kind and description. */
  imports?: [string, string, number, Bytes][];
  tables?: Bytes[];
  pages?: number;
  tags?: Bytes[];
  globals?: Bytes[];
  /** Name, kind, index; beside `memory` and `_start`. */
  exports?: [string, number, number][];
  /** Whether `_start` is also called when the module is instantiated. */
  starts?: boolean;
  /** The local variables and the code of `_start`, without its end. */
  locals?: Bytes;
  code?: Bytes;
  /** Types and bodies of functions after `_start`. */
  more?: [type: number, code: Bytes][];
}

/** A module whose `_start` is the first function after the imported ones. */
export function moduleOf(parts: ModuleParts): Uint8Array {
  const types: [Bytes, Bytes][] = [[[], []], ...(parts.types ?? [])];
  const imports = parts.imports ?? [];
  const first = imports.filter(([, , kind]) => kind === FUNCTION_KIND).length;
  const bodies: [number, Bytes, Bytes][] = [
    [0, parts.locals ?? [0], parts.code ?? []],
    ...(parts.more ?? []).map(([type, code]): [number, Bytes, Bytes] => [type, [0], code]),
  ];
  const exports: [string, number, number][] = [
    ["memory", MEMORY_KIND, 0], ["_start", FUNCTION_KIND, first], ...(parts.exports ?? []),
  ];
  return new Uint8Array([
    ...MAGIC,
    ...section(1, types.map(([given, back]) =>
      [0x60, ...leb(given.length), ...given, ...leb(back.length), ...back])),
    ...section(2, imports.map(([module, name, kind, what]) =>
      [...named(module), ...named(name), kind, ...what])),
    ...section(3, bodies.map(([type]) => leb(type))),
    ...section(4, parts.tables ?? []),
    ...section(5, [[0, ...leb(parts.pages ?? 1)]]),
    ...section(13, parts.tags ?? []),
    ...section(6, parts.globals ?? []),
    ...section(7, exports.map(([name, kind, index]) => [...named(name), kind, ...leb(index)])),
    ...(parts.starts ? [8, ...leb(leb(first).length), ...leb(first)] : []),
    ...section(10, bodies.map(([, locals, code]) =>
      [...leb(locals.length + code.length + 1), ...locals, ...code, 0x0b])),
  ]);
}

/** A program that calls a function of type (i32) -> () of the host; its other parts are given. */
export function program(
  module: string, name: string, code: Bytes, others: ModuleParts = {},
): Uint8Array {
  const imports: ModuleParts["imports"] = [[module, name, FUNCTION_KIND, [1]]];
  return moduleOf({ types: [[[I32], []]], imports, code, ...others });
}

/** Call the imported function with 7. */
export const CALL_WITH_7: Bytes = [0x41, 7, 0x10, 0];
export const LOOP_FOR_EVER: Bytes = [0x03, 0x40, 0x0c, 0, 0x0b];
