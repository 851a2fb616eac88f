// The cases in a page: tests/browser.test.ts calls them.

import type * as package_ from "../src/index.js";
import { cases } from "./cases/index.js";
import { Differential, type DifferentialCase } from "./differential.js";
import { Worlds } from "./world.js";

// @ts-expect-error the bundle of the package, as pages import it
const api = (await import("/dist/browser/index.js")) as typeof package_;
const outside = JSON.parse(new URLSearchParams(location.search).get("outside") ?? "{}");
const worlds = new Worlds(api, "states-of-tests", outside);
const differential = new Differential(() => api.Sandbox.create());

Object.assign(globalThis, {
  api,
  runCase: async (name: string) => {
    const found = cases.find((one) => one.name === name);
    if (!found) throw new Error(`no case ${name}`);
    await worlds.run(found);
  },
  runDifferential: (one: DifferentialCase) => differential.run(one),
  runScript: (script: string) => worlds.script(script),
  ready: true,
});
