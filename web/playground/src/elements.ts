// Elements of the page.
//
// Owns finding and making them.

export function element<Kind extends HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found as Kind;
}

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name, properties: Partial<HTMLElementTagNameMap[Name]> = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** `1 process`, `2 processes`. */
export function counted(count: number, noun: "process"): string {
  return `${count} ${noun}${count === 1 ? "" : "es"}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
