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

class PageBackend implements Backend {
  readonly welcome =
    "Loading the kernel: about 13 MB at the first visit, then from this browser's storage.";
  private readonly kept: KeptState;

  constructor(say: Say) {
    this.kept = new KeptState(say);
  }

  async open(): Promise<Sandbox> {
    const network = await allowedNetwork();
    showNetwork(network.allow);
    const sandbox = await Sandbox.create({
      assets: new URL("assets/", location.href), timeoutMs: null,
      ...(network.allow.length && { network }),
    });
    await this.kept.restore(sandbox);
    return sandbox;
  }

  changed(): void {
    this.kept.changed();
  }

  forget(): Promise<void> {
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
