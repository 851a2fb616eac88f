// Finding or creating a sandbox of `wasmsand serve`.
//
// Owns `connectSandbox`. Rules: with an id, the sandbox is there already and keeps its options.

import type { BootReport } from "../messages.js";
import { runLimits, type RunLimits } from "../streamed-run.js";
import type { ConnectOptions } from "../types.js";
import { InvalidArgumentError } from "../errors.js";
import { snakeCase, type Fields } from "./forms.js";
import { ServerConnection } from "./server-connection.js";
import { Transport } from "./transport.js";

/** What the server says about a sandbox. */
interface ServedState {
  id: string;
  timeout_ms: number | null;
  limits: Record<string, number>;
}

export interface Connected {
  connection: ServerConnection;
  report: BootReport;
  limits: RunLimits;
}

function served(transport: Transport, options: ConnectOptions): Promise<ServedState> {
  const { token: _token, id, state, ...others } = options;
  const value = snakeCase(others as Fields);
  if (id !== undefined) {
    const [given] = Object.keys(value);
    if (given || state) {
      throw new InvalidArgumentError(`with an id, ${given ?? "state"} cannot be given`, "EINVAL");
    }
    return transport.json("GET", `/v1/sandboxes/${encodeURIComponent(id)}`);
  }
  if (!state) return transport.json("POST", "/v1/sandboxes", { value });
  const query = { options: JSON.stringify(value) };
  return transport.json("POST", "/v1/sandboxes/load", { query, bytes: state });
}

export async function connectSandbox(
  address: string | URL, options: ConnectOptions,
): Promise<Connected> {
  const began = performance.now();
  const transport = new Transport(address, options.token);
  const state = await served(transport, options);
  return {
    connection: new ServerConnection(transport, state.id),
    report: { fromSnapshot: false, milliseconds: performance.now() - began, driver: "server" },
    limits: runLimits({
      timeoutMs: state.timeout_ms, maxOutputBytes: state.limits["max_output_bytes"],
    }),
  };
}
