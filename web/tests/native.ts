// What a native bash does with a script.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function nativeRun(script: string): { stdout: string; exitCode: number } {
  const place = mkdtempSync(join(tmpdir(), "wasmsand-native-"));
  try {
    const env = { PATH: process.env.PATH, HOME: place, LANG: "C.UTF-8" };
    const done = spawnSync("bash", ["-c", script], { cwd: place, env, encoding: "utf8" });
    return { stdout: done.stdout, exitCode: done.status ?? -1 };
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
