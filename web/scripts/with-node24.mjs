// Runs a script with a Node that is new enough: node scripts/with-node24.mjs SCRIPT [ARGUMENT...]

import { spawnSync } from "node:child_process";
import { node24 } from "./node24.mjs";

const done = spawnSync(node24(), process.argv.slice(2), { stdio: "inherit" });
process.exit(done.status ?? 1);
