// A Node that can run the tests and make the assets.
//
// Rules: this one if it is new enough, else that of the npm package `node`.

import { existsSync } from "node:fs";

const LEAST = 24;

export function node24() {
  if (Number(process.versions.node.split(".")[0]) >= LEAST) return process.execPath;
  const newer = new URL("../node_modules/node/bin/node", import.meta.url).pathname;
  if (existsSync(newer)) return newer;
  console.error(
    `web: Node ${process.versions.node} is too old, and node_modules has no newer one: run 'npm ci' ` +
      `in web/, or use Node ${LEAST}`,
  );
  process.exit(1);
}
