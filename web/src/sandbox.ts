// The public class: one computer.
//
// Owns `Sandbox`. Rules: each `run` is a fresh bash in the sandbox's directory and environment; files
// and environment stay. `destroy` may be called twice; afterwards every method rejects with
// `SandboxClosedError`.

/// <reference lib="esnext.disposable" preserve="true" />

import { bytesOf, textOf } from "./bytes.js";
import { StartedCommand, Terminal } from "./commands.js";
import type { Connection } from "./connection.js";
import { InvalidArgumentError } from "./errors.js";
import { KernelConnection } from "./kernel-connection.js";
import type { BootReport } from "./messages.js";
import { runResult, type RunAnswer } from "./results.js";
import { connectSandbox } from "./server/connecting.js";
import { ServerConnection } from "./server/server-connection.js";
import { PythonSession, ShellSession, type SessionOptions } from "./sessions.js";
import { runLimits, streamedRun, type RunLimits } from "./streamed-run.js";
import { RunTool, type ToolCall } from "./tools.js";
import type {
  ConnectOptions, FileInfo, MountMode, MountOptions, NetworkEvent, ProcessInfo, PtyOptions, RunOptions, RunResult, SandboxOptions,
  StartOptions, Usage,
} from "./types.js";
import { assetsPlace, defaultAssets, hostDirectory, listPrograms } from "#platform/page";

const MIB = 1024 * 1024;
/** Node waits 5 minutes for an answer, proxies often less. */
const LONGEST_REQUEST_MS = 50_000;
const PROGRAM_DIRECTORY = "/usr/local/bin";

type WireFile = Omit<FileInfo, "mtimeMs"> & { mtimeNs: string };

function fileInfo({ mtimeNs, ...file }: WireFile): FileInfo {
  return { ...file, mtimeMs: Number(BigInt(mtimeNs) / 1000n) / 1000 };
}

/** `true-cmd.wasm` is the program `true`, because some file systems reserve such names. */
function programName(file: string): string {
  return file.replace(/\.wasm$/, "").replace(/-cmd$/, "");
}

/** The options of `create` as the service knows them. */
function serviceOptions(options: SandboxOptions): object {
  const { assets, wasmDir, fastStart, driver, fsLimitMb, memoryLimitMb, ...known } = options;
  const mounts = Object.entries(known.mounts ?? {}).map(([path, mount]) => {
    const { source, mode } = typeof mount === "string" ? { source: mount, mode: undefined } : mount;
    return [path, { source: hostDirectory(source), mode: mode ?? "read-only" }];
  });
  if (mounts.length) known.mounts = Object.fromEntries(mounts);
  if (fsLimitMb !== undefined) known.fsLimitBytes ??= fsLimitMb * MIB;
  if (memoryLimitMb !== undefined) known.memoryLimitBytes ??= memoryLimitMb * MIB;
  return known;
}

export class Sandbox {
  private readonly runTool = new RunTool(this);

  private constructor(
    private readonly connection: Connection,
    /** How the kernel started. */
    readonly boot: BootReport,
    private readonly limits: RunLimits,
    private readonly makeTwin: (original: Sandbox) => Promise<Sandbox>,
  ) {}

