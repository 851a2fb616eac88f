// The connection to a sandbox of `wasmsand serve`.
//
// Owns the sandbox's id, its handles and the table of methods. Rules: each method is the request of
// the same meaning in docs/protocols/http.md. If the server loses the sandbox, terminals and commands
// are reported as lost.

import { textOf } from "../bytes.js";
import type { Answer, Connection, Listener } from "../connection.js";
import { CommandError, SandboxClosedError, UnsupportedError } from "../errors.js";
import { Events } from "../events.js";
import { CommandStream } from "./command-stream.js";
import {
  camelCase, fileInfo, outcome, processInfo, pythonResult, snakeCase, toBase64, type Fields,
} from "./forms.js";
import { TerminalSocket } from "./terminal-socket.js";
import type { Sent, Transport } from "./transport.js";

const NOTHING = new Uint8Array(0);
const SIGKILL = 9;

type Result = { result: Fields; data?: Uint8Array };
type Method = (params: Fields, data: Uint8Array | null) => Promise<Result>;

export class ServerConnection implements Connection {
  private readonly events = new Events((handle, bytes) => {
    const running = this.handles.get(handle);
    if (running instanceof TerminalSocket) running.taken(bytes);
  });
  private readonly handles = new Map<number, CommandStream | TerminalSocket | string>();
  private counter = 0;
  private ended: SandboxClosedError | null = null;

  constructor(private readonly transport: Transport, readonly id: string) {}

  private get path(): string {
    return `/v1/sandboxes/${encodeURIComponent(this.id)}`;
  }

  async request<Kind>(
    method: string, params: object = {}, data: Uint8Array | null = null,
  ): Promise<Answer<Kind>> {
    if (this.ended) throw this.ended;
    const act = this.methods[method];
    if (!act) throw new UnsupportedError(`a server's sandbox does not offer ${method}`, "ENOSYS");
    try {
      const answer = await act(params as Fields, data);
      return { result: answer.result as Kind, data: answer.data ?? NOTHING };
    } catch (error) {
      if (this.ended) throw this.ended;
      throw error;
    }
  }

  listen(handle: number, listener: Listener): void {
    this.events.listen(handle, listener);
  }

  unlisten(handle: number): void {
    this.events.unlisten(handle);
    this.handles.delete(handle);
  }

  get isClosed(): boolean {
    return this.ended !== null;
  }

  /** Kill the sandbox. */
  close(): void {
    if (this.ended) return;
    this.leave();
    void this.transport.send("DELETE", this.path, {}, { keepalive: true }).catch(() => {});
  }

  /** Leave the sandbox as it is. Its terminals are hung up. */
  leave(): void {
    if (this.ended) return;
    this.ended = new SandboxClosedError("the sandbox was destroyed or left", "EBADF");
    for (const running of this.handles.values()) {
      if (running instanceof TerminalSocket) running.drop();
    }
    this.handles.clear();
    this.events.lose();
  }

  // Requests.

  private json(method: string, path: string, sent?: Sent): Promise<Fields> {
    return this.transport.json<Fields>(method, this.path + path, sent);
  }

  /** A request whose answer says nothing. */
  private async done(method: string, path: string, sent?: Sent): Promise<Result> {
    await this.transport.send(method, this.path + path, sent);
    return { result: {} };
  }

  private async outcome(path: string, params: Fields, data: Uint8Array | null): Promise<Result> {
    const stdin = data ? { stdin_base64: toBase64(data) } : {};
    return outcome(await this.json("POST", path, { value: { ...snakeCase(params), ...stdin } }));
  }

  private held<Kind>(params: Fields, name: string, kind: (value: unknown) => value is Kind): Kind {
    const found = this.handles.get(params[name] as number);
    if (!kind(found)) throw new CommandError(`EBADF: no ${name} ${String(params[name])}`, "EBADF");
    return found;
  }

  private session(params: Fields, kind: "shell" | "python"): string {
    const id = this.held(params, kind, (value): value is string => typeof value === "string");
    return `/${kind === "shell" ? "shells" : "python"}/${encodeURIComponent(id)}`;
  }

  private command(params: Fields): CommandStream {
    return this.held(params, "handle", (value): value is CommandStream => value instanceof CommandStream);
  }

