// The cases of tests/differential of the Python package, run by a sandbox of a page or of Node.
//
// Owns what is compared: exit code, output, and the files that a case leaves, with their kind,
// permissions and content. Rules: cases share a sandbox, which is restored before each of them.

import type { FileInfo, Sandbox } from "../src/index.js";

interface LeftFile {
  kind: string;
  mode: string;
  /** Base64: the content of a file, the target of a link. */
  content: string;
}

interface Outcome {
  exitCode: number;
  /** Base64. */
  stdout: string;
  stderr: string;
  files: Record<string, LeftFile>;
}

/** A case, and its outcome natively: tests/differential/native_outcomes.py writes it. */
export interface DifferentialCase extends Outcome {
  name: string;
  script: string;
  /** What is not compared. */
  ignore: string[];
  directory: string;
  environment: Record<string, string>;
  timeLimitMs: number;
}

const KINDS: Record<FileInfo["type"], string> = {
  file: "-", dir: "d", symlink: "l", fifo: "p", socket: "s", device: "c",
};
const UNTOUCHED = "untouched";

function base64(bytes: Iterable<number>): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function readable(text: string): string {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return JSON.stringify(new TextDecoder().decode(bytes)).slice(0, 600);
}

async function leftFile(sandbox: Sandbox, file: FileInfo): Promise<LeftFile> {
  let content = "";
  if (file.type === "file") content = base64(await sandbox.readFile(file.path));
  if (file.type === "symlink") {
    content = base64(new TextEncoder().encode(await sandbox.readlink(file.path)));
  }
  return { kind: KINDS[file.type], mode: (file.mode & 0o7777).toString(8).padStart(4, "0"), content };
}

async function outcomeHere(sandbox: Sandbox, one: DifferentialCase): Promise<Outcome> {
  const { directory, environment, timeLimitMs } = one;
  await sandbox.restore(UNTOUCHED);
  await sandbox.mkdir(directory);
  const [stdout, stderr]: [number[], number[]] = [[], []];
  const command = await sandbox.start(["bash", "-c", one.script], {
    cwd: directory, env: environment, timeoutMs: timeLimitMs,
    onStdout: (bytes) => void bytes.forEach((byte) => stdout.push(byte)),
    onStderr: (bytes) => void bytes.forEach((byte) => stderr.push(byte)),
  });
  const { exitCode } = await command.ended;
  const files: Outcome["files"] = {};
  for (const file of await sandbox.listDir(directory, { recursive: true })) {
    files[file.path.slice(directory.length + 1)] = await leftFile(sandbox, file);
  }
  return { exitCode, stdout: base64(stdout), stderr: base64(stderr), files };
}

function differences(native: DifferentialCase, here: Outcome): string[] {
  const found: string[] = [];
  if (native.exitCode !== here.exitCode) {
    found.push(`exit code: natively ${native.exitCode}, here ${here.exitCode}`);
  }
  const compare = (what: string, there: string, own: string) => {
    if (there !== own) found.push(`${what}: natively ${readable(there)}, here ${readable(own)}`);
  };
  for (const stream of ["stdout", "stderr"] as const) {
    if (!native.ignore.includes(stream)) compare(stream, native[stream], here[stream]);
  }
  if (native.ignore.includes("files")) return found;
  for (const name of new Set([...Object.keys(native.files), ...Object.keys(here.files)])) {
    const [there, own] = [native.files[name], here.files[name]];
    if (!there || !own) found.push(`file ${name}: only ${there ? "natively" : "here"}`);
    else {
      const [kinds, owns] = [there, own].map(({ kind, mode }) => `${kind} ${mode}`);
      if (kinds !== owns) found.push(`file ${name}: natively ${kinds}, here ${owns}`);
      compare(`file ${name}`, there.content, own.content);
    }
  }
  return found;
}

export class Differential {
  private sandbox: Promise<Sandbox> | undefined;

  constructor(private readonly create: () => Promise<Sandbox>) {}

  /** How the case differs from its native outcome: one text per difference. */
  async run(one: DifferentialCase): Promise<string[]> {
    const sandbox = await (this.sandbox ??= this.begin());
    return differences(one, await outcomeHere(sandbox, one));
  }

  private async begin(): Promise<Sandbox> {
    const sandbox = await this.create();
    await sandbox.snapshot(UNTOUCHED);
    return sandbox;
  }

  async end(): Promise<void> {
    (await this.sandbox)?.destroy();
  }
}
