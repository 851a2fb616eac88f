// The two back ends of the playground: a sandbox of this page, and one of `wasmsand serve`.
//
// Owns opening a sandbox and going on with an earlier one. Rules: the page's other parts know only
// `Sandbox`. The token comes from the fragment of the address or from the form; it is removed from
// the address, and kept for this tab only.

import { InvalidArgumentError, Sandbox, SandboxClosedError, ServerError } from "../../src/index.js";
import { element, make } from "./elements.js";
import { KeptState } from "./kept-state.js";

export interface Backend {
  /** What is shown while the sandbox starts. */
  readonly welcome: string;
  /** The sandbox of the last visit, or a new one. */
  open(): Promise<Sandbox>;
  /** Files may have changed. */
  changed(): void;
  /** Forget the sandbox: the next `open` makes a new one. */
  forget(): Promise<void>;
  /** Whether compiled packages of Python can be had. */
  offersPackages(): Promise<boolean>;
  /** Question before they are loaded; empty if that is quick. */
  readonly packagesQuestion: string;
  /** Install packages. True if the sandbox has to be opened anew for that. */
  addPackages(names: string[]): Promise<boolean>;
  /** Why a reload will not go on where it was; empty if it will. */
  readonly problem: string;
  readonly isSaved: boolean;
}

type Say = (text: string, bad?: boolean) => void;

/** What programs may reach: whoever serves the page decides, because its policy has to agree. */
async function allowedNetwork(): Promise<{ allow: string[]; deny: string[] }> {
  try {
    const { allow = [], deny = [] } = await (await fetch("network.json")).json();
    return { allow, deny };
  } catch {
    return { allow: [], deny: [] };
  }
}

function showNetwork(allow: string[]): void {
  const notice = element("network");
  notice.hidden = false;
  if (allow.length) {
    const hosts = allow.join(", ");
    notice.textContent = `Programs may reach ${hosts}, if the server there allows pages (CORS).`;
  } else {
    const command = make("code", {}, "wasmsand playground --allow-net HOST");
    notice.replaceChildren("Programs have no network. ", command, " lets them reach a host.");
  }
}

const PACKAGES_KEY = "wasmsand-packages";

/** The packages that the user has loaded, in this visit or an earlier one. */
function chosenPackages(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(PACKAGES_KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((name) => typeof name === "string") : [];
  } catch {
    return []; // storage is denied, or somebody else wrote there
  }
}

class PageBackend implements Backend {
  readonly welcome =
    "Loading the kernel: about 13 MB at the first visit, then from this browser's storage.";
  readonly packagesQuestion =
    "Load the compiled packages? This transfers about 60 MB once, and programs that run end.";
  private readonly kept: KeptState;

  constructor(say: Say) {
    this.kept = new KeptState(say);
  }

  async offersPackages(): Promise<boolean> {
    try {
      return Boolean((await (await fetch("assets/index.json")).json()).packages);
    } catch {
      return false;
    }
  }

  async addPackages(names: string[]): Promise<boolean> {
    const chosen = chosenPackages();
    if (names.every((name) => chosen.includes(name))) return false;
    await this.kept.flush();
    localStorage.setItem(PACKAGES_KEY, JSON.stringify([...new Set([...chosen, ...names])]));
    return true;
  }

  async open(): Promise<Sandbox> {
    const network = await allowedNetwork();
    showNetwork(network.allow);
    const packages = (await this.offersPackages()) ? chosenPackages() : [];
    const sandbox = await Sandbox.create({
      assets: new URL("assets/", location.href), timeoutMs: null,
      ...(network.allow.length && { network }), ...(packages.length && { packages }),
    });
    await this.kept.restore(sandbox);
    return sandbox;
  }

  changed(): void {
    this.kept.changed();
  }

  forget(): Promise<void> {
    localStorage.removeItem(PACKAGES_KEY);
    return this.kept.forget();
  }

  get problem(): string {
    return this.kept.problem;
  }

  get isSaved(): boolean {
    return this.kept.isSaved;
  }
}

const TOKEN_KEY = "wasmsand-token";
const SANDBOX_KEY = "wasmsand-sandbox";
const UNAUTHORIZED = 401;

function isWrongToken(error: unknown): boolean {
  if (error instanceof InvalidArgumentError) return true;
  return error instanceof ServerError && error.status === UNAUTHORIZED;
}

class ServerBackend implements Backend {
  readonly welcome = "Connecting to the server…";
  readonly problem = "";
  readonly isSaved = true;
  readonly packagesQuestion = "";
  private sandbox: Sandbox | undefined;

  constructor() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!given) return;
    sessionStorage.setItem(TOKEN_KEY, given);
    history.replaceState(null, "", location.pathname);
  }

  async open(): Promise<Sandbox> {
    for (;;) {
      const token = sessionStorage.getItem(TOKEN_KEY) ?? (await this.askToken(""));
      try {
        this.sandbox = await this.connected(token);
        sessionStorage.setItem(SANDBOX_KEY, this.sandbox.id!);
        return this.sandbox;
      } catch (error) {
        if (!isWrongToken(error)) throw error;
        sessionStorage.removeItem(TOKEN_KEY);
        await this.askToken("The server does not know this token.");
      }
    }
  }

  private async connected(token: string): Promise<Sandbox> {
    const id = sessionStorage.getItem(SANDBOX_KEY);
    if (id) {
      try {
        return await Sandbox.connect(location.origin, { token, id });
      } catch (error) {
        if (!(error instanceof SandboxClosedError)) throw error;
      }
    }
    return Sandbox.connect(location.origin, {
      token, timeoutMs: null, metadata: { made_by: "playground" },
    });
  }

  private askToken(problem: string): Promise<string> {
    const form = element<HTMLFormElement>("connect");
    const field = element<HTMLInputElement>("token");
    form.hidden = false;
    element("welcome").hidden = true;
    field.setCustomValidity(problem);
    if (problem) field.reportValidity();
    field.focus();
    field.oninput = () => field.setCustomValidity("");
    return new Promise((resolve) => {
      form.onsubmit = (event) => {
        event.preventDefault();
        const token = field.value.trim();
        if (!token) return;
        sessionStorage.setItem(TOKEN_KEY, token);
        field.value = "";
        form.hidden = true;
        resolve(token);
      };
    });
  }

  changed(): void {}

  async offersPackages(): Promise<boolean> {
    return true; // pip says if the server has none
  }

  async addPackages(names: string[]): Promise<boolean> {
    const done = await this.sandbox!.run(`pip install -q ${names.join(" ")}`);
    if (done.exitCode !== 0) throw new Error(done.stderr.trim());
    return false;
  }

  async forget(): Promise<void> {
    this.sandbox?.destroy();
    sessionStorage.removeItem(SANDBOX_KEY);
  }
}

export function chosenBackend(say: Say): Backend {
  const chosen = document.querySelector<HTMLMetaElement>("meta[name=wasmsand-backend]")?.content;
  return chosen === "server" ? new ServerBackend() : new PageBackend(say);
}

/** Whether the sandbox runs in this page, which then needs shared memory. */
export function runsInPage(backend: Backend): boolean {
  return backend instanceof PageBackend;
}