  private readonly mounted = new Map<string, { source: string; mode: MountMode }>();

  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const assets = options.assets === undefined ? defaultAssets() : assetsPlace(options.assets);
    const { connection, report } = await KernelConnection.open(
      assets, options.fastStart !== false, options.driver,
    );
    try {
      await connection.request("create", serviceOptions(options));
      const sandbox = new Sandbox(
        connection, report, runLimits(options), (original) => original.twinOfPage(options),
      );
      if (options.wasmDir) await sandbox.addPrograms(options.wasmDir);
      return sandbox;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Use a sandbox of `wasmsand serve`: a new one, or the one with the id. */
  static async connect(url: string | URL, options: ConnectOptions = {}): Promise<Sandbox> {
    const { connection, report, limits } = await connectSandbox(url, options);
    return new Sandbox(connection, report, limits, async () => {
      const { id } = (await connection.request<{ id: string }>("fork")).result;
      return Sandbox.connect(url, { ...(options.token !== undefined && { token: options.token }), id });
    });
  }

  private async addPrograms(place: string | URL): Promise<void> {
    for (const { file, read } of await listPrograms(place)) {
      await this.connection.request(
        "files.write", { path: `${PROGRAM_DIRECTORY}/${programName(file)}`, mode: 0o755 },
        await read(),
      );
    }
  }

  // Commands.

  /** Run a script of bash. */
  async run(command: string, options: RunOptions = {}): Promise<RunResult> {
    if (typeof command !== "string") throw new InvalidArgumentError("command must be a string");
    const { stdin, signal, onStdout, onStderr, ...params } = options;
    if (signal || onStdout || onStderr || this.isLong(options)) {
      return streamedRun(this.connection, command, options, this.limits);
    }
    const data = stdin === undefined ? null : bytesOf(stdin);
    return runResult(await this.connection.request<RunAnswer>("run", { command, ...params }, data));
  }

  /** Whether a run may take longer than a request to a server may wait for its answer. */
  private isLong({ timeoutMs = this.limits.timeoutMs }: RunOptions): boolean {
    const isServed = this.connection instanceof ServerConnection;
    return isServed && (timeoutMs === null || timeoutMs > LONGEST_REQUEST_MS);
  }

  /** Start a command, and go on while it runs. An array is a program and its arguments. */
  start(command: string | string[], options: StartOptions = {}): Promise<StartedCommand> {
    return StartedCommand.start(this.connection, command, options);
  }

  /** Run a program on a terminal: an interactive bash, unless `command` says otherwise. */
  pty(options: PtyOptions = {}): Promise<Terminal> {
    return Terminal.open(this.connection, options);
  }

  /** A bash that keeps its state. */
  shell(options: SessionOptions = {}): Promise<ShellSession> {
    return ShellSession.open(this.connection, options);
  }

  /** A Python that keeps its state. */
  python(options: SessionOptions = {}): Promise<PythonSession> {
    return PythonSession.open(this.connection, options);
  }

  async processes(): Promise<ProcessInfo[]> {
    const answer = await this.connection.request<{ processes: ProcessInfo[] }>("processes.list");
    return answer.result.processes;
  }

  /** Send a signal to a process. Default: SIGKILL. */
  async kill(pid: number, signal = 9): Promise<void> {
    await this.connection.request("processes.kill", { pid, signal });
  }

  // Files. Paths may be relative to the sandbox's directory.

  async readFile(
    path: string, options: { offset?: number; count?: number } = {},
  ): Promise<Uint8Array> {
    return (await this.connection.request("files.read", { path, ...options })).data;
  }

  async readText(path: string): Promise<string> {
    return textOf(await this.readFile(path));
  }

  /** Write a file; creates missing directories. */
  async writeFile(
    path: string, content: string | Uint8Array, options: { mode?: number } = {},
  ): Promise<void> {
    await this.connection.request("files.write", { path, ...options }, bytesOf(content));
  }

  async appendFile(path: string, content: string | Uint8Array): Promise<void> {
    await this.connection.request("files.append", { path }, bytesOf(content));
  }

  async listDir(path: string, options: { recursive?: boolean } = {}): Promise<FileInfo[]> {
    const answer = await this.connection.request<{ entries: WireFile[] }>("files.list", {
      path, ...options,
    });
    return answer.result.entries.map(fileInfo);
  }

  /** The same as `listDir`. */
  readDir(path: string): Promise<FileInfo[]> {
    return this.listDir(path);
  }

  async mkdir(path: string, options: { parents?: boolean } = {}): Promise<void> {
    await this.connection.request("files.mkdir", { path, ...options });
  }

  async stat(path: string, options: { follow?: boolean } = {}): Promise<FileInfo> {
    const answer = await this.connection.request<WireFile>("files.stat", { path, ...options });
    return fileInfo(answer.result);
  }

  async rm(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.connection.request("files.rm", { path, ...options });
  }

  async rename(source: string, target: string): Promise<void> {
    await this.connection.request("files.rename", { source, target });
  }

  async copy(source: string, target: string): Promise<void> {
    await this.connection.request("files.copy", { source, target });
  }

  async chmod(path: string, mode: number): Promise<void> {
    await this.connection.request("files.chmod", { path, mode });
  }

  async symlink(target: string, path: string): Promise<void> {
    await this.connection.request("files.symlink", { target, path });
  }

  async readlink(path: string): Promise<string> {
    const answer = await this.connection.request<{ target: string }>("files.readlink", { path });
    return answer.result.target;
  }

  // Environment.

  async setEnv(name: string, value: string): Promise<void> {
    await this.connection.request("env.set", { name, value });
  }

  async getEnv(name: string): Promise<string | undefined> {
    const answer = await this.connection.request<{ value: string | null }>("env.get", { name });
    return answer.result.value ?? undefined;
  }

  async unsetEnv(name: string): Promise<void> {
    await this.connection.request("env.unset", { name });
  }

  async allEnv(): Promise<Record<string, string>> {
    const answer = await this.connection.request<{ variables: Record<string, string> }>("env.all");
    return answer.result.variables;
  }

  // State.

  async usage(): Promise<Usage> {
    return (await this.connection.request<Usage>("usage")).result;
  }

  /** Keep files and environment as they are now: the name for `restore`. */
  async snapshot(name?: string): Promise<string> {
    const params = name === undefined ? {} : { name };
    const answer = await this.connection.request<{ snapshot: string }>("snapshot", params);
    return answer.result.snapshot;
  }

  /** Go back to a snapshot. Processes end. */
  async restore(snapshot: string): Promise<void> {
    await this.connection.request("restore", { snapshot });
  }

  async listSnapshots(): Promise<string[]> {
    const answer = await this.connection.request<{ snapshots: string[] }>("snapshots.list");
    return answer.result.snapshots;
  }

  async deleteSnapshot(snapshot: string): Promise<void> {
    await this.connection.request("snapshots.delete", { snapshot });
  }

  /** The whole state as bytes, for `load` of this or another sandbox. */
  async save(): Promise<Uint8Array> {
    return (await this.connection.request("save")).data;
  }

  /** Replace the state by one that was saved. */
  async load(state: Uint8Array): Promise<void> {
    await this.connection.request("load", {}, state);
  }

  /** Another sandbox with the same files, environment, options and network rules. Processes,
   *  sessions, snapshots and changes in mounts are not copied. */
  fork(): Promise<Sandbox> {
    return this.makeTwin(this);
  }

  private async twinOfPage(options: SandboxOptions): Promise<Sandbox> {
    const [state, rules] = await Promise.all([this.save(), this.networkRules()]);
    const twin = await Sandbox.create(options);
    try {
      if (rules.allow.length) await twin.allowNetwork(rules.allow);
      if (rules.deny.length) await twin.denyNetwork(rules.deny);
      for (const [path, mount] of this.mounted) await twin.mount(path, mount.source, mount);
      await twin.load(state);
      return twin;
    } catch (error) {
      twin.destroy();
      throw error;
    }
  }

  // Directories of this machine, on Node.

  /** Show a directory of this machine to programs, at `path`. */
  async mount(path: string, directory: string, options: MountOptions = {}): Promise<void> {
    const mode = options.mode ?? (options.readOnly === false ? "read-write" : "read-only");
    const mount = { source: hostDirectory(directory), mode: mode as MountMode };
    await this.connection.request("mount", { path, ...mount });
    this.mounted.set(path, mount);
  }

  async unmount(path: string, options: { force?: boolean } = {}): Promise<void> {
    await this.connection.request("unmount", { path, ...options });
    this.mounted.delete(path);
  }

  // The network.

  /** Allow programs to reach these hosts. */
  async allowNetwork(rules: string[]): Promise<void> {
    await this.connection.request("network.allow", { rules });
  }

  /** Deny what another rule allows. */
  async denyNetwork(rules: string[]): Promise<void> {
    await this.connection.request("network.deny", { rules });
  }

  async networkRules(): Promise<{ allow: string[]; deny: string[] }> {
    const answer = await this.connection.request<{ allow: string[]; deny: string[] }>("network.rules");
    return answer.result;
  }

  /** The newest look-ups, connections and requests, oldest first. */
  async networkLog(): Promise<NetworkEvent[]> {
    const answer = await this.connection.request<{ events: NetworkEvent[] }>("network.log");
    return answer.result.events;
  }

  /** Answer a call of the tool `sandbox_run` by a language model. */
  async callTool(call: ToolCall): Promise<Record<string, unknown>> {
    return this.runTool.call(call);
  }

  /** The id of a server's sandbox; null for a sandbox of this page or process. */
  get id(): string | null {
    return this.connection instanceof ServerConnection ? this.connection.id : null;
  }

  /** Leave a server's sandbox as it is, for a later `connect` with its id. Others end. */
  disconnect(): void {
    if (this.connection instanceof ServerConnection) this.connection.leave();
    else this.connection.close();
  }

  /** End everything. */
  destroy(): void {
    this.connection.close();
  }

  get isDestroyed(): boolean {
    return this.connection.isClosed;
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}