  private terminal(params: Fields): TerminalSocket {
    return this.held(params, "handle", (value): value is TerminalSocket => value instanceof TerminalSocket);
  }

  private async start(params: Fields, data: Uint8Array | null): Promise<Result> {
    const { stdin, timeoutMs = null, ...others } = params;
    const value: Fields = { ...snakeCase(others), timeout_ms: timeoutMs };
    if (stdin) value["open_stdin"] = true;
    if (data) value["stdin_base64"] = toBase64(data);
    const { id, pid } = await this.json("POST", "/commands", { value });
    const handle = ++this.counter;
    const path = `${this.path}/commands/${encodeURIComponent(String(id))}`;
    const stream = new CommandStream(this.transport, path, handle, this.events);
    this.handles.set(handle, stream);
    stream.follow(() => this.isClosed).catch(() => this.events.deliver(handle, { event: "lost" }));
    return { result: { handle, pid } };
  }

  private async openTerminal(params: Fields): Promise<Result> {
    const handle = ++this.counter;
    const began = performance.now();
    const { terminal, pid } = await TerminalSocket.open(
      this.transport, `${this.path}/terminal`, params,
      {
        data: (bytes) => this.events.deliver(handle, { event: "data" }, bytes),
        ended: (exitCode) =>
          this.events.deliver(handle, {
            event: "ended", exitCode, timedOut: false, executionTimeMs: performance.now() - began,
          }),
        lost: () => this.events.deliver(handle, { event: "lost" }),
      },
    );
    this.handles.set(handle, terminal);
    return { result: { handle, pid } };
  }

  private async openSession(kind: "shell" | "python", params: Fields): Promise<Result> {
    const path = kind === "shell" ? "/shells" : "/python";
    const { id, pid } = await this.json("POST", path, { value: params });
    const handle = ++this.counter;
    this.handles.set(handle, String(id));
    return { result: { [kind]: handle, pid } };
  }

  private async closeSession(kind: "shell" | "python", params: Fields): Promise<Result> {
    const path = this.session(params, kind);
    this.handles.delete(params[kind] as number);
    return this.done("DELETE", path);
  }

  private async runInShell(params: Fields): Promise<Result> {
    const { shell, ...others } = params;
    const { result, data } = await this.outcome(`${this.session(params, "shell")}/run`, others, null);
    const count = result["stdoutBytes"] as number;
    const [stdout, stderr] = [data!.subarray(0, count), data!.subarray(count)];
    return { result: { ...result, stdout: textOf(stdout), stderr: textOf(stderr) } };
  }

  private async runInPython(params: Fields): Promise<Result> {
    const { python, ...others } = params;
    const path = `${this.session(params, "python")}/run`;
    return { result: pythonResult(await this.json("POST", path, { value: snakeCase(others) })) };
  }

  private async signal({ pid, signal }: Fields): Promise<Result> {
    const path = `/processes/${Number(pid)}`;
    if (signal !== SIGKILL) return this.done("POST", `${path}/signal`, { value: { signal } });
    const { killed } = await this.json("POST", `${path}/kill`);
    if (!killed) throw new CommandError(`ESRCH: no process ${Number(pid)}`, "ESRCH");
    return { result: {} };
  }

  private async snapshot(params: Fields): Promise<Result> {
    const { id, name } = await this.json("POST", "/snapshots", { value: params });
    return { result: { snapshot: name ?? id } };
  }

  private async snapshots(): Promise<Result> {
    const { snapshots } = await this.json("GET", "/snapshots");
    return { result: { snapshots: (snapshots as Fields[]).map(({ id, name }) => name ?? id) } };
  }

  private async save(): Promise<Result> {
    const { id } = await this.json("POST", "/snapshots", { value: { running: "drop" } });
    const path = `/snapshots/${encodeURIComponent(String(id))}`;
    try {
      const data = await this.transport.bytes("POST", `${this.path}${path}/save`, { value: {} });
      return { result: {}, data };
    } finally {
      await this.done("DELETE", path);
    }
  }

  private async fork(): Promise<Result> {
    const { sandboxes } = await this.json("POST", "/fork", { value: { running: "drop" } });
    return { result: { id: (sandboxes as Fields[])[0]!["id"] } };
  }

  private async variables(): Promise<Record<string, string>> {
    return (await this.json("GET", "/env"))["set"] as Record<string, string>;
  }

