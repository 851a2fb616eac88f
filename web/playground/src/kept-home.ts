// The home directory in the browser's storage, so that a reload goes on where it was.
//
// Owns a file in the origin private file system: a tar archive of /home/user. Rules: it is written a
// moment after the last change and when the page is hidden. If storage is denied or full, the page
// works without it and says so once.

import type { Sandbox } from "../../src/index.js";

const FILE = "home.tar";
const HOME = "/home/user";
const QUIET_MS = 1500;

export class KeptHome {
  private sandbox: Sandbox | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing: Promise<void> = Promise.resolve();
  private denied = false;

  constructor(private readonly say: (text: string, bad?: boolean) => void) {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.timer !== undefined) void this.write();
    });
  }

  /** Unpack what was kept: whether there was something. */
  async restore(sandbox: Sandbox): Promise<boolean> {
    this.sandbox = sandbox;
    try {
      const directory = await navigator.storage.getDirectory();
      const file = await (await directory.getFileHandle(FILE)).getFile();
      const stdin = new Uint8Array(await file.arrayBuffer());
      const { exitCode, stderr } = await sandbox.run(`tar -C ${HOME} -xf -`, { stdin });
      if (exitCode !== 0) this.say(`the kept files could not be unpacked: ${stderr}`, true);
      return exitCode === 0;
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "NotFoundError")) this.deny(error);
      return false;
    }
  }

  /** Files may have changed. */
  changed(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.write(), QUIET_MS);
  }

  async forget(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.writing;
    const directory = await navigator.storage?.getDirectory().catch(() => undefined);
    await directory?.removeEntry(FILE).catch(() => {});
  }

  private write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.writeNow()).catch((error) => this.deny(error));
    return this.writing;
  }

  private async writeNow(): Promise<void> {
    if (!this.sandbox || this.sandbox.isDestroyed || this.denied) return;
    const packed = await this.sandbox.run(`tar -C ${HOME} -cf - .`);
    if (packed.exitCode !== 0 || packed.truncated) throw new Error(`tar: ${packed.stderr}`);
    const directory = await navigator.storage.getDirectory();
    const handle = await directory.getFileHandle(FILE, { create: true });
    const stream = await handle.createWritable(); // the old file stays until it is closed
    await stream.write(packed.stdoutBytes as BufferSource);
    await stream.close();
  }

  private deny(error: unknown): void {
    if (this.denied) return;
    this.denied = true;
    this.say(`files are not kept over a reload: ${String(error)}`, true);
  }
}
