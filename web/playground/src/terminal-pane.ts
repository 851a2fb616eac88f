// The terminal: xterm.js on a terminal of the sandbox.
//
// Owns both ends, and the keys that a phone lacks. Rules: when bash ends, a new one starts. Ctrl+C
// copies if text is selected, and interrupts otherwise.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen } from "@xterm/xterm";
import type { Sandbox, Terminal } from "../../src/index.js";
import { element, make } from "./elements.js";

const THEME = {
  background: "#16130f", foreground: "#ece4da", cursor: "#e39a55", selectionBackground: "#5a4632",
};
const PS1 = "\\[\\e[1;33m\\]\\u@\\h\\[\\e[0m\\]:\\[\\e[1;36m\\]\\w\\[\\e[0m\\]\\$ ";
const SCROLLBACK = 5000;
/** A bash that ends sooner than this is not started again at once. */
const SHORTEST_MS = 500;

const KEYS: [label: string, bytes: string][] = [
  ["Esc", "\x1b"], ["Tab", "\t"], ["Ctrl", ""], ["↑", "\x1b[A"], ["↓", "\x1b[B"],
  ["←", "\x1b[D"], ["→", "\x1b[C"], ["|", "|"], ["/", "/"], ["-", "-"], ["~", "~"],
];

export class TerminalPane {
  private readonly screen = new Screen({
    theme: THEME, fontFamily: "ui-monospace, Menlo, Consolas, monospace", fontSize: 14,
    cursorBlink: true, scrollback: SCROLLBACK,
  });
  private readonly fit = new FitAddon();
  private terminal: Terminal | undefined;
  private control: HTMLElement | undefined;

  constructor(private readonly onOutput: () => void, private readonly onLost: () => void) {
    this.screen.loadAddon(this.fit);
    this.screen.open(element("terminal"));
    this.screen.onData((text) => this.send(this.withControl(text)));
    this.screen.onBinary((text) => {
      this.send(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    });
    this.screen.attachCustomKeyEventHandler((event) => this.isForProgram(event));
    new ResizeObserver(() => this.resized()).observe(element("terminal"));
    this.drawKeys();
  }

  private send(content: string | Uint8Array): void {
    void this.terminal?.write(content).catch(() => {});
  }

  private isForProgram(event: KeyboardEvent): boolean {
    if (event.key === "F6") return false;
    const copies = event.ctrlKey && event.key.toLowerCase() === "c" && this.screen.hasSelection();
    if (!copies) return true;
    if (event.type === "keydown") {
      event.preventDefault();
      void navigator.clipboard?.writeText(this.screen.getSelection());
      this.screen.clearSelection();
    }
    return false;
  }

  private drawKeys(): void {
    for (const [label, bytes] of KEYS) {
      const key = make("button", { type: "button", tabIndex: -1 }, label);
      key.onpointerdown = (event) => event.preventDefault(); // the terminal keeps the focus
      if (bytes) key.onclick = () => this.send(bytes);
      else {
        this.control = key;
        key.setAttribute("aria-pressed", "false");
        key.onclick = () => this.setControl(key.getAttribute("aria-pressed") !== "true");
      }
      element("keys").append(key);
    }
  }

  private setControl(pressed: boolean): void {
    this.control?.setAttribute("aria-pressed", String(pressed));
  }

  /** One letter after the key Ctrl is a control character. */
  private withControl(text: string): string {
    if (this.control?.getAttribute("aria-pressed") !== "true") return text;
    this.setControl(false);
    const code = text.toUpperCase().charCodeAt(0);
    return text.length === 1 && code >= 64 && code < 96 ? String.fromCharCode(code - 64) : text;
  }

  private resized(): void {
    this.fit.fit();
    void this.terminal?.resize(this.screen.cols, this.screen.rows).catch(() => {});
  }

  focus(): void {
    this.screen.focus();
  }

  async open(sandbox: Sandbox): Promise<void> {
    element("welcome").hidden = true;
    this.fit.fit();
    this.screen.reset();
    await this.start(sandbox);
    this.screen.focus();
  }

  private async start(sandbox: Sandbox): Promise<void> {
    const began = performance.now();
    const terminal = await sandbox.pty({
      cols: this.screen.cols, rows: this.screen.rows, env: { PS1, TERM: "xterm-256color" },
      onData: (bytes) => {
        this.screen.write(bytes);
        this.onOutput();
      },
    });
    this.terminal = terminal;
    terminal.ended.then(
      ({ exitCode }) => {
        if (this.terminal !== terminal || sandbox.isDestroyed) return;
        this.screen.write(`\r\n[bash ended with ${exitCode}; a new one starts]\r\n`);
        const pause = performance.now() - began < SHORTEST_MS ? SHORTEST_MS : 0;
        setTimeout(() => void this.start(sandbox).catch(() => this.onLost()), pause);
      },
      () => {
        if (this.terminal === terminal && !sandbox.isDestroyed) this.onLost();
      },
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
