// Options and results of the public API.
//
// Owns their types. Rules: names and defaults are those of docs/protocols/json-rpc.md.

export interface SandboxOptions {
  /** Where the package's assets are: a URL, or a directory on Node. Default: beside the code. */
  assets?: string | URL;
  /** A directory (Node) or URL with more programs: every `*.wasm` file is one. In a browser, it
   * needs a file `index.json` with an array of file names. */
  wasmDir?: string | URL | null;
  /** The time limit of each command. Default 30000; null: none. */
  timeoutMs?: number | null;
  /** How large the files may become. Default 268435456. */
  fsLimitBytes?: number;
  /** The same in MiB. */
  fsLimitMb?: number;
  /** How much memory all programs together may use. */
  memoryLimitBytes?: number;
  /** The same in MiB. */
  memoryLimitMb?: number;
  maxProcesses?: number;
  maxOpenFiles?: number;
  maxOutputBytes?: number;
  maxInodes?: number;
  env?: Record<string, string>;
  cwd?: string;
  /** Python packages that can be imported from the start, such as ["numpy", "pandas"]; or "all". */
  packages?: string[] | "all";
  /** Directories of this machine, by their path in the sandbox. Only on Node. */
  mounts?: Record<string, string | { source: string; mode?: MountMode }>;
  /** What programs may reach: rules such as "api.example.com:443", or an object. Default: nothing. */
  network?: string[] | NetworkOptions;
  /** Whether Python may start from a stored memory, which is quicker. Default true. */
  fastStart?: boolean;
  /** How programs run: "workers", each in a worker of its own, or "suspending", in the kernel's
   *  worker. Default: "workers" where shared memory is allowed. `Sandbox.boot.driver` says which. */
  driver?: "workers" | "suspending";
}

/** Options of a sandbox on a server. Those of a new sandbox cannot be given together with `id`. */
export interface ConnectOptions {
  /** Who you are, unless the server needs no tokens. */
  token?: string;
  /** A sandbox that is there already. */
  id?: string;
  /** Create the sandbox from what `save` of a server's sandbox has returned. */
  state?: Uint8Array;
  timeoutMs?: number | null;
  fsLimitBytes?: number;
  memoryLimitBytes?: number;
  maxProcesses?: number;
  maxOpenFiles?: number;
  maxOutputBytes?: number;
  maxInodes?: number;
  env?: Record<string, string>;
  cwd?: string;
  /** Python packages of the server's image. */
  packages?: string[];
  /** Hosts that its programs may reach, within what the token may allow. */
  network?: string[];
  /** The server kills the sandbox when it was unused for this long. */
  idleSeconds?: number;
  lifetimeSeconds?: number;
  metadata?: Record<string, string>;
}

/** What programs may reach. A rule has the form `[METHODS ]host[:port][/path]`. */
export interface NetworkOptions {
  allow?: string[];
  /** Always wins. */
  deny?: string[];
  /** Headers that are added outside the sandbox to requests to a host, by host. */
  secrets?: Record<string, Record<string, string>>;
  /** Texts that are replaced outside the sandbox in headers of requests to a host, by host. */
  placeholders?: Record<string, Record<string, string>>;
  /** Addresses of names, such as { "api.test": "127.0.0.1:8080" }. Only on Node. */
  hosts?: Record<string, string>;
  connectionsAtOnce?: number;
  connections?: number;
  bytesIn?: number;
  bytesOut?: number;
  requests?: number;
  /** A second description that also has to allow everything. */
  ceiling?: NetworkOptions;
}

/** A look-up, a connection or a request of a program. */
export interface NetworkEvent {
  kind: "lookup" | "connection" | "request";
  allowed: boolean;
  host: string;
  port: number;
  /** Seconds since 1970. */
  time: number;
  reason: string;
  address: string;
  sent: number;
  received: number;
  durationMs: number;
  method: string;
  path: string;
  status: number;
}

/** "overlay": the sandbox may change its copy; the directory stays as it is. */
export type MountMode = "read-only" | "overlay";

export interface MountOptions {
  /** Default: "read-only". */
  mode?: MountMode;
  /** The same as the mode "read-only". false is refused: a directory is never written to. */
  readOnly?: boolean;
}

export interface RunOptions {
  /** What the command reads from its standard input. */
  stdin?: string | Uint8Array;
  /** Variables beside those of the sandbox. */
  env?: Record<string, string>;
  cwd?: string;
  /** null: no limit. */
  timeoutMs?: number | null;
  /** Ends the command; `run` then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Gets output while the command runs. */
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

export interface RunResult {
  /** 124 after a timeout. */
  exitCode: number;
  stdout: string;
  stderr: string;
  executionTimeMs: number;
  timedOut: boolean;
  /** Whether output was lost because of `maxOutputBytes`. */
  truncated: boolean;
  /** The output as bytes. */
  stdoutBytes: Uint8Array;
  stderrBytes: Uint8Array;
}

/** The result of a run in a shell session. */
export type ShellResult = Omit<RunResult, "stdoutBytes" | "stderrBytes">;

export type FileType = "file" | "dir" | "symlink" | "fifo" | "socket" | "device";

export interface FileInfo {
  name: string;
  type: FileType;
  size: number;
  mode: number;
  mtimeMs: number;
  path: string;
}

export interface ProcessInfo {
  pid: number;
  parentPid: number;
  command: string[];
  state: string;
  memoryBytes: number;
}

export interface Usage {
  fsBytes: number;
  fsLimitBytes: number;
  inodes: number;
  maxInodes: number;
  processes: number;
  maxProcesses: number;
  memoryBytes: number;
  memoryLimitBytes: number;
  cpuTimeMs: number;
  /** In a page and on Node: the memory of the kernel's Python. */
  kernelBytes?: number;
}

/** How a started command or terminal ended. */
export interface Ending {
  exitCode: number;
  timedOut: boolean;
  executionTimeMs: number;
}

export interface StartOptions {
  /** Text, or true to write with `write`. Default: empty. */
  stdin?: string | Uint8Array | true;
  env?: Record<string, string>;
  cwd?: string;
  /** Default: none. */
  timeoutMs?: number | null;
  signal?: AbortSignal;
  onStdout?: (bytes: Uint8Array) => void;
  onStderr?: (bytes: Uint8Array) => void;
}

export interface PtyOptions {
  /** Default: an interactive bash. */
  command?: string;
  cols?: number;
  rows?: number;
  env?: Record<string, string>;
  cwd?: string;
  onData?: (bytes: Uint8Array) => void;
}

/** A picture, table or other form of a value. */
export type PythonDisplay = Record<string, unknown>;

export interface PythonResult {
  stdout: string;
  stderr: string;
  /** The value of the last expression, if JSON can represent it. */
  value: unknown;
  repr: string | null;
  error: { type: string; message: string; traceback: string } | null;
  executionTimeMs: number;
  timedOut: boolean;
  truncated: boolean;
  results: PythonDisplay[];
}
