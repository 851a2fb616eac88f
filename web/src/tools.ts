// The sandbox as a tool for language models.
//
// Owns the tool `sandbox_run`: its description, and `RunTool`, which answers calls. Rules: name and
// schema are those of the Python package (tests/llm_tools compares them). All calls use one shell; if
// it has ended, the next call starts another one and says so. A model's input is never trusted.

import { CommandError, InvalidArgumentError } from "./errors.js";
import type { Sandbox } from "./sandbox.js";
import type { ShellSession } from "./sessions.js";
import type { ShellResult } from "./types.js";
import described from "./sandbox-run-tool.json";

const { name, input_schema } = described;
const { minimum: SHORTEST_MS, maximum: LONGEST_MS } = input_schema.properties.timeout_ms;

export const sandboxRunTool = {
  name,
  description:
    "Run a bash command in a private Linux-like sandbox with GNU tools, git and Python. All calls " +
    "use one shell, which starts in /home/user: files, the current directory, variables and " +
    "functions persist. Returns exit_code, stdout, stderr and execution_time_ms; a command that " +
    "fails is a normal result. Standard input is empty unless stdin is given, and there is no " +
    "terminal.",
  input_schema,
};

export interface ToolCall {
  tool: string;
  input: { command?: unknown; stdin?: unknown; timeout_ms?: unknown; restart?: unknown };
}

interface Input {
  command: string;
  stdin: string | null;
  timeoutMs: number | undefined;
  restart: boolean;
}

function refused(message: string): never {
  throw new InvalidArgumentError(message, "EINVAL");
}

function checked({ tool, input }: ToolCall): Input {
  if (tool !== name) refused(`unknown tool ${tool}; there is ${name}`);
  if (typeof input !== "object" || input === null) refused("input must be an object");
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(input_schema.properties, key)) {
      refused(`unknown parameter ${key}; known: ${Object.keys(input_schema.properties).join(", ")}`);
    }
  }
  const { command, stdin = null, timeout_ms = null, restart = null } = input;
  if (typeof command !== "string" || command === "") {
    return refused("input.command must be a string that is not empty");
  }
  if (stdin !== null && typeof stdin !== "string") return refused("input.stdin must be a string");
  if (restart !== null && typeof restart !== "boolean") {
    return refused("input.restart must be true or false");
  }
  const isTime = Number.isInteger(timeout_ms) && Number(timeout_ms) >= SHORTEST_MS;
  if (timeout_ms !== null && !(isTime && Number(timeout_ms) <= LONGEST_MS)) {
    return refused(`input.timeout_ms must be an integer from ${SHORTEST_MS} to ${LONGEST_MS}`);
  }
  const timeoutMs = timeout_ms === null ? undefined : Number(timeout_ms);
  return { command, stdin, timeoutMs, restart: restart ?? false };
}

/** A script that reads its standard input from a file, and runs in the shell itself. */
function withInput(command: string, path: string): string {
  return `{ \\builtin . /dev/fd/9; } 0<${path} 9<<<'${command.replaceAll("'", "'\\''")}'`;
}

export class RunTool {
  private shell: ShellSession | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly sandbox: Sandbox) {}

  /** Answer a call. Calls are answered one after the other. */
  call(call: ToolCall): Promise<Record<string, unknown>> {
    const answer = this.last.then(() => this.answer(checked(call)));
    this.last = answer.catch(() => {});
    return answer;
  }

  private async answer(input: Input): Promise<Record<string, unknown>> {
    if (input.restart) {
      await this.shell?.close().catch(() => {});
      this.shell = undefined;
    }
    const { result, note } = await this.run(input);
    return {
      exit_code: result.exitCode,
      stdout: result.stdout,
      stderr: result.stderr,
      execution_time_ms: Math.round(result.executionTimeMs),
      ...(note ? { note } : {}),
    };
  }

  private async run(input: Input): Promise<{ result: ShellResult; note: string }> {
    const old = this.shell;
    this.shell ??= await this.sandbox.shell();
    try {
      const result = await this.runIn(this.shell, input);
      const note = result.timedOut
        ? "interrupted: it timed out; set a longer timeout_ms if it needs more time" : "";
      return { result, note };
    } catch (error) {
      if (!old || !(error instanceof CommandError)) throw error;
      this.shell = await this.sandbox.shell();
      const result = await this.runIn(this.shell, input);
      return { result, note: "the shell had ended; this is a new one, in /home/user" };
    }
  }

  private async runIn(shell: ShellSession, input: Input): Promise<ShellResult> {
    const options = input.timeoutMs === undefined ? {} : { timeoutMs: input.timeoutMs };
    if (input.stdin === null) return shell.run(input.command, options);
    const path = `/tmp/.wasmsand-stdin-${crypto.randomUUID()}`;
    await this.sandbox.writeFile(path, input.stdin);
    try {
      return await shell.run(withInput(input.command, path), options);
    } finally {
      await this.sandbox.rm(path).catch(() => {});
    }
  }
}
