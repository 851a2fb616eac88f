// The tree of files, with upload and download.
//
// Owns the panel. Rules: directories are listed when they are opened. Files that are too large or
// not text are downloaded instead of edited. The whole page takes drops, so that a missed drop does
// not leave it.

import type { FileInfo, Sandbox } from "../../src/index.js";
import { chosenFiles, droppedFiles, type Dropped } from "./dropped-files.js";
import type { EditorPane } from "./editor-pane.js";
import { element, make, sizeText } from "./elements.js";

const HOME = "/home/user";
const EDITABLE_BYTES = 500_000;
/** A file that is dragged out has to be read before the drag begins. */
const DRAGGABLE_BYTES = 20_000_000;
const MOST_ENTRIES = 1000;

export class FilesPane {
  private sandbox: Sandbox | undefined;
  private readonly open = new Set<string>();
  private drawing = false;
  private again = false;

  constructor(
    private readonly editor: EditorPane,
    private readonly say: (text: string, bad?: boolean) => void,
    private readonly onChange: () => void,
  ) {
    element("refresh").onclick = () => void this.draw();
    element("new-file").onclick = () => this.newFile();
    const upload = element<HTMLInputElement>("upload");
    upload.onchange = () => {
      void this.upload(chosenFiles(upload.files ?? []), HOME);
      upload.value = "";
    };
    element("tree").onkeydown = (event) => this.key(event);
    this.takeDrops();
  }

