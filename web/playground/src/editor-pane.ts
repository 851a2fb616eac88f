// The editor: one text file of the sandbox.
//
// Owns the panel. Rules: text that was not saved is lost only if the user agrees. Tab indents; Esc
// and then Tab moves on, for users of a keyboard.

import type { Sandbox } from "../../src/index.js";
import { element } from "./elements.js";
import { choose } from "./layout.js";

export class EditorPane {
  private sandbox: Sandbox | undefined;
  private path: string | undefined;
  private tabLeaves = false;
  private readonly text = element<HTMLTextAreaElement>("text");

  constructor(
    private readonly say: (text: string, bad?: boolean) => void,
    private readonly onSaved: () => void,
  ) {
    element<HTMLFormElement>("editor-form").onsubmit = (event) => {
      event.preventDefault();
      void this.save();
    };
    element("editor-close").onclick = () => {
      if (this.mayLose()) this.close();
    };
    this.text.oninput = () => this.mark(true);
    this.text.onkeydown = (event) => this.key(event);
    addEventListener("beforeunload", (event) => {
      if (this.isChanged) event.preventDefault();
    });
  }

  private get isChanged(): boolean {
    return !element("editor-changed").hidden;
  }

  private mark(changed: boolean): void {
    element("editor-changed").hidden = !changed;
  }

  private mayLose(): boolean {
    return !this.isChanged || confirm(`Lose the changes of ${this.path}?`);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.save();
    } else if (event.key === "Tab" && !event.shiftKey && !this.tabLeaves) {
      event.preventDefault();
      this.text.setRangeText("    ", this.text.selectionStart, this.text.selectionEnd, "end");
      this.mark(true);
    }
    this.tabLeaves = event.key === "Escape";
  }

  show(sandbox: Sandbox): void {
    this.sandbox = sandbox;
    this.close();
  }

  /** Edit a file; `content` is what it has now. */
  open(path: string, content: string): void {
    if (path !== this.path && !this.mayLose()) return;
    this.path = path;
    element("editor-name").textContent = path;
    this.text.value = content;
    this.mark(false);
    element("editor-empty").hidden = true;
    element("editor-form").hidden = false;
    choose("editor");
    this.text.focus();
    this.text.setSelectionRange(0, 0);
  }

  private async save(): Promise<void> {
    if (this.path === undefined || !this.sandbox) return;
    const [path, content] = [this.path, this.text.value];
    try {
      await this.sandbox.writeFile(path, content);
      if (this.path === path && this.text.value === content) this.mark(false);
      this.say(`${path} saved`);
      this.onSaved();
    } catch (error) {
      this.say(String(error), true);
    }
  }

  private close(): void {
    this.path = undefined;
    this.mark(false);
    element("editor-form").hidden = true;
    element("editor-empty").hidden = false;
  }
}
