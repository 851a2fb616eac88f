// The Python cell: code, and below it what it has shown.
//
// Owns the panel. Rules: the interpreter starts at the first run, and keeps its variables. Results
// of earlier runs stay until they are cleared.

import type { PythonSession, Sandbox } from "../../src/index.js";
import { shownResult } from "./displays.js";
import { element, make } from "./elements.js";

const MOST_RUNS = 50;

export class PythonPane {
  private sandbox: Sandbox | undefined;
  private session: Promise<PythonSession> | undefined;
  private runs = 0;
  private readonly code = element<HTMLTextAreaElement>("code");
  private readonly results = element("results");

  constructor(private readonly onDone: () => void) {
    const form = element<HTMLFormElement>("cell");
    form.onsubmit = (event) => {
      event.preventDefault();
      void this.run();
    };
    this.code.onkeydown = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.shiftKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    };
    element("stop-cell").onclick = () => void this.stop();
    element("clear-cell").onclick = () => this.results.replaceChildren();
  }

  show(sandbox: Sandbox): void {
    this.sandbox = sandbox;
    this.session = undefined;
    this.runs = 0;
    this.results.replaceChildren();
  }

  /** Put code into the cell and run it. */
  async example(code: string): Promise<void> {
    this.code.value = code;
    await this.run();
  }

  private async stop(): Promise<void> {
    await (await this.session)?.interrupt().catch(() => {});
  }

  private async run(): Promise<void> {
    const button = element<HTMLButtonElement>("run-cell");
    if (!this.sandbox || button.disabled) return;
    const code = this.code.value;
    button.disabled = true;
    const stop = element<HTMLButtonElement>("stop-cell");
    const waiting = make("pre", { className: "hint" }, this.session ? "runs…" : "Python starts…");
    const block = make(
      "div", { className: "run" }, make("pre", { className: "in" }, `${++this.runs}: ${code}`), waiting,
    );
    this.results.append(block);
    while (this.results.childElementCount > MOST_RUNS) this.results.firstElementChild!.remove();
    block.scrollIntoView({ block: "nearest" });
    try {
      this.session ??= this.sandbox.python();
      const session = await this.session;
      stop.disabled = false;
      waiting.replaceWith(...shownResult(await session.run(code, { timeoutMs: null })));
    } catch (error) {
      this.session = undefined;
      waiting.replaceWith(make("pre", { className: "bad" }, String(error)));
    } finally {
      button.disabled = false;
      stop.disabled = true;
      block.scrollIntoView({ block: "nearest" });
      this.onDone();
    }
  }
}
