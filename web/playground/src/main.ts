// The playground: one page with a terminal, files, an editor, a Python cell and examples.
//
// Owns the life of the page's sandbox and the status line.

import "./main.css";
import type { Sandbox } from "../../src/index.js";
import { chosenBackend, runsInPage } from "./backends.js";
import { EditorPane } from "./editor-pane.js";
import { counted, element, make, sizeText } from "./elements.js";
import { examples, PACKAGES, type Example } from "./examples.js";
import { FilesPane } from "./files-pane.js";
import { choose, prepareLayout } from "./layout.js";
import { PythonPane } from "./python-pane.js";
import { TerminalPane } from "./terminal-pane.js";

const STATUS_MS = 2000;
/** How long a message stays before the usual status comes back. */
const MESSAGE_MS = 5000;

let sandbox: Sandbox | undefined;
let booted = "";
let messageUntil = 0;

function show(text: string, bad: boolean): void {
  const status = element("status");
  if (status.textContent !== text) status.textContent = text;
  status.title = text;
  status.classList.toggle("bad", bad);
}

/** Say something; an error stays until the next message. */
function say(text: string, bad = false): void {
  messageUntil = bad ? Infinity : performance.now() + MESSAGE_MS;
  show(text, bad);
}

/** Redraw the tree a moment after the last output. */
let later: ReturnType<typeof setTimeout> | undefined;
function filesMayHaveChanged(): void {
  clearTimeout(later);
  later = setTimeout(() => void files.draw(), 500);
  backend.changed();
}

const backend = chosenBackend(say);
const editor = new EditorPane(say, filesMayHaveChanged);
const files = new FilesPane(editor, say, () => backend.changed());
const terminal = new TerminalPane(filesMayHaveChanged, () =>
  say("The sandbox is gone. Reload the page, or start anew.", true),
);
const python = new PythonPane(filesMayHaveChanged);
prepareLayout(() => terminal.focus());

function waitVisibly(text: string, busy: boolean): void {
  element("welcome-text").textContent = text;
  element("progress").hidden = !busy;
  element("welcome").hidden = false;
}

async function start(): Promise<void> {
  const reset = element<HTMLButtonElement>("reset");
  reset.disabled = true;
  if (sandbox && !sandbox.isDestroyed) sandbox.destroy();
  say("Starting…");
  waitVisibly(backend.welcome, true);
  const began = performance.now();
  try {
    sandbox = await backend.open();
    await terminal.open(sandbox);
    booted = `ready in ${((performance.now() - began) / 1000).toFixed(1)} s`;
    if (!backend.problem) say(booted);
    python.show(sandbox);
    editor.show(sandbox);
    const isEmpty = await files.show(sandbox);
    if (isEmpty) choose("examples");
  } catch (error) {
    waitVisibly("The sandbox could not start.", false);
    say(error instanceof Error ? error.message : String(error), true);
  } finally {
    reset.disabled = false;
  }
}

async function showUsage(): Promise<void> {
  if (!sandbox || sandbox.isDestroyed || document.hidden) return;
  if (performance.now() < messageUntil) return;
  const usage = await sandbox.usage();
  show(
    `${booted} · ${counted(usage.processes, "process")} · ${sizeText(usage.memoryBytes)} memory · ` +
      `${sizeText(usage.fsBytes)} files`,
    false,
  );
}

async function runCode({ code = "", needsPackages }: Example): Promise<void> {
  if (needsPackages && !(await havePackages())) return;
  choose("python");
  await python.example(code);
}

/** Install what examples need, unless it is there; false if the user does not want it. */
let installed = false;
async function havePackages(): Promise<boolean> {
  if (installed) return true;
  if (!sandbox || sandbox.isDestroyed) return false;
  try {
    const isThere = (await sandbox.run(`pip show -q ${PACKAGES.join(" ")}`)).exitCode === 0;
    if (!isThere) {
      if (backend.packagesQuestion && !confirm(backend.packagesQuestion)) return false;
      if (await backend.addPackages(PACKAGES)) await start();
      else python.show(sandbox); // the next run starts the interpreter that has them
    }
    installed = true;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true);
  }
  return installed;
}

for (const example of examples) {
  const { title, command, code } = example;
  const button = make(
    "button", { type: "button", className: "example", hidden: example.needsPackages ?? false },
    title, make("code", {}, command ?? code ?? ""),
  );
  if (example.needsPackages) void backend.offersPackages().then((offered) => (button.hidden = !offered));
  button.onclick = () => void (command === undefined ? runCode(example) : terminal.type(command));
  element("examples").append(button);
}
element("reset").onclick = async () => {
  if (!confirm("Forget all files of this sandbox?")) return;
  await backend.forget();
  installed = false;
  await start();
};
setInterval(() => void showUsage().catch(() => {}), STATUS_MS);
Object.assign(globalThis, {
  playground: { screen: () => terminal.text(), saved: () => backend.isSaved },
});

/** Whether the page has to be loaded again, with the headers of the service worker. */
async function installServiceWorker(): Promise<boolean> {
  if (!navigator.serviceWorker) return false;
  try {
    await navigator.serviceWorker.register("service-worker.js");
    await navigator.serviceWorker.ready;
  } catch (error) {
    console.warn(`wasmsand: the page will not work offline: ${String(error)}`);
    return false;
  }
  if (globalThis.crossOriginIsolated || sessionStorage.getItem("isolating")) return false;
  sessionStorage.setItem("isolating", "once");
  return true;
}

async function begin(): Promise<void> {
  if (runsInPage(backend)) {
    if (globalThis.crossOriginIsolated) void installServiceWorker();
    else if (await installServiceWorker()) return location.reload();
  }
  await start();
}

void begin();
