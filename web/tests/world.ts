// One sandbox for many cases, and sandboxes of single cases.
//
// Owns their lives. Rules: the sandboxes that a case creates end with it.

import type * as api from "../src/index.js";
import type { Case } from "./check.js";
import type { OutsidePlace } from "./outside-server.js";

export class Worlds {
  private shared: Promise<api.Sandbox> | undefined;

  /** `create` makes a sandbox: of this page or process, unless it is given. */
  constructor(
    private readonly package_: typeof api, private readonly storePlace: string,
    private readonly outside: OutsidePlace,
    private readonly create: (options?: api.SandboxOptions) => Promise<api.Sandbox> =
      (options) => package_.Sandbox.create(options),
  ) {}

  /** Worlds whose programs run by this driver, unless a case says otherwise. */
  static withDriver(
    package_: typeof api, storePlace: string, outside: OutsidePlace,
    driver: api.SandboxOptions["driver"],
  ): Worlds {
    const create = (options?: api.SandboxOptions) =>
      package_.Sandbox.create({ ...(driver && { driver }), ...options });
    return new Worlds(package_, storePlace, outside, create);
  }

  sandbox(): Promise<api.Sandbox> {
    return (this.shared ??= this.create());
  }

  async run(one: Case): Promise<void> {
    const made: api.Sandbox[] = [];
    try {
      await one.run({
        api: this.package_,
        storePlace: this.storePlace,
        outside: this.outside,
        shared: await this.sandbox(),
        create: async (options) => {
          const sandbox = await this.create(options);
          made.push(sandbox);
          return sandbox;
        },
      });
    } finally {
      for (const sandbox of made) sandbox.destroy();
    }
  }

  /** Run a differential script in an empty directory. */
  async script(script: string): Promise<{ stdout: string; exitCode: number }> {
    const sandbox = await this.sandbox();
    const place = `mkdir -p /tmp/script && cd /tmp/script || exit 99\n`;
    const { stdout, exitCode } = await sandbox.run(place + script);
    await sandbox.run("rm -rf /tmp/script");
    return { stdout, exitCode };
  }

  async end(): Promise<void> {
    (await this.shared)?.destroy();
  }
}
