// Serves the playground on loopback: node scripts/serve.mjs [PORT]

import { serve } from "./static-server.mjs";

const root = new URL("../site", import.meta.url).pathname;
const server = await serve(root, { port: Number(process.argv[2] ?? 8765) });
console.log(`playground: ${server.origin}/`);
