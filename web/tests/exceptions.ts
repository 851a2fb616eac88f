// Programs whose exception handling is rewritten for engines that know only the legacy form.
//
// Owns the tests of kernel/legacy-exceptions.ts. Rules: a module must do the same in both forms. Engines
// that know the final form (Node 24) run both; those that do not (Node 20) run the legacy form.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { withLegacyExceptions } from "../src/kernel/legacy-exceptions.js";
import { reshape } from "../src/kernel/module-form.js";
import { Refused } from "../src/kernel/wasm-reader.js";
import { knowsFinalExceptions } from "../src/platform/final-exceptions.js";
import { EXNREF, FUNCTION_KIND, I32, moduleOf, type Bytes, type ModuleParts } from "./modules.js";

const I64 = 0x7e, VOID = 0x40, NULLABLE = 0x63;
const NOTE: Bytes = [0x10, 0], FAIL: Bytes = [0x10, 1], END = 0x0b, UNREACHABLE = 0x00, THROW_REF = 0x0a;
const number = (value: number): Bytes => [0x41, value];
const block = (type: number, ...code: (number | Bytes)[]): Bytes => [0x02, type, ...code.flat(), END];
const loop = (type: number, ...code: (number | Bytes)[]): Bytes => [0x03, type, ...code.flat(), END];
const throws = (tag: number, ...values: Bytes[]): Bytes => [...values.flat(), 0x08, tag];
const br = (label: number): Bytes => [0x0c, label];
const get = (local: number): Bytes => [0x20, local];
const set = (local: number): Bytes => [0x21, local];

// Clauses of try_table.
const catches = (tag: number, label: number): Bytes => [0, tag, label];
const catchesRef = (tag: number, label: number): Bytes => [1, tag, label];
const catchesAll = (label: number): Bytes => [2, label];
const catchesAllRef = (label: number): Bytes => [3, label];
const tryTable = (type: number, clauses: Bytes[], ...code: (number | Bytes)[]): Bytes =>
  [0x1f, type, clauses.length, ...clauses.flat(), ...code.flat(), END];

/** Types of functions after () -> (). */
const ONE = 1, BOTH = 2, NUMBER = 3, REFERENCE = 4, PAIR = 5, LARGE = 6;
const PARTS: ModuleParts = {
  types: [
    [[I32], []], [[], [I32, EXNREF]], [[I32], [I32]], [[EXNREF], [EXNREF]], [[I32, I32], []], [[I64], []],
  ],
  imports: [["host", "note", FUNCTION_KIND, [ONE]], ["host", "fail", FUNCTION_KIND, [0]]],
  /** Tags 0 and 1 carry one i32, tag 2 carries nothing. */
  tags: [[0, ONE], [0, ONE], [0, 0]],
};

class Failure extends Error {}

/** What a module notes, and how it ends. */
function outcome(bytes: Uint8Array): { notes: number[]; end: string } {
  const notes: number[] = [];
  let end = "returned";
  const host = {
    note: (value: number) => void notes.push(value),
    fail: () => {
      throw new Failure();
    },
  };
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes as BufferSource), { host });
    (exports["_start"] as () => void)();
  } catch (error) {
    if (error instanceof WebAssembly.CompileError) throw error;
    end = (error as Error).constructor.name;
  }
  return { notes, end };
}

interface Behaviour {
  parts?: ModuleParts;
  code: Bytes;
  notes: number[];
  end?: string;
}

