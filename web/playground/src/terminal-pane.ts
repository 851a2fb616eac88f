// The terminal: xterm.js on a terminal of the sandbox.
//
// Owns both ends. Rules: when bash ends, a new one starts.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen } from "@xterm/xterm";
import type { Sandbox, Terminal } from "../../src/index.js";
import { element } from "./elements.js";

const THEME = {
  background: "#16130f", foreground: "#ece4da", cursor: "#e39a55", selectionBackground: "#5a4632",
};

const PS1 = "\\[\\e[1;33m\\]\\u@\\h\\[\\e[0m\\]:\\[\\e[1;36m\\]\\w\\[\\e[0m\\]\\$ ";

export class TerminalPane {
  private readonly screen = new Screen({
    theme: THEME, fontFamily: "ui-monospace, Menlo, Consolas, monospace", fontSize: 14,
    cursorBlink: true, screenReaderMode: false,
  });
  private readonly fit = new FitAddon();
  private terminal: Terminal | undefined;

  constructor(private readonly onCommand: () => void) {
    this.screen.loadAddon(this.fit);
    this.screen.open(element("terminal"));
    this.screen.onData((text) => void this.terminal?.write(text).catch(() => {}));
    this.screen.onBinary((text) => {
      const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
      void this.terminal?.write(bytes).catch(() => {});
    });
    new ResizeObserver(() => this.resized()).observe(element("terminal"));
  }

  private resized(): void {
    this.fit.fit();
    void this.terminal?.resize(this.screen.cols, this.screen.rows).catch(() => {});
  }

  async open(sandbox: Sandbox): Promise<void> {
    element("welcome").hidden = true;
    this.fit.fit();
    this.screen.reset();
    const terminal = await sandbox.pty({
      cols: this.screen.cols, rows: this.screen.rows, env: { PS1 },
      onData: (bytes) => {
        this.screen.write(bytes);
        this.onCommand();
      },
    });
    this.terminal = terminal;
    this.screen.focus();
    terminal.ended.then(
      ({ exitCode }) => {
        if (this.terminal !== terminal || sandbox.isDestroyed) return;
        this.screen.write(`\r\n[bash ended with ${exitCode}; a new one starts]\r\n`);
        void this.open(sandbox);
      },
      () => {},
    );
  }

  /** Type a command, as a user would. */
  async type(command: string): Promise<void> {
    await this.terminal?.write(`${command}\n`);
    this.screen.focus();
  }

  /** What is on the screen, for tests. */
  text(): string {
    const buffer = this.screen.buffer.active;
    const lines: string[] = [];
    for (let row = 0; row < buffer.length; row++) {
      lines.push(buffer.getLine(row)?.translateToString(true) ?? "");
    }
    return lines.join("\n").trimEnd();
  }
}
