// Tabs, the splitter, and moving between the parts of the page by keyboard.
//
// Owns them. Rules: F6 goes from the terminal to the tools and back, because a terminal needs Tab for
// itself.

import { element } from "./elements.js";

const tabs = [...document.querySelectorAll<HTMLElement>("[role=tab]")];
const STEP = 24;

/** Show the panel of a tab. */
export function choose(id: string): void {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${id}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    element(tab.getAttribute("aria-controls")!).hidden = !chosen;
  }
}

function prepareTabs(): void {
  tabs.forEach((tab, number) => {
    tab.onclick = () => choose(tab.id.slice(4));
    tab.onkeydown = (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const next = tabs[(number + step + tabs.length) % tabs.length]!;
      choose(next.id.slice(4));
      next.focus();
    };
  });
}

function prepareSplitter(): void {
  const splitter = element("splitter");
  const main = document.querySelector("main")!;
  const setWidth = (width: number) => {
    const wide = Math.round(Math.min(Math.max(width, 240), innerWidth * 0.7));
    main.style.setProperty("--side", `${wide}px`);
    splitter.setAttribute("aria-valuenow", String(wide));
  };
  splitter.onpointerdown = (event) => {
    splitter.setPointerCapture(event.pointerId);
    splitter.onpointermove = (moved) => setWidth(innerWidth - moved.clientX);
  };
  splitter.onpointerup = () => (splitter.onpointermove = null);
  splitter.onkeydown = (event) => {
    const step = event.key === "ArrowLeft" ? STEP : event.key === "ArrowRight" ? -STEP : 0;
    if (step) setWidth(element("side").offsetWidth + step);
  };
}

/** `focusTerminal` puts the focus into the terminal. */
export function prepareLayout(focusTerminal: () => void): void {
  prepareTabs();
  prepareSplitter();
  addEventListener("keydown", (event) => {
    if (event.key !== "F6") return;
    event.preventDefault();
    if (element("terminal").contains(document.activeElement)) {
      tabs.find((tab) => tab.getAttribute("aria-selected") === "true")!.focus();
    } else focusTerminal();
  });
}
