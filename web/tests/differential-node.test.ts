// The cases of tests/differential under Node, byte for byte as natively.

import { after, describe } from "node:test";
import { differentialCases, skip, testAll } from "./differential-cases.js";
import { Differential } from "./differential.js";

const root = new URL("../../", import.meta.url);
/** One case of four runs, to save time; WASMSAND_ALL_CASES=1 runs all. */
const PART = process.env.WASMSAND_ALL_CASES ? 1 : 4;

describe("as natively, under Node", { skip }, () => {
  const here = new Differential(async () => {
    const { Sandbox } = await import(new URL("dist/node/index.js", root).href);
    return Sandbox.create();
  });
  const chosen = differentialCases.filter((_, index) => index % PART === 0);
  testAll(chosen, new Map(), (one) => here.run(one));
  after(() => here.end());
});
