// What the package exports.

export { Sandbox } from "./sandbox.js";
export { StartedCommand, Terminal } from "./commands.js";
export { PythonSession, ShellSession, type SessionOptions } from "./sessions.js";
export { StateStore } from "./state-store.js";
export { sandboxRunTool, type ToolCall } from "./tools.js";
export type { BootReport } from "./messages.js";
export * from "./errors.js";
export type * from "./types.js";
