// The functions that a program calls when it has done enough work (kernel/fuel.ts).
//
// Owns `setTurns`.

/** A module with the functions `due` and `yield`, which call imports. A table holds only functions of
 *  WebAssembly. */
const TURN_FUNCTIONS = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f,
  2, 13, 2, 1, 0x74, 1, 0x64, 0, 0, 1, 0x74, 1, 0x79, 0, 0,
  3, 3, 2, 0, 0, 7, 9, 2, 1, 0x64, 0, 2, 1, 0x79, 0, 3,
  10, 11, 2, 4, 0, 0x10, 0, 0x0b, 4, 0, 0x10, 1, 0x0b,
]);
let turnFunctions: WebAssembly.Module | undefined;

/** Let a program whose exported table this is call `due` and `yields`. */
export function setTurns(
  table: unknown, due: () => number, yields: WebAssembly.ImportValue,
): void {
  turnFunctions ??= new WebAssembly.Module(TURN_FUNCTIONS);
  const { exports } = new WebAssembly.Instance(turnFunctions, { t: { d: due, y: yields } });
  (table as WebAssembly.Table).set(0, exports.d);
  (table as WebAssembly.Table).set(1, exports.y);
}
