// The sandbox as a tool for language models.
//
// Owns the tool's description and its answer. Rules: names and fields are those of the design:
// `sandbox_run` gets a command; the result has exit_code, stdout, stderr, execution_time_ms.

import { InvalidArgumentError } from "./errors.js";
import type { Sandbox } from "./sandbox.js";

export const sandboxRunTool = {
  name: "sandbox_run",
  description:
    "Run a bash script in an isolated Linux-like sandbox with GNU tools, git and Python. Files stay " +
    "from one call to the next; the working directory is /home/user.",
  input_schema: {
    type: "object",
    properties: {
      command: { type: "string", description: "The script, as for bash -c" },
    },
    required: ["command"],
    additionalProperties: false,
  },
} as const;

export interface ToolCall {
  tool: string;
  input: { command?: unknown };
}

export async function toolResult(
  sandbox: Sandbox, call: ToolCall,
): Promise<Record<string, unknown>> {
  if (call.tool !== sandboxRunTool.name) {
    throw new InvalidArgumentError(`unknown tool ${call.tool}; there is ${sandboxRunTool.name}`);
  }
  if (typeof call.input?.command !== "string") {
    throw new InvalidArgumentError("input.command must be a string");
  }
  const result = await sandbox.run(call.input.command);
  return {
    exit_code: result.exitCode,
    stdout: result.stdout,
    stderr: result.stderr,
    execution_time_ms: result.executionTimeMs,
  };
}