  private async files(path: string, query: Fields): Promise<Fields> {
    return this.json("GET", `/files/${path}`, { query: query as Sent["query"] });
  }

  private readonly methods: Record<string, Method> = {
    run: (params, data) => this.outcome("/run", params, data),
    start: (params, data) => this.start(params, data),
    "start.write": async (params, data) => {
      await this.command(params).write(data ?? NOTHING);
      return { result: {} };
    },
    "start.closeStdin": async (params) => {
      await this.command(params).closeStdin();
      return { result: {} };
    },
    "start.kill": async (params) => {
      await this.command(params).kill();
      return { result: {} };
    },
    "pty.open": (params) => this.openTerminal(params),
    "pty.write": async (params, data) => {
      await this.terminal(params).write(data ?? NOTHING);
      return { result: {} };
    },
    "pty.resize": async (params) => {
      this.terminal(params).resize(params["cols"] as number, params["rows"] as number);
      return { result: {} };
    },
    "pty.close": async (params) => {
      this.terminal(params).hangUp();
      return { result: {} };
    },
    "shell.open": (params) => this.openSession("shell", params),
    "shell.run": (params) => this.runInShell(params),
    "shell.interrupt": async (params) =>
      this.done("POST", `${this.session(params, "shell")}/interrupt`),
    "shell.close": (params) => this.closeSession("shell", params),
    "python.open": (params) => this.openSession("python", params),
    "python.run": (params) => this.runInPython(params),
    "python.interrupt": async (params) =>
      this.done("POST", `${this.session(params, "python")}/interrupt`),
    "python.close": (params) => this.closeSession("python", params),
    "processes.list": async () => {
      const { processes } = await this.json("GET", "/processes");
      return { result: { processes: (processes as Fields[]).map(processInfo) } };
    },
    "processes.kill": (params) => this.signal(params),
    "files.read": async (query) => ({
      result: {},
      data: await this.transport.bytes("GET", `${this.path}/files`, { query: query as Sent["query"] }),
    }),
    "files.write": (query, data) =>
      this.done("PUT", "/files", { query: query as Sent["query"], bytes: data ?? NOTHING }),
    "files.append": (query, data) =>
      this.done("POST", "/files/append", { query: query as Sent["query"], bytes: data ?? NOTHING }),
    "files.list": async (query) => {
      const { entries } = await this.files("list", query);
      return { result: { entries: (entries as Fields[]).map(fileInfo) } };
    },
    "files.stat": async (query) => ({ result: fileInfo(await this.files("stat", query)) }),
    "files.readlink": async (query) => ({ result: await this.files("link", query) }),
    "files.rm": (query) => this.done("DELETE", "/files", { query: query as Sent["query"] }),
    "files.mkdir": (value) => this.done("POST", "/files/mkdir", { value }),
    "files.rename": (value) => this.done("POST", "/files/rename", { value }),
    "files.copy": (value) => this.done("POST", "/files/copy", { value }),
    "files.chmod": (value) => this.done("POST", "/files/chmod", { value }),
    "files.symlink": (value) => this.done("POST", "/files/symlink", { value }),
    "env.set": ({ name, value }) =>
      this.done("PATCH", "/env", { value: { set: { [String(name)]: value } } }),
    "env.unset": ({ name }) => this.done("PATCH", "/env", { value: { unset: [name] } }),
    "env.get": async ({ name }) => ({
      result: { value: (await this.variables())[String(name)] ?? null },
    }),
    "env.all": async () => ({ result: { variables: await this.variables() } }),
    usage: async () => ({ result: camelCase(await this.json("GET", "/usage")) }),
    snapshot: (params) => this.snapshot(params),
    restore: (value) => this.done("POST", "/restore", { value }),
    "snapshots.list": () => this.snapshots(),
    "snapshots.delete": ({ snapshot }) =>
      this.done("DELETE", `/snapshots/${encodeURIComponent(String(snapshot))}`),
    fork: () => this.fork(),
    save: () => this.save(),
    load: async () => {
      throw new UnsupportedError(
        "a server's sandbox cannot load a state: give the state to Sandbox.connect", "ENOSYS",
      );
    },
    "network.allow": (value) => this.done("POST", "/network/allow", { value }),
  };
}