  private takeDrops(): void {
    const panel = element("files");
    addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      panel.classList.add("dropping");
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) panel.classList.remove("dropping");
    });
    addEventListener("drop", (event) => {
      panel.classList.remove("dropping");
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      const row = (event.target as HTMLElement).closest?.<HTMLElement>("li[aria-expanded]");
      const target = row?.dataset["path"] ?? HOME;
      droppedFiles(event.dataTransfer).then(
        (files) => this.upload(files, target),
        (error: unknown) => this.say(String(error), true),
      );
    });
  }

  /** Whether there are no files yet. */
  async show(sandbox: Sandbox): Promise<boolean> {
    this.sandbox = sandbox;
    this.open.clear();
    await this.draw();
    return element("tree").querySelector("button") === null;
  }

  /** Draw the tree as it is now. */
  async draw(): Promise<void> {
    this.again = true;
    if (!this.sandbox || this.drawing) return;
    this.drawing = true;
    try {
      while (this.again) {
        this.again = false;
        const list = await this.listed(HOME);
        const focused = (document.activeElement as HTMLElement | null)?.dataset["path"];
        element("tree").replaceChildren(...list);
        if (focused) this.button(focused)?.focus();
      }
    } catch (error) {
      if (!this.sandbox.isDestroyed) this.say(String(error), true);
    } finally {
      this.drawing = false;
    }
  }

  private button(path: string): HTMLElement | null {
    return element("tree").querySelector<HTMLElement>(`button[data-path="${CSS.escape(path)}"]`);
  }

  private async listed(directory: string): Promise<HTMLElement[]> {
    const entries = await this.sandbox!.listDir(directory);
    if (entries.length === 0) return [make("li", { className: "hint" }, "empty")];
    entries.sort((a, b) => Number(b.type === "dir") - Number(a.type === "dir"));
    const rows = await Promise.all(entries.slice(0, MOST_ENTRIES).map((entry) => this.item(entry)));
    if (entries.length > MOST_ENTRIES) {
      rows.push(make("li", { className: "hint" }, `and ${entries.length - MOST_ENTRIES} more`));
    }
    return rows;
  }

  private async item(file: FileInfo): Promise<HTMLElement> {
    const isDirectory = file.type === "dir";
    const isOpen = isDirectory && this.open.has(file.path);
    const mark = isDirectory ? (isOpen ? "▾ " : "▸ ") : "";
    const name = make("button", { type: "button", className: "name", title: file.path }, mark + file.name);
    name.dataset["path"] = file.path;
    name.onclick = () => void (isDirectory ? this.toggle(file.path) : this.edit(file));
    const row = make("div", { className: "entry" }, name);
    if (file.type === "file") {
      this.makeDraggable(row, file);
      row.append(make("span", { className: "size" }, sizeText(file.size)));
    }
    row.append(
      this.action("↓", `Download ${file.name}`, () => this.download(file)),
      this.action("×", `Delete ${file.name}`, () => this.remove(file)),
    );
    const line = make("li", { role: "treeitem" }, row);
    line.dataset["path"] = file.path;
    if (isDirectory) line.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      const inside = await this.listed(file.path).catch(() => []);
      line.append(make("ul", { role: "group" }, ...inside));
    }
    return line;
  }

  private action(sign: string, title: string, act: () => Promise<void>): HTMLElement {
    const button = make("button", { type: "button", className: "act", title }, sign);
    button.setAttribute("aria-label", title);
    button.onclick = () => void act().catch((error: unknown) => this.say(String(error), true));
    return button;
  }

  private makeDraggable(row: HTMLElement, file: FileInfo): void {
    if (file.size > DRAGGABLE_BYTES) return;
    let url = "";
    row.draggable = true;
    row.onpointerdown = () => {
      void this.sandbox!.readFile(file.path).then(
        (bytes) => (url ||= URL.createObjectURL(new Blob([bytes as BlobPart]))), () => {},
      );
    };
    row.ondragstart = (event) => {
      event.dataTransfer?.setData("text/plain", file.path);
      if (url) event.dataTransfer?.setData("DownloadURL", `application/octet-stream:${file.name}:${url}`);
    };
    row.ondragend = () => {
      setTimeout(URL.revokeObjectURL, 10_000, url);
      url = "";
    };
  }

  /** Arrow keys move in the tree, and open and close directories. */
  private key(event: KeyboardEvent): void {
    const buttons = [...element("tree").querySelectorAll<HTMLElement>("button.name")];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    const { path } = buttons[at]!.dataset;
    const isOpen = this.open.has(path!);
    const isDirectory = buttons[at]!.closest("li")!.hasAttribute("aria-expanded");
    if (event.key === "ArrowDown") buttons[at + 1]?.focus();
    else if (event.key === "ArrowUp") buttons[at - 1]?.focus();
    else if (event.key === "ArrowRight" && isDirectory && !isOpen) void this.toggle(path!);
    else if (event.key === "ArrowLeft" && isOpen) void this.toggle(path!);
    else if (event.key === "Delete") (buttons[at]!.parentElement!.lastElementChild as HTMLElement).click();
    else return;
    event.preventDefault();
  }

  private async toggle(path: string): Promise<void> {
    if (!this.open.delete(path)) this.open.add(path);
    await this.draw();
  }

  private newFile(): void {
    const name = prompt("Name of the new file", "new.txt")?.trim();
    if (name) this.editor.open(name.startsWith("/") ? name : `${HOME}/${name}`, "");
  }

  private async upload(files: Dropped[], target: string): Promise<void> {
    if (!this.sandbox) return;
    let bytes = 0;
    try {
      for (const file of files) {
        const content = await file.read();
        await this.sandbox.writeFile(`${target}/${file.name}`, content);
        bytes += content.length;
      }
      const what = files.length === 1 ? files[0]!.name : `${files.length} files`;
      this.say(`${what} uploaded: ${sizeText(bytes)}`);
    } catch (error) {
      this.say(String(error), true);
    }
    this.onChange();
    await this.draw();
  }

  private async download(file: FileInfo): Promise<void> {
    let name = file.name;
    let bytes: Uint8Array;
    if (file.type === "dir") {
      name += ".tar.gz";
      const parent = file.path.slice(0, -file.name.length);
      const packed = await this.sandbox!.run('tar -C "$P" -czf - -- "$N"', {
        env: { P: parent, N: file.name }, timeoutMs: 120_000,
      });
      if (packed.exitCode !== 0) throw new Error(packed.stderr);
      bytes = packed.stdoutBytes;
    } else bytes = await this.sandbox!.readFile(file.path);
    const url = URL.createObjectURL(new Blob([bytes as BlobPart]));
    make("a", { href: url, download: name }).click();
    setTimeout(URL.revokeObjectURL, 10_000, url);
  }

  private async remove(file: FileInfo): Promise<void> {
    if (!confirm(`Delete ${file.path}?`)) return;
    await this.sandbox!.rm(file.path, { recursive: file.type === "dir" });
    this.onChange();
    await this.draw();
  }

  private async edit(file: FileInfo): Promise<void> {
    try {
      if (file.size > EDITABLE_BYTES) return await this.download(file);
      const bytes = await this.sandbox!.readFile(file.path);
      if (bytes.includes(0)) return await this.download(file);
      this.editor.open(file.path, new TextDecoder().decode(bytes));
    } catch (error) {
      this.say(String(error), true);
    }
  }
}