/** Each of them is the code of a function of type () -> (). */
const BEHAVIOURS: Record<string, Behaviour> = {
  "a clause gets the number of its exception": {
    code: [...block(I32, tryTable(VOID, [catches(0, 0)], throws(0, number(7))), UNREACHABLE), ...NOTE],
    notes: [7],
  },
  "an exception of another tag passes": {
    code: [
      ...block(I32,
        tryTable(VOID, [catches(1, 0)],
          block(I32, tryTable(VOID, [catches(0, 0)], throws(1, number(9))), UNREACHABLE), NOTE),
        UNREACHABLE),
      ...NOTE,
    ],
    notes: [9],
  },
  "an exception that nobody catches leaves": {
    code: [...block(I32, tryTable(VOID, [catches(0, 0)], throws(1, number(9))), UNREACHABLE), ...NOTE],
    notes: [], end: "Exception",
  },
  "the first clause that matches wins": {
    code: block(VOID,
      block(I32,
        block(I32, tryTable(VOID, [catches(0, 0), catches(0, 1), catchesAll(2)], throws(0, number(1))),
          UNREACHABLE),
        NOTE, number(2), NOTE, br(1)),
      NOTE, number(3), NOTE),
    notes: [1, 2],
  },
  "a clause for all comes before what follows": {
    code: block(VOID,
      block(I32, tryTable(VOID, [catchesAll(1), catches(0, 0)], throws(0, number(1))), UNREACHABLE),
      NOTE),
    notes: [],
  },
  "labels of clauses count from outside, those of the body from inside": {
    code: block(VOID,
      block(I32,
        tryTable(VOID, [catches(0, 0)],
          block(VOID, number(1), [0x0d, 1], UNREACHABLE), UNREACHABLE),
        number(4), NOTE,
        tryTable(VOID, [catches(0, 0)], throws(0, number(5)), br(0)),
        UNREACHABLE),
      NOTE),
    notes: [4, 5],
  },
  "a clause may go to a loop, and to the end of the function": {
    parts: { locals: [1, 1, I32] },
    code: [
      ...number(0),
      ...loop(NUMBER, set(0), get(0), NOTE,
        tryTable(VOID, [catches(0, 0), catchesAll(1)],
          get(0), number(3), 0x48, [0x04, VOID], throws(0, get(0), number(1), [0x6a]), END,
          throws(2)),
        number(9)),
      ...NOTE,
    ],
    notes: [0, 1, 2, 3],
  },
  "a block with parameters and results": {
    code: [
      ...block(I32, number(20), tryTable(NUMBER, [catches(0, 0)], number(1), 0x6a)),
      ...NOTE,
      ...block(I32, number(20), tryTable(NUMBER, [catches(0, 0)], throws(0)), number(1), 0x6a),
      ...NOTE,
    ],
    notes: [21, 20],
  },
  "a clause with a reference gets the number too, and the reference throws the same": {
    parts: { locals: [2, 1, EXNREF, 1, I32] },
    code: [
      ...block(I32,
        tryTable(VOID, [catches(0, 0)],
          block(BOTH, tryTable(VOID, [catchesRef(0, 0)], throws(0, number(11))), UNREACHABLE),
          set(0), NOTE, get(0), THROW_REF),
        UNREACHABLE),
      ...NOTE,
    ],
    notes: [11, 11],
  },
  "a clause for all with a reference keeps tag and number": {
    code: [0, 1].flatMap((tag) => block(VOID,
      block(I32,
        block(I32,
          tryTable(VOID, [catches(0, 1), catches(1, 0)],
            block(EXNREF, tryTable(VOID, [catchesAllRef(0)], throws(tag, [0x41, 0x7f])), UNREACHABLE),
            THROW_REF),
          UNREACHABLE),
        NOTE, number(1), NOTE, br(1)),
      NOTE, number(0), NOTE)),
    notes: [-1, 0, -1, 1],
  },
  "an exception without a number has a reference too": {
    code: [
      ...block(VOID,
        tryTable(VOID, [catches(2, 0)],
          block(EXNREF, tryTable(VOID, [catchesRef(2, 0)], throws(2)), UNREACHABLE), THROW_REF),
        UNREACHABLE),
      ...number(6), ...NOTE,
    ],
    notes: [6],
  },
  "a reference is given to functions, chosen and kept": {
    parts: { locals: [1, 1, EXNREF], more: [[REFERENCE, [0x20, 0]]] },
    code: [
      ...block(I32,
        tryTable(VOID, [catches(0, 0)],
          block(EXNREF, tryTable(VOID, [catchesAllRef(0)], throws(0, number(13))), UNREACHABLE),
          [0x10, 3], set(0), get(0), [0xd0, EXNREF], number(1), [0x1c, 1, EXNREF], THROW_REF),
        UNREACHABLE),
      ...NOTE,
    ],
    notes: [13],
  },
  "a reference of the long type": {
    parts: { locals: [1, 1, NULLABLE, EXNREF] },
    code: [
      ...block(I32,
        tryTable(VOID, [catches(1, 0)],
          [0x02, NULLABLE, EXNREF], tryTable(VOID, [catchesAllRef(0)], throws(1, number(8))), UNREACHABLE, END,
          set(0), get(0), THROW_REF),
        UNREACHABLE),
      ...NOTE,
    ],
    notes: [8],
  },
  "throwing null is a trap": {
    parts: { locals: [1, 1, EXNREF] },
    code: [...get(0), THROW_REF], notes: [], end: "RuntimeError",
  },
  "an exception of the host passes a clause for all that throws it again": {
    code: [...block(EXNREF, tryTable(VOID, [catchesAllRef(0)], FAIL), UNREACHABLE), THROW_REF],
    notes: [], end: "Failure",
  },
  "an exception of the host is caught by a clause for all without a reference": {
    code: [...block(VOID, tryTable(VOID, [catchesAll(0)], FAIL), UNREACHABLE), ...number(1), ...NOTE],
    notes: [1],
  },
  "a trap is not caught": {
    code: block(VOID, tryTable(VOID, [catchesAll(0)], UNREACHABLE)), notes: [], end: "RuntimeError",
  },
  "a block without clauses": { code: [...tryTable(VOID, [], br(0)), ...number(2), ...NOTE], notes: [2] },
  "exceptions with other numbers, without references": {
    parts: { tags: [[0, PAIR], [0, LARGE]], locals: [1, 2, I32] },
    code: [
      ...block(VOID,
        block(I64, tryTable(VOID, [catches(1, 0), catchesAll(1)], throws(1, [0x42, 5])), UNREACHABLE),
        0xa7, NOTE),
      ...block(VOID, tryTable(VOID, [catchesAll(0)], throws(0, number(1), number(2)))),
    ],
    notes: [5],
  },
};

