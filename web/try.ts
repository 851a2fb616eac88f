import { Kernel } from "./src/kernel-worker.js";
const t0 = performance.now();
const kernel = new Kernel();
await kernel.boot();
console.log("boot", (performance.now() - t0).toFixed(0));
const show = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
kernel.onEvent = (handle, event, data) => console.log(handle, event, data && show(data));
for (const command of process.argv.slice(2)) {
  const t = performance.now();
  try {
    if (command.startsWith("{")) {
      const { method, data, ...params } = JSON.parse(command);
      const [result, bytes] = await kernel.request(method, params, data ? new TextEncoder().encode(data) : null);
      console.log(method, result, bytes && show(bytes), (performance.now() - t).toFixed(1));
      await new Promise((resolve) => setTimeout(resolve, 100));
      continue;
    }
    const [result, out] = await kernel.request("run", { command, timeoutMs: 20000 });
    console.log(`$ ${command}  [${result.exitCode}] ${(performance.now() - t).toFixed(1)} ms (${result.executionTimeMs})`);
    process.stdout.write(show(out));
  } catch (error) {
    console.log(command, error);
  }
}
process.exit(0);
