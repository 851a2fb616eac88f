// Results of Python: pictures, HTML, text.
//
// Owns making elements of them. Rules: what a program of the sandbox shows is hostile. HTML is put
// into a frame without any rights: no scripts, no origin, no forms; the page's policy keeps it from
// loading anything. SVG is shown as a picture, in which scripts do not run.

import type { PythonDisplay, PythonResult } from "../../src/index.js";
import { make } from "./elements.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const SVG = "image/svg+xml";
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;

type Forms = Record<string, unknown>;

function text(value: unknown): string {
  if (Array.isArray(value)) return value.join("");
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function picture(source: string): HTMLElement {
  return make("img", { src: source, alt: "A picture that Python has made" });
}

/** A frame cannot tell its height, so it is guessed; the user can change it. */
function frame(html: string): HTMLElement {
  const rows = html.match(/<(tr|p|li|h\d|div|br)\b/gi)?.length ?? 1;
  const made = make("iframe", { title: "HTML that Python has made" });
  made.setAttribute("sandbox", "");
  made.srcdoc =
    "<!doctype html><meta charset=utf-8><style>body{font:14px system-ui,sans-serif;margin:8px;" +
    "background:#fff;color:#222}table{border-collapse:collapse}td,th{padding:2px 8px;" +
    `text-align:right;border:1px solid #ddd}</style>${html}`;
  made.height = String(Math.min(60 + rows * 24, 420));
  return make("div", { className: "frame" }, made);
}

/** The richest form that the page can show. */
export function shownForms(forms: Forms): HTMLElement | null {
  for (const type of PICTURES) {
    const data = forms[type];
    if (data !== undefined && BASE64.test(text(data))) {
      return picture(`data:${type};base64,${text(data).replace(/\s/g, "")}`);
    }
  }
  if (forms[SVG] !== undefined) {
    return picture(`data:${SVG};charset=utf-8,${encodeURIComponent(text(forms[SVG]))}`);
  }
  if (forms["text/html"] !== undefined) return frame(text(forms["text/html"]));
  for (const type of ["text/markdown", "text/latex", "application/json", "text/plain"]) {
    if (forms[type] !== undefined) return make("pre", {}, text(forms[type]));
  }
  return null;
}

function formsOf(item: PythonDisplay): Forms {
  return (item["data"] as Forms | undefined) ?? {};
}

export function shownResult(result: PythonResult): HTMLElement[] {
  const parts: HTMLElement[] = [];
  const bad = (content: string) => parts.push(make("pre", { className: "bad" }, content));
  if (result.stdout) parts.push(make("pre", {}, result.stdout));
  if (result.stderr) bad(result.stderr);
  for (const item of result.results) {
    const made = shownForms(formsOf(item));
    if (made) parts.push(made);
  }
  const hasMain = result.results.some((item) => item["isMain"]);
  if (!hasMain && result.repr && result.repr !== "None") parts.push(make("pre", {}, result.repr));
  if (result.error) bad(result.error.traceback || result.error.message);
  if (result.timedOut) bad("It took too long.");
  if (parts.length === 0) parts.push(make("pre", { className: "hint" }, "done, without output"));
  return parts;
}
