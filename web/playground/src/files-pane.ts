// The tree of files, with upload, download and a small editor.
//
// Owns the panel. Rules: directories are listed when they are opened. Files that are too large or
// not text are downloaded instead of edited.

import type { FileInfo, Sandbox } from "../../src/index.js";
import { element, make, sizeText } from "./elements.js";

const HOME = "/home/user";
const EDITABLE_BYTES = 200_000;

export class FilesPane {
  private sandbox: Sandbox | undefined;
  private readonly open = new Set<string>();
  private edited: string | undefined;
  private drawing = false;

  constructor(
    private readonly say: (text: string, bad?: boolean) => void,
    private readonly onChange: () => void,
  ) {
    element("refresh").onclick = () => void this.draw();
    const upload = element<HTMLInputElement>("upload");
    upload.onchange = () => void this.upload([...(upload.files ?? [])]);
    const panel = element("files");
    panel.ondragover = (event) => {
      event.preventDefault();
      panel.classList.add("dropping");
    };
    panel.ondragleave = () => panel.classList.remove("dropping");
    panel.ondrop = (event) => {
      event.preventDefault();
      panel.classList.remove("dropping");
      void this.upload([...(event.dataTransfer?.files ?? [])]);
    };
    element<HTMLFormElement>("editor").onsubmit = (event) => {
      event.preventDefault();
      void this.save();
    };
    element("editor-close").onclick = () => this.closeEditor();
  }

  async show(sandbox: Sandbox): Promise<void> {
    this.sandbox = sandbox;
    this.open.clear();
    this.closeEditor();
    await this.draw();
  }

  /** Draw the tree as it is now. */
  async draw(): Promise<void> {
    if (!this.sandbox || this.drawing) return;
    this.drawing = true;
    try {
      const list = await this.listed(HOME);
      element("tree").replaceChildren(...list);
    } catch (error) {
      this.say(String(error), true);
    } finally {
      this.drawing = false;
    }
  }

  private async listed(directory: string): Promise<HTMLElement[]> {
    const entries = await this.sandbox!.listDir(directory);
    if (entries.length === 0) return [make("li", { className: "hint" }, "empty")];
    return Promise.all(entries.map((entry) => this.item(entry)));
  }

  private async item(file: FileInfo): Promise<HTMLElement> {
    const isOpen = this.open.has(file.path);
    const isDirectory = file.type === "dir";
    const mark = isDirectory ? (isOpen ? "▾ " : "▸ ") : "";
    const name = make("button", { type: "button", className: "name", title: file.path }, mark + file.name);
    name.onclick = () => void (isDirectory ? this.toggle(file.path) : this.edit(file));
    const row = make("div", { className: "entry" }, name);
    if (file.type === "file") {
      const save = make("button", { type: "button", className: "act", title: `Download ${file.name}` }, "↓");
      save.setAttribute("aria-label", save.title);
      save.onclick = () => void this.download(file);
      row.append(make("span", { className: "size" }, sizeText(file.size)), save);
    }
    const line = make("li", { role: "treeitem" }, row);
    if (isDirectory) line.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      const inside = await this.listed(file.path).catch(() => []);
      line.append(make("ul", { role: "group" }, ...inside));
    }
    return line;
  }

  private async toggle(path: string): Promise<void> {
    if (!this.open.delete(path)) this.open.add(path);
    await this.draw();
  }

  private async upload(files: File[]): Promise<void> {
    for (const file of files) {
      try {
        await this.sandbox!.writeFile(`${HOME}/${file.name}`, new Uint8Array(await file.arrayBuffer()));
        this.say(`${file.name}: ${sizeText(file.size)} uploaded`);
      } catch (error) {
        this.say(String(error), true);
      }
    }
    this.onChange();
    await this.draw();
  }

  private async download(file: FileInfo): Promise<void> {
    try {
      const bytes = await this.sandbox!.readFile(file.path);
      const url = URL.createObjectURL(new Blob([bytes as BlobPart]));
      make("a", { href: url, download: file.name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      this.say(String(error), true);
    }
  }

  private async edit(file: FileInfo): Promise<void> {
    if (file.size > EDITABLE_BYTES) return this.download(file);
    const bytes = await this.sandbox!.readFile(file.path);
    if (bytes.includes(0)) return this.download(file);
    this.edited = file.path;
    element("editor-name").textContent = file.path;
    element<HTMLTextAreaElement>("text").value = new TextDecoder().decode(bytes);
    element("editor").hidden = false;
    element("text").focus();
  }

  private async save(): Promise<void> {
    if (this.edited === undefined) return;
    try {
      await this.sandbox!.writeFile(this.edited, element<HTMLTextAreaElement>("text").value);
      this.say(`${this.edited} saved`);
      this.onChange();
    } catch (error) {
      this.say(String(error), true);
    }
    await this.draw();
  }

  private closeEditor(): void {
    this.edited = undefined;
    element("editor").hidden = true;
  }
}
