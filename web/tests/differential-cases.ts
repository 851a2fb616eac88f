// The cases of tests/differential as tests: byte for byte as natively.
//
// Owns the list of cases with their native outcomes, which scripts/web_tests writes.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { DifferentialCase } from "./differential.js";

const outcomes = new URL("../../../build/native-outcomes.json", import.meta.url);
const hasOutcomes = existsSync(outcomes);
const TIMEOUT_MS = 120_000;

export const skip = hasOutcomes ? false : "no native outcomes: see scripts/web_tests";
export const differentialCases: DifferentialCase[] = hasOutcomes
  ? JSON.parse(readFileSync(outcomes, "utf8")).cases : [];

/** `lacking`: cases that must differ, and the rows of docs/limitations.md that say why. */
export function testAll(
  chosen: DifferentialCase[], lacking: ReadonlyMap<string, string>,
  differs: (one: DifferentialCase) => Promise<string[]>,
): void {
  for (const one of chosen) {
    const row = lacking.get(one.name);
    test(row ? `${row}: ${one.name}` : one.name, { timeout: TIMEOUT_MS }, async () => {
      const found = await differs(one);
      if (row) assert.notDeepEqual(found, [], `the case does as natively: remove ${row}`);
      else assert.deepEqual(found, [], one.script);
    });
  }
}
