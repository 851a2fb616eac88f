import { Kernel } from "./src/kernel-worker.js";
const t0 = performance.now();
const kernel = new Kernel();
await kernel.boot();
console.log("boot", (performance.now() - t0).toFixed(0));
const show = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
for (const command of process.argv.slice(2)) {
  const t = performance.now();
  const result: any = await kernel.run(command, new Uint8Array(0), 20);
  console.log(`$ ${command}  [${result.exitCode}] ${(performance.now() - t).toFixed(1)} ms (${(result.seconds * 1000).toFixed(1)})`);
  process.stdout.write(show(result.stdout));
  process.stdout.write(show(result.stderr));
}
process.exit(0);
