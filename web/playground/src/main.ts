// The playground: one page with a terminal, files, a Python cell and examples.
//
// Owns the life of the page's sandbox, the tabs and the status line.

import "./main.css";
import { Sandbox } from "../../src/index.js";
import { element, make, sizeText } from "./elements.js";
import { examples } from "./examples.js";
import { KeptState } from "./kept-state.js";
import { FilesPane } from "./files-pane.js";
import { PythonPane } from "./python-pane.js";
import { TerminalPane } from "./terminal-pane.js";

const STATUS_MS = 2000;

let sandbox: Sandbox | undefined;
let booted = "";

function say(text: string, bad = false): void {
  const status = element("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

/** Redraw the tree a moment after the last output. */
let later: ReturnType<typeof setTimeout> | undefined;
function filesMayHaveChanged(): void {
  clearTimeout(later);
  later = setTimeout(() => void files.draw(), 500);
  kept.changed();
}

const kept = new KeptState(say);
const files = new FilesPane(say, () => kept.changed());
const terminal = new TerminalPane(filesMayHaveChanged);
const python = new PythonPane(filesMayHaveChanged);

async function start(): Promise<void> {
  element<HTMLButtonElement>("reset").disabled = true;
  sandbox?.destroy();
  say("Starting…");
  const began = performance.now();
  try {
    sandbox = await Sandbox.create({ assets: new URL("assets/", location.href), timeoutMs: null });
    await kept.restore(sandbox);
    await terminal.open(sandbox);
    booted = `ready in ${((performance.now() - began) / 1000).toFixed(1)} s`;
    if (!kept.problem) say(booted);
    python.show(sandbox);
    await files.show(sandbox);
  } catch (error) {
    element("welcome").textContent = "The sandbox could not start.";
    element("welcome").hidden = false;
    say(error instanceof Error ? error.message : String(error), true);
  } finally {
    element<HTMLButtonElement>("reset").disabled = false;
  }
}

async function showUsage(): Promise<void> {
  if (!sandbox || sandbox.isDestroyed || document.hidden) return;
  if (element("status").classList.contains("bad")) return;
  const usage = await sandbox.usage();
  say(
    `${booted} · ${usage.processes} processes · ${sizeText(usage.memoryBytes)} of memory · ` +
      `${sizeText(usage.fsBytes)} of files`,
  );
}

function choose(tab: HTMLElement): void {
  for (const other of document.querySelectorAll<HTMLElement>("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    element(other.getAttribute("aria-controls")!).hidden = !chosen;
  }
}

const tabs = [...document.querySelectorAll<HTMLElement>("[role=tab]")];
tabs.forEach((tab, number) => {
  tab.onclick = () => choose(tab);
  tab.onkeydown = (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = tabs[(number + step + tabs.length) % tabs.length]!;
    choose(next);
    next.focus();
  };
});
for (const [title, command] of examples) {
  const button = make("button", { type: "button", className: "example" }, title, make("code", {}, command));
  button.onclick = () => void terminal.type(command);
  element("examples").append(button);
}
element("reset").onclick = async () => {
  if (!confirm("Forget all files of this sandbox?")) return;
  await kept.forget();
  await start();
};
setInterval(() => void showUsage().catch(() => {}), STATUS_MS);
Object.assign(globalThis, {
  playground: { screen: () => terminal.text(), saved: () => kept.isSaved },
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

if (globalThis.crossOriginIsolated) {
  void installServiceWorker();
  void start();
} else if (await installServiceWorker()) location.reload();
else void start();
