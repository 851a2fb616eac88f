// How the sources are bundled.
//
// Owns the options of esbuild. Rules: `#platform/*` is the adapter for Node or for browsers.

const kernelAndGuest = {
  "kernel-worker": "src/kernel/kernel-worker.ts",
  "guest-worker": "src/guest/guest-worker.ts",
};
/** The workers of a page. */
export const workers = {
  ...kernelAndGuest, "asset-worker": "src/platform/browser/asset-worker.ts",
};
export const nodeWorkers = kernelAndGuest;

const common = {
  bundle: true,
  target: "es2024",
  sourcemap: true,
  legalComments: "none",
  logLevel: "warning",
};

function platform(name) {
  return {
    name: "platform",
    setup(building) {
      building.onResolve({ filter: /^#platform\// }, ({ path }) => ({
        path: new URL(`../src/platform/${name}/${path.slice(10)}.ts`, import.meta.url).pathname,
      }));
    },
  };
}

export const nodeOptions = {
  ...common, platform: "node", external: ["pyodide", "pyodide/*"], plugins: [platform("node")],
};
export const browserOptions = {
  ...common, platform: "browser", format: "esm", plugins: [platform("browser")],
  // A browser that is too old should be able to read the code that says so.
  target: "es2020",
};
