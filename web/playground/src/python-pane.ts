// The Python cell: code, its output, its value and its pictures.
//
// Owns the panel. Rules: the interpreter starts at the first run, and keeps its variables.

import type { PythonResult, PythonSession, Sandbox } from "../../src/index.js";
import { element, make } from "./elements.js";

export class PythonPane {
  private sandbox: Sandbox | undefined;
  private session: Promise<PythonSession> | undefined;

  constructor(private readonly onDone: () => void) {
    const form = element<HTMLFormElement>("cell");
    form.onsubmit = (event) => {
      event.preventDefault();
      void this.run();
    };
    element("code").onkeydown = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    };
  }

  show(sandbox: Sandbox): void {
    this.sandbox = sandbox;
    this.session = undefined;
    element("results").replaceChildren();
  }

  private async run(): Promise<void> {
    if (!this.sandbox) return;
    const button = element<HTMLButtonElement>("run-cell");
    button.disabled = true;
    const results = element("results");
    try {
      if (!this.session) results.replaceChildren(make("pre", {}, "Python is being loaded…"));
      this.session ??= this.sandbox.python();
      const result = await (await this.session).run(element<HTMLTextAreaElement>("code").value);
      results.replaceChildren(...shown(result));
    } catch (error) {
      this.session = undefined;
      results.replaceChildren(make("pre", { className: "bad" }, String(error)));
    } finally {
      button.disabled = false;
      this.onDone();
    }
  }
}

function shown(result: PythonResult): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (result.stdout) parts.push(make("pre", {}, result.stdout));
  if (result.stderr) parts.push(make("pre", { className: "bad" }, result.stderr));
  for (const item of result.results) {
    const picture = item.png ?? (item as { data?: Record<string, unknown> }).data?.["image/png"];
    if (typeof picture === "string") {
      parts.push(make("img", { src: `data:image/png;base64,${picture}`, alt: "A picture" }));
    }
  }
  if (result.repr && result.repr !== "None") parts.push(make("pre", {}, result.repr));
  if (result.error) parts.push(make("pre", { className: "bad" }, result.error.traceback || result.error.message));
  if (result.timedOut) parts.push(make("pre", { className: "bad" }, "It took too long."));
  if (parts.length === 0) parts.push(make("pre", { className: "hint" }, "done, without output"));
  return parts;
}
