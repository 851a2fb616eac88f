// Where saved sandboxes are kept: the browser's storage, or a directory on Node.
//
// Owns `StateStore`. Rules: a state is replaced in one step: whoever reads sees the old one or the
// new one. Names are plain: letters, digits, '.', '_' and '-'.

import { InvalidArgumentError } from "./errors.js";
import { openStates, type States } from "#platform/states";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

function checked(name: string): string {
  if (!NAME.test(name)) {
    throw new InvalidArgumentError(
      `${JSON.stringify(name)} is not a name of a state: use letters, digits, '.', '_' and '-'`, "EINVAL",
    );
  }
  return name;
}

export class StateStore {
  private constructor(private readonly states: States) {}

  /** Open a store. `place` is a directory: on Node a path, in a browser a name in its storage. */
  static async open(place = "wasmsand-states"): Promise<StateStore> {
    return new StateStore(await openStates(place));
  }

  /** Keep what `Sandbox.save` has returned. */
  async put(name: string, state: Uint8Array): Promise<void> {
    if (state.length === 0) throw new InvalidArgumentError("a state is never empty", "EINVAL");
    await this.states.put(checked(name), state);
  }

  /** What was kept, for `Sandbox.load`; null if there is nothing of this name. */
  async get(name: string): Promise<Uint8Array | null> {
    return this.states.get(checked(name));
  }

  async delete(name: string): Promise<void> {
    await this.states.delete(checked(name));
  }

  async list(): Promise<string[]> {
    return (await this.states.list()).filter((name) => NAME.test(name)).sort();
  }
}