for (const [name, { parts, code, notes, end = "returned" }] of Object.entries(BEHAVIOURS)) {
  test(`exceptions in the legacy form: ${name}`, () => {
    const module = moduleOf({ ...PARTS, ...parts, code });
    const legacy = withLegacyExceptions(module);
    assert.deepEqual(outcome(legacy), { notes, end });
    assert.equal(withLegacyExceptions(legacy), legacy, "the result has no final form any more");
    if (knowsFinalExceptions()) assert.deepEqual(outcome(module), { notes, end }, "in the final form");
  });
}

const caught = (tag: number) =>
  block(EXNREF, tryTable(VOID, [catchesAllRef(0)], throws(tag, number(1))), UNREACHABLE);
const REFUSED: Record<string, [ModuleParts, RegExp]> = {
  "exceptions that hold exceptions": [{ tags: [[0, REFERENCE]] }, /carry references/],
  "a global of exceptions": [
    { code: [...caught(0), 0x1a], globals: [[EXNREF, 1, 0xd0, EXNREF, END]] }, /keeps a reference/,
  ],
  "references to exceptions with two numbers": [
    { tags: [[0, PAIR]], code: block(EXNREF, tryTable(VOID, [catchesAllRef(0)]), UNREACHABLE) },
    /something else than one i32.*Node 22/,
  ],
  "references to an unknown tag": [
    { code: block(BOTH, tryTable(VOID, [catchesRef(9, 0)]), UNREACHABLE) }, /unknown tag/,
  ],
  "many kinds of exceptions": [
    { tags: Array.from({ length: 9 }, () => [0, ONE]), code: [...caught(0), 0x1a] }, /more than 8 kinds/,
  ],
  "both forms": [{ code: [...caught(0), 0x1a, 0x06, VOID, 0x19, END] }, /both forms/],
  "a clause of an unknown kind": [{ code: tryTable(VOID, [[4, 0, 0]]) }, /unknown kind/],
  "an instruction that is not known": [{ code: [...caught(0), 0x1a, 0xfb, 0] }, /not known/],
  "handlers that make the code much larger": [
    {
      tags: Array.from({ length: 8 }, () => [0, ONE]),
      code: Array.from({ length: 20_000 }, () => tryTable(VOID, [catchesAllRef(0)])).flat(),
    },
    /too many handlers/,
  ],
};

for (const [what, [parts, message]] of Object.entries(REFUSED)) {
  test(`exceptions in the legacy form: a module is refused that has ${what}`, () => {
    const module = moduleOf({ ...PARTS, ...parts });
    assert.throws(() => withLegacyExceptions(module), (error: Error) => {
      assert.ok(error instanceof Refused, String(error));
      assert.match(error.message, message);
      return true;
    });
  });
}

test("exceptions in the legacy form: damaged modules are refused, or the engine refuses them", () => {
  let state = 1;
  const random = (below: number) => (state = (state * 48271) % 0x7fffffff) % below;
  let rewritten = 0;
  for (const { parts, code } of Object.values(BEHAVIOURS)) {
    const module = moduleOf({ ...PARTS, ...parts, code });
    for (let round = 0; round < 200; round++) {
      const damaged = module.slice(0, round % 4 ? module.length : random(module.length));
      for (let left = 1 + random(3); left && damaged.length; left--) damaged[random(damaged.length)] = random(256);
      try {
        WebAssembly.validate(withLegacyExceptions(damaged) as BufferSource);
        rewritten++;
      } catch (error) {
        assert.ok(error instanceof Refused, `${(error as Error).stack}: ${[...damaged]}`);
      }
    }
  }
  assert.ok(rewritten > 100, `${rewritten} were rewritten`);
});

test("exceptions in the legacy form: all programs of the image are valid", { timeout: 120_000 }, () => {
  const image = new URL("../../../src/wasmsand/_image/", import.meta.url);
  const names = readdirSync(image).filter((name) => name.endsWith(".wasm"));
  assert.ok(names.length > 50, `${names.length} programs`);
  for (const name of names) {
    const { bytes } = reshape(new Uint8Array(readFileSync(new URL(name, image))), "workers");
    const legacy = withLegacyExceptions(bytes);
    assert.notEqual(legacy, bytes, `${name} has nothing to rewrite`);
    assert.ok(WebAssembly.validate(legacy as BufferSource), name);
  }
});
